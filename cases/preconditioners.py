# SPDX-License-Identifier: BSD-3-Clause
"""Preconditioners, applied. The matrices are square whatever the kind: m x m."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .row import Case


def inputs(*columns: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda make: (make.dominant(make.m), make.dense(make.m, *columns))


def blocks(A: Tensor, size: int) -> Tensor:
    """The blocks on the diagonal alone."""
    block = torch.arange(len(A)) // size
    return A * (block[:, None] == block)


def incomplete(A: Tensor, r: Tensor) -> Tensor:
    """L U = A where A has entries, row by row as it stands in books; then U⁻¹ L⁻¹ r."""
    n, has, at = len(A), A.detach() != 0, torch.arange(len(A))
    rows: list[Tensor] = []
    for i in range(n):
        row = A[i]
        for k in range(i):
            if has[i, k]:
                factor = row[k] / rows[k][k]
                row = torch.where(at == k, factor, row - factor * rows[k] * (has[i] & (at > k)))
        rows.append(row)
    F = torch.stack(rows) if rows else A
    L = F.tril(-1) + torch.eye(n, dtype=F.dtype)
    return torch.linalg.solve(F.triu(), torch.linalg.solve(L, r))


def symmetric(A: Tensor) -> Tensor:
    return A.tril() + A.tril(-1).T


def row(name: str, op: Callable[..., Tensor], dense: Callable[..., Tensor], *columns: int) -> Case:
    return Case(name, op, dense, inputs(*columns), poisons=(), an_object=f"{name}(A)")


# IC(0) reads the lower triangle alone; M r of a symmetric matrix is the same by either factorisation.
CASES = [
    row("jacobi", lambda gs, A, r: gs.linalg.jacobi(A)(r), lambda A, r: (r.T / A.diagonal()).T, 2),
    row(
        "block_jacobi",
        lambda gs, A, r: gs.linalg.block_jacobi(A, 2)(r),
        lambda A, r: torch.linalg.solve(blocks(A, 2), r),
    ),
    row("ichol", lambda gs, A, r: gs.linalg.ichol(A)(r), lambda A, r: incomplete(symmetric(A), r), 3),
    row("ilu", lambda gs, A, r: gs.linalg.ilu(A)(r), incomplete),
    row("amg", lambda gs, A, r: gs.linalg.amg(A)(r), torch.linalg.solve),
]
