# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that sum up a matrix: of each column (dim 0), of each row (dim 1), of all of it. With heads, one a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._values import PatternValues

if TYPE_CHECKING:
    from typing import Self

_ops = torch.ops.gossamer


class Reductions(PatternValues):
    """sum, mean, the largest and the smallest, norm, softmax. Cost: O(nnz H) each; dim 0 also needs the transposed
    pattern, once. ``axis`` is another name of ``dim``, as in torch."""

    def sum(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """Σ over rows (dim 0: one number a column), over columns (dim 1: one a row) or over everything.

        Gradient: dA = the gradient of each entry's sum.

        >>> gs.poisson(3).sum(1)
        tensor([1., 0., 1.])
        """
        return self._reduced(_ops.sum, _one_of(dim, axis))

    def mean(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """The sum over the number of places, stored or not."""
        return self._reduced(_ops.mean, _one_of(dim, axis))

    def amax(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """The largest number, entries that are not stored counting as zeros, as in SciPy.

        The gradient goes to the stored entry that is the largest, the first of several; where it is a zero that is not
        stored, nowhere. NaN counts as largest.

        >>> gs.from_dense(torch.tensor([[-1.0, 0.0], [-2.0, -3.0]])).amax(1)
        tensor([ 0., -2.])
        """
        self.pattern.check_simple("amax")
        return self._reduced(_ops.extreme, _one_of(dim, axis), False, False)

    def amin(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """The smallest number, as ``amax`` is the largest. NaN counts as smallest."""
        self.pattern.check_simple("amin")
        return self._reduced(_ops.extreme, _one_of(dim, axis), True, False)

    max, min = amax, amin

    def argmax(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """The first place of ``amax``, stored or not: of each column its row (dim 0), of each row its column (dim 1),
        or row · n + column.

        >>> gs.poisson(3).argmax(1)
        tensor([0, 1, 2])
        """
        self.pattern.check_simple("argmax")
        return self._reduced(_ops.arg_extreme, _one_of(dim, axis), False)

    def argmin(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """The first place of ``amin``."""
        self.pattern.check_simple("argmin")
        return self._reduced(_ops.arg_extreme, _one_of(dim, axis), True)

    def count_nonzero(self, dim: int | None = None, *, axis: int | None = None) -> Tensor:
        """How many entries are not zero; ``A.nnz`` counts the stored ones."""
        self.pattern.check_simple("count_nonzero")
        return self._trusted(self.pattern, self.values != 0)._reduced(_ops.sum, _one_of(dim, axis))

    def smax(self, dim: int | None = None) -> Tensor:
        """The largest stored number, 0 where none is stored, as in DGL. Gradient: to the first of the largest.

        >>> gs.from_dense(torch.tensor([[-1.0, 0.0], [-2.0, -3.0]])).smax(1)
        tensor([-1., -2.])
        """
        return self._reduced(_ops.extreme, dim, False, True)

    def smin(self, dim: int | None = None) -> Tensor:
        """The smallest stored number, 0 where none is stored."""
        return self._reduced(_ops.extreme, dim, True, True)

    def smean(self, dim: int | None = None) -> Tensor:
        """The mean of the stored numbers, 0 where none is stored; ``mean`` counts all places."""
        return self._reduced(_ops.stored_mean, dim)

    def logsumexp(self, dim: int | None = None) -> Tensor:
        """log Σ exp(A[i, j]) over the stored entries, -∞ where none is stored; it never overflows.

        Gradient: dA = G times the softmax of the stored entries.
        """
        return self._reduced(_ops.logsumexp, dim)

    def norm(self) -> Tensor:
        """The Frobenius norm, √Σ A[i, j]². Its gradient is A / norm, and 0 at A = 0."""
        self.pattern.check_simple("norm")
        return _ops.norm(self.values)

    def row_softmax(self) -> Self:
        """The softmax of each row over its stored entries; an empty row stays empty.

        P[i, j] = exp(A[i, j]) / Σ_k exp(A[i, k]), k over the stored entries of row i; finite input never overflows.
        Gradient: dA = P ∘ (G − rowsum(P ∘ G)).

        >>> gs.eye(2, 3).row_softmax().to_dense()
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
        """
        P = self.pattern
        return self._trusted(P, _ops.row_softmax(P.tensors(), self.values, P.shape))

    def _reduced(self, op: Any, dim: int | None, *how: bool) -> Tensor:
        return op(self.pattern.tensors(dim in (0, -2)), self.values, self.pattern.shape, dim, *how)


def _one_of(dim: int | None, axis: int | None) -> int | None:
    if dim is not None and axis is not None:
        raise TypeError("dim and axis are two names of one argument: give one of them")
    return axis if dim is None else dim
