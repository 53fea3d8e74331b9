# SPDX-License-Identifier: BSD-3-Clause
"""What a row of the case table is, and what makes its inputs.

A row's inputs are matrices, patterns and dense tensors made by a `Make`; its formula gets their dense twins.
A pattern's twin is its mask of zeros and ones, so `P` masks a product as mathematics does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

# Shapes every op must survive: (rows, cols, chance of an entry).
KINDS = {
    "ordinary": (9, 7, 0.4),
    "square": (8, 8, 0.4),
    "wide and sparse": (6, 40, 0.08),
    "one row": (1, 11, 0.6),
    "one column": (11, 1, 0.6),
    "one entry": (1, 1, 1.0),
    "no entries": (4, 5, 0.0),
    "no rows": (0, 5, 0.5),
    "no columns": (5, 0, 0.5),
    "nothing": (0, 0, 0.5),
}


@dataclass
class Make:
    """Makes reproducible inputs of one kind."""

    kind: str = "ordinary"
    dtype: torch.dtype = torch.float64
    index_dtype: torch.dtype = torch.int32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seed: int = 0
    shape: tuple[int, int, float] | None = None

    def __post_init__(self) -> None:
        self.m, self.n, self.density = self.shape or KINDS[self.kind]
        self.generator = torch.Generator().manual_seed(self.seed)

    def dense(self, *size: int) -> Tensor:
        return torch.randn(size, generator=self.generator, dtype=torch.float64).to(self.device, self.dtype)

    def pattern(self, rows: int, cols: int) -> gs.Pattern:
        """Random entries; every third row is empty."""
        mask = torch.rand(rows, cols, generator=self.generator) < self.density
        mask[1::3] = False
        indptr = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
        indices = mask.nonzero()[:, 1]
        return gs.Pattern(indptr, indices, (rows, cols)).to(self.device, self.index_dtype)

    def matrix(self, rows: int, cols: int, *heads: int) -> gs.SparseMatrix:
        """Values include a stored zero."""
        pattern = self.pattern(rows, cols)
        values = self.dense(pattern.nnz, *heads)
        values[:1] = 0
        return gs.SparseMatrix(pattern, values)

    def dominant(self, n: int, *heads: int) -> gs.SparseMatrix:
        """Square, with the diagonal and well-conditioned: each diagonal entry outweighs its row and its column.

        Solvers take `make.dominant(make.m)`, so that every kind of shape has a square matrix for them.
        """
        mask = torch.rand(n, n, generator=self.generator) < self.density
        mask |= torch.eye(n, dtype=torch.bool)
        rows, cols = mask.nonzero().T
        values = torch.rand(len(rows), *heads, generator=self.generator, dtype=torch.float64) - 0.5
        values /= 1 + self.density * n
        values[rows == cols] += 2
        pattern = gs.from_coo(rows, cols, torch.ones(len(rows)), (n, n)).pattern.to(self.device, self.index_dtype)
        return gs.SparseMatrix(pattern, values.to(self.device, self.dtype))


AN_OP = "an op of the dispatcher, which both front ends call and neither has a function for"


@dataclass(frozen=True)
class Case:
    name: str
    # Of a front end and the inputs, such as `lambda gs, A, X: gs.spmm(A, X)`: gs is the package, or its twin in C++.
    op: Callable[..., Any]
    dense: Callable[..., Tensor]
    inputs: Callable[[Make], tuple[Any, ...]]
    raw: Callable[..., tuple[Any, tuple[Any, ...]]] | None = None  # the op as the dispatcher knows it, for opcheck
    timed: bool = False  # on the benchmark's large matrices, where its inputs and its result must fit memory
    # How many entries the result has depends on the pattern's contents: torch.compile must be told that such ops may be
    # traced (capture_dynamic_output_shape_ops).
    sized_by_data: bool = False
    poisons: tuple[float, ...] = (torch.nan, torch.inf)  # what must show in the result; a solver divides infinity away
    python_only: str = ""  # why the C++ front end has no such function
    # Why it is none of the dispatcher's ops but an object made of one matrix: vmap goes over its argument alone, no
    # tracer sees it, and it knows neither half precision nor devices.
    an_object: str = ""
