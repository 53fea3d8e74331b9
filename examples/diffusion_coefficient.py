# SPDX-License-Identifier: BSD-3-Clause
"""Recovers a diffusion coefficient from a few noisy observations, by differentiating a sparse solve.

On the unit square, with u = 0 on its boundary,

    −∇·(κ ∇u_s) = f_s,        s = 1 … S:  the same material κ = exp(θ) under S different sources.

Finite volumes on N × N cells, h = 1/N, with u and θ at the cells' centres. Between two cells a and b flows
k_e (u_a − u_b), with the harmonic mean k_e = 2 κ_a κ_b / (κ_a + κ_b); into the boundary 2 κ_a u_a, half a cell away.
Let D be the matrix of the differences, a row (1, −1) for each face and (1) for each face on the boundary. Then

    A(θ) u_s = h² f_s,        A(θ) = Dᵀ diag(k(θ)) D:

a sparse product on patterns that never change. Measured is d_s = u_s + noise of deviation σ, at some of the cells, o.
The sought θ minimises, with a total variation that allows edges but wants them short, smoothed where it has no
derivative,

    J(θ) = ½ mean ((u_s(o) − d_s) / σ)²  +  μ h Σ_cells √(|δθ|² + ε²),        δθ: differences to the next cells.

∇J costs one more solve with A's factors, whatever the number of unknowns (the adjoint method): autograd finds that by
itself. L-BFGS from θ = 0. The data come from a grid twice as fine, so that the model cannot repeat its own errors.
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
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Recovering a diffusion coefficient"
SOURCE = f"our own: an inverse problem through the sparse solve of {NYTKO}, Table 1, SpSolve"
QUICK: dict[str, Any] = {"side": 16, "steps": 10}
DEFAULT: dict[str, Any] = {"side": 64, "steps": 30}
FULL: dict[str, Any] = {"side": 128, "steps": 200}
ROUND = 5  # L-BFGS iterations a step of the history


@dataclass
class Result:
    truth: Tensor  # (N, N) θ of the material
    found: Tensor  # (N, N) θ recovered
    observed: Tensor  # (N, N) bool
    potential: Tensor  # (N, N) u of the source in the middle, in the true material
    sources: int
    noise: float  # σ / the mean of |u|
    objective: Tensor  # (steps + 1,) J
    misfit: Tensor  # (steps + 1,) mean ((u − d) / σ)²: 1 is the noise
    error: Tensor  # (steps + 1,) ‖κ − κ_true‖ / ‖κ_true‖


class Diffusion:
    """A(θ) = Dᵀ diag(k(θ)) D on side × side cells."""

    def __init__(self, side: int) -> None:
        self.side = side
        cell = torch.arange(side * side).view(side, side)
        self.a = torch.cat([cell[:, :-1].flatten(), cell[:-1].flatten()])
        self.b = torch.cat([cell[:, 1:].flatten(), cell[1:].flatten()])
        self.wall = torch.cat([cell[0], cell[-1], cell[:, 0], cell[:, -1]])  # a corner has two faces on the boundary
        inner, outer = torch.arange(len(self.a)), len(self.a) + torch.arange(len(self.wall))
        rows, cols = torch.cat([inner, inner, outer]), torch.cat([self.a, self.b, self.wall])
        signs = torch.ones(len(rows), dtype=torch.float64)
        signs[len(inner) : 2 * len(inner)] = -1
        self.D = gs.from_coo(rows, cols, signs, (len(inner) + len(outer), side * side))
        self.Dt = self.D.T

    def matrix(self, theta: Tensor) -> gs.SparseMatrix:
        kappa = theta.flatten().exp()
        a, b = kappa[self.a], kappa[self.b]
        return self.Dt @ self.D.scale_rows(torch.cat([2 * a * b / (a + b), 2 * kappa[self.wall]]))

    def solve(self, theta: Tensor, f: Tensor) -> Tensor:
        """u_s for every column f_s of f."""
        return gs.linalg.solve(self.matrix(theta), f / self.side**2)

    def centres(self) -> tuple[Tensor, Tensor]:
        """x and y of the cells, (side, side) each; a row of cells has one y."""
        place = (torch.arange(self.side, dtype=torch.float64) + 0.5) / self.side
        y, x = torch.meshgrid(place, place, indexing="ij")
        return x, y


def variation(theta: Tensor, epsilon: float = 0.01) -> Tensor:
    """h Σ √(|δθ|² + ε²): about the length of the edges times their height."""
    dx, dy = theta.diff(dim=1, append=theta[:, -1:]), theta.diff(dim=0, append=theta[-1:])
    return (dx.square() + dy.square() + epsilon**2).sqrt().sum() / theta.shape[0]


def material(x: Tensor, y: Tensor) -> Tensor:
    """θ of a disc that conducts well, a bar that hardly does, and a plain background."""
    disc = ((x - 0.34) ** 2 + (y - 0.62) ** 2 < 0.19**2).double()
    bar = ((x > 0.6) & (x < 0.8) & (y > 0.18) & (y < 0.7)).double()
    return 1.2 * disc - 1.0 * bar


def bumps(x: Tensor, y: Tensor, per_side: int = 3, width: float = 0.08) -> Tensor:
    """Sources f_s, Gaussians at per_side × per_side places, as columns."""
    places = [(i + 0.5) / per_side for i in range(per_side)]
    each = [torch.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * width**2)) for py in places for px in places]
    return torch.stack(each, -1).flatten(0, 1)


def measured(side: int) -> Tensor:
    """The true u_s as columns: solved on cells of half the size, mean over each four."""
    finer = Diffusion(2 * side)
    x, y = finer.centres()
    u = finer.solve(material(x, y), bumps(x, y))
    return u.view(side, 2, side, 2, -1).mean((1, 3)).flatten(0, 1)


def compute(
    *,
    side: int,
    steps: int,
    fraction: float = 0.1,
    noise: float = 0.01,
    smoothing: float = 0.1,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    generator = torch.Generator().manual_seed(seed)
    diffusion = Diffusion(side)
    x, y = diffusion.centres()
    truth, f = material(x, y), bumps(x, y)
    u = measured(side)
    observed = torch.randperm(side * side, generator=generator)[: round(fraction * side * side)]
    sigma = noise * u.abs().mean()
    data = u[observed] + sigma * torch.randn(len(observed), f.shape[1], dtype=torch.float64, generator=generator)

    theta = torch.zeros(side, side, dtype=torch.float64, requires_grad=True)
    # max_eval: by default torch cuts line searches short
    lbfgs = torch.optim.LBFGS(
        [theta], max_iter=ROUND, max_eval=25 * ROUND, history_size=20, line_search_fn="strong_wolfe"
    )

    def misfit() -> Tensor:
        return ((diffusion.solve(theta, f)[observed] - data) / sigma).square().mean()

    def objective() -> Tensor:
        lbfgs.zero_grad()
        J = 0.5 * misfit() + smoothing * variation(theta)
        J.backward()
        return J

    history = []
    for step in range(steps + 1):
        with torch.no_grad():
            fit = misfit()
            error = (theta.exp() - truth.exp()).norm() / truth.exp().norm()
            history.append((0.5 * fit + smoothing * variation(theta), fit, error))
        if step < steps:
            lbfgs.step(objective)
        tick(step / steps)
    where = torch.zeros(side * side, dtype=torch.bool).index_fill(0, observed, True).view(side, side)
    curves = (torch.stack(curve) for curve in zip(*history, strict=True))
    return Result(truth, theta.detach(), where, u[:, f.shape[1] // 2].view(side, side), f.shape[1], noise, *curves)


def figures(result: Result) -> dict[str, Figure]:
    return {
        "diffusion_fields": draw_fields(result),
        "diffusion_data": draw_data(result),
        "diffusion_history": draw_history(result),
    }


def captions() -> dict[str, str]:
    return {
        "diffusion_fields": "The material's log κ, what was recovered from the observations, and the difference: "
        "the outlines of the two inclusions are off by about a cell.",
        "diffusion_data": "One of the solutions u that are observed, and where: dots are cells with a noisy "
        "measurement. Nothing else is known.",
        "diffusion_history": "Objective, misfit (1 is the noise: a smaller one would fit noise) and the error of κ, "
        "which the method never sees, against L-BFGS iterations.",
    }


def summary(result: Result) -> list[str]:
    cells, observed = result.truth.numel(), int(result.observed.sum())
    return [
        f"{cells} unknowns from {result.sources} sources observed at {observed} cells "
        f"({100 * observed / cells:.0f} %) with {100 * result.noise:.0f} % noise. The "
        "observations are synthetic, from a grid twice as fine as the one that is fitted.",
        f"Relative error of κ: {100 * result.error[0]:.1f} % at the start (κ = 1), {100 * result.error[-1]:.1f} % "
        f"after {ROUND * (len(result.error) - 1)} iterations of L-BFGS.",
        f"Misfit: {result.misfit[0]:.0f} at the start, {result.misfit[-1]:.2f} at the end, where 1 is the noise.",
    ]


def draw_fields(result: Result) -> Figure:
    figure = Figure(figsize=(9, 3.3), dpi=130, layout="constrained")
    true, found, wrong = figure.subplots(1, 3)
    low, high = result.truth.min().item() - 0.1, result.truth.max().item() + 0.1
    extent = (0, 1, 0, 1)
    for axes, theta, title in (true, result.truth, "true log κ"), (found, result.found, "recovered log κ"):
        image = axes.imshow(theta.numpy(), cmap="viridis", origin="lower", extent=extent, vmin=low, vmax=high)
        axes.set_title(title)
    figure.colorbar(image, ax=[true, found], shrink=0.85)
    difference = (result.found - result.truth).numpy()
    image = wrong.imshow(difference, cmap="coolwarm", origin="lower", extent=extent, vmin=-1, vmax=1)
    wrong.set_title("recovered − true")
    figure.colorbar(image, ax=wrong, shrink=0.85)
    for axes in (true, found, wrong):
        axes.set(xlabel="x", ylabel="y", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        axes.label_outer()
    return figure


def draw_data(result: Result) -> Figure:
    figure = Figure(figsize=(5, 4), dpi=130, layout="constrained")
    axes = figure.subplots()
    side = result.truth.shape[0]
    image = axes.imshow(result.potential.numpy(), cmap="magma", origin="lower", extent=(0, 1, 0, 1))
    rows, cols = (result.observed.nonzero().T + 0.5) / side
    axes.plot(cols, rows, ".", color="tab:cyan", markersize=1.5 + 30 / side, label="observed")
    figure.colorbar(image, ax=axes, label="u of the source in the middle")
    axes.set(xlabel="x", ylabel="y", title=f"One of {result.sources} fields, and where it is observed")
    return figure


def draw_history(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    iterations = ROUND * torch.arange(len(result.error))
    lines = left.semilogy(iterations, result.objective, color="tab:blue", linewidth=2, label="objective J")
    lines += left.semilogy(iterations, result.misfit, color="tab:orange", linewidth=2, label="misfit (1: the noise)")
    lines += right.plot(iterations, 100 * result.error, "--", color="tab:red", linewidth=2, label="error of κ (right)")
    left.axhline(1, linestyle=":", color="tab:orange")
    left.set(xlabel="L-BFGS iteration", ylabel="J, misfit", title="Recovering κ")
    right.set_ylabel("‖κ − κ_true‖ / ‖κ_true‖, %")
    right.set_ylim(bottom=0)
    left.grid(alpha=0.3)
    left.legend(handles=lines)
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
