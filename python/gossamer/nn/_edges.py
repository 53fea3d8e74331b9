# SPDX-License-Identifier: BSD-3-Clause
"""What a layer computes on: the pattern of its edges, with self-loops as the layer wants them, made once."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gossamer._construct import from_torch
from gossamer._indices import Shape
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed import DistributedMatrix

_ops = torch.ops.gossamer

Adjacency = Tensor | Pattern | SparseMatrix | DistributedMatrix
"""edge_index (2, E), sources above targets; or a matrix whose row i holds the edges that point at i."""


class SelfLoops(IntEnum):
    NONE = 0
    REPLACE = 1  # every node gets one, in place of those it had
    REMAINING = 2  # every node without one gets one


class Edges(NamedTuple):
    """A pattern (destinations, sources), and the edge that each entry is; numbers from ``given`` on are added loops."""

    pattern: Pattern
    edge: Tensor
    given: int

    def in_order(self, features: Tensor, of_loops: Tensor) -> Tensor:
        """Features of the given edges and of the loops, in the order of the pattern."""
        return torch.cat([features, of_loops]).index_select(0, self.edge)

    def as_given(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """edge_index and weights in the order of the given edges, added loops at the end."""
        order = self.edge.argsort(stable=True)
        pairs = torch.stack([self.pattern.indices.long(), self.pattern.row_indices])
        return pairs.index_select(1, order), weights.index_select(0, order)


def adjacency_of(layer: str, given: Any) -> Adjacency:
    """A graph as PyG's users give it: besides ours, ``adj_t`` as a sparse tensor of torch or of torch-sparse."""
    if isinstance(given, Tensor) and given.layout is not torch.strided:
        return _kept_matrix(given)
    if isinstance(given, (Tensor, Pattern, SparseMatrix, DistributedMatrix)):
        return given
    if hasattr(given, "csr") and hasattr(given, "sparse_sizes"):  # torch_sparse.SparseTensor
        indptr, indices, values = given.csr()
        pattern = Pattern(indptr, indices, given.sparse_sizes(), simple=None)
        return pattern if values is None else SparseMatrix(pattern, values)
    wanted = "a tensor (2, E), a Pattern, a SparseMatrix, a DistributedMatrix or a sparse tensor"
    raise TypeError(f"{layer}: edge_index must be {wanted}, not {type(given).__name__}")


def _kept_matrix(adjacency: Tensor) -> SparseMatrix:
    """A sparse tensor as a matrix whose pattern is kept for as long as the tensor lives; its values are its own."""
    A = from_torch(adjacency)
    if torch.compiler.is_compiling():
        return A
    kept = _PATTERNS.get(adjacency)
    if kept is not None and kept.equals(A.pattern):
        return SparseMatrix._trusted(kept, A.values)
    _PATTERNS[adjacency] = A.pattern
    return A


def edge_index_of(adjacency: Adjacency) -> Tensor:
    """(2, E), sources above targets."""
    if isinstance(adjacency, Tensor):
        return adjacency
    pattern = adjacency if isinstance(adjacency, Pattern) else adjacency.pattern
    return pattern.keep("edge_index", lambda: torch.stack([pattern.indices.long(), pattern.row_indices]))


def edges_of(layer: str, adjacency: Tensor | Pattern | SparseMatrix, shape: Shape, loops: SelfLoops) -> Edges:
    """The edges of a graph, kept with its pattern, or for as long as the edge_index lives and is not written to."""
    if isinstance(adjacency, SparseMatrix):
        adjacency = adjacency.pattern
    if isinstance(adjacency, Pattern):
        if adjacency.shape != shape:
            raise ValueError(f"{layer}: the pattern is {adjacency.shape} but there are {shape} (targets, sources)")
        return adjacency.keep(("edges", loops), lambda: _make(edge_index_of(adjacency), shape, loops))
    state = _state(adjacency)
    if state is None:
        return _make(adjacency, shape, loops)
    kept: dict[tuple[int, Shape, SelfLoops], Edges] = _KEPT.setdefault(adjacency, {})
    key = state, shape, loops
    if key not in kept:
        for old in [k for k in kept if k[0] != key[0]]:
            del kept[old]
        kept[key] = _make(adjacency, shape, loops)
    return kept[key]


def _state(edge_index: Tensor) -> int | None:
    """What tells that an edge_index was written to; None if that cannot be told.

    On the host NumPy and ``.data`` can do so without torch's counter of versions, so its numbers are looked at, which
    takes about a hundredth of a layer's time; on a device it is that counter.
    """
    if torch.compiler.is_compiling():
        return None
    if edge_index.device.type == "cpu" and not edge_index.is_floating_point():
        return _ops.checksum(edge_index)
    return None if edge_index.is_inference() else edge_index._version


def _make(edge_index: Tensor, shape: Shape, loops: SelfLoops) -> Edges:
    indptr, indices, edge = _ops.edges(edge_index, shape, int(loops))
    return Edges(Pattern(indptr, indices, shape, check=False, simple=None), edge, edge_index.shape[1])


_KEPT = WeakTensorKeyDictionary()
_PATTERNS = WeakTensorKeyDictionary()
