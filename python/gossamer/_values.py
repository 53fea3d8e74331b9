# SPDX-License-Identifier: BSD-3-Clause
"""Values on a pattern: what the families of methods of SparseMatrix, and the functions its operators call, stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gossamer._pattern import Pattern

if TYPE_CHECKING:
    from typing_extensions import Self


class PatternValues:
    """A pattern and a tensor of values on it."""

    pattern: Pattern
    values: Tensor

    @classmethod
    def _trusted(cls, pattern: Pattern, values: Tensor) -> Self:
        """Without checks, for values an op has just computed on this pattern."""
        A = cls.__new__(cls)
        A.pattern = pattern
        A.values = values
        return A


def check_matrix(op: str, name: str, given: Any) -> None:
    """Refuses an argument that is not a matrix, in the words of the op the user called."""
    if not isinstance(given, PatternValues):
        raise TypeError(f"{op}: {name} must be a SparseMatrix, not {type(given).__name__}")


def size(A: PatternValues) -> str:
    """The shape as error messages say it."""
    return f"{A.pattern.shape[0]} x {A.pattern.shape[1]}"
