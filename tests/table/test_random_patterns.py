# SPDX-License-Identifier: BSD-3-Clause
"""Random patterns from hypothesis, against SciPy and against the definition of a pattern."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gossamer as gs

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
