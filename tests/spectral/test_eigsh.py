# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues: against SciPy and dense eigh, equal values, mistakes."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from symmetric_matrices import (
    chosen,
    dense_pairs,
    gradient_of,
    mass_like,
    projector_loss,
    random_symmetric,
    weighted,
)
from torch import Tensor

import gossamer as gs

f64 = torch.float64
eigsh = gs.linalg.eigsh


MODES: list[dict[str, Any]] = [
    {},
    {"which": "LA"},
    {"which": "SA"},
    {"which": "BE"},
    {"sigma": 0.3},
    {"sigma": 0.3, "which": "LA"},
    {"sigma": 0.3, "which": "SA"},
    {"sigma": 0.3, "which": "BE"},
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("generalised", [False, True])
def test_equals_dense_on_random_patterns(mode: dict[str, Any], generalised: bool) -> None:
    for seed, (n, k) in enumerate([(1, 1), (5, 2), (20, 20), (31, 5), (60, 4), (90, 7), (140, 3), (50, 24)]):
        A, M = random_symmetric(n, seed), mass_like(n, seed) if generalised else None
        want, _ = dense_pairs(A, M, k, mode.get("which", "LM"), mode.get("sigma"))
        values, X = eigsh(gs.from_dense(A), k, None if M is None else gs.from_dense(M), **mode)
        size = A.abs().max()
        assert torch.allclose(values, want, atol=1e-11 * size.item())
        MX = X if M is None else M @ X
        assert (A @ X - MX * values).abs().max() < 1e-10 * size
        torch.testing.assert_close(X.T @ MX, torch.eye(k, dtype=f64), atol=1e-11, rtol=0)
        assert (X.gather(0, X.abs().argmax(0, keepdim=True)) > 0).all()


@pytest.mark.parametrize(
    "mode", [{"sigma": 0}, {"sigma": 3.3}, {"which": "LM"}, {"which": "SA"}, {"which": "SM"}, {"which": "BE"}], ids=str
)
def test_equals_scipy(mode: dict[str, Any]) -> None:
    A = gs.poisson((12, 12), dtype=f64)
    want, _ = scipy.sparse.linalg.eigsh(A.to_scipy(), 6, **mode)
    values, _ = eigsh(A, 6, **mode)
    np.testing.assert_allclose(values, np.sort(want), rtol=1e-11)


def test_generalised_equals_scipy() -> None:
    A, M = gs.poisson((10, 11), dtype=f64), gs.from_dense(mass_like(110, 3))
    for mode in ({"sigma": 0.01}, {"which": "LA"}):
        want, _ = scipy.sparse.linalg.eigsh(A.to_scipy(), 5, M.to_scipy(), **mode)
        np.testing.assert_allclose(eigsh(A, 5, M, **mode)[0], np.sort(want), rtol=1e-10)


@pytest.mark.parametrize("mode", [{"sigma": 0}, {"sigma": 4.0}, {"which": "LA"}, {"which": "SA"}, {"which": "BE"}])
def test_equal_values_are_all_found(mode: dict[str, Any]) -> None:
    """Seven copies of a grid, whose own values come in pairs; and the identity."""
    A = torch.block_diag(*[gs.poisson((5, 5), dtype=f64).to_dense()] * 7)
    every = torch.linalg.eigvalsh(A)
    values, X = eigsh(gs.from_dense(A), 12, **mode)
    sigma, which = mode.get("sigma"), mode.get("which", "LM")
    shifted = every + 1e-9 * torch.arange(len(every))  # σ = 4 is one of them
    want = every[chosen(shifted, 12, which, sigma)]
    torch.testing.assert_close(values, want, atol=1e-10, rtol=0)
    torch.testing.assert_close(X.T @ X, torch.eye(12, dtype=f64), atol=1e-10, rtol=0)
    torch.testing.assert_close(eigsh(gs.eye(60, dtype=f64), 7, **mode)[0], torch.ones(7, dtype=f64))


def test_sigma_that_is_an_eigenvalue() -> None:
    """A matrix beside it is factored: the Laplacian of a graph with sigma = 0 is the common case."""
    path = gs.poisson(80, dtype=f64).to_dense()
    path[0, 0] = path[-1, -1] = 1  # row sums 0
    D = torch.block_diag(path, path)
    want = torch.linalg.eigvalsh(D)[:5]
    L = gs.from_dense(D).requires_grad_()
    values, X = eigsh(L, 5, sigma=0)
    torch.testing.assert_close(values, want, atol=1e-12, rtol=0)
    projector_loss(X[:, :4]).backward()
    assert torch.isfinite(gradient_of(L)).all()
    torch.testing.assert_close(eigsh(gs.eye(50, dtype=f64), 3, sigma=1)[0], torch.ones(3, dtype=f64))


def test_values_beside_a_sigma_that_is_one() -> None:
    """-0.9e-6 is nearer to what is factored than 0 is, but not nearer to sigma. USAir97 has such values."""
    spectrum = torch.cat([torch.zeros(6, dtype=f64), torch.tensor([-9e-7], dtype=f64), torch.linspace(0.1, 1, 60)])
    for k in (1, 4, 6):
        assert eigsh(gs.diag(spectrum), k, sigma=0)[0].abs().max() < 1e-18
    torch.testing.assert_close(eigsh(gs.diag(spectrum), 7, sigma=0)[0], spectrum[:7].sort().values, atol=1e-18, rtol=0)


def test_all_wanted_values_are_small() -> None:
    """They are not drowned in a shift that is larger than they are. bcsstk13 has such values."""
    small = 1e-11 * torch.arange(1, 15, dtype=f64)
    values, X = eigsh(gs.diag(torch.cat([small, torch.linspace(0.1, 1, 60)])), 4, sigma=0)
    torch.testing.assert_close(values, small[:4], atol=0, rtol=1e-12)
    torch.testing.assert_close(X, torch.eye(74, 4, dtype=f64), atol=1e-12, rtol=0)


def test_pattern_without_diagonal() -> None:
    D = random_symmetric(50, 5)
    D.fill_diagonal_(0)
    A = gs.from_dense(D).requires_grad_()
    values, X = eigsh(A, 3, sigma=0.2)
    torch.testing.assert_close(values, dense_pairs(D, None, 3, "LM", 0.2)[0])
    weighted(values, X).backward()
    assert len(gradient_of(A)) == A.nnz


def test_float32_is_computed_in_float64() -> None:
    A = gs.poisson((9, 10))
    values, X = eigsh(A.requires_grad_(), 3, sigma=0)
    assert values.dtype == X.dtype == torch.float32
    exact = A.detach().to(f64).requires_grad_()
    want, Y = eigsh(exact, 3, sigma=0)
    torch.testing.assert_close(values, want.float())
    weighted(values, X).backward()
    weighted(want, Y).backward()
    torch.testing.assert_close(gradient_of(A), gradient_of(exact).float(), rtol=1e-4, atol=1e-6)


def test_same_bits_for_every_number_of_threads() -> None:
    A, before, found = gs.poisson((90, 91), dtype=f64), torch.get_num_threads(), []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        found.append((*eigsh(A, 4, sigma=0), *eigsh(A, 2, which="LA", tol=1e-3)))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_in_sequence() -> None:
    """Copies, inference mode, a dropped matrix, threads, torch.func, the options."""
    A = gs.poisson((8, 9), dtype=f64)
    want, X = eigsh(A, 3, sigma=0)
    assert torch.equal(eigsh(copy.deepcopy(A), 3, sigma=0)[0], want)
    with torch.inference_mode():
        assert torch.equal(eigsh(A, 3, sigma=0)[1], X)
    values, Y = eigsh(gs.poisson((8, 9), dtype=f64).requires_grad_(), 3, sigma=0)
    weighted(values, Y).backward()  # the matrix is gone
    results: list[Tensor] = []
    threads = [threading.Thread(target=lambda: results.append(eigsh(A, 3, sigma=0)[0])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(r, want) for r in results)
    assert len(results) == 3
    gradient = torch.func.grad(lambda v: eigsh(A.with_values(v), 3, sigma=0)[0].sum())(A.values)
    assert torch.allclose(gradient, (X[A.pattern.row_indices] * X[A.indices.long()]).sum(1))
    v0 = torch.ones(72, dtype=f64)
    for options in ({"ncv": 30}, {"v0": v0}, {"tol": 1e-9}, {"maxiter": 50}, {"v0": X[:, 0]}):
        torch.testing.assert_close(eigsh(A, 3, sigma=0, **options)[0], want)


def unsymmetric() -> gs.SparseMatrix:
    return gs.from_dense(torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=f64))


P = gs.poisson((8, 8), dtype=f64)
dense: Any = P.to_dense()
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: eigsh(dense, 2), TypeError, "eigsh: A must be a SparseMatrix, not Tensor"),
    (lambda: eigsh(P, 2, dense), TypeError, "eigsh: M must be a SparseMatrix, not Tensor"),
    (lambda: eigsh(gs.from_dense(torch.ones(2, 3)), 1), ValueError, "eigsh: the matrix must be square, not 2 x 3"),
    (lambda: eigsh(P, 2, gs.eye(5, dtype=f64)), ValueError, "eigsh: M must be 64 x 64 as A, not 5 x 5"),
    (lambda: eigsh(P, 0), ValueError, "eigsh: k must be between 1 and 64, the number of rows, not 0"),
    (lambda: eigsh(P, 65), ValueError, "eigsh: k must be between 1 and 64, the number of rows, not 65"),
    (lambda: eigsh(P, 2, which="XX"), ValueError, 'which must be "LM", "SM", "LA", "SA" or "BE", not "XX"'),
    (lambda: eigsh(P, 2, ncv=2), ValueError, "ncv must be above k = 2 and at most 64, not 2"),
    (lambda: eigsh(P, 2, maxiter=0), ValueError, "maxiter must be positive, not 0"),
    (lambda: eigsh(P, 2, tol=-1), ValueError, "tol must not be negative"),
    (lambda: eigsh(P, 2, v0=torch.ones(3)), ValueError, r"v0 must be \(64,\), not \(3,\)"),
    (lambda: eigsh(P, 2, sigma=float("nan")), ValueError, "sigma must be finite"),
    (lambda: eigsh(unsymmetric(), 1), ValueError, "an entry and its mirror image differ by 1"),
    (lambda: eigsh(P.tril(), 1), ValueError, "must be symmetric, and so must its pattern be"),
    (lambda: eigsh(P, 2, -1 * P), ValueError, "M must be positive definite"),
    (lambda: eigsh(P, 2, P - 1.0 * gs.eye(64, dtype=f64), sigma=0), ValueError, "M must be positive definite"),
    (lambda: eigsh(P * 1e-200, 2), ValueError, "largest entry of A is .*e-200"),  # once a wrong number
    (lambda: gs.linalg.svds(P * 1e200, 2), ValueError, r"largest entry of A is .*e\+200"),
    (lambda: eigsh(gs.eye(9, dtype=f64), 2, -1 * gs.eye(9, dtype=f64)), ValueError, "M must be positive definite"),
    (lambda: eigsh(P * float("nan"), 2), ValueError, "A has an entry that is not finite"),
    (lambda: eigsh(P.to(torch.complex128), 2), TypeError, "A must be real floating-point numbers"),
    (lambda: eigsh(P, 2, P.to(torch.float32)), TypeError, "eigsh: M is Float but A is Double"),
    (lambda: eigsh(P.with_values(torch.ones(P.nnz, 2)), 2), ValueError, "A must be one matrix"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES, ids=[m[2][:40] for m in MISTAKES])
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_no_convergence_is_an_error() -> None:
    with pytest.raises(gs.linalg.ConvergenceError, match="Lanczos did not converge in 2 restarts"):
        eigsh(gs.poisson((40, 40), dtype=f64), 2, which="SM", maxiter=2)
