# SPDX-License-Identifier: BSD-3-Clause
"""What a torch user can write today for a differentiable sparse product, from the obvious to the best by hand.

What torch 2.13 does on the CPU when both operands want a gradient, A being CSR:
``torch.sparse.mm(A, X)`` gives dA on A's pattern, but converts A to its transpose in every backward;
``A @ X`` and ``A.t() @ X`` give a dense dA, rows x cols; ``torch.sparse.mm(A.t(), X)`` raises in the backward.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from bench.row import Skip

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

MEMORY_LIMIT = 4e9  # bytes of a dense gradient
GATHER_LIMIT = 5e8  # bytes of one gathered temporary; there are several
Pattern = tuple[Tensor, Tensor, tuple[int, int]]  # indptr, indices, shape


def csr(pattern: Pattern, values: Tensor) -> Tensor:
    """A torch CSR tensor on trusted arrays."""
    indptr, indices, shape = pattern
    return torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)


def cupy() -> Any:
    """CuPy, which computes on a GPU alone."""
    try:
        import cupy
        import cupyx.scipy.sparse.linalg
    except ImportError as missing:
        raise Skip("cupy is not installed") from missing
    return cupy, cupyx.scipy.sparse


def cupy_csr(pattern: Pattern, values: Tensor) -> Any:
    """A CuPy matrix on the arrays of torch."""
    library, sparse = cupy()
    indptr, indices, shape = pattern
    return sparse.csr_matrix(tuple(library.from_dlpack(t.detach()) for t in (values, indices, indptr)), shape=shape)


def as_matrix(X: Tensor) -> Tensor:
    return X[:, None] if X.dim() == 1 else X


def sampled(mask: Tensor, U: Tensor, V: Tensor) -> Tensor:
    """U Vᵀ on the pattern of a CSR tensor."""
    result: Tensor = torch.sparse.sampled_addmm(mask, as_matrix(U), as_matrix(V).t(), beta=0.0)
    return result


def refuse_dense_gradient(A: Tensor) -> None:
    size = A.shape[0] * A.shape[1] * A.element_size()
    if size > MEMORY_LIMIT:
        raise Skip(f"the gradient of A would be a dense {A.shape[0]} x {A.shape[1]} matrix of {size / 1e9:.0f} GB")


def refuse_large_gather(nnz: int, X: Tensor) -> None:
    size = nnz * (X.numel() // max(X.shape[0], 1)) * X.element_size()
    if size > GATHER_LIMIT:
        raise Skip(f"gathers temporaries of {size / 1e9:.1f} GB each")


def gathered_product(rows: Tensor, cols: Tensor, values: Tensor, X: Tensor, height: int) -> Tensor:
    """Y[rows[k]] += values[k] X[cols[k]]."""
    refuse_large_gather(values.numel(), X)
    scaled = X.index_select(0, cols) * (values if X.dim() == 1 else values[:, None])
    return X.new_zeros((height, *X.shape[1:])).index_add(0, rows, scaled)


def gathered_dots(rows: Tensor, cols: Tensor, U: Tensor, V: Tensor) -> Tensor:
    """U[rows[k]] . V[cols[k]]."""
    refuse_large_gather(rows.numel(), U)
    products = U.index_select(0, rows) * V.index_select(0, cols)
    return products if U.dim() == 1 else products.sum(1)


def by_hand(values: Tensor, X: Tensor, this: Pattern, other: Pattern, perm: Tensor, transpose: bool) -> Tensor:
    """A X or Aᵀ X with the best torch.sparse offers: the transposed pattern is kept, dA is a sampled_addmm.

    ``this`` and ``other`` are the pattern of A and of its transpose; ``perm`` takes A's values to the transpose's.
    """
    result: Tensor = ByHand.apply(values, X, this, other, perm, transpose)  # type: ignore[no-untyped-call]
    return result


class ByHand(torch.autograd.Function):
    """See by_hand."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, X: Tensor, this: Pattern, other: Pattern, perm: Tensor, transpose: bool
    ) -> Tensor:
        ctx.save_for_backward(values, X)
        ctx.plan = this, other, perm, transpose
        return csr(other, values[perm]) @ X if transpose else csr(this, values) @ X

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (G,) = grads
        values, X = ctx.saved_tensors
        this, other, perm, transpose = ctx.plan
        left, right = (X, G) if transpose else (G, X)
        A = csr(this, values)
        dA = sampled(A, left, right).values()
        dX = A @ G if transpose else csr(other, values[perm]) @ G
        return dA, dX, None, None, None, None
