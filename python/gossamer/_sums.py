# SPDX-License-Identifier: BSD-3-Clause
"""Sums and entrywise products of two matrices: what happens on the union and the intersection of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._operands import as_tensor, is_dense
from gossamer._pattern import alike
from gossamer._values import check_matrix, is_matrix, size

if TYPE_CHECKING:
    from gossamer._sparse_matrix import SparseMatrix


def spadd(A: SparseMatrix, B: SparseMatrix, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0) -> SparseMatrix:
    """C = αA + βB on the union of the patterns. ``A + B`` and ``A - B`` are the same with α, β = ±1.

    α and β are numbers or 0-dim tensors. The union is found once for a pair of patterns, together with the first sum;
    the maps into it, with which later sums are faster, by the second one or for the first gradient.

    Cost: O(nnz(A) + nnz(B)).   Gradient: dA = αG on A's pattern, dB = βG on B's, dα = ⟨G, A⟩, dβ = ⟨G, B⟩.

    >>> (gs.eye(2) + gs.poisson(2)).to_dense()
    tensor([[ 3., -1.],
            [-1.,  3.]])
    """
    check_alike("spadd", A, B)
    a, b = _scaled(A.values, alpha), _scaled(B.values, beta)
    if a.dtype != b.dtype:
        dtype = torch.promote_types(a.dtype, b.dtype)
        a, b = a.to(dtype), b.to(dtype)
    if A.pattern.equals(B.pattern):
        return A._trusted(A.pattern, a + b)
    P, Q = alike(A.pattern, B.pattern)
    if not P.keeps("union pattern", Q):
        return A._trusted(*P.first_sum(a, Q, b))
    union = P.merge(Q)
    place_sum = torch.ops.gossamer.place_sum.default
    return A._trusted(union.pattern, place_sum(a, union.at_A, b, union.at_B, union.pattern.nnz))


def hadamard(A: SparseMatrix, B: SparseMatrix | Tensor) -> SparseMatrix:
    """The entrywise product, on the intersection of the patterns. ``A * B`` is the same.

    A dense B has A's shape or is broadcast to it: (n,), (1, n), (m, 1), a number; the product is on A's pattern, and no
    more of B is read than that.

    Cost: O(nnz(A) + nnz(B)).   Gradient: dA = G ∘ B, dB = G ∘ A, zero outside the intersection.
    """
    if not is_matrix(B):
        return _times_dense(A, B)
    check_alike("hadamard", A, B)
    A.pattern.check_simple("hadamard")
    if A.pattern.equals(B.pattern):
        return A._trusted(A.pattern, A.values * B.values)
    both = A.pattern.merge(B.pattern, intersect=True)
    pick = torch.ops.gossamer.pick.default
    return A._trusted(both.pattern, pick(A.values, both.at_A) * pick(B.values, both.at_B))


def _times_dense(A: SparseMatrix, B: Any) -> SparseMatrix:
    check_matrix("hadamard", "A", A)
    if not is_dense(B):
        raise TypeError(f"hadamard: B must be a SparseMatrix or a tensor, not {type(B).__name__}")
    X = as_tensor(B, A.values)
    if X.dim() == 0 or (A.values.dim() == 2 and X.dim() == 1):  # a number, or one a head
        return A._trusted(A.pattern, torch.ops.gossamer.times.default(A.values, X))
    tensors = A.pattern.tensors_for(X)
    return A._trusted(A.pattern, torch.ops.gossamer.times_dense.default(tensors, A.values, X, A.shape))


def _scaled(values: Tensor, factor: float | Tensor) -> Tensor:
    if isinstance(factor, Tensor):
        return torch.ops.gossamer.times.default(values, factor)
    return values if factor == 1 else factor * values


def check_alike(op: str, A: SparseMatrix, B: SparseMatrix) -> None:
    """Both are matrices of one shape, device and number of heads; else an error that names the op."""
    check_matrix(op, "A", A)
    check_matrix(op, "B", B)
    if A.shape != B.shape:
        raise ValueError(f"{op}: A is {size(A)} but B is {size(B)}")
    if A.device != B.device:
        raise ValueError(f"{op}: A is on {A.device} but B is on {B.device}")
    if A.values.shape[1:] != B.values.shape[1:]:
        raise ValueError(f"{op}: A has values {tuple(A.values.shape)} but B has {tuple(B.values.shape)}")
