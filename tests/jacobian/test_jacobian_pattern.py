# SPDX-License-Identifier: BSD-3-Clause
"""Patterns of Jacobians that are found by probing, against patterns that are known."""

from __future__ import annotations

import pytest
import torch
from jacobian_functions import bidiagonal, differences, diffusion, grid, numbers
from torch import Tensor

import gossamer as gs

f64 = torch.float64


@pytest.mark.parametrize("dtype", [f64, torch.float32])
def test_pattern_is_found(dtype: torch.dtype) -> None:
    for side in (3, 8, 40):
        assert gs.jacobian_pattern(diffusion(side), numbers(side * side, dtype)) == grid(side)
    P = gs.jacobian_pattern(differences, torch.zeros(1000, dtype=dtype))  # half of the entries are 0 there
    assert bidiagonal(999) == P
    assert P.indices.dtype is torch.int32


def test_pattern_of_random_functions() -> None:
    """Up to about twenty entries a row, some rows without any."""
    B = gs.random(3000, 2000, 8 / 2000, generator=torch.Generator().manual_seed(3), dtype=f64)
    for seed in range(3):
        P = gs.jacobian_pattern(lambda x: torch.sin(B @ x), numbers(2000, seed=seed), seed=seed)
        assert B.pattern == P


def test_pattern_with_full_rows_and_columns() -> None:
    def f(u: Tensor) -> Tensor:
        return torch.cat([u[1:] * u[:-1] * u[5], u.square().sum()[None], torch.zeros(4, dtype=u.dtype)])

    u = numbers(1500)
    assert gs.jacobian_pattern(f, u) == gs.from_dense(torch.func.jacfwd(f)(u)).pattern


def test_pattern_unites_points() -> None:
    """An entry that is 0 at x is found near it, unless x alone is asked for."""
    square = lambda u: u * u  # noqa: E731
    assert gs.jacobian_pattern(square, torch.zeros(300, dtype=f64)).nnz == 300
    assert gs.jacobian_pattern(square, torch.zeros(300, dtype=f64), points=1).nnz == 0
    log = torch.log  # of positive numbers, which the points near x are, too
    assert gs.jacobian_pattern(log, torch.full((300,), 1e-6, dtype=f64)).nnz == 300


def test_pattern_is_reproducible_and_takes_arguments() -> None:
    f, u = diffusion(20), numbers(400)
    assert gs.jacobian_pattern(f, u, 2.0, seed=5) == gs.jacobian_pattern(f, u, 3.0, seed=5, chunk_size=7)


def test_pattern_of_a_constant_is_empty() -> None:
    for n in (3, 500):
        u = numbers(n)
        P = gs.jacobian_pattern(lambda u: torch.ones(7, dtype=f64), u)
        assert P.shape == (7, n)
        assert P.nnz == 0
        J = gs.jacobian(lambda u: torch.ones(7, dtype=f64))(u)
        assert J.nnz == 0
        assert torch.equal(J @ u, torch.zeros(7, dtype=f64))
    assert gs.jacobian_pattern(lambda u: u, torch.empty(0, dtype=f64)).shape == (0, 0)
    assert gs.jacobian(lambda u: u, gs.eye(0))(torch.empty(0, dtype=f64)).shape == (0, 0)


def test_pattern_kept_when_asked() -> None:
    def f(u: Tensor) -> Tensor:
        return torch.where(u[0] > 0, u, u.flip(0))  # other entries elsewhere

    u = numbers(200).abs()
    J = gs.jacobian(f)
    assert J(u).nnz == 200
    assert J(-u).nnz == 200
    assert J.pattern is None
    K = gs.jacobian(f, keep_pattern=True)
    first = K(u)
    assert K(2 * u).pattern is first.pattern is K.pattern
    assert torch.equal(K(-u).to_dense(), torch.func.jacfwd(f)(-u))  # it grows
    assert K.pattern.nnz == 400
    assert torch.equal(K(u).to_dense(), torch.eye(200, dtype=f64))


def test_pattern_of_a_hessian_kept_when_asked() -> None:
    def f(u: Tensor) -> Tensor:
        return torch.where(u[0] > 0, u.square().sum(), (u[1:] * u[:-1]).sum())

    u = numbers(50).abs()
    H = gs.hessian(f)
    assert H(u).nnz == 50
    assert H(-u).nnz == 98
    assert H.pattern is None
    K = gs.hessian(f, keep_pattern=True)
    assert K(u).pattern is K.pattern
    assert torch.equal(K(-u).to_dense(), torch.func.hessian(f)(-u))  # it grows
    assert K.pattern.nnz == 148
