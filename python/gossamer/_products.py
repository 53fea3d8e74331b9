# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrices times dense and sparse ones. The operators of SparseMatrix call these functions, so they know only
its base, PatternValues."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer import _library as _library  # an op must be there before its name is looked up
from gossamer._operands import is_dense, with_dense, with_matrix
from gossamer._pattern import Pattern, alike
from gossamer._transforms import is_inside
from gossamer._values import PatternValues, check_matrix, size

if TYPE_CHECKING:
    from gossamer._sparse_matrix import SparseMatrix
    from gossamer.distributed import DistributedMatrix

_spmm = torch.ops.gossamer.spmm.default  # looking it up takes a third of a microsecond
_A_B, _AT_B = 0, 2  # forms of a product: neither operand is transposed, or the left one is


def spmm(A: SparseMatrix | DistributedMatrix, X: Tensor, transpose: bool = False) -> Tensor:
    """Y = A X, or Aᵀ X: sparse times dense. X may be a NumPy array or a list; Y is a tensor.

    Of a ``gs.distributed.DistributedMatrix``, X and Y are this rank's rows.

    Shapes: A (m, n) with values (nnz,): X (n,) or (n, d) gives (m,) or (m, d). With values (nnz, H), H matrices on one
    pattern: X (n, H) or (n, H, d) gives (m, H) or (m, H, d). For Aᵀ, X has m rows. X may be strided.

    Cost: O(nnz H d). The first transposed product (or the first gradient for X) also builds the transposed pattern,
    O(nnz), which is kept with the pattern.

    Gradient: dA = (G Xᵀ) on A's pattern, dX = Aᵀ G.

    >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> gs.spmm(A, torch.tensor([3.0, 4.0]))
    tensor([8., 3.])
    """
    if not isinstance(A, PatternValues) and hasattr(A, "_spmm"):  # a DistributedMatrix
        return A._spmm(X, transpose)
    check_matrix("spmm", "A", A)
    if not is_dense(X):
        raise TypeError(f"spmm: X must be a torch.Tensor or an array, not {type(X).__name__}")
    return product(cast("SparseMatrix", A), X, transpose)


def product(A: SparseMatrix, X: Tensor, transpose: bool = False) -> Tensor:
    """The same for what is known to be a matrix and a dense operand. Every small product comes this way: few steps."""
    if A._original is not None:
        A, transpose = A._original, not transpose
    if not isinstance(X, Tensor) or X.dtype != A._values.dtype:
        A, X = with_dense(A, X)
    pattern = A.pattern
    tensors = pattern._tensors_for_product(X, transpose)
    return _spmm(tensors, A._values, X, pattern.shape, transpose)


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
    check_matrix("spgemm", "A", A)
    check_matrix("spgemm", "B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"spgemm: A is {size(A)} and B is {size(B)}, which do not multiply")
    if mask is None and A._original is not None and B._original is not None:
        return spgemm(B._original, A._original).T  # Aᵀ Bᵀ = (B A)ᵀ
    if mask is None and A._original is None:
        first = _first_product(A, B)
        if first is not None:
            return first
    pattern = mask.pattern if isinstance(mask, PatternValues) else mask or A.pattern.product(B.pattern)
    for P in (A.pattern, B.pattern, pattern):
        P.check_simple("spgemm")
    form = _A_B if A._original is None else _AT_B
    A, B = with_matrix(A if A._original is None else A._original, B)
    P, Q, R = alike(A.pattern, B.pattern, pattern)
    # A device reads the transpose of A, for Aᵀ B and for the gradient of B, and the host does without.
    tensors = P.tensors_for(B.values, with_transpose=form == _AT_B) if P.device.type == "cuda" else P.tensors()
    left, right = (tensors, A.values, P.shape), (Q.tensors(), B.values, Q.shape)
    given = *left, *right, R.tensors(), R.shape, form
    return A._trusted(
        pattern, _interrupt.called(_interrupt.is_long(P, Q, R), torch.ops.gossamer.spgemm.default, *given)
    )


def _first_product(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix | None:
    """Pattern and values at once, if the patterns have not met; the pattern is kept as ``Pattern.product`` does it. A
    transform of torch.func, which must not find its way into what is kept, does one after the other."""
    P, Q = alike(A.pattern, B.pattern)
    if is_inside() or P.device.type != "cpu" or Q.device.type != "cpu" or P.keeps("product", Q):
        return None
    P.check_simple("spgemm")
    Q.check_simple("spgemm")
    A, B = with_matrix(A, B)
    op = torch.ops.gossamer.first_product.default
    given = P.tensors(), A.values, P.shape, Q.tensors(), B.values, Q.shape
    indptr, indices, c = _interrupt.called(_interrupt.is_long(P, Q), op, *given)
    pattern = Pattern(indptr, indices, (P.shape[0], Q.shape[1]), check=False)
    return A._trusted(P.keep("product", lambda: pattern, Q), c)


def matmul(a: Tensor | SparseMatrix, b: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
    """a b for any mix of dense and sparse: sparse times sparse is sparse, everything else is dense.

    The gradients follow one rule for all four: swap, transpose, and mask to the pattern of a sparse operand
    (docs/gradients.md).

    >>> A, X = gs.poisson(2), torch.ones(2, 3)
    >>> type(gs.matmul(A, A)).__name__, gs.matmul(A, X).shape, gs.matmul(X.T, A).shape
    ('SparseMatrix', torch.Size([2, 3]), torch.Size([3, 2]))
    """
    if isinstance(a, PatternValues):
        return spgemm(a, b) if isinstance(b, PatternValues) else spmm(a, b)
    return b.__rmatmul__(a) if isinstance(b, PatternValues) else torch.matmul(a, b)
