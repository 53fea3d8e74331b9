# SPDX-License-Identifier: BSD-3-Clause
"""A matrix whose rows are on many processes. Only its values are differentiated."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from gossamer._indices import Shape, short
from gossamer._operands import as_tensor, is_dense, promoted
from gossamer._values import checked_values
from gossamer.distributed._exchange import Block, Exchange
from gossamer.distributed._group import refuse
from gossamer.distributed._rowwise import RowWise

_ops = torch.ops.gossamer


class DistributedMatrix(RowWise):
    """This rank's rows of a sparse matrix, and the plan by which it gets rows of others.

    ``values`` are those of the own entries, an ordinary tensor, (nnz,) or (nnz, H). In ``A @ x`` x has this rank's rows
    of the operand, ``A.local_shape[1]`` of them, and the result has this rank's rows of the product. Its bits, and
    those of its first and further derivatives, are those of the same product in one process, for every number of ranks
    and every partition.

    Every rank calls the same functions in the same order; what is differentiated is the sum over the ranks of what each
    of them calls backward on. Made by ``from_rows``, ``scatter`` or ``load``.

    >>> A = gs.distributed.scatter(gs.poisson(3)).requires_grad_()
    >>> (A @ torch.ones(3)).sum().backward()
    >>> A.grad.values
    tensor([1., 1., 1., 1., 1., 1., 1.])
    """

    __module__ = "gossamer.distributed"
    keep_halo = False
    """Whether the halo of x in ``A @ x`` is kept for the gradient of the values; it is fetched again else."""

    def __init__(self, pattern: Block, values: Tensor) -> None:
        if not isinstance(pattern, Block):
            raise TypeError("DistributedMatrix: made by gs.distributed.from_rows, scatter or load")
        self.pattern, self._values = pattern, checked_values(pattern, values)

    @classmethod
    def _trusted(cls, pattern: Block, values: Tensor, keep_halo: bool = False) -> DistributedMatrix:
        A = cls.__new__(cls)
        A.pattern, A._values, A.keep_halo = pattern, values, keep_halo
        return A

    def _with(self, values: Tensor) -> DistributedMatrix:
        return DistributedMatrix._trusted(self.pattern, values, self.keep_halo)

    # What it is.

    @property
    def values(self) -> Tensor:
        """Of this rank's entries: (nnz,), or (nnz, H) for H matrices on one pattern."""
        return self._values

    @values.setter
    def values(self, values: Tensor) -> None:
        self._values = checked_values(self.pattern, values)

    @property
    def exchange(self) -> Exchange:
        """The plan: who owns what, and who sends which rows to whom."""
        return self.pattern.exchange

    @property
    def shape(self) -> Shape:
        """Of the whole matrix."""
        return self.exchange.shape

    @property
    def local_shape(self) -> Shape:
        """How many rows this rank owns, and how many columns: rows of what the matrix is multiplied with."""
        rows, cols = self.exchange.counts[:2]
        return rows, cols

    @property
    def offsets(self) -> Tensor:
        """Rank r owns the rows offsets[r] … offsets[r + 1] - 1."""
        return self.exchange.offsets[0]

    @property
    def column_offsets(self) -> Tensor:
        """The same of the columns."""
        return self.exchange.offsets[1]

    @property
    def row_keys(self) -> Tensor:
        """The original numbers of this rank's rows."""
        return self.exchange.keys[0]

    @property
    def col_keys(self) -> Tensor:
        """The original numbers of this rank's columns: ``X[A.col_keys]`` are its rows of X."""
        return self.exchange.keys[1]

    @property
    def group(self) -> str:
        """The name of the process group; "" is this process alone."""
        return self.exchange.group

    @property
    def mesh(self) -> Any:
        """As it was given: a DeviceMesh, a ProcessGroup or None."""
        return self.exchange.mesh

    @property
    def nnz(self) -> int:
        """The number of this rank's entries."""
        return self.pattern.nnz

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    def __repr__(self) -> str:
        size = f"{self.shape[0]} x {self.shape[1]}, rows={self.local_shape[0]}, nnz={self.nnz}"
        heads = f", heads={self.values.shape[1]}" if self.values.dim() == 2 else ""
        grad = ", requires_grad=True" if self.requires_grad else ""
        return f"DistributedMatrix({size}{heads}, {short(self.dtype)}, group={self.group!r}, {self.device}{grad})"

    # Differentiation.

    @property
    def requires_grad(self) -> bool:
        return self.values.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> DistributedMatrix:
        self.values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> DistributedMatrix | None:
        """The gradient, on the same pattern; None before a backward."""
        return None if self.values.grad is None else self._with(self.values.grad)

    def detach(self) -> DistributedMatrix:
        return self._with(self.values.detach())

    def clone(self) -> DistributedMatrix:
        """The same pattern, a copy of the values; gradients flow back."""
        return self._with(self.values.clone())

    def with_values(self, values: Tensor) -> DistributedMatrix:
        """Other values on the same pattern. Where they do not fit, the next product says so, on all ranks."""
        return self._with(values if self.group else checked_values(self.pattern, values))

    def to(self, dtype: torch.dtype) -> DistributedMatrix:
        """Another dtype of the values."""
        return self._with(self.values.to(dtype))

    def prepare(self) -> DistributedMatrix:
        """Itself, with all that gradients and transposes need; else it is made when first needed. All ranks call it.

        Inside ``torch.compile`` nothing can be planned: call it before.
        """
        self.exchange.with_transpose()
        return self

    # Products.

    def _spmm(self, X: Any, transpose: bool) -> Tensor:
        return product(self, X, transpose)

    def _sddmm(self, U: Tensor, V: Tensor) -> DistributedMatrix:
        return sampled(self, U, V)

    def __matmul__(self, X: Any) -> Tensor:
        if not is_dense(X):
            return NotImplemented
        return product(self, X)

    @property
    def T(self) -> DistributedMatrix:
        """The transpose, which costs nothing until somebody asks for its values: products take this matrix."""
        return TransposedRows(self)

    def halo(self, x: Tensor) -> Tensor:
        """x and the rows of others that this rank's entries need: (own columns + halo, …), as ``A.pattern`` numbers
        them. Gradient: rows go back to their owners and are added there.

        >>> A = gs.distributed.scatter(gs.poisson(3))
        >>> A.halo(torch.arange(3.0))
        tensor([0., 1., 2.])
        """
        index, send, recv = self.exchange.halo
        if x.shape[:1] != (self.local_shape[1],):
            refuse(f"halo: x has shape {tuple(x.shape)}, but this rank owns {self.local_shape[1]} columns", self.group)
        return torch.cat([x, _ops.halo(x, index, send, recv, self.group)])


