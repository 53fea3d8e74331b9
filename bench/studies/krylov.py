# SPDX-License-Identifier: BSD-3-Clause
"""CG: time of an iteration beside SciPy, columns together and one by one, errors of derivatives against dense torch.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m bench.studies.krylov

The smallest of three runs. Without OPENBLAS_NUM_THREADS=1 SciPy's dot products wait for threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import scipy.sparse.linalg as sl
import torch
from torch import Tensor

import gossamer as gs

from .solvers.settings import each_setting, parser, seconds

HOW: dict[str, Any] = {"rtol": 1e-30, "check": False}


def iterations(side: int, count: int, dtype: torch.dtype) -> None:
    A, b = gs.poisson((side, side), dtype=dtype), torch.randn(side * side, dtype=dtype)
    S, c = A.to_scipy(), b.numpy()
    ours = seconds(lambda: gs.linalg.cg(A, b, maxiter=count, **HOW)) / count * 1e6
    scipy = seconds(lambda: sl.cg(S, c, rtol=1e-30, maxiter=count)) / count * 1e6
    print(f"{side}²: {ours:.0f} us an iteration, SciPy {scipy:.0f}")


def columns(name: str, A: gs.SparseMatrix, count: int) -> None:
    for k in (2, 4, 16):
        b = torch.randn(A.shape[0], k, dtype=A.dtype)
        parts = [b[:, c].contiguous() for c in range(k)]
        together = seconds(partial(gs.linalg.cg, A, b, maxiter=count, **HOW))
        single = sum(seconds(partial(gs.linalg.cg, A, part, maxiter=count, **HOW)) for part in parts)
        print(f"{name}, {k} columns: together {single / together:.2f} times as fast as one by one")


def errors(dtype: torch.dtype) -> None:
    A = gs.poisson((20, 20), dtype=dtype)
    A = A + 0.1 * gs.eye(400, dtype=dtype)
    b, direction = torch.randn(400, dtype=dtype), torch.randn(A.nnz, dtype=dtype)
    rtol = 1e-13 if dtype is torch.float64 else 1e-5
    at = A.pattern.row_indices, A.indices.long()

    def derivatives(solve: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        v = A.values.clone().requires_grad_()
        x = solve(v)
        (first,) = torch.autograd.grad((x**3).sum(), v, create_graph=True)
        return x, first, torch.autograd.grad((first * direction).sum(), v)[0]

    def by(solve: Callable[..., Any], v: Tensor) -> Tensor:
        x: Tensor = solve(A.with_values(v), b, rtol=rtol)[0]
        return x

    dense = derivatives(lambda v: torch.linalg.solve(torch.zeros(400, 400, dtype=dtype).index_put(at, v), b))
    for method in ("cg", "minres", "gmres", "bicgstab", "lsmr"):
        solve = getattr(gs.linalg, method)
        try:
            ours = derivatives(partial(by, solve))
        except gs.linalg.ConvergenceError as refused:  # float32 has too few digits for the normal equations
            print(f"{method}: {refused}")
            continue
        e = [((x - y).norm() / y.norm()).item() for x, y in zip(ours, dense, strict=True)]
        print(f"{method}: error of x {e[0]:.0e}, of the first derivative {e[1]:.0e}, of the second {e[2]:.0e}")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("krylov", __doc__).parse_args(arguments)
    for dtype in each_setting(options):
        for side, count in ((100, 300), (300, 200), (1000, 30)):
            iterations(side, count, dtype)
        columns("Poisson 100²", gs.poisson((100, 100), dtype=dtype), 100)
        columns("Poisson 300²", gs.poisson((300, 300), dtype=dtype), 50)
        R = gs.random(20000, 20000, density=5 / 20000, dtype=dtype)
        columns("random, 20 000 rows of 11", R + R.T + 20 * gs.eye(20000, dtype=dtype), 50)
        errors(dtype)


if __name__ == "__main__":
    main()
