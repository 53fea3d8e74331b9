# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.studies.least_squares: linalg.lstsq beside SciPy's lsmr.

The matrix holds weighted differences along the edges of a grid, with 0.1 I below. "cold": with the patterns. SciPy's
lsmr goes to 1e-10, in float32 to 1e-5.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from scipy.sparse.linalg import lsmr

import gossamer as gs

from .solvers.settings import each_setting, parser, seconds, timed

SIDES = (100, 200, 300)


def differences(side: int, dtype: torch.dtype, below: float = 0.1) -> gs.SparseMatrix:
    n = side * side
    cell = torch.arange(n).view(side, side)
    a = torch.cat([cell[:, :-1].flatten(), cell[:-1].flatten()])
    b = torch.cat([cell[:, 1:].flatten(), cell[1:].flatten()])
    weight = 0.5 + torch.rand(len(a), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    edge, last = torch.arange(len(a)), len(a) + torch.arange(n)
    values = torch.cat([-weight, weight, torch.full((n,), below, dtype=torch.float64)])
    places = torch.cat([edge, edge, last]), torch.cat([a, b, cell.flatten()])
    return gs.from_coo(*places, values.to(dtype), (len(a) + n, n))


def row(side: int, dtype: torch.dtype) -> str:
    A = differences(side, dtype)
    b = torch.randn(A.shape[0], dtype=dtype, generator=torch.Generator().manual_seed(1))
    S, leaf = A.to_scipy(), A.detach().requires_grad_()
    rtol = 1e-10 if dtype is torch.float64 else 1e-5
    peer_seconds, found = timed(lambda: lsmr(S, b.numpy(), atol=rtol, btol=rtol, maxiter=5000), 1)
    peer, x = torch.from_numpy(found[0]), gs.linalg.lstsq(A, b)
    ours = (
        lambda: gs.linalg.lstsq(differences(side, dtype), b),
        lambda: gs.linalg.lstsq(A, b),
        lambda: gs.linalg.lstsq(leaf, b).square().sum().backward(),
    )
    apart = ((x - peer).abs().max() / x.abs().max()).item()
    cells = [
        f"{A.shape[0]} x {A.shape[1]}",
        *(f"{seconds(f):.3f}" for f in ours),
        f"{peer_seconds:.3f}",
        f"{apart:.0e}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser("least_squares", __doc__).parse_args(arguments)
    for dtype in each_setting(options):
        print("| m x n | cold | lstsq | with gradients | SciPy lsmr | difference |\n|---|---|---|---|---|---|")
        for side in SIDES:
            print(row(side, dtype), flush=True)


if __name__ == "__main__":
    main()