class TransposedRows(DistributedMatrix):
    """Aᵀ without arrays of its own: who asks for its pattern or its values has them made, by all ranks together."""

    def __init__(self, A: DistributedMatrix) -> None:
        self._original = DistributedMatrix._trusted(A.pattern, A.values, A.keep_halo)
        self.keep_halo = A.keep_halo

    @property
    def T(self) -> DistributedMatrix:
        return self._original

    @property
    def pattern(self) -> Block:  # type: ignore[override]
        return self._original.pattern.swapped()

    @property  # type: ignore[misc]
    def values(self) -> Tensor:  # type: ignore[override]
        A = self._original
        return _ops.route(A.values, *A.exchange.with_transpose().route, False, A.group)

    def with_values(self, values: Tensor) -> DistributedMatrix:  # type: ignore[override]
        return DistributedMatrix._trusted(self.pattern, values, self.keep_halo)

    # What can be said without asking another rank.

    @property
    def shape(self) -> Shape:
        return self._original.shape[::-1]

    @property
    def local_shape(self) -> Shape:
        return self._original.local_shape[::-1]

    @property
    def offsets(self) -> Tensor:
        return self._original.column_offsets

    @property
    def column_offsets(self) -> Tensor:
        return self._original.offsets

    @property
    def row_keys(self) -> Tensor:
        return self._original.col_keys

    @property
    def col_keys(self) -> Tensor:
        return self._original.row_keys

    @property
    def group(self) -> str:
        return self._original.group

    @property
    def mesh(self) -> Any:
        return self._original.mesh

    @property
    def dtype(self) -> torch.dtype:
        return self._original.dtype

    @property
    def device(self) -> torch.device:
        return self._original.device

    @property
    def requires_grad(self) -> bool:
        return self._original.requires_grad

    def __repr__(self) -> str:
        return f"{self._original!r}.T"


def product(A: DistributedMatrix, X: Any, transpose: bool = False) -> Tensor:
    """Own rows of A X, or of Aᵀ X."""
    if isinstance(A, TransposedRows):
        A, transpose = A._original, not transpose
    values, x = promoted(A._values, as_tensor(X, A._values))
    exchange = A.exchange.ready_for(values, x, transpose=transpose)
    return _ops.spmm_rows(exchange.plan, exchange.counts, values, x, transpose, None, A.keep_halo, exchange.group)


def sampled(A: DistributedMatrix, U: Tensor, V: Tensor) -> DistributedMatrix:
    """(U Vᵀ) on this rank's entries."""
    exchange = A.exchange.ready_for(U, V)
    return A._with(_ops.sddmm_rows(exchange.plan, exchange.counts, U, V, None, A.keep_halo, exchange.group))


# torch.func and friends see a matrix as its values.
pytree.register_pytree_node(
    DistributedMatrix,
    lambda A: ([A.values], (A.pattern, A.keep_halo)),
    lambda values, kept: DistributedMatrix._trusted(kept[0], next(iter(values)), kept[1]),
    serialized_type_name="gossamer.distributed.DistributedMatrix",
    flatten_with_keys_fn=lambda A: ([(pytree.GetAttrKey("values"), A.values)], (A.pattern, A.keep_halo)),
)
