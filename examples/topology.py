# SPDX-License-Identifier: BSD-3-Clause
"""Topology optimisation: where to put material so that a beam is stiff, through conjugate gradients and multigrid.

A beam of unit cells, in 2 or 3 dimensions, is clamped at its left end and pulled down at the middle of its right end.
Each cell has a density x between 0 and 1; with x̃ = H x, the densities averaged over a ball (a filter, without which
cells would form checkerboards), its modulus is E = E_min + x̃³ (1 − E_min), so that half a density is a bad bargain.
Sought is

    min_x  c(x) = fᵀ u,        A(x) u = f,  A(x) = Σ_cells E K,        mean x̃ = v:

linear elasticity on cubes with one K for all. A's pattern never changes, its values are a linear function of E, so
autograd finds dc/dx. A is solved by conjugate gradients, with a cycle of multigrid that knows the rigid motions as the
preconditioner, and so is the derivative: one more solve with Aᵀ. No factor is ever made.

Each step multiplies x by √(−(dc/dx) / (λ dv/dx)), within bounds, with λ such that the mean is v: optimality criteria.

With ``--size 56 --dimension 3`` there are 1.09 million unknowns: 11.4 GB in all, where the values of a factor alone
would be about 19 GB (docs/preconditioners.md).
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

import gossamer as gs
from report.section import run_from_command_line

TITLE = "Topology optimisation without a factor"
SOURCE = "our own: the density method (Bendsøe, Sigmund 2003) through conjugate gradients and smoothed aggregation"
QUICK: dict[str, Any] = {"size": 10, "steps": 5}
DEFAULT: dict[str, Any] = {"size": 80, "steps": 40}
FULL: dict[str, Any] = {"size": 32, "steps": 30, "dimension": 3}
SOFT = 1e-4  # E_min
POWER = 3
POISSON = 0.3  # ν


@dataclass
class Result:
    density: Tensor  # x̃ of the cells, length × size (× size)
    unknowns: int
    entries: int  # of A
    compliance: Tensor  # (steps + 1,)
    iterations: Tensor  # (steps + 1,) of conjugate gradients, for u
    levels: list[int]  # rows of multigrid's
    seconds: float  # of a step, CPU


def stiffness(dimension: int) -> Tensor:
    """K of a unit cell with E = 1: rows and columns are corner by corner, its displacements one after the other.

    K_(ai)(bj) = ∫ μ (δ_ij ∇N_a·∇N_b + ∂_j N_a ∂_i N_b) + λ ∂_i N_a ∂_j N_b, by two Gauss points a direction. In 2
    dimensions the stress is plane.
    """
    shear, lame = 1 / (2 * (1 + POISSON)), POISSON / (1 + POISSON) / (1 - (dimension - 1) * POISSON)
    corner = torch.tensor(list(itertools.product((0, 1), repeat=dimension)), dtype=torch.float64)
    side = 2 * corner - 1
    points = 0.5 + side / math.sqrt(12)
    factors = 1 - corner + side * points[:, None]  # N_a(point) is the product over directions
    gradient = torch.stack(  # (points, corners, dimension)
        [side[:, k] * factors[..., [m for m in range(dimension) if m != k]].prod(-1) for k in range(dimension)], -1
    )
    g, one = gradient / math.sqrt(len(points)), torch.eye(dimension, dtype=torch.float64)
    K = shear * torch.einsum("qak,qbk,ij->aibj", g, g, one)
    K += shear * torch.einsum("qaj,qbi->aibj", g, g) + lame * torch.einsum("qai,qbj->aibj", g, g)
    return K.reshape(len(corner) * dimension, -1)


class Cantilever:
    """A(E) on cells that stand in a grid of this shape; its left end, the first nodes, is clamped.

    A node meets the 3^d nodes around it in the cells that they share: with U_(p)(a) the modulus of the cell of which
    node p is corner a, or 0 outside, the entries of its rows are Σ_a U_(p)(a) K_(ai)(bj), b the corner of the same cell
    at the offset. One dense product yields all values, in the order of the pattern, and some for nodes that are not.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, d = shape, len(shape)
        nodes = tuple(k + 1 for k in shape)
        clamped = math.prod(nodes[1:])
        place, corners = _places(nodes)[clamped:], _places((2,) * d)
        cell = place[:, None] - corners
        inside = ((cell >= 0) & (cell < torch.tensor(shape))).all(-1)
        self.cell = torch.where(inside, _numbers(cell, shape), math.prod(shape)).int()  # one more cell: nothing
        self.n = d * len(place)

        offsets = _places((3,) * d) - 1
        other = place[:, None] + offsets
        exists = ((other >= 0) & (other < torch.tensor(nodes))).all(-1) & (other[..., 0] > 0)
        column = ((_numbers(other, nodes) - clamped) * d).int()[:, None, :, None] + torch.arange(d, dtype=torch.int32)
        full = len(place), d, len(offsets), d  # (node, i, offset, j): rows and columns in order
        self.stored = exists[:, None, :, None].expand(full)
        indptr = torch.nn.functional.pad((d * exists.sum(1)).repeat_interleave(d).cumsum(0), (1, 0)).int()
        self.pattern = gs.Pattern(indptr, column.expand(full)[self.stored], (self.n, self.n))

        self.stencil = torch.zeros(len(corners), d, len(offsets), d, dtype=torch.float64)
        K = stiffness(d).view(len(corners), d, len(corners), d)
        for (a, from_), (b, to) in itertools.product(enumerate(corners), repeat=2):
            self.stencil[a, :, _numbers(to - from_ + 1, (3,) * d)] = K[a, :, b]

        self.rigid = rigid_motions(place - place.double().mean(0))
        end = _numbers(torch.tensor([shape[0], *(k // 2 for k in shape[1:])]), nodes) - clamped
        self.load = torch.zeros(self.n, dtype=torch.float64)
        self.load[end * d + 1] = -1

    def matrix(self, modulus: Tensor) -> gs.SparseMatrix:
        """A(E), differentiable in the cells' moduli."""
        U = torch.cat([modulus, modulus.new_zeros(1)])[self.cell]
        return gs.SparseMatrix(self.pattern, (U @ self.stencil.flatten(1)).view(self.stored.shape)[self.stored])

    def multigrid(self, A: gs.SparseMatrix) -> gs.linalg.Amg:
        return gs.linalg.amg(A.detach(), near_null_space=self.rigid, block_size=len(self.shape))


def rigid_motions(place: Tensor) -> Tensor:
    """The displacements (n, 3) or (n, 6) that strain nothing: along each axis, and around each pair of axes."""
    points, dimension = place.shape
    motions = [torch.eye(dimension, dtype=place.dtype)[k].expand(points, -1) for k in range(dimension)]
    for k, m in itertools.combinations(range(dimension), 2):
        turn = torch.zeros_like(place)
        turn[:, k], turn[:, m] = -place[:, m], place[:, k]
        motions.append(turn)
    return torch.stack([motion.flatten() for motion in motions], 1)


def averaging(shape: tuple[int, ...], radius: float) -> gs.SparseMatrix:
    """H: means over the cells that are nearer than the radius, weighted by how much nearer."""
    cell, reach = _places(shape), range(-math.ceil(radius) + 1, math.ceil(radius))
    rows, cols, weights = [], [], []
    for offset in itertools.product(reach, repeat=len(shape)):
        weight = radius - math.hypot(*offset)
        there = cell + torch.tensor(offset)
        inside = ((there >= 0) & (there < torch.tensor(shape))).all(1).nonzero()[:, 0] if weight > 0 else cell[:0, 0]
        rows.append(inside)
        cols.append(_numbers(there[inside], shape))
        weights.append(torch.full((len(inside),), weight, dtype=torch.float64))
    n = len(cell)
    H = gs.from_coo(torch.cat(rows), torch.cat(cols), torch.cat(weights), (n, n))
    return H.scale_rows(1 / H.sum(1))


def better(x: Tensor, slope: Tensor, weight: Tensor, volume: float, move: float = 0.2) -> Tensor:
    """The next densities: optimality criteria, with λ found by halving. weight · x is the mean of x̃."""
    low, high = 0.0, 1e9
    scale = (-slope / weight).clamp(min=0)
    scale = scale / scale.mean()
    for _ in range(100):
        middle = (low + high) / 2 if low else high / 2
        moved = (x * (scale / middle).sqrt()).clamp(x - move, x + move).clamp(0, 1)
        low, high = (middle, high) if weight @ moved > volume else (low, middle)
    return moved


def compute(
    *,
    size: int,
    steps: int,
    dimension: int = 2,
    volume: float = 0.4,
    radius: float = 2.5,
    rtol: float = 1e-6,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """``size`` cells high, and deep in 3 dimensions, and twice as long. Nothing is random: ``seed`` changes nothing."""
    shape = (2 * size, *[size] * (dimension - 1))
    beam, H = Cantilever(shape), averaging(shape, radius)
    cells = H.shape[0]
    weight = H.sum(0) / cells
    x, u, levels = torch.full((cells,), volume, dtype=torch.float64), None, []
    compliances, iterations = [], []
    start = time.process_time()
    for step in range(steps + 1):
        x.requires_grad_(step < steps)
        A = beam.matrix(SOFT + (H @ x) ** POWER * (1 - SOFT))
        M = beam.multigrid(A)
        u, info = gs.linalg.cg(A, beam.load, u, M=M, rtol=rtol, adjoint_rtol=rtol)
        compliance = beam.load @ u
        compliances.append(compliance.detach())
        iterations.append(info.iterations)
        if step < steps:
            (slope,) = torch.autograd.grad(compliance, x)  # one more solve
            x = better(x.detach(), slope, weight, volume)
        u, levels = u.detach(), M.sizes
        tick(step / steps)
    seconds = (time.process_time() - start) / (steps + 1)
    return Result(
        density=(H @ x).view(shape),
        unknowns=beam.n,
        entries=beam.pattern.nnz,
        compliance=torch.stack(compliances),
        iterations=torch.stack(iterations),
        levels=levels,
        seconds=seconds,
    )


def _places(shape: tuple[int, ...]) -> Tensor:
    """The coordinates of the points of a grid, the last one fastest: (points, dimension)."""
    return torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij"), -1).flatten(0, -2)


def _numbers(places: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Where points stand in ``_places``."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return (places * torch.tensor(strides)).sum(-1)


def figures(result: Result) -> dict[str, Figure]:
    return {"topology_density": draw_density(result), "topology_history": draw_history(result)}


def captions() -> dict[str, str]:
    return {
        "topology_density": "The densities found: clamped on the left, pulled down at the middle of the right end. In "
        "3 dimensions, the mean over the depth.",
        "topology_history": "The compliance against steps, and how many iterations of conjugate gradients a solve "
        "took, while stiffnesses come to differ by 10⁴.",
    }


def summary(result: Result) -> list[str]:
    steps = len(result.compliance) - 1
    return [
        f"{result.density.numel()} densities, {result.unknowns} displacements, {result.entries} entries of the matrix; "
        f"multigrid has {len(result.levels)} levels of {', '.join(map(str, result.levels))} rows.",
        f"The compliance fell from {result.compliance[0]:.1f} to {result.compliance[-1]:.1f} in {steps} steps with the "
        "same amount of material.",
        f"A solve took {int(result.iterations.min())} to {int(result.iterations.max())} iterations; a step, with the "
        f"set-up, the solve and the gradient, {result.seconds:.2f} s of CPU.",
    ]


def draw_density(result: Result) -> Figure:
    figure = Figure(figsize=(7, 3.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    density = result.density if result.density.dim() == 2 else result.density.mean(2)
    length, height = density.shape
    image = axes.imshow(density.T.numpy(), cmap="gray_r", origin="lower", extent=(0, length, 0, height), vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="density", shrink=0.8)
    axes.set(xlabel="x, cells", ylabel="y, cells", title=f"A beam of {result.density.numel()} cells")
    return figure


def draw_history(result: Result) -> Figure:
    figure = Figure(figsize=(7, 3.8), dpi=130, layout="constrained")
    left = figure.subplots()
    right = left.twinx()
    lines = left.semilogy(result.compliance, "o-", color="tab:blue", markersize=3, label="compliance")
    lines += right.plot(result.iterations, "s--", color="tab:orange", markersize=3, label="iterations (right)")
    left.set(xlabel="step", ylabel="fᵀ u", title="The beam becomes stiffer")
    right.set_ylabel("iterations of conjugate gradients")
    right.set_ylim(bottom=0)
    left.grid(alpha=0.3)
    left.legend(handles=lines)
    return figure


def main(arguments: list[str] | None = None) -> None:
    sizes = {"size": "cells of the beam's height", "dimension": "2 or 3", "steps": "of the optimisation"}
    run_from_command_line(sys.modules[__name__], arguments, numbers=sizes)


if __name__ == "__main__":
    main()
