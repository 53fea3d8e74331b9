# SPDX-License-Identifier: BSD-3-Clause
"""The Cholesky factor as a sparse matrix. The work is done in C++."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix


class Cholesky(NamedTuple):
    """What ``linalg.cholesky`` gives: ``L @ L.T`` is ``A[perm][:, perm]``."""

    L: SparseMatrix
    perm: Tensor


def cholesky(A: SparseMatrix) -> Cholesky:
    """L, lower triangular with a positive diagonal, and ``perm``, with L Lᵀ = P A Pᵀ = ``A[perm][:, perm]``.

    A must be symmetric and positive definite; a pivot that is not positive raises ValueError and names the row of A.
    ``perm``, int64, keeps the fill small. L has its own pattern, with all that elimination fills in, which is kept with
    the pattern of A like the ordering; the matrices of one pattern have factors on one pattern. float32 is factored in
    float64 and rounded. One matrix at a time: values (nnz,).

    Cost: a factorisation, and a pass over the entries of L. Gradient: about three factorisations.

    Gradient: dA = sym(L⁻ᵀ Φ(Lᵀ G) L⁻¹) on A's pattern, in A's order of rows; Φ takes the lower triangle and half of the
    diagonal. It is that of the factor of (A + Aᵀ) / 2, and so symmetric, as that of ``logdet`` is. Derivatives exist to
    any order.

    >>> L, perm = gs.linalg.cholesky(gs.from_dense(torch.tensor([[4.0, 2.0], [2.0, 5.0]])))
    >>> L.to_dense(), perm
    (tensor([[2., 0.],
            [1., 2.]]), tensor([0, 1]))
    """
    check_matrix("cholesky", "A", A)
    A = A if A._original is None else A._original  # Aᵀ is A
    P = A.pattern
    P.check_simple("cholesky")
    if P.shape[0] != P.shape[1]:
        raise ValueError(f"cholesky: the matrix must be square, not {P.shape[0]} x {P.shape[1]}")

    def derive() -> tuple[Tensor, Pattern, Tensor, Tensor]:
        derived = torch.ops.gossamer.cholesky_pattern.default(P.analysis(), P.tensors(True), P.shape)
        plan, indptr, indices, perm, at = derived
        return plan, Pattern(indptr, indices, P.shape, check=False), perm, at

    plan, filled, perm, at = P.keep("cholesky", derive)
    given = plan, filled.tensors()[:2], A.values, at
    values = _interrupt.called(_interrupt.takes_long(P), torch.ops.gossamer.cholesky.default, *given)
    return Cholesky(SparseMatrix._trusted(filled, values), perm)
