# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of layers: what does not fit is refused, and a graph that was changed is seen, however it was changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric.nn
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


def test_targets_of_a_block_are_scored_as_pyg_does() -> None:
    """Through x (Wᵀ a), dense or sparse: W x of the targets is wanted by nobody else."""
    given: dict[str, Any] = {"in_channels": (6, 4), "out_channels": 5, "heads": 3, "add_self_loops": False}
    ours, theirs = gs.nn.GATConv(**given).double(), torch_geometric.nn.GATConv(**given).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    want = theirs(x, EDGES)
    torch.testing.assert_close(ours(x, EDGES), want)
    torch.testing.assert_close(ours((x[0], gs.from_dense(x[1])), EDGES), want)
    leaves = sorted(dict(ours.named_parameters()))
    got, wanted = (
        torch.autograd.grad((f(x, EDGES) ** 2).sum(), [dict(f.named_parameters())[k] for k in leaves])
        for f in (ours, theirs)
    )
    torch.testing.assert_close(got, wanted)
    with pytest.raises(ValueError, match=r"x must be \(nodes, 4\), not shape \(4, 6\)"):
        ours((x[0], x[0]), EDGES)


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


# What a PyG program gives, in PyG's own forms, and PyG's own results for it.


def both(name: str, *channels: Any, **options: Any) -> tuple[Any, Any]:
    """Our layer and PyG's, with the same weights."""
    torch.manual_seed(0)
    ours, theirs = getattr(gs.nn, name)(*channels, **options), getattr(torch_geometric.nn, name)(*channels, **options)
    return ours, theirs


@pytest.mark.filterwarnings("ignore:Converting sparse tensor", "ignore:Sparse invariant checks")
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo], ids=str)
@pytest.mark.parametrize("improved", [False, True])
def test_a_sparse_tensor_is_adj_t(layer: str, layout: torch.layout, improved: bool) -> None:
    """With weights, and with self-loops among its entries, to which PyG's GCNConv adds."""
    torch.manual_seed(0)
    dense = torch.rand(5, 5) * (torch.rand(5, 5) < 0.5)
    dense[2, 2] = 0.5
    x, options = torch.randn(5, 3), {"improved": True} if improved and layer == "GCNConv" else {}
    ours, theirs = both(layer, 3, 2, **options)
    ours.load_state_dict(theirs.state_dict())

    def reference(adjacency: Tensor) -> Tensor:
        return theirs(x, adjacency.to_sparse(layout=layout)).square().sum()

    given = dense.to_sparse(layout=layout).requires_grad_()
    loss = ours(x, given).square().sum()
    torch.testing.assert_close(loss, reference(dense))
    if layer == "GCNConv":
        (gradient,) = torch.autograd.grad(loss, given)
        for i, j in (dense != 0).nonzero()[:3].tolist():
            step = torch.zeros_like(dense)
            step[i, j] = 1e-2
            slope = (reference(dense + step) - reference(dense - step)) / 2e-2
            torch.testing.assert_close(gradient.to_dense()[i, j], slope.detach(), rtol=1e-2, atol=1e-2)


class SparseTensor:
    """The part of torch_sparse.SparseTensor's interface that is used; the package itself is not on every machine."""

    def __init__(self, dense: Tensor, has_values: bool) -> None:
        self.matrix, self.has_values = gs.from_dense(dense), has_values

    def csr(self) -> tuple[Tensor, Tensor, Tensor | None]:
        A = self.matrix
        return A.indptr.long(), A.indices.long(), A.values if self.has_values else None

    def sparse_sizes(self) -> tuple[int, int]:
        return self.matrix.shape


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("weights", [False, True])
def test_a_tensor_of_torch_sparse_is_adj_t(layer: str, weights: bool) -> None:
    torch.manual_seed(0)
    dense = (torch.rand(5, 5) + 0.1) * (torch.rand(5, 5) < 0.5)
    dense.fill_diagonal_(0)
    x, conv = torch.randn(5, 3), LAYERS[layer](3, 2)
    target, source = dense.nonzero().T
    given = dense if weights else (dense != 0).float()
    options = (given[target, source],) if weights and layer == "GCNConv" else ()
    wanted = conv(x, torch.stack([source, target]), *options)
    torch.testing.assert_close(conv(x, SparseTensor(given, weights)), wanted)


def test_weights_may_be_a_column() -> None:
    ours, theirs = both("GCNConv", 3, 2)
    ours.load_state_dict(theirs.state_dict())
    x, w = torch.randn(4, 3), torch.rand(5)
    torch.testing.assert_close(ours(x, EDGES, w[:, None]), theirs(x, EDGES, w))


@pytest.mark.parametrize(
    ("layer", "channels"), [("GCNConv", -1), ("GATConv", -1), ("GATConv", (-1, -1)), ("GATv2Conv", (-1, -1))], ids=str
)
def test_channels_are_learned_from_the_first_features(layer: str, channels: Any) -> None:
    """And from a state_dict; an optimiser that was made before moves them, a copy made before learns its own."""
    options = {} if layer == "GCNConv" else {"residual": True, "add_self_loops": False}
    ours, theirs = both(layer, channels, 2, **options)
    x = torch.randn(4, 3)
    given = (x, torch.randn(4, 3)) if isinstance(channels, tuple) else x
    optimiser = torch.optim.SGD(ours.parameters(), lr=0.1)
    theirs(given, EDGES)
    early = getattr(gs.nn, layer)(channels, 2, **options)
    early.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(early(given, EDGES), theirs(given, EDGES))

    first = ours(given, EDGES)
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in theirs.state_dict().items()}
    first.square().sum().backward()
    optimiser.step()
    assert not torch.allclose(ours(given, EDGES), first)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(given, EDGES), theirs(given, EDGES))
