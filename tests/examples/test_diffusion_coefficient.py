# SPDX-License-Identifier: BSD-3-Clause
"""The diffusion example discretises its equation, differentiates it, and recovers a material."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor


@pytest.fixture
def diffusion(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("diffusion_coefficient")


def test_matrix_conserves(diffusion: ModuleType) -> None:
    """What leaves one cell enters the next: rows add up to what flows into the boundary, 2 κ for each face there."""
    model = diffusion.Diffusion(4)
    theta = torch.linspace(-1, 1, 16, dtype=torch.float64).view(4, 4)
    A = model.matrix(theta)
    dense = A.to_dense()
    torch.testing.assert_close(dense, dense.T)
    faces = torch.tensor([[2.0, 1, 1, 2], [1, 0, 0, 1], [1, 0, 0, 1], [2, 1, 1, 2]], dtype=torch.float64)
    torch.testing.assert_close(A.sum(1), (2 * faces * theta.exp()).flatten())
    kappa = theta.exp().flatten()
    assert -dense[0, 1] == pytest.approx(2 / (1 / kappa[0] + 1 / kappa[1]))  # resistances in a row add up
    assert model.matrix(2 * theta).pattern is A.pattern


def test_second_order_for_a_manufactured_solution(diffusion: ModuleType) -> None:
    """κ = eˣ, u = sin πx sin πy: f = eˣ (2π² sin πx − π cos πx) sin πy."""
    errors = []
    for side in (16, 32):
        model = diffusion.Diffusion(side)
        x, y = model.centres()
        u = (math.pi * x).sin() * (math.pi * y).sin()
        f = x.exp() * (2 * math.pi**2 * u - math.pi * (math.pi * x).cos() * (math.pi * y).sin())
        errors.append((model.solve(x, f.reshape(-1, 1)) - u.reshape(-1, 1)).abs().max().item())
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_gradient_is_that_of_differences(diffusion: ModuleType) -> None:
    model = diffusion.Diffusion(4)
    x, y = model.centres()
    f = diffusion.bumps(x, y, 2, 0.2)

    def loss(theta: Tensor) -> Tensor:
        return model.solve(theta, f).square().sum() + diffusion.variation(theta)

    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(4, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(loss, theta)


def test_variation_of_a_step_is_its_height_times_its_length(diffusion: ModuleType) -> None:
    theta = torch.zeros(10, 10, dtype=torch.float64)
    theta[:, 6:] = 3
    assert diffusion.variation(theta, 0) == pytest.approx(3)


def test_recovers_the_material(diffusion: ModuleType) -> None:
    torch.set_num_threads(1)
    result = diffusion.compute(**diffusion.QUICK)
    assert int(result.observed.sum()) == 26  # a tenth of 16 × 16 cells
    assert result.error[-1] < 0.5 * result.error[0]
    assert result.misfit[0] > 100
    assert 0.3 < result.misfit[-1] < 1.5  # down to the noise
    kappa = result.truth.exp()
    assert result.error[-1] == pytest.approx(((result.found.exp() - kappa).norm() / kappa.norm()).item())
