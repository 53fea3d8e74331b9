# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the table gives the same bytes, forward and backward, on 1, 2 and 3 threads, in every process, from both
front ends, whichever instruction set is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("hash_table.py")
# U, S and Vh come from a call each of C++'s ops, so their gradients are added in another order. That results are the
# same bits is asked in tests/table/test_front_ends.py.
CALLED_THRICE = {"svds"}
MOVES = ("transpose", "tril", "diagonal")  # rows that add nothing


def hashes(threads: int, *library: Path, simd: str = "avx512") -> dict[str, str]:
    """Of every row, by a process of its own; simd can only lower what the machine has."""
    environment = {**os.environ, "GOSSAMER_STANDIN": "off", "PYTHONHASHSEED": str(threads), "GOSSAMER_SIMD": simd}
    command = [sys.executable, str(PROGRAM), str(threads), *map(str, library)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def differ(these: dict[str, str], those: dict[str, str]) -> list[str]:
    return [name for name in these if these[name] != those[name]]


@pytest.fixture(scope="module")
def first() -> dict[str, str]:
    """Python's, on one thread."""
    found = hashes(1)
    assert len(found) > 100
    return found


@pytest.mark.parametrize("threads", [2, 3, 1])
def test_hashes_agree_across_threads_and_processes(first: dict[str, str], threads: int) -> None:
    assert not differ(first, hashes(threads))


def test_hashes_agree_across_front_ends(first: dict[str, str], build: Path) -> None:
    """What C++ has, on two threads: results and gradients."""
    library = build / "libgossamer_cpp_front_end.so"
    if not library.exists():
        pytest.skip(f"no {library.name}, the C++ front end as ops: build the release preset with GOSSAMER_TESTS=torch")
    found = hashes(2, library)
    assert len(found) > 100
    assert {name.split()[0] for name in differ(found, first)} <= CALLED_THRICE


@pytest.mark.parametrize("simd", ["baseline", "avx2"])
def test_hashes_agree_across_threads_of_an_instruction_set(first: dict[str, str], simd: str) -> None:
    """Between two sets they differ where a sum has as many parts as a register has lanes, or products are fused: this
    is not promised. Integers are the same on all, and so are rows that only move numbers."""
    one = hashes(1, simd=simd)
    assert not differ(one, hashes(3, simd=simd))
    changed = set(differ(one, first))
    print(f"{simd}: {len(one) - len(changed)} of {len(one)} rows as on the best set")
    assert not changed & {f"{name} {dtype}" for name in MOVES for dtype in ("torch.float64", "torch.float32")}
