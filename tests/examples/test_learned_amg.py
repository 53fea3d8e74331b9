# SPDX-License-Identifier: BSD-3-Clause
"""The learned smoother: elements and the cycle are what they should be, and learning beats the start where unseen."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs


@pytest.fixture(scope="module")
def learned(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("learned_amg")


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def moved(learned: ModuleType) -> Any:
    """A smoother that is not at the start any more."""
    smoother = learned.Smoother(True, generator())
    with torch.no_grad():
        for parameter in (smoother.outward, smoother.bias):
            parameter += 0.2 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator())
    return smoother


@pytest.mark.parametrize(("epsilon", "angle"), [(1.0, 0.0), (0.1, 0.0), (0.1, torch.pi / 2), (0.03, 0.4)])
def test_energy_of_a_plane_is_exact(learned: ModuleType, epsilon: float, angle: float) -> None:
    """A applied to u = g·x is 0 inside; bilinear elements give (1, 4, 1)/6 ⊗ (−1, 2, −1) for each axis."""
    grid = learned.Grid(5)
    dense = grid.matrix(epsilon, angle).to_dense()
    torch.testing.assert_close(dense, dense.T)
    x, y = (t.flatten().double() for t in torch.meshgrid(torch.arange(5), torch.arange(5), indexing="xy"))
    for plane in (x, y, torch.ones(25).double()):
        assert (dense @ plane).view(5, 5)[1:-1, 1:-1].abs().max() < 1e-13
    # x² has the flux (c_xx, c_xy) 2x: its equation is −2 c_xx everywhere.
    c, s = (f(torch.tensor(angle, dtype=torch.float64)) for f in (torch.cos, torch.sin))
    inside = (dense @ (x * x)).view(5, 5)[1:-1, 1:-1]
    torch.testing.assert_close(inside, (-2 * (c * c + epsilon * s * s)).expand(3, 3), rtol=1e-12, atol=1e-12)
    inside = (dense @ (x * y)).view(5, 5)[1:-1, 1:-1]
    torch.testing.assert_close(inside, (-2 * c * s * (1 - epsilon)).expand(3, 3), rtol=1e-12, atol=1e-12)


def test_start_is_gauss_and_seidel(learned: ModuleType) -> None:
    grid = learned.Grid(7)
    A = grid.matrix(0.1, 0.5)
    cycle = learned.Cycle(grid, A, learned.Smoother(True, generator()))
    assert torch.equal(cycle.L.to_dense(), A.to_dense().tril())


def test_changes_stand_where_they_belong(learned: ModuleType) -> None:
    grid = learned.Grid(4)
    A, smoother = grid.matrix(0.2, 1.0), moved(learned)
    dense, change = A.to_dense(), torch.zeros(16, 16, dtype=torch.float64)
    for i in range(16):
        there = [(i // 4 + y, i % 4 + x) for y, x in learned.LOWER]
        numbers = [y * 4 + x if 0 <= y < 4 and 0 <= x < 4 else None for y, x in there]
        entries = torch.stack([dense[i, j] if j is not None else torch.zeros(()).double() for j in numbers])
        phi = smoother(entries[None, 1:] / entries[0])[0]
        for j, value in zip(numbers, phi, strict=True):
            if j is not None:
                change[i, j] = dense[i, i] * value
    torch.testing.assert_close(learned.Cycle(grid, A, smoother).L.to_dense(), dense.tril() + change)


@pytest.mark.parametrize("epsilon", [1.0, 0.01])
def test_cycle_is_symmetric_positive_definite(learned: ModuleType, epsilon: float) -> None:
    grid, smoother = learned.Grid(8), moved(learned)
    with torch.no_grad():
        M = learned.Cycle(grid, grid.matrix(epsilon, 0.7), smoother)(torch.eye(64, dtype=torch.float64))
    torch.testing.assert_close(M, M.T, rtol=1e-10, atol=1e-10)
    assert torch.linalg.eigvalsh(M).min() > 0


def test_loss_can_be_differentiated(learned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "STEPS", 4)  # nine steps leave rounding errors of so small a matrix
    grid = learned.Grid(6)
    A, b, smoother = grid.matrix(0.1, 0.5), learned.normal(36, 2, generator()), moved(learned)

    def loss(omega: Tensor, bias: Tensor) -> Tensor:
        smoother.omega, smoother.bias = omega, bias
        result: Tensor = learned.residual(A, b, learned.Cycle(grid, A, smoother))
        return result

    omega, bias = smoother.omega.detach(), smoother.bias.detach()
    del smoother.omega, smoother.bias  # plain tensors now
    assert torch.autograd.gradcheck(loss, (omega.requires_grad_(), bias.requires_grad_()))


def test_learned_beats_the_start_on_what_it_has_not_seen(learned: ModuleType) -> None:
    torch.set_num_threads(1)
    grid = learned.Grid(15)
    start, smoother = learned.Smoother(True, generator()), learned.Smoother(True, generator())
    unlearned = learned.train(grid, start, 100, 0, learn=False)
    loss = learned.train(grid, smoother, 100, 0)
    assert loss[0] == unlearned[0]
    assert (loss - unlearned)[-20:].mean() < -0.3
    counts = []
    with torch.no_grad():
        for epsilon, angle in ((0.02, 0.2), (0.1, 2.0), (0.005, 0.9), (0.03, 1.5)):
            for where in grid, learned.Grid(30):
                A, b = where.matrix(epsilon, angle), learned.normal(where.side**2, 4, generator())
                counts.append([learned.iterations(A, b, learned.Cycle(where, A, s)) for s in (start, smoother)])
    before, after = torch.tensor(counts).T
    assert after.mean() < 0.92 * before.mean()
    assert (after <= before + 1).all()


def test_iterations_that_do_not_end_count_as_many(learned: ModuleType) -> None:
    A, b = gs.poisson(5, dtype=torch.float64), torch.ones(5, 2, dtype=torch.float64)
    assert learned.iterations(A, b, gs.diag(-torch.ones(5, dtype=torch.float64))) == 1000
