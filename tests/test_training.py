# SPDX-License-Identifier: BSD-3-Clause
"""Training: the networks learn, a seed repeats a run, the command tells what it did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from bench import epochs, memory

import gossamer as gs
from gossamer.__main__ import main
from gossamer.nn.node_classifier import RECIPES, row_normalized, train


@pytest.mark.parametrize("model", sorted(RECIPES))
def test_networks_learn_and_a_seed_repeats_the_run(model: str) -> None:
    graph = gs.datasets.stochastic_block_model((60, 60, 60), num_features=8, seed=1)
    recipe = replace(RECIPES[model], epochs=80, lr=0.01, patience=40, dropout=0.3)
    net, result = train(graph, recipe, seed=3)
    assert result.test > 0.9
    again, repeated = train(graph, recipe, seed=3)
    assert repeated == result
    for a, b in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_features_add_up_to_one_sparse_and_dense() -> None:
    x = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    graph = replace(gs.datasets.stochastic_block_model((60,), seed=0), x=gs.from_dense(x))
    want = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert torch.equal(row_normalized(graph).x.to_dense(), want)
    assert torch.equal(row_normalized(replace(graph, x=x)).x, want)


def test_citeseer_reaches_the_papers_accuracy(data: Path) -> None:
    """One run of GCN; the mean of many is in the README. 70 % is the paper's, a run varies by about 1 point."""
    _, result = train(row_normalized(gs.datasets.load(data / "planetoid" / "citeseer")), RECIPES["gcn"])
    assert result.test > 0.67


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "gatv2", "--data", "synthetic", "--epochs", "3", "--runs", "2"]) == 0
    told = capsys.readouterr().out
    assert "run 2: 3 epochs" in told
    assert "over 2 runs" in told


@pytest.mark.parametrize("arguments", [["--data", "nowhere"], ["--data", "synthetic", "--runs", "0"]])
def test_mistakes_end_with_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *arguments]) == 2
    assert capsys.readouterr().err.startswith("gossamer train: ")


def test_benchmarks_of_layers_run(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch_geometric")
    assert memory.main(["--quick", "--one", "GATConv", "gossamer"]) == 0
    assert epochs.main([str(data / "planetoid" / "cora"), "--seconds", "0.01"]) == 0
    assert "gatv2: gossamer" in capsys.readouterr().out
