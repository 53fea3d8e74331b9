# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of layers: what does not fit is refused, and a graph that was changed is seen, however it was changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

EDGES = torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 0, 3]])
LAYERS: dict[str, Callable[..., Any]] = {
    "GCNConv": gs.nn.GCNConv,
    "GATConv": gs.nn.GATConv,
    "GATv2Conv": gs.nn.GATv2Conv,
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("shape", [(4, 4, 6), (4, 5), (6,)])
def test_features_have_two_dimensions(layer: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"x must be \(nodes, 6\), not shape"):
        LAYERS[layer](6, 5)(torch.ones(shape), EDGES)


def test_a_size_that_does_not_fit_is_refused() -> None:
    conv, x = gs.nn.GATConv((6, 6), 5, add_self_loops=False), torch.ones(4, 6)
    with pytest.raises(ValueError, match=r"size is \(4, 9\) but there are \(4, 4\)"):
        conv((x, x), EDGES, size=(4, 9))
    with pytest.raises(ValueError, match=r"size is \(7, 9\) but there are \(4, 9\)"):
        conv((x, None), EDGES, size=(7, 9))
    assert conv((x, None), EDGES, size=(4, 9)).shape == (9, 5)


def test_features_of_edges_want_edge_dim() -> None:
    with pytest.raises(ValueError, match="no edge_dim"):
        gs.nn.GATv2Conv(6, 5)(torch.ones(4, 6), EDGES, torch.ones(5, 2))


@pytest.mark.parametrize("weight", [[1.0, -2.0, 0.5, 1.0, 1.0], [-1.0] * 5, [-3.0] * 5], ids=str)
def test_negative_weights_have_finite_gradients(weight: list[float]) -> None:
    w = torch.tensor(weight, requires_grad=True)
    conv, x = gs.nn.GCNConv(3, 2), torch.randn(4, 3, requires_grad=True)
    out = conv(x, EDGES, w)
    out.sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    assert w.grad.isfinite().all()


def through_numpy(edges: Tensor) -> None:
    edges.numpy()[1, 0] = 3


def through_data(edges: Tensor) -> None:
    edges.data[1, 0] = 3


def swapped(edges: Tensor) -> None:
    edges.data.copy_(edges.flip(1))
    edges.data[0, 0], edges.data[0, 1] = int(edges[0, 1]), int(edges[0, 0])


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("change", [through_numpy, through_data, swapped])
@pytest.mark.parametrize("inference", [False, True], ids=["normal", "inference"])
def test_a_changed_graph_is_seen(layer: str, change: Callable[[Tensor], None], inference: bool) -> None:
    conv, x = LAYERS[layer](6, 5), torch.randn(4, 6)
    with torch.inference_mode(inference):
        edges = EDGES.clone()
        conv(x, edges)
        change(edges)
        torch.testing.assert_close(conv(x, edges), conv(x, edges.clone()))
        assert not torch.equal(conv(x, edges), conv(x, EDGES))
