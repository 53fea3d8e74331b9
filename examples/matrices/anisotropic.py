# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of anisotropic diffusion on a square, for learned_amg."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

import gossamer as gs

LOWER = ((0, 0), (0, -1), (-1, -1), (-1, 0), (-1, 1))  # a point, and its neighbours that are numbered before it


class Grid:
    """Bilinear elements on side × side inner points: what does not depend on C."""

    def __init__(self, side: int) -> None:
        self.side, n = side, side * side
        cell, corners = places(side + 1), torch.tensor(list(itertools.product((0, 1), repeat=2)))
        point = cell[:, None] + corners - 1
        number = torch.where(((point >= 0) & (point < side)).all(-1), point[..., 0] * side + point[..., 1], -1)
        rows, cols = torch.broadcast_tensors(number[:, :, None], number[:, None, :])
        self.inner = (rows >= 0) & (cols >= 0)
        rows, cols = rows[self.inner], cols[self.inner]
        self.pattern = gs.from_coo(rows, cols, torch.zeros(len(rows)), (n, n)).pattern
        entries = self.pattern.row_indices.long() * n + self.pattern.indices
        self.entry = torch.searchsorted(entries, rows * n + cols)

        place = places(side)
        self.neighbour = torch.full((n, len(LOWER)), self.pattern.nnz)  # where its entry stands, or behind the last
        for k, offset in enumerate(LOWER):
            there = place + torch.tensor(offset)
            exists = ((there >= 0) & (there < side)).all(1)
            number = there[exists, 0] * side + there[exists, 1]
            self.neighbour[exists, k] = torch.searchsorted(entries, exists.nonzero()[:, 0] * n + number)
        triangle = gs.SparseMatrix(self.pattern, torch.arange(float(self.pattern.nnz))).tril()
        self.row = triangle.pattern.row_indices.long()
        same = self.neighbour[self.row] == triangle.values.long()[:, None]
        self.kind = same.int().argmax(1)  # which of LOWER an entry of the triangle is

        coarse = -(-side // 3)
        aggregate = place[:, 0] // 3 * coarse + place[:, 1] // 3
        self.T = gs.from_coo(torch.arange(n), aggregate, torch.ones(n, dtype=torch.float64), (n, coarse * coarse))

    def matrix(self, epsilon: float, angle: float | Tensor) -> gs.SparseMatrix:
        """A for C = R(angle) diag(1, ε) R(angle)ᵀ, the angle one number, or one of each of (side + 1)² cells."""
        angle = torch.as_tensor(angle, dtype=torch.float64).expand((self.side + 1) ** 2)
        along = torch.stack([angle.sin(), angle.cos()], -1)  # places are (y, x)
        C = epsilon * torch.eye(2, dtype=torch.float64) + (1 - epsilon) * along[:, :, None] * along[:, None, :]
        K = torch.einsum("kij,aibj->kab", C, _slopes())
        values = torch.zeros(self.pattern.nnz, dtype=torch.float64).index_add(0, self.entry, K[self.inner])
        return gs.SparseMatrix(self.pattern, values)


def places(side: int) -> Tensor:
    return torch.cartesian_prod(torch.arange(side), torch.arange(side))


def _double(numbers: list[list[float]]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def _slopes() -> Tensor:
    """∫ ∂_i N_a ∂_j N_b over a unit cell, (4, 2, 4, 2)."""
    mass, slope = _double([[2, 1], [1, 2]]) / 6, _double([[1, -1], [-1, 1]])
    mixed = _double([[-0.5, -0.5], [0.5, 0.5]])  # ∫ N_a' N_b
    parts = {(0, 0): (slope, mass), (1, 1): (mass, slope), (0, 1): (mixed, mixed.T), (1, 0): (mixed.T, mixed)}
    result = torch.zeros(4, 2, 4, 2, dtype=torch.float64)
    for (i, j), (first, second) in parts.items():
        result[:, i, :, j] = torch.einsum("ac,bd->abcd", first, second).reshape(4, 4)
    return result
