# SPDX-License-Identifier: BSD-3-Clause
"""The raw files of Planetoid: downloads with checksums, and pickles that are broken or mean harm."""

from __future__ import annotations

import pickle
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gossamer as gs
from gossamer.datasets import _planetoid as planetoid

ACTED: list[str] = []


def parts() -> dict[str, Any]:
    """Eight nodes: 2 train, 2 validate, 3 test (5, 7, 4), and node 6 stands nowhere, as in CiteSeer."""
    allx = scipy.sparse.csr_matrix(np.arange(12, dtype=np.float32).reshape(4, 3) % 5)
    ally = np.eye(2, dtype=np.int32)[[0, 1, 1, 0]]
    graph = defaultdict(list, {0: [1, 1, 0], 1: [0, 7], 5: [4], 6: []})
    return {
        "x": allx[:2], "y": ally[:2], "allx": allx, "ally": ally, "graph": graph,
        "tx": scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)), "ty": np.eye(2, dtype=np.int32)[[1, 0, 1]],
    }  # fmt: skip


def write(folder: Path, contents: dict[str, Any], index: str = "5\n7\n4\n") -> Path:
    for part, value in contents.items():
        data = value if isinstance(value, bytes) else pickle.dumps(value, protocol=2)
        (folder / f"ind.cora.{part}").write_bytes(data)
    (folder / "ind.cora.test.index").write_text(index)
    return folder


def test_small_graph(tmp_path: Path) -> None:
    graph = gs.datasets.planetoid("Cora", write(tmp_path, parts()))
    assert repr(graph) == "Graph(8 nodes, 6 edges, 3 features, 2 classes, 2/2/3 train/val/test)"
    assert graph.y.tolist() == [0, 1, 1, 0, 1, 1, -1, 0]
    assert graph.test_mask.nonzero().flatten().tolist() == [4, 5, 7]
    dense = graph.x.to_dense()
    assert dense[:4].tolist() == (np.arange(12).reshape(4, 3) % 5).tolist()
    assert dense[[5, 7, 4]].tolist() == np.eye(3).tolist()
    assert dense[6].tolist() == [0, 0, 0]
    edges = {(0, 1), (1, 0), (1, 7), (7, 1), (5, 4), (4, 5)}
    pattern = graph.adjacency.pattern
    assert set(zip(pattern.row_indices.tolist(), pattern.indices.tolist(), strict=True)) == edges


