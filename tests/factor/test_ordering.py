# SPDX-License-Identifier: BSD-3-Clause
"""The order of elimination of our own Cholesky factor: nested dissection where a library has it and much fills in."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys

import pytest
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu

import gossamer as gs

f64 = torch.float64
HAS_DISSECTION = "pardiso " in torch.ops.gossamer.show_config() or bool(ctypes.util.find_library("metis"))
dissection = pytest.mark.skipif(not HAS_DISSECTION, reason="neither PARDISO (pip install mkl) nor libmetis is here")


def entries(A: gs.SparseMatrix, perm: torch.Tensor) -> int:
    """Of the factor, by eliminating sets of rows."""
    rank = torch.empty_like(perm)
    rank[perm] = torch.arange(len(perm))
    below: list[set[int]] = [set() for _ in perm]
    for i, j in zip(rank[A.pattern.row_indices].tolist(), rank[A.indices.long()].tolist(), strict=True):
        if i > j:
            below[j].add(i)
    for rows in below:
        if rows:
            parent = min(rows)
            below[parent] |= rows - {parent}
    return len(perm) + sum(map(len, below))


@pytest.mark.parametrize("grid", [(24, 24), (8, 8, 8)])
def test_any_order_gives_the_factor(grid: tuple[int, ...]) -> None:
    A = gs.poisson(grid, dtype=f64)
    L, perm = gs.linalg.cholesky(A)
    assert entries(A, perm) == L.nnz


@dissection
def test_a_block_is_dissected() -> None:
    """A grid of 20³ with 27 neighbours: far fewer entries than SuperLU's minimum degree makes."""
    line = sp.diags_array([-1.0, 3.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20))
    S = (sp.kron(sp.kron(line, line), line) + 20 * sp.eye_array(20**3)).tocsc()
    minimum_degree = splu(S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    A = gs.from_scipy(S.tocsr())
    L, perm = gs.linalg.cholesky(A)
    assert L.nnz < 0.9 * minimum_degree.L.nnz
    x = torch.linspace(0, 1, 20**3, dtype=f64)
    torch.testing.assert_close(L @ (L.T @ x[perm]), (A @ x)[perm])


def test_the_order_is_the_same_every_time() -> None:
    """In this process and another one, with other threads."""
    program = (
        "import torch, gossamer as gs; torch.set_num_threads(3); "
        "print(gs.linalg.cholesky(gs.poisson((24, 24, 24), dtype=torch.float64)).perm.tolist())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    for _ in range(2):
        assert str(gs.linalg.cholesky(gs.poisson((24, 24, 24), dtype=f64)).perm.tolist()) == out.stdout.strip()
