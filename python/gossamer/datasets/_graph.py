# SPDX-License-Identifier: BSD-3-Clause
"""A graph with features, classes and a split of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from gossamer._sparse_matrix import SparseMatrix


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph whose nodes are to be classified.

    ``adjacency`` (N, N) holds ones; row i holds the edges that point at node i. ``x`` (N, F) are the features, sparse
    where the data is. ``y`` (N,) are the classes, -1 where the data gives none. The masks (N,) are disjoint.
    """

    __module__ = "gossamer.datasets"  # where users find it, and where pickles look for it

    adjacency: SparseMatrix
    x: SparseMatrix | Tensor
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    num_classes: int

    @property
    def num_nodes(self) -> int:
        return self.adjacency.shape[0]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        moved = {field.name: getattr(self, field.name).to(device) for field in fields(self)[:-1]}
        return replace(self, **moved)

    def __repr__(self) -> str:
        sizes = f"{self.num_nodes} nodes, {self.adjacency.nnz} edges, {self.num_features} features"
        split = "/".join(str(int(mask.sum())) for mask in (self.train_mask, self.val_mask, self.test_mask))
        return f"Graph({sizes}, {self.num_classes} classes, {split} train/val/test)"


def assemble(
    where: str, adjacency: SparseMatrix, x: SparseMatrix | Tensor, y: Tensor, train: Tensor, val: Tensor, test: Tensor
) -> Graph:
    """A Graph of parts that fit together, or a ValueError that begins with ``where``. Splits are lists of nodes."""
    train_mask, val_mask, test_mask = torch.ops.gossamer.check_graph(
        where, adjacency.shape, x.shape, y, train, val, test
    )
    ones = adjacency.with_values(torch.ones_like(adjacency.values))
    return Graph(ones, x, y, train_mask, val_mask, test_mask, int(y.max()) + 1 if len(y) else 0)
