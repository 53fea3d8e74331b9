# SPDX-License-Identifier: BSD-3-Clause
"""Iterative solves. The symmetric methods get A Aᵀ, which stays positive definite whatever the judge does to A."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case


def tolerance(b: Tensor) -> float:
    return 1e-14 if b.dtype is torch.float64 else 1e-6


def by(method: str, symmetric: bool) -> Callable[..., Tensor]:
    def op(gs: Any, A: Any, b: Tensor) -> Tensor:
        solve, matrix = getattr(gs.linalg, method), A @ A.T if symmetric else A
        x: Tensor = solve(matrix, b, rtol=tolerance(b))[0]
        return x

    return op


def raw(method: str, symmetric: bool) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    def of(A: gs.SparseMatrix, b: Tensor) -> tuple[Any, tuple[Any, ...]]:
        matrix = A @ A.T if symmetric else A
        how = method, 1e-14, 0.0, 100, 30, 0.0, True, 1e-14
        args = (
            matrix.pattern.tensors(True),
            matrix.values.detach(),
            b,
            None,
            None,
            list(matrix.shape),
            *how,
            False,
            False,
        )
        return torch.ops.gossamer.krylov_solve.default, args

    return of


def row(method: str, symmetric: bool, *columns: int) -> Case:
    return Case(
        method,
        by(method, symmetric),
        lambda A, b: torch.linalg.solve(A @ A.T if symmetric else A, b),
        lambda make: (make.dominant(make.m), make.dense(make.m, *columns)),
        raw(method, symmetric),
        poisons=(),  # they raise ConvergenceError
        sized_by_data=symmetric,
    )


CASES = [
    row("cg", True),
    row("minres", True, 3),
    row("gmres", False),
    row("bicgstab", False, 2),
    row("lsmr", False),
]
