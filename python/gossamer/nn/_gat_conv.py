# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention (GAT)."""

from __future__ import annotations

import torch
from torch import Tensor

from gossamer._attention import gat_attention, gat_with_weights
from gossamer.nn._attention_conv import AttentionConv, Pair, Result
from gossamer.nn._edges import Adjacency, adjacency_of
from gossamer.nn._linear import Features, LazyLinear, glorot, linear


class GATConv(AttentionConv):
    """x'[i] = Σ_j s[i, j] W x[j],  s = softmax_j leaky_relu(a_dst · W x[i] + a_src · W x[j] + a_edge · W_e e[i, j])

    Arguments, parameter names and ``state_dict`` are those of PyG's layer; forward and backward are fused. ``x`` is a
    tensor, a ``SparseMatrix``, or a pair (sources, targets); ``edge_index`` is (2, E), or a ``Pattern`` or
    ``SparseMatrix`` whose row i holds the edges that point at i. The pattern of a repeated ``edge_index`` is kept.

    >>> conv = gs.nn.GATConv(3, 2, heads=4)
    >>> conv(torch.randn(5, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([5, 8])
    """

    __module__ = "gossamer.nn"  # where users find it, and where pickles look for it

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool = False,
    ) -> None:
        common = (negative_slope, dropout, add_self_loops, edge_dim, fill_value, bias, residual)
        super().__init__(in_channels, out_channels, heads, concat, *common)
        one = isinstance(in_channels, int)
        src, dst = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.lin = linear(src, heads * out_channels) if one else None
        self.lin_src = None if one else linear(src, heads * out_channels)
        self.lin_dst = None if one else linear(dst, heads * out_channels)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_edge = None if edge_dim is None else torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for att in (self.att_src, self.att_dst, self.att_edge):
            if att is not None:
                glorot(att)

    def forward(
        self,
        x: Features | Pair,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Result:
        """(n_dst, heads * out) or (n_dst, out); with ``return_attention_weights`` also (edge_index, weights)."""
        edge_index = adjacency_of("GATConv", edge_index)
        sources, targets = x if isinstance(x, tuple) else (x, x)
        lin_src, lin_dst = self.lin or self.lin_src, self.lin or self.lin_dst
        assert lin_src is not None
        assert lin_dst is not None
        x_src = self.of_sources(lin_src, sources, edge_index)
        scores = torch.ops.gossamer.head_scores.default
        if targets is sources and self.lin is not None:
            alpha_src, alpha_dst = scores(x_src, torch.cat([self.att_src, self.att_dst])).unbind(1)
            alpha_dst = alpha_dst[: sources.shape[0]]  # own nodes stand before those of other processes
        else:
            alpha_src = scores(x_src, self.att_src)[:, 0]
            n_dst = x_src.shape[0] if size is None else size[1]
            alpha_dst = alpha_src.new_zeros(n_dst, self.heads)
            if targets is not None and isinstance(lin_dst, LazyLinear):
                alpha_dst = scores(self.by_heads(lin_dst(targets)), self.att_dst)[:, 0]
            elif targets is not None:  # nobody else wants W x of the targets
                alpha_dst = lin_dst.scores(targets, self.att_dst)
        given_sizes = (x_src.shape[0], alpha_dst.shape[0])
        if size is not None and tuple(size) != given_sizes:
            raise ValueError(f"GATConv: size is {tuple(size)} but there are {given_sizes} (sources, targets)")
        edges = self.edges(edge_index, (alpha_dst.shape[0], x_src.shape[0]))
        x_edge = self.edge_features(edge_index, edge_attr, edges)
        alpha_edge = None if x_edge is None or self.att_edge is None else scores(x_edge, self.att_edge)[:, 0]
        given = (x_src, alpha_src, alpha_dst, alpha_edge)
        if not return_attention_weights:
            return self.finish(self.attention(gat_attention, edge_index, edges, given), targets)
        Z, weights = self.attention(gat_with_weights, edge_index, edges, given)
        return self.finish(Z, targets), self.as_given(edge_index, edges, weights)
