# SPDX-License-Identifier: BSD-3-Clause
"""Least squares: the tall and the wide system of one nonsingular matrix with a damped part, so that every shape has a
solution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case


def dense(A: Tensor, b: Tensor, damp: float) -> Tensor:
    m, n = A.shape
    if m < n:
        return A.T @ torch.linalg.solve(A @ A.T + damp**2 * torch.eye(m, dtype=A.dtype), b)
    return torch.linalg.solve(A.T @ A + damp**2 * torch.eye(n, dtype=A.dtype), A.T @ b)


def raw(A: gs.SparseMatrix, b: Tensor) -> tuple[Any, tuple[Any, ...]]:
    N = gs.eye(A.shape[1], dtype=A.dtype, device=A.device) + A.T @ A
    handle = torch.ops.gossamer.gram_factor(N.pattern.analysis(), N.values.detach(), False)
    c = torch.zeros(A.shape[1], dtype=A.dtype, device=A.device)
    args = (handle, A.pattern.tensors(True), A.values, b, c, list(A.shape), 1.0, False)
    return torch.ops.gossamer.augmented_solve.default, args


CASES = [
    Case(
        "lstsq",
        lambda gs, A, b: gs.linalg.lstsq(A, b),
        lambda A, b: dense(A, b, 0.0),
        lambda make: (make.dominant(make.m), make.dense(make.m, 2)),
        poisons=(),
        sized_by_data=True,
    ),
    Case(
        "lstsq_damped",
        lambda gs, A, b: gs.linalg.lstsq(A, b, 1.0),
        lambda A, b: dense(A, b, 1.0),
        lambda make: (make.matrix(make.m, make.n), make.dense(make.m)),
        raw,
        poisons=(),
        sized_by_data=True,
    ),
]
