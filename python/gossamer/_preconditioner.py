# SPDX-License-Identifier: BSD-3-Clause
"""Approximate inverses for iterative solvers. The work is done in C++."""

from __future__ import annotations

import torch
from torch import Tensor


class Preconditioner:
    """z = M r with M close to A⁻¹: an object to call, and its transpose ``M.T``.

    The result is differentiable in r and in the values M was made of, for those who learn it.
    """

    def __init__(self, handle: Tensor, transposed: bool = False) -> None:
        self._handle = handle
        self._transposed = transposed

    def __call__(self, r: Tensor) -> Tensor:
        return torch.ops.gossamer.precondition.default(self._handle, r, self._transposed)

    @property
    def T(self) -> Preconditioner:
        """Mᵀ, which the gradient of a solve needs."""
        return Preconditioner(self._handle, not self._transposed)
