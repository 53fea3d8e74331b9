# SPDX-License-Identifier: BSD-3-Clause
"""The C++ front end, called from Python: what a row of the case table takes for `gs` on the runner "cpp".

tests/cpp/front_end registers its functions as torch.ops.gossamer_cpp.*. Here are a matrix and a package whose
methods, operators and functions are those ops, by the same names. Arguments by keyword go in the order they are given.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

import gossamer as gs
from gossamer._pattern import as_index


class Matrix:
    """A SparseMatrix of C++, as the tensors {values, shape, indptr, indices, …}; each method is the op of its name."""

    def __init__(self, wire: list[Tensor]) -> None:
        self.wire = wire

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(call, name, self)

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.wire[1].tolist()
        return rows, cols

    @property
    def T(self) -> Matrix:
        return call("T", self)

    def map(self, f: Any) -> Matrix:
        return call(f"map_{f.__name__}", self)  # a function of Python's cannot go there: C++ has its twin

    def __getitem__(self, key: Any) -> Any:
        """What a C++ user writes for Python's key: A[i], A.index(i, j) and A.index(rows, cols) for entries, and
        A.index({rows, cols}) for the rest."""
        if isinstance(key, int):
            return call("row_index", self, key)
        rows, cols = (*(key if isinstance(key, tuple) else (key,)), slice(None))[:2]
        rows, cols = (torch.tensor(k) if isinstance(k, list) else k for k in (rows, cols))
        if isinstance(rows, int) and isinstance(cols, int):
            return call("index", self, rows, cols)
        if isinstance(rows, Tensor) and isinstance(cols, Tensor) and rows.dim() == cols.dim() == 1:
            return call("index", self, rows, cols)
        return call("matrix_index", self, *_axis(rows), *_axis(cols))

    def __neg__(self) -> Matrix:
        return call("neg", self)

    def __add__(self, B: Matrix) -> Matrix:
        return call("add", self, B)

    def __sub__(self, B: Matrix) -> Matrix:
        return call("sub", self, B)

    def __mul__(self, s: Any) -> Matrix:
        return call(f"mul{_number(s)}", self, s)

    def __rmul__(self, s: Any) -> Matrix:
        return call(f"rmul{_number(s)}", self, s)

    def __truediv__(self, s: Any) -> Matrix:
        return call(f"div{_number(s)}", self, s)

    def __pow__(self, p: float) -> Matrix:
        return call("pow", self, p)

    def __matmul__(self, X: Any) -> Any:
        return call("matmul", self, X)

    def __rmatmul__(self, X: Tensor) -> Tensor:
        return call("matmul", X, self)


def _axis(k: Any) -> tuple[Tensor | None, list[int]]:
    """An axis of a key as the op takes it: an array, or the numbers of an integer or a slice."""
    if isinstance(k, Tensor):
        return k, []
    if isinstance(k, slice):
        return None, [torch.iinfo(torch.int64).min if at is None else at for at in (k.start, k.stop, k.step)]
    return None, [] if k is Ellipsis else [k]


def _number(s: Any) -> str:
    """C++ has one function for numbers and one for tensors. torch would take a tensor for a number, and its gradient
    would be lost, so they have two names."""
    return "_number" if isinstance(s, (int, float)) else ""


class Factor:
    """What C++'s factorize gives; the factors are made anew for each result."""

    def __init__(self, A: Matrix, *kind: str) -> None:
        self.A, self.kind = A, kind

    def solve(self, b: Tensor, transpose: bool = False) -> Tensor:
        return call("factor_solve", self.A, b, *((transpose, *self.kind) if self.kind else ()))

    def logdet(self) -> Tensor:
        return call("factor_logdet", self.A, *self.kind)


class Preconditioner:
    """What C++'s preconditioners give; one is made anew for each result."""

    def __init__(self, name: str, A: Matrix, *how: Any, **more: Any) -> None:
        self.name, self.A, self.how = name, A, (*how, *more.values())

    def __call__(self, r: Tensor) -> Tensor:
        return call(self.name, self.A, *self.how, r)


