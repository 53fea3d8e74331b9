# SPDX-License-Identifier: BSD-3-Clause
"""Sparse Jacobians beside torch's dense ones: python -m bench.studies.jacobian

f(u) = -div((1 + u²) grad u) + u³ - 1 on a grid of n unknowns, u = 0 outside: five entries a row. The smallest
of a few runs; dense: torch.func.jacfwd, in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import gossamer as gs
from gossamer._jacobian_pattern import colouring

from .solvers.settings import each_setting, parser, seconds, timed

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


def line(side: int, dtype: torch.dtype) -> str:
    f, P = residual(side), gs.poisson((side, side)).pattern
    u = torch.randn(side * side, dtype=dtype, generator=torch.Generator().manual_seed(side))
    P.transpose()
    colour_time, colours = timed(lambda: colouring(P, "forward").colours, 1)
    checked, plain = gs.jacobian(f, P), gs.jacobian(f, P, check=False)
    mine = seconds(lambda: checked(u), 4)  # the first call is the slowest
    text = (
        f"n = {side * side}: {colours} colours in {1e3 * colour_time:.1f} ms, f {1e3 * seconds(lambda: f(u)):.2f} ms, "
    )
    text += f"Jacobian {1e3 * mine:.1f} ms ({1e3 * seconds(lambda: plain(u), 4):.1f} unchecked)"
    if side in DENSE:
        dense, J = timed(lambda: torch.func.jacfwd(f)(u), 2)
        same = torch.equal(checked(u).to_dense(), J)
        text += f", dense {1e3 * dense:.0f} ms: {dense / mine:.0f} times; equal bits: {same}"
    if side == FOUND:
        found, pattern = timed(lambda: gs.jacobian_pattern(f, u), 2)
        text += f"; pattern found in {found:.2f} s, right: {pattern == P}"
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("jacobian", __doc__).parse_args(arguments)
    for dtype in each_setting(options):
        for side in DENSE + LARGE:
            print(line(side, dtype), flush=True)


if __name__ == "__main__":
    main()
