# SPDX-License-Identifier: BSD-3-Clause
"""The matrix as SciPy's and NumPy's users write to it: their names, operands and comparisons, against SciPy itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gossamer as gs
from gossamer._scipy_names import INSTEAD

RNG = np.random.default_rng(0)
S = sp.random_array((5, 4), density=0.5, format="csr", rng=RNG) - 0.5 * sp.random_array((5, 4), density=0.5, rng=RNG)
S = S.tocsr()
R = sp.random_array((5, 4), density=0.5, format="csr", rng=RNG)
A, B = gs.from_scipy(S), gs.from_scipy(R)
x, X, left = RNG.standard_normal(4), RNG.standard_normal((4, 3)), RNG.standard_normal((2, 5))
D = RNG.standard_normal((5, 4))


def dense(given: Any) -> Any:
    if isinstance(given, gs.SparseMatrix):
        return given.toarray()
    return given.toarray() if sp.issparse(given) else np.asarray(given)


def test_every_name_of_scipy_is_there_or_answered() -> None:
    names = {name for name in dir(S) if not name.startswith("_")}
    missing = {name for name in names if not hasattr(A, name)}
    assert missing == set(INSTEAD), missing ^ set(INSTEAD)
    for name in missing:
        with pytest.raises(AttributeError, match=f"SparseMatrix has no {name}, as SciPy's arrays do: "):
            getattr(A, name)
    with pytest.raises(AttributeError, match="object has no attribute 'no_such_name'"):
        A.no_such_name  # type: ignore[attr-defined]  # noqa: B018


SAME: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda A, B: A.sum(axis=1),
    "mean": lambda A, B: A.mean(axis=0),
    "max": lambda A, B: A.max(),
    "max_rows": lambda A, B: A.max(axis=1),
    "min_cols": lambda A, B: A.min(axis=0),
    "argmax": lambda A, B: A.argmax(),
    "argmax_rows": lambda A, B: A.argmax(axis=1),
    "argmin_cols": lambda A, B: A.argmin(axis=0),
    "argmin": lambda A, B: A.argmin(),
    "count_nonzero": lambda A, B: A.count_nonzero(),
    "count_nonzero_rows": lambda A, B: A.count_nonzero(axis=1),
    "multiply": lambda A, B: A.multiply(B),
    "multiply_dense": lambda A, B: A.multiply(D),
    "multiply_row": lambda A, B: A.multiply(D[0]),
    "multiply_column": lambda A, B: A.multiply(D[:, :1]),
    "over_dense": lambda A, B: A / D,
    "power": lambda A, B: A.power(2),
    "dot": lambda A, B: A.dot(x),
    "maximum": lambda A, B: A.maximum(B),
    "minimum": lambda A, B: A.minimum(B),
    "maximum_number": lambda A, B: A.maximum(-0.1),
    "minimum_number": lambda A, B: A.minimum(0.1),
    "copy": lambda A, B: A.copy(),
    "conj": lambda A, B: (A * 1j).conj(),
    "conjugate": lambda A, B: A.conjugate(),
    "real": lambda A, B: (A * (1 + 2j)).real,
    "imag": lambda A, B: (A * (1 + 2j)).imag,
    "imag_of_real": lambda A, B: A.imag,
    "reshape": lambda A, B: A.reshape((2, 10)),
    "reshape_rest": lambda A, B: A.reshape(-1, 2),
    "transpose": lambda A, B: A.transpose(),
    "toarray": lambda A, B: A.toarray(),
    "todense": lambda A, B: A.todense(),
    "tocsr": lambda A, B: A.tocsr(),
    "row": lambda A, B: A.tocoo().row,
    "col": lambda A, B: A.tocoo().col,
    "columns": lambda A, B: A.tocsc().indptr,
    "data": lambda A, B: A.tocsc().data,
    "nonzero": lambda A, B: np.stack([np.asarray(k) for k in A.nonzero()]),
    "astype": lambda A, B: A.astype(np.float32),
    "ndim": lambda A, B: A.ndim,
    "array": lambda A, B: A @ x,
    "arrays": lambda A, B: A @ X,
    "array_left": lambda A, B: left @ A,
    "list": lambda A, B: A @ list(x),
    "float32": lambda A, B: A @ x.astype(np.float32),
    "plus_dense": lambda A, B: A + D,
    "dense_plus": lambda A, B: D + A,
    "minus_dense": lambda A, B: A - D,
    "dense_minus": lambda A, B: D - A,
    "sum_of_list": lambda A, B: sum([A, B, A]),
    "ne": lambda A, B: A != B,
    "lt": lambda A, B: A < B,
    "gt": lambda A, B: A > B,
    "eq": lambda A, B: A == B,
    "le": lambda A, B: A <= B,
    "ge": lambda A, B: A >= B,
    "gt_zero": lambda A, B: A > 0,
    "gt_number": lambda A, B: A > 0.2,
    "lt_number": lambda A, B: A < 0.2,
    "ne_zero": lambda A, B: A != 0,
    "eq_zero": lambda A, B: A == 0,
    "eq_number": lambda A, B: A == 0.25,
    "eq_dense": lambda A, B: A == D,
}


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # dense answers, SciPy's in CSR
@pytest.mark.parametrize("name", SAME)
def test_equals_scipy(name: str) -> None:
    ours, theirs = SAME[name](A, B), SAME[name](S, R)
    np.testing.assert_allclose(dense(ours), dense(theirs).astype(dense(ours).dtype), rtol=1e-6, atol=1e-12)


def integers(dtype: Any) -> tuple[sp.csr_array, sp.csr_array]:
    many = sp.random_array((6, 6), density=0.5, format="csr", rng=np.random.default_rng(1))
    first = (many * 20).floor().astype(dtype)
    return first - first.T if np.issubdtype(dtype, np.signedinteger) else first, first.T.tocsr()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int16])
@pytest.mark.parametrize("op", ["+", "@", "@ vector", "T @", "max", "argmin", "min", "@ float", "float @"])
def test_integers_stay_exact(dtype: Any, op: str) -> None:
    P, Q = integers(dtype)
    v = np.arange(6, dtype=dtype)
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "+": lambda A, B: A + B,
        "@": lambda A, B: A @ B,
        "@ vector": lambda A, B: A @ v,
        "T @": lambda A, B: A.T @ np.stack([v, v], 1),
        "max": lambda A, B: A.max(axis=0),
        "min": lambda A, B: A.min(axis=1),
        "argmin": lambda A, B: A.argmin(axis=1),
        "@ float": lambda A, B: A @ (v + 0.5),
        "float @": lambda A, B: (A * 0.5) @ B,
    }
    ours, theirs = calls[op](gs.from_scipy(P), gs.from_scipy(Q)), calls[op](P, Q)
    np.testing.assert_array_equal(dense(ours), dense(theirs))


def test_integer_products_beyond_what_float64_counts() -> None:
    big = gs.from_dense(np.array([[2**53, 1]]))
    assert (big @ np.array([1, 1])).tolist() == [2**53 + 1]
    assert (big @ gs.from_dense(np.ones((2, 1), dtype=np.int64))).toarray().tolist() == [[2**53 + 1]]


def test_a_matrix_of_integers_times_learned_numbers() -> None:
    adjacency = gs.from_dense(np.array([[0, 1], [1, 1]]))
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    (adjacency @ w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 2.0]


def test_extremes_of_zeros_that_are_not_stored() -> None:
    """A zero that is stored ties with one that is not: the first place counts, as NumPy has it."""
    for row in ([0, -1, 0, -2], [-1, 0, -2, 0], [-3, -1, -2, -5], [0, 0, 0, 0], [np.nan, 0, 1, np.nan]):
        for kept in (True, False):
            M = (
                gs.from_coo([0] * 4, range(4), [float(v) for v in row], (2, 4))
                if kept
                else gs.from_dense([row, [0] * 4])
            )
            M = M.to(torch.float64)
            for name in ("argmax", "argmin", "max", "min"):
                for axis in (0, 1, None):
                    wanted = getattr(np, name)(M.toarray(), axis=axis)
                    np.testing.assert_array_equal(np.asarray(getattr(M, name)(axis=axis)), wanted)


def test_comparisons_keep_patterns_where_zeros_compare_false() -> None:
    less = A < B
    assert isinstance(less, gs.SparseMatrix)
    assert less.dtype == torch.bool
    assert isinstance(A == B, torch.Tensor)
    assert (A != A).count_nonzero() == 0
    assert len({A, A, B}) == 2  # a set wants objects, not entries
    with pytest.raises(ValueError, match="the truth of a matrix is ambiguous"):
        bool(A != B)


def test_tensors_compare_and_add_from_the_left() -> None:
    T = torch.from_numpy(D)
    for op in (operator.add, operator.sub, operator.mul, operator.eq, operator.lt, operator.ge):
        np.testing.assert_allclose(dense(op(T, A)), op(D, S.toarray()))
    np.testing.assert_allclose(torch.sub(A, T), S.toarray() - D)
    np.testing.assert_allclose(torch.mm(T.T, A), D.T @ S.toarray())


def test_what_would_be_dense_or_infinite_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match=r"add: A \+ 1 would be dense"):
        A + 1
    with pytest.raises(ValueError, match=r"maximum: with 2 the result would be dense: write torch\.maximum"):
        A.maximum(2)
    with pytest.raises(ValueError, match=r"div: A stores \d+ entries that B does not"):
        A / B
    with pytest.raises(TypeError, match="infinite where A stores nothing"):
        D / A
    with pytest.raises(TypeError, match=r"A\.toarray\(\) is dense"):
        np.asarray(A)
    with pytest.raises(ValueError, match=r"reshape: 5 x 4 numbers do not fit the shape \(3, -1\)"):
        A.reshape(3, -1)
    with pytest.raises(ValueError, match="with_diagonal: v has shape"):
        A.with_diagonal(torch.ones(3))
    with pytest.raises(TypeError, match="amax: complex numbers have no order"):
        (A * 1j).max()
    with pytest.raises(ValueError, match=r"multiply: X has shape \(3,\) but A is 5 x 4"):
        A * [1.0, 2.0, 3.0]


def test_forms_go_round() -> None:
    W = A.clone().requires_grad_()
    again = gs.from_coo(*W.tocoo())
    assert gs.allclose(again, A)
    again.values.sum().backward()
    assert W.grad is not None
    np.testing.assert_array_equal(gs.from_dense(D.tolist()).to_dense(), D.astype(np.float32))
    column = A.tocsc()
    np.testing.assert_array_equal(
        sp.csc_array((column.data, column.indices, column.indptr), column.shape).toarray(), dense(A)
    )