class Harm:
    """Runs something when it is unpickled by an ordinary unpickler."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def act(what: str) -> None:
    ACTED.append(what)


def object_array() -> Any:
    return np.array([{}, []], dtype=object)


FAULTS: dict[str, dict[str, Any]] = {
    "graph: it names posix.system": {"graph": Harm(__import__("os").system, "true")},
    "x: it names __builtin__.eval": {"x": Harm(eval, "1 + 1")},
    f"y: it names {__name__}.act": {"y": Harm(act, "y")},
    "allx: it names numpy.fromfile": {"allx": b"cnumpy\nfromfile\n(S'/etc/passwd'\ntR."},
    "graph: it names __builtin__.getattr": {"graph": b"c__builtin__\ngetattr\n."},
    "ally: arrays of 'O8' are not numbers": {"ally": object_array()},
    "graph: it refers to something outside": {"graph": b"Psomething\n."},
    "graph: not a pickle": {"graph": b"hello"},
    "tx: not a pickle": {"tx": b""},
    "ty: not a pickle": {"ty": pickle.dumps(parts()["ty"], protocol=2)[:-20]},
    "graph: it holds a list, not what belongs there": {"graph": [1, 2]},
    "x: it holds a array": {"x": np.ones((2, 3))},
    "y: labels of shape (2,) that are not one-hot": {"y": np.ones(2, np.int32)},
    "ally: labels of shape (4, 2) that are not one-hot": {"ally": np.full((4, 2), 3)},
    "tx: features of shape (3, 2) for 3 labels": {"tx": scipy.sparse.csr_matrix((3, 2))},
    "allx: features of shape (5, 3) for 4 labels": {"allx": scipy.sparse.csr_matrix((5, 3))},
    "graph: the neighbours of 0 are not nodes below 8": {"graph": {0: [8]}},
    "graph: the neighbours of 1 are not nodes": {"graph": {1: "no"}},
    "graph: the neighbours of 'a' are not nodes": {"graph": {"a": [1]}},
    "graph: the neighbours of 2 are not nodes": {"graph": {2: [True]}},
}


@pytest.mark.parametrize("message", FAULTS)
def test_faults(tmp_path: Path, message: str) -> None:
    write(tmp_path, parts() | FAULTS[message])
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        gs.datasets.planetoid("cora", tmp_path)
    assert str(caught.value).startswith(f"planetoid: {tmp_path}/ind.cora.{message}")
    assert not ACTED


def damaged(change: dict[str, Any]) -> scipy.sparse.csr_matrix:
    matrix = parts()["allx"].copy()
    matrix.__dict__.update(change)
    return matrix


MATRICES = {
    "cols[0] is 9, outside 0 … 2": {"indices": np.full(9, 9, np.int32)},
    "indptr has 2 entries": {"indptr": np.zeros(2, np.int32)},
    "its shape is 'x'": {"_shape": "x"},
    "its shape is (4,)": {"_shape": (4,)},
    "it lacks indptr, indices or data": {"data": None},
    "shape": {"_shape": (-1, 3)},
}


@pytest.mark.parametrize("message", MATRICES)
def test_damaged_matrices(tmp_path: Path, message: str) -> None:
    write(tmp_path, parts() | {"allx": damaged(MATRICES[message])})
    with pytest.raises(ValueError, match=r"ind\.cora\.allx: ") as caught:
        gs.datasets.planetoid("cora", tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("5\n7\n", "test.index: 2 nodes, but there are features of 3"),
        ("5\n7\n1\n", "test.index: its nodes are 1 to 7, but allx has 4"),
        ("5\n7\n99999999999\n", "test.index: its nodes are 5 to 99999999999"),
        ("5\n7\n7\n", "a test node is named twice"),
        ("5\nx\n4\n", "test.index:2: 'x' is not an integer"),
    ],
)
def test_faults_of_the_index(tmp_path: Path, index: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        gs.datasets.planetoid("cora", write(tmp_path, parts(), index))
    assert message in str(caught.value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["x", "ally", "graph"]), st.integers(0, 1000), st.integers(0, 4), st.binary(max_size=6))
def test_mutations_raise_or_read_well(tmp_path: Path, part: str, at: int, length: int, new: bytes) -> None:
    contents = bytearray(pickle.dumps(parts()[part], protocol=2))
    at %= len(contents)
    contents[at : at + length] = new
    write(tmp_path, parts() | {part: bytes(contents)})
    try:
        graph = gs.datasets.planetoid("cora", tmp_path)
    except ValueError:
        return
    gs.Pattern(graph.adjacency.indptr, graph.adjacency.indices, graph.adjacency.shape)


def test_a_small_file_cannot_ask_for_much_memory(tmp_path: Path) -> None:
    """A memo slot of 2³² - 1, and a string that claims 2 GB: both fit in a few bytes."""
    for contents in (b"\x80\x02]r\xff\xff\xff\xff.", b"T\xff\xff\xff\x7fabc."):
        write(tmp_path, parts() | {"graph": contents})
        with pytest.raises(ValueError, match=r"ind\.cora\.graph: "):
            gs.datasets.planetoid("cora", tmp_path)


def test_no_such_graph(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no 'karate', only cora, citeseer, pubmed"):
        gs.datasets.planetoid("karate", tmp_path)


def test_downloads_are_checked(tmp_path: Path, data: Path) -> None:
    """From a folder in place of the network: right files are kept, a wrong one is refused and not written."""
    raw, mirror = data / "planetoid" / "raw", tmp_path / "mirror"
    mirror.mkdir()
    for file in raw.glob("ind.cora.*"):
        shutil.copyfile(file, mirror / file.name)
    graph = planetoid.read("cora", tmp_path / "a", source=f"{mirror.as_uri()}/")
    assert graph.num_nodes == 2708
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(p.name for p in mirror.iterdir())
    planetoid.read("cora", tmp_path / "a", source="file:///nowhere/")  # all there: nothing is fetched
    with (mirror / "ind.cora.x").open("ab") as file:
        file.write(b"!")
    with pytest.raises(ValueError, match=r"ind\.cora\.x has SHA-256 \w{64}, not that of the file we know"):
        planetoid.read("cora", tmp_path / "b", source=f"{mirror.as_uri()}/")
    assert not (tmp_path / "b" / "ind.cora.x").exists()
    with pytest.raises(OSError, match="nowhere"):
        planetoid.read("cora", tmp_path / "c", source="file:///nowhere/")
