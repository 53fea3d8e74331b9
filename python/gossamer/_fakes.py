# SPDX-License-Identifier: BSD-3-Clause
"""Fakes, by which a tracer knows the results of an op without running it.

These are the fakes of ops whose results have a size that depends on the data (how many entries a part of a pattern has
is not known before it is looked at); _solver_fakes has those of solvers. All other ops have theirs in C++.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gossamer import _library as _library  # an op must be there before its fake

Gathered = tuple[Tensor, Tensor, Tensor]


def some(like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return like.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=dtype)


def _band(indptr: Tensor, indices: Tensor, shape: Sequence[int], low: int, high: int) -> Gathered:
    entries = some(indices)
    return torch.empty_like(indptr), entries, torch.empty_like(entries)


def _submatrix(
    indptr: Tensor, indices: Tensor, shape: Sequence[int], rows: Tensor | None, cols: Tensor | None
) -> Gathered:
    entries = some(indices)
    count = shape[0] if rows is None else rows.shape[0]
    return indptr.new_empty((count + 1,)), entries, torch.empty_like(entries)


def _entries(
    indptr: Tensor, indices: Tensor, shape: Sequence[int], rows: Tensor, cols: Tensor
) -> tuple[Tensor, Tensor]:
    which = some(indices, torch.int64)
    return which, torch.empty_like(which)


def _axis_index(index: Tensor, size: int, columns: bool) -> Tensor:
    host = torch.empty((), dtype=torch.int64)
    return some(host) if index.dtype is torch.bool else host.new_empty(index.shape)


def _spgemm_pattern(
    A: Sequence[Tensor], shape_A: Sequence[int], B: Sequence[Tensor], shape_B: Sequence[int]
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(A[0]), some(A[1])


def _first_product(
    A: Sequence[Tensor], a: Tensor, shape_A: Sequence[int], B: Sequence[Tensor], b: Tensor, shape_B: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    entries = some(A[1])
    return torch.empty_like(A[0]), entries, a.new_empty(entries.shape[0])


def _merge(
    A: Sequence[Tensor], B: Sequence[Tensor], shape: Sequence[int], intersect: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    entries = some(A[1])
    at_A, at_B = (entries, entries) if intersect else (A[1], B[1])
    return torch.empty_like(A[0]), entries, torch.empty_like(at_A), torch.empty_like(at_B)


def _runs(indptr: Tensor, indices: Tensor, perm: Tensor | None, shape: Sequence[int]) -> Tensor:
    return some(indptr)


def _first_sum(
    A: Sequence[Tensor], a: Tensor, B: Sequence[Tensor], b: Tensor, shape: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    entries = some(A[1])
    return torch.empty_like(A[0]), entries, some(A[1]), some(A[1]), a.new_empty((entries.shape[0], *a.shape[1:]))


def _narrow(*sizes: int) -> torch.dtype:
    """int32 where it holds these sizes, as ops choose it; a number of entries that is not known is not asked."""
    return torch.int32 if all(size < torch.iinfo(torch.int32).max for size in sizes) else torch.int64


def _coo(rows: Tensor, cols: Tensor, shape: Sequence[int]) -> Gathered:
    dtype = _narrow(*shape)
    slot = rows.new_empty(rows.shape, dtype=torch.int64)
    return rows.new_empty((shape[0] + 1,), dtype=dtype), some(rows, dtype), slot


def _graph(edge_index: Tensor, shape: Sequence[int]) -> Gathered:
    dtype, edges = _narrow(*shape), edge_index.shape[1]
    indptr = edge_index.new_empty((shape[0] + 1,), dtype=dtype)
    return indptr, indptr.new_empty((edges,)), indptr.new_empty((edges,), dtype=torch.int64)


def _edges(edge_index: Tensor, shape: Sequence[int], self_loops: int) -> Gathered:
    if self_loops == 0:
        return _graph(edge_index, shape)
    indptr = edge_index.new_empty((shape[0] + 1,), dtype=_narrow(*shape))
    indices = some(indptr)
    return indptr, indices, torch.empty_like(indices, dtype=torch.int64)


def _check_pattern(indptr: Tensor, indices: Tensor, shape: Sequence[int], simple: bool = True) -> None:
    return None


FAKES = (
    _band,
    _submatrix,
    _entries,
    _axis_index,
    _spgemm_pattern,
    _first_product,
    _merge,
    _runs,
    _first_sum,
    _coo,
    _graph,
    _edges,
    _check_pattern,
)
for fake in FAKES:  # each is named after its op
    torch.library.register_fake("gossamer::" + fake.__name__.removeprefix("_"), fake)
