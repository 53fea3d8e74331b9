# SPDX-License-Identifier: BSD-3-Clause
"""A .npz file that one front end saves loads in the other, and so do SciPy's; a damaged one raises in C++ as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from comparison import mutated_npz, same, same_matrix
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gossamer as gs

ops = torch.ops.gossamer_cpp


@pytest.fixture(scope="module", autouse=True)
def front_end(build: Path) -> None:
    library = build / "libgossamer_cpp_front_end.so"
    if not library.exists():
        pytest.skip("no C++ front end: build the release preset with GOSSAMER_TESTS=torch")
    torch.ops.load_library(library)


def cpp_load(path: Path) -> gs.SparseMatrix:
    values, shape, indptr, indices = ops.load_npz(str(path))
    return gs.SparseMatrix(indptr, indices, values, shape.tolist())


def cpp_save(path: Path, A: gs.SparseMatrix, compressed: bool) -> None:
    ops.save_npz(str(path), [A.values, torch.tensor(A.shape), A.indptr, A.indices], compressed)


def matrix(dtype: type) -> scipy.sparse.csr_array:
    S = scipy.sparse.random_array((20, 30), density=0.2, rng=np.random.default_rng(0)).tocsr()
    S.data = (100 * S.data).astype(np.int64).astype(dtype)
    return S


@pytest.mark.parametrize("compressed", [True, False], ids=["deflated", "stored"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.int8, np.bool_])
def test_either_front_end_reads_the_other(tmp_path: Path, dtype: type, compressed: bool) -> None:
    S = matrix(dtype)
    A, path = gs.from_scipy(S), tmp_path / "a.npz"
    cpp_save(path, A, compressed)
    same_matrix(gs.load_npz(path), A)
    same(A, scipy.sparse.load_npz(path))
    wide = A.to(index_dtype=torch.int64)
    gs.save_npz(path, wide, compressed)
    same_matrix(cpp_load(path), wide)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False], ids=["deflated", "stored"])
def test_scipys_files_load(tmp_path: Path, format: str, compressed: bool) -> None:
    S = matrix(np.float64)
    for kind in (scipy.sparse.csr_array(S), scipy.sparse.csr_matrix(S)):
        scipy.sparse.save_npz(tmp_path / "a.npz", kind.asformat(format), compressed)
        same_matrix(cpp_load(tmp_path / "a.npz"), gs.load_npz(tmp_path / "a.npz"))


def test_unsorted_repeated_and_of_the_other_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    unsorted = scipy.sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), (2, 3))
    scipy.sparse.save_npz(path, unsorted)
    assert cpp_load(path).to_dense().tolist() == [[2.0, 0.0, 5.0], [0.0, 0.0, 0.0]]
    for text in (np.array("csr"), np.array(b"csr")):
        swapped = {"indices": np.array([0, 2], ">i4"), "indptr": np.array([0, 1, 2], ">i8").astype(">i4")}
        np.savez(path, format=text, shape=np.array([2, 3], ">i8"), data=np.array([1 + 2j, 3], ">c16"), **swapped)
        assert cpp_load(path).to_dense().tolist() == [[1 + 2j, 0, 0], [0, 0, 3]]


def test_faults_are_named_as_python_names_them(tmp_path: Path) -> None:
    good = {"format": np.array(b"csr"), "shape": np.array([2, 3]), "data": np.ones(2)}
    good |= {"indices": np.array([0, 2], np.int32), "indptr": np.array([0, 1, 2], np.int32)}
    faults = {
        "it has no array 'data'; is it a sparse matrix?": {"data": None},
        "its data is of type O, which is not read": {"data": np.array([1, "x"], dtype=object)},
        "its data is f8 of 2 dimensions": {"data": np.ones((2, 1))},
        "its indices is f8 of 1 dimensions": {"indices": np.ones(2)},
        "its shape is not (rows, cols)": {"shape": np.array([2, 3, 4])},
        "its format is 'bsr', not csr, csc or coo: save A.tocsr() instead": {"format": np.array(b"bsr")},
        "column 3 in row 1 is outside the 3 columns": {"indices": np.array([0, 3], np.int32)},
        "indptr ends at 7 but there are 2 indices": {"indptr": np.array([0, 1, 7], np.int32)},
        "indptr decreases": {"indptr": np.array([0, 3, 2], np.int32)},
        "values has shape (5,) but the pattern has 2 entries": {"data": np.ones(5)},
    }
    path = tmp_path / "a.npz"
    for message, change in faults.items():
        np.savez(path, **{key: value for key, value in (good | change).items() if value is not None})
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            ops.load_npz(str(path))
        assert str(caught.value).startswith(f"load_npz: {path}: ")
        assert message in str(caught.value)
    np.save(tmp_path / "b.npy", np.ones(3))
    with pytest.raises(ValueError, match="it holds a single array, not a sparse matrix"):
        ops.load_npz(str(tmp_path / "b.npy"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2000), st.integers(0, 8), st.binary(max_size=8))
@example(0, 0, b"")
def test_mutations_raise_or_read_well(tmp_path: Path, at: int, length: int, new: bytes) -> None:
    try:
        cpp_load(mutated_npz(tmp_path, at, length, new))
    except ValueError:
        return
