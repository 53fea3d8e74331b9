# SPDX-License-Identifier: BSD-3-Clause
"""Undoes the fix of a past defect in a copy of the package, and looks whether the machine finds the defect.

python tests/state/undo.py [NAME …]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BY_ID = [
    ("_pattern.py", "pair = (key, other._number)", "pair = (key, id(other))"),
    ("_pattern.py", "(key, other._number) in self._kept", "(key, id(other)) in self._kept"),
]

# By name: what stands where now, and what stood there before.
UNDONE: dict[str, list[tuple[str, str, str]]] = {
    "copies inherit what is kept for pairs": [
        *BY_ID,
        (
            "_pattern.py",
            'return {"indptr": self.indptr, "indices": self.indices, "shape": self.shape, "simple": self._simple}',
            'return {k: v for k, v in self.__dict__.items() if k != "_T"}',
        ),
        ("_pattern.py", "Pattern.__init__(self, **state)", "self.__dict__.update(state, _T=None)"),
    ],
    "pairs outlive the other pattern": [
        *BY_ID,
        ("_pattern.py", "        pattern._kept.pop(pair, None)", "        pass"),
    ],
    "a factor is copied as a number": [
        ("_factor.py", "def __reduce__(self)", "def reduced(self)"),
    ],
    "a transpose follows values that are assigned": [
        ("_sparse_matrix.py", "self._original = A._trusted(A.pattern, A.values)", "self._original = A"),
    ],
    "a transpose follows values assigned to its own transpose": [
        ("_sparse_matrix.py", "else original._trusted(original.pattern, original.values)", "else original"),
    ],
    "a factor follows values that are assigned": [
        (
            "_factor.py",
            "A = A._trusted(A.pattern, A.values) if A._original is None else A._original",
            "A = A if A._original is None else A._original",
        ),
    ],
    "who asks a transpose first decides whether it is differentiated": [
        ("_sparse_matrix.py", "with nullcontext() if tracing else as_it_was(*self._born):", "with nullcontext():"),
    ],
    "a transpose and its original hold each other": [
        ("_pattern.py", "T._T = weakref.ref(self)", "T._T = self"),
    ],
    "values are assigned unchecked": [
        ("_values.py", "self._values = checked_values(self.pattern, values)", "self._values = values"),
    ],
    "SciPy's arrays are ours": [
        (
            "_sparse_matrix.py",
            "t.detach().cpu().numpy().copy() for t in parts",
            "t.detach().cpu().numpy() for t in parts",
        ),
        (
            "_sparse_matrix.py",
            "return scipy.sparse.csr_array(tuple(",
            "return scipy.sparse.csr_array(copy=False, arg1=tuple(",
        ),
    ],
    "operands of two index widths are not made alike": [
        (
            "_pattern.py",
            " if len({P.indptr.dtype for P in patterns}) == 1 else tuple(P.widened() for P in patterns)",
            "",
        ),
    ],
}


def package_without(name: str, folder: Path) -> Path:
    """A copy of the package in which the fix is undone."""
    package = folder / "gossamer"
    shutil.copytree(ROOT / "python/gossamer", package, ignore=shutil.ignore_patterns("lib", "__pycache__"))
    (package / "lib").symlink_to(ROOT / "python/gossamer/lib")
    for file, now, before in UNDONE[name]:
        text = (package / file).read_text()
        if now not in text:
            raise SystemExit(f"{name}: {file} has no more {now!r}")
        (package / file).write_text(text.replace(now, before))
    return folder


def finding(name: str) -> str:
    """What the machine says without the fix; "" if it finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = package_without(name, Path(folder))
        environment = {**os.environ, "PYTHONPATH": str(path)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(ROOT / "tests/state/test_state.py"),
        ]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = re.findall(r"^E +(?:\w+\.)*(\w+(?:Error|Exception): .*)", done.stdout, re.MULTILINE)
    return said[0] if said else f"exit {done.returncode}"


def main(names: list[str]) -> None:
    found = 0
    for name in names or list(UNDONE):
        said = finding(name)
        found += bool(said)
        print(f"{'found    ' if said else 'NOT FOUND'}  {name}: {said[:160]}", flush=True)
    print(f"{found} of {len(names or UNDONE)} found")


if __name__ == "__main__":
    main(sys.argv[1:])
