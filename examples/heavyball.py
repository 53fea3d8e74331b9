# SPDX-License-Identifier: BSD-3-Clause
"""Learned heavyball iteration: the best step and momentum for a given number of iterations.

Polyak's heavyball method minimises a function f by a step along its gradient and a part of the step before,

    x⁽ᵏ⁺¹⁾ = x⁽ᵏ⁾ − α ∇f(x⁽ᵏ⁾) + β (x⁽ᵏ⁾ − x⁽ᵏ⁻¹⁾),        x⁽⁻¹⁾ = x⁽⁰⁾.

For f(x) = ½ xᵀ A x − bᵀ x, ∇f = A x − b, and it solves A x = b. Let h_L(x, b; α, β) be L such iterations from x. With
b = 0 the solution is 0 and h_L is the error that is left; α and β minimise its energy over K vectors x_k ~ N(0, I):

    ℓ(α, β) = Σ_k h_L(x_k, 0; α, β)ᵀ A h_L(x_k, 0; α, β),        A = tridiag(−1, 2, −1), n = 16, L = ¾ n = 12.

The gradient goes back through all twelve products with A. In A's eigenvectors, with eigenvalues λ_i, the iteration is a
polynomial p_L of λ, so the mean of ℓ / K over all x is known: Σ_i λ_i p_L(λ_i; α, β)². The figures show it as a map.
For L → ∞ the best parameters are Polyak's, √α = 2 / (√λ_max + √λ_min) and √β = (√λ_max − √λ_min) / (√λ_max + √λ_min);
for twelve iterations they are not.
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
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Learned heavyball iteration"
SOURCE = f"{NYTKO}, §4.2, Eqs. 22–25, Figs. 5 and 6"
QUICK: dict[str, Any] = {"vectors": 256, "steps": 150}
DEFAULT: dict[str, Any] = {"vectors": 1024, "steps": 200}
FULL: dict[str, Any] = {"vectors": 8192, "steps": 1000}


@dataclass
class Result:
    iterations: int
    vectors: int
    train: Tensor  # (steps + 1,) loss on the K training vectors
    test: Tensor  # (steps + 1,) loss on K other vectors
    parameters: Tensor  # (steps + 1, 2) α and β
    eigenvalues: Tensor  # (n,) of A


def heavyball(A: gs.SparseMatrix, X: Tensor, alpha: Tensor, beta: Tensor, iterations: int) -> Tensor:
    """h_L(x, 0; α, β) for every column x of X."""
    before, X = X, X - alpha * (A @ X)
    for _ in range(iterations - 1):
        before, X = X, X - alpha * (A @ X) + beta * (X - before)
    return X


def energy(A: gs.SparseMatrix, X: Tensor) -> Tensor:
    """Σ xᵀ A x over the columns x of X."""
    return (X * (A @ X)).sum()


def compute(
    *,
    n: int = 16,
    iterations: int = 12,
    vectors: int,
    steps: int,
    rate: float = 0.05,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """Adam from α = β = 0, the iteration that does nothing, down log ℓ.

    The minimum is that of ℓ, but ℓ falls by three decades, and Adam, scaled by the large gradients of the beginning,
    would stop in one of the ripples that p_L makes on the way.
    """
    generator = torch.Generator().manual_seed(seed)
    train, test = torch.randn(2, n, vectors, dtype=torch.float64, generator=generator)
    A = gs.poisson(n, dtype=torch.float64)
    parameters = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([parameters], lr=rate)
    history: list[tuple[Tensor, Tensor, Tensor]] = []
    for step in range(steps + 1):
        adam.zero_grad()
        loss = energy(A, heavyball(A, train, *parameters, iterations))
        loss.log().backward()
        with torch.no_grad():
            unseen = energy(A, heavyball(A, test, *parameters, iterations))
        history.append((loss.detach(), unseen, parameters.detach().clone()))
        adam.step()
        tick(step / steps)
    losses, unseen, path = (torch.stack(each) for each in zip(*history, strict=True))
    return Result(iterations, vectors, losses, unseen, path, torch.linalg.eigvalsh(A.to_dense()))


def expected(eigenvalues: Tensor, alpha: Tensor, beta: Tensor, iterations: int) -> Tensor:
    """Σ_i λ_i p_L(λ_i; α, β)², the mean of ℓ / K, for every α and β of two tensors of one shape."""
    alpha, beta = alpha[..., None], beta[..., None]
    before, p = torch.ones_like(alpha * eigenvalues), 1 - alpha * eigenvalues
    for _ in range(iterations - 1):
        before, p = p, p - alpha * eigenvalues * p + beta * (p - before)
    return (eigenvalues * p.square()).sum(-1)


def polyak(eigenvalues: Tensor) -> Tensor:
    """α and β with the fastest decay per iteration as L → ∞."""
    low, high = math.sqrt(eigenvalues.min()), math.sqrt(eigenvalues.max())
    return torch.tensor([(2 / (high + low)) ** 2, ((high - low) / (high + low)) ** 2], dtype=torch.float64)


def best_descent(result: Result) -> float:
    """The smallest expected loss without momentum, β = 0."""
    alpha = torch.linspace(0, 1, 1001, dtype=torch.float64)
    return expected(result.eigenvalues, alpha, torch.zeros_like(alpha), result.iterations).min().item()


def figures(result: Result) -> dict[str, Figure]:
    return {
        "heavyball_loss": draw_loss(result),
        "heavyball_parameters": draw_parameters(result),
        "heavyball_map": draw_map(result),
    }


def captions() -> dict[str, str]:
    return {
        "heavyball_loss": "Loss on the training vectors and on vectors never trained on. They lie on each other: two "
        "parameters cannot learn vectors by heart. Momentum leaves a quarter of what gradient descent can.",
        "heavyball_parameters": "α and β on their way from 0, with the training loss.",
        "heavyball_map": "The expected loss over all α and β, and the way the training took through it. Polyak's "
        "parameters, the best for infinitely many iterations, are far from the best for twelve.",
    }


def summary(result: Result) -> list[str]:
    alpha, beta = result.parameters[-1].tolist()
    limit = polyak(result.eigenvalues)
    at_limit = expected(result.eigenvalues, *limit, result.iterations).item()
    train, test = result.train, result.test / result.vectors
    return [
        f"In {len(train) - 1} steps the training loss falls from {train[0]:.0f} to {train[-1]:.2f}, "
        f"{train[0] / train[-1]:.0f} times smaller; on unseen vectors by {test[0] / test[-1]:.0f} times.",
        f"Learned: α = {alpha:.4f}, β = {beta:.4f}.",
        f"Energy left after {result.iterations} iterations, per unseen vector: {test[-1]:.4f}; the best gradient "
        f"descent (β = 0) leaves {best_descent(result):.4f}, Polyak's parameters for infinitely many iterations "
        f"(α = {limit[0]:.3f}, β = {limit[1]:.3f}) leave {at_limit:.1f}.",
    ]


def draw_loss(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4), dpi=130, layout="constrained")
    axes = figure.subplots()
    axes.semilogy(result.train, color="tab:blue", linewidth=4, label="training vectors")
    axes.semilogy(result.test, "--", color="tab:orange", linewidth=2, label="unseen vectors")
    descent = result.vectors * best_descent(result)
    axes.axhline(descent, linestyle=":", color="tab:green", label="gradient descent, β = 0, at its best")
    axes.set(xlabel="training step", ylabel="loss ℓ", title=f"Loss of {result.iterations} heavyball iterations")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def draw_parameters(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    lines = left.plot(result.parameters[:, 0], color="tab:blue", linewidth=2, label="step α")
    lines += left.plot(result.parameters[:, 1], color="tab:green", linewidth=2, label="momentum β")
    lines += right.semilogy(result.train, "--", color="tab:red", label="training loss ℓ (right)")
    left.set(xlabel="training step", ylabel="parameter", title="Step and momentum while they are learned")
    right.set_ylabel("loss ℓ")
    left.grid(alpha=0.3)
    left.legend(handles=lines, loc="center right")
    return figure


def draw_map(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    alpha, beta = torch.linspace(0, 1, 241, dtype=torch.float64), torch.linspace(-0.1, 0.8, 241, dtype=torch.float64)
    loss = expected(result.eigenvalues, *torch.meshgrid(alpha, beta, indexing="xy"), result.iterations)
    colours = axes.contourf(alpha, beta, loss.log10().clamp(max=2), levels=24, cmap="viridis")
    bar = figure.colorbar(colours, ax=axes, label="log₁₀ of the expected loss per vector (2 and more: yellow)")
    bar.set_ticks([-1, 0, 1, 2])
    axes.plot(*result.parameters.T, color="tab:red", linewidth=2.2, label="training")
    axes.plot(*result.parameters[-1], "o", color="tab:red", markersize=9, label="learned")
    axes.plot(*polyak(result.eigenvalues), "X", color="tab:pink", markersize=11, label="Polyak, L → ∞")
    axes.set(xlabel="step α", ylabel="momentum β", title="The loss over both parameters, and the way down")
    axes.legend(loc="lower right")
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
