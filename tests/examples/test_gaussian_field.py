# SPDX-License-Identifier: BSD-3-Clause
"""The Gaussian field example: its likelihood and its posterior against dense mathematics, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

f64 = torch.float64


@pytest.fixture
def field(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("gaussian_field")


def test_likelihood_is_that_of_a_dense_gaussian(field: ModuleType) -> None:
    """y is normal with the covariance B Q⁻¹ Bᵀ + σ² I: value, gradient, mean and deviation."""
    model, observed = field.Field(5), torch.tensor([0, 3, 7, 8, 12, 20, 24])
    y = torch.linspace(-1, 1, 7, dtype=f64)
    theta = torch.tensor([-0.5, 0.2, -0.9], dtype=f64, requires_grad=True)
    posterior = field.Posterior(model, observed, y, theta)
    Q = model.precision(theta[0], theta[1]).to_dense()
    A = (2 * theta[0]).exp() * torch.eye(25, dtype=f64) + model.laplacian.to_dense()
    torch.testing.assert_close(Q, (2 * theta[1]).exp() * A)
    noise = (2 * theta[2]).exp() * torch.eye(7, dtype=f64)
    prior = torch.linalg.inv(Q)
    covariance = prior[observed][:, observed] + noise
    want = -torch.distributions.MultivariateNormal(torch.zeros(7, dtype=f64), covariance).log_prob(y)
    torch.testing.assert_close(posterior.negative_log_likelihood, want)
    (got,) = torch.autograd.grad(posterior.negative_log_likelihood, theta)
    torch.testing.assert_close(got, torch.autograd.grad(want, theta, retain_graph=True)[0])
    gain = prior[:, observed] @ torch.linalg.inv(covariance)
    torch.testing.assert_close(posterior.mean, gain @ y)
    left = prior - gain @ prior[observed]
    torch.testing.assert_close(posterior.deviation(), left.diagonal().sqrt())


def test_draws_have_the_precision(field: ModuleType) -> None:
    model = field.Field(3)
    zero = torch.zeros((), dtype=f64)
    Q = model.precision(zero, zero)
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([model.draw(Q, generator) for _ in range(4000)])
    torch.testing.assert_close(draws.T @ draws / 4000, torch.linalg.inv(Q.to_dense()), rtol=0.1, atol=0.02)


def test_finds_the_parameters(field: ModuleType) -> None:
    result = field.compute(side=40, steps=15, fraction=0.5)
    assert result.likelihood[-1] < result.likelihood[0]
    truth = torch.tensor(list(field.TRUTH.values()), dtype=f64)
    assert (result.parameters[-1] / truth).log().abs().max() < 0.4
    inside = ((result.mean - result.truth).abs() < 1.96 * result.deviation).double().mean()
    assert 0.9 < inside < 0.99
    hidden = result.deviation[13:20, 13:20]
    assert hidden[3, 3] > 1.15 * result.deviation.median()  # nobody looked into that square
