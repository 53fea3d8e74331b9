# SPDX-License-Identifier: BSD-3-Clause
"""Training: the networks learn, a seed repeats a run, the command tells what it did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gossamer as gs
from bench import epochs, memory
from gossamer.__main__ import main
from gossamer._commands import train as train_command
from gossamer.nn.node_classifier import RECIPES, Recipe, Trained, row_normalized, train


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


@pytest.mark.parametrize(
    ("arguments", "out_heads", "lr", "weight_decay"),
    [
        ([], 1, 0.005, 5e-4),
        (["--pubmed"], 8, 0.01, 1e-3),
        (["--pubmed", "--output-heads", "2"], 2, 0.01, 1e-3),
        (["--weight-decay", "0.25", "--lr", "3"], 1, 3.0, 0.25),
    ],
)
def test_options_reach_the_recipe(
    arguments: list[str], out_heads: int, lr: float, weight_decay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 output heads, rate 0.01 and L2 0.001 are the GAT paper's words for PubMed."""
    seen = []

    def note(graph: gs.datasets.Graph, recipe: Recipe, *_: object, **__: object) -> tuple[None, Trained]:
        seen.append(recipe)
        return None, Trained(0, 0, 0, 0, [])

    monkeypatch.setattr(train_command, "train", note)
    assert main(["train", "--model", "gat", "--data", "synthetic", *arguments]) == 0
    assert seen == [replace(RECIPES["gat"], out_heads=out_heads, lr=lr, weight_decay=weight_decay)]


MISTAKES = {
    "nowhere": ["--data", "nowhere"],
    "--runs must be in 1 … 2147483647, not 0": ["--data", "synthetic", "--runs", "0"],
    "--output-heads must be in 1 … 2147483647, not -1": ["--data", "synthetic", "--output-heads", "-1"],
    "gcn, whose settings are the same": ["--data", "synthetic", "--model", "gcn", "--pubmed"],
    "--weight-decay must be a number that is not negative, not -1.0": ["--data", "synthetic", "--weight-decay", "-1"],
    "--lr must be a number that is not negative, not nan": ["--data", "synthetic", "--lr", "nan"],
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_end_with_one_line(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *MISTAKES[message]]) == 2
    told = capsys.readouterr().err
    assert told.startswith("gossamer train: ")
    assert message in told
    assert told.count("\n") == 1


def test_benchmarks_of_layers_run(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch_geometric")
    assert memory.main(["--quick", "--one", "GATConv", "gossamer"]) == 0
    assert epochs.main([str(data / "planetoid" / "cora"), "--seconds", "0.01"]) == 0
    assert "gatv2: gossamer" in capsys.readouterr().out
