# SPDX-License-Identifier: BSD-3-Clause
"""The exponential of a sparse matrix times a vector. The work is done in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix


def expm_multiply(A: SparseMatrix, b: Tensor, t: float = 1.0) -> Tensor:
    """exp(t A) b for a square A: the solution at time t of y' = A y, y(0) = b. The exponential itself is not formed.

    Shapes: b (n,) or (n, k) gives the same; values (nnz,). To full precision of float64, by Taylor polynomials in a few
    steps (Al-Mohy & Higham 2011); their number and degree follow from ‖t A‖₁, shifted by the mean of the diagonal.

    Cost: about 7 + 2 ‖t (A - μ I)‖₁ products of A with b, and more where the norm is small: 31 of them for a norm of 4.
    A stiff A with a norm of thousands takes thousands; steps of an implicit method, with ``linalg.solve``, take fewer.

    Gradient: that of the products, in A and b, to any order; it keeps one vector for each product. t is a number.

    >>> turn = gs.from_dense(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> gs.linalg.expm_multiply(turn, torch.tensor([1.0, 0.0]), t=torch.pi / 2).round(decimals=4).abs()
    tensor([0., 1.])
    """
    check_matrix("expm_multiply", "A", A)
    if not isinstance(b, Tensor):
        raise TypeError(f"expm_multiply: b must be a torch.Tensor, not {type(b).__name__}")
    P = A.pattern
    wanted = torch.is_grad_enabled() and (A.values.requires_grad or b.requires_grad)
    tensors = P.with_runs(wanted)
    return torch.ops.gossamer.expm_multiply.default(tensors, A.values, b, P.shape, float(t))
