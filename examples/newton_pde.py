# SPDX-License-Identifier: BSD-3-Clause
"""A nonlinear equation by Newton's method with sparse Jacobians, and its parameters from measurements of the solution.

On the unit square, with u = 0 on its boundary, heat that conducts the better the hotter it is, with losses:

    F(u; p) = −∇·((1 + α u²) ∇u) + β u³ − s = 0,        p = (log α, log β)

Finite differences on N × N inner points, h = 1/(N + 1), with the mean of the conductivities between two points. Nobody
writes the Jacobian ∂F/∂u down: its pattern is found by probing F (`gs.jacobian_pattern`), its five diagonals by as many
products as there are colours (`gs.jacobian`), and Newton's method with a line search solves with its factors
(`gs.linalg.root`).

The solution is differentiable in p by the implicit function theorem, du = −J⁻¹ (∂F/∂p) dp, one solve with Jᵀ whatever
the number of iterations was. So p is recovered from noisy measurements d of the solution at some of the points, o, by
Gauss and Newton on the two unknowns, with the columns of ∂u/∂p from forward mode:

    min_p ½ ‖(u(o) − d) / σ‖²
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

import gossamer as gs
from report.section import run_from_command_line

TITLE = "Newton's method on a nonlinear equation"
SOURCE = "our own: coloured Jacobians (Curtis, Powell, Reid 1974) and the implicit function theorem"
QUICK: dict[str, Any] = {"side": 15, "steps": 6}
DEFAULT: dict[str, Any] = {"side": 63, "steps": 8}
FULL: dict[str, Any] = {"side": 255, "steps": 10}
TRUTH = (40.0, 300.0)  # α, β


@dataclass
class Result:
    solution: Tensor  # (N, N) u of the true parameters
    observed: Tensor  # (N, N) bool
    residuals: Tensor  # ‖F‖ after each iteration of Newton's method from u = 0
    colours: int
    entries: int  # of the Jacobian
    parameters: Tensor  # (steps + 1, 2) α and β of each step of the recovery
    misfit: Tensor  # (steps + 1,) mean ((u − d) / σ)²: 1 is the noise
    noise: float


class Equation:
    """F on side × side points, and what is known of its Jacobian."""

    def __init__(self, side: int) -> None:
        self.side, self.h = side, 1 / (side + 1)
        place = self.h * torch.arange(1, side + 1, dtype=torch.float64)
        y, x = torch.meshgrid(place, place, indexing="ij")
        self.source = (100 * torch.exp(-((x - 0.35) ** 2 + (y - 0.6) ** 2) / 0.02) + 10).flatten()
        start = torch.zeros(side * side, dtype=torch.float64)
        self.pattern = gs.jacobian_pattern(self, start, torch.zeros(2, dtype=torch.float64))

    def __call__(self, u: Tensor, p: Tensor) -> Tensor:
        """h² F(u; p)."""
        alpha, beta = p.exp()
        side = self.side
        U = torch.nn.functional.pad(u.reshape(1, 1, side, side), (1, 1, 1, 1))[0, 0]
        inside, k = U[1:-1, 1:-1], 1 + alpha * U * U
        F = self.h**2 * beta * inside**3
        for row, col in ((0, 1), (2, 1), (1, 0), (1, 2)):
            next_ = slice(row, row + side), slice(col, col + side)
            F = F + 0.5 * (k[1:-1, 1:-1] + k[next_]) * (inside - U[next_])
        return F.flatten() - self.h**2 * self.source

    def solve(self, p: Tensor, start: Tensor | None = None) -> Tensor:
        """u(p), differentiable in p."""
        u0 = torch.zeros_like(self.source) if start is None else start
        return gs.linalg.root(self, u0, (p,), self.pattern)[0]


def newton_history(equation: Equation, p: Tensor) -> Tensor:
    """‖F‖ after 0, 1, … iterations from u = 0: what `gs.linalg.root` does, written out."""
    u = torch.zeros_like(equation.source)
    jacobian = gs.jacobian(equation, equation.pattern)
    norms = [equation(u, p).norm()]
    while norms[-1] > 1e-10 * norms[0] and len(norms) < 50:
        step, length = gs.linalg.solve(jacobian(u, p), equation(u, p)), 1.0
        while equation(u - length * step, p).norm() > (1 - 1e-4 * length) * norms[-1] and length > 1e-6:
            length /= 2
        u = u - length * step
        norms.append(equation(u, p).norm())
    return torch.stack(norms)


def compute(
    *,
    side: int,
    steps: int,
    fraction: float = 0.1,
    noise: float = 0.01,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    generator = torch.Generator().manual_seed(seed)
    equation = Equation(side)
    truth = torch.tensor(TRUTH, dtype=torch.float64).log()
    u = equation.solve(truth)
    observed = torch.randperm(side * side, generator=generator)[: round(fraction * side * side)]
    sigma = noise * u.abs().mean()
    data = u[observed] + sigma * torch.randn(len(observed), dtype=torch.float64, generator=generator)

    p = torch.tensor([5.0, 50.0], dtype=torch.float64).log()
    history, misfit = [], []
    for step in range(steps + 1):

        def deviation(p: Tensor) -> Tensor:
            return (equation.solve(p)[observed] - data) / sigma

        columns = [torch.func.jvp(deviation, (p,), (e,)) for e in torch.eye(2, dtype=torch.float64)]
        r, J = columns[0][0], torch.stack([column[1] for column in columns], 1)
        history.append(p.exp())
        misfit.append(r.square().mean())
        change = torch.linalg.lstsq(J, -r[:, None]).solution[:, 0]
        p = p + change.clamp(-1, 1)  # a factor of e at most
        tick(step / steps)

    where = torch.zeros(side * side, dtype=torch.bool).index_fill(0, observed, True).view(side, side)
    colour, _ = torch.ops.gossamer.colour(equation.pattern.tensors(True), equation.pattern.shape, True)
    return Result(
        solution=u.view(side, side),
        observed=where,
        residuals=newton_history(equation, truth),
        colours=int(colour.max()) + 1,
        entries=equation.pattern.nnz,
        parameters=torch.stack(history),
        misfit=torch.stack(misfit),
        noise=noise,
    )


def figures(result: Result) -> dict[str, Figure]:
    return {"newton_solution": draw_solution(result), "newton_history": draw_history(result)}


def captions() -> dict[str, str]:
    return {
        "newton_solution": "The solution u, and where it is measured with noise.",
        "newton_history": "Newton's residual falls quadratically at the end. The two parameters, relative to the true "
        "ones, against steps of Gauss and Newton, whose derivatives are implicit.",
    }


def summary(result: Result) -> list[str]:
    n, observed = result.solution.numel(), int(result.observed.sum())
    alpha, beta = (f"{found:.3g} (true: {true:.3g})" for found, true in zip(result.parameters[-1], TRUTH, strict=True))
    return [
        f"A Jacobian of {n} columns with {result.entries} entries takes {result.colours} products and one that checks.",
        f"Newton's method took {len(result.residuals) - 1} iterations to a residual of {result.residuals[-1]:.1e}.",
        f"From {observed} measurements with {100 * result.noise:.0f} % noise: α = {alpha}, β = {beta}.",
        f"Misfit: {result.misfit[0]:.1f} at the start, {result.misfit[-1]:.2f} at the end, where 1 is the noise.",
    ]


def draw_solution(result: Result) -> Figure:
    figure = Figure(figsize=(5, 4), dpi=130, layout="constrained")
    axes = figure.subplots()
    side = result.solution.shape[0]
    image = axes.imshow(result.solution.numpy(), cmap="magma", origin="lower", extent=(0, 1, 0, 1))
    rows, cols = (result.observed.nonzero().T + 0.5) / side
    axes.plot(cols, rows, ".", color="tab:cyan", markersize=1.5 + 30 / side, label="observed")
    figure.colorbar(image, ax=axes, label="u")
    axes.set(xlabel="x", ylabel="y", title="The solution, and where it is observed")
    return figure


def draw_history(result: Result) -> Figure:
    figure = Figure(figsize=(9, 3.6), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(result.residuals, "o-", color="tab:blue")
    left.set(xlabel="iteration", ylabel="‖F‖", title="Newton's method")
    for k, name in enumerate("αβ"):
        right.semilogy(result.parameters[:, k] / TRUTH[k], "o-", label=f"{name} / true {name}")
    right.axhline(1, linestyle=":", color="gray")
    right.set(xlabel="step", ylabel="ratio", title="Recovering the parameters")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
