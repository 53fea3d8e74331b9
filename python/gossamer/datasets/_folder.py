# SPDX-License-Identifier: BSD-3-Clause
"""A graph as a folder of text files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from torch import Tensor

from gossamer._files import PathLike
from gossamer._mtx import read_mtx
from gossamer._sparse_matrix import SparseMatrix
from gossamer.datasets._graph import Graph, assemble


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
    y, train, val, test = (integers(place / f"{name}.txt") for name in ("labels", "train", "val", "test"))
    graph = assemble(f"load: {place}", adjacency, x, y, train, val, test)
    _check_counts(place / "meta.json", graph)
    return graph


def _sparse(path: Path) -> SparseMatrix:
    matrix = read_mtx(path, dtype=torch.float32)
    if not isinstance(matrix, SparseMatrix):
        raise ValueError(f"load: {path} is an array file; a graph wants coordinates")
    return matrix


def integers(path: Path) -> Tensor:
    """The numbers of a text file, one in each line."""
    numbers, error = torch.ops.gossamer.read_integers(str(path))
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