class Package:
    """The C++ front end as rows and mistakes call `gossamer`: a function is the op of its name."""

    def __getattr__(self, name: str) -> Any:
        return partial(call, name)

    @property
    def linalg(self) -> Package:
        return self

    factorize = Factor

    def cholesky(self, A: Matrix) -> gs.linalg.Cholesky:
        return gs.linalg.Cholesky(call("cholesky", A), call("cholesky_perm", A))

    jacobi = partial(Preconditioner, "jacobi")
    block_jacobi = partial(Preconditioner, "block_jacobi")
    ichol = partial(Preconditioner, "ichol")
    ilu = partial(Preconditioner, "ilu")
    amg = partial(Preconditioner, "amg")

    def eigsh(self, A: Matrix, *how: Any, **more: Any) -> tuple[Tensor, Tensor]:
        return call("eigsh_values", A, *how, **more), call("eigsh_vectors", A, *how, **more)

    def svds(self, A: Matrix, k: int) -> tuple[Tensor, Tensor, Tensor]:
        return call("svds_U", A, k), call("svds_S", A, k), call("svds_Vh", A, k)

    def Pattern(self, indptr: Any, indices: Any, shape: Any) -> list[Tensor]:
        return call("check_pattern", indptr, indices, *shape).wire

    def SparseMatrix(self, indptr: Any, indices: Any, values: Tensor, shape: Any) -> Matrix:
        wire = self.Pattern(torch.as_tensor(indptr), torch.as_tensor(indices), shape)
        return call("with_values", Matrix([values, *wire]), values)

    def from_coo(self, rows: Any, cols: Any, values: Any, shape: Any) -> Matrix:
        return call("from_coo", as_index("rows", rows), as_index("cols", cols), torch.as_tensor(values), list(shape))

    def sddmm(self, P: Any, U: Tensor, V: Tensor) -> Matrix:
        return call("sddmm", P.wire[1:] if isinstance(P, Matrix) else P, U, V)

    def poisson(self, grid: Any) -> Matrix:
        return call("poisson", [grid] if isinstance(grid, int) else list(grid))

    def vstack(self, matrices: list[Matrix]) -> Matrix:
        return call("vstack", *matrices)

    def hstack(self, matrices: list[Matrix]) -> Matrix:
        return call("hstack", *matrices)

    def block_diag(self, matrices: list[Matrix]) -> Matrix:
        return call("block_diag", *matrices)

    def gat_attention(self, P: Any, x: Tensor, a: Tensor, b: Tensor, edge: Tensor | None = None, **how: Any) -> Tensor:
        return call("gat_attention", P, x, a, b, edge, *how.values())

    def gatv2_attention(
        self, P: Any, x: Tensor, a: Tensor, b: Tensor, edge: Tensor | None = None, **how: Any
    ) -> Tensor:
        return call("gatv2_attention", P, x, a, b, edge, *how.values())


cpp = Package()


def call(name: str, *given: Any, **more: Any) -> Any:
    """The op of this name; a list that comes back is a matrix."""
    arguments = (x.wire if isinstance(x, Matrix) else x for x in (*given, *more.values()))
    result = getattr(torch.ops.gossamer_cpp, name)(*arguments)
    return Matrix(result) if isinstance(result, list) else result


def to_cpp(x: Any) -> Any:
    """An input that Python made, as C++ takes it; the transpose goes along where it is known."""
    if isinstance(x, gs.SparseMatrix):
        return Matrix([x.values, *to_cpp(x.pattern)])
    return [torch.tensor(x.shape), *x.tensors()] if isinstance(x, gs.Pattern) else x


def to_python(result: Any) -> Any:
    """A result of C++, as Python checks it."""
    if not isinstance(result, Matrix):
        return result
    values, shape, indptr, indices = result.wire
    return gs.SparseMatrix(indptr, indices, values, shape.tolist())
