# SPDX-License-Identifier: BSD-3-Clause
"""Graphs from folders and from seeds: published counts, statistics, and files that do not fit together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

import gossamer as gs
from gossamer import datasets

# nodes, undirected edges (unique, without self-loops), features, nonzeros, classes, train/val/test: as published.
PUBLISHED = {
    "planetoid/cora": (2708, 5278, 1433, 49216, 7, 140, 500, 1000),
    "planetoid/citeseer": (3327, 4552, 3703, 105165, 6, 120, 500, 1000),
    "planetoid/pubmed": (19717, 44324, 500, 988031, 3, 60, 500, 1000),
    "gnn-benchmark/amazon_photo": (7650, 119081, 745, 1979909, 8, 160, 240, 7250),
    "gnn-benchmark/coauthor_cs": (18333, 81894, 6805, 1092079, 15, 300, 450, 17583),
}


def counts(graph: datasets.Graph) -> tuple[int, ...]:
    assert isinstance(graph.x, gs.SparseMatrix)
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    edges, split = graph.adjacency.nnz // 2, (int(mask.sum()) for mask in masks)
    return (graph.num_nodes, edges, graph.num_features, graph.x.nnz, graph.num_classes, *split)


def check_undirected(graph: datasets.Graph) -> None:
    A = graph.adjacency
    gs.Pattern(A.indptr, A.indices, A.shape)  # well-formed
    assert A.pattern == A.pattern.T
    assert not (A.pattern.row_indices == A.indices).any()
    assert bool((A.values == 1).all())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(data: Path, name: str) -> None:
    graph = gs.datasets.load(data / name)
    assert counts(graph) == PUBLISHED[name]
    check_undirected(graph)
    meta = json.loads((data / name / "meta.json").read_text())
    labelled = graph.y[graph.y >= 0]
    assert torch.bincount(labelled).tolist() == meta["class_counts"]
    assert len(graph.y) - len(labelled) == meta.get("unlabelled", 0)
    assert int((graph.adjacency.sum(1) == 0).sum()) == meta["isolated"]
    assert int(graph.adjacency.sum(1).max()) == meta["max_degree"]
    if "feature_sum" in meta:
        assert graph.x.values.double().sum().item() == pytest.approx(meta["feature_sum"], rel=1e-6)
    assert graph.x.dtype == graph.adjacency.dtype == torch.float32


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_planetoid_is_the_folder(data: Path, name: str) -> None:
    """The raw pickles and the text files are two forms of one graph."""
    raw = gs.datasets.planetoid(name.upper(), data / "planetoid" / "raw")
    text = gs.datasets.load(data / "planetoid" / name)
    assert counts(raw) == counts(text)
    assert raw.adjacency.pattern == text.adjacency.pattern
    assert isinstance(raw.x, gs.SparseMatrix)
    assert isinstance(text.x, gs.SparseMatrix)
    assert raw.x.pattern == text.x.pattern
    torch.testing.assert_close(raw.x.values, text.x.values)
    for part in ("y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(getattr(raw, part), getattr(text, part)), part


# A folder.

GOOD = {
    "adjacency.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 1\n4 3\n",
    "features.mtx": "%%MatrixMarket matrix coordinate real general\n4 2 2\n1 1 2.5\n4 2 1\n",
    "labels.txt": "0\n1\n0\r\n\n -1 \n",
    "train.txt": "0\n",
    "val.txt": "2\n",
    "test.txt": "1\n",
    "meta.json": '{"nodes": 4, "train": 1}',
}


def write_folder(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_folder(tmp_path: Path) -> None:
    graph = gs.datasets.load(write_folder(tmp_path, GOOD))
    assert repr(graph) == "Graph(4 nodes, 6 edges, 2 features, 2 classes, 1/1/1 train/val/test)"
    assert graph.adjacency.to_dense().tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]]
    assert graph.x.to_dense().tolist() == [[2.5, 0], [0, 0], [0, 0], [0, 1]]
    assert graph.y.tolist() == [0, 1, 0, -1]
    assert graph.val_mask.tolist() == [False, False, True, False]
    moved = graph.to("cpu")
    assert moved.num_classes == 2


FAULTS = {
    "labels.txt:2: 'x' is not an integer": {"labels.txt": "0\nx\n0\n1\n"},
    "labels.txt:1: '0.5' is not an integer": {"labels.txt": "0.5\n0\n0\n1\n"},
    "'99999999999999999999' is not an integer": {"labels.txt": "99999999999999999999\n"},
    "there are 4 nodes but 3 labels": {"labels.txt": "0\n1\n0\n"},
    "label -2 is neither a class nor -1": {"labels.txt": "0\n1\n0\n-2\n"},
    "label 9000000000 would make more classes than the 4 nodes": {"labels.txt": "0\n1\n0\n9000000000\n"},
    "train node 4 is outside the 4 nodes": {"train.txt": "4\n"},
    "val node -1 is outside the 4 nodes": {"val.txt": "-1\n"},
    "a test node is named twice": {"test.txt": "1\n1\n"},
    "a test node is in another split as well": {"test.txt": "2\n"},
    "a node of a split has no label": {"test.txt": "3\n"},
    "features.mtx:3": {"features.mtx": GOOD["features.mtx"][:-9]},
    "there are 4 nodes but features of shape [3, 2]": {
        "features.mtx": "%%MatrixMarket matrix coordinate real general\n3 2 0\n"
    },
    "the adjacency matrix must be square, not [4, 3]": {
        "adjacency.mtx": "%%MatrixMarket matrix coordinate pattern general\n4 3 0\n"
    },
    "is an array file": {"adjacency.mtx": "%%MatrixMarket matrix array real general\n1 1\n2\n"},
    "meta.json announces train: 2, but there are 1": {"meta.json": '{"train": 2}'},
    "meta.json: Expecting value": {"meta.json": "?"},
}


@pytest.mark.parametrize("message", FAULTS)
def test_folder_faults(tmp_path: Path, message: str) -> None:
    write_folder(tmp_path, GOOD | FAULTS[message])
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        gs.datasets.load(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", [name for name in GOOD if name != "meta.json"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, GOOD)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        gs.datasets.load(str(tmp_path))


# Synthetic graphs.


def same(a: datasets.Graph, b: datasets.Graph) -> bool:
    return a.adjacency.pattern == b.adjacency.pattern and torch.equal(a.x, b.x) and torch.equal(a.y, b.y)


@pytest.mark.parametrize("make", [datasets.stochastic_block_model, datasets.power_law])
def test_seeds(make) -> None:
    torch.set_num_threads(1)
    first = make(seed=3)
    torch.set_num_threads(4)
    assert same(first, make(seed=3))
    assert not same(first, make(seed=4))
    torch.manual_seed(0)
    drawn = make()
    assert not same(drawn, make())
    torch.manual_seed(0)
    assert same(drawn, make())


def test_block_model_has_its_probabilities() -> None:
    sizes, p_in, p_out = (300, 200, 100), 0.2, 0.05
    graph = gs.datasets.stochastic_block_model(sizes, p_in, p_out, seed=0)
    check_undirected(graph)
    assert graph.y.bincount().tolist() == list(sizes)
    A, y = graph.adjacency.to_dense(), graph.y
    for a, b in [(a, b) for a in range(3) for b in range(3)]:
        places = sizes[a] * (sizes[b] - (a == b))
        p = p_in if a == b else p_out
        found = A[y == a][:, y == b].sum().item() / places
        assert abs(found - p) < 6 * (p * (1 - p) / (places / 2)) ** 0.5  # six standard deviations
    assert [int(mask.sum()) for mask in (graph.train_mask, graph.val_mask, graph.test_mask)] == [60, 90, 450]
    assert bool((graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int() == 1).all())
    assert graph.y[graph.train_mask].bincount().tolist() == [20, 20, 20]


def test_block_model_at_its_ends() -> None:
    full = gs.datasets.stochastic_block_model((60, 51), 1.0, 0.0, seed=0)
    expected = torch.block_diag(torch.ones(60, 60), torch.ones(51, 51)) - torch.eye(111)
    assert torch.equal(full.adjacency.to_dense(), expected)
    across = gs.datasets.stochastic_block_model((60, 51), 0.0, 1.0, seed=0)
    assert torch.equal(across.adjacency.to_dense(), 1 - torch.eye(111) - expected)
    assert gs.datasets.stochastic_block_model((51,), 0.0, 0.0, seed=0).adjacency.nnz == 0


def test_features_are_means_and_noise() -> None:
    graph = gs.datasets.stochastic_block_model((4000, 4000), 0.0, 0.0, num_features=3, noise=0.5, seed=0)
    for c in range(2):
        assert bool(((graph.x[graph.y == c].std(0) - 0.5).abs() < 0.03).all())
    exact = gs.datasets.stochastic_block_model((60, 60), num_features=3, noise=0.0, seed=0)
    assert len(exact.x.unique(dim=0)) == 2


def test_power_law_has_its_exponent_and_its_classes() -> None:
    graph = gs.datasets.power_law(20000, 200000, exponent=2.5, num_classes=5, homophily=0.7, seed=0)
    check_undirected(graph)
    degree = graph.adjacency.sum(1)
    large = degree[degree >= 60]
    exponent = 1 + len(large) / (large / 59.5).log().sum().item()  # maximum likelihood, Clauset et al. 2009
    assert 2.2 < exponent < 2.8
    assert 0.9 * 400000 < graph.adjacency.nnz <= 400000
    same_class = graph.y[graph.adjacency.pattern.row_indices] == graph.y[graph.adjacency.indices.long()]
    assert abs(same_class.float().mean().item() - (0.7 + 0.3 / 5)) < 0.05


MISTAKES = {
    "p_in and p_out must be in [0, 1], not 1.5 and 0.01": lambda: datasets.stochastic_block_model(p_in=1.5),
    "p_in and p_out must be in [0, 1], not nan": lambda: datasets.stochastic_block_model(p_in=float("nan")),
    "class 0 has 50 nodes, but 20 train and 30 validate": lambda: datasets.stochastic_block_model((50, 80)),
    "wants at least one block": lambda: datasets.stochastic_block_model(()),
    "a block of -1 nodes": lambda: datasets.stochastic_block_model((-1,)),
    "edges are more than": lambda: datasets.stochastic_block_model((10**9,), 1.0),
    "num_features must not be negative, got -1": lambda: datasets.power_law(num_features=-1),
    "noise must be a number from 0, not inf": lambda: datasets.power_law(noise=float("inf")),
    "exponent must be above 2, not 2": lambda: datasets.power_law(exponent=2.0),
    "num_nodes must be in 1": lambda: datasets.power_law(0),
    "num_edges must be in 0": lambda: datasets.power_law(10, 10**12),
    "0 classes of 1000 nodes": lambda: datasets.power_law(num_classes=0),
    "homophily must be in [0, 1], not 2": lambda: datasets.power_law(homophily=2.0),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_synthetic_mistakes(message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        MISTAKES[message]()
