# SPDX-License-Identifier: BSD-3-Clause
"""Golden vectors: every quantity of a graph attention network on a given graph, for people who build accelerators."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gossamer.datasets import Graph
from gossamer.io import PathLike
from gossamer.sparse_matrix import SparseMatrix


def golden(
    graph: Graph,
    *,
    version: int = 1,
    hidden: Sequence[int] = (8,),
    heads: Sequence[int] = (2,),
    seed: int = 0,
    self_loops: bool = True,
    dtype: torch.dtype = torch.float64,
) -> dict[str, Tensor]:
    """Parameters drawn by a seed, and every quantity of the network on them, forward and backward.

    ``version`` 1 is GAT, 2 is GATv2. ``hidden``: the features of a head in each hidden layer; the last layer has one
    for each class. ``heads``: those of each layer, or one number for all. With ``self_loops``, every node has an edge
    to itself. ``docs/equations.md`` has the names, shapes and equations.

    >>> graph = gs.datasets.stochastic_block_model((60, 80), seed=0)
    >>> arrays = gs.golden.golden(graph, version=2, hidden=[5], heads=[3, 1])
    >>> arrays["layer1.X_src"].shape, arrays["layer2.H"].shape
    (torch.Size([140, 3, 5]), torch.Size([140, 2]))
    """
    A = graph.adjacency
    x = graph.x.to_dense() if isinstance(graph.x, SparseMatrix) else graph.x
    nodes = x, graph.y, graph.train_mask, graph.num_classes
    names, values = torch.ops.gossamer.golden(
        A.pattern.tensors(), A.shape, *nodes, version, list(hidden), list(heads), seed, self_loops, dtype
    )
    return dict(zip(names, values, strict=True))


def write_npz(path: PathLike, arrays: Mapping[str, Tensor]) -> None:
    """Write named tensors for ``numpy.load``. The file appears whole or not at all; its name must end in .npz."""
    name = os.fspath(path)
    if error := torch.ops.gossamer.write_npz(name, list(arrays), list(arrays.values())):
        raise OSError(error, os.strerror(error), name)
