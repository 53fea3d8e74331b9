# SPDX-License-Identifier: BSD-3-Clause
"""Matrices put together from others, differentiable in all of them, and the comparison of two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from gossamer._pattern import Pattern, simple_within
from gossamer._sparse_matrix import SparseMatrix

_ops = torch.ops.gossamer


def diag(v: Tensor, k: int = 0) -> SparseMatrix:
    """v on diagonal k of a square matrix of ``len(v) + abs(k)`` rows. Gradient: dv = the diagonal of G.

    >>> gs.diag(torch.tensor([1.0, 2.0]), 1).to_dense()
    tensor([[0., 1., 0.],
            [0., 0., 2.],
            [0., 0., 0.]])
    """
    v = v if isinstance(v, Tensor) else torch.as_tensor(v)
    indptr, indices, values = _ops.diag(v, k)
    n = indptr.shape[0] - 1
    return SparseMatrix._trusted(Pattern(indptr, indices, (n, n), check=False), values)


def kron(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """The Kronecker product: block (i, j) is A[i, j] B. (m₁ m₂, n₁ n₂) with nnz_A nnz_B entries, at that cost.

    Gradient: dA[i, j] = Σ (block (i, j) of G) ∘ B, dB = Σ A[i, j] (block (i, j) of G).

    >>> gs.kron(gs.eye(2), gs.from_dense(torch.tensor([[1.0, 2.0]]))).to_dense()
    tensor([[1., 2., 0., 0.],
            [0., 0., 1., 2.]])
    """
    A, B = _matrices("kron", [A, B])
    P, Q = A.pattern, B.pattern
    indptr, indices, values = _ops.kron(P.tensors(), A.values, P.shape, Q.tensors(), B.values, Q.shape)
    shape = P.shape[0] * Q.shape[0], P.shape[1] * Q.shape[1]
    return SparseMatrix._trusted(Pattern(indptr, indices, shape, check=False, simple=simple_within(P, Q)), values)


def vstack(matrices: Iterable[SparseMatrix]) -> SparseMatrix:
    """Matrices of equally many columns, one below the other.

    >>> gs.vstack([gs.eye(2), gs.eye(1, 2)]).to_dense()
    tensor([[1., 0.],
            [0., 1.],
            [1., 0.]])
    """
    return _stack("vstack", matrices, True, False)


def hstack(matrices: Iterable[SparseMatrix]) -> SparseMatrix:
    """Matrices of equally many rows, side by side."""
    return _stack("hstack", matrices, False, True)


def block_diag(matrices: Iterable[SparseMatrix]) -> SparseMatrix:
    """Matrices along the diagonal: a batch of graphs as one."""
    return _stack("block_diag", matrices, True, True)


def allclose(A: SparseMatrix, B: SparseMatrix, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether ``|A - B| <= atol + rtol |B|`` everywhere, entries that are not stored being zeros. Patterns may differ.

    >>> gs.allclose(gs.eye(2), gs.from_dense(torch.eye(2) + 1e-9))
    True
    """
    A, B = _matrices("allclose", [A, B])
    if A.shape != B.shape:
        return False
    A.pattern.check_simple("allclose")
    B.pattern.check_simple("allclose")
    return _ops.allclose(A.pattern.tensors(), A.values, B.pattern.tensors(), B.values, A.shape, rtol, atol, equal_nan)


def _stack(op: str, matrices: Iterable[SparseMatrix], below: bool, beside: bool) -> SparseMatrix:
    given = _matrices(op, matrices)
    patterns = [A.pattern for A in given]
    indptr, indices, values = _ops.stack(
        [P.indptr for P in patterns],
        [P.indices for P in patterns],
        [A.values for A in given],
        [size for P in patterns for size in P.shape],
        below,
        beside,
    )
    cols = sum(P.shape[1] for P in patterns) if beside else patterns[0].shape[1]
    shape = indptr.shape[0] - 1, cols
    return SparseMatrix._trusted(Pattern(indptr, indices, shape, check=False, simple=simple_within(*patterns)), values)


def _matrices(op: str, given: Iterable[Any]) -> list[SparseMatrix]:
    matrices = list(given)
    for A in matrices:
        if not isinstance(A, SparseMatrix):
            raise TypeError(f"{op}: wants SparseMatrix, not {type(A).__name__}")
    return matrices
