# SPDX-License-Identifier: BSD-3-Clause
"""SciPy's names for what a matrix can do, and for the rest of them what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gossamer import _compare
from gossamer._indices import Shape
from gossamer._values import PatternValues

if TYPE_CHECKING:
    from gossamer._sparse_matrix import SparseMatrix


class Triplets(NamedTuple):
    """``gs.from_coo(*A.tocoo())`` is A again."""

    row: Tensor
    col: Tensor
    data: Tensor
    shape: Shape


class Columns(NamedTuple):
    """The compressed columns of a matrix."""

    indptr: Tensor
    indices: Tensor
    data: Tensor
    shape: Shape


class SciPyNames(PatternValues):
    """The methods of scipy.sparse.csr_array that have another name here."""

    ndim = 2

    def multiply(self, B: Any) -> SparseMatrix:
        """``A * B``."""
        return self._matrix * B

    def dot(self, X: Any) -> Any:
        """``A @ X``."""
        return self._matrix @ X

    def power(self, n: float) -> SparseMatrix:
        """``A ** n``."""
        return self._matrix**n

    def maximum(self, B: Any) -> SparseMatrix:
        """``gs.maximum(A, B)``."""
        return _compare.maximum(self._matrix, B)

    def minimum(self, B: Any) -> SparseMatrix:
        """``gs.minimum(A, B)``."""
        return _compare.minimum(self._matrix, B)

    def transpose(self) -> SparseMatrix:
        """``A.T``."""
        return self._matrix.T

    def conjugate(self) -> SparseMatrix:
        """``A.conj()``."""
        return self._matrix.conj()

    def copy(self) -> SparseMatrix:
        """``A.clone()``: the pattern is frozen, so both have it."""
        return self._matrix.clone()

    def astype(self, dtype: Any) -> SparseMatrix:
        """``A.to(dtype)``, for NumPy's types too."""
        return self._matrix.to(dtype if isinstance(dtype, torch.dtype) else torch.from_numpy(np.empty(0, dtype)).dtype)

    def toarray(self) -> np.ndarray[Any, Any]:
        """A dense NumPy array, without the graph of derivatives; ``A.to_dense()`` is a tensor, and has it."""
        return self._matrix.to_dense().detach().cpu().resolve_conj().numpy()

    todense = toarray

    def tocsr(self) -> SparseMatrix:
        """A itself."""
        return self._matrix

    def tocoo(self) -> Triplets:
        """(row, col, data, shape), tensors; the data are differentiable."""
        P = self.pattern
        return Triplets(P.row_indices, P.indices.long(), self.values, P.shape)

    def tocsc(self) -> Columns:
        """(indptr, indices, data, shape) of the compressed columns; the data are differentiable."""
        T = self._matrix.T
        return Columns(T.indptr, T.indices, T.values, self.pattern.shape)

    def nonzero(self) -> tuple[Tensor, Tensor]:
        """Rows and columns of the entries that are not zero."""
        self.pattern.check_simple("nonzero")
        values = self.values if self.values.dim() == 1 else (self.values != 0).any(1)
        at = values.nonzero().flatten()
        return self.pattern.row_indices[at], self.pattern.indices[at].long()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a SparseMatrix is not a NumPy array: A.toarray() is dense, A.values.numpy() holds what is stored"
        )

    if not TYPE_CHECKING:  # else every attribute would be known to type checkers

        def __getattr__(self, name: str) -> Any:
            if name in INSTEAD:
                raise AttributeError(f"SparseMatrix has no {name}, as SciPy's arrays do: {INSTEAD[name]}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_FUNCTION = "A.map(torch.{}) applies it to the values"
_FROZEN = "the pattern is frozen, and a stored zero stays stored"
_SORTED = "rows are always sorted, without duplicates"
_FORMAT = "CSR is the only format; A.to_scipy().{}() has SciPy's"

# The names of scipy.sparse.csr_array that a matrix does not have, and what to write instead.
INSTEAD = {
    **{name: _FUNCTION.format(name) for name in ("ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "sign")},
    **{name: _FUNCTION.format(name) for name in ("sin", "sinh", "sqrt", "tan", "tanh", "trunc")},
    "arcsin": _FUNCTION.format("asin"),
    "arcsinh": _FUNCTION.format("asinh"),
    "arctan": _FUNCTION.format("atan"),
    "arctanh": _FUNCTION.format("atanh"),
    "rint": _FUNCTION.format("round"),
    "asformat": _FORMAT.format("asformat"),
    "tobsr": _FORMAT.format("tobsr"),
    "todia": _FORMAT.format("todia"),
    "todok": _FORMAT.format("todok"),
    "tolil": _FORMAT.format("tolil"),
    "format": "CSR is the only format",
    "data": "its numbers are A.values",
    "size": "A.nnz is the number of stored entries, A.shape the shape",
    "check_format": "gs.SparseMatrix checks the arrays it is made from",
    "has_canonical_format": _SORTED,
    "has_sorted_indices": _SORTED,
    "sort_indices": _SORTED,
    "sorted_indices": _SORTED,
    "sum_duplicates": f"{_SORTED}; A.coalesce() adds up the parallel edges of a graph",
    "eliminate_zeros": f"{_FROZEN}; gs.from_dense and gs.from_coo make another",
    "prune": _FROZEN,
    "resize": f"{_FROZEN}; A[:m, :n] cuts, gs.vstack and gs.hstack add",
    "setdiag": f"{_FROZEN}; A.with_diagonal(v, k) is another matrix",
    "maxprint": "print(A.to_dense()) shows the entries",
    "nanmax": "A.map(lambda v: v.nan_to_num(-torch.inf)).amax()",
    "nanmin": "A.map(lambda v: v.nan_to_num(torch.inf)).amin()",
}
