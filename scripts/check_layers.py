# SPDX-License-Identifier: BSD-3-Clause
"""Dependencies point one way: no torch and no Python below src/torch, and files stay short enough to read."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BELOW_TORCH = ["include", "src/cuda"]
FORBIDDEN = re.compile(r'#\s*include\s*[<"](torch|ATen|c10|Python|pybind11|caffe2)')
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".py"}
LONGEST = 400


def problems() -> list[str]:
    """One line for each rule broken."""
    found = []
    for folder in BELOW_TORCH:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and (hit := FORBIDDEN.search(path.read_text())):
                found.append(f"{path.relative_to(ROOT)}: {hit.group(0)} is above this layer")
    for folder in ["include", "src", "python", "tests", "bench", "examples", "report"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and len(path.read_text().splitlines()) > LONGEST:
                found.append(f"{path.relative_to(ROOT)}: longer than {LONGEST} lines; is it one noun?")
    return found


if __name__ == "__main__":
    broken = problems()
    print("\n".join(broken) or "layers: dependencies point one way")
    sys.exit(bool(broken))
