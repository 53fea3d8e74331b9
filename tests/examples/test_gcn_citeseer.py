# SPDX-License-Identifier: BSD-3-Clause
"""examples/gcn_citeseer.py on its synthetic graph: the network is the formula, it learns, bands are mean ± 2σ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import gossamer as gs
from gossamer.nn.node_classifier import row_normalized


@pytest.fixture(scope="module")
def gcn(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("gcn_citeseer")


@pytest.fixture(scope="module")
def result(gcn: ModuleType) -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small tensors
    found = gcn.compute(runs=3, epochs=30)
    torch.set_num_threads(threads)
    return found


def test_network_is_the_formula(gcn: ModuleType) -> None:
    """Â relu(Â X Θ₁ + b₁) Θ₂ + b₂ in dense matrices, Â = D̃^-1/2 (A + I) D̃^-1/2; X stays sparse."""
    graph = row_normalized(gcn.synthetic())
    assert isinstance(graph.x, gs.SparseMatrix)
    torch.manual_seed(0)
    net = gcn.GCN(graph.num_features, graph.num_classes).double().eval()
    for bias in (net.first.bias, net.second.bias):
        torch.nn.init.normal_(bias)
    X = graph.x.to(torch.float64)
    A = graph.adjacency.to_dense().double() + torch.eye(graph.num_nodes)
    scale = A.sum(1).rsqrt()
    A_hat = scale[:, None] * A * scale
    hidden = (A_hat @ X.to_dense() @ net.first.lin.weight.T + net.first.bias).relu()
    want = A_hat @ hidden @ net.second.lin.weight.T + net.second.bias
    torch.testing.assert_close(net(X, graph.adjacency.to(torch.float64)), want)


def test_it_learns_from_neighbours_and_words(gcn: ModuleType, result: Any) -> None:
    assert result.loss.shape == result.accuracy.shape == (3, 30, 3)
    assert result.graph == "synthetic"
    assert (result.loss[:, -1] < result.loss[:, 0]).all()
    assert (result.accuracy[:, -1, 2] > 3 / 6).all()  # three times chance
    assert (result.accuracy >= 0).all()
    assert (result.accuracy <= 1).all()


def test_bands_are_two_deviations_of_the_runs(gcn: ModuleType, result: Any) -> None:
    loss = result.loss.numpy()
    mean, sigma = loss.mean(0), np.std(loss, axis=0, ddof=1)
    for ours, want in zip(gcn.band(result.loss), (mean, mean - 2 * sigma, mean + 2 * sigma), strict=True):
        np.testing.assert_allclose(ours, want, rtol=1e-5)
    axes = gcn.figures(result)["gcn_loss"].axes[0]
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], mean.T, rtol=1e-5)
    for k, band in enumerate(axes.collections):
        outline = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose(outline.max(), (mean + 2 * sigma)[:, k].max(), rtol=1e-5)
        np.testing.assert_allclose(outline.min(), (mean - 2 * sigma)[:, k].min(), rtol=1e-5)


def test_a_seed_repeats_and_the_runs_differ(gcn: ModuleType, result: Any) -> None:
    torch.set_num_threads(1)
    ticks: list[float] = []
    again = gcn.compute(runs=2, epochs=3, tick=ticks.append)
    assert torch.equal(again.loss, result.loss[:2, :3])
    assert not torch.equal(again.loss[0], again.loss[1])
    assert torch.equal(gcn.compute(runs=2, epochs=3, seed=1).loss[0], again.loss[1])
    assert ticks == [0.5, 1.0]


def test_summary_tells_the_last_epoch_and_that_no_data_was_given(gcn: ModuleType, result: Any) -> None:
    tests = 100 * result.accuracy[:, -1, 2].numpy()
    told = " ".join(gcn.summary(result))
    assert f"test {tests.mean():.1f} ± {tests.std(ddof=1):.1f} %" in told
    assert "No data was given" in told


def test_mistakes(gcn: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="runs must be at least 2 to have a deviation, not 1"):
        gcn.compute(runs=1, epochs=1)
    with pytest.raises(SystemExit) as end:
        gcn.main(["--data", "nowhere"])
    assert end.value.code == 2
    assert "nowhere" in capsys.readouterr().err


def test_citeseer_is_named(gcn: ModuleType, data: Path) -> None:
    torch.set_num_threads(1)
    found = gcn.compute(runs=2, epochs=2, data=str(data / "planetoid" / "citeseer"))
    assert found.graph == "citeseer"
    assert not any("synthetic" in line for line in gcn.summary(found))
