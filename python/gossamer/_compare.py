# SPDX-License-Identifier: BSD-3-Clause
"""Two matrices entry by entry, beyond sums and products: the larger, the smaller, quotients and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._operands import is_dense, with_dense
from gossamer._sums import check_alike
from gossamer._values import is_matrix, is_number

if TYPE_CHECKING:
    from gossamer._sparse_matrix import SparseMatrix

_ops = torch.ops.gossamer


def on_union(op: str, A: SparseMatrix, B: SparseMatrix, f: Callable[[Tensor, Tensor], Tensor]) -> SparseMatrix:
    """f of the entries of both, on the union of the patterns; f(0, 0) is 0."""
    check_alike(op, A, B)
    A.pattern.check_simple(op)
    B.pattern.check_simple(op)
    if A.pattern.equals(B.pattern):
        return A._trusted(A.pattern, f(A.values, B.values))
    union = A.pattern.merge(B.pattern)
    nnz = union.pattern.nnz
    a, b = _ops.place(A.values, union.at_A, nnz), _ops.place(B.values, union.at_B, nnz)
    return A._trusted(union.pattern, f(a, b))


def maximum(A: SparseMatrix, B: SparseMatrix | float) -> SparseMatrix:
    """The larger of each two entries, on the union of the patterns; or of each entry and a number that is not positive.

    Gradient: to the larger, to both by halves where they are equal, as in torch.

    >>> gs.maximum(gs.poisson(2), 0).to_dense()
    tensor([[2., 0.],
            [0., 2.]])
    """
    if is_matrix(B):
        return on_union("maximum", A, B, torch.maximum)
    return A._trusted(A.pattern, A.values.clamp(min=_bound("maximum", B, B <= 0)))


def minimum(A: SparseMatrix, B: SparseMatrix | float) -> SparseMatrix:
    """The smaller of each two entries, on the union of the patterns; or of each entry and a number that is not
    negative."""
    if is_matrix(B):
        return on_union("minimum", A, B, torch.minimum)
    return A._trusted(A.pattern, A.values.clamp(max=_bound("minimum", B, B >= 0)))


def _bound(op: str, B: float, keeps_zero: bool) -> float:
    if not is_number(B):
        raise TypeError(f"{op}: wants a SparseMatrix or a number, not {type(B).__name__}")
    if not keeps_zero:
        raise ValueError(f"{op}: with {B} the result would be dense: write torch.{op}(A.to_dense(), torch.tensor({B}))")
    return B


def quotient(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """A[i, j] / B[i, j] on A's pattern, every entry of which B must store."""
    check_alike("div", A, B)
    A.pattern.check_simple("div")
    B.pattern.check_simple("div")
    if A.pattern.equals(B.pattern):
        return A._trusted(A.pattern, A.values / B.values)
    both = A.pattern.merge(B.pattern, intersect=True)
    if missing := A.nnz - both.pattern.nnz:
        raise ValueError(f"div: A stores {missing} entries that B does not, which would be divided by 0")
    return A._trusted(A.pattern, A.values / _ops.pick(B.values, both.at_B))


def compare(f: Callable[[Any, Any], Any], A: SparseMatrix, B: Any) -> SparseMatrix | Tensor:
    """f of each two entries. Where f(0, 0) holds, and beside a dense B, that is a dense tensor; else a SparseMatrix of
    booleans, whose values are true where f holds."""
    if is_matrix(B):
        return f(A.to_dense(), B.to_dense()) if f(0, 0) else on_union(f.__name__, A, B, f)
    if is_number(B):
        return f(A.to_dense(), B) if f(0, B) else A._trusted(A.pattern, f(A.values, B))
    if not is_dense(B):
        return NotImplemented
    same, X = with_dense(A, B)
    return f(same.to_dense(), X)
