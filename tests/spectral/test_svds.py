# SPDX-License-Identifier: BSD-3-Clause
"""Singular values: against SciPy and dense SVD, derivatives of two orders, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from symmetric_matrices import gradient_of
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs

f64 = torch.float64
svds = gs.linalg.svds
SHAPES = [(3, 2), (30, 20), (20, 30), (90, 50), (40, 70), (60, 60)]


def sample(m: int, n: int) -> gs.SparseMatrix:
    generator = torch.Generator().manual_seed(m)
    D = torch.randn(m, n, dtype=f64, generator=generator) * (torch.rand(m, n, generator=generator) < 0.3)
    return gs.from_dense(D + 3 * torch.eye(m, n, dtype=f64))


def loss_of(U: Tensor, S: Tensor, Vh: Tensor) -> Tensor:
    """What the sign of a pair does not change."""
    return (S**3).sum() + (U**4).sum() + (Vh**4).sum() + (U[0] * S * Vh[:, 1]).square().sum() + (U[1] * Vh[:, 0]).sum()


@pytest.mark.parametrize("which", ["LM", "SM"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_dense_and_scipy(shape: tuple[int, int], which: str) -> None:
    A, k = sample(*shape), 2
    D = A.to_dense()
    U, S, Vh = svds(A, k, which)
    assert U.shape == (shape[0], k)
    assert Vh.shape == (k, shape[1])
    every = torch.linalg.svdvals(D)
    want = every[:k].flip(0) if which == "LM" else every[-k:].flip(0)
    torch.testing.assert_close(S, want, rtol=1e-9, atol=0)
    torch.testing.assert_close(D @ Vh.T, U * S, atol=1e-9, rtol=0)
    torch.testing.assert_close(D.T @ U, Vh.T * S, atol=1e-9, rtol=0)
    for X in (U, Vh.T):
        torch.testing.assert_close(X.T @ X, torch.eye(k, dtype=f64), atol=1e-9, rtol=0)
    if min(shape) > k:
        theirs = scipy.sparse.linalg.svds(A.to_scipy(), k, which=which)
        np.testing.assert_allclose(S, np.sort(theirs[1]), rtol=1e-8)
        np.testing.assert_allclose(abs(U), abs(theirs[0][:, np.argsort(theirs[1])]), atol=1e-6)


@pytest.mark.parametrize("which", ["LM", "SM"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_two_derivatives_equal_those_of_dense_svd(shape: tuple[int, int], which: str) -> None:
    A = sample(*shape)
    values, k = A.values.clone().requires_grad_(), 2
    rows, cols = A.pattern.row_indices, A.indices.long()
    U, S, Vh = torch.linalg.svd(torch.zeros(shape, dtype=f64).index_put((rows, cols), values), full_matrices=False)
    at = slice(0, k) if which == "LM" else slice(len(S) - k, len(S))
    losses = loss_of(*svds(A.with_values(values), k, which)), loss_of(U[:, at], S[at], Vh[at])
    probe = torch.randn(values.shape, dtype=f64, generator=torch.Generator().manual_seed(0))
    first, want = (torch.autograd.grad(loss, values, create_graph=True)[0] for loss in losses)
    assert (first - want).norm() < 1e-8 * want.norm()
    second, want_second = (torch.autograd.grad((g * probe).sum(), values)[0] for g in (first, want))
    assert (second - want_second).norm() < 1e-7 * want_second.norm()


def test_gradcheck() -> None:
    A = sample(7, 5)
    for which in ("LM", "SM"):

        def f(v: Tensor, which: str = which) -> Tensor:
            return loss_of(*svds(A.with_values(v), 2, which))

        values = A.values.clone().requires_grad_()
        assert gradcheck(f, (values,), check_forward_ad=True)
        assert gradgradcheck(f, (values,), fast_mode=True)


def test_equal_singular_values() -> None:
    """U Vh of a space of equal ones does not depend on its basis: for a multiple of an orthogonal matrix it is that."""
    Q = torch.linalg.qr(torch.randn(5, 5, dtype=f64, generator=torch.Generator().manual_seed(0)))[0]
    A = gs.from_dense(torch.block_diag(3 * Q, torch.eye(30, dtype=f64))).requires_grad_()
    U, S, Vh = svds(A, 5)
    torch.testing.assert_close(S, torch.full((5,), 3.0, dtype=f64))
    torch.testing.assert_close((U @ Vh)[:5, :5], Q)
    weights = torch.arange(25, dtype=f64).reshape(5, 5)
    ((U @ Vh)[:5, :5] * weights).sum().backward()
    skew = Q.T @ weights - weights.T @ Q  # the polar factor Q of 3 Q moves by the skew part of Qᵀ A'
    torch.testing.assert_close(A.with_values(gradient_of(A)).to_dense()[:5, :5], Q @ skew / 6)
    with pytest.raises(ValueError, match="depends on the basis"):
        svds(A, 5)[0][0, 0].backward()


def test_float32_and_int64() -> None:
    A = sample(40, 35)
    narrow = gs.from_scipy(A.to_scipy()).to(torch.float32)
    U, S, _ = svds(narrow.requires_grad_(), 3)
    assert U.dtype == torch.float32
    torch.testing.assert_close(S, svds(A, 3)[1].float())
    S.sum().backward()
    assert gradient_of(narrow).dtype == torch.float32


R = gs.from_dense(torch.ones(4, 3, dtype=f64))
dense: Any = R.to_dense()
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: svds(dense, 1), TypeError, "svds: A must be a SparseMatrix, not Tensor"),
    (lambda: svds(R, 4), ValueError, "svds: k must be between 1 and 3, the smaller side of A, not 4"),
    (lambda: svds(R, 1, "LA"), ValueError, 'svds: which must be "LM" or "SM", not "LA"'),
    (lambda: svds(R, 2), ValueError, "svds: the singular values asked for must be positive"),
    (lambda: svds(R, 1, "SM"), ValueError, "svds: the singular values asked for must be positive"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES)
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
