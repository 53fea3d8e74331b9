# SPDX-License-Identifier: BSD-3-Clause
"""MatrixMarket and .npz files: equal to SciPy's reading, exact round trips, an error with its line for every fault."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gossamer as gs

BANNER = "%%MatrixMarket matrix coordinate real general\n"
FIELDS = {"real": torch.float64, "integer": torch.int64, "complex": torch.complex128, "pattern": torch.float64}


def text_file(folder: Path, text: str | bytes, name: str = "a.mtx") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def scipy_reads(path: Path) -> np.ndarray | scipy.sparse.coo_array:
    """SciPy's reading of the tidied file: 1.17 crashes on some layouts, and knows no comments after the size line."""
    head, *rest = path.read_bytes().split(b"\n")
    lines = [head] + [b" ".join(line.split()) for line in rest]
    tidy = path.with_name("tidy.mtx")
    tidy.write_bytes(b"".join(line + b"\n" for line in lines if line and (line is head or line[:1] != b"%")))
    return scipy.io.mmread(tidy, spmatrix=False)


def same(A: gs.SparseMatrix | torch.Tensor, wanted: np.ndarray | scipy.sparse.coo_array) -> None:
    """Bit for bit, the pattern included; NaN equals NaN."""
    if isinstance(A, torch.Tensor):
        assert A.shape == wanted.shape
        np.testing.assert_array_equal(A.numpy(), wanted)
        return
    csr = wanted.tocsr()
    csr.sum_duplicates()
    gs.Pattern(A.indptr, A.indices, A.shape)  # is well formed
    assert A.shape == csr.shape
    np.testing.assert_array_equal(A.indptr.numpy(), csr.indptr)
    np.testing.assert_array_equal(A.indices.numpy(), csr.indices)
    np.testing.assert_array_equal(A.values.numpy(), csr.data)


def same_matrix(A: gs.SparseMatrix, B: gs.SparseMatrix | torch.Tensor) -> None:
    assert isinstance(B, gs.SparseMatrix)
    assert A.pattern == B.pattern
    assert A.dtype is B.dtype
    assert torch.equal(A.values.nan_to_num(7.0), B.values.nan_to_num(7.0))


def test_the_matrices_of_the_collection(data: Path, tmp_path: Path) -> None:
    paths = sorted((data / "matrices").glob("*.mtx*"))
    assert len(paths) > 20
    for path in paths:
        A = gs.read_mtx(path)
        same(A, scipy.io.mmread(path, spmatrix=False))
        gs.write_mtx(tmp_path / "again.mtx", A)
        B = gs.read_mtx(tmp_path / "again.mtx")
        if isinstance(A, torch.Tensor):
            assert torch.equal(A, B)
        else:
            same_matrix(A, B)


ENTRIES = {"real": "-2.5e-3", "integer": "-7", "complex": "1.5 -2", "pattern": ""}


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_coordinate(tmp_path: Path, field: str, symmetry: str, ends: str) -> None:
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", "% a comment", "", "%%another", " 4\t4 3"]
    lines += [f"3 1 {ENTRIES[field]}", "", f"   4 2   {ENTRIES[field]}  ", f"4\t1 {ENTRIES[field]}"]
    path = text_file(tmp_path, ends.join(lines))  # without a last line end
    if (symmetry, field) == ("skew-symmetric", "pattern") or (symmetry == "hermitian" and field != "complex"):
        with pytest.raises(ValueError, match=r"a.mtx:1: a "):
            gs.read_mtx(path)
        return
    A = gs.read_mtx(path)
    assert A.dtype is FIELDS[field]
    assert A.indices.dtype is torch.int32
    same(A, scipy_reads(path))
    assert A.nnz == (3 if symmetry == "general" else 6)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("field", ["real", "integer", "complex"])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_array(tmp_path: Path, field: str, symmetry: str, n: int) -> None:
    if symmetry == "hermitian" and field != "complex":
        pytest.skip("hermitian is for complex")
    rows = n + 1 if symmetry == "general" else n
    dense = torch.arange(1, rows * n + 1).reshape(rows, n).to(FIELDS[field])
    dense = dense * (1 + 2j) if field == "complex" else dense
    if symmetry != "general":
        other = dense.mH.resolve_conj() if symmetry == "hermitian" else dense.T
        dense = dense - other if symmetry == "skew-symmetric" else dense + other
    gs.write_mtx(tmp_path / "a.mtx", dense, symmetry=symmetry)
    again = gs.read_mtx(tmp_path / "a.mtx")
    assert isinstance(again, torch.Tensor)
    assert again.dtype is dense.dtype
    assert torch.equal(again, dense)
    if n:
        same(again, scipy.io.mmread(tmp_path / "a.mtx"))


