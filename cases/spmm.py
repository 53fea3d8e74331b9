# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times dense, and dense times dense on a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case


def raw_spmm(transpose: bool) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    def raw(A: gs.SparseMatrix, X: Tensor) -> tuple[Any, tuple[Any, ...]]:
        return torch.ops.gossamer.spmm.default, (A.pattern.tensors(), A.values, X, list(A.shape), transpose)

    return raw


def raw_sddmm(P: gs.Pattern, U: Tensor, V: Tensor) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.sddmm.default, (P.tensors(True), U, V, list(P.shape))


CASES = [
    Case(
        "spmm",
        lambda gs, A, X: gs.spmm(A, X),
        lambda A, X: A @ X,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.n, 5)),
        raw_spmm(False),
        timed=True,
    ),
    Case(
        "spmv",
        lambda gs, A, x: A @ x,
        lambda A, x: A @ x,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.n)),
        raw_spmm(False),
        timed=True,
    ),
    Case(
        "spmm_transposed",
        lambda gs, A, X: gs.spmm(A, X, transpose=True),
        lambda A, X: A.T @ X,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.m, 3)),
        raw_spmm(True),
        timed=True,
    ),
    Case(
        "dense_times_sparse",
        lambda gs, X, A: gs.matmul(X, A),
        lambda X, A: X @ A,
        lambda make: (make.dense(4, make.m), make.matrix(make.m, make.n)),
        timed=True,
    ),
    Case(
        "spmm_heads",
        lambda gs, A, X: gs.spmm(A, X),
        lambda A, X: torch.einsum("mnh,nhd->mhd", A, X),
        lambda make: (make.matrix(make.m, make.n, 3), make.dense(make.n, 3, 2)),
        raw_spmm(False),
        timed=True,
    ),
    Case(
        "spmm_vector_a_head",
        lambda gs, A, X: gs.spmm(A, X),
        lambda A, X: torch.einsum("mnh,nh->mh", A, X),
        lambda make: (make.matrix(make.m, make.n, 3), make.dense(make.n, 3)),
        raw_spmm(False),
        timed=True,
    ),
    Case(
        "spmm_heads_transposed",
        lambda gs, A, X: gs.spmm(A, X, transpose=True),
        lambda A, X: torch.einsum("mnh,mhd->nhd", A, X),
        lambda make: (make.matrix(make.m, make.n, 2), make.dense(make.m, 2, 3)),
        raw_spmm(True),
        timed=True,
    ),
    Case(
        "sddmm",
        lambda gs, P, U, V: gs.sddmm(P, U, V),
        lambda P, U, V: P * (U @ V.T),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m, 4), make.dense(make.n, 4)),
        raw_sddmm,
        timed=True,
    ),
    Case(
        "sddmm_vectors",
        lambda gs, P, u, v: gs.sddmm(P, u, v),
        lambda P, u, v: P * torch.outer(u, v),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m), make.dense(make.n)),
        raw_sddmm,
        timed=True,
    ),
    Case(
        "sddmm_heads",
        lambda gs, P, U, V: gs.sddmm(P, U, V),
        lambda P, U, V: P[..., None] * torch.einsum("mhd,nhd->mnh", U, V),
        lambda make: (make.pattern(make.m, make.n), make.dense(make.m, 2, 3), make.dense(make.n, 2, 3)),
        raw_sddmm,
        timed=True,
    ),
    Case("transpose", lambda gs, A: A.T, lambda A: A.T, lambda make: (make.matrix(make.m, make.n),), timed=True),
    Case("to_dense", lambda gs, A: A.to_dense(), lambda A: A, lambda make: (make.matrix(make.m, make.n),)),
]
