# SPDX-License-Identifier: BSD-3-Clause
"""The heavyball example iterates as the equation says, and finds the best step and momentum there are."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

import gossamer as gs


@pytest.fixture
def heavyball(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("heavyball")


def left_energy(alpha: Tensor, beta: Tensor, n: int = 16, iterations: int = 12) -> Tensor:
    """Σ λ p(λ)², by the roots z of z² = (1 + β − α λ) z − β: p = c z₁ᴸ + (1 − c) z₂ᴸ with p₀ = 1, p₁ = 1 − α λ."""
    eigenvalues = 2 - 2 * torch.cos(torch.arange(1, n + 1, dtype=torch.float64) * torch.pi / (n + 1))
    alpha, beta = alpha[..., None], beta[..., None]
    b = 1 + beta - alpha * eigenvalues
    root = (b.square() - 4 * beta).to(torch.complex128).sqrt()
    z1, z2 = (b + root) / 2, (b - root) / 2
    c = (1 - alpha * eigenvalues - z2) / (z1 - z2)
    p = (c * z1**iterations + (1 - c) * z2**iterations).real
    return (eigenvalues * p.square()).sum(-1)


def companion(A: Tensor, alpha: float, beta: float) -> Tensor:
    """(x⁽ᵏ⁺¹⁾, x⁽ᵏ⁾) from (x⁽ᵏ⁾, x⁽ᵏ⁻¹⁾)."""
    I = torch.eye(len(A), dtype=A.dtype)
    return torch.cat([torch.cat([(1 + beta) * I - alpha * A, -beta * I], 1), torch.cat([I, 0 * I], 1)])


def test_iterates_as_a_power_of_the_companion_matrix(heavyball: ModuleType) -> None:
    A, I = gs.poisson(6, dtype=torch.float64), torch.eye(6, dtype=torch.float64)
    both = torch.linalg.matrix_power(companion(A.to_dense(), 0.3, 0.4), 7) @ torch.cat([I, I])  # x⁽⁻¹⁾ = x⁽⁰⁾
    found = heavyball.heavyball(A, I, torch.tensor(0.3), torch.tensor(0.4), 7)
    torch.testing.assert_close(found, both[:6])


def test_polyak_has_the_smallest_spectral_radius(heavyball: ModuleType) -> None:
    A = gs.poisson(6, dtype=torch.float64).to_dense()
    alpha, beta = heavyball.polyak(torch.linalg.eigvalsh(A)).tolist()

    def radius(da: float, db: float) -> float:
        return torch.linalg.eigvals(companion(A, alpha + da, beta + db)).abs().max().item()

    assert radius(0, 0) == pytest.approx(beta**0.5, abs=1e-6)  # double roots: half the digits
    assert all(radius(*step) > radius(0, 0) + 1e-3 for step in ((0.02, 0), (-0.02, 0), (0, 0.02), (0, -0.02)))


def test_expected_loss_is_that_of_many_vectors(heavyball: ModuleType) -> None:
    A, X = gs.poisson(16, dtype=torch.float64), torch.eye(16, dtype=torch.float64)  # Σ over e_i: a trace
    alpha, beta = torch.tensor([0.31, 0.65], dtype=torch.float64), torch.tensor([0.12, 0.43], dtype=torch.float64)
    traces = [heavyball.energy(A, heavyball.heavyball(A, X, *each, 12)) for each in zip(alpha, beta, strict=True)]
    eigenvalues = torch.linalg.eigvalsh(A.to_dense())
    torch.testing.assert_close(heavyball.expected(eigenvalues, alpha, beta, 12), torch.stack(traces))
    torch.testing.assert_close(left_energy(alpha, beta), torch.stack(traces))


def test_finds_the_best_parameters_of_a_grid_search(heavyball: ModuleType) -> None:
    torch.set_num_threads(1)
    result = heavyball.compute(vectors=512, steps=150)
    assert result.train[0] > 1000 * result.train[-1]
    assert result.test[0] > 1000 * result.test[-1]
    axes = torch.linspace(0.001, 1, 200, dtype=torch.float64), torch.linspace(-0.201, 0.9, 200, dtype=torch.float64)
    alpha, beta = torch.meshgrid(*axes, indexing="ij")
    everywhere = left_energy(alpha, beta)
    best = everywhere.argmin()
    assert left_energy(*result.parameters[-1]) < 1.01 * everywhere.min()
    grid_search = torch.stack([alpha.flatten()[best], beta.flatten()[best]])
    torch.testing.assert_close(result.parameters[-1], grid_search, atol=0.02, rtol=0)
