# SPDX-License-Identifier: BSD-3-Clause
"""Changes of layers and graphs that once survived all tests: the tests that were missing."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import gossamer as gs
from gossamer.nn import _edges
from gossamer.nn.node_classifier import RECIPES, Trained, train

ops = torch.ops.gossamer


def test_of_repeated_self_loops_the_last_one_counts(device: torch.device) -> None:
    """As PyG's add_remaining_self_loops: the weight of node 1's loop is 5, not 2."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 1, 1, 0]], device=device)
    weights = torch.tensor([3.0, 2.0, 5.0, 4.0], device=device)
    remaining = 2
    indptr, indices, edge = ops.edges(edge_index, (3, 3), remaining)
    whole = torch.cat([weights, torch.ones(3, device=device)])[edge]
    got = gs.SparseMatrix(gs.Pattern(indptr, indices, (3, 3)), whole).to_dense().cpu()
    assert got.tolist() == [[1, 0, 4], [3, 5, 0], [0, 0, 1]]


def test_what_training_returns_cannot_be_changed() -> None:
    for record in (RECIPES["gcn"], Trained(0.5, 0.5, 0.5, 1, [])):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, 0)


def test_a_graph_that_was_written_to_is_kept_once() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv = gs.nn.GCNConv(2, 2)
    for target in (0, 1, 2):
        edge_index[1, 2] = target
        conv(torch.ones(3, 2), edge_index)
    assert len(_edges._KEPT[edge_index]) == 1


def test_the_network_of_gatv2_is_that_of_gat() -> None:
    """As its paper has it: eight heads of eight, then one; all else as in GAT's."""
    wanted = {"hidden": 8, "heads": 8, "out_heads": 1, "dropout": 0.6, "lr": 0.005, "weight_decay": 5e-4}
    for model in ("gat", "gatv2"):
        recipe = dataclasses.asdict(RECIPES[model])
        assert recipe == {"model": model, **wanted, "epochs": 1000, "patience": 100}


@pytest.mark.parametrize("kind", [-1, 3])
def test_self_loops_are_of_three_kinds(kind: int) -> None:
    with pytest.raises(ValueError, match=f"edges: self_loops must be 0, 1 or 2, not {kind}"):
        ops.edges(torch.tensor([[0], [1]]), (2, 2), kind)


def test_targets_without_features_are_as_many_as_sources() -> None:
    conv, x = gs.nn.GATConv((4, 6), 3, heads=2, add_self_loops=False), torch.randn(5, 4)
    edges = torch.tensor([[0, 1, 2], [4, 3, 4]])
    assert conv((x, None), edges).shape == (5, 6)
    assert torch.equal(conv((x, None), edges), conv((x, None), edges, size=(5, 5)))


def test_one_buffer_of_a_module_is_replaced() -> None:
    module = gs.nn.SparseParameter(gs.from_coo([0, 1], [0, 1], torch.ones(2), (2, 3)))
    module.indices = torch.tensor([2, 0], dtype=module.indices.dtype)
    assert module.matrix.to_dense().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_patience_of_one_epoch_ends_the_training() -> None:
    graph = gs.datasets.stochastic_block_model((60, 60), seed=0)
    _, trained = train(graph, dataclasses.replace(RECIPES["gcn"], patience=1, epochs=300, lr=0.5))
    assert len(trained.losses) < 300
