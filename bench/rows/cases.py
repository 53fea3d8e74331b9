# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the case table, timed on their own: an op that is added to cases/ is timed without an edit here.

Peers for it are an entry of BENCHES in ops.py, products.py, layers.py or batches.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import OURS, Bench
from cases import Case, Make


class OnMatrix(Make):
    """Makes a case's inputs on a named matrix, in place of the small random ones of the tests."""

    def __init__(self, A: csr_array, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(dtype=dtype, device=device, shape=(*A.shape, 0.0))
        self.given = gs.from_scipy(A).pattern.to(device)

    def pattern(self, rows: int, cols: int) -> gs.Pattern:
        return self.given if (rows, cols) == self.given.shape else self.given.T


@dataclass
class Inputs:
    case: Case
    given: Sequence[Any]
    leaves: list[Tensor]

    def forward(self) -> Tensor:
        result = self.case.op(gs, *self.given)
        return result.values if isinstance(result, gs.SparseMatrix) else result

    def backward(self) -> Any:
        Y = self.forward()
        return grad(Y, self.leaves, torch.ones_like(Y))


def setup(case: Case, A: csr_array, dtype: torch.dtype, device: torch.device) -> Inputs:
    given = case.inputs(OnMatrix(A, dtype, device))
    tensors = [x.values if isinstance(x, gs.SparseMatrix) else x for x in given if not isinstance(x, gs.Pattern)]
    return Inputs(case, given, [t.requires_grad_() for t in tensors])


def alone(case: Case) -> Bench:
    """A row without peers, at the widths its inputs have."""
    return Bench(
        setup=lambda A, dtype, columns, device: setup(case, A, dtype, device),
        forward={OURS: Inputs.forward},
        backward={OURS: Inputs.backward},
        bytes_moved=lambda inputs: (0, 0),
        columns=(0,),
    )
