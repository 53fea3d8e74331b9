# SPDX-License-Identifier: BSD-3-Clause
"""Matrices beside their dense twins: the same numbers, the same graph of derivatives, in torch's dense tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import gossamer as gs

Map = Callable[[Tensor], Tensor]
TOLERANCE = 1e-9  # of float64, after tens of steps; matrices grow by products, so it is relative to the largest number


@dataclass(eq=False)
class Base:
    """Values that a matrix owns: the leaf of its graph, and the leaf of the twin's."""

    values: Tensor  # (nnz,), where the matrix is
    dense: Tensor  # (rows, cols), on the host
    mask: Tensor  # where entries are stored
    changes: int = 0

    def change(self, numbers: Tensor) -> None:
        """Other numbers in place, in both leaves; `numbers` are dense."""
        with torch.no_grad():
            self.values.copy_(numbers[self.mask].to(self.values.device))
            self.dense.copy_(numbers * self.mask)
        self.changes += 1


@dataclass(eq=False)
class Held:
    """A matrix in use. What shares the memory of a base is a view of it; everything else has a twin of its own."""

    matrix: gs.SparseMatrix
    mask: Tensor
    base: Base | None = None
    view: Map | None = None
    twin: Tensor | None = None
    bases: frozenset[Base] = frozenset()  # whatever its numbers were computed from
    born: int = 0  # how often these had been changed then
    solvable: bool = False  # its diagonal outweighs its rows

    def dense(self) -> Tensor:
        if self.twin is not None:
            return self.twin
        assert self.base is not None
        assert self.view is not None
        return self.view(self.base.dense)

    def stale(self) -> bool:
        """Whether numbers that its derivative needs have been changed: torch refuses then, or is right."""
        return self.twin is not None and changes_of(self.bases) != self.born

    def settle(self) -> None:
        """A transpose that somebody has asked for its values has its own from then on, and sees no change."""
        if (
            self.twin is None
            and isinstance(self.matrix, gs._sparse_matrix.Transposed)
            and self.matrix._original is None
        ):
            self.twin, self.born = self.dense().clone(), changes_of(self.bases)


def changes_of(bases: frozenset[Base]) -> int:
    return sum(base.changes for base in bases)


def leaf(matrix: gs.SparseMatrix, dense: Tensor, mask: Tensor, solvable: bool = False) -> Held:
    """A matrix whose values are nobody else's, as the base of a new twin."""
    twin = dense.detach().clone().requires_grad_(matrix.requires_grad)
    base = Base(matrix.values, twin, mask)
    return Held(matrix, mask, base, lambda d: d, None, frozenset([base]), 0, solvable)


def derived(matrix: gs.SparseMatrix, twin: Tensor, mask: Tensor, *parents: Held) -> Held:
    """What an op has computed from others."""
    bases = frozenset(base for parent in parents for base in parent.bases)
    # What comes of something stale is stale: it can never have been born at this time.
    born = -1 if any(parent.stale() for parent in parents) else changes_of(bases)
    return Held(matrix, mask, None, None, twin, bases, born)


def viewed(matrix: gs.SparseMatrix, parent: Held, f: Map) -> Held:
    """What shares the values of another, or was made of its twin."""
    parent.settle()
    if parent.twin is not None:
        return derived(matrix, f(parent.twin), f(parent.mask), parent)
    view = parent.view
    assert view is not None
    held = Held(matrix, f(parent.mask), parent.base, lambda d: f(view(d)), None, parent.bases)
    held.solvable = parent.solvable
    return held


def close(got: Tensor, wanted: Tensor, what: str) -> None:
    got, wanted = got.detach().cpu(), wanted.detach()
    assert got.shape == wanted.shape, f"{what}: {tuple(got.shape)}, the twin has {tuple(wanted.shape)}"
    size = 1 + (float(wanted.abs().max()) if wanted.numel() else 0.0)
    error = float((got - wanted).abs().max()) if wanted.numel() else 0.0
    assert error <= TOLERANCE * size, f"{what}: {error:.1e} from the twin's {size:.1e}"


def compare(held: Held, what: str) -> None:
    """Shape, entries and numbers. A transpose that has no arrays yet is looked at by a product, and stays so."""
    A, dense = held.matrix, held.dense()
    assert A.shape == tuple(dense.shape), f"{what}: shape {A.shape}"
    if A._original is not None:
        one = torch.eye(A.shape[1], dtype=torch.float64, device=A.device)
        close(A @ one, dense, what)
        return
    close(A.to_dense(), dense, what)
    assert A.values.requires_grad == dense.requires_grad, f"{what}: one of matrix and twin is differentiated"
    stored = A.with_values(torch.ones(A.nnz, dtype=torch.float64, device=A.device)).to_dense().cpu() != 0
    assert torch.equal(stored, held.mask), f"{what}: other entries are stored than in the twin"


def operand(rows: int, *more: int, like: gs.SparseMatrix) -> tuple[Tensor, Tensor]:
    """A dense operand where the matrix is, and the same on the host."""
    generator = torch.Generator().manual_seed(rows + 17 * sum(more))
    X = torch.randn(rows, *more, dtype=torch.float64, generator=generator)
    return X.to(like.device), X


def losses(held: Held, which: int) -> tuple[Tensor, Tensor]:
    """A number that depends on all entries, of the matrix and of the twin; each way takes other ops."""
    A, D = held.matrix, held.dense()
    m, n = A.shape
    scale = 1 / (1 + float(D.detach().abs().max())) if D.numel() else 1.0
    X, x = operand(n, 3, like=A)
    W, w = operand(m, n, like=A)
    if which == 0:
        return (A @ X * scale).sin().sum(), (D @ x * scale).sin().sum()
    if which == 1:
        return (A * W).sum(), (D * w).sum()
    if which == 2:
        return (A.sum(0) * scale).sin().sum(), (D.sum(0) * scale).sin().sum()
    if which == 3:
        rows, cols = torch.arange(m) % 3, torch.arange(m) % n
        return A[rows.to(A.device), cols.to(A.device)].sum() * scale, D[rows, cols].sum() * scale
    if which == 4:
        Y, y = operand(2, m, like=A)
        return (Y @ A * scale).cos().sum(), (y @ D * scale).cos().sum()
    return A.diagonal().sum() + A.T.tril().sum() * scale, D.diagonal().sum() + D.T.tril().sum() * scale
