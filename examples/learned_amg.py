# SPDX-License-Identifier: BSD-3-Clause
"""A multigrid smoother, and the weight of the prolongation, that are learned through unrolled conjugate gradients.

Diffusion that is stronger along one direction than across, −∇·(C ∇u) = f, on N × N inner points of a square with
bilinear elements; C turns (1, ε) by an angle. Multigrid with points as unknowns finds it hard: Gauss and Seidel's
sweeps smooth along the strong direction alone. The preconditioner is one cycle of smoothed aggregation

    z ← L̃⁻¹ r,    z ← z + P A_c⁻¹ Pᵀ (r − A z),    z ← z + L̃⁻ᵀ (r − A z)
    P = (I − ω/λ D⁻¹ A) T,    A_c = Pᵀ A P,        T: aggregates of 3 × 3 points; A_c⁻¹: a cycle of `gs.linalg.amg`

At the start ω = 4/3, and L̃ is the lower triangle of A: Gauss and Seidel. What is learned is ω and, for each row, five
changes of its entries of L̃, relative to the diagonal, by a small network φ that sees the row's entries of A:

    L̃_ij = a_ij + a_ii φ(a_i· / a_ii)_(j−i),        so that a sweep costs what it did.

The loss is the mean log ‖r‖ / ‖b‖ after a few steps of conjugate gradients, `cg(…, unrolled=True)`, with random b, a
new ε and a new angle in each step of training. Judged by iterations to 10⁻⁸ on anisotropies that were not seen, on
larger grids, and where the direction changes from place to place, beside a φ that sees nothing: one for all matrices.
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
from examples.matrices.anisotropic import LOWER, Grid, places
from report.section import run_from_command_line

TITLE = "A learned multigrid smoother"
SOURCE = "our own: smoothed aggregation (Vaněk, Mandel, Brezina 1996) with a smoother learned by unrolled iterations"
QUICK: dict[str, Any] = {"side": 12, "training": 30, "tests": 2, "larger": 18}
DEFAULT: dict[str, Any] = {"side": 24, "training": 300, "tests": 16, "larger": 48}
FULL: dict[str, Any] = {"side": 36, "training": 2000, "tests": 64, "larger": 240}
STEPS = 9  # of conjugate gradients in the loss
RATE = 0.03
KINDS = ("gs.linalg.amg", "start", "one for all", "learned")
SETTINGS = ("as in training", "a thousand times stronger", "larger grid", "larger grid, angle varies")
STRENGTHS = (0.3, 0.03, 0.003)


@dataclass
class Result:
    loss: Tensor  # (3, training) of the start, which does not learn, of "one for all" and "learned", on equal matrices
    omega: Tensor  # (2,) at the end
    anisotropy: Tensor  # (tests, 2) ε and angle, not seen in training
    iterations: Tensor  # (SETTINGS, KINDS, tests) to 1e-8
    residual: Tensor  # (SETTINGS, KINDS but the first) after STEPS steps, geometric mean
    weight: Tensor  # (STRENGTHS, angles) what is learned of the diagonal
    side: int
    larger: int


class Smoother(torch.nn.Module):
    """φ, from a row's entries to the changes of its triangle, and ω. At the start φ is 0: Gauss and Seidel.

    The cycle is positive definite if L̃ + L̃ᵀ − A is, and that is diagonally dominant, for equal diagonals, where
    ½ + φ_0 > Σ |φ_k|, k = 1 … 4: so the last layer is made. Without ``sees``, the same five numbers for every row of
    every matrix.
    """

    def __init__(self, sees: bool, generator: torch.Generator, width: int = 24) -> None:
        super().__init__()
        features = len(LOWER) - 1
        self.sees = sees
        self.inward = torch.nn.Parameter(4 * torch.randn(features, width, generator=generator, dtype=torch.float64))
        self.shift = torch.nn.Parameter(torch.randn(width, generator=generator, dtype=torch.float64))
        self.outward = torch.nn.Parameter(torch.zeros(width, len(LOWER), dtype=torch.float64))
        self.bias = torch.nn.Parameter(torch.zeros(len(LOWER), dtype=torch.float64))
        self.omega = torch.nn.Parameter(torch.tensor(4 / 3, dtype=torch.float64))

    def forward(self, features: Tensor) -> Tensor:
        """(n, 4) → (n, 5)."""
        hidden = torch.tanh(features @ self.inward + self.shift) @ self.outward
        out = self.bias + (hidden if self.sees else 0 * hidden)
        room = torch.sigmoid(out[:, :1])  # ½ + φ_0
        return torch.cat([room - 0.5, 0.24 * room * torch.tanh(out[:, 1:])], 1)


class Cycle:
    """The preconditioner of a matrix, differentiable in the smoother's parameters."""

    def __init__(self, grid: Grid, A: gs.SparseMatrix, smoother: Smoother) -> None:
        self.A = A
        entries = torch.cat([A.values, A.values.new_zeros(1)])[grid.neighbour]
        diagonal = entries[:, 0]
        change = diagonal[:, None] * smoother(entries[:, 1:] / diagonal[:, None])
        triangle = A.tril()
        self.L = triangle.with_values(triangle.values + change[grid.row, grid.kind])
        scale = diagonal.rsqrt()
        largest = gs.linalg.eigsh(A.scale_rows(scale).scale_cols(scale), 1, which="LA", tol=1e-2)[0]
        self.P = grid.T - (A @ grid.T).scale_rows(smoother.omega / largest / diagonal)
        self.Pt = self.P.T
        self.coarse = gs.linalg.amg(self.Pt @ (A @ self.P))

    def __call__(self, r: Tensor) -> Tensor:
        z = gs.linalg.solve_triangular(self.L, r)
        z = z + self.P @ self.coarse(self.Pt @ (r - self.A @ z))
        return z + gs.linalg.solve_triangular(self.L, r - self.A @ z, transpose=True)


