# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention of the second kind (GATv2)."""

from __future__ import annotations

import torch
from torch import Tensor

from gossamer._attention import gatv2_attention, gatv2_with_weights
from gossamer.nn._attention_conv import AttentionConv, Result
from gossamer.nn._edges import Adjacency, adjacency_of
from gossamer.nn._linear import Features, glorot, linear


class GATv2Conv(AttentionConv):
    """x'[i] = Σ_j s[i, j] W_l x[j],  s = softmax_j a · leaky_relu(W_r x[i] + W_l x[j] + W_e e[i, j])

    Arguments, parameter names and ``state_dict`` are those of PyG's layer; forward and backward are fused. ``x`` is a
    tensor, a ``SparseMatrix``, or a pair (sources, targets); ``edge_index`` is (2, E), or a ``Pattern`` or
    ``SparseMatrix`` whose row i holds the edges that point at i. The pattern of a repeated ``edge_index`` is kept.

    >>> conv = gs.nn.GATv2Conv(3, 2, heads=4, concat=False)
    >>> conv(torch.randn(5, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([5, 2])
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
        share_weights: bool = False,
        residual: bool = False,
    ) -> None:
        common = (negative_slope, dropout, add_self_loops, edge_dim, fill_value, bias, residual)
        super().__init__(in_channels, out_channels, heads, concat, *common)
        self.share_weights = share_weights
        src, dst = (in_channels, in_channels) if isinstance(in_channels, int) else in_channels
        self.lin_l = linear(src, heads * out_channels, bias=bias)
        self.lin_r = self.lin_l if share_weights else linear(dst, heads * out_channels, bias=bias)
        self.att = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        glorot(self.att)

    def forward(
        self,
        x: Features | tuple[Features, Features],
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Result:
        """(n_dst, heads * out) or (n_dst, out); with ``return_attention_weights`` also (edge_index, weights)."""
        if edge_attr is not None and self.edge_dim is None:
            raise ValueError("GATv2Conv: edge_attr is given, but the layer has no edge_dim")
        edge_index = adjacency_of("GATv2Conv", edge_index)
        sources, targets = x if isinstance(x, tuple) else (x, x)
        x_src = self.of_sources(self.lin_l, sources, edge_index)
        shared = targets is sources and self.share_weights
        # Own nodes stand before those of other processes.
        x_dst = x_src[: sources.shape[0]] if shared else self.by_heads(self.lin_r(targets))
        edges = self.edges(edge_index, (x_dst.shape[0], x_src.shape[0]))
        given = (x_src, x_dst, self.att[0], self.edge_features(edge_index, edge_attr, edges))
        if not return_attention_weights:
            return self.finish(self.attention(gatv2_attention, edge_index, edges, given), targets)
        Z, weights = self.attention(gatv2_with_weights, edge_index, edges, given)
        return self.finish(Z, targets), self.as_given(edge_index, edges, weights)
