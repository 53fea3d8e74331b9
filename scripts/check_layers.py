# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the tree: dependencies point one way, files, functions and folders stay small enough to read, and every
folder says what is in it."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TREES = ["include", "src", "python", "tests", "cases", "bench", "report", "examples"]
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py"}

# The kernels know neither torch nor Python, nor the front end's headers, which stand beside kernels/.
BELOW_TORCH = ["include/gossamer/kernels", "src/cpu", "src/cuda"]
TORCH = re.compile(r'#\s*include\s*[<"](?:(?:torch|ATen|c10|Python|pybind11|caffe2)\b|gossamer/(?!kernels/))[^>"]*[>"]')

# The programs around the library import it. The other way, gossamer/_programs.py finds them when a command needs one.
LIBRARY = "python/gossamer"
PROGRAMS = re.compile(r"^\s*(?:from|import) (?:bench|cases|examples|report|tests)\b.*", re.MULTILINE)

LONGEST_FILE = 300  # lines
LONGEST_FUNCTION = 60  # lines, in Python; C++ has no parser here
LARGEST_FOLDER = 12  # source files
LONGEST_README = 10  # lines
FLAT = {  # larger folders, and why
    "include/gossamer": "the front end, one public header a noun: users write <gossamer/noun.h>",
    "include/gossamer/kernels": "one noun a file, none knows a family; the README names the families",
    "src/cuda": "the same nouns as in kernels, in the same order",
    "tests/cuda": "the same nouns as in src/cuda, and what they run on",
    "src/cpu": "the same nouns as in kernels, in the same order",
    "tests/kernels": "the same nouns as in kernels, in the same order",
    "cases": "the rows of a family a file, found by itself",
    "python/gossamer": "one noun a file; users see gossamer alone, not its files",
}


def sources(folder: str) -> Iterator[Path]:
    """The source files below a folder of the project; none if it is absent."""
    return (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES)


def layers() -> Iterator[str]:
    """Includes and imports that point up."""
    for folder in BELOW_TORCH:
        for path in sources(folder):
            if hit := TORCH.search(path.read_text()):
                yield f"{name(path)}: {hit[0]} is above this layer"
    for path in sources(LIBRARY):
        if hit := PROGRAMS.search(path.read_text()):
            yield f"{name(path)}: {hit[0].strip()}, but the library knows no program"


def lengths() -> Iterator[str]:
    """Files and functions that are too long."""
    for path in (path for tree in TREES for path in sources(tree)):
        text = path.read_text()
        if (count := len(text.splitlines())) > LONGEST_FILE:
            yield f"{name(path)}: {count} lines, more than {LONGEST_FILE}; is it one noun?"
        for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > LONGEST_FUNCTION:
                    yield f"{name(path)}: {node.name} has {count} lines, more than {LONGEST_FUNCTION}"


def folders() -> Iterator[str]:
    """Folders that are too full, or do not say what is in them. A single file speaks for itself."""
    counts: dict[Path, int] = {}
    for path in (path for tree in TREES for path in sources(tree)):
        counts[path.parent] = counts.get(path.parent, 0) + 1
    for folder, count in counts.items():
        if count > LARGEST_FOLDER and name(folder) not in FLAT:
            yield f"{name(folder)}: {count} source files, more than {LARGEST_FOLDER}; which families are they?"
        readme = folder / "README.md"
        if not readme.exists():
            if count > 1:
                yield f"{name(folder)}: no README.md that names its nouns"
        elif len(readme.read_text().splitlines()) > LONGEST_README:
            yield f"{name(readme)}: more than {LONGEST_README} lines"


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    broken = [*layers(), *lengths(), *folders()]
    print("\n".join(broken) or "layers: dependencies point one way, and everything is small enough to read")
    sys.exit(bool(broken))
