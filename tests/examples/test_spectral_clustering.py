# SPDX-License-Identifier: BSD-3-Clause
"""examples/spectral_clustering.py: the formulas in dense matrices, what is learned, and Cora."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gossamer as gs

f64 = torch.float64


@pytest.fixture(scope="module")
def clustering(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("spectral_clustering")


def test_loss_and_gradient_are_those_of_dense_matrices(clustering: ModuleType) -> None:
    task = clustering.task_of(clustering.synthetic(0))
    torch.manual_seed(0)
    weights = clustering.Weights(task.X.shape[1])
    torch.nn.init.constant_(weights.s, 0.7)
    labelled, y = task.splits[0], task.y
    c = clustering.scores(clustering.alike(weights(task), 4), labelled, y, 4)
    grads = torch.autograd.grad(c[labelled, y[labelled]].log_softmax(0).square().sum(), list(weights.parameters()))

    Z = torch.nn.functional.normalize(task.X.to_dense() @ weights.theta, dim=1)
    W = (weights.s * Z @ Z.T).exp() * task.A.to_dense()
    scale = W.sum(1).rsqrt()
    V = torch.linalg.eigh(torch.eye(len(W), dtype=f64) - scale[:, None] * W * scale)[1][:, :4]
    K = V @ V.T
    K = K / (K.diagonal()[:, None] * K.diagonal()).sqrt()
    want = torch.zeros(len(W), 4, dtype=f64)
    for i in range(len(W)):
        for k in range(4):
            others = labelled[(y[labelled] == k) & (labelled != i)]
            want[i, k] = K[i, others].mean()
    torch.testing.assert_close(c, want)
    dense = torch.autograd.grad(want[labelled, y[labelled]].log_softmax(0).square().sum(), list(weights.parameters()))
    for ours, theirs in zip(grads, dense, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def test_it_learns_which_edges_count(clustering: ModuleType) -> None:
    torch.set_num_threads(1)
    result = clustering.compute(steps=20)
    assert result.loss[-1] < 0.6 * result.loss[0]
    assert result.accuracy[-1, 2] > result.accuracy[0, 2] + 0.2
    assert result.within.mean() > result.between.mean()
    assert len(result.within) + len(result.between) == 2 * result.edges
    told = " ".join(clustering.summary(result))
    assert f"{100 * result.accuracy[-1, 2]:.1f} % with learned ones" in told
    assert "No data was given" in told
    assert torch.equal(clustering.compute(steps=2).loss, result.loss[:3])


def test_the_component_is_the_one_of_the_hub(clustering: ModuleType) -> None:
    A = gs.from_dense(torch.block_diag(torch.ones(2, 2, dtype=f64), torch.ones(3, 3, dtype=f64)))
    assert clustering.component(A).tolist() == [2, 3, 4]


def test_mistakes(clustering: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="steps must be at least 1, not 0"):
        clustering.compute(steps=0)
    with pytest.raises(SystemExit) as end:
        clustering.main(["--data", "nowhere"])
    assert end.value.code == 2
    assert "nowhere" in capsys.readouterr().err


def test_cora(clustering: ModuleType, data: Path) -> None:
    torch.set_num_threads(1)
    result = clustering.compute(steps=8, data=str(data / "planetoid" / "cora"))
    assert (result.graph, result.nodes, result.vectors) == ("cora", 2485, 7)
    assert result.accuracy[-1, 2] > result.accuracy[0, 2] + 0.03
    assert not any("synthetic" in line for line in clustering.summary(result))
