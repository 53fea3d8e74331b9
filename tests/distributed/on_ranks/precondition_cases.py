# SPDX-License-Identifier: BSD-3-Clause
"""Preconditioners of a DistributedMatrix, against their definitions on the whole matrix."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from dot_cases import every_partition, grid, same_solve
from torch import Tensor
from whole import Pair, numbers, on

import gossamer as gs

F64 = torch.float64


def everywhere(D: gs.distributed.DistributedMatrix, rows: Tensor, mesh: Any) -> Tensor:
    """All rows of something, in the original order, on every rank."""
    whole = rows.new_zeros((D.shape[0], *rows.shape[1:])).index_copy(0, D.row_keys, rows)
    return gs.distributed.sum(whole, mesh)


def matrix_of(M: Any, D: gs.distributed.DistributedMatrix, mesh: Any) -> Tensor:
    identity = torch.eye(D.shape[0], dtype=F64)
    return everywhere(D, M(identity[D.row_keys]), mesh)


def blocks_of(D: gs.distributed.DistributedMatrix, A: gs.SparseMatrix, mesh: Any) -> Tensor:
    """A without the entries between ranks, dense."""
    rank = torch.full((D.local_shape[0],), mesh.get_local_rank(), dtype=torch.int64)
    owner = everywhere(D, rank, mesh)
    return A.to_dense() * (owner[:, None] == owner[None, :])


@on(2, 4)
def case_jacobi(mesh: Any) -> None:
    """The bits of one process; first and second derivatives, too."""
    A = grid()
    for parts in every_partition(A, mesh.size()):
        pair = Pair(A, mesh, parts)
        M, whole = gs.linalg.jacobi(pair.D.detach()), gs.linalg.jacobi(A)
        r = numbers(143)
        assert torch.equal(M(r[pair.D.row_keys]), whole(r)[pair.D.row_keys])
        x, info = gs.linalg.cg(pair.D, r[pair.D.row_keys], M=M)
        wanted, of_one = gs.linalg.cg(A, r, M=whole)
        assert torch.equal(x, wanted[pair.D.row_keys])
        assert torch.equal(info.iterations, of_one.iterations)


@on(1, 3)
def case_blocks(mesh: Any) -> None:
    A = grid()
    for parts in every_partition(A, mesh.size()):
        D = gs.distributed.scatter(A, mesh, parts)
        inverse = torch.linalg.inv(blocks_of(D, A, mesh))
        torch.testing.assert_close(matrix_of(gs.linalg.block_jacobi(D), D, mesh), inverse)
        whole = torch.linalg.solve(A.to_dense(), numbers(143))
        b = numbers(143)[D.row_keys]
        for M in (gs.linalg.block_jacobi(D), gs.linalg.block_jacobi(D, 5), gs.linalg.ichol(D), gs.linalg.amg(D)):
            x, _ = gs.linalg.cg(D, b, M=M, rtol=1e-12)
            torch.testing.assert_close(x, whole[D.row_keys], rtol=1e-9, atol=1e-9)


@on(1, 3)
def case_two_levels(mesh: Any) -> None:
    """Against the formula, the aggregates taken from what the preconditioner does; symmetric and positive definite."""
    A = gs.poisson((12, 10), dtype=F64)
    dense = A.to_dense()
    for parts in every_partition(A, mesh.size()):
        D = gs.distributed.scatter(A, mesh, parts)
        for smoother in (gs.linalg.jacobi(D), gs.linalg.block_jacobi(D)):
            M = gs.linalg.two_level(D, smoother, coarse_size=30)
            Z = matrix_of(M, D, mesh)
            torch.testing.assert_close(Z, Z.T, rtol=1e-10, atol=1e-10)
            eigenvalues = torch.linalg.eigvals(Z @ dense).real
            assert eigenvalues.min() > 0
            # Where Z A is the identity is the range of T: it has at least one vector for every rank that has rows.
            solved = int((eigenvalues - 1).abs().lt(1e-8).sum())
            ranks_with_rows = len(everywhere(D, D.row_keys * 0 + mesh.get_local_rank(), mesh).unique())
            assert solved >= ranks_with_rows
        x, _ = gs.linalg.cg(D, numbers(120)[D.row_keys], M=M, rtol=1e-12)
        torch.testing.assert_close(x, torch.linalg.solve(dense, numbers(120))[D.row_keys], rtol=1e-9, atol=1e-9)


@on(2, 4)
def case_two_levels_need_few_iterations(mesh: Any) -> None:
    A = gs.poisson((40, 40), dtype=F64)
    D = gs.distributed.scatter(A, mesh)
    b = numbers(1600)[D.row_keys]
    _, coarse = gs.linalg.cg(D, b, M=gs.linalg.two_level(D, coarse_size=400), rtol=1e-8)
    assert coarse.iterations < 40
    if mesh.size() > 1:
        _, plain = gs.linalg.cg(D, b, M=gs.linalg.block_jacobi(D), rtol=1e-8)
        assert coarse.iterations < plain.iterations


@on(1, 3)
def case_derivatives_with_a_preconditioner(mesh: Any) -> None:
    pair = Pair(grid(), mesh)
    M, whole = gs.linalg.jacobi(pair.D), gs.linalg.jacobi(pair.A)
    same_solve(pair, numbers(143), M=lambda r: (M if len(r) == pair.D.local_shape[0] else whole)(r))
    x, _ = gs.linalg.cg(pair.D.requires_grad_(), numbers(143)[pair.D.row_keys], M=gs.linalg.two_level(pair.D))
    x.sum().backward()
    A = pair.A.requires_grad_()
    gs.linalg.cg(A, numbers(143))[0].sum().backward()
    assert A.grad is not None
    torch.testing.assert_close(pair.D.grad.values, A.grad.values[pair.entries], rtol=1e-6, atol=1e-7)


@on(1, 3)
def case_a_block_without_an_inverse(mesh: Any) -> None:
    """On one rank: all raise, and say which."""
    d = torch.ones(8, dtype=F64)
    d[7] = 0
    D = gs.distributed.scatter(gs.diag(d), mesh)
    for make in (gs.linalg.jacobi, gs.linalg.ichol):
        with pytest.raises(gs.linalg.SingularMatrixError, match="row"):
            make(D)
    with pytest.raises(TypeError, match="two_level: A must be a DistributedMatrix"):
        gs.linalg.two_level(grid())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="two_level: M must be"):
        gs.linalg.two_level(D, lambda r: r)
