# SPDX-License-Identifier: BSD-3-Clause
"""Graphs with features, classes and a split of their nodes: from files, or made by a seed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from gossamer.io import PathLike, read_mtx
from gossamer.sparse_matrix import SparseMatrix

_ops = torch.ops.gossamer


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph whose nodes are to be classified.

    ``adjacency`` (N, N) holds ones; row i holds the edges that point at node i. ``x`` (N, F) are the features, sparse
    where the data is. ``y`` (N,) are the classes, -1 where the data gives none. The masks (N,) are disjoint.
    """

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


def load(folder: PathLike) -> Graph:
    """Read a folder of text files: ``adjacency.mtx``, ``features.mtx``, ``labels.txt``, ``train.txt``, ``val.txt``,
    ``test.txt``, and, if it is there, ``meta.json`` with the counts.

    The matrices are MatrixMarket; an undirected graph has both directions of each edge (a symmetric file). A line of
    the labels is the class of a node, or -1; a line of a split is a node, counted from 0. Features are float32, sparse
    as they stand. What does not fit together raises ValueError with the name of the file or folder.
    """
    place = Path(os.fspath(folder))
    adjacency = _sparse(place / "adjacency.mtx")
    x = _sparse(place / "features.mtx")
    y, train, val, test = (_integers(place / f"{name}.txt") for name in ("labels", "train", "val", "test"))
    graph = assemble(f"load: {place}", adjacency, x, y, train, val, test)
    _check_counts(place / "meta.json", graph)
    return graph


def assemble(
    where: str, adjacency: SparseMatrix, x: SparseMatrix | Tensor, y: Tensor, train: Tensor, val: Tensor, test: Tensor
) -> Graph:
    """A Graph of parts that fit together, or a ValueError that begins with ``where``. Splits are lists of nodes."""
    train_mask, val_mask, test_mask = _ops.check_graph(where, adjacency.shape, x.shape, y, train, val, test)
    ones = adjacency.with_values(torch.ones_like(adjacency.values))
    return Graph(ones, x, y, train_mask, val_mask, test_mask, int(y.max()) + 1 if len(y) else 0)


def planetoid(name: str, root: PathLike) -> Graph:
    """Cora, CiteSeer or PubMed with the public split, from the files ``ind.<name>.x``, … in ``root``.

    Files that are missing are downloaded from github.com/kimiyoung/planetoid and checked by their SHA-256. They are
    pickles, of which only arrays, sparse matrices and lists of neighbours are accepted; nothing in them is run. Both
    directions of each edge are there, parallel edges and self-loops are not. The nodes of CiteSeer that stand in no
    file have no features and class -1.
    """
    from gossamer.planetoid import read

    return read(name, Path(os.fspath(root)))


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


def _sparse(path: Path) -> SparseMatrix:
    matrix = read_mtx(path, dtype=torch.float32)
    if not isinstance(matrix, SparseMatrix):
        raise ValueError(f"load: {path} is an array file; a graph wants coordinates")
    return matrix


def _integers(path: Path) -> Tensor:
    numbers, error = _ops.read_integers(str(path))
    if error:
        raise OSError(error, os.strerror(error), str(path))
    return numbers


def _check_counts(path: Path, graph: Graph) -> None:
    """Compares with what a meta.json announces, so that a file that was cut off between two lines is seen."""
    if not path.exists():
        return
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: {path}: {error}") from None
    found = {"nodes": graph.num_nodes, "adjacency_nnz": graph.adjacency.nnz, "features": graph.num_features}
    found |= {"classes": graph.num_classes, "train": int(graph.train_mask.sum())}
    found |= {"val": int(graph.val_mask.sum()), "test": int(graph.test_mask.sum())}
    for name, count in found.items():
        if isinstance(meta, dict) and meta.get(name, count) != count:
            raise ValueError(f"load: {path} announces {name}: {meta[name]}, but there are {count}")
