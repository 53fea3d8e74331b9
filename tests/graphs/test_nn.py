# SPDX-License-Identifier: BSD-3-Clause
"""The layers against PyG's: its weights loaded into ours, outputs and all gradients compared, in float64."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs
from gossamer.nn._edges import SelfLoops, edges_of

pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")


def graph(nodes: int, edges: int, seed: int, sources: int | None = None) -> Tensor:
    """Random edges with parallel ones, self-loops, and nodes nothing points at."""
    make = torch.Generator().manual_seed(seed)
    source = torch.randint(sources or nodes, (edges,), generator=make)
    target = torch.randint(max(nodes - 3, 1), (edges,), generator=make)
    edge_index = torch.stack([source, target])
    return torch.cat([edge_index, edge_index[:, :5], torch.tensor([[0, 1], [0, 1]])], dim=1)


def expect_same(ours: Any, theirs: Any, given: tuple[Any, ...], leaves: list[Tensor]) -> None:
    """The same state_dict, and, once PyG's is loaded, the same output and gradients of inputs and parameters."""
    ours, theirs = ours.double(), theirs.double()
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    ours.load_state_dict(theirs.state_dict())
    names = [name for name, _ in theirs.named_parameters()]
    results = []
    for layer in (ours, theirs):
        out = layer(*given)
        weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
        wanted = [*leaves, *(dict(layer.named_parameters())[name] for name in names)]
        results.append((out, *torch.autograd.grad((out * weight).sum(), wanted, allow_unused=True)))
    for a, b in zip(*results, strict=True):
        if b is None:
            assert a is None or not a.any()
        else:
            assert (a - b).abs().max() <= 1e-10 * b.abs().max().clamp(min=1e-12)


def features(nodes: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(nodes, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("version", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("loops", [True, False])
def test_attention_layers(version: str, heads: int, concat: bool, loops: bool) -> None:
    how = {"heads": heads, "concat": concat, "add_self_loops": loops, "negative_slope": 0.3}
    x = features(20, 7).requires_grad_()
    layers = (getattr(module, version)(7, 5, **how) for module in (gs.nn, pyg))
    expect_same(*layers, (x, graph(20, 60, 1)), [x])


@pytest.mark.parametrize("version", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("fill", ["mean", "add", "max", 0.5])
@pytest.mark.parametrize("residual", [False, True])
def test_edge_features(version: str, fill: Any, residual: bool) -> None:
    edges = graph(12, 40, 2)
    x, e = features(12, 4).requires_grad_(), features(edges.shape[1], 3, seed=1).requires_grad_()
    how = {"heads": 2, "edge_dim": 3, "fill_value": fill, "residual": residual}
    layers = (getattr(module, version)(4, 3, **how) for module in (gs.nn, pyg))
    expect_same(*layers, (x, edges, e), [x, e])


@pytest.mark.parametrize("version", ["GATConv", "GATv2Conv"])
def test_bipartite(version: str) -> None:
    edges = graph(9, 40, 3, sources=14)
    x, y = features(14, 4).requires_grad_(), features(9, 6, seed=1).requires_grad_()
    layers = (getattr(module, version)((4, 6), 3, heads=2, add_self_loops=False) for module in (gs.nn, pyg))
    expect_same(*layers, ((x, y), edges), [x, y])


def test_gat_without_targets() -> None:
    x = features(14, 4).requires_grad_()
    layers = (module.GATConv(4, 3, heads=2, add_self_loops=False) for module in (gs.nn, pyg))
    expect_same(*layers, ((x, None), graph(9, 40, 3, sources=14), None, (14, 9)), [x])


def test_shared_weights() -> None:
    x = features(20, 7).requires_grad_()
    expect_same(*(module.GATv2Conv(7, 5, 2, share_weights=True) for module in (gs.nn, pyg)), (x, graph(20, 60, 1)), [x])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "how", [{}, {"improved": True}, {"normalize": False}, {"add_self_loops": False, "bias": False}]
)
def test_gcn(weighted: bool, how: dict[str, Any]) -> None:
    edges = graph(20, 60, 4)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([torch.tensor([[3, 5], [3, 5]]), edges, torch.tensor([[0], [0]])], 1)  # loops keep their weights
    x = features(20, 7).requires_grad_()
    w = torch.rand(edges.shape[1], dtype=torch.float64).add(0.1).requires_grad_() if weighted else None
    layers = (module.GCNConv(7, 5, **how) for module in (gs.nn, pyg))
    expect_same(*layers, (x, edges, w), [x] if w is None else [x, w])


def test_loops_of_a_given_weight() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    A = gs.nn.GCNConv(1, 1, loop_weight=2).matrix(2, edges, None, torch.float64)
    torch.testing.assert_close(A.to_dense(), torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64) / 3)


@pytest.mark.parametrize("version", ["GATConv", "GATv2Conv"])
def test_attention_weights_come_in_the_order_of_the_edges(version: str) -> None:
    ours, theirs = (getattr(module, version)(7, 5, heads=2).double() for module in (gs.nn, pyg))
    ours.load_state_dict(theirs.state_dict())
    given = features(20, 7), graph(20, 60, 1)
    out, (edge_index, weights) = ours(*given, return_attention_weights=True)
    out_pyg, (edge_index_pyg, weights_pyg) = theirs(*given, return_attention_weights=True)
    torch.testing.assert_close(out, out_pyg)
    assert torch.equal(edge_index, edge_index_pyg)
    torch.testing.assert_close(weights, weights_pyg)


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GATv2Conv"])
def test_cora(name: str, data: Path) -> None:
    cora = gs.datasets.load(data / "planetoid" / "cora")
    x = cora.x.to(torch.float64).to_dense().requires_grad_()
    edge_index = torch.stack([cora.adjacency.indices.long(), cora.adjacency.pattern.row_indices])
    how = {} if name == "GCNConv" else {"heads": 8}
    expect_same(*(getattr(module, name)(x.shape[1], 8, **how) for module in (gs.nn, pyg)), (x, edge_index), [x])


@pytest.mark.parametrize("layer", [gs.nn.GCNConv(7, 4), gs.nn.GATConv(7, 4, 2), gs.nn.GATv2Conv(7, 4, 2)])
def test_sparse_features_and_adjacency_are_the_same_layer(layer: torch.nn.Module) -> None:
    layer = layer.double()
    x = features(20, 7) * (features(20, 7, seed=1) > 0.5)
    A = gs.from_edge_index(torch.unique(graph(20, 60, 1), dim=1), num_nodes=20).to(torch.float64)
    edge_index = torch.stack([A.indices.long(), A.pattern.row_indices])
    forms = [(x, edge_index), (gs.from_dense(x), A), (gs.from_dense(x), edge_index)]
    grads = []
    for given in forms:
        out = layer(*given)
        grads.append([out, *torch.autograd.grad(out.square().sum(), list(layer.parameters()))])
    for other in grads[1:]:
        for a, b in zip(grads[0], other, strict=True):
            torch.testing.assert_close(a, b)


def test_a_repeated_edge_index_is_sorted_once_and_a_changed_one_again() -> None:
    edge_index = graph(20, 60, 1)
    first = edges_of("test", edge_index, (20, 20), SelfLoops.REPLACE)
    assert edges_of("test", edge_index, (20, 20), SelfLoops.REPLACE) is first
    assert edges_of("test", edge_index, (20, 20), SelfLoops.NONE) is not first
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 20
    assert edges_of("test", edge_index, (20, 20), SelfLoops.REPLACE) is not first


@pytest.mark.parametrize("layer", [gs.nn.GCNConv(3, 2), gs.nn.GATConv(3, 2, 2), gs.nn.GATv2Conv(3, 2, 2)])
def test_second_derivatives_and_compile(layer: torch.nn.Module) -> None:
    layer = layer.double()
    A = gs.from_edge_index(torch.unique(graph(8, 20, 5), dim=1), num_nodes=8).to(torch.float64)
    x = features(8, 3).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: layer(x, A), x)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, A), layer(x, A))


