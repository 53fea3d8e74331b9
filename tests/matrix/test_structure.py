# SPDX-License-Identifier: BSD-3-Clause
"""Parts, stacks, reductions and elementwise functions against SciPy and NumPy on random patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gossamer as gs

sizes = st.integers(0, 8)
reproducible = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def matrices(draw: st.DrawFn, rows: int | None = None, cols: int | None = None) -> gs.SparseMatrix:
    """Values are small integers, so that stored zeros and ties occur and sums are exact."""
    m, n = draw(sizes) if rows is None else rows, draw(sizes) if cols is None else cols
    places = sorted(draw(st.sets(st.integers(0, m * n - 1), max_size=30))) if m * n else []
    values = draw(st.lists(st.integers(-3, 3), min_size=len(places), max_size=len(places)))
    wide = draw(st.booleans())
    A = gs.from_coo(
        [p // n for p in places], [p % n for p in places], torch.tensor(values, dtype=torch.float64), (m, n)
    )
    return A.to(index_dtype=torch.int64 if wide else torch.int32)


def check(A: gs.SparseMatrix, S: Any) -> None:
    """A well-formed pattern that holds the same numbers as S, a SciPy matrix, which says how many are stored too."""
    gs.Pattern(A.indptr, A.indices, A.shape)
    S = scipy.sparse.csr_array(S)
    assert A.shape == S.shape
    assert A.nnz == S.nnz
    np.testing.assert_array_equal(A.to_dense().numpy(), S.toarray())


@reproducible
@given(matrices(), st.integers(-12, 12))
def test_diagonals_and_triangles(A: gs.SparseMatrix, k: int) -> None:
    S = A.to_scipy()
    m, n = A.shape
    if -m <= k <= n:
        np.testing.assert_array_equal(A.diagonal(k).numpy(), np.diagonal(A.to_dense().numpy(), k))
    else:
        assert A.diagonal(k).shape == (0,)
    assert A.trace() == S.trace()
    coo = S.tocoo()
    for part, kept in ((A.tril(k), coo.col - coo.row <= k), (A.triu(k), coo.col - coo.row >= k)):
        check(part, scipy.sparse.coo_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=A.shape))
        assert part.indptr.dtype is A.indptr.dtype
    assert A.tril(k).pattern is A.tril(k).pattern  # made once
    assert A.triu(2**62).nnz == 0
    assert A.tril(2**62).nnz == A.nnz


def indices_of(size: int) -> st.SearchStrategy[Any]:
    """Keys of one axis that leave a matrix."""
    bound = st.none() | st.integers(-10, 10)
    slices = st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2]))
    arrays = st.lists(st.integers(-size, size - 1), max_size=10) if size else st.just([])
    masks = st.lists(st.booleans(), min_size=size, max_size=size).map(lambda x: torch.tensor(x, dtype=torch.bool))
    return slices | arrays | arrays.map(lambda x: torch.tensor(x, dtype=torch.int32)) | masks


@reproducible
@given(matrices(), st.data())
def test_indexing(A: gs.SparseMatrix, data: st.DataObject) -> None:
    rows, cols = data.draw(indices_of(A.shape[0])), data.draw(indices_of(A.shape[1]))
    D = A.to_dense().numpy()
    stored = A.map(torch.ones_like).to_dense().numpy()
    as_numpy = [
        np.asarray(x, dtype=int) if isinstance(x, list) else x if isinstance(x, slice) else x.numpy()
        for x in (rows, cols)
    ]

    def same(B: gs.SparseMatrix, wanted: np.ndarray, entries: np.ndarray) -> None:
        gs.Pattern(B.indptr, B.indices, B.shape)
        assert B.shape == wanted.shape
        assert B.nnz == entries.sum()
        np.testing.assert_array_equal(B.to_dense().numpy(), wanted)

    same(A[rows], D[as_numpy[0]], stored[as_numpy[0]])
    same(A[:, cols], D[:, as_numpy[1]], stored[:, as_numpy[1]])
    same(A[rows, ...], D[as_numpy[0]], stored[as_numpy[0]])
    if isinstance(rows, slice) or isinstance(cols, slice):
        same(A[rows, cols], D[as_numpy[0]][:, as_numpy[1]], stored[as_numpy[0]][:, as_numpy[1]])


@reproducible
@given(
    matrices(5, 4), st.integers(-5, 4), st.integers(-4, 3), st.lists(st.tuples(st.integers(-5, 4), st.integers(-4, 3)))
)
def test_entries(A: gs.SparseMatrix, i: int, j: int, pairs: list[tuple[int, int]]) -> None:
    D = A.to_dense()
    assert torch.equal(A[i, j], D[i, j])
    assert torch.equal(A[np.int64(i), torch.tensor(j)], D[i, j])
    assert torch.equal(A[i].to_dense(), D[i][None])
    assert torch.equal(A[:, j].to_dense(), D[:, j][:, None])
    assert torch.equal(A[i, 1:].to_dense(), D[i, 1:][None])
    rows, cols = [p[0] for p in pairs], [p[1] for p in pairs]
    assert torch.equal(A[rows, cols], D[rows, cols] if pairs else D.new_zeros(0))
    outer = A[np.ix_(np.array(rows, dtype=int), np.array(cols, dtype=int))]
    assert torch.equal(outer.to_dense(), D[rows][:, cols] if pairs else D.new_zeros(0, 0))


@reproducible
@given(matrices(), matrices())
def test_kron_and_block_diag(A: gs.SparseMatrix, B: gs.SparseMatrix) -> None:
    np.testing.assert_array_equal(gs.kron(A, B).to_dense().numpy(), np.kron(A.to_dense(), B.to_dense()))
    K = gs.kron(A, B)
    gs.Pattern(K.indptr, K.indices, K.shape)
    assert K.nnz == A.nnz * B.nnz
    blocks = gs.block_diag([A, B, A])
    np.testing.assert_array_equal(
        blocks.to_dense().numpy(), torch.block_diag(*(x.to_dense() for x in (A, B, A))).numpy()
    )
    gs.Pattern(blocks.indptr, blocks.indices, blocks.shape)
    wide = torch.int64 in (A.indptr.dtype, B.indptr.dtype)
    assert K.indptr.dtype is blocks.indptr.dtype is (torch.int64 if wide else torch.int32)


@reproducible
@given(st.data(), sizes, st.integers(1, 4))
def test_stacks(data: st.DataObject, shared: int, count: int) -> None:
    below = [data.draw(matrices(cols=shared)) for _ in range(count)]
    check(gs.vstack(below), scipy.sparse.vstack([A.to_scipy() for A in below], format="csr"))
    beside = [data.draw(matrices(rows=shared)) for _ in range(count)]
    check(gs.hstack(beside), scipy.sparse.hstack([A.to_scipy() for A in beside], format="csr"))


@reproducible
@given(matrices())
def test_reductions(A: gs.SparseMatrix) -> None:
    S, (m, n) = A.to_scipy(), A.shape
    for dim in (None, 0, 1):
        np.testing.assert_allclose(A.sum(dim).numpy(), S.sum(axis=dim), atol=1e-12)
        if m and n:
            np.testing.assert_allclose(A.mean(dim).numpy(), S.mean(axis=dim), atol=1e-12)
            largest = S.max(axis=dim)
            np.testing.assert_array_equal(A.amax(dim).numpy(), largest if dim is None else largest.toarray())
    np.testing.assert_allclose(A.norm().numpy(), np.linalg.norm(A.to_dense().numpy()), atol=1e-12)
    P = A.row_softmax()
    filled = A.indptr.diff() > 0
    np.testing.assert_allclose(P.sum(1)[filled].numpy(), 1, atol=1e-12)


@reproducible
@given(matrices(), st.sampled_from([0.5, 2, 3.0]))
def test_elementwise(A: gs.SparseMatrix, p: float) -> None:
    S, D = A.to_scipy(), A.to_dense()
    check(-A, -S)
    check(2 * A, 2 * S)
    check(A / 4, S / 4)
    check(abs(A), abs(S))
    check(np.float64(3) * A, 3 * S)
    assert torch.equal((abs(A) ** p).to_dense(), D.abs() ** p)
    assert (A * 0).nnz == A.nnz  # a stored zero stays stored


@reproducible
@given(matrices(4, 5), matrices(4, 5))
def test_allclose(A: gs.SparseMatrix, B: gs.SparseMatrix) -> None:
    assert gs.allclose(A, B) == torch.allclose(A.to_dense(), B.to_dense())
    assert gs.allclose(A, gs.from_dense(A.to_dense() * (1 + 1e-9)))  # another pattern, where zeros were stored
    assert not gs.allclose(A, A[:, 1:])
    assert not gs.allclose(A * torch.nan, A * torch.nan) or A.nnz == 0
    assert gs.allclose(A * torch.nan, A * torch.nan, equal_nan=True)


def test_softmax_does_not_overflow() -> None:
    A = gs.SparseMatrix([0, 2, 2, 4], [0, 1, 0, 1], torch.tensor([1e4, 1e4, -1e300, 3e38], dtype=torch.float64), (3, 2))
    assert A.row_softmax().values.tolist() == [0.5, 0.5, 0.0, 1.0]


@pytest.mark.parametrize("heads", [1, 7, 8, 9, 20])
def test_softmax_of_many_heads_is_that_of_each(heads: int) -> None:
    A = gs.random(30, 20, 0.3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = torch.randn(A.nnz, heads, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    together = A.with_values(values).row_softmax().values
    for h in range(heads):
        assert torch.equal(together[:, h], A.with_values(values[:, h]).row_softmax().values)


def test_gradient_of_the_maximum_goes_to_the_first_stored_one() -> None:
    """Ties: two stored, a stored zero with one that is not, and nothing stored that is large enough."""
    A = gs.SparseMatrix([0, 2, 4, 5], [0, 1, 0, 1, 0], [2.0, 2.0, -1.0, 0.0, -1.0], (3, 3)).requires_grad_()
    A.amax(1).sum().backward()
    assert A.grad is not None
    assert A.grad.values.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_what_is_kept_in_inference_mode_can_be_trained_on() -> None:
    A = gs.poisson((3, 3))
    with torch.inference_mode():
        A.tril(), A.diagonal(), A[1:]
    A.requires_grad_()
    (A.tril().sum() + A.diagonal().sum() + A[1:].sum()).backward()
    assert A.grad is not None
    assert A.grad[0, 0] == 2


def test_rows_can_be_iterated() -> None:
    A = gs.poisson(3)
    assert torch.equal(gs.vstack(list(A)).to_dense(), A.to_dense())


INDICES = [
    ([[0], [1]], [0, 1]),
    ([[0], [3]], [[2], [1]]),
    ([0, 3, 1], [[0], [2]]),
    ([[0, 1], [3, 3]], [[0, 1], [2, -1]]),
    ([[0, 1], [2, 3]], [1]),
    ([2], [[0, 1, 1]]),
    ([-1, 2], [0, 1]),
    ([1], [0, 1, 2]),
]


@pytest.mark.parametrize(("rows", "cols"), INDICES, ids=str)
@pytest.mark.parametrize("as_array", [list, np.array, torch.tensor], ids=["list", "numpy", "torch"])
def test_two_index_arrays_broadcast_as_in_numpy(rows: Any, cols: Any, as_array: Any) -> None:
    A = gs.random(4, 4, 0.6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    got = A[as_array(rows), as_array(cols)]
    dense = A.to_dense()
    want = dense[torch.tensor(rows), torch.tensor(cols)]
    assert isinstance(got, gs.SparseMatrix) == (want.dim() == 2)
    torch.testing.assert_close(got.to_dense() if isinstance(got, gs.SparseMatrix) else got, want)
    weights = torch.arange(want.numel(), dtype=torch.float64).reshape(want.shape)
    ours = torch.autograd.grad(((got.to_dense() if want.dim() == 2 else got) * weights).sum(), A.values)[0]
    dense_leaf = A.detach().to_dense().requires_grad_()
    (dense_leaf[torch.tensor(rows), torch.tensor(cols)] * weights).sum().backward()
    assert dense_leaf.grad is not None
    torch.testing.assert_close(ours, dense_leaf.grad[A.pattern.row_indices, A.indices.long()])


@pytest.mark.parametrize("key", [([0, 1], [0, 1, 2]), ([[0], [1]], slice(None)), (1, [[0, 1]])], ids=str)
def test_indices_that_do_not_fit_together(key: Any) -> None:
    with pytest.raises(IndexError, match=r"^index: "):
        gs.poisson(4)[key]


def test_stacks_take_any_iterable() -> None:
    parts = [gs.eye(2), gs.poisson(2)]
    for stack in (gs.vstack, gs.hstack, gs.block_diag):
        assert gs.allclose(stack(A for A in parts), stack(parts))


def test_indices_are_integers() -> None:
    with pytest.raises(TypeError, match=r"index_dtype must be torch\.int32 or torch\.int64, not torch\.float32"):
        gs.eye(2).to(index_dtype=torch.float32)
