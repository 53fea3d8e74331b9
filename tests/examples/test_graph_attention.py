# SPDX-License-Identifier: BSD-3-Clause
"""examples/graph_attention.py on its synthetic graph: weights are probabilities, entropies are right, it learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs
from gossamer.nn.node_classifier import RECIPES, NodeClassifier


@pytest.fixture(scope="module")
def attention(example: Callable[[str], ModuleType]) -> ModuleType:
    return example("graph_attention")


@pytest.fixture(scope="module")
def result(attention: ModuleType) -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small tensors
    found = attention.compute(runs=1, epochs={"synthetic": 60})
    torch.set_num_threads(threads)
    return found


EDGES = torch.tensor([[0, 1, 2, 3, 1, 2, 2], [0, 0, 0, 0, 1, 1, 2]])  # 4, 2, 1 and 0 edges point at 0, 1, 2 and 3


def test_weights_add_up_to_one_over_the_edges_that_point_at_a_node(attention: ModuleType, result: Any) -> None:
    edges, y = result.edge_index["synthetic"], result.y["synthetic"]
    graph = attention.synthetic()
    assert edges.shape[1] == graph.adjacency.nnz + graph.num_nodes  # one loop a node
    for model in attention.MODELS:
        for s, heads in zip(result.weights["synthetic"][model], (8, 1), strict=True):
            assert s.shape == (edges.shape[1], heads)
            assert (s >= 0).all()
            total = torch.zeros(len(y), heads).index_add(0, edges[1], s)
            torch.testing.assert_close(total, torch.ones(len(y), heads))


def test_entropy_of_uniform_attention_is_the_logarithm_of_the_degree(attention: ModuleType) -> None:
    d = attention.degrees(EDGES, 4)
    assert d.tolist() == [4, 2, 1, 0]
    uniform = (1 / d[EDGES[1]])[:, None].expand(-1, 3)
    H = attention.entropy(EDGES, uniform, 4)
    torch.testing.assert_close(H[:3], d[:3].log()[:, None].expand(-1, 3))
    assert not H[3].any()
    assert attention.effective_share(EDGES, uniform, 4) == pytest.approx(1)


def test_entropy_of_a_choice_is_zero_and_of_halves_the_logarithm_of_two(attention: ModuleType) -> None:
    s = torch.tensor([[0.0, 0.5], [1.0, 0.5], [0.0, 0.0], [0.0, 0.0], [0.0, 0.25], [1.0, 0.75], [1.0, 1.0]])
    quarter = torch.distributions.Categorical(torch.tensor([0.25, 0.75])).entropy()
    want = torch.tensor([[0.0, 2.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]).log().clamp(min=0)
    want[1, 1] = quarter
    torch.testing.assert_close(attention.entropy(EDGES, s, 4), want)
    assert attention.effective_share(EDGES, s, 4) == pytest.approx((1 / 4 + 2 / 4) / 2)  # node 0 alone has neighbours


def test_entropies_lie_below_the_plain_mean(attention: ModuleType, result: Any) -> None:
    edges = result.edge_index["synthetic"]
    most = attention.degrees(edges, 600).log()[:, None]
    for model in attention.MODELS:
        for s in result.weights["synthetic"][model]:
            H = attention.entropy(edges, s, 600)
            assert (H >= 0).all()
            assert (most + 1e-5 >= H).all()


def order_of_sources(edges: Tensor, s: Tensor, node: int) -> list[int]:
    at = (edges[1] == node).nonzero().flatten()
    return edges[0, at[s[at].argsort()]].tolist()


def test_gat_ranks_neighbours_alike_for_all_and_gatv2_does_not() -> None:
    """On a complete graph: leaky_relu rises, so a_src · xⱼ alone orders GAT's weights; not so in GATv2."""
    n = 12
    everyone = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    x = torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    orders = {}
    for kind in (gs.nn.GATConv, gs.nn.GATv2Conv):
        torch.manual_seed(0)
        layer = kind(6, 4, add_self_loops=False).double()
        _, (edges, s) = layer(x, everyone, return_attention_weights=True)
        orders[kind] = {tuple(order_of_sources(edges, s[:, 0], i)) for i in range(n)}
    assert len(orders[gs.nn.GATConv]) == 1
    assert len(orders[gs.nn.GATv2Conv]) > 1


def test_attend_gives_the_weights_of_both_layers(attention: ModuleType) -> None:
    """From the second layer's weights and the first one's output the network's own output follows."""
    graph = attention.synthetic()
    torch.manual_seed(0)
    net = NodeClassifier(RECIPES["gat"], graph.num_features, graph.num_classes)
    edges, (_, s) = attention.attend(net, graph)
    with torch.no_grad():
        hidden = torch.nn.functional.elu(net.first(graph.x, graph.adjacency))
        messages = s * net.second.lin(hidden)[edges[0]]
        want = torch.zeros(graph.num_nodes, graph.num_classes).index_add(0, edges[1], messages) + net.second.bias
        torch.testing.assert_close(net(graph.x, graph.adjacency), want)


def test_it_learns_far_above_chance(attention: ModuleType, result: Any) -> None:
    for model in attention.MODELS:
        (test,) = result.accuracy["synthetic"][model]
        assert test > 0.6  # chance is a quarter


def test_the_node_drawn_is_a_test_node_with_enough_edges(attention: ModuleType, result: Any) -> None:
    node, edges = result.node["synthetic"], result.edge_index["synthetic"]
    assert attention.synthetic().test_mask[node]
    assert 8 <= int((edges[1] == node).sum()) <= 14


def test_summary_tells_accuracies_and_that_no_data_was_given(attention: ModuleType, result: Any) -> None:
    assert "No data was given" in " ".join(attention.summary(result))
    several = replace(result, accuracy={"synthetic": {"gat": [0.5, 0.7], "gatv2": [0.1, 0.1]}})
    assert "2 runs of at most 60 epochs: GAT 60.0 ± 14.1 %, GATv2 10.0 ± 0.0 %." in " ".join(attention.summary(several))


def test_data_is_a_folder_of_graphs(attention: ModuleType, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ticks: list[float] = []
    epochs = {"cora": 2, "synthetic": 1}
    torch.set_num_threads(1)
    found = attention.compute(runs=1, epochs=epochs, data=str(data / "planetoid"), tick=ticks.append)
    assert list(found.accuracy) == ["cora", "synthetic"]
    assert ticks == sorted(ticks)
    assert ticks[-1] == 1
    assert not any("No data" in line for line in attention.summary(found))
    with pytest.raises(SystemExit) as end:
        attention.main(["--data", str(data / "planetoid" / "cora")])
    assert end.value.code == 2
    assert "data must be a folder with cora or citeseer in it" in capsys.readouterr().err
