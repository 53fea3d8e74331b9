# SPDX-License-Identifier: BSD-3-Clause
"""The operators of a matrix, and what torch's own functions do when a matrix is among their arguments."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._compare import compare, quotient
from gossamer._operands import as_tensor, is_dense, with_dense
from gossamer._products import product, spgemm
from gossamer._sums import hadamard, spadd
from gossamer._values import PatternValues, is_matrix, is_number

if TYPE_CHECKING:
    from gossamer._sparse_matrix import SparseMatrix


class Operators(PatternValues):
    """@, +, -, *, / and comparisons, with matrices, tensors, NumPy arrays, lists and numbers, on either side."""

    __array_ufunc__ = None  # so that numpy.float64(2) * A, and an array @ A, ask us

    def __matmul__(self, X: Any) -> Any:
        """A X, dense or sparse."""
        if isinstance(X, Tensor) or is_dense(X):
            return product(self._matrix, X)
        return spgemm(self._matrix, X) if is_matrix(X) else NotImplemented

    def __rmatmul__(self, X: Any) -> Any:
        """X A = (Aᵀ Xᵀ)ᵀ."""
        if not is_dense(X):
            return NotImplemented
        original = self._original
        A, X = with_dense(self._matrix if original is None else original, X)
        if X.dim() == 0 or X.dim() > 2:
            raise ValueError(f"matmul: X A wants X of shape (n,) or (k, n), not {tuple(X.shape)}")
        t = original is None
        return product(A, X, t) if X.dim() == 1 else product(A, X.T, t).T

    def __add__(self, B: Any) -> Any:
        """On the union of the patterns; dense if B is."""
        return self._sum(B, 1)

    __radd__ = __add__

    def __sub__(self, B: Any) -> Any:
        return self._sum(B, -1)

    def __rsub__(self, B: Any) -> Any:
        return (-self)._sum(B, 1)

    def _sum(self, B: Any, sign: int) -> Any:
        if is_matrix(B):
            return spadd(self._matrix, B, beta=sign)
        if is_number(B):
            if B == 0:  # where Python's sum() begins
                return self
            raise TypeError(f"add: A + {B} would be dense: write A.to_dense() + {B}")
        if not is_dense(B):
            return NotImplemented
        dense, X = self._matrix.to_dense(), as_tensor(B, self.values)
        return dense + X if sign == 1 else dense - X

    def __neg__(self) -> SparseMatrix:
        return self._matrix._trusted(self.pattern, -self.values)

    def __mul__(self, B: Any) -> SparseMatrix:
        """Entry by entry, with a matrix on the intersection of the patterns, with a number or a dense B on A's own.

        A dense B has A's shape, or is broadcast to it: (n,), (1, n), (m, 1). With heads, (H,) is one number a head.

        >>> s = torch.tensor(3.0, requires_grad=True)
        >>> (s * gs.eye(2)).to_dense()
        tensor([[3., 0.],
                [0., 3.]], grad_fn=<ViewBackward0>)
        >>> (gs.eye(2) * [1.0, 2.0]).to_dense()
        tensor([[1., 0.],
                [0., 2.]])
        """
        if is_number(B):
            return self._matrix._trusted(self.pattern, self.values * B)
        if is_matrix(B) or is_dense(B):
            return hadamard(self._matrix, B)
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, B: Any) -> SparseMatrix:
        """A / s; by a dense B, A times 1 / B; by a matrix, which stores every entry of A, on A's pattern."""
        if is_number(B):
            return self._matrix._trusted(self.pattern, self.values / B)
        if is_matrix(B):
            return quotient(self._matrix, B)
        if not is_dense(B):
            return NotImplemented
        s = as_tensor(B, self.values)
        if s.dim() == 0 or (self.values.dim() == 2 and s.dim() == 1):
            return self._matrix._trusted(self.pattern, torch.ops.gossamer.divide(self.values, s))
        return hadamard(self._matrix, s.reciprocal())

    def __rtruediv__(self, X: Any) -> Any:
        raise TypeError(
            "div: X / A would be infinite where A stores nothing; A.map(torch.reciprocal) inverts its entries"
        )

    def __pow__(self, p: float) -> SparseMatrix:
        """Each value to the power p > 0."""
        if not is_number(p):
            return NotImplemented
        if not p > 0:
            raise ValueError(f"pow: the exponent must be positive, not {p}: 0 ** p would not be 0")
        return self._matrix._trusted(self.pattern, self.values**p)

    # Comparisons, entry by entry: a SparseMatrix of booleans, or a tensor where the answer for two zeros is yes.

    def __eq__(self, B: object) -> Any:
        return compare(operator.eq, self._matrix, B)

    def __ne__(self, B: object) -> Any:
        return compare(operator.ne, self._matrix, B)

    def __lt__(self, B: Any) -> Any:
        return compare(operator.lt, self._matrix, B)

    def __le__(self, B: Any) -> Any:
        return compare(operator.le, self._matrix, B)

    def __gt__(self, B: Any) -> Any:
        return compare(operator.gt, self._matrix, B)

    def __ge__(self, B: Any) -> Any:
        return compare(operator.ge, self._matrix, B)

    __hash__ = object.__hash__  # == compares entries; a dictionary wants the object

    def __bool__(self) -> bool:
        raise ValueError(
            "the truth of a matrix is ambiguous; two are equal if (A != B).count_nonzero() == 0, nearly by gs.allclose"
        )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch.matmul(A, X), torch.matmul(X, A), X @ A, s * A, X - A; and all of them inside torch.compile."""
        methods = METHODS.get(getattr(func, "__name__", ""))
        if methods is None or kwargs or len(args) != 2:
            return NotImplemented
        left, right = args
        if is_matrix(left):
            return getattr(left, methods[0])(right)
        return getattr(right, methods[1])(left)


def _table() -> dict[str, tuple[str, str]]:
    """By the name of a function of torch: the method of a left operand that is a matrix, and that of a right one."""
    table = {}
    for name, others in {"add": (), "sub": ("subtract",), "mul": ("multiply",), "matmul": ("mm", "mv")}.items():
        forward, reflected = f"__{name}__", f"__r{name}__"
        for spelling in (name, forward, *others):
            table[spelling] = forward, reflected
        table[reflected] = reflected, forward  # Tensor.__rmatmul__(X, A) is A @ X: what torch.compile makes of it
    for spelling in ("div", "true_divide", "__truediv__", "__div__"):
        table[spelling] = "__truediv__", "__rtruediv__"
    for spelling in ("__rtruediv__", "__rdiv__"):
        table[spelling] = "__rtruediv__", "__truediv__"
    table["rsub"] = "__rsub__", "__sub__"
    for name, turned in {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.items():
        for spelling in (name, f"__{name}__"):
            table[spelling] = f"__{name}__", f"__{turned}__"
    return table


METHODS = _table()
