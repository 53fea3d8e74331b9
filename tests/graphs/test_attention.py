# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention beyond the case table: parallel edges, dropout, weights, mistakes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import cuda_standin
import gossamer as gs

EDGES = torch.tensor([[0, 1, 1, 1, 2, 3, 0, 0], [0, 0, 0, 2, 2, 2, 4, 4]])  # parallel edges, self-loops; 1, 3 isolated
KINDS = pytest.mark.parametrize("second", [False, True], ids=["gat", "gatv2"])


def inputs(second: bool, H: int = 2, d: int = 3, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """x_src, then the others, edge features last and in the order of EDGES: 5 destinations, 4 sources."""
    generator = torch.Generator().manual_seed(1)
    width = (H, d) if second else (H,)
    shapes = [(4, H, d), (5, H, d), (H, d)] if second else [(4, H, d), (4, H), (5, H)]
    sizes = [*shapes, (EDGES.shape[1], *width)]
    return [torch.randn(size, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for size in sizes]


def plain(second: bool, x: Tensor, b: Tensor, c: Tensor, edge: Tensor) -> tuple[Tensor, Tensor]:
    """Z and the weights, edge by edge, in the order of EDGES."""
    source, target = EDGES
    t = x[source] + b[target] + edge if second else b[source] + c[target] + edge
    e = torch.where(t > 0, t, 0.2 * t)
    e = (c * e).sum(-1) if second else e
    weights = torch.zeros_like(e)
    for node in range(5):
        weights = torch.where((target == node)[:, None], masked_softmax(e, target == node), weights)
    return torch.zeros(5, *x.shape[1:], dtype=x.dtype).index_add(0, target, weights[..., None] * x[source]), weights


def masked_softmax(e: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[:, None], e, -1e300).softmax(0)


def ways(second: bool) -> tuple[Any, Any]:
    first = gs.gat_attention, gs.gat_with_weights
    return (gs.gatv2_attention, gs.gatv2_with_weights) if second else first


@KINDS
def test_each_parallel_edge_counts(second: bool, device: torch.device) -> None:
    P, order = gs.graph_pattern(EDGES.to(device), (5, 4))
    assert torch.equal(torch.stack([P.indices.cpu().long(), P.row_indices.cpu()]), EDGES[:, order.cpu()])
    given = inputs(second)
    wanted, weights = plain(second, *given)
    expected = torch.autograd.grad(wanted.sin().sum(), given)
    ours = [t.detach().to(device).requires_grad_() for t in given]
    fused, both = ways(second)
    for Z in (fused(P, *ours[:3], ours[3][order]), both(P, *ours[:3], ours[3][order])[0]):
        torch.testing.assert_close(Z.cpu(), wanted)
        assert Z[1].eq(0).all()
        assert Z[3].eq(0).all()
        for got, right in zip(torch.autograd.grad(Z.sin().sum(), ours), expected, strict=True):
            torch.testing.assert_close(got.cpu(), right)
    torch.testing.assert_close(both(P, *ours[:3], ours[3][order])[1].cpu(), weights[order.cpu()])


@KINDS
def test_derivatives_with_parallel_edges(second: bool) -> None:
    P, order = gs.graph_pattern(EDGES, (5, 4))
    fused, both = ways(second)
    given = inputs(second)

    def f(*t: Tensor) -> Tensor:
        return fused(P, *t[:3], t[3][order], dropout=0.3, seed=5)

    gradcheck(f, given, check_forward_ad=True)
    gradgradcheck(f, given, check_fwd_over_rev=True)
    gradcheck(lambda *t: both(P, *t[:3], t[3][order], dropout=0.3, seed=5)[1], given)
    third = torch.func.grad(lambda x: torch.func.hessian(lambda y: f(y, *given[1:]).sin().sum())(x).sin().sum())
    x = given[0].detach()
    step = torch.randn_like(x) * 1e-5
    slopes = torch.func.hessian(lambda y: f(y, *given[1:]).sin().sum())
    difference = (slopes(x + step).sin().sum() - slopes(x - step).sin().sum()) / 2
    torch.testing.assert_close((third(x) * step).sum(), difference.detach(), rtol=1e-4, atol=1e-9)


@KINDS
def test_dropout_depends_on_the_seed_alone(second: bool) -> None:
    A = gs.random(300, 200, 0.1, generator=torch.Generator().manual_seed(0))
    H, d = 4, 8
    shapes = [(200, H, d), (300, H, d), (H, d)] if second else [(200, H, d), (200, H), (300, H)]
    given = [torch.randn(shape) for shape in shapes]
    fused, both = ways(second)
    one = fused(A, *given, dropout=0.5, seed=3)
    torch.set_num_threads(1)
    assert torch.equal(one, fused(A, *given, dropout=0.5, seed=3))
    assert not torch.equal(one, fused(A, *given, dropout=0.5, seed=4))
    Z, weights = both(A, *given, dropout=0.5, seed=3)
    torch.testing.assert_close(Z, one)
    share = (weights == 0).float().mean()
    assert abs(share - 0.5) < 0.02
    torch.testing.assert_close(weights[weights != 0], 2 * both(A, *given)[1][weights != 0])
    assert fused(A, *given, dropout=1.0, seed=3).eq(0).all()

    torch.manual_seed(7)
    drawn = fused(A, *given, dropout=0.5), fused(A, *given, dropout=0.5)
    assert not torch.equal(*drawn)
    torch.manual_seed(7)
    assert torch.equal(drawn[0], fused(A, *given, dropout=0.5))
    state = torch.get_rng_state()
    fused(A, *given)  # without dropout nothing is drawn
    assert torch.equal(state, torch.get_rng_state())


@KINDS
def test_nothing_on_the_device_is_edges_by_heads_by_width(second: bool) -> None:
    if cuda_standin.library is None:
        pytest.skip("no stand-in for cuda")
    E, H, d = 400, 2, 32
    edge_index = torch.randint(5, (2, E), generator=torch.Generator().manual_seed(1))
    P, _order = gs.graph_pattern(edge_index.to("cuda"), (5, 5))
    shapes = [(5, H, d), (5, H, d), (H, d)] if second else [(5, H, d), (5, H), (5, H)]
    given = [torch.randn(shape, device="cuda").requires_grad_() for shape in shapes]
    cuda_standin.largest_allocation()
    Z = ways(second)[0](P, *given, dropout=0.5, seed=1)
    assert cuda_standin.largest_allocation() <= max(Z.numel() * 4, P.indices.numel() * 8)
    Z.sum().backward()
    assert cuda_standin.largest_allocation() <= E * H * 3 * 4  # two numbers an entry and head, and the partial sums
    ways(second)[1](P, *given)[0].sum().backward()  # the composed form: the measure sees what it is to see
    assert (cuda_standin.largest_allocation() >= E * H * d * 4) == second


@KINDS
def test_compiled_dropout_draws_anew(second: bool) -> None:
    P, _order = gs.graph_pattern(EDGES, (5, 4))
    fused, _ = ways(second)
    given = inputs(second)
    P.transpose()
    torch._dynamo.reset()
    f = torch.compile(lambda *t: fused(P, *t, dropout=0.5).sin(), fullgraph=True, backend="aot_eager")
    results = [f(*given[:3]) for _ in range(4)]
    results[0].sum().backward()
    assert any(not torch.equal(results[0], other) for other in results[1:])


@KINDS
def test_autocast(second: bool) -> None:
    P, _ = gs.graph_pattern(EDGES, (5, 4))
    given = inputs(second, dtype=torch.float32)[:3]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Z = ways(second)[0](P, *given)
    assert Z.dtype is torch.bfloat16
    Z.float().sum().backward()
    assert all(t.grad is not None and t.grad.dtype is torch.float32 for t in given)


def test_backward_op_passes_opcheck() -> None:
    P, order = gs.graph_pattern(EDGES, (5, 4))
    how = [5, 4], 0.2, 0.0, None
    for second, name in ((False, "gat"), (True, "gatv2")):
        x, b, c, edge = (t.detach() for t in inputs(second))
        op, back = getattr(torch.ops.gossamer, name).default, getattr(torch.ops.gossamer, f"{name}_backward").default
        for e in (None, edge[order]):
            Z, lse = op(P.tensors(True), x, b, c, e, *how)
            leaves = [None if t is None else t.clone().requires_grad_() for t in (torch.ones_like(Z), x, b, c, e)]
            torch.library.opcheck(back, (P.tensors(True), *leaves, Z, lse, *how))


def test_mistakes_are_named() -> None:
    P, _order = gs.graph_pattern(EDGES, (5, 4))
    x, src, dst, edge = inputs(False)
    _, b, att, _x_edge = inputs(True)
    with pytest.raises(ValueError, match=r"gat_attention: alpha_src must be \(n_src, H\) = \[4, 2\], not \(5, 2\)"):
        gs.gat_attention(P, x, dst, dst)
    with pytest.raises(ValueError, match=r"gat_attention: x_src must be \(n_src, H, d\), not \(4, 2\)"):
        gs.gat_attention(P, src, src, dst)
    with pytest.raises(ValueError, match="gat_attention: x_src has 5 rows but A has 4 columns"):
        gs.gat_attention(P, b, src, dst)
    with pytest.raises(TypeError, match="gatv2_attention: att is Float but x_src is Double"):
        gs.gatv2_attention(P, x, b, att.float())
    with pytest.raises(ValueError, match=r"gatv2_attention: x_edge must be \(nnz, H, d\) = \[8, 2, 3\], not \(8, 2\)"):
        gs.gatv2_attention(P, x, b, att, edge)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\], not 1.5"):
        gs.gatv2_attention(P, x, b, att, dropout=1.5)
    with torch.inference_mode(), pytest.raises(ValueError, match="alpha_dst"):
        gs.gat_attention(P, x, src, src)
    with pytest.raises(ValueError, match="alpha_dst"):
        gs.gat_with_weights(P, x, src, src)
    with pytest.raises(TypeError, match="pattern must be a Pattern or a SparseMatrix, not Tensor"):
        gs.gat_attention(EDGES, x, src, dst)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="edge 6 goes from 0 to 4, outside 4 sources and 4 destinations"):
        gs.graph_pattern(EDGES, (4, 4))
    with pytest.raises(ValueError, match=r"edge_index must be \(2, E\), not \(8,\)"):
        gs.graph_pattern(EDGES[0], (4, 4))
    with pytest.raises(TypeError, match="edge_index must be integers"):
        gs.graph_pattern(EDGES.float(), (5, 4))
