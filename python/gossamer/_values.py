# SPDX-License-Identifier: BSD-3-Clause
"""Values on a pattern: what the families of methods of SparseMatrix, and the functions its operators call, stand on."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from gossamer._pattern import Pattern

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from gossamer._sparse_matrix import SparseMatrix


class PatternValues:
    """A pattern and a tensor of values on it."""

    pattern: Pattern
    _values: Tensor
    _original: SparseMatrix | None = None
    """Of a transpose whose arrays nobody has asked for: the matrix that ops take in its place, transposed."""

    @property
    def values(self) -> Tensor:
        """(nnz,), or (nnz, H) for H matrices on one pattern; others may be assigned, if they fit the pattern."""
        return self._values

    @values.setter
    def values(self, values: Any) -> None:
        self._values = checked_values(self.pattern, values)

    @property
    def _matrix(self) -> SparseMatrix:
        """Itself: the families of methods are written for a SparseMatrix, which they are bases of."""
        return self  # type: ignore[return-value]

    @classmethod
    def _trusted(cls, pattern: Pattern, values: Tensor) -> Self:
        """Without checks, for values an op has just computed on this pattern."""
        A = cls.__new__(cls)
        A.pattern = pattern
        A._values = values
        return A


def checked_values(pattern: Pattern, values: Any) -> Tensor:
    """A tensor of one number an entry, or of one a head and entry, where the pattern is."""
    tensor = values if isinstance(values, Tensor) else torch.tensor(values)
    if tensor.dim() not in (1, 2) or tensor.shape[0] != pattern.nnz:
        raise ValueError(
            f"SparseMatrix: values has shape {tuple(tensor.shape)} but the pattern has {pattern.nnz} entries"
        )
    if tensor.device != pattern.device:
        raise ValueError(f"SparseMatrix: values are on {tensor.device} but the pattern is on {pattern.device}")
    return tensor


def is_matrix(given: Any) -> TypeIs[SparseMatrix]:
    """For the modules that SparseMatrix is made of, which cannot import it."""
    return isinstance(given, PatternValues)


def is_number(given: Any) -> TypeIs[float]:
    """NumPy's numbers are, too."""
    return isinstance(given, Number)


def check_matrix(op: str, name: str, given: Any) -> None:
    """Refuses an argument that is not a matrix, in the words of the op the user called."""
    if not isinstance(given, PatternValues):
        if hasattr(given, "_refuse"):  # a DistributedMatrix
            given._refuse(op)
        raise TypeError(f"{op}: {name} must be a SparseMatrix, not {type(given).__name__}")


def size(A: PatternValues) -> str:
    """The shape as error messages say it."""
    return f"{A.pattern.shape[0]} x {A.pattern.shape[1]}"
