# SPDX-License-Identifier: BSD-3-Clause
"""Iterative solves, differentiable to any order. The methods are in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gossamer._krylov_call import Call, Factored, KrylovInfo, Matrix, solve
from gossamer._linear_operator import LinearOperator
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed._matrix import DistributedMatrix

Callback = Callable[[KrylovInfo], object]
Result = tuple[Tensor, KrylovInfo]


def cg(
    A: Matrix,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    check: bool = True,
    adjoint_rtol: float | None = None,
    unrolled: bool = False,
) -> Result:
    """x with A x = b by conjugate gradients, for symmetric positive definite A, and how it went: (x, info).

    A: a SparseMatrix, a LinearOperator, or a DistributedMatrix, of which b, x0 and x are this rank's rows. b: (n,) or
    (n, k), float32 or float64; columns are solved together and frozen one by one. x0: where to begin. Done when
    ‖b - A x‖ ≤ max(rtol ‖b‖, atol) in every column; rtol is 1e-8 (1e-5 in float32) unless given, maxiter 10 n.

    M: an approximate inverse of A, symmetric positive definite: a preconditioner of this module, a SparseMatrix
    (z = M r), a Factor (z = solve(r)), or a callable. callback(info) is called after every iteration, and may raise.

    Raises ConvergenceError if the tolerance is not reached, or A or M turns out not to be positive definite. With
    ``check=False`` the x that was reached is returned, and info.converged says so.

    Gradient: db = A⁻ᵀ g, dA = -(db xᵀ) on A's pattern: one more solve, with Mᵀ, to ‖residual‖ ≤ adjoint_rtol ‖g‖
    (adjoint_rtol is rtol unless given), which always raises if it fails. M and x0 get no gradient: the solution does
    not depend on them. ``unrolled=True`` differentiates the iterations themselves instead, M included, for those who
    learn it; then all iterations are kept in memory, and maxiter may end them without an error.

    >>> A = gs.poisson((30, 30)).requires_grad_()
    >>> x, info = gs.linalg.cg(A, torch.ones(900), rtol=1e-5)
    >>> bool(info.converged), bool(info.residual <= 1e-5 * 30)
    (True, True)
    >>> x.sum().backward()  # A.grad is on A's pattern
    """
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M, callback, check, adjoint_rtol, unrolled)


def minres(
    A: Matrix,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    check: bool = True,
    adjoint_rtol: float | None = None,
    unrolled: bool = False,
) -> Result:
    """x with A x = b by minimal residuals, for symmetric A that may be indefinite: (x, info).

    M must be symmetric positive definite. All else as ``cg``.

    >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> gs.linalg.minres(A, torch.tensor([2.0, 4.0]))[0].round(decimals=4)
    tensor([2., 1.])
    """
    return _solve("minres", A, b, x0, rtol, atol, maxiter, M, callback, check, adjoint_rtol, unrolled)


def gmres(
    A: Matrix,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 30,
    M: Any = None,
    callback: Callback | None = None,
    check: bool = True,
    adjoint_rtol: float | None = None,
    unrolled: bool = False,
) -> Result:
    """x with A x = b by generalised minimal residuals, for any square A: (x, info).

    It keeps ``restart`` vectors of the size of b and then begins anew from where it is; ``maxiter`` counts all
    iterations. M preconditions from the right, and its transpose the gradient: a callable M needs an attribute T for
    that. All else as ``cg``.

    >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> gs.linalg.gmres(A, torch.tensor([2.0, 4.0]))[0].round(decimals=4)
    tensor([1., 1.])
    """
    how = rtol, atol, maxiter, M, callback, check, adjoint_rtol, unrolled
    return _solve("gmres", A, b, x0, *how, restart=restart)


def bicgstab(
    A: Matrix,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    check: bool = True,
    adjoint_rtol: float | None = None,
    unrolled: bool = False,
) -> Result:
    """x with A x = b by stabilised biconjugate gradients, for any square A: (x, info).

    Two products an iteration and seven blocks of memory, whatever the number of iterations. M as for ``gmres``, all
    else as ``cg``.

    >>> A = gs.from_dense(torch.tensor([[4.0, 1.0], [0.0, 2.0]]))
    >>> gs.linalg.bicgstab(A, torch.tensor([9.0, 2.0]))[0].round(decimals=4)
    tensor([2., 1.])
    """
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback, check, adjoint_rtol, unrolled)


def lsmr(
    A: Matrix,
    b: Tensor,
    x0: Tensor | None = None,
    *,
    damp: float = 0.0,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    check: bool = True,
    adjoint_rtol: float | None = None,
    unrolled: bool = False,
) -> Result:
    """x that makes ‖b - A x‖² + damp² ‖x‖² smallest, and is itself smallest if there are several: (x, info).

    A: (m, n), of any shape. Done when ‖Aᵀ(b - A x) - damp² x‖ ≤ max(rtol ‖Aᵀ b‖, atol), which is also
    ``info.residual``; maxiter is 10 max(m, n). x0 is for problems that have one solution, m ≥ n without damp.

    M: a symmetric positive definite approximation of (AᵀA + damp²)⁻¹ or, if A is wide, of (AAᵀ + damp²)⁻¹: a
    preconditioner or a factor of that product. x is the same for every M. All else as ``cg``.

    Gradient: that of A⁺ b for A of full rank (tall or wide), or with damp > 0 of any A, by two or three more solves.
    A rank that is not full has no derivative, for the solution jumps there; damp makes it smooth.

    >>> A = gs.from_dense(torch.tensor([[1.0], [1.0]]))
    >>> gs.linalg.lsmr(A, torch.tensor([1.0, 3.0]))[0].round(decimals=4)
    tensor([2.])
    """
    return _solve("lsmr", A, b, x0, rtol, atol, maxiter, M, callback, check, adjoint_rtol, unrolled, damp=damp)


def _solve(
    method: str,
    A: Matrix,
    b: Tensor,
    x0: Tensor | None,
    rtol: float | None,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Callback | None,
    check: bool,
    adjoint_rtol: float | None,
    unrolled: bool,
    restart: int = 30,
    damp: float = 0.0,
) -> Result:
    if not isinstance(A, (SparseMatrix, LinearOperator, DistributedMatrix)):
        raise TypeError(
            f"{method}: A must be a SparseMatrix, a LinearOperator or a DistributedMatrix, not {type(A).__name__}"
        )
    for name, t in (("b", b), ("x0", b if x0 is None else x0)):
        if not isinstance(t, Tensor):
            raise TypeError(f"{method}: {name} must be a torch.Tensor, not {type(t).__name__}")
    if hasattr(M, "slogdet"):  # a Factor, whose module imports this one
        M = Factored(M)
    if not (M is None or callable(M) or isinstance(M, (SparseMatrix, DistributedMatrix))):
        raise TypeError(
            f"{method}: M must be a preconditioner, a SparseMatrix, a Factor or a callable, not {type(M).__name__}"
        )
    rtol = (1e-8 if b.dtype is torch.float64 else 1e-5) if rtol is None else rtol
    maxiter = 10 * max(A.shape) if maxiter is None else maxiter
    adjoint_rtol = rtol if adjoint_rtol is None else adjoint_rtol
    call = Call(method, rtol, atol, maxiter, restart, damp, check, adjoint_rtol, M, callback, unrolled)
    return solve(A, b, x0, call)
