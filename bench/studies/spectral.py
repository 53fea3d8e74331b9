# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.studies.spectral: the six eigenvalues nearest to 0 of two grids, beside SciPy's eigsh.

In one process, the least of a few runs. Ours are with all that a gradient needs; then the
gradient of the values, of the vectors, and a second derivative of the vectors. SciPy has none of these. Set
OPENBLAS_NUM_THREADS=1 for SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import gossamer as gs

from .solvers.settings import each_setting, parser, timed

GRIDS = ((300, 301), (30, 31, 32))


def once(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its time."""
    time, result = timed(work, 1)
    return result, time


def measure(grid: tuple[int, ...], k: int, dtype: torch.dtype) -> dict[str, float]:
    """The time of each part, once, and how far the values are from SciPy's, relative to the largest."""
    from scipy.sparse.linalg import eigsh

    A = gs.poisson(grid, dtype=dtype)
    S = A.to_scipy().tocsc()
    found: dict[str, float] = {}
    (theirs, _), found["scipy"] = once(lambda: eigsh(S, k=k, sigma=0))
    A.pattern.analysis()
    _, found["factorize"] = once(lambda: gs.linalg.factorize(A))
    v = A.values.clone().requires_grad_()
    (values, X), found["eigsh"] = once(lambda: gs.linalg.eigsh(A.with_values(v), k, sigma=0))
    _, found["of values"] = once(lambda: torch.autograd.grad(values.sum(), v, retain_graph=True))
    loss = (X**4).sum()
    (gradient,), found["of vectors"] = once(lambda: torch.autograd.grad(loss, v, create_graph=True))
    _, found["second"] = once(lambda: torch.autograd.grad(gradient.square().sum(), v))
    found["difference"] = abs(values.detach().numpy() - theirs).max() / theirs.max()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser("spectral", __doc__)
    made.add_argument("--runs", type=int, default=3)
    made.add_argument("--grid", type=int, nargs="+", help="one grid instead of the two")
    options = made.parse_args(arguments)
    for dtype in each_setting(options):
        for grid in [tuple(options.grid)] if options.grid else GRIDS:
            runs = [measure(grid, 6, dtype) for _ in range(options.runs)]
            least = {name: min(run[name] for run in runs) for name in runs[0]}
            numbers = (f"{name} {number:.3g}" for name, number in least.items())
            print(" x ".join(map(str, grid)), *numbers, sep="  ", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
