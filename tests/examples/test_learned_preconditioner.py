# SPDX-License-Identifier: BSD-3-Clause
"""The learned preconditioner: PCG and IC(0) are what their definitions say, and training does what the paper says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs


@pytest.fixture(scope="module")
def learned(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("learned_preconditioner")


@pytest.fixture(scope="module")
def result(learned: ModuleType) -> Any:
    return learned.compute(**learned.QUICK)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def test_laplacian(learned: ModuleType) -> None:
    assert gs.allclose(learned.laplacian(5), gs.poisson((5, 5), dtype=torch.float64))


def test_pcg_minimises_over_krylov_spaces(learned: ModuleType) -> None:
    """x⁽ᵏ⁾ is the best in the energy norm of span {M b, (M A) M b, …}: Galerkin on an orthogonal basis."""
    A, b = learned.laplacian(4), normal(16, 1)
    diagonal, coupling = 1 + 0.1 * normal(2, 16)[0], 0.3 * normal(2, 16)[1]
    L = (diagonal.diag() + coupling[1:].diag(-1)).to(torch.float64)
    M, dense = L @ L.T, A.to_dense()
    residuals = list(islice(learned.pcg(A, b, learned.bidiagonal(diagonal, coupling)), 5))
    torch.testing.assert_close(residuals[0], b)
    vectors = [M @ b]
    for residual in residuals[1:]:
        Q = torch.linalg.qr(torch.cat(vectors, 1)).Q
        x = Q @ torch.linalg.solve(Q.T @ dense @ Q, Q.T @ b)
        torch.testing.assert_close(residual, b - dense @ x)
        vectors.append(M @ (dense @ vectors[-1]))


def test_loss_can_be_differentiated(learned: ModuleType) -> None:
    A, B = learned.laplacian(3), normal(9, 2)

    def residuals(diagonal: Tensor, coupling: Tensor) -> Tensor:
        return learned.relative(A, B, learned.bidiagonal(diagonal, coupling), 3)

    inputs = (1 + 0.1 * normal(9)).requires_grad_(), (0.2 * normal(9)).requires_grad_()
    assert torch.autograd.gradcheck(residuals, inputs)


def test_incomplete_cholesky(learned: ModuleType) -> None:
    line = gs.poisson(7, dtype=torch.float64)  # no fill, so it is complete
    torch.testing.assert_close(learned.incomplete_cholesky(line).to_dense(), torch.linalg.cholesky(line.to_dense()))
    A = learned.laplacian(5)
    L = learned.incomplete_cholesky(A)
    assert L.pattern == A.tril().pattern
    torch.testing.assert_close((L @ L.T)[A.pattern.row_indices, A.indices], A.values)
    R = normal(25, 3)
    expected = torch.cholesky_solve(R, L.to_dense())
    torch.testing.assert_close(learned.factored(L)(R), expected)


def test_count_is_exact_on_a_line(learned: ModuleType) -> None:
    """With its Cholesky factor as the preconditioner, one iteration; without, one for each of two eigenvalues."""
    line, b = gs.poisson(2, dtype=torch.float64), normal(2, 4)
    assert learned.count(line, b, learned.factored(learned.incomplete_cholesky(line))) == 1
    assert learned.count(line, b, learned.none) == 2


def test_carried_by_the_distance_to_the_boundary(learned: ModuleType) -> None:
    trained = torch.arange(64.0).view(8, 8)
    assert torch.equal(learned.carried(trained, 8), trained)
    large = learned.carried(trained, 20)
    assert torch.equal(large[:4, :4], trained[:4, :4])
    assert torch.equal(large[-4:, -4:], trained[-4:, -4:])
    assert torch.equal(large[:4, -4:], trained[:4, -4:])
    assert large[4:10, 4:10].unique().tolist() == [trained[3, 3]]
    assert large[10:16, 10:16].unique().tolist() == [trained[4, 4]]


def test_first_loss_is_that_of_cg(learned: ModuleType, result: Any) -> None:
    B = torch.randn(64, learned.QUICK["vectors"], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    history = learned.relative(learned.laplacian(8), B, learned.none, 4).mean(1)
    weights = torch.tensor([0.6**3, 0.6**2, 0.6, 1], dtype=torch.float64)
    torch.testing.assert_close(result.loss[0], (weights * history[1:]).sum() / weights.sum())
    torch.testing.assert_close(result.residual[0], history[4])


def test_learned_beats_cg_at_every_iteration(result: Any) -> None:
    assert result.loss[-1] < 0.8 * result.loss[0]
    assert (result.learned[1:] < result.plain[1:]).all()
    assert result.learned[0] == pytest.approx(1)
    # Nothing told it where grid lines end.
    assert result.coupling[1:, 0].abs().max() < 0.06
    assert result.coupling[:, 1:].min() > 0.12


def test_who_wins_on_larger_grids(result: Any) -> None:
    for cg, jacobi, learned, cholesky in zip(*result.iterations.values(), strict=True):
        assert cg == jacobi  # D = 4 I
        assert cholesky < 0.6 * learned
        assert learned < cg
