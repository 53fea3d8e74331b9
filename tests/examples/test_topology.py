# SPDX-License-Identifier: BSD-3-Clause
"""Topology optimisation: elasticity is that of the textbook, the gradient that of differences, the beam stiffens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

SHAPES = [(3, 2), (2, 3, 2)]


@pytest.fixture
def topology(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("topology")


def moduli(shape: tuple[int, ...]) -> Tensor:
    return 0.5 + torch.rand(torch.Size(shape).numel(), dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def test_plane_stress_element(topology: ModuleType) -> None:
    """The closed formula of a square element: K_11 = (3 − ν) / (6 (1 − ν²)), K_12 = (1 + ν) / (8 (1 − ν²))."""
    K, nu = topology.stiffness(2), topology.POISSON
    torch.testing.assert_close(K, K.T)
    assert K[0, 0].item() == pytest.approx((1 / 2 - nu / 6) / (1 - nu**2))
    assert K[0, 1].item() == pytest.approx((1 / 8 + nu / 8) / (1 - nu**2))


@pytest.mark.parametrize("dimension", [2, 3])
def test_rigid_motions_strain_nothing_and_a_pull_does(topology: ModuleType, dimension: int) -> None:
    corner = torch.tensor(list(itertools.product((0.0, 1.0), repeat=dimension)), dtype=torch.float64)
    K, motions = topology.stiffness(dimension), topology.rigid_motions(corner)
    assert motions.shape == (dimension * 2**dimension, dimension * (dimension + 1) // 2)
    assert torch.linalg.matrix_rank(motions) == torch.linalg.matrix_rank(K, rtol=1e-12).neg() + len(K)
    assert (K @ motions).abs().max() < 1e-14
    # A stretch that contracts sideways by ν is free of stress across: twice its energy is E = 1.
    stretch = -topology.POISSON * corner
    stretch[:, 0] = corner[:, 0]
    assert (stretch.flatten() @ K @ stretch.flatten()).item() == pytest.approx(1)


@pytest.mark.parametrize("shape", SHAPES)
def test_matrix_is_the_sum_of_its_cells(topology: ModuleType, shape: tuple[int, ...]) -> None:
    d, nodes, E = len(shape), tuple(k + 1 for k in shape), moduli(shape)
    number = {place: k for k, place in enumerate(itertools.product(*map(range, nodes)))}
    K, dense = topology.stiffness(d), torch.zeros(d * len(number), d * len(number), dtype=torch.float64)
    for cell, modulus in zip(itertools.product(*map(range, shape)), E, strict=True):
        corners = [tuple(map(sum, zip(cell, c, strict=True))) for c in itertools.product((0, 1), repeat=d)]
        unknowns = [d * number[corner] + i for corner in corners for i in range(d)]
        dense[torch.tensor(unknowns)[:, None], torch.tensor(unknowns)] += modulus * K
    clamped = d * len(number) // nodes[0]
    beam = topology.Cantilever(shape)
    A = beam.matrix(E)
    gs.Pattern(A.indptr, A.indices, A.shape)  # checks it
    torch.testing.assert_close(A.to_dense(), dense[clamped:, clamped:])
    assert beam.load.nonzero().item() == d * number[(shape[0], *(k // 2 for k in shape[1:]))] + 1 - clamped


@pytest.mark.parametrize("shape", SHAPES)
def test_gradient_is_that_of_differences(topology: ModuleType, shape: tuple[int, ...]) -> None:
    beam, H = topology.Cantilever(shape), topology.averaging(shape, 1.5)

    def compliance(x: Tensor) -> Tensor:
        A = beam.matrix(topology.SOFT + (H @ x) ** topology.POWER)
        u, _ = gs.linalg.cg(A, beam.load, M=beam.multigrid(A), rtol=1e-13, adjoint_rtol=1e-13)
        torch.testing.assert_close(u, torch.linalg.solve(A.to_dense(), beam.load), rtol=1e-9, atol=1e-9)
        return beam.load @ u

    x = moduli(shape).requires_grad_()
    assert torch.autograd.gradcheck(compliance, x, rtol=1e-5)
    (slope,) = torch.autograd.grad(compliance(x), x)
    assert (slope < 0).all()  # more material is stiffer


def test_filter_keeps_constants(topology: ModuleType) -> None:
    H = topology.averaging((5, 4), 2.0)
    torch.testing.assert_close(H.sum(1), torch.ones(20, dtype=torch.float64))
    row = H.to_dense()[6]  # the cell (1, 2)
    near = torch.tensor([2.0 - math.hypot(k // 4 - 1, k % 4 - 2) for k in range(20)]).double()
    torch.testing.assert_close(row, near.clamp(min=0) / near.clamp(min=0).sum(), rtol=1e-6, atol=1e-6)


def test_next_densities_keep_the_volume(topology: ModuleType) -> None:
    x, weight = torch.full((50,), 0.4, dtype=torch.float64), torch.full((50,), 0.02, dtype=torch.float64)
    moved = topology.better(x, -torch.linspace(0.01, 9, 50, dtype=torch.float64), weight, 0.4)
    assert (weight @ moved).item() == pytest.approx(0.4)
    assert moved.diff().min() >= 0
    assert moved[0].item() == pytest.approx(0.2)  # at most 0.2 a step


@pytest.mark.parametrize("budget", [{"size": 12, "steps": 8}, {"size": 6, "steps": 8, "dimension": 3, "radius": 1.5}])
def test_beam_becomes_stiffer(topology: ModuleType, budget: dict[str, Any]) -> None:
    result = topology.compute(**budget)
    assert (result.compliance.diff() < 0).all()
    assert result.compliance[-1] < 0.45 * result.compliance[0]
    assert result.density.mean().item() == pytest.approx(0.4)
    assert 0 <= result.density.min() <= result.density.max() <= 1
    torch.testing.assert_close(result.density, result.density.flip(1), rtol=0, atol=1e-2)  # as the load is, almost
    assert result.iterations.max() < 25


def test_size_is_an_option(topology: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology.main(["--quick", "--size", "4", "--steps", "1", "--out", str(tmp_path)])
    assert "32 densities, 80 displacements" in capsys.readouterr().out
