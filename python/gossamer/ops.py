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
