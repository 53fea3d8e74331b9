# SPDX-License-Identifier: BSD-3-Clause
"""Learned Jacobi relaxation: how much should each node trust its own update?

The Jacobi method for A x = b, with D the diagonal of A, damps smooth errors slowly. Give every entry of x a weight of
its own, Ω = diag(ω), and one step becomes

    j(x, b; Ω) = Ω D⁻¹ b + (I − Ω D⁻¹ A) x,

plain Jacobi being Ω = I. With b = 0 the solution is 0 and x is the error, so the weights that reduce it most in one
step, measured in the energy norm of A over K random vectors x_k ~ N(0, I), minimise

    ℓ(Ω) = Σ_k j(x_k, 0; Ω)ᵀ A j(x_k, 0; Ω).

A is the finite-difference Laplacian on 16 points, tridiag(−1, 2, −1); the x_k are the columns of one matrix X.
Writes jacobi_loss.png (the loss and every node's weight against the step) and jacobi_weights.png (the final weights).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from rich.progress import track
from torch import Tensor

import gossamer as gs


@dataclass
class History:
    loss: Tensor  # (steps + 1,)
    weights: Tensor  # (steps + 1, n)


def relax(A: gs.SparseMatrix, diagonal: Tensor, omega: Tensor, X: Tensor) -> Tensor:
    """One weighted Jacobi step j(x, 0; Ω) for every column x of X."""
    return X - (omega / diagonal)[:, None] * (A @ X)


def energy(A: gs.SparseMatrix, X: Tensor) -> Tensor:
    """Σ xᵀ A x over the columns x of X."""
    return (X * (A @ X)).sum()


def train(n: int = 16, vectors: int = 1024, steps: int = 300, rate: float = 0.01, seed: int = 0) -> History:
    """Adam from Ω = I."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, vectors, dtype=torch.float64, generator=generator)
    A = gs.poisson(n, dtype=torch.float64)
    diagonal = A.values[A.pattern.row_indices == A.indices]
    omega = torch.ones(n, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([omega], lr=rate)
    losses, weights = [], []
    for _ in track(range(steps), description="learning Ω"):
        adam.zero_grad()
        loss = energy(A, relax(A, diagonal, omega, X))
        loss.backward()
        losses.append(loss.detach())
        weights.append(omega.detach().clone())
        adam.step()
    with torch.no_grad():
        losses.append(energy(A, relax(A, diagonal, omega, X)))
        weights.append(omega.clone())
    return History(torch.stack(losses), torch.stack(weights))


def plot_loss(history: History, path: Path) -> None:
    figure = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    n = history.weights.shape[1]
    for node, weights in enumerate(history.weights.T):  # mirrored nodes share a colour: the ends are bright
        right.plot(weights, color=colormaps["plasma"](0.9 - 1.7 * min(node, n - 1 - node) / n), linewidth=1.2)
    left.plot(history.loss, color="black", linewidth=2)
    left.set(xlabel="training step", ylabel="loss ℓ (black)", title="Learning the Jacobi relaxation weights")
    right.set_ylabel("weight of each node (colour; the ends are yellow)")
    left.set_zorder(right.get_zorder() + 1)  # black in front
    left.patch.set_visible(False)
    figure.savefig(path)


def plot_weights(omega: Tensor, path: Path) -> None:
    figure = Figure(figsize=(7, 3.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(omega) + 1), omega, "o-", color="tab:blue")
    axes.set(xlabel="node", ylabel="weight ω", title="Final weights: largest at the two ends of the domain")
    axes.set_xticks(range(1, len(omega) + 1))
    axes.grid(alpha=0.3)
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> History:
    parser = argparse.ArgumentParser(description="Learned Jacobi relaxation on the 1D Poisson problem")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    history = train(steps=options.steps, seed=options.seed)
    print(f"loss: {history.loss[0]:.1f} with Ω = I, {history.loss[-1]:.1f} after {options.steps} steps")
    print("weights:", " ".join(f"{weight:.3f}" for weight in history.weights[-1].tolist()))
    options.out.mkdir(parents=True, exist_ok=True)
    plot_loss(history, options.out / "jacobi_loss.png")
    plot_weights(history.weights[-1], options.out / "jacobi_weights.png")
    print(f"see {options.out / 'jacobi_loss.png'} and {options.out / 'jacobi_weights.png'}")
    return history


if __name__ == "__main__":
    main()
