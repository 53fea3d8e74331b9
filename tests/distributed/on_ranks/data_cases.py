# SPDX-License-Identifier: BSD-3-Clause
"""Data by parts, run by every rank of a group: files, gathering, checkpoints. A case raises where it fails.

What every rank has whole, made from a seed, is the judge.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from whole import on

import gossamer as gs
from gossamer.distributed import Rows

F64 = torch.float64


def place() -> tuple[int, int]:
    return dist.get_rank(), dist.get_world_size()


@contextmanager
def shared_folder() -> Iterator[Path]:
    """One folder for all ranks of this machine, empty; gone when all are done with it."""
    names = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names)
    folder = Path(str(names[0]))
    try:
        yield folder
    finally:
        dist.barrier()
        if dist.get_rank() == 0:
            shutil.rmtree(folder)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random(rows: int, cols: int, density: float, seed: int, dtype: torch.dtype = F64) -> gs.SparseMatrix:
    return gs.random(rows, cols, density=density, dtype=dtype, generator=generator(seed))


def random_parts(n: int, seed: int = 0) -> Tensor:
    return torch.randint(dist.get_world_size(), (n,), generator=generator(seed))


def parallel() -> gs.SparseMatrix:
    """A graph with double edges and a loop, values apart."""
    edges = torch.tensor([[0, 0, 1, 2, 2, 2, 5], [1, 1, 2, 0, 2, 0, 4]])
    pattern, _ = gs.graph_pattern(edges, (6, 6))
    return gs.SparseMatrix(pattern, torch.arange(1.0, 8.0, dtype=F64))


def matrices() -> Iterator[tuple[str, gs.SparseMatrix, dict[str, Any]]]:
    """Name, matrix, and parts and column_parts for save."""
    p = dist.get_world_size()
    grid = gs.poisson((9, 8), dtype=F64)
    yield "ranges", grid, {"parts": gs.distributed.partition(grid, p, method="contiguous")}
    yield "METIS", grid, {"parts": p}
    yield "random parts", random(40, 40, 0.1, 1), {"parts": random_parts(40)}
    yield "all on the last rank", random(12, 12, 0.3, 2), {"parts": torch.full((12,), p - 1)}
    yield "fewer rows than ranks", gs.poisson(2, dtype=F64), {"parts": p}
    yield "no rows", gs.eye(0, dtype=F64), {"parts": p}
    yield "rectangular", random(30, 11, 0.2, 3), {"parts": random_parts(30, 1) | (torch.arange(30) == 0) * (p - 1)}
    yield "rectangular, given columns", random(9, 25, 0.3, 4), {"parts": p, "column_parts": random_parts(25, 2)}
    yield "parallel edges", parallel(), {"parts": p}
    heads = random(20, 20, 0.2, 5)
    yield "heads", heads.with_values(torch.randn(heads.nnz, 3, dtype=F64, generator=generator(6))), {"parts": p}
    yield "float32", random(20, 20, 0.2, 7, torch.float32), {"parts": p}


def expect_product(name: str, A: gs.SparseMatrix, D: gs.distributed.DistributedMatrix) -> None:
    """The rows of A X and AᵀY that this rank owns, bit for bit."""
    heads = A.values.shape[1:]
    X, Y = (torch.randn(n, *heads, 2, dtype=A.dtype, generator=generator(n)) for n in A.shape)
    X, Y = Y, X  # X has as many rows as A has columns
    assert torch.equal(D @ X[D.col_keys], (A @ X)[D.row_keys]), f"{name}: A @ X"
    assert torch.equal(D.T @ Y[D.row_keys], gs.spmm(A, Y, transpose=True)[D.col_keys]), f"{name}: A.T @ Y"


def complete(p: int, parts: Any) -> Any:
    """parts whose largest is the last rank: a tensor does not say how many ranks there are."""
    if isinstance(parts, Tensor) and len(parts):
        parts = parts.clone()
        parts[0] = p - 1
    return parts


def case_save_and_load(mesh: Any) -> None:
    rank, p = place()
    for name, A, how in matrices():
        how["parts"] = complete(p, how["parts"])
        n = A.shape[0]
        x, y = torch.randn(n, 3, generator=generator(8)), torch.arange(n)
        with shared_folder() as folder:
            if rank == 0:
                gs.distributed.save(A, folder, x=x, y=y, **how)
            dist.barrier()
            D, rows = gs.distributed.load(folder, mesh)
        assert D.shape == A.shape, name
        assert set(rows) == {"x", "y"}
        assert torch.equal(rows["y"], D.row_keys), name
        assert torch.equal(rows["x"], x[D.row_keys]), name
        assert D.values.shape[1:] == A.values.shape[1:], name
        if isinstance(how["parts"], Tensor):
            assert torch.equal(D.row_keys, (how["parts"] == rank).nonzero().flatten()), name
        expect_product(name, A, D)


def case_saved_by_all_as_by_one(mesh: Any) -> None:
    """A DistributedMatrix writes the arrays that one process writes, and what it has learned since."""
    rank, p = place()
    A = random(31, 31, 0.15, 9)
    parts, x = complete(p, random_parts(31, 3)), torch.randn(31, 2, generator=generator(10))
    with shared_folder() as folder:
        if rank == 0:
            gs.distributed.save(A, folder / "one", parts, x=x)
        D = gs.distributed.scatter(A, mesh, parts=parts)
        gs.distributed.save(D, folder / "all", x=x[D.row_keys])
        names = ["indptr", "indices", "data", "row_keys", "column_keys", "rows.x"]
        one, all_ = (np.load(folder / how / f"part-{rank}.npz") for how in ("one", "all"))
        for name in names:
            np.testing.assert_array_equal(one[name], all_[name])
        again, rows = gs.distributed.load(folder / "all", mesh)
        assert torch.equal(rows["x"], x[D.row_keys])
        expect_product("saved by all", A, again)
        gs.distributed.save(again.with_values(2 * again.values), folder / "all")  # over the old one
        doubled, rows = gs.distributed.load(folder / "all", mesh)
        assert rows == {}
        assert torch.equal(doubled.values, 2 * D.values)


def case_gather(mesh: Any) -> None:
    rank, _ = place()
    for A in (random(23, 23, 0.2, 11), random(10, 17, 0.2, 12), gs.eye(1, dtype=F64)):
        D = gs.distributed.scatter(A, mesh, parts=random_parts(A.shape[0], 4))
        X = torch.randn(A.shape[0], 2, dtype=F64, generator=generator(13))
        got = gs.distributed.gather(X[D.row_keys], D)
        assert torch.equal(got, X)
        of_columns = torch.arange(A.shape[1])
        assert torch.equal(gs.distributed.gather(of_columns[D.col_keys], D, of="columns"), of_columns)
        on_first = gs.distributed.gather(X[D.row_keys].bfloat16(), D, rank=0)
        assert (on_first is None) == (rank != 0)
        assert on_first is None or torch.equal(on_first, X.bfloat16())


@on(1, 3)
def case_gather_is_differentiable(mesh: Any) -> None:
    """Of the sum over ranks of rank-dependent functions of all rows."""
    rank, p = place()
    A = random(14, 14, 0.3, 14)
    D = gs.distributed.scatter(A, mesh, parts=random_parts(14, 5))
    X = torch.randn(14, dtype=F64, generator=generator(15))
    x = X[D.row_keys].requires_grad_()
    weights = torch.randn(p, 14, dtype=F64, generator=generator(16))
    loss = (weights[rank] * gs.distributed.gather(x, D) ** 3).sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    torch.testing.assert_close(first, (3 * weights.sum(0) * X**2)[D.row_keys])
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, (6 * weights.sum(0) * X)[D.row_keys])


def checkpoint(D: gs.distributed.DistributedMatrix, X: Tensor, Y: Tensor) -> dict[str, Any]:
    return {
        "x": Rows(X[D.row_keys], D),
        "y": Rows(Y[D.col_keys], D, of="columns"),
        "values": Rows(D.values.detach(), D, of="entries"),
        "weight": torch.arange(3.0),
    }


def case_checkpoint_of_another_partition(mesh: Any) -> None:
    """Rows, columns and entries, saved by one partition and loaded by another; one of them has an empty rank."""
    _, p = place()
    A = random(29, 13, 0.2, 17)
    X, Y = torch.randn(29, 2, generator=generator(18)), torch.randn(13, generator=generator(19))
    saved = gs.distributed.scatter(A, mesh, parts=random_parts(29, 6))
    loaded = gs.distributed.scatter(
        A, mesh, parts=(random_parts(29, 7) - 1).clamp(min=0), column_parts=random_parts(13, 8)
    )
    with shared_folder() as folder:
        dcp.save(checkpoint(saved, X, Y), checkpoint_id=folder)
        zeros = loaded.with_values(torch.zeros_like(loaded.values))
        state = checkpoint(zeros, torch.zeros_like(X), torch.zeros_like(Y))
        dcp.load(state, checkpoint_id=folder)
    assert torch.equal(state["x"].restore(), X[loaded.row_keys])
    assert torch.equal(state["y"].restore(), Y[loaded.col_keys])
    assert torch.equal(state["values"].restore(), loaded.values)
    assert torch.equal(state["weight"], torch.arange(3.0))
    assert repr(state["x"]).startswith("Rows((29, 2), float32, writes "), p


@on(2, 4)
def case_checkpoint_of_more_processes(mesh: Any) -> None:
    """Saved by all, loaded by all but the last."""
    rank, p = place()
    if p == 1:
        return
    A = random(17, 17, 0.2, 20)
    X, Y = torch.randn(17, 2, generator=generator(21)), torch.zeros(17)
    fewer = dist.new_group(list(range(p - 1)))
    with shared_folder() as folder:
        dcp.save(checkpoint(gs.distributed.scatter(A, mesh, parts=random_parts(17, 9)), X, Y), checkpoint_id=folder)
        if rank < p - 1:
            D = gs.distributed.scatter(A, fewer)
            state = checkpoint(D.with_values(torch.zeros_like(D.values)), torch.zeros_like(X), Y)
            dcp.load(state, checkpoint_id=folder, process_group=fewer)
            assert torch.equal(state["x"].restore(), X[D.row_keys])
            assert torch.equal(state["values"].restore(), D.values)
    dist.destroy_process_group(fewer)


@on(3)
def case_bytes_of_a_checkpoint(mesh: Any) -> None:
    """A rank sends no row that stays with it: in ranges, where rows already are where they are written, none."""
    D = gs.distributed.scatter(gs.poisson((6, 10), dtype=F64), mesh)
    x = torch.ones(D.local_shape[0], 50, dtype=F64)
    before = torch.ops.gossamer.distributed_bytes_sent()
    rows = Rows(x, D)
    assert torch.ops.gossamer.distributed_bytes_sent() - before <= 8 * dist.get_world_size()  # counts alone
    assert torch.equal(rows.restore(), x)
