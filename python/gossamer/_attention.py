# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention, fused: nothing of size edges x heads x width is stored, forward or backward.

Row i of the pattern holds the edges that point at i, so its shape is (destinations, sources). All tensors have heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gossamer._indices import as_shape
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix

_ops = torch.ops.gossamer


def graph_pattern(edge_index: Tensor, shape: Sequence[int]) -> tuple[Pattern, Tensor]:
    """The pattern of a graph, and the edge that each of its entries is.

    ``edge_index`` is (2, E), sources above targets, as in PyG; ``shape`` is (destinations, sources). Entries are sorted
    by target, then source. A graph may have parallel edges: unlike the pattern of a matrix, this one then holds a
    column several times in a row. ``spmm``, ``sddmm``, ``row_softmax`` and attention count each copy.

    Features of the edges go to attention as ``features[order]``.

    >>> edges = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 1]])
    >>> P, order = gs.graph_pattern(edges, (2, 2))
    >>> P.indices.tolist(), order.tolist()
    ([1, 0, 0, 1], [1, 0, 2, 3])
    """
    size = as_shape("graph_pattern", shape)
    indptr, indices, order = _ops.graph(edge_index, size)
    return Pattern(indptr, indices, size, check=False, simple=None), order


def dropout(x: Tensor, p: float = 0.5, training: bool = True, *, seed: int | None = None) -> Tensor:
    """Each element becomes 0 with probability ``p``, else x / (1 - p); x itself unless ``training``.

    The mask depends on the seed and the element's place alone: the same on every device and for every number of
    threads. It is drawn several numbers at a time, which takes a fraction of the time of torch's dropout on the CPU.
    Without a ``seed`` one is drawn from torch's generator, so ``torch.manual_seed`` governs it.

    >>> gs.dropout(torch.ones(6), 0.5, seed=1).count_nonzero() < 6
    tensor(True)
    """
    return _ops.dropout(x, p, seed) if training else x


def gat_attention(
    pattern: Pattern | SparseMatrix,
    x_src: Tensor,
    alpha_src: Tensor,
    alpha_dst: Tensor,
    alpha_edge: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
    keys: Tensor | None = None,
) -> Tensor:
    """Graph attention (GAT): Z[i] = Σ_j drop(s[i, j]) x_src[j], s the softmax over the edges (i, j) of each row i of

        e = leaky_relu(alpha_dst[i] + alpha_src[j] + alpha_edge[i, j])

    Shapes: pattern (n_dst, n_src), x_src (n_src, H, d), alpha_src (n_src, H), alpha_dst (n_dst, H), alpha_edge (nnz, H)
    or None; Z (n_dst, H, d). A node without edges gets 0. ``dropout`` is of the weights s, drawn from ``seed`` (or from
    torch's generator): the same seed gives the same mask on any number of threads. An entry is drawn by its place in
    the pattern, or by its number in ``keys`` (nnz,) int64: then it keeps its mask wherever it stands.

    Cost: O(nnz H d) time; memory beyond inputs, result and gradients: O(n_dst H), in the backward O(nnz H).

    Gradient: for all tensors, of any order; beyond the first it is made of spmm, sddmm and row_softmax.

    >>> P = gs.eye(2).pattern
    >>> gs.gat_attention(P, torch.tensor([[[5.0]], [[6.0]]]), torch.ones(2, 1), torch.ones(2, 1)).flatten()
    tensor([5., 6.])
    """
    arguments = _arguments(pattern, x_src, alpha_src, alpha_dst, alpha_edge, negative_slope, dropout, seed, keys)
    return _ops.gat_attention(*arguments)


def gatv2_attention(
    pattern: Pattern | SparseMatrix,
    x_src: Tensor,
    x_dst: Tensor,
    att: Tensor,
    x_edge: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
    keys: Tensor | None = None,
) -> Tensor:
    """Graph attention of the second kind (GATv2): as ``gat_attention``, with the scores

        e = att · leaky_relu(x_dst[i] + x_src[j] + x_edge[i, j])

    Shapes: pattern (n_dst, n_src), x_src (n_src, H, d), x_dst (n_dst, H, d), att (H, d), x_edge (nnz, H, d) or None;
    the result is (n_dst, H, d).

    >>> P = gs.from_dense(torch.ones(1, 2)).pattern
    >>> x = torch.tensor([[[1.0]], [[3.0]]])
    >>> gs.gatv2_attention(P, x, torch.zeros(1, 1, 1), torch.zeros(1, 1)).flatten()  # equal weights
    tensor([2.])
    """
    return _ops.gatv2_attention(*_arguments(pattern, x_src, x_dst, att, x_edge, negative_slope, dropout, seed, keys))


def gat_with_weights(
    pattern: Pattern | SparseMatrix,
    x_src: Tensor,
    alpha_src: Tensor,
    alpha_dst: Tensor,
    alpha_edge: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
    keys: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``gat_attention`` and the weights of the edges, (nnz, H), after dropout. Both are differentiable.

    The weights are stored, so this is made of row_softmax and spmm instead of the fused kernels.

    >>> P = gs.from_dense(torch.ones(1, 2)).pattern
    >>> Z, weights = gs.gat_with_weights(P, torch.ones(2, 1, 3), torch.zeros(2, 1), torch.zeros(1, 1))
    >>> weights.flatten()
    tensor([0.5000, 0.5000])
    """
    arguments = _arguments(pattern, x_src, alpha_src, alpha_dst, alpha_edge, negative_slope, dropout, seed, keys)
    return _ops.gat_with_weights(*arguments)


def gatv2_with_weights(
    pattern: Pattern | SparseMatrix,
    x_src: Tensor,
    x_dst: Tensor,
    att: Tensor,
    x_edge: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
    keys: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``gatv2_attention`` and the weights of the edges, (nnz, H), after dropout. Both are differentiable.

    Needs memory for nnz H d numbers, which ``gatv2_attention`` does not.
    """
    return _ops.gatv2_with_weights(*_arguments(pattern, x_src, x_dst, att, x_edge, negative_slope, dropout, seed, keys))


def _arguments(
    pattern: Pattern | SparseMatrix, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, *settings: float | Tensor | None
) -> tuple[Any, ...]:
    """What the ops take, in their order: the pattern with its transpose if anything is differentiated."""
    P = pattern.pattern if isinstance(pattern, SparseMatrix) else pattern
    if not isinstance(P, Pattern):
        raise TypeError(f"attention: pattern must be a Pattern or a SparseMatrix, not {type(pattern).__name__}")
    return P.tensors_for(a, b, c, d), a, b, c, d, P.shape, *settings
