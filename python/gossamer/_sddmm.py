# SPDX-License-Identifier: BSD-3-Clause
"""A product of dense matrices, sampled on a pattern."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed import DistributedMatrix


@overload
def sddmm(P: DistributedMatrix, U: Tensor, V: Tensor) -> DistributedMatrix: ...
@overload
def sddmm(P: Pattern | SparseMatrix, U: Tensor, V: Tensor) -> SparseMatrix: ...
def sddmm(P: Pattern | SparseMatrix | DistributedMatrix, U: Tensor, V: Tensor) -> SparseMatrix | DistributedMatrix:
    """(U Vᵀ) on the entries of P: a dense-dense product, computed only where P has entries.

    Shapes: P (m, n), U (m, d), V (n, d) or vectors U (m,), V (n,): values (nnz,). U (m, H, d), V (n, H, d): values
    (nnz, H). Only the pattern of P is read, never its values. Of a ``gs.distributed.DistributedMatrix``, U and V are
    this rank's rows, and the result is distributed alike.

    Cost: O(nnz H d).   Gradient: dU = G V, dV = Gᵀ U, with G on P's pattern.

    >>> P = gs.eye(2).pattern
    >>> gs.sddmm(P, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])).values
    tensor([3., 8.])
    """
    if isinstance(P, DistributedMatrix):
        return P._sddmm(U, V)
    pattern = P.pattern if isinstance(P, SparseMatrix) else P
    if not isinstance(pattern, Pattern):
        raise TypeError(f"sddmm: P must be a Pattern or a SparseMatrix, not {type(P).__name__}")
    tensors = pattern.tensors_for(V)
    return SparseMatrix._trusted(pattern, torch.ops.gossamer.sddmm.default(tensors, U, V, pattern.shape))
