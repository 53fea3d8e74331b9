# SPDX-License-Identifier: BSD-3-Clause
"""CG: time of an iteration beside SciPy, columns together and one by one, errors of derivatives against dense torch.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m bench.studies.krylov

CPU time of one thread, the smaller of three runs. Without OPENBLAS_NUM_THREADS=1 SciPy's dot products wait for threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import scipy.sparse.linalg as sl
import torch
from torch import Tensor

import gossamer as gs

F64 = torch.float64
HOW: dict[str, Any] = {"rtol": 1e-30, "check": False}


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def iterations(side: int, count: int) -> None:
    A, b = gs.poisson((side, side), dtype=F64), torch.randn(side * side, dtype=F64)
    S, c = A.to_scipy(), b.numpy()
    ours = best(lambda: gs.linalg.cg(A, b, maxiter=count, **HOW)) / count * 1e6
    scipy = best(lambda: sl.cg(S, c, rtol=1e-30, maxiter=count)) / count * 1e6
    print(f"{side}²: {ours:.0f} us an iteration, SciPy {scipy:.0f}")


def columns(name: str, A: gs.SparseMatrix, count: int) -> None:
    for k in (2, 4, 16):
        b = torch.randn(A.shape[0], k, dtype=F64)
        parts = [b[:, c].contiguous() for c in range(k)]
        together = best(partial(gs.linalg.cg, A, b, maxiter=count, **HOW))
        single = sum(best(partial(gs.linalg.cg, A, part, maxiter=count, **HOW)) for part in parts)
        print(f"{name}, {k} columns: together {single / together:.2f} times as fast as one by one")


def errors() -> None:
    A = gs.poisson((20, 20), dtype=F64)
    A = A + 0.1 * gs.eye(400, dtype=F64)
    b, direction = torch.randn(400, dtype=F64), torch.randn(A.nnz, dtype=F64)
    at = A.pattern.row_indices, A.indices.long()

    def derivatives(solve: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        v = A.values.clone().requires_grad_()
        x = solve(v)
        (first,) = torch.autograd.grad((x**3).sum(), v, create_graph=True)
        return x, first, torch.autograd.grad((first * direction).sum(), v)[0]

    def by(solve: Callable[..., Any], v: Tensor) -> Tensor:
        x: Tensor = solve(A.with_values(v), b, rtol=1e-13)[0]
        return x

    dense = derivatives(lambda v: torch.linalg.solve(torch.zeros(400, 400, dtype=F64).index_put(at, v), b))
    for method in ("cg", "minres", "gmres", "bicgstab", "lsmr"):
        solve = getattr(gs.linalg, method)
        ours = derivatives(partial(by, solve))
        e = [((x - y).norm() / y.norm()).item() for x, y in zip(ours, dense, strict=True)]
        print(f"{method}: error of x {e[0]:.0e}, of the first derivative {e[1]:.0e}, of the second {e[2]:.0e}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.krylov", description=__doc__)
    parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for side, count in ((100, 300), (300, 200), (1000, 30)):
        iterations(side, count)
    columns("Poisson 100²", gs.poisson((100, 100), dtype=F64), 100)
    columns("Poisson 300²", gs.poisson((300, 300), dtype=F64), 50)
    R = gs.random(20000, 20000, density=5 / 20000, dtype=F64)
    columns("random, 20 000 rows of 11", R + R.T + 20 * gs.eye(20000, dtype=F64), 50)
    errors()


if __name__ == "__main__":
    main()
