# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's .npz files: a sparse matrix as SciPy stores it, or any tensors by their names."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gossamer._construct import from_coo, from_csr
from gossamer._files import PathLike, atomic
from gossamer._sparse_matrix import SparseMatrix


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
    with atomic(Path(name if name.endswith(".npz") else name + ".npz")) as file:
        save(file, format=np.array(b"csr"), shape=np.array(A.shape), _is_array=np.array(True), **arrays)


def load_npz(path: PathLike, *, max_bytes: int | None = None) -> SparseMatrix:
    """Read a CSR, CSC or COO matrix that ``scipy.sparse.save_npz`` or save_npz wrote. Nothing in the file is trusted.

    dtype and index width are kept; unsorted columns are sorted and duplicates added. What a file may ask for, unpacked
    and with an index for every row, is 64 times its size and at least 1 GiB, or ``max_bytes``; arrays that a matrix
    does not have are not looked at.
    """
    name = os.fspath(path)
    with Path(name).open("rb") as file:
        try:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise ValueError("it holds a single array, not a sparse matrix")
            bound = max(1 << 30, 64 * os.fstat(file.fileno()).st_size) if max_bytes is None else max_bytes
            with zipfile.ZipFile(file) as contents:
                return _from_arrays(_arrays(contents, bound), bound)
        except _DAMAGE as error:
            raise ValueError(f"load_npz: {name}: {error or type(error).__name__}") from None


def write_npz(path: PathLike, arrays: Mapping[str, Tensor]) -> None:
    """Write named tensors for ``numpy.load``. The file appears whole or not at all; its name must end in .npz."""
    name = os.fspath(path)
    if error := torch.ops.gossamer.write_npz(name, list(arrays), list(arrays.values())):
        raise OSError(error, os.strerror(error), name)


# What NumPy, zipfile and our own checks raise at the contents of a file.
_DAMAGE = (
    *(ValueError, TypeError, LookupError, RuntimeError, SyntaxError, ArithmeticError),
    *(EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error),
)


ARRAYS = ("format", "shape", "data", "indptr", "indices", "row", "col")  # of a sparse matrix
TOO_MUCH = "more than the {} bytes that a file of its size may take; max_bytes raises this"


def _arrays(contents: zipfile.ZipFile, bound: int) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that a matrix has, as long as they are no larger than their places in the file say they are."""
    members = {name: contents.getinfo(name + ".npy") for name in ARRAYS if name + ".npy" in contents.namelist()}
    if sum(member.file_size for member in members.values()) > bound:
        raise ValueError(f"its arrays are {TOO_MUCH.format(bound)}")
    arrays = {}
    for name, member in members.items():
        with contents.open(member) as file:  # the header first: NumPy makes room for what it announces
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(file)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"its {name} is cut off")
        with contents.open(member) as file:
            arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def _from_arrays(arrays: dict[str, np.ndarray[Any, Any]], bound: int) -> SparseMatrix:
    format = _array(arrays, "format", 0, "SU").item()
    format = format.decode("ascii", "replace") if isinstance(format, bytes) else format
    shape = tuple(int(size) for size in _array(arrays, "shape", 1, "iu"))
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"its shape is {shape}, not (rows, cols)")
    if format != "csr" and shape[0] >= bound // 8:  # a csr matrix has its rows in the file
        raise ValueError(f"its shape has {shape[0]} rows, whose indices take {TOO_MUCH.format(bound)}")
    values = _tensor(_array(arrays, "data", 1, "biufc"))
    if format == "coo":
        rows, cols = (_tensor(_array(arrays, name, 1, "iu")) for name in ("row", "col"))
        return from_coo(rows, cols, values, shape)
    if format not in ("csr", "csc"):
        raise ValueError(f"its format is {format!r}, not csr, csc or coo: save A.tocsr() instead")
    indptr, indices = (_tensor(_array(arrays, name, 1, "iu")) for name in ("indptr", "indices"))
    if format == "csc":
        return from_csr(indptr, indices, values, (shape[1], shape[0])).T
    return from_csr(indptr, indices, values, (shape[0], shape[1]))


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
