# SPDX-License-Identifier: BSD-3-Clause
"""What a layer computes on where several processes share the graph: this process's rows, and what they want of others.

Row i of a ``DistributedMatrix`` holds the edges that point at own node i; its columns are the own nodes and, behind
them, the halo. Everything here is made once and kept with the pattern; making it is a collective.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer.distributed import DistributedMatrix, from_rows
from gossamer.distributed._group import one_for_all, rank_and_size
from gossamer.nn._edges import Edges, SelfLoops

_ops = torch.ops.gossamer


def shared_edges(layer: str, A: DistributedMatrix, loops: SelfLoops) -> Edges:
    """The own rows, in the order in which one process alone has them, with self-loops as asked for."""
    if loops is not SelfLoops.NONE and A.shape[0] != A.shape[1]:
        raise ValueError(
            f"{layer}: self-loops want a square matrix, not {A.shape}; add_self_loops=False leaves them out"
        )
    P = A.pattern

    def make() -> Edges:
        indptr, indices, edge = _ops.distributed_edges(P.indptr, P.indices, column_keys(A), int(loops))
        return Edges(Pattern(indptr, indices, P.shape, check=False, simple=None), edge, P.nnz)

    return P.keep(("edges", loops), make)


def shared_matrix(
    layer: str, A: DistributedMatrix, loops: SelfLoops, weights: Tensor, normalize: bool
) -> DistributedMatrix:
    """The matrix of these weights on the pattern of ``shared_edges``, normalised as GCN's if asked for."""

    def make() -> DistributedMatrix:
        P = shared_edges(layer, A, loops).pattern
        first = int(A.column_offsets[rank_and_size(A.group)[0]])
        numbers = A.halo(first + torch.arange(A.local_shape[1]))
        columns = numbers.index_select(0, P.indices.long().cpu())
        ones = torch.ones(P.nnz, dtype=A.dtype, device=P.device)
        return from_rows(P.indptr, columns, ones, A.offsets, A.shape, A.mesh, keys=A.row_keys)

    made = A.pattern.keep(("matrix", loops), make)
    if normalize:
        plan, counts = made.exchange.plan, made.exchange.counts
        weights = _ops.gcn_norm_rows(plan, counts, weights, made.group)
    return made.with_values(weights)


def column_keys(A: DistributedMatrix) -> Tensor:
    """The original number of each column of the own rows."""
    return A.pattern.keep("column_keys", lambda: A.halo(A.col_keys))


def entry_keys(A: DistributedMatrix, P: Pattern) -> Tensor:
    """What dropout is drawn by: the original row and column of each entry of P, a pattern of edges of A."""
    return P.keep("entry_keys", lambda: _ops.entry_keys(P.indptr, P.indices, A.row_keys, column_keys(A), A.shape[1]))


def original_pairs(A: DistributedMatrix, pairs: Tensor) -> Tensor:
    """An edge_index (2, E) of own rows in the original numbers."""
    return torch.stack([column_keys(A).index_select(0, pairs[0]), A.row_keys.index_select(0, pairs[1])])


def of_own_rows(A: DistributedMatrix, make: Callable[[], Tensor]) -> Tensor:
    """What ``make`` gives, a row for each own column of A. One process's mistake is raised in all: they wait for it."""
    with one_for_all(A.group):
        rows = make()
        if len(rows) != A.local_shape[1]:
            raise ValueError(f"x must have {A.local_shape[1]} rows, this process's, not {len(rows)}")
    return rows
