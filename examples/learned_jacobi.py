# SPDX-License-Identifier: BSD-3-Clause
"""Learned Jacobi relaxation: how much should each node trust its own update?

The Jacobi method for A x = b, with D the diagonal of A, damps smooth errors slowly. Give every entry of x a weight of
its own, Ω = diag(ω), and one step becomes

    j(x, b; Ω) = Ω D⁻¹ b + (I − Ω D⁻¹ A) x,

plain Jacobi being Ω = I. With b = 0 the solution is 0 and x is the error, so the weights that reduce it most in one
step, measured in the energy norm of A over K random vectors x_k ~ N(0, I), minimise

    ℓ(Ω) = Σ_k j(x_k, 0; Ω)ᵀ A j(x_k, 0; Ω).

A is the finite-difference Laplacian on 16 points, tridiag(−1, 2, −1); the x_k are the columns of one matrix X. The mean
of ℓ over all X is quadratic in ω, so here the answer is known: (A ∘ A²) D⁻¹ ω = diag(A²), ∘ being entrywise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib import colormaps, rcParams
from matplotlib.figure import Figure
from torch import Tensor

import gossamer as gs
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Learned Jacobi relaxation"
SOURCE = f"{NYTKO}, §4.1, Eqs. 18–21, Figs. 3 and 4"
QUICK: dict[str, Any] = {"vectors": 256, "steps": 120}
DEFAULT: dict[str, Any] = {"vectors": 1024, "steps": 300}
FULL: dict[str, Any] = {"vectors": 8192, "steps": 1000}


@dataclass
class Result:
    loss: Tensor  # (steps + 1,)
    weights: Tensor  # (steps + 1, n)
    best: Tensor  # (n,) the minimum of the mean loss


def relax(A: gs.SparseMatrix, omega: Tensor, X: Tensor) -> Tensor:
    """One weighted Jacobi step j(x, 0; Ω) for every column x of X."""
    return X - (omega / A.diagonal())[:, None] * (A @ X)


def energy(A: gs.SparseMatrix, X: Tensor) -> Tensor:
    """Σ xᵀ A x over the columns x of X."""
    return (X * (A @ X)).sum()


def optimum(A: gs.SparseMatrix) -> Tensor:
    """ω of (A ∘ A²) D⁻¹ ω = diag(A²): a sparse product, an entrywise product and a solve."""
    squared = A @ A
    return A.diagonal() * gs.linalg.solve(A * squared, squared.diagonal())


def compute(
    *,
    n: int = 16,
    vectors: int,
    steps: int,
    rate: float = 0.01,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """Adam from Ω = I."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, vectors, dtype=torch.float64, generator=generator)
    A = gs.poisson(n, dtype=torch.float64)
    omega = torch.ones(n, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([omega], lr=rate)
    losses, weights = [], []
    for step in range(steps + 1):
        adam.zero_grad()
        loss = energy(A, relax(A, omega, X))
        loss.backward()
        losses.append(loss.detach())
        weights.append(omega.detach().clone())
        adam.step()
        tick(step / steps)
    return Result(torch.stack(losses), torch.stack(weights), optimum(A))


def figures(result: Result) -> dict[str, Figure]:
    return {"jacobi_loss": draw_loss(result), "jacobi_weights": draw_weights(result)}


def captions() -> dict[str, str]:
    return {
        "jacobi_loss": "The loss (thick line) and the weight of every node (colours, mirrored nodes alike) while they "
        "are learned from Ω = I. The two ends of the domain part from the rest.",
        "jacobi_weights": "The learned weights against the exact minimum of the expected loss. The ends are weighted "
        "most: values enter from the boundary.",
    }


def summary(result: Result) -> list[str]:
    first, last, omega = result.loss[0].item(), result.loss[-1].item(), result.weights[-1]
    gap = (omega - result.best).abs().max().item()
    return [
        f"The loss falls from {first:.0f} with plain Jacobi (Ω = I) to {last:.0f} in {len(result.loss) - 1} steps, "
        f"{first / last:.2f} times smaller.",
        f"Weights: {omega[0]:.3f} and {omega[-1]:.3f} at the ends, {omega[len(omega) // 2]:.3f} in the middle; "
        f"the largest distance to the exact minimum of the expected loss is {gap:.3f}.",
    ]


def draw_loss(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    n = result.weights.shape[1]
    for node, weights in enumerate(result.weights.T):
        inward = min(node, n - 1 - node) / (n // 2 - 1)  # mirrored nodes share a colour
        label = {0: "weights of the ends", n // 2: "weights of the middle"}.get(node)
        right.plot(weights, color=colormaps["plasma"](0.75 - 0.4 * inward), linewidth=1.3, label=label)
    left.plot(result.loss, color=rcParams["text.color"], linewidth=2.5, label="loss ℓ")
    left.set(xlabel="training step", ylabel="loss ℓ", title="Learning one Jacobi weight per node")
    right.set_ylabel("weight ω of each node")
    left.set_zorder(right.get_zorder() + 1)  # the loss in front
    left.patch.set_visible(False)
    lines = [*left.get_lines(), *(line for line in right.get_lines() if not str(line.get_label()).startswith("_"))]
    left.legend(handles=lines, loc="upper right", bbox_to_anchor=(1, 0.92))
    return figure


def draw_weights(result: Result) -> Figure:
    figure = Figure(figsize=(7, 3.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    nodes = range(1, len(result.best) + 1)
    axes.plot(nodes, result.best, "_", color=rcParams["text.color"], markersize=16, label="exact, expected loss")
    axes.plot(nodes, result.weights[-1], "o-", color="tab:orange", label="learned")
    axes.set(xlabel="node", ylabel="weight ω", title="Final weights: largest at the two ends of the domain")
    axes.set_xticks(nodes)
    axes.grid(alpha=0.3)
    axes.legend(loc="upper center")
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
