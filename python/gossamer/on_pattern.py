# SPDX-License-Identifier: BSD-3-Clause
"""What the families of methods of SparseMatrix stand on: values on a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from gossamer.pattern import Pattern

if TYPE_CHECKING:
    from typing_extensions import Self


class OnPattern:
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
