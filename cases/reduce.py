# SPDX-License-Identifier: BSD-3-Clause
"""Sums, means, maxima, norms and softmaxes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case, Make


def one(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m, make.n),)


def heads(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m, make.n, 3),)


def without_ties(make: Make, *H: int) -> tuple[gs.SparseMatrix]:
    """Never empty, and no stored zero, which would tie with those that are not stored: there, no derivative exists."""
    A = make.matrix(make.m + 1, make.n + 1, *H)
    return (A.map(lambda values: torch.where(values == 0, 0.25, values)),)


def stored(make: Make, *H: int) -> tuple[gs.SparseMatrix, gs.Pattern]:
    A = make.matrix(make.m, make.n, *H)
    return A, A.pattern


def every(make: Make) -> tuple[gs.SparseMatrix, gs.Pattern]:
    """An entry in each row and column, for the logarithm of an empty sum is infinite."""
    A = gs.from_dense(make.dense(make.m + 1, make.n + 1)).to(index_dtype=make.index_dtype)
    return A, A.pattern


def largest(A: Tensor, mask: Tensor, dim: int | None) -> Tensor:
    """Of the entries of the mask; 0 where there is none."""
    mask = (mask if A.dim() == 2 else mask[..., None].expand_as(A)) != 0
    A, mask = (A, mask) if dim is not None else (A.reshape(1, -1), mask.reshape(1, -1))
    axis = 1 if dim is None else dim
    if A.shape[axis] == 0:
        return A.sum(axis) if dim is not None else A.sum()
    top = torch.where(mask.any(axis), torch.where(mask, A, -torch.inf).amax(axis), 0)
    return top if dim is not None else top[0]


def stored_mean(A: Tensor, mask: Tensor, dim: int | None) -> Tensor:
    count = (mask != 0).sum(dim) if dim is not None else (mask != 0).sum()
    total = A.sum(dim) if dim is not None else A.sum()
    return total / (count if total.dim() <= 1 else count[:, None]).clamp(min=1)


def logsumexp(A: Tensor, mask: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    return torch.where(mask != 0, A, -torch.inf).logsumexp(dim)


def softmax(A: Tensor, mask: Tensor) -> Tensor:
    """Over the entries of the mask; a row without any is zero."""
    mask = mask if A.dim() == 2 else mask[..., None]
    weights = torch.where(mask != 0, A, -torch.inf).softmax(1) if A.shape[1] else A
    return torch.where(mask != 0, weights, 0)


def raw_softmax(A: gs.SparseMatrix, P: gs.Pattern) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.row_softmax.default, (A.pattern.tensors(), A.values, list(A.shape))


def raw_argmax(A: gs.SparseMatrix) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.row_argmax.default, (A.indptr, A.values, A.shape[1])


BELOW = (torch.nan, -torch.inf)  # what a smallest number shows

CASES = [
    Case("sum", lambda gs, A: A.sum()[None], lambda A: A.sum()[None], one),
    Case("sum_rows", lambda gs, A: A.sum(1), lambda A: A.sum(1), one),
    Case("sum_cols", lambda gs, A: A.sum(0), lambda A: A.sum(0), one),
    Case("sum_rows_heads", lambda gs, A: A.sum(-1), lambda A: A.sum(1), heads),
    Case("sum_cols_heads", lambda gs, A: A.sum(-2), lambda A: A.sum(0), heads),
    Case("sum_heads", lambda gs, A: A.sum(), lambda A: A.sum((0, 1)), heads),
    Case("mean", lambda gs, A: A.mean()[None], lambda A: A.mean()[None], without_ties),
    Case("mean_rows", lambda gs, A: A.mean(1), lambda A: A.mean(1), without_ties),
    Case("mean_cols", lambda gs, A: A.mean(0), lambda A: A.mean(0), without_ties),
    Case("amax", lambda gs, A: A.amax()[None], lambda A: A.amax()[None], without_ties),
    Case("amax_rows", lambda gs, A: A.amax(1), lambda A: A.amax(1), without_ties, raw_argmax),
    Case("amax_cols", lambda gs, A: A.amax(0), lambda A: A.amax(0), without_ties),
    Case("amax_heads", lambda gs, A: A.amax(1), lambda A: A.amax(1), lambda make: without_ties(make, 2), raw_argmax),
    Case("amin", lambda gs, A: A.amin()[None], lambda A: A.amin()[None], without_ties, poisons=BELOW),
    Case("amin_rows", lambda gs, A: A.amin(1), lambda A: A.amin(1), without_ties, poisons=BELOW),
    Case("amin_cols", lambda gs, A: A.amin(0), lambda A: A.amin(0), without_ties, poisons=BELOW),
    Case("smax", lambda gs, A, P: A.smax(None)[None], lambda A, P: largest(A, P, None)[None], stored),
    Case("smax_rows", lambda gs, A, P: A.smax(1), lambda A, P: largest(A, P, 1), stored),
    Case("smin_cols", lambda gs, A, P: A.smin(0), lambda A, P: -largest(-A, P, 0), stored, poisons=BELOW),
    Case("smax_heads", lambda gs, A, P: A.smax(1), lambda A, P: largest(A, P, 1), lambda make: stored(make, 2)),
    Case("smean", lambda gs, A, P: A.smean(None)[None], lambda A, P: stored_mean(A, P, None)[None], stored),
    Case("smean_rows", lambda gs, A, P: A.smean(1), lambda A, P: stored_mean(A, P, 1), stored),
    Case("smean_cols", lambda gs, A, P: A.smean(0), lambda A, P: stored_mean(A, P, 0), lambda make: stored(make, 2)),
    Case("logsumexp", lambda gs, A, P: A.logsumexp(None)[None], lambda A, P: logsumexp(A, P, (0, 1))[None], every),
    Case("logsumexp_rows", lambda gs, A, P: A.logsumexp(1), lambda A, P: logsumexp(A, P, 1), every),
    Case("logsumexp_cols", lambda gs, A, P: A.logsumexp(0), lambda A, P: logsumexp(A, P, 0), every),
    Case("norm", lambda gs, A: A.norm()[None], lambda A: A.norm()[None], without_ties),
    Case("row_softmax", lambda gs, A, P: A.row_softmax(), softmax, stored, raw_softmax),
    Case("row_softmax_heads", lambda gs, A, P: A.row_softmax(), softmax, lambda make: stored(make, 3), raw_softmax),
]
