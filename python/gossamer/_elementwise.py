# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the values that keep zero, so that the pattern stays: f(0) = 0 for what is not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gossamer._values import PatternValues

if TYPE_CHECKING:
    from typing import Self


class Elementwise(PatternValues):
    """abs, map, conj, real, imag, scale_rows, scale_cols. Cost: O(nnz H) each."""

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

    def conj(self) -> Self:
        """The complex conjugate of each entry; itself if it is real."""
        return self._trusted(self.pattern, self.values.conj())

    @property
    def real(self) -> Self:
        return self._trusted(self.pattern, self.values.real)

    @property
    def imag(self) -> Self:
        """The imaginary part of each entry: of real ones, zeros."""
        values = self.values
        return self._trusted(self.pattern, values.imag if values.is_complex() else torch.zeros_like(values))

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
