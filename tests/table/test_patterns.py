# SPDX-License-Identifier: BSD-3-Clause
"""Random patterns from hypothesis, against SciPy and against the definition of a pattern; and who checks a pattern.

The structure of what a user gives is checked once; what an op makes of it is trusted and costs no second look.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import PYTHON
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs
from cases import CASES, Case, Make

sizes = st.integers(0, 9)


@st.composite
def triplets(draw: st.DrawFn) -> tuple[list[int], list[int], tuple[int, int]]:
    m, n = draw(sizes), draw(sizes)
    if m == 0 or n == 0:
        return [], [], (m, n)
    places = draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), max_size=30))
    return [i for i, _ in places], [j for _, j in places], (m, n)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(triplets(), st.integers(0, 5), st.booleans())
def test_products_equal_scipy(places: tuple[list[int], list[int], tuple[int, int]], width: int, wide: bool) -> None:
    rows, cols, shape = places
    rng = np.random.default_rng(len(rows))
    values = rng.standard_normal(len(rows))
    S = scipy.sparse.coo_array((values, (rows, cols)), shape=shape).tocsr()
    A = gs.from_coo(rows, cols, torch.from_numpy(values), shape).to(index_dtype=torch.int64 if wide else torch.int32)
    gs.Pattern(A.indptr, A.indices, A.shape)  # checks itself
    gs.Pattern(A.T.indptr, A.T.indices, A.T.shape)
    X, Z = rng.standard_normal((shape[1], width)), rng.standard_normal((shape[0], width))
    np.testing.assert_allclose((A @ torch.from_numpy(X)).numpy(), S @ X, atol=1e-12)
    np.testing.assert_allclose(gs.spmm(A, torch.from_numpy(Z), transpose=True).numpy(), S.T @ Z, atol=1e-12)
    np.testing.assert_allclose(A.to_dense().numpy(), S.toarray(), atol=1e-12)
    np.testing.assert_allclose(A.T.to_dense().numpy(), S.T.toarray(), atol=1e-12)
    sampled = gs.sddmm(A, torch.from_numpy(Z), torch.from_numpy(X)).to_dense().numpy()
    mask = A.with_values(torch.ones(A.nnz)).to_dense().numpy()
    np.testing.assert_allclose(sampled, mask * (Z @ X.T), atol=1e-12)


def is_pattern(indptr: list[int], indices: list[int], shape: tuple[int, int]) -> bool:
    """The definition, word for word."""
    m, n = shape
    starts = len(indptr) == m + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if not starts or any(a > b for a, b in pairwise(indptr)):
        return False
    rows = [indices[a:b] for a, b in pairwise(indptr)]
    return all(row == sorted(set(row)) and all(0 <= j < n for j in row) for row in rows)


numbers = st.lists(st.integers(-1, 5), min_size=1, max_size=5)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    numbers | numbers.map(lambda x: [0, *sorted(x)]),
    st.lists(st.integers(-1, 4), max_size=5),
    st.integers(0, 4),
)
def test_check_accepts_patterns_and_nothing_else(indptr: list[int], indices: list[int], cols: int) -> None:
    shape = (len(indptr) - 1, cols)
    for dtype in (torch.int32, torch.int64):
        try:
            gs.Pattern(torch.tensor(indptr, dtype=dtype), torch.tensor(indices, dtype=dtype), shape)
            accepted = True
        except ValueError:
            accepted = False
        assert accepted == is_pattern(indptr, indices, shape)


class Checks(TorchDispatchMode):
    """Counts the calls of the op that reads a whole pattern to check it."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func._schema.name == "gossamer::check_pattern"
        return func(*args, **(kwargs or {}))


def matrix() -> gs.SparseMatrix:
    return gs.poisson((4, 3)).to(torch.float64)


def graph() -> gs.SparseMatrix:
    """With an edge that is there twice."""
    P, _ = gs.graph_pattern(torch.tensor([[0, 0, 1], [1, 1, 2]]), (3, 3))
    return gs.SparseMatrix(P, torch.ones(3))


MORE: dict[str, Callable[[], Any]] = {  # than the rows of the table: other names, or more patterns
    "graph_pattern": graph,
    "coalesce": lambda: graph().coalesce(),
    "with_diagonal": lambda: gs.poisson(5).with_diagonal(torch.ones(4), 1),
    "reshape": lambda: matrix().reshape(24, 6),
    "an index of two dimensions": lambda: matrix()[[[0, 1], [2, 3]], [[0, 1], [2, 4]]],
    "other integers": lambda: matrix().pattern.to(index_dtype=torch.int64),
    "complex": lambda: gs.linalg.solve(matrix().to(torch.complex128), torch.ones(12, dtype=torch.complex128)),
    "cholesky": lambda: gs.linalg.cholesky(matrix()),
    "eigsh": lambda: gs.linalg.eigsh(matrix(), 2, sigma=0.0),
    "svds": lambda: gs.linalg.svds(matrix(), 2),
    "lstsq": lambda: gs.linalg.lstsq(matrix().submatrix(None, [0, 1]), torch.ones(12, dtype=torch.float64)),
    "hessian": lambda: gs.hessian(lambda u: (u[1:] * u[:-1]).sum())(torch.ones(3)),
    "ilu": lambda: gs.linalg.ilu(matrix()),
    "a graph's edges": lambda: gs.nn.GCNConv(2, 2)(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]])),
    "power_law": lambda: gs.datasets.power_law(),
}


@pytest.mark.parametrize("make", MORE.values(), ids=MORE)
def test_nothing_else_does(make: Callable[[], Any]) -> None:
    with Checks() as checks:
        make()
    assert checks.count == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_op_checks_its_own_pattern(case: Case) -> None:
    inputs = case.inputs(Make("square"))
    with Checks() as checks:
        PYTHON.run(case, inputs)
    assert checks.count == 0


def test_a_given_pattern_is_checked() -> None:
    indptr, indices = torch.tensor([0, 1]), torch.tensor([0])
    with Checks() as checks:
        gs.Pattern(indptr, indices, (1, 1))
    assert checks.count == 1
