# SPDX-License-Identifier: BSD-3-Clause
"""Files: MatrixMarket (.mtx, .mtx.gz) and SciPy's .npz."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from gossamer.construct import from_coo
from gossamer.pattern import Pattern
from gossamer.sparse_matrix import SparseMatrix

PathLike = str | os.PathLike[str]


def read_mtx(
    path: PathLike, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> SparseMatrix | Tensor:
    """Read a MatrixMarket file, gzipped or not: a coordinate file gives a SparseMatrix, an array file a dense Tensor.

    real gives float64, integer int64, complex complex128, pattern ones in float64, unless ``dtype`` says otherwise.
    Symmetric, skew-symmetric and hermitian files are mirrored; duplicates are added; stored zeros stay stored. What is
    wrong with the contents raises ValueError with the name of the file and the number of the line.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gs.write_mtx(folder + "/eye.mtx", gs.eye(2))
    ...     gs.read_mtx(folder + "/eye.mtx")
    SparseMatrix(2 x 2, nnz=2, float64, int32, cpu)
    """
    name = os.fspath(path)
    parts, rows, cols, error = torch.ops.gossamer.read_mtx(name, dtype)
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
    if error := torch.ops.gossamer.write_mtx(name, parts, A.shape, comment or "", symmetry):
        raise OSError(error, os.strerror(error), name)


def save_npz(path: PathLike, A: SparseMatrix, compressed: bool = True) -> None:
    """Write the file ``scipy.sparse.save_npz`` would: read it with either ``load_npz``. ``.npz`` is added if missing.

    It appears whole or not at all, as with write_mtx.
    """
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"save_npz: A must be a SparseMatrix, not {type(A).__name__}")
    if A.values.dim() != 1:
        raise ValueError(f"save_npz: a file holds one matrix, but values has shape {tuple(A.values.shape)}")
    if A.dtype is torch.bfloat16:
        raise TypeError("save_npz: NumPy has no bfloat16; save A.to(torch.float32)")
    arrays = {name: getattr(A, name).detach().cpu().numpy() for name in ("indices", "indptr", "values")}
    arrays["data"] = arrays.pop("values")
    save = np.savez_compressed if compressed else np.savez
    name = os.fspath(path)
    with _atomic(Path(name if name.endswith(".npz") else name + ".npz")) as file:
        save(file, format=np.array(b"csr"), shape=np.array(A.shape), _is_array=np.array(True), **arrays)


def load_npz(path: PathLike) -> SparseMatrix:
    """Read a CSR, CSC or COO matrix that ``scipy.sparse.save_npz`` or save_npz wrote. Nothing in the file is trusted.

    dtype and index width are kept; unsorted columns are sorted and duplicates added.
    """
    name = os.fspath(path)
    with Path(name).open("rb") as file:
        try:
            contents = np.load(file, allow_pickle=False)
            if not isinstance(contents, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array, not a sparse matrix")
            with contents:
                return _from_arrays({key: contents[key] for key in contents.files})
        except _DAMAGE as error:
            raise ValueError(f"load_npz: {name}: {error or type(error).__name__}") from None


# What NumPy, zipfile and our own checks raise at the contents of a file.
_DAMAGE = (
    *(ValueError, TypeError, LookupError, RuntimeError, SyntaxError, ArithmeticError),
    *(EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error),
)


def _from_arrays(arrays: dict[str, np.ndarray[Any, Any]]) -> SparseMatrix:
    format = _array(arrays, "format", 0, "SU").item()
    format = format.decode("ascii", "replace") if isinstance(format, bytes) else format
    shape = tuple(int(size) for size in _array(arrays, "shape", 1, "iu"))
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"its shape is {shape}, not (rows, cols)")
    values = _tensor(_array(arrays, "data", 1, "biufc"))
    if format == "coo":
        rows, cols = (_tensor(_array(arrays, name, 1, "iu")) for name in ("row", "col"))
        return from_coo(rows, cols, values, shape)
    if format not in ("csr", "csc"):
        raise ValueError(f"its format is {format!r}, not csr, csc or coo: save A.tocsr() instead")
    indptr, indices = (_tensor(_array(arrays, name, 1, "iu")) for name in ("indptr", "indices"))
    if format == "csc":
        return _compressed(indptr, indices, values, (shape[1], shape[0])).T
    return _compressed(indptr, indices, values, (shape[0], shape[1]))


def _compressed(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
    """CSR arrays as a matrix, through triplets if its rows are not sorted and unique."""
    lengths = indptr.diff()
    well_formed = len(indptr) == shape[0] + 1 and bool((lengths >= 0).all()) and indptr[0] == 0
    if well_formed and int(indptr[-1]) == len(indices) == len(values):
        rows = torch.repeat_interleave(torch.arange(shape[0]), lengths.long())
        if not bool(((rows.diff() > 0) | (indices.diff() > 0)).all()):
            return from_coo(rows, indices, values, shape).to(index_dtype=indices.dtype)
    return SparseMatrix(indptr, indices, values, shape)  # which says what is wrong, if anything


def _array(arrays: dict[str, np.ndarray[Any, Any]], name: str, dim: int, kinds: str) -> np.ndarray[Any, Any]:
    """The array of that name, or an error unless it has that many dimensions and a dtype of these kinds."""
    if name not in arrays:
        raise ValueError(f"it has no array {name!r}; is it a sparse matrix?")
    array = arrays[name]
    if array.ndim != dim or array.dtype.kind not in kinds:
        raise ValueError(f"its {name} is {array.dtype} of shape {array.shape}")
    return array


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))


@contextlib.contextmanager
def _atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when it is whole and on the disk."""
    target = path.resolve()
    umask = os.umask(0)
    os.umask(umask)
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask
    file = tempfile.NamedTemporaryFile(dir=target.parent, prefix=".gossamer-", suffix=".tmp", delete=False)  # noqa: SIM115
    try:
        with file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(file.name).replace(target)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
