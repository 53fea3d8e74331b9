# SPDX-License-Identifier: BSD-3-Clause
"""Fits a Gaussian Markov random field to noisy observations by its exact marginal likelihood.

A field u on N × N points, and observations of it at some of them, o (B picks these):

    u ~ N(0, Q⁻¹),      Q = τ² (κ² I + Δ),      y = B u + e,      e ~ N(0, σ² I)

with Δ the Poisson matrix of the grid: neighbours are alike, over distances of about 1 / κ. Given y it is Gaussian, too,
with the precision and the mean

    P = Q + Bᵀ B / σ²,      μ = P⁻¹ Bᵀ y / σ²,

and the likelihood of θ = (log κ, log τ, log σ), u integrated out, is

    −2 log p(y | θ) = log det P − log det Q + m log(2π σ²) + yᵀ (y − B μ) / σ².

Nothing is approximated: the determinants are those of sparse Cholesky factors, their gradients are inverses on the
pattern (Takahashi), found by autograd. L-BFGS finds θ. The diagonal of P⁻¹ is how uncertain the field is at each point.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

import gossamer as gs
from report.section import run_from_command_line

TITLE = "A Gaussian field fitted by its exact likelihood"
SOURCE = "our own: marginal likelihood and marginal variances of a Gaussian Markov random field"
QUICK: dict[str, Any] = {"side": 24, "steps": 6}
DEFAULT: dict[str, Any] = {"side": 300, "steps": 20}
FULL: dict[str, Any] = {"side": 300, "steps": 50}
TRUTH = {"κ": 0.25, "τ": 1.0, "σ": 0.3}


@dataclass
class Result:
    truth: Tensor  # (N, N) the field that was drawn
    observed: Tensor  # (N, N) bool
    mean: Tensor  # (N, N) of the field, given the observations
    deviation: Tensor  # (N, N) its standard deviation
    likelihood: Tensor  # (steps + 1,) −log p(y | θ)
    parameters: Tensor  # (steps + 1, 3) κ, τ, σ


class Field:
    """The precision Q of the field, on a pattern that never changes."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.laplacian = gs.poisson((side, side), dtype=torch.float64)
        self.eye = gs.eye(side * side, dtype=torch.float64)

    def precision(self, log_kappa: Tensor, log_tau: Tensor) -> gs.SparseMatrix:
        """τ² (κ² I + Δ)."""
        return (self.laplacian + self.eye * (2 * log_kappa).exp()) * (2 * log_tau).exp()

    def draw(self, Q: gs.SparseMatrix, generator: torch.Generator) -> Tensor:
        """u = Pᵀ L⁻ᵀ z has the precision Pᵀ L Lᵀ P = Q."""
        L, perm = gs.linalg.cholesky(Q)
        z = torch.randn(Q.shape[0], dtype=torch.float64, generator=generator)
        return torch.empty_like(z).index_copy(0, perm, gs.linalg.solve_triangular(L, z, transpose=True))


class Posterior:
    """The field, given y at the points `observed`."""

    def __init__(self, field: Field, observed: Tensor, y: Tensor, theta: Tensor) -> None:
        log_kappa, log_tau, log_sigma = theta
        n, variance = field.side**2, (2 * log_sigma).exp()
        weight = torch.zeros(n, dtype=torch.float64).index_fill(0, observed, 1.0) / variance
        Q = field.precision(log_kappa, log_tau)
        self.factor = gs.linalg.factorize(Q + field.eye.scale_rows(weight), "cholesky")
        b = torch.zeros(n, dtype=torch.float64).index_copy(0, observed, y) / variance
        self.mean = self.factor.solve(b)
        rest = (y * (y - self.mean[observed])).sum() / variance
        log_det = self.factor.logdet() - gs.linalg.factorize(Q, "cholesky").logdet()
        self.negative_log_likelihood = (log_det + len(y) * (math.log(2 * math.pi) + 2 * log_sigma) + rest) / 2

    def deviation(self) -> Tensor:
        return self.factor.inverse_diagonal().sqrt()


