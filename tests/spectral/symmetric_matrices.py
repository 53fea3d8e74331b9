# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric matrices, what dense mathematics says of them, and losses that no sign changes."""

from __future__ import annotations

import torch
from torch import Tensor

import gossamer as gs

f64 = torch.float64


def random_symmetric(n: int, seed: int, density: float = 0.1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    D = torch.randn(n, n, generator=generator, dtype=f64)
    D = D * (torch.rand(n, n, generator=generator) < density)
    return D + D.T + torch.diag(torch.randn(n, generator=generator, dtype=f64))


def mass_like(n: int, seed: int) -> Tensor:
    """Diagonally dominant, with a pattern of its own."""
    D = random_symmetric(n, seed, 0.05).abs()
    return D + torch.diag(D.sum(1) + 1)


def chosen(values: Tensor, k: int, which: str, sigma: float | None) -> Tensor:
    """The places of those that eigsh wants, of all values."""
    theta = values if sigma is None else 1 / (values - sigma)
    if which == "BE":
        order = theta.argsort()
        return torch.cat([order[: k // 2], order[len(order) - (k - k // 2) :]]).sort().values
    rank = {"LM": theta.abs(), "SM": -theta.abs(), "LA": theta, "SA": -theta}[which]
    return rank.argsort(descending=True)[:k].sort().values


class Symmetric:
    """Symmetric matrices on one pattern as functions of values, which need not be symmetric."""

    def __init__(self, dense: Tensor) -> None:
        self.A = gs.from_dense(dense)
        self.perm = self.A.pattern.transpose()[2].long()

    def __call__(self, values: Tensor) -> gs.SparseMatrix:
        return self.A.with_values((values + values[self.perm]) / 2)

    @property
    def values(self) -> Tensor:
        return self.A.values.clone().requires_grad_()


def dense_pairs(A: Tensor, M: Tensor | None, k: int, which: str, sigma: float | None) -> tuple[Tensor, Tensor]:
    inverse = None if M is None else torch.linalg.inv(torch.linalg.cholesky(M))
    values, X = torch.linalg.eigh(A if inverse is None else inverse @ A @ inverse.T)
    at = chosen(values.detach(), k, which, sigma)
    return values[at], (X if inverse is None else inverse.T @ X)[:, at]


def weighted(values: Tensor, X: Tensor) -> Tensor:
    """A loss that no sign changes."""
    w = torch.linspace(0.5, 1.5, len(X), dtype=X.dtype)[:, None]
    return (values**3).sum() + (w * X**4).sum() + (w * X * X.flip(0)).square().sum()


def projector_loss(X: Tensor) -> Tensor:
    """Of the space that X spans, whatever its basis."""
    generator = torch.Generator().manual_seed(7)
    return (torch.randn(len(X), len(X), dtype=f64, generator=generator) * (X @ X.T)).sum()


def gradient_of(A: gs.SparseMatrix) -> Tensor:
    assert A.grad is not None
    return A.grad.values
