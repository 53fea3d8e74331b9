# SPDX-License-Identifier: BSD-3-Clause
"""Three ways to one layer of graph attention: fused kernels under autograd, the closed equations, and PyG. In float64
they agree to 1e-10 in the output and in every gradient; the fused one is the same to the bit for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs
from gossamer import equations as eq
from gossamer.nn._edges import SelfLoops, edges_of

Named = dict[str, Tensor]
VERSIONS = pytest.mark.parametrize("version", ["GATConv", "GATv2Conv"])


def random_graph(nodes: int, edges: int, seed: int) -> Tensor:
    """(2, E): the first ten edges twice, some self-loops, nothing that points at the last three nodes."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(nodes, (edges,), generator=generator)
    target = torch.randint(nodes - 3, (edges,), generator=generator)
    once = torch.stack([source, target])
    return torch.cat([once, once[:, :10], torch.tensor([[0, 4, 4], [0, 4, 4]])], dim=1)


def by_autograd(layer: torch.nn.Module, H: Tensor, edge_index: Tensor, G: Tensor) -> Named:
    """The output and the gradients of ⟨output, G⟩ for H and every parameter."""
    H = H.clone().requires_grad_()
    out = layer(H, edge_index)
    parameters = dict(layer.named_parameters())
    gradients = torch.autograd.grad(out, [H, *parameters.values()], G)
    return {"out": out.detach(), **dict(zip(["x", *parameters], gradients, strict=True))}


def heads_first(weight: Tensor, heads: int) -> Tensor:
    """A layer's weight (K·d, F) as the equations have it, (K, F, d)."""
    return weight.detach().view(heads, -1, weight.shape[1]).transpose(1, 2)


def rows(W: Tensor) -> Tensor:
    """(K, F, d) → (K·d, F)."""
    return W.transpose(1, 2).reshape(-1, W.shape[1])


def gat_by_equations(layer: Any, P: gs.Pattern, H: Tensor, G: Tensor) -> Named:
    """(2) – (35) without an activation: δ′ is G."""
    slope, W = layer.negative_slope, heads_first(layer.lin.weight, layer.heads)
    a_dst, a_src, dZ = layer.att_dst[0].detach(), layer.att_src[0].detach(), G.view(len(H), layer.heads, -1)
    X = eq.combination(H, W)
    sum = eq.outer_sum(P, eq.coefficients_v1(X, a_dst), eq.coefficients_v1(X, a_src))
    S = eq.attention(P, eq.logits_v1(sum, slope))
    dL = eq.logit_gradient(P, S, eq.attention_gradient(P, dZ, X))
    Delta = eq.edge_gradient_v1(eq.slopes_v1(sum, slope), dL)
    dst, src = eq.destination_sum(P, Delta), eq.source_sum(P, Delta)
    dX = eq.bracket_v1(P, S, dZ, dst, a_dst, src, a_src)
    found = {"out": eq.aggregation(P, S, X).flatten(1) + layer.bias.detach(), "x": eq.feature_gradient_v1(dX, W)}
    found |= {"lin.weight": rows(eq.weight_gradient(H, dX)), "bias": G.sum(0)}
    return found | {f"att_{end}": eq.vector_gradient_v1(X, s)[None] for end, s in (("dst", dst), ("src", src))}


def gatv2_by_equations(layer: Any, P: gs.Pattern, H: Tensor, G: Tensor) -> Named:
    """(3) – (39) without an activation. The layer's biases are added to X; their gradients are sums over the nodes."""
    slope, heads, a = layer.negative_slope, layer.heads, layer.att[0].detach()
    W_src, W_dst = heads_first(layer.lin_l.weight, heads), heads_first(layer.lin_r.weight, heads)
    X_src = eq.combination(H, W_src) + layer.lin_l.bias.detach().view(heads, -1)
    X_dst = eq.combination(H, W_dst) + layer.lin_r.bias.detach().view(heads, -1)
    dZ = G.view_as(X_src)
    sum = eq.outer_sum(P, eq.coefficients_v2(X_dst), eq.coefficients_v2(X_src))
    S = eq.attention(P, eq.logits_v2(a, sum, slope))
    dL = eq.logit_gradient(P, S, eq.attention_gradient(P, dZ, X_src))
    Delta = eq.edge_gradient_v2(eq.slopes_v2(a, sum, slope), dL)
    dX_dst = eq.destination_sum(P, Delta)
    dX_src = eq.bracket_v2(P, S, dZ, eq.source_sum(P, Delta))
    found = {"out": eq.aggregation(P, S, X_src).flatten(1) + layer.bias.detach(), "bias": G.sum(0)}
    found |= {
        "x": eq.feature_gradient_v2(dX_dst, W_dst, dX_src, W_src),
        "att": eq.vector_gradient_v2(dL, sum, slope)[None],
    }
    for name, dX in (("lin_l", dX_src), ("lin_r", dX_dst)):
        found |= {f"{name}.weight": rows(eq.weight_gradient(H, dX)), f"{name}.bias": dX.sum(0).flatten()}
    return found


