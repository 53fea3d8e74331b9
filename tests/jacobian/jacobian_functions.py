# SPDX-License-Identifier: BSD-3-Clause
"""Functions whose Jacobians have a pattern that is known."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import gossamer as gs


def diffusion(side: int) -> Callable[..., Tensor]:
    """-div((1 + u²) grad u) + u³ - w on a grid, u = 0 outside: five entries a row."""

    def f(u: Tensor, w: Tensor | float = 1.0) -> Tensor:
        U = torch.nn.functional.pad(u.reshape(1, 1, side, side), (1, 1, 1, 1))[0, 0]
        inside, k = U[1:-1, 1:-1], 1 + U * U
        r = inside**3
        for rows, cols in ((0, 1), (2, 1), (1, 0), (1, 2)):
            place = slice(rows, rows + side), slice(cols, cols + side)
            r = r + 0.5 * (k[1:-1, 1:-1] + k[place]) * (inside - U[place])
        return r.reshape(-1) - w

    return f


def grid(side: int) -> gs.Pattern:
    return gs.poisson((side, side)).pattern


def differences(u: Tensor) -> Tensor:
    """(n,) → (n - 1,); half of its entries are 0 at u = 0."""
    return u[1:] ** 2 - u[:-1].sin()


def bidiagonal(m: int) -> gs.Pattern:
    i = torch.arange(m)
    return gs.from_coo(torch.cat([i, i]), torch.cat([i, i + 1]), torch.ones(2 * m), (m, m + 1)).pattern


def numbers(n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(n, dtype=dtype, generator=torch.Generator().manual_seed(seed))
