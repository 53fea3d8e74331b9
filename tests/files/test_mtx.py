# SPDX-License-Identifier: BSD-3-Clause
"""MatrixMarket files: equal to SciPy's reading, exact round trips, an error with its line for every fault."""

from __future__ import annotations

import gzip
import itertools
import resource
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from comparison import BANNER, same, same_matrix, scipy_reads, text_file

import gossamer as gs

FIELDS = {"real": torch.float64, "integer": torch.int64, "complex": torch.complex128, "pattern": torch.float64}


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


@pytest.mark.parametrize(
    ("field", "symmetry"),
    [
        *itertools.product(["real", "integer", "complex"], ["general", "symmetric", "skew-symmetric"]),
        ("complex", "hermitian"),
    ],
)
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_array(tmp_path: Path, field: str, symmetry: str, n: int) -> None:
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


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16], ids=str)
def test_numbers_that_do_not_fit_a_type_are_refused(tmp_path: Path, dtype: torch.dtype) -> None:
    path = text_file(tmp_path, "%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 7\n1 2 70000\n")
    with pytest.raises(ValueError, match="has numbers that do not fit"):
        gs.read_mtx(path, dtype=dtype)
    assert gs.read_mtx(path, dtype=torch.int32).values.tolist() == [7, 70000]


@pytest.mark.parametrize("numbers", ["nan", "inf", "-inf"])
def test_what_is_not_finite_fits_every_float(tmp_path: Path, numbers: str) -> None:
    path = text_file(tmp_path, f"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {numbers}\n")
    assert str(gs.read_mtx(path, dtype=torch.float16).values.item()) == numbers


def test_a_path_with_a_nul_is_refused(tmp_path: Path) -> None:
    for call in (gs.read_mtx, lambda path: gs.write_mtx(path, gs.eye(2))):
        with pytest.raises(ValueError, match="the path has a NUL in it"):
            call(f"{tmp_path}/a.mtx\0b")
    assert list(tmp_path.iterdir()) == []