BY_EQUATIONS: dict[str, Callable[..., Named]] = {"GATConv": gat_by_equations, "GATv2Conv": gatv2_by_equations}


def three_ways(version: str, H: Tensor, edge_index: Tensor, width: int, heads: int, loops: bool) -> list[Named]:
    pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    torch.manual_seed(heads)
    how = {"heads": heads, "negative_slope": 0.3, "add_self_loops": loops}
    ours, theirs = (getattr(module, version)(H.shape[1], width, **how).double() for module in (gs.nn, pyg))
    for parameter in ours.parameters():  # biases, too: zero would hide where they go
        torch.nn.init.normal_(parameter, std=0.5)
    theirs.load_state_dict(ours.state_dict())
    G = torch.randn(len(H), heads * width, dtype=torch.float64)
    kind = SelfLoops.REPLACE if loops else SelfLoops.NONE
    P = edges_of("test", edge_index, (len(H), len(H)), kind).pattern
    fused, peer = (by_autograd(layer, H, edge_index, G) for layer in (ours, theirs))
    return [fused, BY_EQUATIONS[version](ours, P, H, G), peer]


def expect_the_same(ways: list[Named]) -> None:
    for other in ways[1:]:
        assert other.keys() == ways[0].keys()
        for name, value in other.items():
            error = (ways[0][name] - value).abs().max() / value.abs().max()
            assert error <= 1e-10, f"{name}: {error:.1e}"


@VERSIONS
@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize("width", [1, 5, 13])
@pytest.mark.parametrize("loops", [False, True])
def test_three_ways_on_random_graphs(version: str, heads: int, width: int, loops: bool) -> None:
    edge_index = random_graph(40, 200, seed=width)
    H = torch.randn(40, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(heads))
    ways = three_ways(version, H, edge_index, width, heads, loops)
    expect_the_same(ways)
    if not loops:  # nothing points at the last three
        bias = ways[0]["out"][-3:]
        assert torch.equal(bias, bias[:1].expand(3, -1))


@VERSIONS
def test_three_ways_on_cora(version: str, data: Path) -> None:
    cora = gs.datasets.load(data / "planetoid" / "cora")
    edge_index = torch.stack([cora.adjacency.indices.long(), cora.adjacency.pattern.row_indices])
    expect_the_same(three_ways(version, cora.x.to(torch.float64).to_dense(), edge_index, 3, 3, loops=True))


@pytest.fixture(scope="module")
def hubs() -> gs.SparseMatrix:
    """Large enough for every kernel to be split among threads, with rows of very different lengths."""
    return gs.datasets.power_law(20_000, 80_000, exponent=2.2, num_features=2, seed=0).adjacency


@pytest.mark.parametrize("second", [False, True], ids=["gat", "gatv2"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_threads_do_not_change_a_bit(hubs: gs.SparseMatrix, second: bool, dropout: float) -> None:
    """Output and gradients of every input, the shared vector of GATv2, a sum over all edges, among them."""
    n, H, d = hubs.shape[0], 3, 5
    generator = torch.Generator().manual_seed(1)
    shapes = [(n, H, d), (n, H, d), (H, d), (hubs.nnz, H, d)] if second else [(n, H, d), (n, H), (n, H), (hubs.nnz, H)]
    given = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    G = torch.randn(n, H, d, generator=generator)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        Z = (gs.gatv2_attention if second else gs.gat_attention)(hubs, *given, dropout=dropout, seed=5)
        results.append([Z, *torch.autograd.grad(Z, given, G)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)


@VERSIONS
def test_a_seed_repeats_a_layer_to_the_bit(hubs: gs.SparseMatrix, version: str) -> None:
    torch.set_num_threads(2)
    x = torch.randn(hubs.shape[0], 8, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def run(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        layer = getattr(gs.nn, version)(8, 5, heads=3, dropout=0.6)
        out = layer(x, hubs)
        return [out, *torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])]

    first, again, other = run(4), run(4), run(5)
    for a, b, c in zip(first, again, other, strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
