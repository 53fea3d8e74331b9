# SPDX-License-Identifier: BSD-3-Clause
"""Prints a hash of the bytes of every row's result and gradients, for test_hashes.py, which compares processes.

python tests/state/hash_table.py THREADS [LIBRARY]

LIBRARY, libgossamer_cpp_front_end.so of a build, hashes what the C++ front end makes of the same rows.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # where cases is
sys.path.insert(0, str(Path(__file__).parents[1] / "table"))

from runners import PYTHON, Runner, cpp

import gossamer as gs
from cases import CASES, Case, Make

SHAPE = (210, 190, 0.15)  # enough entries that three threads share them


def bytes_of(x: Any) -> bytes:
    t = x.values if isinstance(x, gs.SparseMatrix) else x
    t = t.detach().contiguous()
    return str(tuple(t.shape)).encode() + t.numpy().tobytes()


def hash_of(case: Case, dtype: torch.dtype, runner: Runner) -> str:
    """Of the result and of the gradients of a weighted sum of it."""
    shape = (40, 30, 0.2) if case.name.startswith(("kron", "cholesky", "expm", "lstsq")) else SHAPE
    inputs = case.inputs(Make(dtype=dtype, shape=shape, seed=5))
    leaves = []
    given = []
    for x in inputs:
        if isinstance(x, gs.Pattern):
            given.append(x)
            continue
        leaf = (x.values if isinstance(x, gs.SparseMatrix) else x).detach().clone().requires_grad_()
        leaves.append(leaf)
        given.append(x.with_values(leaf) if isinstance(x, gs.SparseMatrix) else leaf)
    result = runner.run(case, given)
    values = result.values if isinstance(result, gs.SparseMatrix) else result
    weights = torch.linspace(-1, 1, max(values.numel(), 1), dtype=values.dtype)[: values.numel()].reshape(values.shape)
    grads = torch.autograd.grad(values, leaves, weights, allow_unused=True) if values.requires_grad else []
    together = hashlib.sha256()
    for t in (values, *grads):
        together.update(b"" if t is None else bytes_of(t))
    return together.hexdigest()


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    runner = PYTHON
    if len(sys.argv) > 2:
        torch.ops.load_library(sys.argv[2])
        runner = Runner(front_end=cpp)
    for case in CASES:
        for dtype in (torch.float64, torch.float32):
            if runner is PYTHON or not case.python_only:
                print(case.name, str(dtype), hash_of(case, dtype, runner), flush=True)


if __name__ == "__main__":
    main()
