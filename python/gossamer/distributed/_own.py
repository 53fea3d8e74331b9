# SPDX-License-Identifier: BSD-3-Clause
"""The block of a rank's own rows and columns, and preconditioners that each rank makes of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed._group import one_for_all
from gossamer.distributed._matrix import DistributedMatrix

Rest = ParamSpec("Rest")
Made = TypeVar("Made")


def own_block(A: DistributedMatrix) -> SparseMatrix:
    """Own rows and own columns, sorted: a matrix of this process alone. Gradients flow through its values."""
    if not torch.equal(A.offsets, A.column_offsets):
        raise NotImplementedError("rows and columns of this DistributedMatrix are owned by different ranks")
    P = A.pattern

    def find() -> tuple[Pattern, Tensor]:
        n = A.local_shape[0]
        rows, cols = P.row_indices, P.indices.long()
        kept = (cols < n).nonzero().flatten()
        kept = kept[torch.argsort(rows[kept] * n + cols[kept], stable=True)]
        indptr = torch.zeros(n + 1, dtype=P.indptr.dtype)
        indptr[1:] = torch.bincount(rows[kept], minlength=n).cumsum(0)
        return Pattern(indptr, P.indices[kept], (n, n)), kept

    pattern, places = P.keep("own block", find)
    return SparseMatrix._trusted(pattern, A.values.index_select(0, places))


def of_own_block(
    make: Callable[Concatenate[SparseMatrix, Rest], Made],
) -> Callable[Concatenate[SparseMatrix | DistributedMatrix, Rest], Made]:
    """make(A, …) of a DistributedMatrix is make(own block, …) on every rank; what one of them raises, all raise."""

    @functools.wraps(make)
    def made(A: SparseMatrix | DistributedMatrix, *rest: Rest.args, **named: Rest.kwargs) -> Made:
        if not isinstance(A, DistributedMatrix):
            return make(A, *rest, **named)
        error = None
        with one_for_all(A.group):
            try:
                result = make(own_block(A), *rest, **named)
            except torch.linalg.LinAlgError as found:  # type: ignore[attr-defined]
                error = found
        everyone_has_an_inverse(A.group, error)
        return result

    return made  # type: ignore[return-value]


def everyone_has_an_inverse(group: str, error: Exception | None) -> None:
    """Raises SingularMatrixError on all ranks if one has an error."""
    try:
        with one_for_all(group):
            if error is not None:
                raise ValueError(str(error))
    except ValueError as found:
        raise torch.linalg.LinAlgError(str(found)) from None  # type: ignore[attr-defined]
