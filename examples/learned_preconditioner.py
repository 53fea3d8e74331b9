# SPDX-License-Identifier: BSD-3-Clause
"""A learned preconditioner for conjugate gradients, and what it is worth on larger grids.

Preconditioned conjugate gradients (PCG) solve A x = b faster with an M ≈ A⁻¹, symmetric and positive definite. Here A
is the Laplacian on an N × N grid, made of the one-dimensional one,

    A = A_N ⊗ I + I ⊗ A_N,        A_N = tridiag(−1, 2, −1),        N = 8,

and M = L Lᵀ with a lower bidiagonal L: 2 n − 1 numbers, n = N². They minimise the residuals of the first N_it = 4
iterations, the later ones weighted more (γ = 0.6), over random b ~ N(0, I), the columns of one matrix B:

    ℓ = Σ_i w_i ‖r⁽ⁱ⁾‖ / ‖b‖,        w_i = γ^(N_it − i) / Σ_j γ^(N_it − j).

The gradient goes back through the iterations: products with A, L and Lᵀ, and the quotients of PCG.

The subdiagonal couples neighbours on a grid line, and the last node of a line to the first of the next, which are no
neighbours: training finds 0 there. What a node's numbers know is its distance to the boundary, and A's rows are the
same on every grid. So on a larger grid each node takes the numbers of the trained node with the same distances to the
boundary; farther inside than the trained grid has nodes, those next to its middle. Nothing is trained there.

Its rivals are CG alone, Jacobi (M = D⁻¹, which is CG again, as D = 4 I) and IC(0), the incomplete Cholesky
factorisation on the pattern of A's lower triangle, M = (L Lᵀ)⁻¹ by two triangular solves.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

import gossamer as gs
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Learned preconditioner for conjugate gradients"
SOURCE = f"{NYTKO}, §4.3, Eqs. 26–28, Figs. 7 and 8; larger grids are our own question"
QUICK: dict[str, Any] = {"vectors": 64, "steps": 60, "grids": (8, 16)}
DEFAULT: dict[str, Any] = {"vectors": 256, "steps": 200, "grids": (8, 16, 32, 64, 128)}
FULL: dict[str, Any] = {"vectors": 2048, "steps": 1000, "grids": (8, 16, 32, 64, 128, 256)}

Preconditioner = Callable[[Tensor], Tensor]  # R -> M R
none: Preconditioner = torch.nn.Identity()


@dataclass
class Result:
    loss: Tensor  # (steps + 1,)
    residual: Tensor  # (steps + 1,) ‖r⁽⁴⁾‖ / ‖b‖, mean over the training vectors
    diagonal: Tensor  # (N, N) of L, node by node
    coupling: Tensor  # (N, N) L's subdiagonal: of each node to the one before
    plain: Tensor  # (shown + 1,) ‖r⁽ⁱ⁾‖ / ‖b‖ of CG, mean over unseen b
    learned: Tensor  # (shown + 1,) of PCG with the learned M
    grids: list[int]
    iterations: dict[str, list[float]]  # to ‖r‖ ≤ 1e-8 ‖b‖, for each method and grid, mean over unseen b


def laplacian(side: int) -> gs.SparseMatrix:
    line, identity = gs.poisson(side, dtype=torch.float64), gs.eye(side, dtype=torch.float64)
    return gs.kron(line, identity) + gs.kron(identity, line)


def pcg(A: gs.SparseMatrix, B: Tensor, precondition: Preconditioner) -> Iterator[Tensor]:
    """The residuals after 0, 1, 2, … iterations from x = 0, for every column b of B."""
    R, Z = B, precondition(B)
    P, rz = Z, (R * Z).sum(0)
    while True:
        yield R
        Q = A @ P
        R = R - rz / (P * Q).sum(0) * Q
        Z = precondition(R)
        before, rz = rz, (R * Z).sum(0)
        P = Z + rz / before * P


def relative(A: gs.SparseMatrix, B: Tensor, precondition: Preconditioner, iterations: int) -> Tensor:
    """‖r⁽ⁱ⁾‖ / ‖b‖ for i = 0 … iterations, a row each, a column for each column of B."""
    return torch.stack([R.norm(dim=0) for R in islice(pcg(A, B, precondition), iterations + 1)]) / B.norm(dim=0)


def jacobi(A: gs.SparseMatrix) -> Preconditioner:
    inverse = 1 / A.diagonal()[:, None]
    return lambda R: inverse * R


def bidiagonal(diagonal: Tensor, coupling: Tensor) -> Preconditioner:
    """M R = L (Lᵀ R); the first coupling has no node before it and is not used."""
    L = gs.diag(diagonal.flatten()) + gs.diag(coupling.flatten()[1:], -1)
    return lambda R: L @ gs.spmm(L, R, transpose=True)


def incomplete_cholesky(A: gs.SparseMatrix) -> gs.SparseMatrix:
    """L with (L Lᵀ)_ij = A_ij wherever the lower triangle of A has an entry, and entries nowhere else.

    Row by row: L_ij = (A_ij − Σ_{k<j} L_ik L_jk) / L_jj, L_ii = √(A_ii − Σ_k L_ik²).
    """
    lower = A.tril()
    indptr, indices, values = lower.indptr.tolist(), lower.indices.tolist(), lower.values.tolist()
    rows: list[dict[int, float]] = []
    for i in range(A.shape[0]):
        row: dict[int, float] = {}
        rows.append(row)
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            rest = values[at] - sum(entry * rows[j].get(k, 0.0) for k, entry in row.items())
            row[j] = math.sqrt(rest) if j == i else rest / rows[j][j]
    return lower.with_values(torch.tensor([entry for row in rows for entry in row.values()], dtype=A.dtype))


def factored(L: gs.SparseMatrix) -> Preconditioner:
    """(L Lᵀ)⁻¹ R."""
    solve = gs.linalg.solve_triangular
    return lambda R: solve(L, solve(L, R), transpose=True)


def train(B: Tensor, side: int, steps: int, rate: float, tick: Callable[[float], None]) -> tuple[Tensor, ...]:
    """Adam from L = I, which is CG: the losses, the last residuals, and L's diagonal and couplings."""
    A = laplacian(side)
    weights = 0.6 ** torch.arange(3.0, -1.0, -1.0, dtype=torch.float64)
    weights /= weights.sum()
    diagonal = torch.ones(side, side, dtype=torch.float64, requires_grad=True)
    coupling = torch.zeros(side, side, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([diagonal, coupling], lr=rate)
    losses, residuals = [], []
    for step in range(steps + 1):
        adam.zero_grad()
        history = relative(A, B, bidiagonal(diagonal, coupling), len(weights)).mean(1)
        loss = weights @ history[1:]
        losses.append(loss.detach())
        residuals.append(history[-1].detach())
        if step < steps:
            loss.backward()
            adam.step()
        tick(step / steps)
    return torch.stack(losses), torch.stack(residuals), diagonal.detach(), coupling.detach()


def carried(trained: Tensor, side: int) -> Tensor:
    """The trained numbers of an N × N grid on a larger one: each node's from the one as far from the boundary."""
    half = trained.shape[0] // 2
    i = torch.arange(side)
    at = torch.where(i < side // 2, i.clamp(max=half - 1), 2 * half - 1 - (side - 1 - i).clamp(max=half - 1))
    return trained[at[:, None], at]


def count(A: gs.SparseMatrix, B: Tensor, precondition: Preconditioner, tolerance: float = 1e-8) -> float:
    """Iterations until ‖r‖ ≤ tolerance ‖b‖, mean over the columns of B."""
    goal, total = tolerance * B.norm(dim=0), 0
    for R in pcg(A, B, precondition):
        open_columns = int((R.norm(dim=0) > goal).sum())
        if open_columns == 0:
            break
        total += open_columns
    return total / B.shape[1]


def compute(
    *,
    side: int = 8,
    vectors: int,
    steps: int,
    grids: Sequence[int],
    shown: int = 24,
    rate: float = 0.01,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    generator = torch.Generator().manual_seed(seed)

    def normal(n: int, columns: int) -> Tensor:
        return torch.randn(n, columns, dtype=torch.float64, generator=generator)

    B = normal(side * side, vectors)
    loss, residual, diagonal, coupling = train(B, side, steps, rate, lambda done: tick(0.5 * done))
    A, unseen = laplacian(side), normal(side * side, vectors)
    plain = relative(A, unseen, none, shown).mean(1)
    learned = relative(A, unseen, bidiagonal(diagonal, coupling), shown).mean(1)
    iterations: dict[str, list[float]] = {"CG": [], "Jacobi": [], "learned": [], "IC(0)": []}
    for grid in grids:
        A, unseen = laplacian(grid), normal(grid * grid, 8)
        iterations["CG"].append(count(A, unseen, none))
        iterations["Jacobi"].append(count(A, unseen, jacobi(A)))
        iterations["learned"].append(count(A, unseen, bidiagonal(carried(diagonal, grid), carried(coupling, grid))))
        iterations["IC(0)"].append(count(A, unseen, factored(incomplete_cholesky(A))))
        tick(0.5 + 0.5 * grid / max(grids))
    return Result(loss, residual, diagonal, coupling, plain, learned, list(grids), iterations)


def figures(result: Result) -> dict[str, Figure]:
    return {
        "preconditioner_loss": draw_loss(result),
        "preconditioner_residual": draw_residual(result),
        "preconditioner_entries": draw_entries(result),
        "preconditioner_grids": draw_grids(result),
    }


def captions() -> dict[str, str]:
    return {
        "preconditioner_loss": "The weighted loss and the relative residual after four iterations, while L is learned "
        "from L = I, which is CG without a preconditioner.",
        "preconditioner_residual": "Relative residual of CG and of PCG with the learned M, mean over right-hand sides "
        "that were not trained on. Four iterations were trained; the gain goes on after them. (CG catches up only at "
        "1e-13: A has 33 distinct eigenvalues, so CG is exact after 33 iterations.)",
        "preconditioner_entries": "The learned L, node by node. Nothing said where grid lines end: the couplings of a "
        "line's first node to the line before are learned to be zero. (The very first node has none.)",
        "preconditioner_grids": "Iterations to a residual of 1e-8 on grids larger than the trained one. The learned M "
        "keeps its gain without new training, but IC(0) needs fewer than half of its iterations.",
    }


def summary(result: Result) -> list[str]:
    side, last = result.diagonal.shape[0], result.grids[-1]
    cg, learned, cholesky = (result.iterations[name][-1] for name in ("CG", "learned", "IC(0)"))
    gain = result.plain[1:] / result.learned[1:]
    return [
        f"In {len(result.loss) - 1} steps the loss falls from {result.loss[0]:.4f} (CG) to {result.loss[-1]:.4f}; the "
        f"residual after 4 iterations from {result.residual[0]:.4f} to {result.residual[-1]:.4f}.",
        f"On unseen right-hand sides the residual of PCG is {gain.min():.2f} to {gain.max():.0f} times smaller than "
        f"CG's, over iterations 1 to {len(gain)}.",
        f"Carried from {side} × {side} to {last} × {last}, to 1e-8: CG {cg:.1f}, Jacobi "
        f"{result.iterations['Jacobi'][-1]:.1f}, learned {learned:.1f}, IC(0) {cholesky:.1f} iterations.",
        f"IC(0) wins with {learned / cholesky:.1f} times fewer iterations than the learned M, which saves "
        f"{100 * (1 - learned / cg):.0f} % of CG's; but IC(0) pays with two sequential triangular solves, the learned "
        "M with two products. For all of them the iterations still grow with the grid's side.",
    ]


def draw_loss(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    lines = left.plot(result.loss, color="tab:blue", linewidth=2.5, label="loss ℓ (left)")
    lines += right.plot(result.residual, "--", color="tab:red", linewidth=2, label="‖r⁽⁴⁾‖ / ‖b‖ (right)")
    left.set(xlabel="training step", ylabel="loss ℓ", title="Learning M = L Lᵀ through four PCG iterations")
    right.set_ylabel("relative residual after 4 iterations")
    left.grid(alpha=0.3)
    left.legend(handles=lines)
    return figure


def draw_residual(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4), dpi=130, layout="constrained")
    axes = figure.subplots()
    axes.axvspan(0, 4, color="tab:green", alpha=0.25, linewidth=0, label="trained iterations")
    axes.semilogy(result.plain, "o-", color="tab:blue", markersize=4, label="CG")
    axes.semilogy(result.learned, "s-", color="tab:orange", markersize=4, label="PCG with the learned M")
    axes.set(xlabel="iteration", ylabel="‖r‖ / ‖b‖", title="Unseen right-hand sides on the trained grid")
    axes.set_xlim(0, len(result.plain) - 1)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def draw_entries(result: Result) -> Figure:
    figure = Figure(figsize=(7, 3.3), dpi=130, layout="constrained")
    coupling = result.coupling.clone()
    coupling.view(-1)[0] = math.nan  # the very first node has none before it
    titles = "diagonal of L", "coupling to the node before"
    for axes, entries, title in zip(figure.subplots(1, 2), (result.diagonal, coupling), titles, strict=True):
        image = axes.imshow(entries.numpy(), cmap="viridis", origin="lower")
        figure.colorbar(image, ax=axes, shrink=0.85)
        axes.set(title=title, xlabel="place on the grid line", ylabel="grid line", xticks=[], yticks=[])
    return figure


def draw_grids(result: Result) -> Figure:
    figure = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    axes = figure.subplots()
    styles = {"CG": "tab:blue", "Jacobi": "tab:cyan", "learned": "tab:orange", "IC(0)": "tab:red"}
    for name, colour in styles.items():
        needed = result.iterations[name]
        axes.loglog(result.grids, needed, "x:" if name == "Jacobi" else "o-", color=colour, label=name)
        if name != "Jacobi":  # which lies on CG
            axes.annotate(f"{needed[-1]:.0f}", (result.grids[-1], needed[-1]), (7, -3), textcoords="offset points")
    title = f"Trained on {len(result.diagonal)} × {len(result.diagonal)}, carried to larger grids"
    axes.set(xlabel="grid side N (n = N²)", ylabel="iterations to ‖r‖ ≤ 1e-8 ‖b‖", title=title)
    axes.set_xticks(result.grids, [str(grid) for grid in result.grids])
    ticks = [tick for tick in (10, 20, 50, 100, 200, 500, 1000) if tick < 1.2 * result.iterations["CG"][-1]]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.margins(x=0.1)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
