# SPDX-License-Identifier: BSD-3-Clause
"""The methods, small matrices that each of them solves, and their dense forms."""

from __future__ import annotations

import torch
from torch import Tensor

import gossamer as gs

F64 = torch.float64
METHODS = ["cg", "minres", "gmres", "bicgstab", "lsmr"]
SYMMETRIC = ["cg", "minres"]


def matrix_for(method: str, grid: tuple[int, int] = (4, 3)) -> gs.SparseMatrix:
    """Positive definite for the symmetric methods, else unsymmetric."""
    A = gs.poisson(grid, dtype=F64)
    noise = torch.rand(A.nnz, dtype=F64, generator=torch.Generator().manual_seed(3))
    return A if method in SYMMETRIC else A.with_values(A.values + 0.3 * noise)


def numbers(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(size, dtype=F64, generator=torch.Generator().manual_seed(seed))


def dense_of(A: gs.SparseMatrix, values: Tensor) -> Tensor:
    rows, cols = A.pattern.row_indices, A.indices.long()
    return torch.zeros(A.shape, dtype=F64).index_put((rows, cols), values)
