# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.studies.least_squares: linalg.lstsq beside SciPy's lsmr, in CPU seconds of one thread.

The matrix holds weighted differences along the edges of a grid, with 0.1 I below. "cold": with the patterns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from scipy.sparse.linalg import lsmr

import gossamer as gs

SIDES = (100, 200, 300)


def seconds(f: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def differences(side: int, below: float = 0.1) -> gs.SparseMatrix:
    n = side * side
    cell = torch.arange(n).view(side, side)
    a = torch.cat([cell[:, :-1].flatten(), cell[:-1].flatten()])
    b = torch.cat([cell[:, 1:].flatten(), cell[1:].flatten()])
    weight = 0.5 + torch.rand(len(a), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    edge, last = torch.arange(len(a)), len(a) + torch.arange(n)
    values = torch.cat([-weight, weight, torch.full((n,), below, dtype=torch.float64)])
    return gs.from_coo(torch.cat([edge, edge, last]), torch.cat([a, b, cell.flatten()]), values, (len(a) + n, n))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.least_squares", description=__doc__)
    parser.parse_args(arguments)
    torch.set_num_threads(1)
    print("| m x n | cold | lstsq | with gradients | SciPy lsmr, 1e-10 | difference |\n|---|---|---|---|---|---|")
    for side in SIDES:
        A = differences(side)
        b = torch.randn(A.shape[0], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        S, leaf = A.to_scipy(), A.detach().requires_grad_()

        def cold(side: int = side, b: torch.Tensor = b) -> None:
            gs.linalg.lstsq(differences(side), b)

        def warm(A: gs.SparseMatrix = A, b: torch.Tensor = b) -> torch.Tensor:
            return gs.linalg.lstsq(A, b)

        def gradients(A: gs.SparseMatrix = leaf, b: torch.Tensor = b) -> None:
            gs.linalg.lstsq(A, b).square().sum().backward()

        start = time.process_time()
        peer = lsmr(S, b.numpy(), atol=1e-10, btol=1e-10, maxiter=5000)[0]
        peer_seconds = time.process_time() - start
        apart = (warm() - torch.from_numpy(peer)).abs().max() / warm().abs().max()
        ours = " | ".join(f"{seconds(f):.3f}" for f in (cold, warm, gradients))
        print(f"| {A.shape[0]} x {A.shape[1]} | {ours} | {peer_seconds:.3f} | {apart.item():.0e} |", flush=True)


if __name__ == "__main__":
    main()
