# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that sum up a matrix: of each column (dim 0), of each row (dim 1), of all of it. With heads, one a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._values import PatternValues

if TYPE_CHECKING:
    from typing_extensions import Self

_ops = torch.ops.gossamer


class Reductions(PatternValues):
    """sum, mean, amax, norm and row_softmax. Cost: O(nnz H) each; dim 0 also needs the transposed pattern, once."""

    def sum(self, dim: int | None = None) -> Tensor:
        """Σ over rows (dim 0: one number a column), over columns (dim 1: one a row) or over everything.

        Gradient: dA = the gradient of each entry's sum.

        >>> gs.poisson(3).sum(1)
        tensor([1., 0., 1.])
        """
        return self._reduced(_ops.sum, dim)

    def mean(self, dim: int | None = None) -> Tensor:
        """The sum over the number of places, stored or not."""
        return self._reduced(_ops.mean, dim)

    def amax(self, dim: int | None = None) -> Tensor:
        """The largest number, entries that are not stored counting as zeros, as in SciPy.

        The gradient goes to the stored entry that is the largest, the first of several; where it is a zero that is not
        stored, nowhere. NaN counts as largest.

        >>> gs.from_dense(torch.tensor([[-1.0, 0.0], [-2.0, -3.0]])).amax(1)
        tensor([ 0., -2.])
        """
        self.pattern.check_simple("amax")
        return self._reduced(_ops.amax, dim)

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

    def _reduced(self, op: Any, dim: int | None) -> Tensor:
        return op(self.pattern.tensors(dim in (0, -2)), self.values, self.pattern.shape, dim)
