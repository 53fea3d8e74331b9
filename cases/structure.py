# SPDX-License-Identifier: BSD-3-Clause
"""Parts of matrices and matrices put together from others."""

from __future__ import annotations

import torch

import gossamer as gs

from .row import Case, Make


def one(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m, make.n),)


def heads(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m, make.n, 2),)


def larger(make: Make) -> tuple[gs.SparseMatrix]:
    """At least three rows and columns, so that there is something to index."""
    return (make.matrix(make.m + 3, make.n + 3),)


def larger_heads(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m + 3, make.n + 3, 2),)


def small(make: Make, rows: int) -> gs.SparseMatrix:
    """A second operand of a few columns: Kronecker products grow fast."""
    return make.matrix(rows, 4)


def shuffled(A: object) -> torch.Tensor:
    """Indices with repetitions, out of order, from both ends; of columns of A."""
    return torch.tensor([2, 0, -1, 2, -3])


CASES = [
    Case("diagonal", lambda gs, A: A.diagonal(), torch.diagonal, one, sized_by_data=True),
    Case(
        "diagonal_heads",
        lambda gs, A: A.diagonal(),
        lambda A: A.diagonal().T,
        heads,
        sized_by_data=True,
    ),
    Case("diagonal_above", lambda gs, A: A.diagonal(2), lambda A: A.diagonal(2), larger, sized_by_data=True),
    Case("diagonal_below", lambda gs, A: A.diagonal(-2), lambda A: A.diagonal(-2), larger, sized_by_data=True),
    Case("trace", lambda gs, A: A.trace()[None], lambda A: A.diagonal().sum()[None], one, sized_by_data=True),
    Case(
        "with_diagonal",
        lambda gs, A, v: A.with_diagonal(v, 1),
        lambda A, v: A.diagonal_scatter(v, 1),
        lambda make: (*larger(make), make.dense(min(make.m + 3, make.n + 2))),
        sized_by_data=True,
    ),
    Case(
        "with_diagonal_heads",
        lambda gs, A, v: A.with_diagonal(v, -1),
        lambda A, v: A.diagonal_scatter(v.T, -1),
        lambda make: (make.matrix(make.m + 3, make.n + 3, 2), make.dense(min(make.m + 2, make.n + 3), 2)),
        sized_by_data=True,
    ),
    Case("reshape", lambda gs, A: A.reshape(-1, 1), lambda A: A.reshape(-1, 1), larger, sized_by_data=True),
    Case(
        "reshape_heads", lambda gs, A: A.reshape(1, -1), lambda A: A.reshape(1, -1, 2), larger_heads, sized_by_data=True
    ),
    Case("tril", lambda gs, A: A.tril(), torch.tril, one, sized_by_data=True),
    Case("triu", lambda gs, A: A.triu(1), lambda A: A.triu(1), one, sized_by_data=True),
    Case(
        "tril_heads",
        lambda gs, A: A.tril(-1),
        lambda A: A.movedim(-1, 0).tril(-1).movedim(0, -1),
        heads,
        sized_by_data=True,
    ),
    Case("row", lambda gs, A: A[-3], lambda A: A[-3:-2], larger, sized_by_data=True),
    Case("column", lambda gs, A: A[:, 2], lambda A: A[:, 2:3], larger, sized_by_data=True),
    Case(
        "entry", lambda gs, A: torch.stack([A[0, j] for j in range(3)]), lambda A: A[0, :3], larger, sized_by_data=True
    ),
    Case("slice", lambda gs, A: A[1:, :-1], lambda A: A[1:, :-1], larger, sized_by_data=True),
    Case("slice_steps", lambda gs, A: A[::2, 1::3], lambda A: A[::2, 1::3], larger, sized_by_data=True),
    Case("slice_backwards", lambda gs, A: A[::-1, ::-2], lambda A: A.flip(0, 1)[:, ::2], larger, sized_by_data=True),
    Case("index_rows", lambda gs, A: A[shuffled(A)], lambda A: A[shuffled(A)], larger, sized_by_data=True),
    Case("index_cols", lambda gs, A: A[:, shuffled(A)], lambda A: A[:, shuffled(A)], larger, sized_by_data=True),
    Case(
        "index_rows_and_cols",
        lambda gs, A: A[shuffled(A)[:, None], shuffled(A)],
        lambda A: A[shuffled(A)][:, shuffled(A)],
        larger,
        sized_by_data=True,
    ),
    Case(
        "submatrix",
        lambda gs, A: A.submatrix(shuffled(A), shuffled(A)[:3]),
        lambda A: A[shuffled(A)][:, shuffled(A)[:3]],
        larger,
        sized_by_data=True,
    ),
    Case(
        "index_pairs",
        lambda gs, A: A[shuffled(A), shuffled(A).flip(0)],
        lambda A: A[shuffled(A), shuffled(A).flip(0)],
        larger,
        sized_by_data=True,
    ),
    Case(
        "mask",
        lambda gs, A: A[torch.arange(A.shape[0]) % 3 != 1],
        lambda A: A[torch.arange(A.shape[0]) % 3 != 1],
        larger,
        sized_by_data=True,
    ),
    Case("diag", lambda gs, v: gs.diag(v, -1), lambda v: torch.diag(v, -1), lambda make: (make.dense(make.m),)),
    Case(
        "kron",
        lambda gs, A, B: gs.kron(A, B),
        torch.kron,
        lambda make: (make.matrix(make.m, make.n), small(make, 4)),
        timed=False,
    ),
    Case(
        "kron_heads",
        lambda gs, A, B: gs.kron(A, B),
        lambda A, B: torch.stack([torch.kron(A[..., h], B) for h in range(2)], -1),
        lambda make: (make.matrix(make.m, make.n, 2), small(make, 4)),
        timed=False,
    ),
    Case(
        "vstack",
        lambda gs, A, B: gs.vstack([A, B]),
        lambda A, B: torch.vstack([A, B]),
        lambda make: (make.matrix(make.m, make.n), make.matrix(2, make.n)),
    ),
    Case(
        "hstack",
        lambda gs, A, B: gs.hstack([A, B, A]),
        lambda A, B: torch.hstack([A, B, A]),
        lambda make: (make.matrix(make.m, make.n), make.matrix(make.m, 3)),
    ),
    Case(
        "block_diag",
        lambda gs, A, B: gs.block_diag([A, B]),
        torch.block_diag,
        lambda make: (make.matrix(make.m, make.n), make.matrix(4, 4)),
    ),
]
