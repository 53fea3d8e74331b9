# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the values that keep zero, so that the pattern stays: f(0) = 0 for what is not stored."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._values import PatternValues

if TYPE_CHECKING:
    from typing_extensions import Self


class Elementwise(PatternValues):
    """-A, 2 * A, A / s, A ** p, abs, map, scale_rows, scale_cols. Cost: O(nnz H) each."""

    __array_ufunc__ = None  # so that numpy.float64(2) * A asks us

    def __neg__(self) -> Self:
        return self._trusted(self.pattern, -self.values)

    def __mul__(self, s: Any) -> Self:
        """A s for a number or a 0-dim tensor s; with heads also s of shape (H,). Differentiable in both.

        >>> s = torch.tensor(3.0, requires_grad=True)
        >>> (s * gs.eye(2)).to_dense()
        tensor([[3., 0.],
                [0., 3.]], grad_fn=<ViewBackward0>)
        """
        if isinstance(s, Tensor):
            return self._trusted(self.pattern, torch.ops.gossamer.times(self.values, s))
        return self._trusted(self.pattern, self.values * s) if _is_number(s) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, s: Any) -> Self:
        """A / s; for a tensor s it is A times 1 / s."""
        if isinstance(s, Tensor):
            return self._trusted(self.pattern, torch.ops.gossamer.divide(self.values, s))
        return self._trusted(self.pattern, self.values / s) if _is_number(s) else NotImplemented

    def __pow__(self, p: float) -> Self:
        """Each value to the power p > 0."""
        if not isinstance(p, Number):
            return NotImplemented
        if not p > 0:
            raise ValueError(f"pow: the exponent must be positive, not {p}: 0 ** p would not be 0")
        return self._trusted(self.pattern, self.values**p)

    def __abs__(self) -> Self:
        return self.abs()

    def abs(self) -> Self:
        """``|A|``, entry by entry; the gradient at a stored zero is 0."""
        return self._trusted(self.pattern, self.values.abs())

    def map(self, f: Callable[[Tensor], Tensor]) -> Self:
        """f of the values, in one call: tensor to tensor of the same length. Entries that are not stored stay zero.

        >>> gs.eye(2).map(torch.sinh).values
        tensor([1.1752, 1.1752])
        """
        values = f(self.values)
        if not isinstance(values, Tensor) or values.shape[:1] != self.values.shape[:1] or values.dim() > 2:
            got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"map: f must give values for {self.pattern.nnz} entries, not {got}")
        return self._trusted(self.pattern, values)

    def scale_rows(self, d: Tensor) -> Self:
        """diag(d) A: row i times d[i]. d is (m,), or (m, H), one vector a head.

        Gradient: dA = diag(d) G, dd = rowsum(A ∘ G).

        >>> gs.poisson(2).scale_rows(torch.tensor([1.0, 10.0])).to_dense()
        tensor([[  2.,  -1.],
                [-10.,  20.]])
        """
        return self._scaled(d, False)

    def scale_cols(self, d: Tensor) -> Self:
        """A diag(d): column j times d[j]. d is (n,), or (n, H), one vector a head.

        Gradient: dA = G diag(d), dd = colsum(A ∘ G).
        """
        return self._scaled(d, True)

    def _scaled(self, d: Tensor, cols: bool) -> Self:
        if not isinstance(d, Tensor):
            raise TypeError(f"scale_{'cols' if cols else 'rows'}: d must be a torch.Tensor, not {type(d).__name__}")
        P = self.pattern
        tensors = P.tensors_for(d) if cols else P.tensors()
        return self._trusted(P, torch.ops.gossamer.scale_axis(tensors, self.values, d, P.shape, cols))


def _is_number(s: Any) -> bool:
    return isinstance(s, Number)  # NumPy's are, too