def test_large_files_in_parallel(tmp_path: Path) -> None:
    """Enough for several parts; the result and the text are the same for every number of threads."""
    rng = np.random.default_rng(0)
    n = 600_000
    rows, cols = rng.integers(0, 50_000, n), rng.integers(0, 40, n)
    rows, cols = np.maximum(rows, cols), np.minimum(rows, cols)
    values = rng.standard_normal(n)
    for symmetry in ["general", "symmetric"]:
        size = "50000 50000"
        triplets = zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)
        body = "\n".join(f"{i + 1} {j + 1} {v!r}" for i, j, v in triplets)
        path = text_file(tmp_path, f"%%MatrixMarket matrix coordinate real {symmetry}\n{size} {n}\n{body}\n")
        found, texts = [], []
        for threads in [1, 2, 5]:
            torch.set_num_threads(threads)
            found.append(gs.read_mtx(path))
            gs.write_mtx(tmp_path / "b.mtx", found[-1], symmetry=symmetry)
            texts.append((tmp_path / "b.mtx").read_bytes())
            same_matrix(found[0], found[-1])
            same_matrix(found[0], gs.read_mtx(tmp_path / "b.mtx"))
        assert texts[0] == texts[1] == texts[2]
        wanted = scipy.io.mmread(path, spmatrix=False).tocsr()
        assert np.array_equal(found[0].indices.numpy(), wanted.indices)
        np.testing.assert_allclose(found[0].values.numpy(), wanted.data, rtol=1e-12, atol=1e-14)
        lines = path.read_text().splitlines()
        lines[n // 2], lines[n - 5] = "1 0 3", "broken"
        with pytest.raises(ValueError, match=rf"a.mtx:{n // 2 + 1}: column 0 is outside the 50000 columns"):
            gs.read_mtx(text_file(tmp_path, "\n".join(lines)))
        with pytest.raises(ValueError, match=rf"a.mtx:{n + 3}: there are more than the announced {n} entries"):
            gs.read_mtx(text_file(tmp_path, path.read_text() + "\n1 1 1\n"))


def test_large_arrays_in_parallel(tmp_path: Path) -> None:
    torch.set_num_threads(3)
    dense = torch.randn(700, 700, dtype=torch.float64)
    for symmetry, A in {"general": dense, "symmetric": dense + dense.T, "skew-symmetric": dense - dense.T}.items():
        gs.write_mtx(tmp_path / "a.mtx", A, symmetry=symmetry)
        assert torch.equal(gs.read_mtx(tmp_path / "a.mtx"), A)


def test_unsorted_duplicates_and_zeros(tmp_path: Path) -> None:
    path = text_file(tmp_path, BANNER + "2 3 6\n2 3 1\n1 2 0\n2 1 5\n2 3 2\n1 2 0\n2 3 -3\n")
    A = gs.read_mtx(path)
    assert A.indices.tolist() == [1, 0, 2]
    assert A.values.tolist() == [0.0, 5.0, 0.0]  # zeros are stored zeros, also where they are sums


def test_numbers(tmp_path: Path) -> None:
    texts = ["+1", "-0", ".5", "5.", "1e5", "1E-5", "nan", "-inf", "Infinity", "1e-400", "4.9e-324", "0.1"]
    body = "".join(f"1 {k + 1} {text}\n" for k, text in enumerate(texts))
    A = gs.read_mtx(text_file(tmp_path, BANNER + f"1 {len(texts)} {len(texts)}\n" + body))
    np.testing.assert_array_equal(A.values.numpy(), [float(text) for text in texts])
    assert torch.signbit(A.values[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64])
def test_values_round_trip_exactly(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = torch.randn(4000, dtype=dtype) * torch.tensor(2.0).pow(torch.randint(-12, 12, (4000,))).to(dtype)
    A = gs.from_coo(torch.arange(4000) % 50, torch.arange(4000) // 50, values, (50, 80))
    gs.write_mtx(tmp_path / "a.mtx", A)
    same_matrix(A, gs.read_mtx(tmp_path / "a.mtx", dtype=dtype))


def test_extreme_values_round_trip(tmp_path: Path) -> None:
    info, nan = torch.finfo(torch.float64), float("nan")
    reals = torch.tensor([info.max, info.tiny, 5e-324, -0.0, 1 / 3, nan, float("inf")], dtype=torch.float64)
    for values in [reals, torch.complex(reals, reals.flip(0)), torch.tensor([2**63 - 1, -(2**63), 0])]:
        A = gs.from_coo(torch.arange(len(values)), torch.zeros(len(values), dtype=torch.int64), values, (7, 1))
        A = A.with_values(values)
        gs.write_mtx(tmp_path / "a.mtx", A)
        B = gs.read_mtx(tmp_path / "a.mtx")
        np.testing.assert_array_equal(A.values.numpy(), B.values.numpy())
        if not values.is_complex():
            same(B, scipy.io.mmread(tmp_path / "a.mtx", spmatrix=False))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (4, 5)])
def test_empty_matrices(tmp_path: Path, shape: tuple[int, int]) -> None:
    A = gs.from_coo([], [], torch.zeros(0, dtype=torch.float64), shape)
    gs.write_mtx(tmp_path / "a.mtx", A)
    same_matrix(A, gs.read_mtx(tmp_path / "a.mtx"))
    gs.write_mtx(tmp_path / "a.mtx", torch.zeros(shape)[:0] if shape[1] else torch.zeros(shape))
    assert gs.read_mtx(tmp_path / "a.mtx").numel() == 0


def test_comments_symmetry_pattern_and_dtype(tmp_path: Path, device: torch.device) -> None:
    path = tmp_path / "a.mtx"
    A = gs.poisson((4, 5), dtype=torch.float64, device=device).requires_grad_()
    gs.write_mtx(path, A, comment="one\ntwo\r\n3 3 3", symmetry="symmetric")
    lines = path.read_text().splitlines()
    assert lines[:6] == [
        "%%MatrixMarket matrix coordinate real symmetric", "%one", "%two", "%", "%3 3 3", "20 20 51"
    ]  # fmt: skip
    B = gs.read_mtx(path, dtype=torch.float32, device=device)
    assert B.dtype is torch.float32
    assert B.device == device
    assert torch.equal(B.to_dense().double(), A.detach().to_dense())
    gs.write_mtx(path, A.pattern, symmetry="symmetric")
    assert path.read_text().startswith("%%MatrixMarket matrix coordinate pattern symmetric\n20 20 51\n1 1\n")
    assert gs.read_mtx(path).pattern == A.pattern.to("cpu")


def test_gzip_by_content(tmp_path: Path) -> None:
    A = gs.poisson(1000, dtype=torch.float64)
    gs.write_mtx(tmp_path / "a.mtx", A)
    gs.write_mtx(tmp_path / "a.mtx.gz", A)
    plain = (tmp_path / "a.mtx").read_bytes()
    assert gzip.decompress((tmp_path / "a.mtx.gz").read_bytes()) == plain
    same(gs.read_mtx(tmp_path / "a.mtx.gz"), scipy.io.mmread(tmp_path / "a.mtx.gz", spmatrix=False))
    zipped = gzip.compress(plain[:5000]) + gzip.compress(plain[5000:])  # two members, and a name that does not tell
    same_matrix(A, gs.read_mtx(text_file(tmp_path, zipped, "b.mtx")))
    with pytest.raises(ValueError, match=r"c.mtx: the gzipped data is cut off"):
        gs.read_mtx(text_file(tmp_path, gzip.compress(plain)[:-500], "c.mtx"))
    damaged = bytearray(gzip.compress(plain))
    damaged[len(damaged) // 2] ^= 255
    with pytest.raises(ValueError, match=r"c.mtx"):
        gs.read_mtx(text_file(tmp_path, bytes(damaged), "c.mtx"))


FAULTS = [
    ("", 1, "the file is empty"),
    ("2 2 1\n1 1 1\n", 1, "a MatrixMarket file begins with '%%MatrixMarket matrix', format, field and symmetry"),
    ("%%MatrixMarket matrix coordinate real\n", 1, "a MatrixMarket file begins with"),
    ("%%MatrixMarket matrix coordinate real general more\n", 1, "a MatrixMarket file begins with"),
    ("%%MatrixMurket matrix coordinate real general\n", 1, "the first word is '%%MatrixMurket', not one of"),
    ("%%MatrixMarket vector coordinate real general\n", 1, "the object is 'vector', not one of matrix"),
    ("%%MatrixMarket matrix sparse real general\n", 1, "the format is 'sparse', not one of coordinate, array"),
    ("%%MatrixMarket matrix coordinate float general\n", 1, "the field is 'float', not one of real, integer,"),
    ("%%MatrixMarket matrix coordinate real odd\n", 1, "the symmetry is 'odd', not one of general, symmetric,"),
    ("%%MatrixMarket matrix array pattern general\n", 1, "an array file cannot have the field pattern"),
    ("%%MatrixMarket matrix coordinate real hermitian\n", 1, "a hermitian file must have the field complex"),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n", 1, "a pattern has no values to negate"),
    (BANNER, 2, "the file ends before its size line"),
    (BANNER + "% only\n\n", 4, "the file ends before its size line"),
    (BANNER + "2 2\n", 2, "the number of entries is missing"),
    (BANNER + "2 -2 1\n", 2, "the number of columns is '-2', not a size"),
    (BANNER + "2 2.0 1\n", 2, "the number of columns is '2.0', not a size"),
    (BANNER + "99999999999999999999 2 1\n", 2, "the number of rows is too large: '99999999999999999999'"),
    (BANNER + "2 2 1 1\n", 2, "the size line has '1' after its last number"),
    (BANNER + "2 2 2\n1 1 1\n", 3, "the file ends after 1 of 2 entries"),
    (BANNER + "2 2 9000000000000000000\n1 1 1\n", 3, "the file ends after 1 of 9000000000000000000 entries"),
    (BANNER + "2 2 1\n1 1 1\n% more\n2 2 2\n", 5, "there are more than the announced 1 entries"),
    (BANNER + "9000000000000000000 2 1\n1 1 1\n", 2, "9000000000000000000 rows for 1 entries are too many"),
    (BANNER + "1000000000 2 1\n1 1 1\n", 2, "1000000000 rows for 1 entries are too many for a CSR matrix"),
    (BANNER + "5 8 1\n\n1 9 1\n", 4, "column 9 is outside the 8 columns"),
    (BANNER + "5 8 1\n6 8 1\n", 3, "row 6 is outside the 5 rows"),
    (BANNER + "5 8 1\n0 8 1\n", 3, "row 0 is outside the 5 rows"),
    (BANNER + "5 8 1\n-1 8 1\n", 3, "row -1 is outside the 5 rows"),
    (BANNER + "5 8 1\n1 99999999999999999999999999 1\n", 3, "column '999999999999999999999999…' is outside"),
    (BANNER + "5 8 1\n1 18446744073709551617 1\n", 3, "column 18446744073709551617 is outside the 8 columns"),
    (BANNER + "5 8 1\n1\n", 3, "the column is missing"),
    (BANNER + "5 8 1\n1 1.0 1\n", 3, "the column is '1.0', not a whole number"),
    (BANNER + "5 8 1\n1 1\n", 3, "a value is missing"),
    (BANNER + "5 8 1\n1 1 x\n", 3, "'x' is not a number"),
    (BANNER + "5 8 1\n1 1 1.0D0\n", 3, "'1.0D0' is not a number"),
    (BANNER + "5 8 1\n1 1 +-1\n", 3, "'+-1' is not a number"),
    (BANNER + "5 8 1\n1 1 0x10\n", 3, "'0x10' is not a number"),
    (BANNER + "5 8 1\n1 1 1e400\n", 3, "'1e400' is too large for float64"),
    (BANNER + "5 8 1\n1 1 -1e400\n", 3, "'-1e400' is too large for float64"),
    (BANNER + "5 8 1\n1 1 1" + "0" * 400 + "e-10\n", 3, "is too large for float64"),
    (BANNER + "5 8 1\n1 1 1 1\n", 3, "'1' follows the last number of the entry"),
    (BANNER + "5 8 1\r1 1 1\r", 2, "the size line has '1' after its last number"),
    (BANNER.encode() + b"5 8 1\n1 1 \xff\xfe\x00\x1b\n", 3, "'????' is not a number"),
    (BANNER.replace("real", "integer") + "5 8 1\n1 1 1.5\n", 3, "'1.5' is not a whole number"),
    (BANNER.replace("real", "integer") + "5 8 1\n1 1 9223372036854775808\n", 3, "is too large for int64"),
    (BANNER.replace("real", "complex") + "5 8 1\n1 1 1.5\n", 3, "a value is missing"),
    (BANNER.replace("real", "pattern") + "5 8 1\n1 1 1.5\n", 3, "'1.5' follows the last number of the entry"),
    (BANNER.replace("general", "symmetric") + "5 8 1\n1 1 1\n", 2, "a symmetric matrix is square, not 5 x 8"),
    (BANNER.replace("general", "symmetric") + "5 5 1\n1 2 1\n", 3, "entry (1, 2) is above the diagonal, but a sym"),
    (BANNER.replace("general", "skew-symmetric") + "5 5 1\n2 2 1\n", 3, "entry (2, 2) is on the diagonal of a skew"),
    (BANNER.replace("real general", "complex hermitian") + "5 5 1\n2 2 1 1\n", 3, "entry (2, 2) is on the diagonal"),
    (BANNER.replace("coordinate", "array") + "2 2\n1\n2\n3\n", 5, "the file ends after 3 of 4 entries"),
    (BANNER.replace("coordinate", "array") + "2 1\n1 2\n\n3\n", 3, "'2' follows the last number of the entry"),
    (BANNER.replace("coordinate", "array") + "9000000000 9000000000\n1\n", 2, "the array is too large"),
    (BANNER.replace("coordinate", "array") + "1000000 1000000\n1\n", 3, "the file ends after 1 of 1000000000000"),
]


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(("text", "line", "message"), FAULTS, ids=range(len(FAULTS)))
def test_faults_are_named_with_their_line(
    tmp_path: Path, text: str | bytes, line: int, message: str, inference: bool
) -> None:
    path = text_file(tmp_path, text)
    with torch.inference_mode(inference), pytest.raises(ValueError) as caught:  # noqa: PT011
        gs.read_mtx(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    A = gs.eye(2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match=r"none.mtx"):
        gs.read_mtx(tmp_path / "none.mtx")
    with pytest.raises(IsADirectoryError):
        gs.read_mtx(tmp_path)
    with pytest.raises(ValueError, match=r"pipe: is not a regular file"):
        gs.read_mtx(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        gs.write_mtx(tmp_path / "none" / "a.mtx", A)
    with pytest.raises(IsADirectoryError):
        gs.write_mtx(tmp_path, A)
    with pytest.raises(FileNotFoundError):
        gs.load_npz(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        gs.save_npz(tmp_path / "none" / "a.npz", A)


def test_bad_arguments(tmp_path: Path) -> None:
    path, A = tmp_path / "a.mtx", gs.eye(2)
    tall = gs.eye(3, 2)
    mistakes = [
        (
            lambda: gs.write_mtx(path, [[1]]),
            TypeError,
            "A must be a SparseMatrix, a Pattern or a torch.Tensor, not list",
        ),
        (lambda: gs.write_mtx(path, torch.ones(3)), ValueError, "wants a matrix, not 1 dimensions"),
        (lambda: gs.write_mtx(path, A, symmetry="odd"), ValueError, "symmetry must be general, symmetric, skew"),
        (lambda: gs.write_mtx(path, tall, symmetry="symmetric"), ValueError, "A is 3 x 2, so it cannot be symmetric"),
        (lambda: gs.write_mtx(path, A, symmetry="skew-symmetric"), ValueError, "A is not skew-symmetric"),
        (lambda: gs.write_mtx(path, A, symmetry="hermitian"), ValueError, "hermitian is for complex values"),
        (lambda: gs.write_mtx(path, A.pattern, symmetry="skew-symmetric"), ValueError, "a pattern has no values"),
        (lambda: gs.write_mtx(path, torch.ones(2, 3).triu(), symmetry="symmetric"), ValueError, "A is 2 x 3"),
        (lambda: gs.write_mtx(path, torch.ones(2, 2).triu(), symmetry="symmetric"), ValueError, "A is not symmetric"),
        (lambda: gs.write_mtx(path, A.with_values(torch.ones(2, 3))), ValueError, "values has shape (2, 3)"),
        (lambda: gs.save_npz(path, torch.ones(2, 2)), TypeError, "save_npz: A must be a SparseMatrix, not Tensor"),
        (lambda: gs.save_npz(path, A.with_values(torch.ones(2, 3))), ValueError, "values has shape (2, 3)"),
        (lambda: gs.save_npz(path, A.to(torch.bfloat16)), TypeError, "save_npz: NumPy has no bfloat16"),
    ]
    for mistake, kind, message in mistakes:
        with pytest.raises(kind) as caught:
            mistake()
        assert message in str(caught.value)
    assert not list(tmp_path.iterdir())
    gs.write_mtx(path, A.to(torch.complex64))
    with pytest.raises(TypeError, match=r"is complex, which does not fit Float"):
        gs.read_mtx(path, dtype=torch.float32)


VALID = [
    BANNER + "% c\n4 5 3\n1 2 3.5\n4 5 -1e3\n2 2 0\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 5\n3 1 -2\n3 2 7\n",
    "%%MatrixMarket matrix coordinate complex general\n3 2 2\n1 1 5 1\n3 2 -2 .5\n",
    "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutations_raise_or_read_as_scipy_reads(tmp_path: Path, data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from(VALID)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1)) if text else 0
        end = at + data.draw(st.integers(0, 4))
        text[at:end] = data.draw(
            st.sampled_from([b"", b" ", b"\n", b"\r\n", b"%", b"0", b"9", b"-", b".", b"e", b"\xff"])
        )
    path = text_file(tmp_path, bytes(text))
    try:
        A = gs.read_mtx(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}:")  # noqa: PT017
        return
    same(A, scipy_reads(path))


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
def test_writing_is_atomic(tmp_path: Path, name: str) -> None:
    """A full disk (here: a limit on the size of files) leaves the old file, and nothing else."""
    path = tmp_path / name
    write = gs.save_npz if name.endswith("npz") else gs.write_mtx
    write(path, gs.eye(3))
    path.chmod(0o640)
    old = path.read_bytes()
    script = f"""
        import errno, resource, torch, gossamer as gs
        A = gs.random(500, 500, 0.5)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        try:
            gs.{write.__name__}({str(path)!r}, A)
        except OSError as error:
            assert error.errno == errno.EFBIG, error
        else:
            raise SystemExit("it was written")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == old
    write(path, gs.eye(4))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link.npz").symlink_to(path)
    if name == "a.npz":
        write(tmp_path / "link.npz", gs.eye(5))
        assert (tmp_path / "link.npz").is_symlink()
        assert gs.load_npz(path).shape == (5, 5)


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    gs.write_mtx(path, gs.eye(3))
    script = f"""
        import resource, signal, gossamer as gs
        A = gs.random(500, 500, 0.5)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        gs.write_mtx({str(path)!r}, A)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)]).returncode < 0
    same_matrix(gs.eye(3, dtype=torch.float64), gs.read_mtx(path))


def test_a_lying_header_allocates_nothing(tmp_path: Path) -> None:
    sizes = ["1000000000000 5 1", "5 5 400000000000", "5 1000000000000 1"]
    for text in [BANNER + f"{size}\n1 1 1\n" for size in sizes]:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            A = gs.read_mtx(text_file(tmp_path, text))
        except ValueError:
            pass
        else:
            assert A.indices.dtype is torch.int64
            assert A.shape == (5, 10**12)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # KB


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
    S = scipy.sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    scipy.sparse.save_npz(tmp_path / "a.npz", S)
    A = gs.load_npz(tmp_path / "a.npz")
    assert A.to_dense().tolist() == [[2.0, 0.0, 5.0], [0.0, 0.0, 0.0]]
    assert A.nnz == 2


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
    gs.save_npz(tmp_path / "good.npz", gs.poisson(5, dtype=torch.float64), compressed=at % 2 == 0)
    contents = bytearray((tmp_path / "good.npz").read_bytes())
    at %= len(contents)
    contents[at : at + length] = new
    try:
        A = gs.load_npz(text_file(tmp_path, bytes(contents), "a.npz"))
    except ValueError:
        return
    gs.Pattern(A.indptr, A.indices, A.shape)
