# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are functions: solves with them, and derivatives in their parameters."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
from gossamer import linalg

F64 = torch.float64
N = 7


def diffusion(u: Tensor, k: Tensor) -> Tensor:
    """-(k u')', with u = 0 at both ends."""
    edge = torch.zeros_like(u[:1])
    U = torch.cat([edge, u, edge])
    flux = (k if u.dim() == 1 else k[:, None]) * (U[1:] - U[:-1])
    return flux[:-1] - flux[1:]


def convection(u: Tensor, k: Tensor) -> Tensor:
    ahead = torch.cat([u[1:], torch.zeros_like(u[:1])])
    return diffusion(u, k) + 0.7 * ahead * (k[1:] if u.dim() == 1 else k[1:, None])


def dense_of(matvec: object, k: Tensor) -> Tensor:
    return torch.stack([matvec(e, k) for e in torch.eye(N, dtype=F64)], 1)  # type: ignore[operator]


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    k = 1 + torch.rand(N + 1, dtype=F64, generator=generator)
    return k.requires_grad_(), torch.randn(N, dtype=F64, generator=generator).requires_grad_()


@pytest.mark.parametrize("method", ["cg", "minres", "gmres", "bicgstab", "lsmr"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_derivatives_in_the_parameters(method: str, symmetric: bool) -> None:
    matvec = convection if method not in ("cg", "minres") and not symmetric else diffusion

    def f(k: Tensor, b: Tensor) -> Tensor:
        A = linalg.LinearOperator((N, N), matvec, params=(k,), symmetric=symmetric)
        return getattr(linalg, method)(A, b, rtol=1e-13, maxiter=1000)[0]

    k, b = inputs()
    torch.testing.assert_close(f(k, b), torch.linalg.solve(dense_of(matvec, k), b))
    assert gradcheck(f, (k, b), check_forward_ad=True)
    assert gradgradcheck(f, (k, b))
    columns = torch.stack([b, 2 * b, b.flip(0)], 1)
    torch.testing.assert_close(f(k, columns)[:, 1], 2 * f(k, b))


def test_hessian_and_vmap_of_torch_func() -> None:
    k, b = (t.detach() for t in inputs())

    def loss(k: Tensor) -> Tensor:
        A = linalg.LinearOperator((N, N), convection, params=(k,))
        return linalg.bicgstab(A, b, rtol=1e-13)[0].square().sum()

    def dense(k: Tensor) -> Tensor:
        return torch.linalg.solve(dense_of(convection, k), b).square().sum()

    torch.testing.assert_close(torch.func.hessian(loss)(k), torch.func.hessian(dense)(k))
    torch.testing.assert_close(torch.func.jacfwd(loss)(k), torch.func.jacrev(dense)(k))
    stack = torch.stack([k, 2 * k])
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(stack)[1], torch.func.grad(dense)(2 * k))


def test_products_and_transposes() -> None:
    k, b = inputs()
    A, D = linalg.LinearOperator((N, N), convection, params=(k,)), dense_of(convection, k)
    torch.testing.assert_close(A.matvec(b), D @ b)
    torch.testing.assert_close(A.rmatvec(b), D.T @ b)
    torch.testing.assert_close(A.T.matvec(b), D.T @ b)
    torch.testing.assert_close(A.T.rmatvec(b), D @ b)
    torch.testing.assert_close(linalg.gmres(A.T, b, rtol=1e-12)[0], torch.linalg.solve(D.T, b))
    calls = []

    def rmatvec(u: Tensor, k: Tensor) -> Tensor:
        calls.append(u)
        return dense_of(convection, k).T @ u

    linalg.gmres(linalg.LinearOperator((N, N), convection, rmatvec, (k,)), b)[0].sum().backward()
    assert calls  # the adjoint uses it


def test_least_squares_in_all_shapes() -> None:
    for rows, cols, damp in [(6, 4, 0.0), (4, 6, 0.0), (4, 6, 0.5)]:
        W = torch.randn(rows, cols, dtype=F64, generator=torch.Generator().manual_seed(2)).requires_grad_()
        b = torch.randn(rows, dtype=F64, generator=torch.Generator().manual_seed(3)).requires_grad_()

        def f(W: Tensor, b: Tensor, shape: tuple[int, int] = (rows, cols), damp: float = damp) -> Tensor:
            A = linalg.LinearOperator(shape, lambda x, W: W @ x, params=(W,))
            return linalg.lsmr(A, b, damp=damp, rtol=1e-12)[0]

        assert gradcheck(f, (W, b), check_forward_ad=True)
        assert gradgradcheck(f, (W, b))


def test_a_failed_adjoint_raises() -> None:
    k, b = inputs()
    A = linalg.LinearOperator((N, N), convection, params=(k,))
    x, _ = linalg.gmres(A, b, rtol=0.9, adjoint_rtol=1e-12, maxiter=2)
    with pytest.raises(gs.ConvergenceError, match="gmres with the transpose: no convergence"):
        x.sin().sum().backward()


def test_wrong_operators_are_named() -> None:
    with pytest.raises(ValueError, match="square, not 2 x 3"):
        linalg.LinearOperator((2, 3), lambda x: x, symmetric=True)
    with pytest.raises(TypeError, match="functions"):
        linalg.LinearOperator((2, 2), torch.eye(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="params must be tensors"):
        linalg.LinearOperator((2, 2), lambda x, k: k * x, params=(3,))  # type: ignore[arg-type]
    b = torch.ones(2, dtype=F64)
    with pytest.raises(TypeError, match="a product is Float, not Double"):
        linalg.cg(linalg.LinearOperator((2, 2), lambda x: x.float()), b)
    with pytest.raises(ValueError, match="a product has shape"):
        linalg.cg(linalg.LinearOperator((2, 2), lambda x: x[:1]), b)
    with pytest.raises(ZeroDivisionError):
        linalg.cg(linalg.LinearOperator((2, 2), lambda x: x / (1 // 0)), b)
