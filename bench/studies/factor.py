# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.studies.factor [--grids GRID ...]: what our Cholesky factor costs.

For Poisson grids, such as 300x300: a factorisation on a known pattern, the inverse on the pattern, the gradient of log
det, a second derivative of it (a Hessian times a vector), linalg.cholesky, its vjp, and a solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import gossamer as gs

from .solvers.settings import each_setting, parser, seconds

GRIDS = ("100x100", "300x300", "1000x1000", "30x30x30", "40x40x40")


def steps(A: gs.SparseMatrix) -> dict[str, Callable[[], object]]:
    """Each on values that require a gradient, with all symbolic work done."""
    values = A.values.clone().requires_grad_()
    leaf = A.with_values(values)
    factor = gs.linalg.factorize(leaf, "cholesky", "gossamer")
    direction = A.values.clone()
    L = gs.linalg.cholesky(leaf).L.values
    weights = torch.ones_like(L)

    def gradient(create_graph: bool = False) -> Tensor:
        made = gs.linalg.factorize(leaf, "cholesky", "gossamer")
        return torch.autograd.grad(made.logdet(), values, create_graph=create_graph)[0]

    def second() -> None:
        torch.autograd.grad(gradient(create_graph=True), values, direction)

    return {
        "factorisation": lambda: gs.linalg.factorize(A, "cholesky", "gossamer"),
        "and inverse on the pattern": lambda: gs.linalg.factorize(A, "cholesky", "gossamer").selected_inverse(),
        "and gradient of log det": gradient,
        "and second derivative": second,
        "cholesky": lambda: gs.linalg.cholesky(A),
        "its vjp": lambda: torch.autograd.grad(L, values, weights, retain_graph=True),
        "solve": lambda: factor.solve(direction[: A.shape[0]].detach()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    made = parser("factor", __doc__)
    made.add_argument("--grids", nargs="+", default=GRIDS, help="sides, such as 300x300")
    options = made.parse_args(arguments)
    for dtype in each_setting(options):
        for number, grid in enumerate(options.grids):
            each = steps(gs.poisson([int(side) for side in grid.split("x")], dtype=dtype))
            if number == 0:
                print(f"| Poisson | {' | '.join(each)} |\n|{'---|' * (len(each) + 1)}")
            print(f"| {grid} | {' | '.join(f'{seconds(f, 2):.3f}' for f in each.values())} |", flush=True)


if __name__ == "__main__":
    main()
