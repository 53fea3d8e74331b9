# SPDX-License-Identifier: BSD-3-Clause
"""A sparse matrix: a frozen pattern and a tensor of values on it. Only the values are differentiated."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from torch._C import _functorch
from torch.utils import _pytree as pytree

from gossamer import _compile as _compile  # torch.compile learns our operators
from gossamer._elementwise import Elementwise
from gossamer._indices import Shape, short
from gossamer._operators import Operators
from gossamer._pattern import Pattern
from gossamer._reduce import Reductions
from gossamer._scipy_names import SciPyNames
from gossamer._structure import Structure
from gossamer._transforms import as_it_was
from gossamer._values import checked_values

if TYPE_CHECKING:
    import scipy.sparse


class SparseMatrix(Operators, Elementwise, Reductions, Structure, SciPyNames):
    """A matrix in CSR form whose values are an ordinary tensor.

    ``values`` is (nnz,), or (nnz, H) for H matrices on one pattern. Set ``A.requires_grad_()``, compute, call
    ``backward()``: ``A.grad`` is a SparseMatrix on the same pattern. A stored zero stays stored.

    Made from the arrays of the CSR form, which are checked as those of a ``Pattern`` are, or from a pattern and values
    for it. Matrices on one pattern share what is kept with it: its transpose, products, factorisations.

    >>> A = gs.SparseMatrix([0, 1, 3], [0, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    >>> A @ torch.tensor([1.0, 10.0])
    tensor([ 1., 32.])
    >>> B = gs.SparseMatrix(A.pattern, torch.ones(3))
    >>> B.pattern is A.pattern
    True
    """

    __module__ = "gossamer"  # where users find it, and where pickles look for it

    @overload
    def __init__(self, indptr: Any, indices: Any, values: Any, shape: Sequence[int], *, check: bool = True) -> None: ...
    @overload
    def __init__(self, pattern: Pattern, values: Any, /) -> None: ...
    def __init__(
        self,
        indptr: Any,
        indices: Any,
        values: Any = None,
        shape: Sequence[int] | None = None,
        *,
        check: bool = True,
    ) -> None:
        if isinstance(indptr, Pattern) and values is None and shape is None:
            self.pattern, values = indptr, indices
        elif isinstance(indptr, Pattern) or values is None or shape is None:
            raise TypeError("SparseMatrix: wants (indptr, indices, values, shape) or (pattern, values)")
        else:
            self.pattern = Pattern(indptr, indices, shape, check=check)
        self.values = values

    # What it is.

    @property
    def shape(self) -> Shape:
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """The number of stored entries, zeros included."""
        return self.pattern.nnz

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def indptr(self) -> Tensor:
        return self.pattern.indptr

    @property
    def indices(self) -> Tensor:
        return self.pattern.indices

    def __repr__(self) -> str:
        rows, cols = self.shape
        heads = f", heads={self.values.shape[1]}" if self.values.dim() == 2 else ""
        grad = ", requires_grad=True" if self.requires_grad else ""
        size = f"{rows} x {cols}, nnz={self.nnz}{heads}"
        return f"SparseMatrix({size}, {short(self.dtype)}, {short(self.indices.dtype)}, {self.device}{grad})"

    # Differentiation.

    @property
    def requires_grad(self) -> bool:
        return self.values.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> SparseMatrix:
        self.values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> SparseMatrix | None:
        """The gradient, on the same pattern; None before a backward."""
        return None if self.values.grad is None else self._trusted(self.pattern, self.values.grad)

    def detach(self) -> SparseMatrix:
        return self._trusted(self.pattern, self.values.detach())

    def clone(self) -> SparseMatrix:
        """The same pattern, a copy of the values; gradients flow back."""
        return self._trusted(self.pattern, self.values.clone())

    # Other forms of the same matrix.

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Other values on the same pattern."""
        return self._trusted(self.pattern, checked_values(self.pattern, values))

    @property
    def T(self) -> SparseMatrix:
        """The transpose, which costs nothing: products and solves with it take this matrix, and transpose it.

        Its own pattern is built, once, and its values are gathered, differentiably, when somebody asks for them. Until
        then it sees changes of the values in place, as torch's and SciPy's transposes do.

        >>> A = gs.from_dense(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
        >>> A.T @ torch.tensor([3.0, 4.0])
        tensor([4., 6.])
        """
        original = self._original
        # Of a transpose, a matrix of its own: values that are assigned to it are not the transpose's.
        return Transposed(self) if original is None else original._trusted(original.pattern, original.values)

    def to(
        self,
        device: torch.device | str | torch.dtype | None = None,
        dtype: torch.dtype | None = None,
        index_dtype: torch.dtype | None = None,
    ) -> SparseMatrix:
        """Another device, another dtype of the values, another width of the indices. ``A.to(torch.float64)`` works."""
        if isinstance(device, torch.dtype):
            device, dtype = None, device
        return self._trusted(self.pattern.to(device, index_dtype), self.values.to(device=device, dtype=dtype))

    def to_dense(self) -> Tensor:
        """(rows, cols), or (rows, cols, H) with heads."""
        simple = self.pattern.simple
        return torch.ops.gossamer.to_dense(self.indptr, self.indices, self.values, self.shape, simple)

    def coalesce(self) -> SparseMatrix:
        """Parallel entries, which only the pattern of a graph may have, added up; itself if there are none.

        >>> P, order = gs.graph_pattern(torch.tensor([[0, 0], [1, 1]]), (2, 2))
        >>> gs.SparseMatrix(P, torch.tensor([1.0, 2.0])).coalesce().values
        tensor([3.])
        """
        P = self.pattern
        if P.simple:
            return self
        indptr, indices, values = torch.ops.gossamer.from_coo(P.row_indices, P.indices, self.values, P.shape)
        return self._trusted(Pattern(indptr, indices, P.shape, check=False), values)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A SciPy csr_array with the same dtype and index width, a copy: SciPy's methods change arrays in place."""
        import scipy.sparse

        parts = (self.values, self.indices, self.indptr)
        return scipy.sparse.csr_array(tuple(t.detach().cpu().numpy().copy() for t in parts), shape=self.shape)

    def to_torch(self) -> Tensor:
        """A torch CSR tensor with the same dtype and index width; gradients flow back. Not for matrices with heads."""
        if self.values.dim() != 1:
            raise ValueError(f"to_torch: values must be (nnz,), not {tuple(self.values.shape)}")
        self.pattern.check_simple("to_torch")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            parts = self.indptr, self.indices, self.values
            return torch.sparse_csr_tensor(*parts, self.shape, check_invariants=False)  # checked when it was built


class Transposed(SparseMatrix):
    """Aᵀ without arrays of its own. With the first question for them it becomes a matrix like any other."""

    __module__ = "gossamer"

    def __init__(self, A: SparseMatrix) -> None:
        self._original = A._trusted(A.pattern, A.values)  # others may be assigned to A later
        self._own: Pattern | None = None
        self._born = torch.is_grad_enabled(), _functorch.get_dynamic_layer_stack_depth()

    @property
    def pattern(self) -> Pattern:  # type: ignore[override]
        A = self._original
        if self._own is None and A is not None:
            self._own = A.pattern.T
        assert self._own is not None
        return self._own

    @property
    def values(self) -> Tensor:
        A = self._original
        if A is not None:
            tracing = torch.compiler.is_compiling()  # what is traced is not kept, and knows no such context
            with nullcontext() if tracing else as_it_was(*self._born):
                self._take(A.values.index_select(0, A.pattern.transpose()[2]))
        return self._values

    @values.setter
    def values(self, values: Any) -> None:
        self._take(checked_values(self.pattern, values))

    def _take(self, values: Tensor) -> None:
        """Values of its own, and no original any more; in an order that is safe if two threads ask at once."""
        self._own, self._values = self.pattern, values
        self._original = None

    @property
    def shape(self) -> Shape:
        A = self._original
        return self.pattern.shape if A is None else A.shape[::-1]

    @property
    def nnz(self) -> int:
        A = self._original
        return self.pattern.nnz if A is None else A.nnz

    @property
    def dtype(self) -> torch.dtype:
        A = self._original
        return self.values.dtype if A is None else A.dtype

    @property
    def device(self) -> torch.device:
        A = self._original
        return self.values.device if A is None else A.device

    @classmethod
    def _trusted(cls, pattern: Pattern, values: Tensor) -> SparseMatrix:  # type: ignore[override]
        return SparseMatrix._trusted(pattern, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseMatrix._trusted, (self.pattern, self.values)


# torch.func and friends see a matrix as its values: torch.func.grad(f)(A) is a SparseMatrix.
for kind in (SparseMatrix, Transposed):
    pytree.register_pytree_node(
        kind,
        lambda A: ([A.values], A.pattern),
        lambda values, pattern: SparseMatrix._trusted(pattern, next(iter(values))),
        serialized_type_name=f"gossamer.{kind.__name__}",
        flatten_with_keys_fn=lambda A: ([(pytree.GetAttrKey("values"), A.values)], A.pattern),
    )