def compute(
    *,
    side: int,
    steps: int,
    fraction: float = 0.2,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    generator = torch.Generator().manual_seed(seed)
    field = Field(side)
    true = torch.tensor(list(TRUTH.values()), dtype=torch.float64).log()
    u = field.draw(field.precision(true[0], true[1]), generator)
    place = torch.arange(side * side).view(side, side)
    hidden = place[side // 3 : side // 2, side // 3 : side // 2].flatten()  # a square that nobody looks into
    observed = torch.randperm(side * side, generator=generator)[: round(fraction * side * side)].sort().values
    observed = observed[~torch.isin(observed, hidden)]
    y = u[observed] + true[2].exp() * torch.randn(len(observed), dtype=torch.float64, generator=generator)

    theta = torch.tensor([0.5, 0.6, 0.5], dtype=torch.float64).log().requires_grad_()
    lbfgs = torch.optim.LBFGS([theta], lr=0.5, max_iter=1, history_size=10)  # one gradient a step

    scale = 1.0 / len(y)

    def objective() -> Tensor:
        lbfgs.zero_grad()
        J = scale * Posterior(field, observed, y, theta).negative_log_likelihood
        J.backward()
        return J

    history, parameters = [], []
    for step in range(steps):
        parameters.append(theta.detach().exp())
        history.append(lbfgs.step(objective).detach() / scale)
        tick(step / steps)
    with torch.no_grad():
        last = Posterior(field, observed, y, theta)
        parameters.append(theta.detach().exp())
        history.append(last.negative_log_likelihood)
        mean, deviation = last.mean.view(side, side), last.deviation().view(side, side)
    tick(1.0)
    where = torch.zeros(side * side, dtype=torch.bool).index_fill(0, observed, True).view(side, side)
    return Result(u.view(side, side), where, mean, deviation, torch.stack(history), torch.stack(parameters))


def figures(result: Result) -> dict[str, Figure]:
    return {"gaussian_field_maps": draw_maps(result), "gaussian_field_history": draw_history(result)}


def captions() -> dict[str, str]:
    return {
        "gaussian_field_maps": "The field that was drawn, its mean given the observations, and its standard deviation: "
        "small near observations, large in the square that has none.",
        "gaussian_field_history": "The negative logarithm of the likelihood, and the three parameters beside those "
        "that the data were drawn with (dotted), against L-BFGS iterations.",
    }


def summary(result: Result) -> list[str]:
    error = result.mean - result.truth
    inside = (error.abs() < 1.96 * result.deviation).double().mean().item()
    names = ", ".join(
        f"{name} = {value:.3f} (drawn with {truth})"
        for (name, truth), value in zip(TRUTH.items(), result.parameters[-1].tolist(), strict=True)
    )
    return [
        f"{result.truth.numel()} unknowns, {int(result.observed.sum())} of them observed with noise; the data are "
        "synthetic, drawn from the model itself.",
        f"Found after {len(result.likelihood) - 1} iterations: {names}.",
        f"The field is within 1.96 deviations of its mean at {100 * inside:.1f} % of the points (95 % is right).",
    ]


def draw_maps(result: Result) -> Figure:
    figure = Figure(figsize=(10, 3.3), dpi=130, layout="constrained")
    most = result.truth.abs().max().item()
    maps = [("the field", result.truth, "coolwarm"), ("its mean, given y", result.mean, "coolwarm")]
    for axes, (title, values, colours), in_two_signs in zip(
        figure.subplots(1, 3),
        [*maps, ("its standard deviation", result.deviation, "viridis")],
        [True, True, False],
        strict=True,
    ):
        limits = {"vmin": -most, "vmax": most} if in_two_signs else {}
        figure.colorbar(axes.imshow(values.numpy(), cmap=colours, origin="lower", **limits), ax=axes, shrink=0.85)
        axes.set(title=title, xlabel="x", ylabel="y", xticks=[], yticks=[])
    return figure


def draw_history(result: Result) -> Figure:
    figure = Figure(figsize=(8, 3.3), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    iterations = torch.arange(len(result.likelihood))
    left.plot(iterations, result.likelihood, color="tab:blue", linewidth=2)
    left.set(xlabel="iteration", ylabel="−log p(y | θ)", title="Likelihood")
    for k, (name, truth) in enumerate(TRUTH.items()):
        (line,) = right.semilogy(iterations, result.parameters[:, k], linewidth=2, label=name)
        right.axhline(truth, linestyle=":", color=line.get_color())
    right.set(xlabel="iteration", title="Parameters")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
