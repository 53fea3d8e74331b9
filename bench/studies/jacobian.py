# SPDX-License-Identifier: BSD-3-Clause
"""Sparse Jacobians beside torch's dense ones: python -m bench.studies.jacobian

f(u) = -div((1 + u²) grad u) + u³ - 1 on a grid of n unknowns, u = 0 outside: five entries a row. CPU seconds of one
thread, the smaller of a few runs; dense: torch.func.jacfwd, in the same process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import gossamer as gs
from gossamer._jacobian_pattern import colouring

DENSE = (32, 64)  # sides of the grids that are compared
LARGE = (300, 1000)
FOUND = 300  # of the grid whose pattern is looked for


def residual(side: int) -> Callable[[Tensor], Tensor]:
    def f(u: Tensor) -> Tensor:
        U = torch.nn.functional.pad(u.reshape(1, 1, side, side), (1, 1, 1, 1))[0, 0]
        inside, k = U[1:-1, 1:-1], 1 + U * U
        r = inside**3 - 1
        for row, col in ((0, 1), (2, 1), (1, 0), (1, 2)):
            next_ = slice(row, row + side), slice(col, col + side)
            r = r + 0.5 * (k[1:-1, 1:-1] + k[next_]) * (inside - U[next_])
        return r.reshape(-1)

    return f


def seconds(call: Callable[[], object], runs: int = 3) -> float:
    call()
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.jacobian", description=__doc__)
    parser.parse_args(arguments)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    for side in DENSE + LARGE:
        f, P = residual(side), gs.poisson((side, side)).pattern
        u = torch.randn(side * side, dtype=torch.float64, generator=generator)
        P.transpose()
        start = time.process_time()
        colours = colouring(P, "forward").colours
        line = f"n = {side * side}: {colours} colours in {1e3 * (time.process_time() - start):.1f} ms"
        checked, plain = gs.jacobian(f, P), gs.jacobian(f, P, check=False)
        mine = seconds(lambda J=checked, u=u: J(u))  # type: ignore[misc]
        line += f", f {1e3 * seconds(lambda f=f, u=u: f(u)):.2f} ms, Jacobian {1e3 * mine:.1f} ms"  # type: ignore[misc]
        line += f" ({1e3 * seconds(lambda J=plain, u=u: J(u)):.1f} unchecked)"  # type: ignore[misc]
        if side in DENSE:
            dense = seconds(lambda f=f, u=u: torch.func.jacfwd(f)(u), 1)  # type: ignore[misc]
            same = torch.equal(checked(u).to_dense(), torch.func.jacfwd(f)(u))
            line += f", dense {1e3 * dense:.0f} ms: {dense / mine:.0f} times; equal bits: {same}"
        if side == FOUND:
            found = seconds(lambda f=f, u=u: gs.jacobian_pattern(f, u), 1)  # type: ignore[misc]
            line += f"; pattern found in {found:.2f} s, right: {gs.jacobian_pattern(f, u) == P}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
