# SPDX-License-Identifier: BSD-3-Clause
"""What else a DistributedMatrix does: halos, transposes, rows alone, transforms of torch, and errors on all ranks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from whole import Pair, numbers, on, partitions, unsymmetric

import gossamer as gs


def case_from_rows(mesh: Any) -> None:
    """Rows that each rank has, without keys: the bits are those of the numbering of all ranks."""
    A = unsymmetric(31, 31)
    offsets = torch.arange(mesh.size() + 1) * 31 // mesh.size()
    first, last = offsets[mesh.get_local_rank()], offsets[mesh.get_local_rank() + 1]
    ptr = A.indptr[first : last + 1]
    entries = slice(int(ptr[0]), int(ptr[-1]))
    D = gs.distributed.from_rows(ptr - ptr[0], A.indices[entries], A.values[entries], offsets, A.shape, mesh)
    X = numbers(31, 3)
    assert torch.equal(D @ X[first:last], (A @ X)[first:last])
    assert torch.equal(D.T @ X[first:last], gs.spmm(A, X, transpose=True)[first:last])
    assert D.shape == (31, 31)
    assert D.local_shape == (last - first, last - first)
    assert D.row_keys.tolist() == list(range(first, last))
    assert D.group == mesh.get_group().group_name


def case_halo(mesh: Any) -> None:
    A = unsymmetric(40, 40)
    for parts in partitions(A, mesh.size()).values():
        pair = Pair(A, mesh, parts)
        D = pair.D
        x = numbers(40, 2)[D.col_keys].requires_grad_()
        rows = D.halo(x)
        assert torch.equal(rows[D.pattern.indices.long()], numbers(40, 2)[A.indices.long()[pair.entries]])
        weight = numbers(len(rows), 2, seed=mesh.get_local_rank())
        (grad,) = torch.autograd.grad((rows**3 * weight).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((grad**2).sum() / 2, x)
        # The same with the rows of all ranks in one tensor.
        whole = numbers(40, 2).requires_grad_()
        keys = D.halo(D.col_keys)
        total = torch.zeros((), dtype=torch.float64)
        for rank in range(mesh.size()):
            theirs = _of_rank(keys, rank, mesh)
            total = total + (whole[theirs] ** 3 * numbers(len(theirs), 2, seed=rank)).sum()
        (wanted,) = torch.autograd.grad(total, whole, create_graph=True)
        (wanted_second,) = torch.autograd.grad((wanted**2).sum() / 2, whole)
        assert torch.allclose(grad, wanted[D.col_keys], rtol=1e-13, atol=1e-13)
        assert torch.allclose(second, wanted_second[D.col_keys], rtol=1e-12, atol=1e-12)


def _of_rank(numbers_of_each: torch.Tensor, rank: int, mesh: Any) -> torch.Tensor:
    holder = [numbers_of_each]
    dist.broadcast_object_list(holder, src=rank)
    return holder[0]


def case_transpose(mesh: Any) -> None:
    A = unsymmetric(50, 30)
    pair = Pair(A, mesh, torch.arange(50) % mesh.size())
    D, T = pair.D, pair.D.T
    assert T.shape == (30, 50)
    assert T.local_shape == D.local_shape[::-1]
    assert T.T.values is D.values
    own = T.with_values(T.values)  # a matrix of its own
    X, Z = numbers(30, 3), numbers(50, 3)
    rows, cols = D.row_keys, D.col_keys
    assert torch.equal(own @ Z[rows], T @ Z[rows])
    assert torch.equal(own @ Z[rows], gs.spmm(A, Z, transpose=True)[cols])
    assert torch.equal(own.T @ X[cols], D @ X[cols])
    assert torch.equal(own.T.values, D.values)
    assert torch.equal(own.row_sum(), A.T.sum(1)[cols])
    values = D.values.clone().requires_grad_()
    weight = numbers(own.nnz, seed=3)
    (grad,) = torch.autograd.grad((D.with_values(values).T.values * weight).sum(), values)
    assert torch.equal(grad, own.with_values(weight).T.values)


@on(1, 3)
def case_rows_alone(mesh: Any) -> None:
    A = unsymmetric(30, 30)
    pair = Pair(A, mesh, torch.arange(30) % mesh.size())
    D, rows, entries = pair.D, pair.D.row_keys, pair.entries
    d = numbers(30, seed=4)
    same = {
        "abs": (abs(A), abs(D)),
        "scaled": (A * 3, 3 * D),
        "by a tensor": (A * torch.tensor(2.0), D * torch.tensor(2.0)),
        "halved": (A / 2, D / 2),
        "negative": (-A, -D),
        "squared": (A**2, D**2),
        "sum": (A + 2 * A, D + 2 * D),
        "product": (A * A, D * D),
        "map": (A.map(torch.sinh), D.map(torch.sinh)),
        "exp": (A.map(torch.exp), D.exp()),
        "rows": (A.scale_rows(d), D.scale_rows(d[rows])),
        "columns": (A.scale_cols(d), D.scale_cols(d[D.col_keys])),
        "softmax": (A.row_softmax(), D.row_softmax()),
        "type": (A.to(torch.float32), D.to(torch.float32)),
    }
    for name, (whole, mine) in same.items():
        assert torch.allclose(whole.values[entries], mine.values, rtol=3e-7 if name == "type" else 1e-15, atol=0), name
    assert torch.equal(A.sum(1)[rows], D.sum(1))
    assert torch.equal(D.row_sum(), D.sum(1))
    assert torch.equal(A.diagonal()[rows], D.diagonal())
    assert repr(D).startswith("DistributedMatrix(30 x 30, ")
    assert repr(D.T).endswith(".T")


@on(1, 3)
def case_gradient_of_the_matrix(mesh: Any) -> None:
    pair = Pair(unsymmetric(30, 30), mesh)
    pair.A.requires_grad_()
    pair.D.requires_grad_()
    X = numbers(30, 3)
    (pair.A @ X).square().sum().backward()
    (pair.D @ X[pair.D.col_keys]).square().sum().backward()
    assert pair.A.grad is not None
    assert pair.D.grad is not None
    assert pair.D.grad.pattern is pair.D.pattern
    pair.equal("e", [pair.A.grad.values], [pair.D.grad.values])
    with torch.inference_mode():
        pair.equal("r", [pair.A @ X], [pair.D @ X[pair.D.col_keys]])


@on(1, 3)
def case_transforms(mesh: Any) -> None:
    """torch.func, and torch.compile in one graph."""
    A = unsymmetric(30, 30)
    pair = Pair(A, mesh, torch.arange(30) % mesh.size())
    D = pair.D.prepare()
    X, W, T = numbers(30, 3), numbers(30, 3, seed=1), numbers(30, 3, seed=2)
    x, w, t = (Z[D.col_keys] for Z in (X, W, T))

    def loss(M: Any, z: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return ((M @ z) ** 3 * weight).sum()

    (dA, dX), (dD, dx) = torch.func.grad(loss, (0, 1))(A, X, W), torch.func.grad(loss, (0, 1))(D, x, w)
    pair.equal("er", [dA.values, dX], [dD.values, dx])
    tangents = torch.func.jvp(lambda z: A @ z, (X,), (T,)), torch.func.jvp(lambda z: D @ z, (x,), (t,))
    pair.equal("rr", list(tangents[0]), list(tangents[1]))
    twice = [
        torch.func.jvp(lambda z, M=M, q=q: torch.func.grad(loss, 1)(M, z, q), (p,), (s,))[1]
        for M, p, q, s in ((A, X, W, T), (D, x, w, t))
    ]
    pair.equal("r", twice[:1], twice[1:])
    pair.equal("r", [A @ X], [torch.vmap(lambda z: D @ z, 1, 1)(x)])
    batch, mine = numbers(4, A.nnz), numbers(4, A.nnz)[:, pair.entries]
    values = torch.vmap(lambda v: A.with_values(v) @ X)(batch), torch.vmap(lambda v: D._with(v) @ x)(mine)
    pair.equal("r", [values[0].movedim(0, 1)], [values[1].movedim(0, 1)])
    lanes = torch.vmap(lambda z: gs.sddmm(D, z, z).values, 1, 1)(x)
    pair.equal("e", [torch.vmap(lambda z: gs.sddmm(A, z, z).values, 1, 1)(X)], [lanes])
    rows = torch.vmap(lambda z: D.halo(z), 1, 1)(x)
    assert torch.equal(rows, D.halo(x))


@on(2)
def case_compile(mesh: Any) -> None:
    pair = Pair(unsymmetric(30, 30), mesh, torch.arange(30) % mesh.size())
    D = pair.D.prepare()
    x = numbers(30, 3)[D.col_keys]

    def f(values: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        y = D.with_values(values) @ z
        return ((D.T @ y) ** 2).sum() + gs.sddmm(D, y, z).values.sum() + D.halo(z).sum()

    results = []
    for function in (f, torch.compile(f, fullgraph=True, backend="aot_eager")):
        inputs = D.values.clone().requires_grad_(), x.clone().requires_grad_()
        value = function(*inputs)
        results.append([value.detach(), *torch.autograd.grad(value, inputs)])
    for eager, compiled in zip(*results, strict=True):
        assert torch.equal(eager, compiled)


def case_errors_on_all_ranks(mesh: Any) -> None:
    """What one rank does wrong is raised on all, with its number, and the group is of use afterwards."""
    A = unsymmetric(30, 30)
    D = gs.distributed.scatter(A, mesh, torch.arange(30) % mesh.size()).prepare()
    x = numbers(30, 3)[D.col_keys]
    wrong, many = mesh.get_local_rank() == mesh.size() - 1, mesh.size() > 1
    rank = f"rank {mesh.size() - 1}: " if many else ""
    longer = torch.cat([x, x[:1]])
    with pytest.raises(ValueError, match=f"{rank}spmm: X .* must have the .* rows"):
        D @ (longer if wrong else x)
    with pytest.raises(TypeError, match=f"{rank}spmm: X is Float but values is Double"):
        D @ (x.float() if wrong else x)
    with pytest.raises(ValueError, match=f"{rank}sddmm: V .* must have the .* columns"):
        gs.sddmm(D, x, longer if wrong else x)
    with pytest.raises(ValueError, match="entries"):
        D.with_values(torch.cat([D.values, D.values]) if wrong else D.values) @ x
    n = mesh.size()
    ptr, first = torch.tensor([0, 1]), torch.tensor([0])
    with pytest.raises(ValueError, match="from_rows: values has shape"):
        gs.distributed.from_rows(ptr, first, torch.ones(2 if wrong else 1), _ones(mesh), (n, n), mesh)
    column = torch.tensor([n if wrong else 0])
    with pytest.raises(IndexError, match=f"{rank}distributed_plan: column {n} is outside"):
        gs.distributed.from_rows(ptr, column, torch.ones(1), _ones(mesh), (n, n), mesh)
    if many:
        with pytest.raises(ValueError, match="all ranks must call the same: rank 0 has spmm"):
            D @ (x[:, :2] if wrong else x)
        with pytest.raises(ValueError, match="all ranks must call the same"):
            gs.spmm(D, x, transpose=wrong)
        offsets = torch.cat([_ones(mesh)[:-1], torch.tensor([n + wrong])])
        rows = torch.arange(2 + wrong), torch.zeros(1 + wrong).long()
        with pytest.raises(ValueError, match="all ranks must call the same: rank 0 has offsets"):
            torch.ops.gossamer.distributed_plan(*rows, offsets, offsets, D.group)
    pair = Pair(A, mesh)
    pair.spmm(numbers(30, 3))


def _ones(mesh: Any) -> torch.Tensor:
    """One row a rank."""
    return torch.arange(mesh.size() + 1)


@on(2)
def case_refusals(mesh: Any) -> None:
    A = gs.poisson(4)
    D = gs.distributed.scatter(A, mesh)
    with pytest.raises(NotImplementedError, match=r"gs\.linalg\.cg"):
        gs.linalg.solve(D, torch.ones(4))
    with pytest.raises(NotImplementedError, match="spgemm"):
        gs.spgemm(D, D)
    with pytest.raises(NotImplementedError, match="to_dense"):
        D.to_dense()
    with pytest.raises(NotImplementedError, match="add"):
        D + gs.distributed.scatter(A, mesh)
    with pytest.raises(NotImplementedError, match="dim 0"):
        D.sum(0)
    assert not hasattr(D, "logdet")
