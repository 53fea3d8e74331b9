# SPDX-License-Identifier: BSD-3-Clause
"""Sparse times sparse."""

from __future__ import annotations

from typing import Any

import torch

import gossamer as gs

from .row import Case


def raw_spgemm(A: gs.SparseMatrix, B: gs.SparseMatrix) -> tuple[Any, tuple[Any, ...]]:
    C = A.pattern.product(B.pattern)
    left, right = (A.pattern.tensors(True), A.values, list(A.shape)), (B.pattern.tensors(True), B.values, list(B.shape))
    return torch.ops.gossamer.spgemm.default, (*left, *right, C.tensors(True), C.shape, 0)


CASES = [
    Case(
        "spgemm",
        lambda gs, A, B: gs.spgemm(A, B),
        lambda A, B: A @ B,
        lambda make: (make.matrix(make.m, make.n), make.matrix(make.n, make.m)),
        raw_spgemm,
    ),
    Case(
        "spgemm_masked",
        lambda gs, A, B, P: gs.spgemm(A, B, mask=P),
        lambda A, B, P: P * (A @ B),
        lambda make: (make.matrix(make.m, make.n), make.matrix(make.n, 6), make.pattern(make.m, 6)),
    ),
    Case(
        "spgemm_chain",  # the coarse matrix of multigrid
        lambda gs, P, A: gs.spgemm(gs.spgemm(P.T, A), P),
        lambda P, A: P.T @ A @ P,
        lambda make: (make.matrix(make.m, make.n), make.matrix(make.m, make.m)),
    ),
]
