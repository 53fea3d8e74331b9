# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues of symmetric matrices and singular values, a few of many. The work is done in C++."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix


def eigsh(
    A: SparseMatrix,
    k: int = 6,
    M: SparseMatrix | None = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Tensor | None = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
) -> tuple[Tensor, Tensor]:
    """k solutions of A x = λ M x, for a symmetric A: values (k,), ascending, and vectors (n, k) with xᵀ M x = 1.

    which: "LM", "SM", "LA", "SA", "BE": the values of the largest or smallest magnitude, the largest or smallest ones,
    or from both ends, as in SciPy. With ``sigma`` it is said of 1 / (λ - sigma): "LM" are the values nearest to sigma.
    Then A - sigma M is factored (if sigma is an eigenvalue, a matrix beside it), which finds them in a few steps.
    Without it only products with A are needed; small values of a matrix that has large ones then take many of them.

    M: symmetric positive definite; none is the identity. v0: a vector to start from. ncv: vectors that are kept at
    once, max(2 k + 1, 20). maxiter: restarts, 1000; what has not converged then raises ConvergenceError. tol: of
    the residual, relative to the value; 0 is as exact as can be.

    Equal values are found as often as they occur. The largest entry of a vector is positive; the basis of a space of
    equal values is arbitrary. float32 is computed in float64 and rounded.

    Gradient: of values dA = Σ gᵢ xᵢxᵢᵀ, dM = -Σ gᵢ λᵢ xᵢxᵢᵀ on the patterns; of vectors by a solve with A - λᵢ M
    beside the vectors that are known; symmetric, and of any order. A loss that depends on the basis of a space of equal
    values, or treats these differently, has no gradient: its backward raises ValueError.

    >>> values, vectors = gs.linalg.eigsh(gs.poisson(50, dtype=torch.float64), 2, sigma=0)
    >>> values
    tensor([0.0038, 0.0152], dtype=torch.float64)
    """
    check_matrix("eigsh", "A", A)
    if M is not None:
        check_matrix("eigsh", "M", M)
        if M.shape != A.shape:
            raise ValueError(f"eigsh: M must be {A.shape[0]} x {A.shape[1]} as A, not {M.shape[0]} x {M.shape[1]}")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"eigsh: the matrix must be square, not {A.shape[0]} x {A.shape[1]}")
    A.pattern.check_simple("eigsh")
    pattern, a, m = _on_one_pattern(A, M, sigma is not None)
    analysis = pattern.analysis() if m is not None or sigma is not None else None
    given = pattern.tensors(True), a, m, pattern.shape, analysis, k, sigma, which, v0, ncv, maxiter, float(tol)
    return _interrupt.called(_interrupt.takes_long(pattern), torch.ops.gossamer.eigsh.default, *given)


def svds(
    A: SparseMatrix, k: int = 6, which: str = "LM", maxiter: int | None = None, tol: float = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """k singular values A v = s u: U (m, k), S (k,), ascending, and Vh (k, n), as SciPy has them.

    which: "LM" are the largest ones, from [0 A; Aᵀ 0]; "SM" the smallest ones, from a factorisation of Aᵀ A or
    A Aᵀ, whichever is smaller: below 1e-8 of the largest one they are rounding errors. They must be positive. maxiter
    and tol: those of ``eigsh``.

    Gradient: of values dA = Σ gᵢ uᵢvᵢᵀ on A's pattern; all of it is that of ``eigsh``, to any order.

    >>> U, S, Vh = gs.linalg.svds(gs.from_dense(torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]])), 1)
    >>> S
    tensor([3.])
    """
    check_matrix("svds", "A", A)
    rows, cols = A.shape
    if which not in ("LM", "SM"):
        raise ValueError(f'svds: which must be "LM" or "SM", not "{which}"')
    if not 1 <= k <= min(rows, cols):
        raise ValueError(f"svds: k must be between 1 and {min(rows, cols)}, the smaller side of A, not {k}")
    A.pattern.check_simple("svds")
    above_rounding = torch.ops.gossamer.above_rounding.default
    rounding = 1e-13 if A.dtype is torch.float64 else 1e-6
    if which == "LM":
        S, X = eigsh(_augmented(A), k, which="LA", maxiter=maxiter, tol=tol)
        S = above_rounding(S, S.detach().max(), rounding)
        X = X * math.sqrt(2)
        return X[:rows], S, X[rows:].T
    tall = rows >= cols
    squares, X = eigsh(A.T @ A if tall else A @ A.T, k, sigma=0, maxiter=maxiter, tol=tol)
    S = above_rounding(squares, A.values.detach().square().sum(), rounding).sqrt()
    other = (A @ X if tall else A.T @ X) / S
    return (other, S, X.T) if tall else (X, S, other.T)


def _on_one_pattern(
    A: SparseMatrix, M: SparseMatrix | None, with_diagonal: bool
) -> tuple[Pattern, Tensor, Tensor | None]:
    """A and M on the union of their patterns; without M, A on one that has the diagonal, if that is asked for."""
    place, P = torch.ops.gossamer.place.default, A.pattern
    if M is None:
        if not with_diagonal:
            return P, A.values, None
        unit = P.keep("identity", lambda: _identity(P))
        union, at_A, _ = P.merge(unit)
        return union, A.values if union is P else place(A.values, at_A, union.nnz), None
    M.pattern.check_simple("eigsh")
    union, at_A, at_M = P.merge(M.pattern)
    a = A.values if union is P else place(A.values, at_A, union.nnz)
    return union, a, place(M.values, at_M, union.nnz)


def _identity(P: Pattern) -> Pattern:
    """The pattern of the diagonal, with the indices of P."""
    indptr = torch.arange(P.shape[0] + 1, dtype=P.indptr.dtype, device=P.device)
    return Pattern(indptr, indptr[:-1].clone(), P.shape, check=False)


def _augmented(A: SparseMatrix) -> SparseMatrix:
    """[0 A; Aᵀ 0]."""
    P, (rows, cols) = A.pattern, A.shape
    indptr, indices, perm = P.transpose()

    def derive() -> Pattern:
        below = indptr[1:] + P.nnz
        arrays = torch.cat([P.indptr, below]), torch.cat([P.indices + rows, indices])
        return Pattern(*arrays, (rows + cols, rows + cols), check=False)

    return SparseMatrix._trusted(P.keep("augmented", derive), torch.cat([A.values, A.values[perm.long()]]))
