# SPDX-License-Identifier: BSD-3-Clause
"""The raw files of Planetoid: Python 2 pickles of NumPy arrays, SciPy matrices and lists of neighbours.

Nothing in them is trusted. The unpickler knows a handful of names, and for each of them a small class of its own that
takes the numbers and runs nothing of NumPy's or SciPy's: a file can be wrong, but it cannot act.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gossamer._construct import from_coo, from_csr
from gossamer._files import PathLike, atomic
from gossamer._sparse_matrix import SparseMatrix
from gossamer.datasets._folder import integers
from gossamer.datasets._graph import Graph, assemble
from gossamer.datasets._unpickle import PickledArray, PickledMatrix, Refused, unpickle

SOURCE = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
NAMES = ("cora", "citeseer", "pubmed")
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")

Array = np.ndarray[Any, Any]


def planetoid(name: str, root: PathLike) -> Graph:
    """Cora, CiteSeer or PubMed with the public split, from the files ``ind.<name>.x``, … in ``root``.

    Files that are missing are downloaded from github.com/kimiyoung/planetoid and checked by their SHA-256. They are
    pickles, of which only arrays, sparse matrices and lists of neighbours are accepted; nothing in them is run. Both
    directions of each edge are there, parallel edges and self-loops are not. The nodes of CiteSeer that stand in no
    file have no features and class -1.
    """
    return read(name, Path(os.fspath(root)))


def read(name: str, root: Path, source: str = SOURCE) -> Graph:
    """The graph of this name from the files in ``root``; missing ones are downloaded from ``source``."""
    name = name.lower()
    if name not in NAMES:
        raise ValueError(f"planetoid: there is no {name!r}, only {', '.join(NAMES)}")
    for part in PARTS:
        if not (root / f"ind.{name}.{part}").exists():
            _download(source, root / f"ind.{name}.{part}")
    where = f"planetoid: {root}/ind.{name}"
    try:
        return _assemble(where, root / f"ind.{name}")
    except Refused as error:
        raise ValueError(f"{where}.{error}") from None


def _assemble(where: str, stem: Path) -> Graph:
    x, tx, allx = (_matrix(stem, part) for part in ("x", "tx", "allx"))
    y, ty, ally = (_classes(stem, part) for part in ("y", "ty", "ally"))
    test = integers(Path(f"{stem}.test.index"))
    for part, features, classes in (("x", x, y), ("tx", tx, ty), ("allx", allx, ally)):
        if features.shape[0] != len(classes) or features.shape[1] != allx.shape[1]:
            raise Refused(f"{part}: features of shape {features.shape} for {len(classes)} labels")
    if len(test) != len(ty) or len(test) == 0:
        raise Refused(f"test.index: {len(test)} nodes, but there are features of {len(ty)}")
    known, nodes = len(ally), int(test.max()) + 1
    if int(test.min()) < known or nodes > known + 10 * len(test):
        raise Refused(f"test.index: its nodes are {int(test.min())} to {nodes - 1}, but allx has {known}")

    # Nodes 0 … known - 1 stand in allx, the test nodes in tx; a node in neither has no features and no class.
    labels = torch.full((nodes,), -1)
    labels[:known], labels[test] = ally, ty
    rows = torch.cat([allx.pattern.row_indices, test[tx.pattern.row_indices]])
    cols, values = torch.cat([allx.indices, tx.indices]), torch.cat([allx.values, tx.values])
    features = from_coo(rows, cols, values, (nodes, allx.shape[1]))
    adjacency = _adjacency(stem, nodes)
    train = torch.arange(len(y))
    val = torch.arange(len(y), min(len(y) + 500, known))
    return assemble(where, adjacency, features, labels, train, val, test)


def _matrix(stem: Path, part: str) -> SparseMatrix:
    """A pickled scipy.sparse.csr_matrix, as float32."""
    state = unpickle(stem, part, PickledMatrix).state
    shape = state.get("_shape")
    arrays = [state.get(name) for name in ("indptr", "indices", "data")]
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(size, int) for size in shape)):
        raise Refused(f"{part}: its shape is {shape!r:.80}, not (rows, cols)")
    if not all(isinstance(array, PickledArray) and array.numbers().ndim == 1 for array in arrays):
        raise Refused(f"{part}: it lacks indptr, indices or data")
    indptr, indices, values = (torch.from_numpy(array.numbers()) for array in arrays if isinstance(array, PickledArray))
    try:
        return from_csr(indptr, indices, values.float(), (shape[0], shape[1]))
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise Refused(f"{part}: {error}") from None


def _classes(stem: Path, part: str) -> Tensor:
    """The classes of a pickled one-hot array; -1 for a row of zeros."""
    one_hot = unpickle(stem, part, PickledArray).numbers()
    if one_hot.ndim != 2 or one_hot.shape[1] == 0 or not np.isin(one_hot, (0, 1)).all() or (one_hot.sum(1) > 1).any():
        raise Refused(f"{part}: labels of shape {one_hot.shape} that are not one-hot")
    return torch.from_numpy(np.where(one_hot.any(1), one_hot.argmax(1), -1)).long()


def _adjacency(stem: Path, nodes: int) -> SparseMatrix:
    """Both directions of each edge of a pickled {node: neighbours}, once, without self-loops."""
    neighbours = unpickle(stem, "graph", dict)
    for node, others in neighbours.items():
        if not isinstance(others, list) or not all(type(k) is int and 0 <= k < nodes for k in (node, *others)):
            raise Refused(f"graph: the neighbours of {node!r:.40} are not nodes below {nodes}")
    rows = torch.tensor([node for node, others in neighbours.items() for _ in others], dtype=torch.int64)
    cols = torch.tensor([other for others in neighbours.values() for other in others], dtype=torch.int64)
    apart = rows != cols
    rows, cols = torch.cat([rows[apart], cols[apart]]), torch.cat([cols[apart], rows[apart]])
    return from_coo(rows, cols, torch.ones(len(rows)), (nodes, nodes))


def _download(source: str, path: Path) -> None:
    """Fetch a file that is known by its SHA-256; it appears whole and right, or not at all."""
    limit = 1 << 26
    with urllib.request.urlopen(source + path.name, timeout=60) as response:
        contents = response.read(limit)
    found = hashlib.sha256(contents).hexdigest()
    if found != SHA256[path.name.removeprefix("ind.")]:
        raise ValueError(f"planetoid: {source}{path.name} has SHA-256 {found}, not that of the file we know")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(contents)


SHA256 = {
    "citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
}
