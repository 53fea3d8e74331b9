# SPDX-License-Identifier: BSD-3-Clause
"""MatrixMarket files, .mtx and .mtx.gz. They are read and written in C++."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._files import PathLike
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix


def read_mtx(
    path: PathLike,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    *,
    max_bytes: int | None = None,
) -> SparseMatrix | Tensor:
    """Read a MatrixMarket file, gzipped or not: a coordinate file gives a SparseMatrix, an array file a dense Tensor.

    real gives float64, integer int64, complex complex128, pattern ones in float64, unless ``dtype`` says otherwise.
    Symmetric, skew-symmetric and hermitian files are mirrored; duplicates are added; stored zeros stay stored. What is
    wrong with the contents raises ValueError with the name of the file and the number of the line. What a file may ask
    for, unzipped and with an index for every row, is 64 times its size and at least 1 GiB, or ``max_bytes``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gs.write_mtx(folder + "/eye.mtx", gs.eye(2))
    ...     gs.read_mtx(folder + "/eye.mtx")
    SparseMatrix(2 x 2, nnz=2, float64, int32, cpu)
    """
    name = os.fspath(path)
    long = Path(name).is_file() and Path(name).stat().st_size >= _interrupt.LARGE
    given = name, dtype, max_bytes
    parts, rows, cols, error = _interrupt.called(long, torch.ops.gossamer.read_mtx, *given)
    if error:
        raise OSError(error, os.strerror(error), name)
    if len(parts) == 1:
        return parts[0].to(device)
    indptr, indices, values = parts
    return SparseMatrix(indptr, indices, values, (rows, cols), check=False).to(device)


def write_mtx(
    path: PathLike, A: SparseMatrix | Pattern | Tensor, comment: str | None = None, symmetry: str = "general"
) -> None:
    """Write a MatrixMarket file: a SparseMatrix or a Pattern as coordinates, a dense Tensor as an array.

    Every number gets the fewest digits that read back as itself. With ``symmetry`` "symmetric", "skew-symmetric" or
    "hermitian" only the lower triangle is written, and A must be exactly that. The file is gzipped if its name ends in
    .gz. It appears whole or not at all: if writing fails, an old file of that name stays as it was.
    """
    if isinstance(A, SparseMatrix):
        parts = [A.indptr, A.indices, A.values]
    elif isinstance(A, Pattern):
        parts = [A.indptr, A.indices]
    elif isinstance(A, Tensor):
        parts = [A]
    else:
        raise TypeError(f"write_mtx: A must be a SparseMatrix, a Pattern or a torch.Tensor, not {type(A).__name__}")
    name = os.fspath(path)
    long = sum(part.nbytes for part in parts) >= _interrupt.LARGE
    given = name, parts, A.shape, comment or "", symmetry
    if error := _interrupt.called(long, torch.ops.gossamer.write_mtx, *given):
        raise OSError(error, os.strerror(error), name)
