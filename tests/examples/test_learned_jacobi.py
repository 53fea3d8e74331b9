# SPDX-License-Identifier: BSD-3-Clause
"""The learned Jacobi weights are the minimum that algebra gives."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

import gossamer as gs


@pytest.fixture
def jacobi(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("learned_jacobi")


def test_repeats_with_its_seed(jacobi: ModuleType) -> None:
    first, again, other = (jacobi.compute(vectors=8, steps=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.loss, again.loss)
    assert not torch.equal(first.loss, other.loss)


def test_weights_of_one_are_plain_jacobi(jacobi: ModuleType) -> None:
    A = gs.poisson(5, dtype=torch.float64)
    dense, X = A.to_dense(), torch.randn(5, 3, dtype=torch.float64)
    D = dense.diagonal().diag()
    expected = torch.linalg.solve(D, -(dense - D) @ X)  # x ← D⁻¹ (b − (A − D) x), b = 0
    torch.testing.assert_close(jacobi.relax(A, torch.ones(5, dtype=torch.float64), X), expected)


def test_finds_the_best_weights(jacobi: ModuleType) -> None:
    torch.set_num_threads(1)  # small tensors
    result = jacobi.compute(vectors=4096, steps=300)
    omega = result.weights[-1]
    assert result.loss[-1] < result.loss[0]
    assert torch.equal(omega.argsort(descending=True)[:2].sort().values, torch.tensor([0, 15]))  # the ends
    torch.testing.assert_close(omega, omega.flip(0), atol=0.04, rtol=0)
    # The expected loss is quadratic in Ω; its minimum solves (A ∘ A²) ω = 2 diag(A²), as D = 2 I.
    A = gs.poisson(16, dtype=torch.float64).to_dense()
    best = torch.linalg.solve(A * (A @ A), 2 * (A @ A).diagonal())
    torch.testing.assert_close(omega, best, atol=0.03, rtol=0)
    torch.testing.assert_close(result.best, best)
