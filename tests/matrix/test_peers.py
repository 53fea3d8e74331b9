# SPDX-License-Identifier: BSD-3-Clause
"""What the test suites of DGL's sparse package, torchsparsegradutils and numml ask of a sparse matrix, asked of ours.

One row a behaviour: our spelling of it and the dense formula, for values and for gradients, both of which are judged on
the pattern alone. Layers beside PyG's are in tests/graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

Call = Callable[..., Any]


def softmax_of(A: Tensor, mask: Tensor, dim: int) -> Tensor:
    return torch.where(mask, torch.where(mask, A, -torch.inf).softmax(dim), 0)


def stored(A: Tensor, mask: Tensor, empty: float) -> Tensor:
    return torch.where(mask, A, empty)


# name: (ours, of the matrix A, a square S, a dense X and a vector v; the dense formula of the same and A's mask)
DGL: dict[str, tuple[Call, Call]] = {
    "spmm": (lambda A, S, X, v: A @ X, lambda A, S, X, v, m: A @ X),
    "spmm vector": (lambda A, S, X, v: A @ v, lambda A, S, X, v, m: A @ v),
    "bspmm": (
        lambda A, S, X, v: gs.spmm(A.with_values(torch.stack([A.values, 2 * A.values], 1)), torch.stack([X, X], 1)),
        lambda A, S, X, v, m: torch.stack([A @ X, 2 * A @ X], 1),
    ),
    "spspmm": (lambda A, S, X, v: S @ A, lambda A, S, X, v, m: S @ A),
    "sddmm": (
        lambda A, S, X, v: A * gs.sddmm(A.pattern, (A @ X).detach(), X),  # DGL's multiplies by A's values
        lambda A, S, X, v, m: A * ((A @ X).detach() @ X.T),
    ),
    "transpose": (lambda A, S, X, v: A.T, lambda A, S, X, v, m: A.T),
    "neg": (lambda A, S, X, v: -A, lambda A, S, X, v, m: -A),
    "reduce sum": (lambda A, S, X, v: A.sum(1), lambda A, S, X, v, m: A.sum(1)),
    "reduce smax": (
        lambda A, S, X, v: A.smax(1),
        lambda A, S, X, v, m: torch.where(m.any(1), stored(A, m, -torch.inf).amax(1), 0),
    ),
    "reduce smin": (
        lambda A, S, X, v: A.smin(0),
        lambda A, S, X, v, m: torch.where(m.any(0), stored(A, m, torch.inf).amin(0), 0),
    ),
    "reduce smean": (lambda A, S, X, v: A.smean(1), lambda A, S, X, v, m: A.sum(1) / m.sum(1).clamp(min=1)),
    "softmax rows": (lambda A, S, X, v: A.row_softmax(), lambda A, S, X, v, m: softmax_of(A, m, 1)),
    "softmax cols": (lambda A, S, X, v: A.T.row_softmax().T, lambda A, S, X, v, m: softmax_of(A, m, 0)),
    "sp_add_sp": (lambda A, S, X, v: A + A.with_values(A.values**2), lambda A, S, X, v, m: A + A**2),
    "sp_mul_v": (lambda A, S, X, v: A * v, lambda A, S, X, v, m: A * v),
    "sp_div_v": (lambda A, S, X, v: A / (v**2 + 1), lambda A, S, X, v, m: A / (v**2 + 1)),
    "sp_div_sp": (
        lambda A, S, X, v: A / A.map(lambda a: a**2 + 1),
        lambda A, S, X, v, m: A / (A**2 + 1),
    ),
    "diag": (lambda A, S, X, v: gs.diag(v) @ A.T, lambda A, S, X, v, m: v[:, None] * A.T),
    "identity": (lambda A, S, X, v: gs.eye(6, dtype=v.dtype) + S, lambda A, S, X, v, m: torch.eye(6) + S),
    "matmul chain": (lambda A, S, X, v: A.T @ (S @ (A @ X)), lambda A, S, X, v, m: A.T @ S @ A @ X),
}

TORCHSPARSEGRADUTILS: dict[str, tuple[Call, Call]] = {
    "sparse_mm": (lambda A, S, X, v: gs.matmul(A, X), lambda A, S, X, v, m: A @ X),
    "sparse_triangular_solve": (
        lambda A, S, X, v: gs.linalg.solve_triangular(S.tril(), (A @ X)),
        lambda A, S, X, v, m: torch.linalg.solve_triangular(S.tril(), A @ X, upper=False),
    ),
    "sparse_triangular_solve upper": (
        lambda A, S, X, v: gs.linalg.solve_triangular(S.triu(), A @ v, upper=True),
        lambda A, S, X, v, m: torch.linalg.solve_triangular(S.triu(), (A @ v)[:, None], upper=True)[:, 0],
    ),
    "sparse_triangular_solve transpose": (
        lambda A, S, X, v: gs.linalg.solve_triangular(S.tril(), A @ v, transpose=True),
        lambda A, S, X, v, m: torch.linalg.solve_triangular(S.tril().T, (A @ v)[:, None], upper=True)[:, 0],
    ),
    "sparse_generic_solve": (
        lambda A, S, X, v: gs.linalg.solve(S, A @ X),
        lambda A, S, X, v, m: torch.linalg.solve(S, A @ X),
    ),
    "sparse_generic_lstsq": (
        lambda A, S, X, v: gs.linalg.solve(A.T @ A + gs.eye(4, dtype=v.dtype), A.T @ (A @ v)),
        lambda A, S, X, v, m: torch.linalg.solve(A.T @ A + torch.eye(4), A.T @ (A @ v)),
    ),
    "stack and block_diag": (
        lambda A, S, X, v: gs.block_diag([A, A]) @ torch.cat([X, 2 * X]),
        lambda A, S, X, v, m: torch.cat([A @ X, 2 * A @ X]),
    ),
}

NUMML: dict[str, tuple[Call, Call]] = {
    "spspadd": (lambda A, S, X, v: 2 * A + A.map(torch.sin), lambda A, S, X, v, m: 2 * A + A.sin()),
    "column select": (lambda A, S, X, v: A[:, [2, 0, 2]], lambda A, S, X, v, m: A[:, [2, 0, 2]]),
    "row and column select": (lambda A, S, X, v: A[1:4, 1:], lambda A, S, X, v, m: A[1:4, 1:]),
    "tril and triu": (lambda A, S, X, v: A.tril() @ (A.triu().T), lambda A, S, X, v, m: A.tril() @ A.triu().T),
    "norm": (lambda A, S, X, v: A.norm(), lambda A, S, X, v, m: A.norm()),
    "abs and row sums": (lambda A, S, X, v: A.abs().sum(1), lambda A, S, X, v, m: A.abs().sum(1)),
    "splu": (
        lambda A, S, X, v: gs.linalg.factorize(S).solve(A @ v),
        lambda A, S, X, v, m: torch.linalg.solve(S, A @ v),
    ),
    "log of a determinant": (lambda A, S, X, v: gs.linalg.factorize(S).logdet(), lambda A, S, X, v, m: torch.logdet(S)),
}

PEERS = {"DGL": DGL, "torchsparsegradutils": TORCHSPARSEGRADUTILS, "numml": NUMML}
BEHAVIOURS = {f"{peer}: {name}": row for peer, rows in PEERS.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviour_of_a_peer(name: str) -> None:
    ours, formula = BEHAVIOURS[name]
    torch.manual_seed(0)
    mask = torch.rand(6, 4) < 0.5
    mask[3] = False  # a node without edges
    D = torch.where(mask, torch.randn(6, 4, dtype=torch.float64), 0)
    E = torch.eye(6, dtype=torch.float64) * 4 + torch.rand(6, 6, dtype=torch.float64) * (torch.rand(6, 6) < 0.4)
    X, v = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    A, S = gs.from_dense(D).requires_grad_(), gs.from_dense(E).requires_grad_()
    leaves = [t.clone().requires_grad_() for t in (X, v)]
    dense = [t.clone().requires_grad_() for t in (D, E, X, v)]

    got = ours(A, S, *leaves)
    got = got.to_dense() if isinstance(got, gs.SparseMatrix) else got
    want = formula(*dense, mask)
    torch.testing.assert_close(got, want)

    weights = torch.randn_like(want)
    gradients = torch.autograd.grad((got * weights).sum(), [A.values, S.values, *leaves], allow_unused=True)
    wanted = torch.autograd.grad((want * weights).sum(), dense, allow_unused=True)
    for ours_, theirs, matrix in zip(gradients, wanted, (A, S, None, None), strict=True):
        if theirs is None:
            assert ours_ is None or not ours_.any()
            continue
        expected = theirs if matrix is None else theirs[matrix.pattern.row_indices, matrix.indices.long()]
        torch.testing.assert_close(torch.zeros_like(expected) if ours_ is None else ours_, expected)
