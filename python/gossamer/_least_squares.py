# SPDX-License-Identifier: BSD-3-Clause
"""Least squares with sparse matrices. The work is done in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._krylov import lsmr
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix


def lstsq(A: SparseMatrix, b: Tensor, damp: float = 0.0, method: str = "cholesky") -> Tensor:
    """The x that makes ‖A x - b‖² + damp² ‖x‖² smallest; of several the smallest one, as for a wide A.

    Shapes: A (m, n) with values (nnz,); b (m,) or (m, k) gives x (n,) or (n, k).

    method: "cholesky", the normal equations Aᵀ A + damp² I (A Aᵀ if A is wide) by our own factorisation, refined on the
    augmented system until rounding stops it. Good up to condition numbers of about 10⁷. A without full rank raises
    SingularMatrixError unless damp > 0: there the solution jumps, and has no derivative. "lsmr" iterates instead
    (``linalg.lsmr`` with a tolerance of 10⁻¹²) and makes no product: for an A with dense rows, or too large to factor.
    It cannot tell that A lacks full rank.

    Cost: a sparse product and a factorisation, whose patterns are kept with that of A, and a few solves. float32 is
    solved in float64 and rounded. A dense row of a tall A makes Aᵀ A dense.

    Gradient: with z = (A⁺)ᵀ g, r = b - A x and, for a tall A, y = (Aᵀ A)⁻¹ g: db = z, dA = r yᵀ - z xᵀ on A's pattern,
    from the same factors. Derivatives exist to any order. damp is a number.

    >>> A = gs.from_dense(torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]))  # a line through three points
    >>> gs.linalg.lstsq(A, torch.tensor([1.0, 3.0, 5.0])).round(decimals=4)
    tensor([1., 2.])
    """
    check_matrix("lstsq", "A", A)
    if not isinstance(b, Tensor):
        raise TypeError(f"lstsq: b must be a torch.Tensor, not {type(b).__name__}")
    if method == "lsmr":
        return lsmr(A, b, damp=damp, rtol=1e-12 if A.dtype is torch.float64 else None)[0]
    if method != "cholesky":
        raise ValueError(f'lstsq: method must be "cholesky" or "lsmr", not "{method}"')
    P = A.pattern
    P.check_simple("lstsq")

    def derive() -> tuple[Pattern, Tensor]:
        product = P.product(P.T) if P.shape[0] < P.shape[1] else P.T.product(P)
        n, indices = product.shape[0], product.indices
        count = torch.arange(n + 1, dtype=indices.dtype, device=indices.device)
        whole = product.merge(Pattern(count, count[:-1], (n, n), check=False)).pattern
        i = torch.arange(n, device=indices.device)
        return whole, torch.ops.gossamer.entries.default(whole.indptr, whole.indices, whole.shape, i, i)[1]

    N, diagonal = P.keep("gram", derive)
    gram = N.tensors(), diagonal, N.analysis()
    given = P.tensors(True), A.values, b, P.shape, float(damp), *gram
    return _interrupt.called(_interrupt.takes_long(N), torch.ops.gossamer.lstsq.default, *given)
