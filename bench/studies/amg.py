# SPDX-License-Identifier: BSD-3-Clause
"""Multigrid beside PyAMG: set-up cold and for new values, solve by CG to 1e-8, iterations; and a solve with gradients.

Poisson's equation, both in one process: the smallest of a few runs. In float32 to 1e-5.

    python -m bench.studies.amg --grids 300x300 1000x1000 40x40x40 100x100x100
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import gossamer as gs

from .solvers.settings import each_setting, parser, timed


def tolerance(b: Tensor) -> float:
    return 1e-8 if b.dtype is torch.float64 else 1e-5


def cg(A: gs.SparseMatrix, b: Tensor, M: Any) -> tuple[Tensor, int]:
    """Preconditioned conjugate gradients from 0: x, and the number of steps."""
    x, r, z = torch.zeros_like(b), b.clone(), M(b)
    p, rz, least, steps = z.clone(), torch.dot(r, z), tolerance(b) * b.norm(), 0
    while r.norm() > least and steps < 1000:
        q = A @ p
        alpha = (rz / torch.dot(p, q)).item()
        x.add_(p, alpha=alpha)
        r.sub_(q, alpha=alpha)
        z = M(r)
        rz, before = torch.dot(r, z), rz
        p.mul_(rz / before).add_(z)
        steps += 1
    return x, steps


def ours(A: gs.SparseMatrix, b: Tensor) -> str:
    fresh = [gs.SparseMatrix(A.indptr.clone(), A.indices.clone(), A.values, A.shape) for _ in range(2)]
    with torch.no_grad():
        cold, M = timed(lambda: gs.linalg.amg(fresh.pop()), 2)
        again, _ = timed(lambda: M.update(A))
        solve, (_, steps) = timed(lambda: cg(A, b, M))
    return f"{cold:6.3f} {again:6.3f} {solve:6.3f} ({steps:2d})"


def pyamgs(grid: tuple[int, ...], b: Tensor) -> str:
    import pyamg  # type: ignore[import-untyped]

    A = pyamg.gallery.poisson(grid, format="csr").astype(b.numpy().dtype)
    cold, hierarchy = timed(lambda: pyamg.smoothed_aggregation_solver(A), 2)
    residuals: list[float] = []

    def run() -> None:
        residuals.clear()
        hierarchy.solve(b.numpy(), tol=tolerance(b), accel="cg", residuals=residuals)

    solve, _ = timed(run, 2)
    return f"{cold:6.3f}      – {solve:6.3f} ({len(residuals) - 1:2d})"


def with_gradients(A: gs.SparseMatrix, b: Tensor) -> tuple[float, float]:
    """x = A⁻¹ b for new values, and with the gradients of |x|² by one more solve: db = A⁻ᵀ g, dA = -db xᵀ."""
    M = gs.linalg.amg(A)

    def forward() -> Tensor:
        M.update(A)
        return cg(A, b, M)[0]

    def both() -> tuple[Tensor, gs.SparseMatrix]:
        x = forward()
        db, _ = cg(A, 2 * x, M.T)
        return db, gs.sddmm(A.pattern, -db, x)

    with torch.no_grad():
        both()
        return timed(forward)[0], timed(both)[0]


def main(arguments: Sequence[str] | None = None) -> None:
    made = parser("amg", __doc__)
    made.add_argument("--grids", nargs="+", default=["300x300", "40x40x40"], help="sides, such as 300x300")
    options = made.parse_args(arguments)
    warnings.simplefilter("ignore")
    for dtype in each_setting(options):
        print(f"{'':12s} ours: cold, new values, solve     PyAMG: cold, –, solve       forward, with gradients")
        for name in options.grids:
            grid = tuple(map(int, name.split("x")))
            A = gs.poisson(grid, dtype=dtype)
            b = torch.from_numpy(np.random.default_rng(0).standard_normal(A.shape[0])).to(dtype)
            for _ in range(3):
                A @ b  # the runs of the pattern are found by the second product
            one, two = with_gradients(A, b)
            print(f"{name:12s} {ours(A, b):30s}   {pyamgs(grid, b):30s} {one:6.3f} {two:6.3f}", flush=True)


if __name__ == "__main__":
    main()