@pytest.mark.parametrize("layer", [gs.nn.GATConv(3, 2, 2, dropout=0.5), gs.nn.GATv2Conv(3, 2, 2, dropout=0.5)])
def test_dropout_obeys_the_seed_and_the_mode(layer: torch.nn.Module) -> None:
    x, edges = features(20, 3).float(), graph(20, 100, 6)
    outs = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        outs.append(layer(x, edges))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(layer(x, edges), outs[0])
    layer.eval()
    assert torch.equal(layer(x, edges), layer(x, edges))


MISTAKES = {
    "edge_index": (lambda: gs.nn.GATConv(3, 2)(torch.ones(4, 3), torch.ones(3, 2, dtype=torch.long)), "must be (2, E)"),
    "outside": (lambda: gs.nn.GCNConv(3, 2)(torch.ones(4, 3), torch.tensor([[0], [4]])), "outside"),
    "weights": (
        lambda: gs.nn.GCNConv(3, 2)(torch.ones(4, 3), torch.tensor([[0], [1]]), torch.ones(3)),
        "edge_weight has shape (3,) for 1 edges",
    ),
    "edge_attr": (
        lambda: gs.nn.GATv2Conv(3, 2, edge_dim=2)(torch.ones(4, 3), torch.tensor([[0], [1]]), torch.ones(1, 3)),
        "edge_attr has shape (1, 3), not (1, 2)",
    ),
    "pattern": (lambda: gs.nn.GATConv(3, 2)(torch.ones(4, 3), gs.eye(5)), "the pattern is (5, 5)"),
    "loops": (lambda: gs.nn.GCNConv(3, 2, add_self_loops=True, normalize=False), "normalize=True"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    mistake, message = MISTAKES[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        mistake()
