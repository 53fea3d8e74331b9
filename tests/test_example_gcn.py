# SPDX-License-Identifier: BSD-3-Clause
"""examples/gcn_citeseer.py on its synthetic graph: the network is the formula, it learns, bands are mean ± 2σ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from examples import gcn_citeseer as example

import gossamer as gs
from gossamer.nn.node_classifier import row_normalized


@pytest.fixture(scope="module")
def result() -> example.Result:
    return example.compute(**example.QUICK)


def test_network_is_the_formula() -> None:
    """Â relu(Â X Θ₁ + b₁) Θ₂ + b₂ in dense matrices, Â = D̃^-1/2 (A + I) D̃^-1/2; X stays sparse."""
    graph = row_normalized(example.synthetic())
    assert isinstance(graph.x, gs.SparseMatrix)
    torch.manual_seed(0)
    net = example.GCN(graph.num_features, graph.num_classes).double().eval()
    for bias in (net.first.bias, net.second.bias):
        torch.nn.init.normal_(bias)
    X = graph.x.to(torch.float64)
    A = graph.adjacency.to_dense().double() + torch.eye(graph.num_nodes)
    scale = A.sum(1).rsqrt()
    A_hat = scale[:, None] * A * scale
    hidden = (A_hat @ X.to_dense() @ net.first.lin.weight.T + net.first.bias).relu()
    want = A_hat @ hidden @ net.second.lin.weight.T + net.second.bias
    torch.testing.assert_close(net(X, graph.adjacency.to(torch.float64)), want)


def test_it_learns_from_neighbours_and_words(result: example.Result) -> None:
    runs, epochs = example.QUICK["runs"], example.QUICK["epochs"]
    assert result.loss.shape == result.accuracy.shape == (runs, epochs, 3)
    assert result.graph == "synthetic"
    assert (result.loss[:, -1] < result.loss[:, 0]).all()
    assert (result.accuracy[:, -1, 2] > 3 / 6).all()  # three times chance
    assert (result.accuracy >= 0).all()
    assert (result.accuracy <= 1).all()


def test_bands_are_two_deviations_of_the_runs(result: example.Result) -> None:
    loss = result.loss.numpy()
    mean, sigma = loss.mean(0), np.std(loss, axis=0, ddof=1)
    for ours, want in zip(example.band(result.loss), (mean, mean - 2 * sigma, mean + 2 * sigma), strict=True):
        np.testing.assert_allclose(ours, want, rtol=1e-5)
    axes = example.figures(result)["gcn_loss"].axes[0]
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], mean.T, rtol=1e-5)
    for k, band in enumerate(axes.collections):
        outline = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose(outline.max(), (mean + 2 * sigma)[:, k].max(), rtol=1e-5)
        np.testing.assert_allclose(outline.min(), (mean - 2 * sigma)[:, k].min(), rtol=1e-5)


def test_a_seed_repeats_and_the_runs_differ(result: example.Result) -> None:
    ticks: list[float] = []
    again = example.compute(runs=2, epochs=3, tick=ticks.append)
    assert torch.equal(again.loss, result.loss[:2, :3])
    assert not torch.equal(again.loss[0], again.loss[1])
    assert torch.equal(example.compute(runs=2, epochs=3, seed=1).loss[0], again.loss[1])
    assert ticks == [0.5, 1.0]


def test_it_tells_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(example, "DEFAULT", {"runs": 2, "epochs": 2})
    found = example.main(["--out", str(tmp_path), "--seed", "3"])
    told = capsys.readouterr().out
    assert "No data was given" in told
    assert f"test {100 * found.accuracy[:, -1, 2].mean():.1f} ±" in told
    assert {path.stem for path in tmp_path.glob("*.png")} == set(example.captions())
    torch.save(vars(found), tmp_path / "found.pt")
    loaded: dict[str, Any] = torch.load(tmp_path / "found.pt", weights_only=True)
    assert torch.equal(loaded["loss"], found.loss)


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="runs must be at least 2 to have a deviation, not 1"):
        example.compute(runs=1, epochs=1)
    with pytest.raises(SystemExit) as end:
        example.main(["--data", "nowhere"])
    assert end.value.code == 2
    assert "nowhere" in capsys.readouterr().err


def test_citeseer_is_named(data: Path) -> None:
    found = example.compute(runs=2, epochs=2, data=str(data / "planetoid" / "citeseer"))
    assert found.graph == "citeseer"
    assert not any("synthetic" in line for line in example.summary(found))
