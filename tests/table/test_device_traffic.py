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
from cases import CASES, Case, Make

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
