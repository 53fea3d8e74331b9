# SPDX-License-Identifier: BSD-3-Clause
"""The graph convolution of Kipf and Welling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gossamer._products import spmm
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed import DistributedMatrix
from gossamer.nn._edges import Adjacency, SelfLoops, adjacency_of, edges_of
from gossamer.nn._linear import Features, linear
from gossamer.nn._shared_edges import of_own_rows, shared_edges, shared_matrix

_ops = torch.ops.gossamer


class GCNConv(torch.nn.Module):
    """Y = D^-1/2 Ã D^-1/2 X Wᵀ + b with Ã = A + I and D its row sums.

    Arguments, parameter names and ``state_dict`` are those of PyG's layer. ``edge_index`` is (2, E), or a ``Pattern``
    or ``SparseMatrix`` whose row i holds the edges that point at i; its values are the weights of the edges. Weights
    are differentiable. ``cached=True`` keeps the first normalised matrix for good, weights and all.

    Self-loops that are added weigh ``loop_weight``. Without it they weigh 1, or, with ``improved`` and where edges have
    weights, 2: so does PyG, which forgets ``improved`` where there are none. A + 2I is ``loop_weight=2``.

    >>> conv = gs.nn.GCNConv(3, 2)
    >>> conv(torch.randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 2])
    """

    __module__ = "gossamer.nn"  # where users find it, and where pickles look for it

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        improved: bool = False,
        cached: bool = False,
        add_self_loops: bool | None = None,
        normalize: bool = True,
        bias: bool = True,
        loop_weight: float | None = None,
    ) -> None:
        super().__init__()
        add_self_loops = normalize if add_self_loops is None else add_self_loops
        if add_self_loops and not normalize:
            raise ValueError("GCNConv: add_self_loops=True goes with normalize=True")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.improved, self.cached, self.add_self_loops, self.normalize = improved, cached, add_self_loops, normalize
        self.loop_weight = loop_weight
        self.lin = linear(in_channels, out_channels)
        self.bias = torch.nn.Parameter(torch.empty(out_channels)) if bias else None
        self._kept: SparseMatrix | DistributedMatrix | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)
        self._kept = None

    def matrix(
        self, n: int, graph: Any, edge_weight: Tensor | None, dtype: torch.dtype
    ) -> SparseMatrix | DistributedMatrix:
        """D^-1/2 Ã D^-1/2, or A itself without ``normalize``."""
        adjacency = adjacency_of("GCNConv", graph)
        if edge_weight is None and isinstance(adjacency, (SparseMatrix, DistributedMatrix)):
            edge_weight = adjacency.values
        loops = SelfLoops.REMAINING if self.add_self_loops else SelfLoops.NONE
        if self.add_self_loops and adjacency is not graph:
            adjacency, loops = self._with_loops(graph, adjacency, dtype), SelfLoops.NONE
            edge_weight = adjacency.values
        if isinstance(adjacency, DistributedMatrix):
            edges = shared_edges("GCNConv", adjacency, loops)
        else:
            edges = edges_of("GCNConv", adjacency, (n, n), loops)
        P = edges.pattern
        if edge_weight is None and self.loop_weight in (None, 1):
            weights = torch.ones(P.nnz, dtype=dtype, device=P.device)
        else:
            given = torch.ones(edges.given, dtype=dtype, device=P.device) if edge_weight is None else edge_weight
            given = given.flatten() if given.shape == (edges.given, 1) else given
            if given.shape != (edges.given,):
                raise ValueError(f"GCNConv: edge_weight has shape {tuple(given.shape)} for {edges.given} edges")
            added = torch.full((n,), self._added_weight(), dtype=given.dtype, device=P.device)
            weights = edges.in_order(given, added)
        if isinstance(adjacency, DistributedMatrix):
            return shared_matrix("GCNConv", adjacency, loops, weights, self.normalize)
        values = _ops.gcn_norm(P.tensors(), weights, P.shape) if self.normalize else weights
        return SparseMatrix._trusted(P, values)

    def _added_weight(self) -> float:
        """Of a self-loop that is added, where edges have weights."""
        return (2.0 if self.improved else 1.0) if self.loop_weight is None else self.loop_weight

    def _with_loops(self, graph: Any, adjacency: Any, dtype: torch.dtype) -> SparseMatrix:
        """As PyG has them for a sparse tensor: added to the diagonal of torch's, in place of torch-sparse's."""
        weight = self._added_weight()
        P = adjacency.pattern if isinstance(adjacency, SparseMatrix) else adjacency
        values = torch.ones(P.nnz, dtype=dtype, device=P.device)
        A = adjacency if isinstance(adjacency, SparseMatrix) else SparseMatrix._trusted(P, values)
        return A.with_diagonal(A.diagonal() + weight if isinstance(graph, Tensor) else weight)

    def forward(self, x: Features, edge_index: Adjacency, edge_weight: Tensor | None = None) -> Tensor:
        """(n, out); ``edge_weight``, (E,) or (E, 1), stands in the order of ``edge_index`` and may want a gradient."""
        A = self._kept
        if A is None:
            A = self.matrix(x.shape[0], edge_index, edge_weight, self.lin.weight.dtype)
            if self.cached:
                self._kept = A
        own = of_own_rows(A, lambda: self.lin(x)) if isinstance(A, DistributedMatrix) else self.lin(x)
        out = spmm(A, own)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"
