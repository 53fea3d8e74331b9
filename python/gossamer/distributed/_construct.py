# SPDX-License-Identifier: BSD-3-Clause
"""From the rows that each rank has, or from a matrix that every rank has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix
from gossamer.distributed._exchange import Block, Exchange
from gossamer.distributed._group import group_name, one_for_all, rank_and_size
from gossamer.distributed._matrix import DistributedMatrix

_ops = torch.ops.gossamer


def from_rows(
    indptr: Tensor,
    columns: Tensor,
    values: Tensor,
    offsets: Tensor | Sequence[int],
    shape: Sequence[int],
    mesh: Any = None,
    *,
    keys: Tensor | None = None,
    column_offsets: Tensor | Sequence[int] | None = None,
    column_keys: Tensor | None = None,
) -> DistributedMatrix:
    """A matrix from this rank's rows, ``offsets[r]`` … ``offsets[r + 1] - 1`` for rank r. All ranks call it.

    ``indptr`` and ``values`` are those of the own rows; ``columns`` are numbered as all ranks number them. Rank r also
    owns the rows ``column_offsets[r]`` … of what the matrix is multiplied with: by default the same as ``offsets``,
    which a square matrix has. ``keys`` and ``column_keys`` are the original numbers of the own rows and columns, if the
    ranks number them in another order: sums over a column of the matrix are made in the order of ``keys``, so that
    they have the same bits for every partition. The width of the indices is that of ``indptr``.

    Cost: O(own rows + own entries + halo) memory, the columns of the halo travel once.

    >>> A = gs.distributed.from_rows(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), torch.ones(3), [0, 2], (2, 2))
    >>> A @ torch.tensor([1.0, 2.0])
    tensor([2., 3.])
    """
    group = group_name(mesh)
    rank, _ = rank_and_size(group)
    rows = torch.as_tensor(offsets, dtype=torch.int64)
    cols = rows if column_offsets is None else torch.as_tensor(column_offsets, dtype=torch.int64)
    with one_for_all(group, f"from_rows: a matrix of {tuple(shape)}"):
        _check_rows(indptr, columns, values, tuple(shape), rows, cols)
    plan, counts = _ops.distributed_plan(indptr, columns, rows, cols, group)
    row_keys = _own_keys("keys", keys, rows, rank, group)
    col_keys = _own_keys(
        "column_keys", keys if cols is rows and column_keys is None else column_keys, cols, rank, group
    )
    exchange = Exchange(plan, counts, group, (rows, cols), (row_keys, col_keys), mesh)
    return DistributedMatrix._trusted(Block.of(exchange), values)


def _check_rows(
    indptr: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...], rows: Tensor, cols: Tensor
) -> None:
    for name, given in {"indptr": indptr, "columns": columns, "values": values}.items():
        if not isinstance(given, Tensor):
            raise TypeError(f"from_rows: {name} must be a torch.Tensor, not {type(given).__name__}")
    if rows.dim() != 1 or cols.dim() != 1 or not len(rows) or not len(cols):
        raise ValueError("from_rows: offsets must be lists of numbers, one more than there are ranks")
    if shape != (int(rows[-1]), int(cols[-1])):
        raise ValueError(f"from_rows: shape is {shape}, but the offsets end at {int(rows[-1])} and {int(cols[-1])}")
    if values.dim() not in (1, 2) or len(values) != len(columns):
        raise ValueError(f"from_rows: values has shape {tuple(values.shape)} but there are {len(columns)} columns")


def _own_keys(name: str, keys: Tensor | None, offsets: Tensor, rank: int, group: str) -> Tensor:
    """The original numbers of what this rank owns."""
    first, last = int(offsets[rank]), int(offsets[rank + 1])
    with one_for_all(group):
        if keys is None:
            return torch.arange(first, last)
        if keys.dim() != 1 or len(keys) != last - first or keys.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"from_rows: {name} must be {last - first} integers, not {tuple(keys.shape)} of {keys.dtype}"
            )
    return keys.to("cpu", torch.int64)


def scatter(
    A: SparseMatrix, mesh: Any = None, parts: Tensor | None = None, *, column_parts: Tensor | None = None
) -> DistributedMatrix:
    """This rank's rows of a matrix that every rank has: for tests and matrices that one process can hold.

    ``parts[i]`` is the rank that owns row i; without it, rank r gets the r-th of equal ranges. Columns of a square
    matrix, the rows of what it is multiplied with, are owned as its rows are; those of others by equal ranges, or as
    ``column_parts`` says. ``A.row_keys`` are the numbers of the own rows: ``X[A.col_keys]`` are this rank's rows of X.

    >>> A = gs.distributed.scatter(gs.poisson(3))
    >>> A.shape, A.local_shape
    ((3, 3), (3, 3))
    """
    group = group_name(mesh)
    rank, size = rank_and_size(group)
    with one_for_all(group, f"scatter: a matrix of {tuple(A.shape)}"):
        check_matrix("scatter", "A", A)
        owners = _owners("parts", parts, A.shape[0], size)
        same = A.shape[0] == A.shape[1] and column_parts is None
        column_owners = owners if same else _owners("column_parts", column_parts, A.shape[1], size)
    entries, indptr, columns, offsets, keys = _ops.distributed_part(
        A.indptr, A.indices, owners, column_owners, size, rank
    )
    return from_rows(
        indptr,
        columns,
        A.values.index_select(0, entries),
        offsets[0],
        A.shape,
        mesh,
        keys=keys[0],
        column_offsets=None if same else offsets[1],
        column_keys=None if same else keys[1],
    )


def _owners(name: str, parts: Tensor | None, n: int, size: int) -> Tensor:
    if parts is None:
        return torch.arange(n) * size // max(n, 1)
    if parts.dim() != 1 or len(parts) != n or parts.is_floating_point():
        raise ValueError(f"scatter: {name} must be {n} integers, not {tuple(parts.shape)} of {parts.dtype}")
    if n and (int(parts.min()) < 0 or int(parts.max()) >= size):
        ranks = f"from {int(parts.min())} to {int(parts.max())}"
        raise ValueError(f"scatter: {name} names ranks {ranks}, but there are {size}")
    return parts.to("cpu", torch.int64)
