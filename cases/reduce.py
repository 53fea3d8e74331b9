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


def softmax(A: Tensor, mask: Tensor) -> Tensor:
    """Over the entries of the mask; a row without any is zero."""
    mask = mask if A.dim() == 2 else mask[..., None]
    weights = torch.where(mask != 0, A, -torch.inf).softmax(1) if A.shape[1] else A
    return torch.where(mask != 0, weights, 0)


def raw_softmax(A: gs.SparseMatrix, P: gs.Pattern) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.row_softmax.default, (A.pattern.tensors(), A.values, list(A.shape))


def raw_argmax(A: gs.SparseMatrix) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.row_argmax.default, (A.indptr, A.values, A.shape[1])


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
    Case("norm", lambda gs, A: A.norm()[None], lambda A: A.norm()[None], without_ties),
    Case("row_softmax", lambda gs, A, P: A.row_softmax(), softmax, stored, raw_softmax),
    Case("row_softmax_heads", lambda gs, A, P: A.row_softmax(), softmax, lambda make: stored(make, 3), raw_softmax),
]
