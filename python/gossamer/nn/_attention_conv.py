# SPDX-License-Identifier: BSD-3-Clause
"""What both attention layers share: self-loops, features of edges, and what happens after the attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gossamer._indices import Shape
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed import DistributedMatrix
from gossamer.nn._edges import Adjacency, Edges, SelfLoops, edge_index_of, edges_of
from gossamer.nn._linear import Features, Linear, linear
from gossamer.nn._shared_edges import entry_keys, of_own_rows, original_pairs, shared_edges

Pair = tuple[Features, Features | None]
Result = Tensor | tuple[Tensor, tuple[Tensor, Tensor]]


class AttentionConv(torch.nn.Module):
    """The part of an attention layer that does not depend on the kind of attention."""

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int,
        concat: bool,
        negative_slope: float,
        dropout: float,
        add_self_loops: bool,
        edge_dim: int | None,
        fill_value: float | Tensor | str,
        bias: bool,
        residual: bool,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.heads, self.concat = in_channels, out_channels, heads, concat
        self.negative_slope, self.dropout, self.add_self_loops = negative_slope, dropout, add_self_loops
        self.edge_dim, self.fill_value, self.residual = edge_dim, fill_value, residual
        total = heads * out_channels if concat else out_channels
        into = in_channels if isinstance(in_channels, int) else in_channels[1]
        self.lin_edge = None if edge_dim is None else linear(edge_dim, heads * out_channels)
        self.res = linear(into, total) if residual else None
        self.bias = torch.nn.Parameter(torch.empty(total)) if bias else None

    def reset_parameters(self) -> None:
        for module in self.children():
            if isinstance(module, Linear):
                module.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def by_heads(self, x: Tensor) -> Tensor:
        return x.view(-1, self.heads, self.out_channels)

    def of_sources(self, lin: Linear, x: Features, adjacency: Adjacency) -> Tensor:
        """W x, by heads, of all nodes that edges come from. Where processes share them, the narrower of x and W x is
        fetched from their owners."""
        if not isinstance(adjacency, DistributedMatrix):
            return self.by_heads(lin(x))
        if isinstance(x, Tensor) and x.dim() == 2 and x.shape[1] < self.heads * self.out_channels:
            return self.by_heads(lin(adjacency.halo(of_own_rows(adjacency, lambda: x))))
        return self.by_heads(adjacency.halo(of_own_rows(adjacency, lambda: lin(x))))

    def edges(self, adjacency: Adjacency, shape: Shape) -> Edges:
        loops = SelfLoops.REPLACE if self.add_self_loops else SelfLoops.NONE
        if isinstance(adjacency, DistributedMatrix):
            return shared_edges(type(self).__name__, adjacency, loops)
        return edges_of(type(self).__name__, adjacency, shape, loops)

    def edge_features(self, adjacency: Adjacency, edge_attr: Tensor | None, edges: Edges) -> Tensor | None:
        """(nnz, H, C), in the order of the pattern; None without features."""
        if self.lin_edge is None:
            return None
        if edge_attr is None:
            if not isinstance(adjacency, (SparseMatrix, DistributedMatrix)):
                return None
            edge_attr = adjacency.values
        columns = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
        if columns.shape != (edges.given, self.edge_dim):
            want = f"({edges.given}, {self.edge_dim})"
            raise ValueError(f"{type(self).__name__}: edge_attr has shape {tuple(edge_attr.shape)}, not {want}")
        of_loops = columns[:0]
        if self.add_self_loops:
            of_loops = self.loop_features(edge_index_of(adjacency), columns, min(edges.pattern.shape))
        return self.by_heads(self.lin_edge(edges.in_order(columns, of_loops)))

    def loop_features(self, edge_index: Tensor, edge_attr: Tensor, n: int) -> Tensor:
        fill = self.fill_value
        if isinstance(fill, str):
            return torch.ops.gossamer.loop_features(edge_index, edge_attr, n, fill)
        return torch.as_tensor(fill, dtype=edge_attr.dtype, device=edge_attr.device).expand(n, edge_attr.shape[1])

    def attention(self, function: Any, adjacency: Adjacency, edges: Edges, given: tuple[Any, ...]) -> Any:
        """What one of the functions of gossamer._attention gives for the layer's settings."""
        how: dict[str, Any] = {"negative_slope": self.negative_slope, "dropout": self.dropout if self.training else 0.0}
        if how["dropout"] and isinstance(adjacency, DistributedMatrix):  # a mask that depends on no partition
            how["seed"] = torch.ops.gossamer.shared_seed(given[0], adjacency.group)
            how["keys"] = entry_keys(adjacency, edges.pattern)
        return function(edges.pattern, *given, **how)

    def as_given(self, adjacency: Adjacency, edges: Edges, weights: Tensor) -> tuple[Tensor, Tensor]:
        """edge_index and weights in the order of the given edges; nodes have the numbers that the user knows."""
        pairs, weights = edges.as_given(weights)
        return original_pairs(adjacency, pairs) if isinstance(adjacency, DistributedMatrix) else pairs, weights

    def finish(self, Z: Tensor, x_dst: Features | None) -> Tensor:
        """Heads side by side or averaged, the residual, the bias."""
        out = Z.flatten(1) if self.concat else Z.mean(dim=1)
        if self.res is not None and x_dst is not None:
            out = out + self.res(x_dst)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"
