# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of iterative solves, against finite differences and dense torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from solvable import F64, METHODS, SYMMETRIC, dense_of, matrix_for, numbers
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
from gossamer import linalg


@pytest.mark.parametrize("method", METHODS)
def test_gradients_of_both_orders(method: str) -> None:
    """Values vary freely, also those of a symmetric matrix, whose perturbations are not symmetric."""
    A, b = matrix_for(method), numbers(12, 2)
    perm = A.pattern.tensors(True)[4].long()

    def f(v: Tensor, b: Tensor) -> Tensor:
        v = (v + v[perm]) / 2 if method in SYMMETRIC else v
        return getattr(linalg, method)(A.with_values(v), b, rtol=1e-13)[0]

    inputs = A.values.clone().requires_grad_(), b.requires_grad_()
    assert gradcheck(f, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, inputs)


@pytest.mark.parametrize("method", SYMMETRIC)
def test_second_derivative_in_an_unsymmetric_direction(method: str) -> None:
    """A is symmetric, its perturbation is not: right only if solves keep track of which transpose they are."""
    A, b, w = matrix_for(method), numbers(12, seed=1), numbers(12, seed=2)
    direction = numbers(A.nnz, seed=3)

    def second(solve: Any) -> Tensor:
        v = A.values.clone().requires_grad_()
        (first,) = torch.autograd.grad((solve(v) * w).sin().sum(), v, create_graph=True)
        return torch.autograd.grad((first * direction).sum(), v)[0]

    ours = second(lambda v: getattr(linalg, method)(A.with_values(v), b, rtol=1e-14, maxiter=1000)[0])
    dense = second(lambda v: torch.linalg.solve(dense_of(A, v), b))
    torch.testing.assert_close(ours, dense, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("method", ["gmres", "bicgstab"])
@pytest.mark.parametrize("kind", ["matrix", "factor", "callable", "factor and callback"])
def test_the_adjoint_uses_the_transpose_of_M(method: str, kind: str) -> None:
    """M is the inverse of an unsymmetric A, so that two iterations suffice, in the adjoint only with Mᵀ."""
    A = matrix_for(method)
    inverse = gs.from_dense(torch.linalg.inv(A.to_dense()))

    class Callable:
        def __init__(self, P: gs.SparseMatrix) -> None:
            self.P = P

        def __call__(self, r: Tensor) -> Tensor:
            return self.P @ r

        @property
        def T(self) -> Callable:
            return Callable(self.P.T)

    M = {"matrix": inverse, "factor": linalg.factorize(A), "callable": Callable(inverse)}[kind.split()[0]]
    callback = (lambda info: None) if kind.endswith("callback") else None
    v, b = A.values.clone().requires_grad_(), numbers(12).requires_grad_()
    x, info = getattr(linalg, method)(A.with_values(v), b, M=M, maxiter=2, callback=callback)
    assert info.iterations <= 2
    ours = torch.autograd.grad(x.sin().sum(), (v, b))
    dense = torch.autograd.grad(torch.linalg.solve(dense_of(A, v), b).sin().sum(), (v, b))
    for one, other in zip(ours, dense, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


def test_a_callable_without_a_transpose_is_told_when_the_gradient_needs_it() -> None:
    A, b = matrix_for("gmres"), numbers(12).requires_grad_()
    x, _ = linalg.gmres(A, b, M=lambda r: r / 4)
    with pytest.raises(TypeError, match="needs Mᵀ"):
        x.sum().backward()


def test_lsmr_tall_wide_and_damped() -> None:
    for rows, cols, damp in [(9, 5, 0.0), (5, 9, 0.0), (9, 5, 0.6), (5, 9, 0.6)]:
        A = gs.from_dense(numbers(rows, cols) * (numbers(rows, cols, seed=4) > -0.5))
        b = numbers(rows, 2)

        def ours(v: Tensor, b: Tensor, A: gs.SparseMatrix = A, damp: float = damp) -> Tensor:
            return linalg.lsmr(A.with_values(v), b, damp=damp, rtol=1e-12, maxiter=2000)[0]

        D = A.to_dense()
        normal = D.T @ D + damp**2 * torch.eye(cols, dtype=F64)
        torch.testing.assert_close(
            ours(A.values, b), torch.linalg.solve(normal, D.T @ b) if damp else torch.linalg.pinv(D) @ b
        )
        inputs = A.values.clone().requires_grad_(), b.requires_grad_()
        assert gradcheck(ours, inputs, check_forward_ad=True)
        assert gradgradcheck(ours, inputs)


def test_an_unrolled_method_that_breaks_down_at_once_says_why() -> None:
    """Its x would be x0, of which a backward only knows that it has no graph."""
    A, b = matrix_for("cg"), numbers(12)
    v = (-A.values).requires_grad_()
    for x0 in (None, torch.zeros(12, dtype=F64)):
        with pytest.raises(
            gs.ConvergenceError, match="cg: no convergence: A is not positive definite; after 0 iterations"
        ):
            linalg.cg(A.with_values(v), b, x0, maxiter=3, unrolled=True)
    with pytest.raises(gs.ConvergenceError, match="M is not positive definite"):
        linalg.minres(A, b, M=gs.diag(-torch.ones(12, dtype=F64)), maxiter=3, unrolled=True)
    x, _ = linalg.cg(A, b, maxiter=0, unrolled=True)  # nothing was asked for
    assert torch.equal(x, torch.zeros(12, dtype=F64))


@pytest.mark.parametrize("method", METHODS)
def test_unrolled_differentiates_the_iterations(method: str) -> None:
    A, b = matrix_for(method), numbers(12, 2)

    def f(v: Tensor, b: Tensor, d: Tensor) -> Tensor:
        x, info = getattr(linalg, method)(A.with_values(v), b, M=gs.diag(d), maxiter=3, unrolled=True)
        assert not info.converged.any()
        return x

    d = (0.2 + 0.1 * torch.rand(12, dtype=F64)).requires_grad_()
    assert gradcheck(f, (A.values.clone().requires_grad_(), b.requires_grad_(), d))
