# SPDX-License-Identifier: BSD-3-Clause
"""Gradients through solvers on real matrices: db solves Aᵀ db = g by SciPy's residual, and dA is -db xᵀ on the pattern;
or the solve, or that of the gradient, raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gossamer as gs
from bench.studies.solvers.real_matrices import NONSYMMETRIC, PRECONDITIONERS, REFUSALS, RTOL, SYMMETRIC, read

# Complex ones have no iterative solves; the other two are large.
MATRICES = [name for name in SYMMETRIC + NONSYMMETRIC if name not in {"mhd1280b", "young1c", "c-62", "NotreDame_www"}]
SOLVERS = ["solve", "cg amg", "minres jacobi", "gmres ilu", "bicgstab amg"]
SOLVED = {("494_bus", "cg amg"), ("bcsstk16", "minres jacobi"), ("sherman3", "gmres ilu"), ("memplus", "bicgstab amg")}
SOLVED |= {(name, "solve") for name in MATRICES if name not in {"USAir97", "bcspwr10", "mbeacxc"}}  # these are singular


def solution(A: gs.SparseMatrix, b: torch.Tensor, solver: str) -> torch.Tensor:
    if solver == "solve":
        return gs.linalg.solve(A, b)
    method, M = solver.split()
    return getattr(gs.linalg, method)(A, b, M=PRECONDITIONERS[M](A.detach()), rtol=RTOL, maxiter=300)[0]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("matrix", MATRICES)
def test_gradient_is_right_or_refused(data: Path, matrix: str, solver: str) -> None:
    if not (data / "matrices").exists():
        pytest.skip(f"no matrices in {data}")
    p = read(data / "matrices", matrix)
    A, b = p.A.requires_grad_(), p.b.requires_grad_()
    g = torch.arange(len(b), dtype=torch.float64).cos()
    try:
        x = solution(A, b, solver)
        x.backward(g)
    except REFUSALS:
        assert (matrix, solver) not in SOLVED
        return
    assert A.grad is not None
    assert b.grad is not None
    db, got = b.grad.numpy(), A.grad.values.numpy()
    residual = p.S.T @ db - g.numpy()
    if solver == "solve":
        assert np.abs(residual).max() <= 1e-12 * (abs(p.S).sum(0).max() * np.abs(db).max() + 1)
    else:
        assert np.linalg.norm(residual) <= 1.01 * RTOL * np.linalg.norm(g.numpy())
    wanted: Any = -db[A.pattern.row_indices.numpy()] * x.detach().numpy()[A.indices.numpy()]
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted).max())
