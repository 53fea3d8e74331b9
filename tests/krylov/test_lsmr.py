# SPDX-License-Identifier: BSD-3-Clause
"""lsmr with a preconditioner: the x of every other M, for all shapes, damped or not, and in fewer iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
from gossamer import linalg
from krylov.solvable import F64, numbers

SHAPES = [(9, 5, 0.0), (5, 9, 0.0), (7, 7, 0.0), (9, 5, 0.6), (5, 9, 0.6), (7, 7, 0.6)]


def badly_scaled(rows: int, cols: int) -> gs.SparseMatrix:
    """Of full rank, sparse, unsymmetric; its rows and columns differ by a factor of 100 in size."""
    D = numbers(rows, cols) * (numbers(rows, cols, seed=4) > 0) + 4 * torch.eye(rows, cols, dtype=F64)
    scale = torch.logspace(0, 2, min(rows, cols), dtype=F64)
    return gs.from_dense(D * scale if rows >= cols else scale[:, None] * D)


def normal(A: Tensor, damp: float) -> Tensor:
    """The smaller of AᵀA + damp² and AAᵀ + damp²."""
    N = A.T @ A if A.shape[0] >= A.shape[1] else A @ A.T
    return N + damp**2 * torch.eye(len(N), dtype=F64)


def dense_solution(A: Tensor, b: Tensor, damp: float) -> Tensor:
    if A.shape[0] >= A.shape[1]:
        return torch.linalg.solve(normal(A, damp), A.T @ b)
    return A.T @ torch.linalg.solve(normal(A, damp), b)


def preconditioners(N: Tensor) -> dict[str, Any]:
    """By what is at hand for a matrix N: its diagonal, a factor of something near, functions of Python."""
    near = gs.from_dense(N + 0.1 * N.diagonal().diag())
    diagonal = gs.diag(1 / N.diagonal())
    return {
        "matrix": diagonal,
        "jacobi": linalg.jacobi(gs.from_dense(N)),
        "factor": linalg.factorize(near),
        "callable": lambda r: diagonal @ r,
    }


@pytest.mark.parametrize("name", preconditioners(torch.eye(2, dtype=F64)))
@pytest.mark.parametrize("damp", [0.0, 3.0])
@pytest.mark.parametrize("shape", [(120, 60), (60, 120), (80, 80)])
def test_same_solution_in_fewer_iterations(shape: tuple[int, int], damp: float, name: str) -> None:
    A, b = badly_scaled(*shape), numbers(shape[0], 6)
    b[:, 2] = 0
    M = preconditioners(normal(A.to_dense(), damp))[name]
    x, info = linalg.lsmr(A, b, damp=damp, M=M, rtol=1e-11)
    torch.testing.assert_close(x, dense_solution(A.to_dense(), b, damp), rtol=1e-6, atol=1e-9)
    plain = linalg.lsmr(A, b, damp=damp, rtol=1e-11)[1]
    assert (2 * info.iterations <= plain.iterations).all()
    residual = A.T @ (b - A @ x) - damp**2 * x
    torch.testing.assert_close(info.residual, residual.norm(dim=0), rtol=1e-2, atol=1e-9)
    assert (info.residual <= 1e-11 * (A.T @ b).norm(dim=0)).all()


@pytest.mark.parametrize("wrap", [lambda M: M, lambda M: lambda r: M @ r], ids=["op", "driven"])
@pytest.mark.parametrize(("rows", "cols", "damp"), SHAPES)
def test_derivatives(rows: int, cols: int, damp: float, wrap: Callable[[gs.SparseMatrix], Any]) -> None:
    """A square A is unsymmetric: its M, made for AᵀA, must not be taken for AAᵀ in the backward."""
    A = gs.from_dense(numbers(rows, cols) * (numbers(rows, cols, seed=4) > -0.5) + 2 * torch.eye(rows, cols))
    M = wrap(gs.from_dense(torch.linalg.inv(normal(A.to_dense(), damp) + 0.1 * torch.eye(min(rows, cols)))))

    def ours(v: Tensor, b: Tensor) -> Tensor:
        return linalg.lsmr(A.with_values(v), b, damp=damp, M=M, rtol=1e-12, maxiter=60)[0]

    inputs = A.values.clone().requires_grad_(), numbers(rows, 2).requires_grad_()
    assert gradcheck(ours, inputs, check_forward_ad=True)
    assert gradgradcheck(ours, inputs)


@pytest.mark.parametrize("damp", [0.0, 3.0])
def test_the_backward_of_a_square_matrix_has_m_on_its_side(damp: float) -> None:
    """(AᵀA)⁻¹ itself makes each solve one step; (AAᵀ)⁻¹ would not, in either."""
    scale = torch.logspace(0, 2, 40, dtype=F64)
    A = gs.from_dense(badly_scaled(40, 40).to_dense() * scale.flip(0)[:, None]).requires_grad_()
    D = A.detach().to_dense()
    M = linalg.factorize(gs.from_dense(normal(D, damp)))
    x, info = linalg.lsmr(A, numbers(40), damp=damp, M=M, rtol=1e-8, maxiter=8)
    assert info.iterations <= 4
    x.sum().backward()  # with the same maxiter
    twin = D.clone().requires_grad_()
    dense_solution(twin, numbers(40), damp).sum().backward()
    assert A.grad is not None
    assert twin.grad is not None
    torch.testing.assert_close(A.grad.to_dense(), twin.grad * (D != 0), rtol=1e-4, atol=1e-6)


def test_transposed_matrices_and_operators() -> None:
    A = badly_scaled(60, 120)
    b = numbers(120)
    M = linalg.jacobi(gs.from_dense(normal(A.to_dense(), 0.0)))
    want = dense_solution(A.to_dense().T, b, 0.0)
    operator = linalg.LinearOperator((120, 60), lambda x: A.T @ x, lambda u: A @ u)
    for given in (A.T, operator):
        for m in (M, M.T):
            x, _ = linalg.lsmr(given, b, M=m, rtol=1e-11)
            torch.testing.assert_close(x, want, rtol=1e-6, atol=1e-9)


def test_wrong_preconditioners_are_named() -> None:
    A, b = badly_scaled(9, 5), numbers(9)
    with pytest.raises(gs.ConvergenceError, match="M is not positive definite"):
        linalg.lsmr(A, b, M=gs.diag(-torch.ones(5, dtype=F64)))
    with pytest.raises(ValueError, match="lsmr: M must have 5 rows, as many as A has rows or columns, whichever are"):
        linalg.lsmr(A, b, M=gs.diag(torch.ones(9, dtype=F64)))
    with pytest.raises(ValueError, match="cg: M must have 4 rows, not 9"):
        linalg.cg(gs.poisson(4, dtype=F64), numbers(4), M=gs.diag(torch.ones(9, dtype=F64)))
