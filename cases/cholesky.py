# SPDX-License-Identifier: BSD-3-Clause
"""The Cholesky factor. Its rows are permuted, so the row shows what does not depend on that: 2 Σ log L_ii = log det.

It is that of A Aᵀ, which stays positive definite whatever the judge does to A.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case


def logdet(gs: Any, A: Any) -> Tensor:
    return 2 * gs.linalg.cholesky(A @ A.T).L.diagonal().log().sum()


def raw(A: gs.SparseMatrix) -> tuple[Any, tuple[Any, ...]]:
    N = A @ A.T
    P = N.pattern
    plan, indptr, indices, _, at = torch.ops.gossamer.cholesky_pattern(P.analysis(), P.tensors(True), P.shape)
    return torch.ops.gossamer.cholesky.default, (plan, [indptr, indices], N.values.detach(), at)


CASES = [
    Case(
        "cholesky",
        logdet,
        lambda A: torch.linalg.slogdet(A @ A.T).logabsdet,
        lambda make: (make.dominant(make.m),),
        raw,
        poisons=(),
        sized_by_data=True,
    ),
]
