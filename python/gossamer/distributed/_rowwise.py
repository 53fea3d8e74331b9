# SPDX-License-Identifier: BSD-3-Clause
"""What a rank does with its own rows alone: functions of the values, sums and softmax of rows. And what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

import torch
from torch import Tensor

from gossamer._operators import METHODS
from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import is_number

if TYPE_CHECKING:
    from gossamer.distributed._exchange import Block


class Refused(NotImplementedError, AttributeError):
    """Of a method that a SparseMatrix has and a DistributedMatrix has not; ``hasattr`` says no."""


class RowWise:
    """abs, map, conj, * / - ** by numbers and on one pattern, scale_rows, scale_cols, sum(1), row_softmax, diagonal."""

    __array_ufunc__ = None  # so that numpy.float64(2) * A asks us

    if TYPE_CHECKING:
        pattern: Block
        values: Tensor

        @property
        def local_shape(self) -> tuple[int, int]: ...
        def _with(self, values: Tensor) -> Self: ...
        def with_values(self, values: Tensor) -> Self: ...
        def halo(self, x: Tensor) -> Tensor: ...

    @property
    def _local(self) -> SparseMatrix:
        """The block as a matrix of its own, for ops that know no column from another."""
        return SparseMatrix._trusted(self.pattern, self.values)

    def _like(self, block: SparseMatrix) -> Self:
        return self.with_values(block.values)

    def __abs__(self) -> Self:
        return self.abs()

    def abs(self) -> Self:
        """``|A|``, entry by entry."""
        return self.with_values(self.values.abs())

    def map(self, f: Callable[[Tensor], Tensor]) -> Self:
        """f of this rank's values: tensor to tensor of the same length."""
        return self._like(self._local.map(f))

    def conj(self) -> Self:
        """The complex conjugate of each entry."""
        return self.with_values(self.values.conj())

    def exp(self) -> Self:
        """exp of the stored entries; those that are not stored stay zero."""
        return self.with_values(self.values.exp())

    def __neg__(self) -> Self:
        return self.with_values(-self.values)

    def __mul__(self, B: Any) -> Self:
        """By a number, a tensor of one (with heads, of one a head), or a matrix on the same pattern, entry by entry."""
        if isinstance(B, RowWise):
            return self.with_values(self.values * self._same_pattern("mul", B).values)
        if not is_number(B) and not isinstance(B, Tensor):
            return NotImplemented
        return self._like(self._local * B) if is_number(B) or B.dim() < self.values.dim() else self._refuse("A * dense")

    __rmul__ = __mul__

    def __truediv__(self, s: Any) -> Self:
        if not is_number(s) and not (isinstance(s, Tensor) and s.dim() < self.values.dim()):
            return NotImplemented
        return self._like(self._local / s)

    def __pow__(self, p: float) -> Self:
        """Each value to the power p > 0."""
        return self._like(self._local**p)

    def __add__(self, B: Any) -> Self:
        """A matrix on the same pattern."""
        return self.with_values(self.values + self._same_pattern("add", B).values)

    def __sub__(self, B: Any) -> Self:
        return self.with_values(self.values - self._same_pattern("sub", B).values)

    def _same_pattern(self, op: str, B: Any) -> RowWise:
        if not isinstance(B, RowWise):
            raise TypeError(f"{op}: B must be a DistributedMatrix, not {type(B).__name__}")
        if B.pattern is not self.pattern:
            raise NotImplementedError(
                f"{op}: the two DistributedMatrix have patterns of their own; make B with A.with_values, or {op} the "
                "matrices before they are distributed"
            )
        return B

    def scale_rows(self, d: Tensor) -> Self:
        """diag(d) A, d being this rank's rows: (own rows,), or (own rows, H)."""
        return self._like(self._local.scale_rows(d))

    def scale_cols(self, d: Tensor) -> Self:
        """A diag(d), d being this rank's columns: (own columns,), or (own columns, H). Its halo is fetched."""
        return self._like(self._local.scale_cols(self.halo(d)))

    def sum(self, dim: int = 1) -> Tensor:
        """The sum of each own row. Of columns, ``A.T.sum(1)``; over all ranks, ``gs.distributed.sum``."""
        if dim not in (1, -1):
            raise NotImplementedError(
                f"sum: dim {dim} of a DistributedMatrix is on many ranks; A.T.sum(1) sums columns"
            )
        return self._local.sum(1)

    def row_sum(self) -> Tensor:
        """The same as ``sum(1)``."""
        return self.sum(1)

    def row_softmax(self) -> Self:
        """The softmax of each row over its stored entries."""
        return self._like(self._local.row_softmax())

    def diagonal(self) -> Tensor:
        """A[i, i] of the own rows; 0 where it is not stored. For matrices whose rows and columns are owned alike."""
        exchange, P = self.pattern.exchange, self.pattern
        if not torch.equal(*exchange.offsets):
            raise NotImplementedError(
                "diagonal: rows and columns of this DistributedMatrix are owned by different ranks"
            )

        def find() -> tuple[Tensor, Tensor]:
            rows = P.row_indices
            places = (rows == P.indices).nonzero().flatten()
            return places, rows[places]

        places, rows = P.keep("diagonal", find)
        values = self.values.index_select(0, places)
        return values.new_zeros((self.local_shape[0], *values.shape[1:])).index_add(0, rows, values)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch.matmul(A, X), s * A with a tensor s; and both inside torch.compile."""
        methods = METHODS.get(getattr(func, "__name__", ""))
        if methods is None or kwargs or len(args) != 2:
            return NotImplemented
        left, right = args
        method, other = (methods[0], right) if isinstance(left, RowWise) else (methods[1], left)
        matrix = left if isinstance(left, RowWise) else right
        return getattr(matrix, method)(other) if hasattr(type(matrix), method) else NotImplemented

    def _refuse(self, op: str) -> NoReturn:
        raise Refused(
            f"{op}: not for a DistributedMatrix, whose rows are on many processes. A @ x, sddmm, elementwise and "
            "row-wise functions are; solve with gs.linalg.cg, or on one process before the matrix is distributed"
        )

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(SparseMatrix, name):
            self._refuse(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
