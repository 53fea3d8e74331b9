# SPDX-License-Identifier: BSD-3-Clause
"""Layers on a matrix that processes share, beside the same layers in one process: every rank computes both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from whole import on

import gossamer as gs

NODES, FEATURES, OUT = 40, 7, 5
CLOSE = 1e-13  # of a gradient, relative to the largest number in it


def graph(*, parallel: bool = True, seed: int = 1) -> gs.SparseMatrix:
    """Random edges with weights: parallel ones, self-loops, nodes that nothing points at."""
    make = torch.Generator().manual_seed(seed)
    ends = torch.stack([torch.randint(NODES, (220,), generator=make), torch.randint(NODES - 3, (220,), generator=make)])
    ends = torch.cat([ends, ends[:, :9], torch.tensor([[0, 1, 1], [0, 1, 1]])], dim=1)
    if not parallel:
        ends = ends.unique(dim=1)
    P, _ = gs.graph_pattern(ends, (NODES, NODES))
    return gs.SparseMatrix(P, torch.randint(32, 96, (P.nnz,), generator=make).double() / 64)


def parts_of(kind: str, size: int, n: int = NODES) -> Tensor | None:
    if kind == "contiguous":
        return None
    if kind == "one has all":
        return torch.full((n,), size - 1)
    return torch.randint(size, (n,), generator=torch.Generator().manual_seed(4))


def features(width: int = FEATURES, n: int = NODES, seed: int = 2) -> Tensor:
    """Multiples of 1/64, as the weights are of 1/1024: sums of their products have no rounding. A dense product is
    torch's, and its library rounds a row as it likes, differently where there are more rows; the graph's part is ours.
    """
    return (
        torch.randn(n, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).mul(64).round() / 64
    )


def layer(name: str, *sizes: Any, rounded: bool = True, **how: Any) -> torch.nn.Module:
    torch.manual_seed(3)
    conv: torch.nn.Module = getattr(gs.nn, name)(*sizes, **how).double()
    with torch.no_grad():
        for parameter in conv.parameters() if rounded else ():
            parameter.copy_(parameter.mul(1024).round() / 1024)
    return conv


def summed(mesh: Any, t: Tensor) -> Tensor:
    total = t.detach().clone()
    dist.all_reduce(total, group=mesh.get_group())
    return total


def far(ours: Tensor, wanted: Tensor) -> float:
    scale = wanted.abs().max().clamp(min=1e-300) if wanted.numel() else 1.0
    return float(((ours - wanted).abs().max() / scale) if wanted.numel() else 0.0)


def expect_as_one(mesh: Any, conv: torch.nn.Module, kind: str, **given: Any) -> None:
    """Output: the same bits. Gradients of features, of the matrix and of the parameters: but for rounding."""
    A, X = graph(), features()
    D = gs.distributed.scatter(A, mesh, parts_of(kind, mesh.size()))
    own = D.row_keys
    weight = features(conv(X, A, **given).shape[1], seed=6)
    results = []
    for matrix, x, w in ((A, X, weight), (D, X[own], weight[own])):
        matrix = matrix.with_values(matrix.values.detach().clone().requires_grad_())
        x = x.clone().requires_grad_()
        out = conv(x, matrix, **given)
        wanted = [x, matrix.values, *conv.parameters()]
        results.append((out, *torch.autograd.grad((out * w).sum(), wanted, allow_unused=True)))
    (one, one_x, one_v, *one_p), (out, x, v, *parameters) = results
    assert torch.equal(out, one[own]), f"{kind}: off by {far(out, one[own])}"
    assert far(x, one_x[own]) <= CLOSE, far(x, one_x[own])
    if one_v is not None:
        at = entries_of(A, own)
        assert far(v, one_v[at]) <= CLOSE, far(v, one_v[at])
    for ours, theirs in zip(parameters, one_p, strict=True):
        assert far(summed(mesh, ours), theirs) <= 10 * CLOSE, far(summed(mesh, ours), theirs)


def entries_of(A: gs.SparseMatrix, rows: Tensor) -> Tensor:
    """Where the entries of these rows are."""
    pointers = A.pattern.indptr.tolist()
    return torch.tensor([p for i in rows.tolist() for p in range(pointers[i], pointers[i + 1])], dtype=torch.int64)


LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "gcn": lambda: layer("GCNConv", FEATURES, OUT),
    "gcn improved": lambda: layer("GCNConv", FEATURES, OUT, improved=True, loop_weight=2.0, bias=False),
    "gcn without loops": lambda: layer("GCNConv", FEATURES, OUT, add_self_loops=False),
    "gcn as it is": lambda: layer("GCNConv", FEATURES, OUT, normalize=False),
    "gat": lambda: layer("GATConv", FEATURES, OUT, heads=3),
    "gat, narrow": lambda: layer("GATConv", FEATURES, 2, heads=2, concat=False, residual=True),
    "gat, edges": lambda: layer("GATConv", FEATURES, OUT, heads=2, edge_dim=1, fill_value="max"),
    "gat without loops": lambda: layer("GATConv", FEATURES, OUT, add_self_loops=False, edge_dim=1, fill_value=0.5),
    "gatv2": lambda: layer("GATv2Conv", FEATURES, OUT, heads=3),
    "gatv2, narrow": lambda: layer("GATv2Conv", FEATURES, 2, heads=2, concat=False, residual=True),
    "gatv2, edges": lambda: layer("GATv2Conv", FEATURES, OUT, heads=2, edge_dim=1, fill_value="add"),
    "gatv2, shared weights": lambda: layer("GATv2Conv", FEATURES, OUT, share_weights=True),
}


def case_layers_are_those_of_one_process(mesh: Any) -> None:
    for name, make in LAYERS.items():
        for kind in ("random", "contiguous", "one has all")[: 3 if mesh.size() in (2, 3) else 1]:
            try:
                expect_as_one(mesh, make(), kind)
            except AssertionError as error:
                raise AssertionError(f"{name}, {kind}: {error}") from error


@on(1, 3)
def case_layers_with_any_numbers(mesh: Any) -> None:
    """With dense products that round, the layers differ by this rounding."""
    A, X = graph(), features() * torch.pi
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    for name in ("GCNConv", "GATConv", "GATv2Conv"):
        conv = layer(name, FEATURES, OUT, rounded=False)
        assert far(conv(X[D.row_keys], D), conv(X, A)[D.row_keys]) <= 1e-15


@on(1, 3)
def case_edge_attributes_of_own_rows(mesh: Any) -> None:
    A, X = graph(), features()
    attributes = features(2, A.nnz, seed=8)
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    for name in ("GATConv", "GATv2Conv"):
        conv = layer(name, FEATURES, OUT, heads=2, edge_dim=2, fill_value="add")
        out = conv(X[D.row_keys], D, attributes[entries_of(A, D.row_keys)])
        assert torch.equal(out, conv(X, A, attributes)[D.row_keys])


@on(1, 3)
def case_two_kinds_of_nodes(mesh: Any) -> None:
    """Sources and targets are different sets, in parts of their own."""
    make = torch.Generator().manual_seed(5)
    edges = torch.stack([torch.randint(17, (60,), generator=make), torch.randint(23, (60,), generator=make)])
    P, _ = gs.graph_pattern(edges, (23, 17))
    A = gs.SparseMatrix(P, torch.ones(60, dtype=torch.float64))
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size(), 23))
    X, Y = features(4, 17), features(6, 23)
    x, y = X[D.col_keys], Y[D.row_keys]
    for name in ("GATConv", "GATv2Conv"):
        conv = layer(name, (4, 6), OUT, heads=2, add_self_loops=False)
        assert torch.equal(conv((x, y), D), conv((X, Y), A)[D.row_keys])
        raises(mesh, ValueError, "self-loops want a square matrix", lambda n=name: layer(n, (4, 6), OUT)((x, y), D))


@on(1, 3)
def case_weights_of_the_edges(mesh: Any) -> None:
    A, X = graph(), features()
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    for name in ("GATConv", "GATv2Conv"):
        conv = layer(name, FEATURES, OUT, heads=2)
        out, (pairs, weights) = conv(X[D.row_keys], D, return_attention_weights=True)
        want, (all_pairs, all_weights) = conv(X, A, return_attention_weights=True)
        assert far(out, want[D.row_keys]) <= CLOSE
        for node in D.row_keys.tolist():
            mine, theirs = pairs[1] == node, all_pairs[1] == node
            assert torch.equal(pairs[0, mine].sort()[0], all_pairs[0, theirs].sort()[0])
            assert far(weights[mine].sum(0), all_weights[theirs].sum(0)) <= CLOSE


@on(2, 4)
def case_dropout_knows_no_partition(mesh: Any) -> None:
    """Beside the same matrix on a group of this process alone. Parallel edges draw for themselves."""
    alone, _ = dist.new_subgroups(group_size=1)
    A, X = graph(), features()
    whole = gs.distributed.scatter(A, alone)
    for name in ("GATConv", "GATv2Conv"):
        conv = layer(name, FEATURES, OUT, heads=3, dropout=0.5)
        torch.manual_seed(11)
        want = conv(X, whole)
        assert not torch.equal(want, conv(X, whole))  # another step, another mask
        for kind in ("contiguous", "random"):
            D = gs.distributed.scatter(A, mesh, parts_of(kind, mesh.size()))
            torch.manual_seed(
                11 if mesh.get_local_rank() == 0 else 100 + mesh.get_local_rank()
            )  # that of the first rank counts
            out = conv(X[D.row_keys], D)
            assert torch.equal(out, want[D.row_keys]), (name, kind, far(out, want[D.row_keys]))
    dist.barrier(group=mesh.get_group())


@on(1, 3)
def case_copies_of_an_edge_have_masks_of_their_own(mesh: Any) -> None:
    """One node with 200 copies of one edge: about half of them stay."""
    P = gs.Pattern(torch.tensor([0, 200]), torch.zeros(200, dtype=torch.int64), (1, 1), simple=None)
    D = gs.distributed.scatter(gs.SparseMatrix(P, torch.ones(200)), mesh)
    conv = gs.nn.GATConv(1, 1, dropout=0.5, add_self_loops=False, bias=False)
    x = torch.ones(1, 1)[: len(D.row_keys)]
    _, (_, weights) = conv(x, D, return_attention_weights=True)
    if len(weights):
        assert 60 < int((weights > 0).sum()) < 140


@on(2)
def case_halo_of_the_narrower(mesh: Any) -> None:
    """A layer sends x where that is narrower than what it becomes, else what it becomes."""
    A, X = graph(), features()
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    x = X[D.row_keys]
    for out, columns in ((OUT, FEATURES), (2, 2 * 3)):
        conv = layer("GATv2Conv", FEATURES, out, heads=3)
        conv(x, D)  # the first call makes the edges
        before = torch.ops.gossamer.distributed_bytes_sent()
        conv(x, D)
        sent = torch.tensor([torch.ops.gossamer.distributed_bytes_sent() - before])
        halo = torch.tensor([D.pattern.shape[1] - len(x)])
        assert summed(mesh, sent) == summed(mesh, halo) * columns * 8


def expect_trained_as_one(mesh: Any, wrapped: Callable[[torch.nn.Module], torch.nn.Module]) -> None:
    """Adam on a mean loss: the same parameters as in one process, but for rounding. Both wrappers average gradients."""
    A, X = graph(), features()
    y = torch.randint(OUT, (NODES,), generator=torch.Generator().manual_seed(9))
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    own = D.row_keys
    for name in ("GCNConv", "GATConv", "GATv2Conv"):
        ends = []
        for matrix, x, labels in ((A, X, y), (D, X[own], y[own])):
            net = layer(name, FEATURES, OUT)
            model = wrapped(net) if matrix is D else net
            adam = torch.optim.Adam(model.parameters(), lr=0.01)
            for _ in range(4):
                adam.zero_grad()
                loss = cross_entropy(model(x, matrix), labels, reduction="sum") / NODES
                (loss * mesh.size() if matrix is D else loss).backward()
                adam.step()
            ends.append([p.full_tensor() if isinstance(p, DTensor) else p.detach() for p in net.parameters()])
        for ours, theirs in zip(*reversed(ends), strict=True):
            assert far(ours.detach(), theirs) <= 1e-10, (name, far(ours.detach(), theirs))


@on(1, 3)
def case_training_under_ddp(mesh: Any) -> None:
    expect_trained_as_one(mesh, lambda net: DistributedDataParallel(net, process_group=mesh.get_group()))


@on(2)
def case_training_under_fsdp(mesh: Any) -> None:
    """fully_shard: each rank keeps a part of the parameters, and of what Adam knows of them."""
    from torch.distributed.fsdp import fully_shard  # it takes long to import

    expect_trained_as_one(mesh, lambda net: fully_shard(net, mesh=mesh))


@on(2)
def case_second_derivatives(mesh: Any) -> None:
    """The gradient of ½|gradient|², as a penalty on gradients has it."""
    A, X = graph(parallel=False), features()
    D = gs.distributed.scatter(A, mesh, parts_of("random", mesh.size()))
    for name in ("GCNConv", "GATConv", "GATv2Conv"):
        conv = layer(name, FEATURES, OUT)
        found = []
        for matrix, x in ((A, X), (D, X[D.row_keys])):
            x = x.clone().requires_grad_()
            (g,) = torch.autograd.grad(conv(x, matrix).pow(3).sum(), x, create_graph=True)
            found.append(torch.autograd.grad(g.square().sum() / 2, x)[0])
        assert far(found[1], found[0][D.row_keys]) <= 1e-11, (name, far(found[1], found[0][D.row_keys]))


@on(1, 3)
def case_wrong_features_on_one_rank(mesh: Any) -> None:
    A, X = graph(), features()
    D = gs.distributed.scatter(A, mesh)
    wrong = mesh.size() - 1
    x = X[D.row_keys]
    for name in ("GCNConv", "GATv2Conv"):
        conv = layer(name, FEATURES, 2)
        given = x[:, 1:] if mesh.get_local_rank() == wrong else x
        raises(mesh, ValueError, f"Linear: x must be .nodes, {FEATURES}.", lambda c=conv, g=given: c(g, D))
        given = torch.cat([x, x[:1]]) if mesh.get_local_rank() == wrong and len(x) else x
        if len(x) or mesh.get_local_rank() != wrong:
            raises(mesh, ValueError, "rows", lambda c=conv, g=given: c(g, D))


def raises(mesh: Any, kind: type[Exception], text: str, call: Callable[[], Any]) -> None:
    """On every rank; then all go on."""
    with pytest.raises(kind, match=text):
        call()
    dist.barrier(group=mesh.get_group())
