# SPDX-License-Identifier: BSD-3-Clause
"""docs_blocks.py OUT TARGET…: the C++ blocks of README.md and docs/*.md, and the examples at the heads of the public
headers, as projects OUT/TARGET, ready to build and run.

Each CMake block of the pages is the CMakeLists.txt of one project, word for word, and TARGET its program. A C++ block
goes to the project whose library has its headers: Gossamer::core if it includes the torch-free core alone, else
Gossamer::gossamer. The blocks of a project share one file, because torch's headers take longer to compile than they do:
#include lines come first, then every block in a namespace of its own, a fragment as the body of a function. Compiler
errors name the page.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent


class Block(NamedTuple):
    page: str
    line: int
    text: str

    @property
    def is_core(self) -> bool:
        folders = re.findall(r"^#include <(\S+)/[^/\s]+>", self.text, re.MULTILINE)
        return all(folder == "gossamer/kernels" for folder in folders)


def blocks(language: str) -> list[Block]:
    """Every fenced block of a language, in the order of the pages."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start(1)) + 1
            found.append(Block(str(page.relative_to(ROOT)), line, match[1]))
    return found


def examples() -> list[Block]:
    """The example in the first comment of each public header: the lines that are set off, where they call gossamer."""
    found = []
    for header in sorted((ROOT / "include/gossamer").glob("*.h")):
        head = list(itertools.takewhile(lambda line: line.startswith("//"), header.read_text().splitlines()))
        code = [(k, line[5:]) for k, line in enumerate(head, 1) if line.startswith("//   ")]
        if any("gossamer::" in line for _, line in code):
            includes = [f"#include <gossamer/{header.name}>", "#include <torch/torch.h>"]
            text = "\n".join([*includes, *(line for _, line in code), ""])
            found.append(Block(str(header.relative_to(ROOT)), code[0][0] - len(includes), text))
    return found


def program(parts: list[Block]) -> str:
    """One C++ file that runs all the blocks; its exit code is 1 where a block's main() does not return 0."""
    includes, bodies, calls = ["#include <cstdio>"], [], []
    for k, block in enumerate(parts):
        includes += re.findall(r"^#include .*", block.text, re.MULTILINE)
        body = re.sub(r"^#include .*", "", block.text, flags=re.MULTILINE)
        if re.search(r"^int main\(\) {", body, re.MULTILINE):
            body = body.replace("int main()", "int run()")
        else:
            body = f"int run() {{ {body} return 0; }}"
        bodies.append(f'namespace block{k} {{\n#line {block.line} "{block.page}"\n{body}}}')
        calls.append(f'  std::fprintf(stderr, "{block.page}:{block.line}\\n"), failed |= block{k}::run();')
    main = ["int main() {", "  int failed = 0;", *calls, "  return failed != 0;", "}"]
    return "\n".join([*dict.fromkeys(includes), *bodies, *main, ""])


def main(out: Path, targets: list[str]) -> int:
    projects = {}
    for block in blocks("cmake"):
        added = re.search(r"add_executable\((\w+) (\S+)\)", block.text)
        if not added:
            sys.exit(f"{block.page}:{block.line}: the CMake block has no add_executable(target source)")
        projects[added[1]] = block, added[2]
    if sorted(projects) != sorted(targets):
        sys.exit(f"the pages have CMake blocks for {', '.join(projects)}, but the tests run {', '.join(targets)}")
    for target, (block, source) in projects.items():
        core = "Gossamer::core" in block.text
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "CMakeLists.txt").write_text(block.text)
        (folder / source).write_text(program([part for part in [*blocks("cpp"), *examples()] if part.is_core == core]))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
