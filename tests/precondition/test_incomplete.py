# SPDX-License-Identifier: BSD-3-Clause
"""Incomplete factors: L U = A on the pattern, what is read, shifts, breakdowns, derivatives of the first two orders."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import gossamer as gs

f64 = torch.float64


def grid() -> gs.SparseMatrix:
    return gs.poisson((5, 4), dtype=f64)


def richer() -> gs.SparseMatrix:
    A = grid()
    return A @ A + A


def disturbed(A: gs.SparseMatrix) -> gs.SparseMatrix:
    """Not symmetric any more."""
    noise = torch.rand(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(0))
    return A.with_values(A.values + 0.1 * noise)


def stored(A: gs.SparseMatrix) -> Tensor:
    return A.with_values(torch.ones_like(A.values)).to_dense() != 0


@pytest.mark.parametrize("make", [grid, richer])
def test_incomplete_factors_multiply_to_the_matrix_on_its_pattern(make: Callable[[], gs.SparseMatrix]) -> None:
    for A, M in [(make(), gs.linalg.ichol(make())), (disturbed(make()), gs.linalg.ilu(disturbed(make())))]:
        L, U = M.L.to_dense(), M.U.to_dense()
        where = stored(A)
        assert torch.equal(L, L.tril())
        assert torch.equal(U, U.triu())
        assert not (L.ne(0) & ~where).any()
        assert not (U.ne(0) & ~where).any()
        torch.testing.assert_close((L @ U)[where], A.to_dense()[where], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(M(torch.eye(20, dtype=f64)), torch.linalg.inv(L @ U), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(M.T(torch.eye(20, dtype=f64)), torch.linalg.inv(L @ U).T, rtol=1e-10, atol=1e-12)


def test_ilu_has_ones_on_the_diagonal_of_L() -> None:
    assert gs.linalg.ilu(disturbed(richer())).L.diagonal().eq(1).all()


def test_ichol_reads_the_lower_triangle_alone() -> None:
    A = grid()
    above = A.indices > A.pattern.row_indices
    B = A.with_values(torch.where(above, torch.nan, A.values)).requires_grad_()
    L = gs.linalg.ichol(B).L
    assert torch.equal(L.values, gs.linalg.ichol(A).L.values)
    L.values.sum().backward()
    assert B.values.grad is not None
    assert B.values.grad[above].eq(0).all()
    assert B.values.grad[~above].ne(0).any()


def test_shift_is_a_multiple_of_the_diagonal() -> None:
    A = grid()
    shifted = gs.from_dense(A.to_dense() + 0.5 * A.to_dense().diagonal().diag())
    M = gs.linalg.ichol(A, shift=0.5)
    torch.testing.assert_close(M.L.to_dense(), gs.linalg.ichol(shifted).L.to_dense())
    M.update(A * 4)
    torch.testing.assert_close(M.L.to_dense(), 2 * gs.linalg.ichol(shifted).L.to_dense())


def test_breakdown_names_the_row_and_shift_helps() -> None:
    A = gs.from_dense(torch.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]], dtype=f64))
    with pytest.raises(
        gs.SingularMatrixError,
        match=r"ichol: the pivot of row 1 is .*, and IC.0. needs positive ones: .* a larger shift helps",
    ):
        gs.linalg.ichol(A)
    gs.linalg.ichol(A, shift=2.0)
    with pytest.raises(
        gs.SingularMatrixError,
        match=r"ilu: the pivot of row 1 is 0, and ILU.0. exchanges no rows: put large entries on the diagonal",
    ):
        gs.linalg.ilu(gs.from_dense(torch.tensor([[1.0, 2], [2, 4]], dtype=f64)))
    hole = gs.from_dense(torch.tensor([[1.0, 1], [1, 0]], dtype=f64))
    for make in (gs.linalg.ichol, gs.linalg.ilu):
        with pytest.raises(gs.SingularMatrixError, match="row 1 has no diagonal entry"):
            make(hole)
    with pytest.raises(gs.SingularMatrixError, match="jacobi: row 1"):
        gs.linalg.jacobi(hole)
    with pytest.raises(gs.SingularMatrixError, match="block_jacobi: block 1"):
        gs.linalg.block_jacobi(hole, 1)
    nan = A.with_values(torch.full_like(A.values, torch.nan))
    for make in (gs.linalg.ichol, gs.linalg.ilu):
        with pytest.raises(gs.SingularMatrixError, match="row 0"):
            make(nan)


@pytest.mark.parametrize("make", [grid, richer])
@pytest.mark.parametrize("kind", ["ichol", "ilu"])
def test_derivatives_of_the_factors(make: Callable[[], gs.SparseMatrix], kind: str) -> None:
    A = make() if kind == "ichol" else disturbed(make())
    M = getattr(gs.linalg, kind)(A)

    def factors(values: Tensor) -> Tensor:
        N = copy.copy(M).update(A.with_values(values))
        return torch.cat([N.L.values, N.U.values])

    v = A.values.clone().requires_grad_()
    assert torch.autograd.gradcheck(factors, v, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(factors, v)


def test_symmetric_gradient_of_ichol() -> None:
    """Along symmetric directions the gradient is that of the dense Cholesky factor of a matrix without fill."""
    A = gs.poisson(6, dtype=f64).requires_grad_()
    gs.linalg.ichol(A).L.values.sin().sum().backward()
    X = A.detach().to_dense().requires_grad_()
    torch.linalg.cholesky(X)[stored(A).tril()].sin().sum().backward()
    assert X.grad is not None
    assert A.grad is not None
    G = A.grad.to_dense()
    direction = torch.diag(torch.randn(5, dtype=f64), 1)
    direction = direction + direction.T + torch.eye(6, dtype=f64)
    torch.testing.assert_close((G * direction).sum(), (X.grad * direction).sum())


def test_ops_are_as_torch_wants_them() -> None:
    for kind, A in [(0, grid().tril()), (1, disturbed(grid()))]:
        values, known = A.values.clone().requires_grad_(), list[Tensor]()
        args = A.pattern.tensors(), values, A.shape, known, kind
        torch.library.opcheck(torch.ops.gossamer.incomplete_factor.default, args)
        torch.library.opcheck(torch.ops.gossamer.incomplete_jacobian.default, (A.pattern.tensors(), A.shape, kind))
    with pytest.raises(ValueError, match="above the diagonal"):
        torch.ops.gossamer.incomplete_factor(grid().pattern.tensors(), grid().values, (20, 20), [], 0)
    with pytest.raises(ValueError, match="kind must be 0 or 1"):
        torch.ops.gossamer.incomplete_jacobian(grid().pattern.tensors(), (20, 20), 2)
