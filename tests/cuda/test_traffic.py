# SPDX-License-Identifier: BSD-3-Clause
"""What passes between a device and the host while an op of the table runs there, forward and backward, on patterns that
were used before: nothing, but where it is said here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import cuda_standin
import gossamer as gs
from cases import CASES, KINDS, Case, Make

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")

# Rows whose patterns or factors are made on the host, each time: see docs/cuda.md.
FACTORS = {"solve", "solve_transposed", "solve_heads", "solve_symmetric", "logdet", "logdet_heads"}
KEYS = {"row", "column", "entry", "slice", "slice_steps", "slice_backwards", "mask", "submatrix"}
INDICES = {"index_rows", "index_cols", "index_rows_and_cols", "index_pairs"}
BLOCKS = {"kron", "kron_heads", "vstack", "hstack", "block_diag"}
BY_THE_HOST = FACTORS | KEYS | INDICES | BLOCKS

# A triangular solve, and the one in its gradient, each tell the host the first row without a pivot.
TRIANGULAR = {"solve_lower", "solve_upper", "solve_lower_transposed", "solve_upper_transposed"}
TWO_LOOKS = TRIANGULAR | {"solve_lower_many", "solve_lower_heads"}


def call(case: Case, inputs: tuple[Any, ...]) -> None:
    result = case.op(gs, *inputs)
    values = result.values if isinstance(result, gs.SparseMatrix) else result
    if isinstance(values, Tensor) and values.requires_grad:
        values.backward(torch.ones_like(values))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_passes_by_the_host(case: Case) -> None:
    inputs = case.inputs(Make("square", torch.float32, device=torch.device("cuda", 0)))
    for x in inputs:
        if isinstance(x, gs.SparseMatrix) or (isinstance(x, Tensor) and x.is_floating_point()):
            x.requires_grad_()
    call(case, inputs)  # patterns are derived here, once
    cuda_standin.traffic()
    call(case, inputs)
    copies, looks = cuda_standin.traffic()
    if case.name in BY_THE_HOST:
        assert copies + looks > 0, "stays on the device: take it off the list"
    else:
        assert (copies, looks) == (0, 2 if case.name in TWO_LOOKS else 0)


# Patterns that are born on a device: what the host looks at is their size.
SYMBOLIC: dict[str, tuple[Any, int]] = {
    "transpose": (lambda A, B: A.T, 0),
    "spmm transposed": (lambda A, B: gs.spmm(A, A.values.new_ones(A.shape[0]), transpose=True), 0),
    "sum": (lambda A, B: A + B, 2),  # and whether the patterns are the same
    "entrywise product": (lambda A, B: A * B, 2),
    "product": (lambda A, B: A @ B, 2),
    "triangle": (lambda A, B: A.tril(), 1),
    "from_coo": (lambda A, B: gs.from_coo(A.pattern.row_indices.flip(0), A.indices.flip(0), A.values, A.shape), 1),
}


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize("kind", KINDS)
def test_patterns_are_born_on_the_device(name: str, kind: str) -> None:
    make = Make(kind, torch.float64, device=torch.device("cuda", 0))
    n = max(make.m, make.n)
    A, B = make.matrix(n, n), make.matrix(n, n)
    f, most = SYMBOLIC[name]
    cuda_standin.traffic()
    result = f(A, B)
    copies, looks = cuda_standin.traffic()
    assert copies == 0
    assert looks <= most
    on_host = f(A.to("cpu"), B.to("cpu"))
    if isinstance(result, gs.SparseMatrix):
        assert result.device.type == "cuda"
        assert result.pattern.to("cpu") == on_host.pattern
        result, on_host = result.to_dense(), on_host.to_dense()
    torch.testing.assert_close(result.cpu(), on_host)
