# SPDX-License-Identifier: BSD-3-Clause
"""The nonlinear example discretises its equation, knows its Jacobian, and recovers its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

import gossamer as gs


@pytest.fixture
def newton(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("newton_pde")


def parameters() -> Tensor:
    return torch.tensor([3.0, 7.0], dtype=torch.float64).log()


def test_pattern_and_jacobian(newton: ModuleType) -> None:
    equation = newton.Equation(9)
    assert equation.pattern == gs.poisson((9, 9)).pattern
    u = torch.linspace(-1, 1, 81, dtype=torch.float64)
    J = gs.jacobian(equation, equation.pattern)(u, parameters())
    assert torch.equal(J.to_dense(), torch.func.jacfwd(equation)(u, parameters()))


def test_second_order_for_a_manufactured_solution(newton: ModuleType) -> None:
    """u = sin πx sin πy: s = -(1 + α u²) Δu - 2 α u |∇u|² + β u³."""
    errors = []
    for side in (15, 31):
        equation = newton.Equation(side)
        place = equation.h * torch.arange(1, side + 1, dtype=torch.float64)
        y, x = (math.pi * t for t in torch.meshgrid(place, place, indexing="ij"))
        u = x.sin() * y.sin()
        slope = math.pi**2 * ((x.cos() * y.sin()) ** 2 + (x.sin() * y.cos()) ** 2)
        alpha, beta = parameters().exp()
        equation.source = ((1 + alpha * u**2) * 2 * math.pi**2 * u - 2 * alpha * u * slope + beta * u**3).flatten()
        errors.append((equation.solve(parameters()) - u.flatten()).abs().max().item())
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_gradient_is_that_of_differences(newton: ModuleType) -> None:
    equation = newton.Equation(4)
    p = parameters().requires_grad_()
    assert torch.autograd.gradcheck(lambda p: equation.solve(p).square().sum(), p)


def test_recovers_the_parameters(newton: ModuleType) -> None:
    torch.set_num_threads(1)
    result = newton.compute(**newton.QUICK)
    assert int(result.observed.sum()) == 22  # a tenth of 15 × 15 points
    assert result.residuals[-1] < 1e-10 * result.residuals[0]
    assert result.colours == 5
    assert result.misfit[0] > 1000
    assert 0.3 < result.misfit[-1] < 1.6  # down to the noise
    torch.testing.assert_close(result.parameters[-1], torch.tensor(newton.TRUTH).double(), rtol=0.05, atol=0)
