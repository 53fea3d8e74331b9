# SPDX-License-Identifier: BSD-3-Clause
"""Matrices on the pattern of a graph with parallel edges: each op counts them as mathematics does, or refuses."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

EDGES = torch.tensor([[0, 1, 0, 2, 0], [1, 0, 1, 1, 1]])  # three edges from 0 to 1


@pytest.fixture
def S() -> gs.SparseMatrix:
    pattern, order = gs.graph_pattern(EDGES, (3, 3))
    return gs.SparseMatrix(pattern, torch.arange(1.0, 6.0, dtype=torch.float64)[order])


def dense() -> Tensor:
    """The matrix, parallel edges added up, written out."""
    return torch.tensor([[0, 2, 0], [1 + 3 + 5, 0, 4], [0, 0, 0]], dtype=torch.float64)


COUNTED: dict[str, tuple[Callable[[gs.SparseMatrix], Any], Callable[[Tensor], Tensor]]] = {
    "to_dense": (lambda S: S, lambda D: D),
    "product": (lambda S: S @ torch.ones(3, dtype=torch.float64), lambda D: D.sum(1)),
    "transpose": (lambda S: S.T, lambda D: D.T),
    "transposed product": (lambda S: torch.ones(3, dtype=torch.float64) @ S, lambda D: D.sum(0)),
    "sum": (lambda S: S.sum(0), lambda D: D.sum(0)),
    "mean": (lambda S: S.mean(), lambda D: D.mean()),
    "scaling": (lambda S: (2 * S).scale_rows(torch.arange(3.0).double()), lambda D: 2 * torch.arange(3)[:, None] * D),
    "triangle": (lambda S: S.tril(), lambda D: D.tril()),
    "rows": (lambda S: S[[1, 1]], lambda D: D[[1, 1]]),
    "kron": (lambda S: gs.kron(S, S), lambda D: torch.kron(D, D)),
    "stack": (lambda S: gs.vstack([S, S]), lambda D: torch.cat([D, D])),
    "sum with itself": (lambda S: S + S, lambda D: D + D),
    "coalesce": (lambda S: S.coalesce(), lambda D: D),
    "coalesced sum": (lambda S: S.coalesce() + S.T.coalesce(), lambda D: D + D.T),
    "to_scipy": (lambda S: torch.from_numpy(S.to_scipy().toarray()), lambda D: D),
    "another width": (lambda S: S.to(index_dtype=torch.int64), lambda D: D),
    "copy": (copy.deepcopy, lambda D: D),
    "pickle": (lambda S: pickle.loads(pickle.dumps(S)), lambda D: D),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_each_edge(name: str, S: gs.SparseMatrix) -> None:
    op, formula = COUNTED[name]
    result = op(S)
    got = result.to_dense() if isinstance(result, gs.SparseMatrix) else result
    torch.testing.assert_close(got, formula(dense()))


REFUSED: dict[str, Callable[[gs.SparseMatrix], Any]] = {
    "spadd": lambda S: S + S.T,
    "hadamard": lambda S: S * S,
    "spgemm": lambda S: S @ S,
    "index": lambda S: S[1, 0],
    "diagonal": lambda S: S.diagonal(),
    "amax": lambda S: S.amax(),
    "norm": lambda S: S.norm(),
    "allclose": lambda S: gs.allclose(S, S),
    "to_torch": lambda S: S.to_torch(),
    "solve_triangular": lambda S: gs.linalg.solve_triangular(S, torch.ones(3, dtype=torch.float64)),
    "factorize": lambda S: gs.linalg.solve(S, torch.ones(3, dtype=torch.float64)),
}


@pytest.mark.parametrize("op", REFUSED)
def test_refuses_in_the_name_of_the_op(op: str, S: gs.SparseMatrix) -> None:
    with pytest.raises(ValueError, match=f"{op}: the pattern has parallel edges"):
        REFUSED[op](S)
    if op not in ("solve_triangular", "factorize"):  # singular
        REFUSED[op](S.coalesce())


def test_a_graph_without_parallel_edges_is_an_ordinary_matrix() -> None:
    pattern, _ = gs.graph_pattern(EDGES[:, 1:4], (3, 3))
    A = gs.SparseMatrix(pattern, torch.ones(3))
    assert pattern.simple
    assert A.coalesce() is A
    torch.testing.assert_close((A + A.T).to_dense(), A.to_dense() + A.to_dense().T)


def test_patterns_made_by_hand_are_checked() -> None:
    with pytest.raises(ValueError, match="appears twice"):
        gs.Pattern([0, 2], [1, 1], (1, 2))
    P = gs.Pattern([0, 2], [1, 1], (1, 2), simple=False)
    assert not P.simple
    with pytest.raises(ValueError, match="not sorted"):
        gs.Pattern([0, 2], [1, 0], (1, 2), simple=False)


def test_gradients_reach_each_edge(S: gs.SparseMatrix) -> None:
    S.requires_grad_()
    (S.coalesce().to_dense() * torch.arange(9.0).reshape(3, 3)).sum().backward()
    assert S.grad is not None
    rows, cols = S.pattern.row_indices, S.indices
    torch.testing.assert_close(S.grad.values, (3 * rows + cols).double())
