# SPDX-License-Identifier: BSD-3-Clause
"""Matrices that every rank has, their partitions, and the comparison of a distributed matrix with the whole one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

Result = list[Tensor]
Case = Callable[[Any], None]


def on(*ranks: int) -> Callable[[Case], Case]:
    """The numbers of ranks that a case is run on. Each of the others would show nothing new, and starts a process."""

    def mark(case: Case) -> Case:
        case.ranks = ranks  # type: ignore[attr-defined]
        return case

    return mark


def numbers(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def unsymmetric(rows: int, cols: int, entries: int = 4, dtype: torch.dtype = torch.float64) -> gs.SparseMatrix:
    """A few columns have most entries, and some rows have none."""
    generator = torch.Generator().manual_seed(rows + cols)
    i = torch.randint(rows, (rows * entries,), generator=generator)
    j = (torch.rand(rows * entries, generator=generator) ** 3 * cols).long()
    i, j = torch.unique(torch.stack([i, j]), dim=1)
    return gs.from_coo(i, j, numbers(len(i), dtype=dtype), (rows, cols))


def partitions(A: gs.SparseMatrix, ranks: int) -> dict[str, Tensor | None]:
    """None is by equal ranges. One rank has all rows, whatever they are called."""
    n = A.shape[0]
    if ranks == 1:
        return {"random": None}
    random = torch.randint(ranks, (n,), generator=torch.Generator().manual_seed(ranks))
    return {"contiguous": None, "random": random, "metis": metis(A, ranks)}


def metis(A: gs.SparseMatrix, ranks: int) -> Tensor:
    import pymetis

    near = (A.to_dense() != 0) | (A.to_dense() != 0).T
    neighbours = [row.nonzero().flatten().tolist() for row in near.fill_diagonal_(False)]
    return torch.tensor(pymetis.part_graph(ranks, adjacency=neighbours)[1])


def entries_of(A: gs.SparseMatrix, rows: Tensor) -> Tensor:
    """The places of the entries of some rows, row by row."""
    first, counts = A.indptr.long()[rows], A.indptr.long().diff()[rows]
    before = counts.cumsum(0) - counts  # entries of the rows before
    return torch.arange(int(counts.sum())) + (first - before).repeat_interleave(counts)


def with_derivatives(f: Callable[..., Tensor], inputs: Sequence[Tensor], weight: Tensor) -> Result:
    """f, the gradients of Σ w f³, and those of half their square."""
    inputs = [t.detach().clone().requires_grad_() for t in inputs]
    y = f(*inputs)
    first = torch.autograd.grad((y**3 * weight).sum(), inputs, create_graph=True)
    half = sum(((g**2).sum() / 2 for g in first), start=torch.zeros(()))
    return [y.detach(), *(g.detach() for g in first), *torch.autograd.grad(half, inputs)]


class Pair:
    """A matrix that every rank has, and this rank's rows of it."""

    def __init__(self, A: gs.SparseMatrix, mesh: Any, parts: Tensor | None = None, **how: Any) -> None:
        self.A, self.D = A, gs.distributed.scatter(A, mesh, parts, **how)
        self.entries = entries_of(A, self.D.row_keys)

    def equal(self, kinds: str, wanted: Result, found: Result) -> None:
        """The results of all, of which this rank has its entries, rows or columns, must be those that it found."""
        own = {"e": self.entries, "r": self.D.row_keys, "c": self.D.col_keys}
        for k, (kind, want, have) in enumerate(zip(kinds, wanted, found, strict=True)):
            mine = want.index_select(0, own[kind])
            assert torch.equal(mine, have), f"result {k}: {_difference(mine, have)}"

    def spmm(self, X: Tensor, transpose: bool = False) -> None:
        """With first and second derivatives."""
        rows, cols = self.D.row_keys, self.D.col_keys
        into, out = (rows, cols) if transpose else (cols, rows)
        weight = numbers(self.A.shape[1 if transpose else 0], *X.shape[1:], dtype=X.dtype, seed=9)
        wanted = with_derivatives(lambda v, x: gs.spmm(self.A.with_values(v), x, transpose), [self.A.values, X], weight)
        found = with_derivatives(
            lambda v, x: gs.spmm(self.D.with_values(v), x, transpose), [self.D.values, X[into]], weight[out]
        )
        self.equal("cerer" if transpose else "recec", wanted, found)

    def sddmm(self, U: Tensor, V: Tensor) -> None:
        rows, cols = self.D.row_keys, self.D.col_keys
        heads = U.shape[1:2] if U.dim() == 3 else ()
        weight = numbers(self.A.nnz, *heads, dtype=U.dtype, seed=9)
        wanted = with_derivatives(lambda u, v: gs.sddmm(self.A, u, v).values, [U, V], weight)
        found = with_derivatives(lambda u, v: gs.sddmm(self.D, u, v).values, [U[rows], V[cols]], weight[self.entries])
        self.equal("ercrc", wanted, found)


def _difference(wanted: Tensor, found: Tensor) -> str:
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{tuple(found.shape)} of {found.dtype}, not {tuple(wanted.shape)} of {wanted.dtype}"
    return f"differs by up to {(wanted - found).abs().max().item():.2e}"