def anisotropies(count: int, generator: torch.Generator) -> Tensor:
    """ε between 10⁻³ and 1, the logarithm uniform, and any angle: (count, 2)."""
    uniform = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    return torch.stack([10 ** (-3 * uniform[:, 0]), math.pi * uniform[:, 1]], 1)


def turning(side: int, generator: torch.Generator) -> Tensor:
    """An angle for each cell: a plane wave across the square, of at most two periods."""
    place = places(side + 1).double() / side
    direction, phase = torch.randn(2, generator=generator, dtype=torch.float64), torch.rand(1, generator=generator)
    wave = 2 * torch.rand(1, generator=generator).double() * (place @ direction) / direction.norm() + phase
    return math.pi * (1 + torch.sin(2 * math.pi * wave)) / 2


def normal(n: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(n, columns, dtype=torch.float64, generator=generator)


def residual(A: gs.SparseMatrix, b: Tensor, M: Cycle) -> Tensor:
    """log ‖b − A x‖ / ‖b‖ after STEPS steps from x = 0, the mean over columns."""
    x, _ = gs.linalg.cg(A, b, M=M, maxiter=STEPS, unrolled=True)
    return ((b - A @ x).norm(dim=0) / b.norm(dim=0)).log().mean()


def iterations(A: gs.SparseMatrix, b: Tensor, M: Cycle | gs.linalg.Preconditioner) -> Tensor:
    """To 1e-8, the mean over columns; more than 1000 count as 1000."""
    _, info = gs.linalg.cg(A, b, M=M, rtol=1e-8, maxiter=1000, check=False)
    return torch.where(info.converged, info.iterations, 1000).double().mean()


def train(
    grid: Grid,
    smoother: Smoother,
    training: int,
    seed: int,
    tick: Callable[[float], None] = lambda done: None,
    learn: bool = True,
) -> Tensor:
    """The loss of each step. One matrix a step: ε, the angle and the right-hand sides are new in each."""
    generator = torch.Generator().manual_seed(seed + 1)
    optimiser = torch.optim.Adam(smoother.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training)
    losses = []
    for step, (epsilon, angle) in enumerate(anisotropies(training, generator).tolist()):
        A = grid.matrix(epsilon, angle)
        with torch.set_grad_enabled(learn):
            loss = residual(A, normal(grid.side**2, 8, generator), Cycle(grid, A, smoother))
        if learn:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        losses.append(loss.detach())
        tick((step + 1) / training)
    return torch.stack(losses)


def compute(
    *,
    side: int,
    training: int,
    tests: int,
    larger: int,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    grid, large = Grid(side), Grid(larger)
    generator = torch.Generator().manual_seed(seed)
    start, one, learned = (Smoother(sees, generator) for sees in (True, False, True))

    def train_one(k: int, smoother: Smoother) -> Tensor:
        return train(grid, smoother, training, seed, lambda done: tick(0.8 * (k + done) / 3), learn=k > 0)

    losses = [train_one(k, smoother) for k, smoother in enumerate((start, one, learned))]
    generator.manual_seed(seed + 2)
    held_out, counts, residuals = anisotropies(tests, generator), [], []
    with torch.no_grad():
        for test, (epsilon, angle) in enumerate(held_out.tolist()):
            fields = (grid, epsilon, angle), (grid, epsilon / 1000, angle), (large, epsilon, angle)
            for where, strength, field in *fields, (large, epsilon, turning(larger, generator)):
                A, b = where.matrix(strength, field), normal(where.side**2, 4, generator)
                cycles = [Cycle(where, A, smoother) for smoother in (start, one, learned)]
                library = iterations(A, b, gs.linalg.amg(A, coarse_size=100))
                counts.append(torch.stack([library, *(iterations(A, b, M) for M in cycles)]))
                residuals.append(torch.stack([residual(A, b, M) for M in cycles]))
            tick(0.8 + 0.2 * (test + 1) / tests)
        angles = torch.linspace(0, math.pi, 61, dtype=torch.float64)
        weights = [relaxation(learned, epsilon, angles) for epsilon in STRENGTHS]
    return Result(
        loss=torch.stack(losses),
        omega=torch.stack([one.omega, learned.omega]).detach(),
        anisotropy=held_out,
        iterations=torch.stack(counts).view(tests, len(SETTINGS), len(KINDS)).permute(1, 2, 0),
        residual=torch.stack(residuals).view(tests, len(SETTINGS), 3).mean(0).exp(),
        weight=torch.stack(weights),
        side=side,
        larger=larger,
    )


def relaxation(smoother: Smoother, epsilon: float, angles: Tensor) -> Tensor:
    """a_ii / L̃_ii inside a grid, for each angle: 1 is Gauss and Seidel, more is over-relaxation."""
    grid, found = Grid(3), []
    for angle in angles:
        entries = grid.matrix(epsilon, angle).values[grid.neighbour[4]]  # of the point in the middle
        found.append(1 / (1 + smoother(entries[None, 1:] / entries[0])[0, 0]))
    return torch.stack(found)


def figures(result: Result) -> dict[str, Figure]:
    return {"learned_amg_iterations": draw_iterations(result), "learned_amg_training": draw_training(result)}


def captions() -> dict[str, str]:
    return {
        "learned_amg_iterations": "Iterations to 10⁻⁸ on anisotropies that were not seen: a point below the diagonal "
        "is a matrix on which the learned smoother needs fewer than Gauss and Seidel's, with which it began.",
        "learned_amg_training": "The loss beside that of the start on the same matrix, smoothed, and what was learned: "
        "how much a sweep over-relaxes, by the angle and the strength of the anisotropy.",
    }


def summary(result: Result) -> list[str]:
    sentences = []
    for setting, counts, residuals in zip(SETTINGS, result.iterations, result.residual, strict=True):
        library, start, one, learned = (f"{count:.1f}" for count in counts.mean(1))
        fewer, more = int((counts[3] < counts[1]).sum()), int((counts[3] > counts[1]).sum())
        sentences.append(
            f"{setting.capitalize()}: {learned} iterations; {start} at the start, {one} with the same numbers for all, "
            f"{library} of gs.linalg.amg. Fewer than at the start on {fewer} of {counts.shape[1]} matrices, more on "
            f"{more}; fewer than gs.linalg.amg on {int((counts[3] < counts[0]).sum())}. Residual after {STEPS} "
            f"steps: {residuals[2]:.1e}, at the start {residuals[0]:.1e}."
        )
    sentences.append(
        f"Grids have {result.side}² points in training and {result.larger}² where larger. ω: 1.333 at the start, "
        f"{result.omega[1]:.3f} learned."
    )
    return sentences


def draw_iterations(result: Result) -> Figure:
    figure = Figure(figsize=(5.5, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    for setting, counts in zip(SETTINGS, result.iterations, strict=True):
        axes.plot(counts[1], counts[3], "o", markersize=4, alpha=0.8, label=setting)
    ends = [result.iterations[:, 1:].min().item() * 0.9, result.iterations[:, 1:].max().item() * 1.1]
    axes.plot(ends, ends, ":", color="gray")
    axes.set(xlabel="iterations at the start", ylabel="iterations, learned", title="Anisotropies that were not seen")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def draw_training(result: Result) -> Figure:
    figure = Figure(figsize=(9, 3.6), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    window = max(1, result.loss.shape[1] // 20)
    for name, loss in zip(KINDS[2:], result.loss[1:], strict=True):
        left.plot((loss - result.loss[0]).unfold(0, window, 1).mean(1), label=name)
    left.axhline(0, linestyle=":", color="gray")
    left.set(xlabel="step of training", ylabel="log ‖r‖ less that of the start", title=f"After {STEPS} steps of CG")
    angles = torch.linspace(0, 180, result.weight.shape[1])
    for epsilon, weight in zip(STRENGTHS, result.weight, strict=True):
        right.plot(angles, weight, label=f"ε = {epsilon:g}")
    right.axhline(1, linestyle=":", color="gray")
    right.set(xlabel="angle, degrees", ylabel="a_ii / L̃_ii", title="Over-relaxation")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments)


if __name__ == "__main__":
    main()
