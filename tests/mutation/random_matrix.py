# SPDX-License-Identifier: BSD-3-Clause
"""The matrix that the tests of survivors are about: the same numbers every time."""

from __future__ import annotations

import torch

import gossamer as gs


def random_matrix(m: int, n: int, density: float = 0.1) -> gs.SparseMatrix:
    return gs.random(m, n, density, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
