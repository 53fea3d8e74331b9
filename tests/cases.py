# SPDX-License-Identifier: BSD-3-Clause
"""The case table: one row per op = inputs + dense formula. test_ops.py does the rest for each row.

A row's inputs are matrices, patterns and dense tensors made by a `Make`; its formula gets their dense twins.
A pattern's twin is its mask of zeros and ones, so `P` masks a product as mathematics does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

# Shapes every op must survive: (rows, cols, chance of an entry).
KINDS = {
    "ordinary": (9, 7, 0.4),
    "square": (8, 8, 0.4),
    "wide and sparse": (6, 40, 0.08),
    "one row": (1, 11, 0.6),
    "one column": (11, 1, 0.6),
    "one entry": (1, 1, 1.0),
    "no entries": (4, 5, 0.0),
    "no rows": (0, 5, 0.5),
    "no columns": (5, 0, 0.5),
    "nothing": (0, 0, 0.5),
}


@dataclass
class Make:
    """Makes reproducible inputs of one kind."""

    kind: str = "ordinary"
    dtype: torch.dtype = torch.float64
    index_dtype: torch.dtype = torch.int32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seed: int = 0
    shape: tuple[int, int, float] | None = None

    def __post_init__(self) -> None:
        self.m, self.n, self.density = self.shape or KINDS[self.kind]
        self.generator = torch.Generator().manual_seed(self.seed)

    def dense(self, *size: int) -> Tensor:
        return torch.randn(size, generator=self.generator, dtype=torch.float64).to(self.device, self.dtype)

    def pattern(self, rows: int, cols: int) -> gs.Pattern:
        """Random entries; every third row is empty."""
        mask = torch.rand(rows, cols, generator=self.generator) < self.density
        mask[1::3] = False
        indptr = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
        indices = mask.nonzero()[:, 1]
        return gs.Pattern(indptr, indices, (rows, cols)).to(self.device, self.index_dtype)

    def matrix(self, rows: int, cols: int, *heads: int) -> gs.SparseMatrix:
        """Values include a stored zero."""
        pattern = self.pattern(rows, cols)
        values = self.dense(pattern.nnz, *heads)
        values[:1] = 0
        return gs.SparseMatrix(pattern.indptr, pattern.indices, values, (rows, cols))


@dataclass(frozen=True)
class Case:
    name: str
    op: Callable[..., Any]
    dense: Callable[..., Tensor]
    inputs: Callable[[Make], tuple[Any, ...]]
    raw: Callable[..., tuple[Any, tuple[Any, ...]]] | None = None  # the op as the dispatcher knows it, for opcheck
    timed: bool = True  # on the benchmark's large matrices


def raw_spmm(transpose: bool) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    def raw(A: gs.SparseMatrix, X: Tensor) -> tuple[Any, tuple[Any, ...]]:
        return torch.ops.gossamer.spmm.default, (A.pattern.tensors(), A.values, X, list(A.shape), transpose)

    return raw


def raw_sddmm(P: gs.Pattern, U: Tensor, V: Tensor) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.sddmm.default, (P.tensors(True), U, V, list(P.shape))


CASES = [
    Case(
        "spmm",
        gs.spmm,
        lambda A, X: A @ X,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.n, 5)),
        raw_spmm(False),
    ),
    Case(
        "spmv",
        lambda A, x: A @ x,
        lambda A, x: A @ x,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.n)),
        raw_spmm(False),
    ),
    Case(
        "spmm_transposed",
        lambda A, X: gs.spmm(A, X, transpose=True),
        lambda A, X: A.T @ X,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.m, 3)),
        raw_spmm(True),
    ),
    Case(
        "dense_times_sparse",
        torch.matmul,
        lambda X, A: X @ A,
        lambda make: (make.dense(4, make.m), make.matrix(make.m, make.n)),
    ),
    Case(
        "spmm_heads",
        gs.spmm,
        lambda A, X: torch.einsum("mnh,nhd->mhd", A, X),
        lambda make: (make.matrix(make.m, make.n, 3), make.dense(make.n, 3, 2)),
        raw_spmm(False),
    ),
    Case(
        "spmm_vector_a_head",
        gs.spmm,
        lambda A, X: torch.einsum("mnh,nh->mh", A, X),
        lambda make: (make.matrix(make.m, make.n, 3), make.dense(make.n, 3)),
        raw_spmm(False),
    ),
    Case(
        "spmm_heads_transposed",
        lambda A, X: gs.spmm(A, X, transpose=True),
        lambda A, X: torch.einsum("mnh,mhd->nhd", A, X),
        lambda make: (make.matrix(make.m, make.n, 2), make.dense(make.m, 2, 3)),
        raw_spmm(True),
    ),
    Case(
        "sddmm",
        gs.sddmm,
        lambda P, U, V: P * (U @ V.T),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m, 4), make.dense(make.n, 4)),
        raw_sddmm,
    ),
    Case(
        "sddmm_vectors",
        gs.sddmm,
        lambda P, u, v: P * torch.outer(u, v),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m), make.dense(make.n)),
        raw_sddmm,
    ),
    Case(
        "sddmm_heads",
        gs.sddmm,
        lambda P, U, V: P[..., None] * torch.einsum("mhd,nhd->mnh", U, V),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m, 2, 3), make.dense(make.n, 2, 3)),
        raw_sddmm,
    ),
    Case("transpose", lambda A: A.T, lambda A: A.T, lambda make: (make.matrix(make.m, make.n),)),
    Case("to_dense", lambda A: A.to_dense(), lambda A: A, lambda make: (make.matrix(make.m, make.n),), timed=False),
]
