# SPDX-License-Identifier: BSD-3-Clause
"""Files of given text, and matrices that came out of a file beside those that should have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
import torch

import gossamer as gs

BANNER = "%%MatrixMarket matrix coordinate real general\n"


def text_file(folder: Path, text: str | bytes, name: str = "a.mtx") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def mutated_npz(folder: Path, at: int, length: int, new: bytes) -> Path:
    """A good .npz file, some bytes of which are others."""
    gs.save_npz(folder / "good.npz", gs.poisson(5, dtype=torch.float64), compressed=at % 2 == 0)
    contents = bytearray((folder / "good.npz").read_bytes())
    at %= len(contents)
    contents[at : at + length] = new
    return text_file(folder, bytes(contents), "a.npz")


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
