# SPDX-License-Identifier: BSD-3-Clause
"""SciPy's .npz files, both ways; a damaged one raises and names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from comparison import mutated_npz, same, same_matrix
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gossamer as gs


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.int8, np.bool_])
def test_npz_both_ways(tmp_path: Path, dtype: type) -> None:
    S = scipy.sparse.random_array((20, 30), density=0.2, rng=np.random.default_rng(0)).tocsr()
    S.data = (100 * S.data).astype(np.int64).astype(dtype)
    A = gs.from_scipy(S)
    gs.save_npz(tmp_path / "ours", A)  # .npz is added, as SciPy does
    back = scipy.sparse.load_npz(tmp_path / "ours.npz")
    assert isinstance(back, scipy.sparse.csr_array)
    assert back.dtype == S.dtype
    same(A, back)
    for format in ["csr", "csc", "coo"]:
        for matrix in [S.asformat(format), scipy.sparse.csr_matrix(S).asformat(format)]:
            scipy.sparse.save_npz(tmp_path / "theirs.npz", matrix)
            B = gs.load_npz(tmp_path / "theirs.npz")
            same_matrix(A, B)


def test_npz_unsorted_and_repeated(tmp_path: Path) -> None:
    for indptr, dense in [([0, 3, 3], [[2, 0, 5], [0, 0, 0]]), ([0, 0, 3], [[0, 0, 0], [2, 0, 5]])]:
        S = scipy.sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array(indptr)), shape=(2, 3))
        scipy.sparse.save_npz(tmp_path / "a.npz", S)
        A = gs.load_npz(tmp_path / "a.npz")
        assert A.to_dense().tolist() == dense
        assert A.nnz == 2


def test_npz_repeated_and_sorted(tmp_path: Path) -> None:
    """SciPy writes what it has: entries that stand twice, side by side, are added."""
    data, indices, indptr = np.array([1.0, 2.0, 4.0]), np.array([0, 1, 1]), np.array([0, 3, 3])
    A = scipy.sparse.csr_array((data, indices, indptr), (2, 3))
    scipy.sparse.save_npz(tmp_path / "A.npz", A)
    assert gs.load_npz(tmp_path / "A.npz").to_dense().tolist() == A.toarray().tolist()


def test_npz_faults(tmp_path: Path) -> None:
    good = {"format": np.array(b"csr"), "shape": np.array([2, 3]), "data": np.ones(2)}
    good |= {"indices": np.array([0, 2], np.int32), "indptr": np.array([0, 1, 2], np.int32)}
    faults = {
        "it has no array 'data'": {"data": None},
        "its data is object of shape": None,
        "its data is float64 of shape (2, 1)": {"data": np.ones((2, 1))},
        "its indices is float64 of shape (2,)": {"indices": np.ones(2)},
        "its shape is (2, 3, 4), not (rows, cols)": {"shape": np.array([2, 3, 4])},
        "its format is 'bsr', not csr, csc or coo": {"format": np.array(b"bsr")},
        "indptr has 3 entries but a matrix of 5 rows needs 6": {"shape": np.array([5, 3])},
        "column 3 in row 1 is outside the 3 columns": {"indices": np.array([0, 3], np.int32)},
        "indptr ends at 7 but there are 2 indices": {"indptr": np.array([0, 1, 7], np.int32)},
        "indptr decreases": {"indptr": np.array([0, 3, 2], np.int32)},
        "values has shape (5,) but the pattern has 2 entries": {"data": np.ones(5)},
    }
    path = tmp_path / "a.npz"
    for message, change in faults.items():
        arrays = good | (change or {"data": np.array([1, "x"], dtype=object)})
        np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            gs.load_npz(path)
        assert str(caught.value).startswith(f"load_npz: {path}")
        assert message in str(caught.value) or change is None
    np.save(tmp_path / "b.npy", np.ones(3))
    with pytest.raises(ValueError, match="it holds a single array"):
        gs.load_npz(tmp_path / "b.npy")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2000), st.integers(0, 8), st.binary(max_size=8))
@example(0, 0, b"")
def test_npz_mutations_raise_or_read_well(tmp_path: Path, at: int, length: int, new: bytes) -> None:
    try:
        A = gs.load_npz(mutated_npz(tmp_path, at, length, new))
    except ValueError:
        return
    gs.Pattern(A.indptr, A.indices, A.shape)
