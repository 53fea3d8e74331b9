# SPDX-License-Identifier: BSD-3-Clause
"""Products, with first and second derivatives: the bits are those of one process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from whole import Pair, entries_of, numbers, on, partitions, unsymmetric

import gossamer as gs


def case_partitions(mesh: Any) -> None:
    for A in (gs.poisson((30, 10), dtype=torch.float64), unsymmetric(60, 60)):
        for parts in partitions(A, mesh.size()).values():
            pair = Pair(A, mesh, parts)
            for columns in ((), (3,), (17,)):
                X = numbers(A.shape[0], *columns)
                pair.spmm(X)
                pair.spmm(X, transpose=True)
                pair.sddmm(X, numbers(A.shape[0], *columns, seed=1))


def case_types(mesh: Any) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        A = unsymmetric(40, 40, dtype=dtype)
        pair = Pair(A, mesh, partitions(A, mesh.size())["random"])
        for columns in ((), (5,)):
            X, V = (numbers(40, *columns, dtype=dtype, seed=seed) / 8 for seed in (0, 1))  # their cubes fit float16
            pair.spmm(X)
            pair.spmm(X, transpose=True)
            pair.sddmm(X, V)


@on(1, 3)
def case_index_widths(mesh: Any) -> None:
    for width in (torch.int32, torch.int64):
        pair = Pair(unsymmetric(40, 40).to(index_dtype=width), mesh)
        assert pair.D.pattern.indices.dtype == pair.D.pattern.indptr.dtype == width
        pair.spmm(numbers(40, 3))
        pair.spmm(numbers(40, 3), transpose=True)


def case_rectangular(mesh: Any) -> None:
    ranks = mesh.size()
    for rows, cols in ((50, 20), (20, 50)):
        A = unsymmetric(rows, cols)
        for column_parts in (None, torch.randint(ranks, (cols,), generator=torch.Generator().manual_seed(5))):
            pair = Pair(A, mesh, torch.arange(rows) % ranks, column_parts=column_parts)
            pair.spmm(numbers(cols, 3))
            pair.spmm(numbers(rows, 3), transpose=True)
            pair.sddmm(numbers(rows, 3), numbers(cols, 3, seed=1))


def case_heads(mesh: Any) -> None:
    A = unsymmetric(30, 30)
    A = A.with_values(numbers(A.nnz, 2))
    pair = Pair(A, mesh, partitions(A.with_values(A.values[:, 0]), mesh.size())["random"])
    for columns in ((), (3,)):
        pair.spmm(numbers(30, 2, *columns))
        pair.spmm(numbers(30, 2, *columns), transpose=True)
    pair.sddmm(numbers(30, 2, 3), numbers(30, 2, 3, seed=1))


def case_parallel_edges(mesh: Any) -> None:
    edges = torch.randint(20, (2, 200), generator=torch.Generator().manual_seed(0))
    P, _ = gs.graph_pattern(edges, (20, 20))
    assert not P.simple
    pair = Pair(gs.SparseMatrix(P, numbers(200)), mesh, torch.arange(20) % mesh.size())
    pair.spmm(numbers(20, 3))
    pair.spmm(numbers(20, 3), transpose=True)
    pair.sddmm(numbers(20, 3), numbers(20, 3, seed=1))


def case_empty_ranks(mesh: Any) -> None:
    A = unsymmetric(25, 25)
    last = mesh.size() - 1
    for parts in (torch.full((25,), last), torch.tensor([0] * 10 + [last] * 15)):
        pair = Pair(A, mesh, parts)
        pair.spmm(numbers(25, 3))
        pair.spmm(numbers(25, 3), transpose=True)
        pair.sddmm(numbers(25, 3), numbers(25, 3, seed=1))


def case_fewer_rows_than_ranks(mesh: Any) -> None:
    for n in (1, 2, 3):
        pair = Pair(gs.poisson(n, dtype=torch.float64), mesh)
        pair.spmm(numbers(n, 3))
        pair.spmm(numbers(n), transpose=True)
        pair.sddmm(numbers(n, 3), numbers(n, 3, seed=1))


@on(1, 3)
def case_no_entries(mesh: Any) -> None:
    A = gs.from_coo(torch.zeros(0).long(), torch.zeros(0).long(), torch.zeros(0, dtype=torch.float64), (9, 9))
    pair = Pair(A, mesh)
    pair.spmm(numbers(9, 3))
    pair.spmm(numbers(9), transpose=True)


def case_without_halo_and_with_halo_only(mesh: Any) -> None:
    n = 6 * mesh.size()
    own = torch.arange(n)
    away = (own + 6) % n  # columns of the next rank alone
    for columns in (own, away):
        pair = Pair(gs.from_coo(own, columns, numbers(n), (n, n)), mesh)
        halo = sum(pair.D.exchange.halo[2])
        assert halo == (0 if columns is own or mesh.size() == 1 else 6)
        pair.spmm(numbers(n, 3))
        pair.spmm(numbers(n, 3), transpose=True)
        pair.sddmm(numbers(n, 3), numbers(n, 3, seed=1))


@on(1, 3)
def case_large_transpose_of_a_vector(mesh: Any) -> None:
    """Large enough for the plain op to scatter parts of the matrix, whose sums it adds up: the bits of that, too."""
    for dtype, n in ((torch.float64, 9000), (torch.float32, 17000)):
        A = unsymmetric(n, n, 18, dtype=dtype)
        pair = Pair(A, mesh, torch.randint(mesh.size(), (n,), generator=torch.Generator().manual_seed(3)))
        pair.spmm(numbers(n, dtype=dtype), transpose=True)
        pair.spmm(numbers(n, dtype=dtype))


def case_grids_of_runs(mesh: Any) -> None:
    """From its second product with a vector on, a grid is read by runs of rows, in one process and in many."""
    pair = Pair(gs.poisson((40, 30), dtype=torch.float64), mesh)
    for _ in range(3):
        pair.spmm(numbers(1200))
        pair.spmm(numbers(1200), transpose=True)
        pair.spmm(numbers(1200, 16))


@on(1, 3)
def case_complex_and_integers(mesh: Any) -> None:
    A = unsymmetric(30, 30)
    pair = Pair(A.with_values(torch.complex(numbers(A.nnz), numbers(A.nnz, seed=1))), mesh)
    X = torch.complex(numbers(30, 3), numbers(30, 3, seed=2))
    whole = Pair(A.with_values((numbers(A.nnz) * 5).long()), mesh)
    for t in (False, True):
        pair.equal("r", [gs.spmm(pair.A, X, t)], [gs.spmm(pair.D, X[pair.D.col_keys], t)])
        integers = (numbers(30, 2) * 9).long()
        whole.equal("r", [gs.spmm(whole.A, integers, t)], [gs.spmm(whole.D, integers[whole.D.col_keys], t)])
    v, w = (M.values.clone().requires_grad_() for M in (pair.A, pair.D))
    (pair.A.with_values(v) @ X).abs().square().sum().backward()
    (pair.D.with_values(w) @ X[pair.D.col_keys]).abs().square().sum().backward()
    assert torch.allclose(v.grad[pair.entries], w.grad, rtol=1e-14)


def case_strided_operands(mesh: Any) -> None:
    A = unsymmetric(30, 30)
    pair = Pair(A, mesh, torch.arange(30) % mesh.size())
    wide = numbers(30, 8)
    for X in (wide[:, ::2], wide[:, 2:5], wide[:, 0], wide.T.contiguous().T):
        mine = wide[pair.D.col_keys]
        Y = mine[:, ::2] if X.stride(1 % X.dim()) == 2 else X[pair.D.col_keys]
        pair.equal("r", [A @ X], [pair.D @ Y])


def case_kept_halo(mesh: Any) -> None:
    A = unsymmetric(40, 40)
    pair = Pair(A, mesh, torch.arange(40) % mesh.size())
    pair.D.keep_halo = True
    X = numbers(40, 3)
    pair.spmm(X)
    pair.spmm(X, transpose=True)
    pair.sddmm(X, numbers(40, 3, seed=1))
    halo = len(pair.D.exchange.halo[0]) * 3 * 8
    for keep, bytes_sent in ((False, 2 * halo), (True, halo)):
        D = pair.D.detach().clone().requires_grad_()
        D.keep_halo = keep
        before = torch.ops.gossamer.distributed_bytes_sent()
        (D @ X[D.col_keys]).sum().backward()
        assert torch.ops.gossamer.distributed_bytes_sent() - before == bytes_sent


def case_bytes(mesh: Any) -> None:
    """Halo rows × width × size of a number, and the values of cut entries, exactly."""
    A = unsymmetric(60, 60)
    for parts in partitions(A, mesh.size()).values():
        pair = Pair(A, mesh, parts)
        D = pair.D.prepare()
        owners = torch.empty(60, dtype=torch.int64)
        for rank in range(mesh.size()):
            owners[_keys_of(D, rank, pair.A, parts, mesh.size())] = rank
        rows, columns = A.pattern.row_indices, A.indices.long()
        cut = owners[rows] != owners[columns]
        me = mesh.get_local_rank()
        asked = torch.stack([owners[rows], columns])[:, cut & (owners[columns] == me)]  # (rank, one of my rows)
        asked_t = torch.stack([owners[columns], rows])[:, cut & (owners[rows] == me)]
        sent, sent_t = (torch.unique(pairs, dim=1).shape[1] for pairs in (asked, asked_t))
        routed = int((cut & (owners[rows] == me)).sum())
        for dtype, size, width in ((torch.float64, 8, 5), (torch.float32, 4, 1), (torch.bfloat16, 2, 7)):
            M, X = D.to(dtype), numbers(60, width, dtype=dtype)[D.col_keys]
            for transpose, wanted in ((False, sent * width * size), (True, (sent_t * width + routed) * size)):
                before = torch.ops.gossamer.distributed_bytes_sent()
                gs.spmm(M, X, transpose)
                assert torch.ops.gossamer.distributed_bytes_sent() - before == wanted


def _keys_of(D: Any, rank: int, A: gs.SparseMatrix, parts: Any, ranks: int) -> torch.Tensor:
    owners = torch.arange(60) * ranks // 60 if parts is None else parts
    return (owners == rank).nonzero().flatten()


@on(1)
def case_rows_of_entries(mesh: Any) -> None:
    """The test's own tool: entries of rows, against the dense matrix."""
    A = unsymmetric(10, 10)
    rows = torch.tensor([7, 2])
    assert torch.equal(A.values[entries_of(A, rows)], torch.cat([A.to_dense()[i][A.to_dense()[i] != 0] for i in rows]))


