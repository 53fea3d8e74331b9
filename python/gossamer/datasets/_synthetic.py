# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that a seed makes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gossamer._sparse_matrix import SparseMatrix
from gossamer.datasets._graph import Graph

_ops = torch.ops.gossamer


def stochastic_block_model(
    sizes: Sequence[int] = (100, 100, 100, 100),
    p_in: float = 0.1,
    p_out: float = 0.01,
    *,
    num_features: int = 16,
    noise: float = 1.0,
    seed: int | None = None,
) -> Graph:
    """Blocks of nodes, undirected edges with probability ``p_in`` inside of a block and ``p_out`` between two.

    The class of a node is its block. Features are the mean of the class, drawn once from the normal distribution, plus
    ``noise`` times normal numbers. Of each class 20 nodes train, 30 validate, the rest test. The same seed gives the
    same graph for every number of threads; without one, torch's generator gives it.

    >>> gs.datasets.stochastic_block_model((60, 80), p_in=1.0, p_out=0.0)  # 60 · 59 + 80 · 79 edges
    Graph(140 nodes, 9860 edges, 16 features, 2 classes, 40/60/40 train/val/test)
    """
    return _synthetic(_ops.stochastic_block_model(sizes, p_in, p_out, num_features, noise, seed), len(sizes))


def power_law(
    num_nodes: int = 1000,
    num_edges: int = 5000,
    *,
    exponent: float = 2.5,
    num_classes: int = 4,
    homophily: float = 0.8,
    num_features: int = 16,
    noise: float = 1.0,
    seed: int | None = None,
) -> Graph:
    """``num_edges`` undirected edges whose ends are drawn so that degrees follow a power law with ``exponent`` > 2.

    With probability ``homophily`` both ends are of one class. Parallel edges are merged and loops left out, so there
    are a few fewer; each stands in the matrix in both directions. Features, split and seed as in
    stochastic_block_model.

    >>> graph = gs.datasets.power_law(2000, 8000, seed=0)
    >>> int(graph.adjacency.sum(1).max()) > 20 * 8
    True
    """
    sizes = num_nodes, num_edges, exponent, num_classes, homophily
    return _synthetic(_ops.power_law(*sizes, num_features, noise, seed), num_classes)


def _synthetic(parts: tuple[Tensor, ...], num_classes: int) -> Graph:
    indptr, indices, x, y, *masks = parts
    ones = torch.ones(len(indices))
    adjacency = SparseMatrix(indptr, indices, ones, (len(y), len(y)), check=False)
    return Graph(adjacency, x, y, masks[0], masks[1], masks[2], num_classes)
