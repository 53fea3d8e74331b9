# SPDX-License-Identifier: BSD-3-Clause
"""The ops: typed, documented, one line each. The work is done in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from gossamer.pattern import Pattern
from gossamer.sparse_matrix import SparseMatrix


def spmm(A: SparseMatrix, X: Tensor, transpose: bool = False) -> Tensor:
    """Y = A X, or Aᵀ X: sparse times dense.

    Shapes: A (m, n) with values (nnz,): X (n,) or (n, d) gives (m,) or (m, d). With values (nnz, H), H matrices on one
    pattern: X (n, H) or (n, H, d) gives (m, H) or (m, H, d). For Aᵀ, X has m rows. X may be strided.

    Cost: O(nnz H d). The first transposed product (or the first gradient for X) also builds the transposed pattern,
    O(nnz), which is kept with the pattern.

    Gradient: dA = (G Xᵀ) on A's pattern, dX = Aᵀ G.

    >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> gs.spmm(A, torch.tensor([3.0, 4.0]))
    tensor([8., 3.])
    """
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"spmm: A must be a SparseMatrix, not {type(A).__name__}")
    if not isinstance(X, Tensor):
        raise TypeError(f"spmm: X must be a torch.Tensor, not {type(X).__name__}")
    return A._spmm(X, transpose)


def sddmm(P: Pattern | SparseMatrix, U: Tensor, V: Tensor) -> SparseMatrix:
    """(U Vᵀ) on the entries of P: a dense-dense product, computed only where P has entries.

    Shapes: P (m, n), U (m, d), V (n, d) or vectors U (m,), V (n,): values (nnz,). U (m, H, d), V (n, H, d): values
    (nnz, H). Only the pattern of P is read, never its values.

    Cost: O(nnz H d).   Gradient: dU = G V, dV = Gᵀ U, with G on P's pattern.

    >>> P = gs.eye(2).pattern
    >>> gs.sddmm(P, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])).values
    tensor([3., 8.])
    """
    pattern = P.pattern if isinstance(P, SparseMatrix) else P
    if not isinstance(pattern, Pattern):
        raise TypeError(f"sddmm: P must be a Pattern or a SparseMatrix, not {type(P).__name__}")
    tensors = pattern.tensors(torch.is_grad_enabled() and V.requires_grad)
    return SparseMatrix._trusted(pattern, torch.ops.gossamer.sddmm.default(tensors, U, V, pattern.shape))


def spgemm(A: SparseMatrix, B: SparseMatrix, mask: Pattern | SparseMatrix | None = None) -> SparseMatrix:
    """C = A B: sparse times sparse, on its own pattern or only on the entries of ``mask``. ``A @ B`` is the same.

    Shapes: A (m, k), B (k, n): C (m, n). Values (nnz,). A computed zero stays stored.

    Cost: O(products), where each entry A[i, k] makes one product with each entry of row k of B. The pattern of C is
    found once for a pair of patterns and kept with A's.

    Gradient: dA = (G Bᵀ) on A's pattern, dB = (Aᵀ G) on B's. Neither forms more than it returns.

    >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> gs.spgemm(A, A).to_dense()
    tensor([[2., 0.],
            [0., 2.]])
    """
    _both("spgemm", A, B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"spgemm: A is {_size(A)} and B is {_size(B)}, which do not multiply")
    pattern = mask.pattern if isinstance(mask, SparseMatrix) else mask or A.pattern.product(B.pattern)
    if pattern.shape != (A.shape[0], B.shape[1]):
        raise ValueError(f"spgemm: the mask has shape {pattern.shape} but A B has {(A.shape[0], B.shape[1])}")
    tensors = A.pattern.tensors(torch.is_grad_enabled() and B.requires_grad)
    left, right = (tensors, A.values, A.shape), (B.pattern.tensors(), B.values, B.shape)
    return SparseMatrix._trusted(pattern, torch.ops.gossamer.spgemm.default(*left, *right, pattern.tensors(), 0))


def spadd(A: SparseMatrix, B: SparseMatrix, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0) -> SparseMatrix:
    """C = αA + βB on the union of the patterns. ``A + B`` and ``A - B`` are the same with α, β = ±1.

    α and β are numbers or 0-dim tensors. The union and the maps into it are found once for a pair of patterns.

    Cost: O(nnz(A) + nnz(B)).   Gradient: dA = αG on A's pattern, dB = βG on B's, dα = ⟨G, A⟩, dβ = ⟨G, B⟩.

    >>> (gs.eye(2) + gs.poisson(2)).to_dense()
    tensor([[ 3., -1.],
            [-1.,  3.]])
    """
    _alike("spadd", A, B)
    a, b = _scaled(A.values, alpha), _scaled(B.values, beta)
    if A.pattern.equals(B.pattern):
        return SparseMatrix._trusted(A.pattern, a + b)
    union = A.pattern.merge(B.pattern)
    place_sum = torch.ops.gossamer.place_sum.default
    return SparseMatrix._trusted(union.pattern, place_sum(a, union.at_A, b, union.at_B, union.pattern.nnz))


def hadamard(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """The entrywise product, on the intersection of the patterns. ``A * B`` is the same.

    Cost: O(nnz(A) + nnz(B)).   Gradient: dA = G ∘ B, dB = G ∘ A, zero outside the intersection.
    """
    _alike("hadamard", A, B)
    if A.pattern.equals(B.pattern):
        return SparseMatrix._trusted(A.pattern, A.values * B.values)
    both = A.pattern.merge(B.pattern, intersect=True)
    pick = torch.ops.gossamer.pick.default
    return SparseMatrix._trusted(both.pattern, pick(A.values, both.at_A) * pick(B.values, both.at_B))


def matmul(a: Tensor | SparseMatrix, b: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
    """a b for any mix of dense and sparse: sparse times sparse is sparse, everything else is dense.

    The gradients follow one rule for all four: swap, transpose, and mask to the pattern of a sparse operand
    (docs/gradients.md).

    >>> A, X = gs.poisson(2), torch.ones(2, 3)
    >>> type(gs.matmul(A, A)).__name__, gs.matmul(A, X).shape, gs.matmul(X.T, A).shape
    ('SparseMatrix', torch.Size([2, 3]), torch.Size([3, 2]))
    """
    if isinstance(a, SparseMatrix):
        return spgemm(a, b) if isinstance(b, SparseMatrix) else spmm(a, b)
    return b.__rmatmul__(a) if isinstance(b, SparseMatrix) else torch.matmul(a, b)


def _scaled(values: Tensor, factor: float | Tensor) -> Tensor:
    if isinstance(factor, Tensor):
        return torch.ops.gossamer.scale.default(values, factor)
    return values if factor == 1 else factor * values


def _size(A: SparseMatrix) -> str:
    return f"{A.shape[0]} x {A.shape[1]}"


def _both(op: str, A: SparseMatrix, B: SparseMatrix) -> None:
    for name, X in (("A", A), ("B", B)):
        if not isinstance(X, SparseMatrix):
            raise TypeError(f"{op}: {name} must be a SparseMatrix, not {type(X).__name__}")


def _alike(op: str, A: SparseMatrix, B: SparseMatrix) -> None:
    _both(op, A, B)
    if A.shape != B.shape:
        raise ValueError(f"{op}: A is {_size(A)} but B is {_size(B)}")
    if A.dtype != B.dtype:
        raise TypeError(f"{op}: A is {A.dtype} but B is {B.dtype}")
    if A.device != B.device:
        raise ValueError(f"{op}: A is on {A.device} but B is on {B.device}")
    if A.values.shape[1:] != B.values.shape[1:]:
        raise ValueError(f"{op}: A has values {tuple(A.values.shape)} but B has {tuple(B.values.shape)}")