@on(2)
def case_arithmetic(mesh: Any) -> None:
    """Entry by entry: each rank computes its own, as one process does."""
    A = unsymmetric(40, 40)
    parts = partitions(A, mesh.size())["random"]
    three, by_head = torch.tensor(3.0, dtype=torch.float64), torch.tensor([2.0, 5.0], dtype=torch.float64)
    both = [lambda M: M * 2, lambda M: 2 * M, lambda M: M * three, lambda M: M / 4, lambda M: M / three, lambda M: -M]
    both += [lambda M: M**2, lambda M: M * M, lambda M: M + M, lambda M: M - 3 * M, lambda M: M.conj()]
    both += [lambda M: M.map(torch.sin)]
    for matrix, also in ((A, []), (A.with_values(numbers(A.nnz, 2)), [lambda M: M * by_head, lambda M: M / by_head])):
        pair = Pair(matrix, mesh, parts)
        assert not gs.distributed.DistributedMatrix(pair.D.pattern, pair.D.values).keep_halo  # wants to be asked for
        for use in both + also:
            assert torch.equal(use(pair.D).values, use(matrix).values[pair.entries])
        assert torch.equal(pair.D.exp().values, matrix.values.exp()[pair.entries])
        for mistake in (lambda M: M * "2", lambda M: M / "2", lambda M: M * [2]):
            with pytest.raises(TypeError):
                mistake(pair.D)
