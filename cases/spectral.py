# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues and singular values, and what of the vectors does not depend on their signs: squares, and U S Vᵀ.

The matrices have 3 rows or more, for fewer have not so many values; eigsh gets A Aᵀ.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .row import Case


def matrix(make: Any) -> tuple[Any, ...]:
    return (make.dominant(max(make.m, 3)),)


def eigenvalues(gs: Any, A: Any) -> Tensor:
    values: Tensor = gs.linalg.eigsh(A @ A.T, 2)[0]
    return values


def squares(gs: Any, A: Any) -> Tensor:
    vectors: Tensor = gs.linalg.eigsh(A @ A.T, 1)[1]
    return vectors * vectors


def rank_one(gs: Any, A: Any) -> Tensor:
    U, S, Vh = gs.linalg.svds(A, 1)
    result: Tensor = U * S * Vh  # not @, whose gradient is a dense product of torch: that rounds by threads
    return result


def dense_rank_one(A: Tensor) -> Tensor:
    U, S, Vh = torch.linalg.svd(A)
    return U[:, :1] * S[:1] * Vh[:1]


CASES = [
    Case(
        "eigsh",
        eigenvalues,
        lambda A: torch.linalg.eigh(A @ A.T)[0][-2:],
        matrix,
        poisons=(),
        sized_by_data=True,
    ),
    Case(
        "eigsh_vectors",
        squares,
        lambda A: torch.linalg.eigh(A @ A.T)[1][:, -1:].square(),
        matrix,
        poisons=(),
        sized_by_data=True,
    ),
    Case("svds", rank_one, dense_rank_one, matrix, poisons=(), sized_by_data=True),
]
