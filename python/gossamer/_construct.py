# SPDX-License-Identifier: BSD-3-Clause
"""Ways to make a sparse matrix. Indices are int32 where they fit, unless the source has its own width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer._indices import as_index, as_shape
from gossamer._sparse_matrix import SparseMatrix

if TYPE_CHECKING:
    import scipy.sparse

_ops = torch.ops.gossamer

Parts = tuple[Tensor, Tensor, Tensor]  # indptr, indices, values


def from_coo(rows: Any, cols: Any, values: Any, shape: Sequence[int]) -> SparseMatrix:
    """The matrix with A[rows[k], cols[k]] += values[k]: sorted, duplicates added, differentiable in the values.

    >>> gs.from_coo([1, 0, 1], [0, 1, 0], [1.0, 2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 2.],
            [4., 0.]])
    """
    size = as_shape("from_coo", shape)
    values = values if isinstance(values, Tensor) else torch.as_tensor(values)
    parts = _ops.from_coo(as_index("rows", rows), as_index("cols", cols), values, size)
    return _assemble(parts, size)


def from_dense(dense: Any) -> SparseMatrix:
    """The entries of a dense matrix that are not zero (NaN is not); gradients flow back to them.

    NumPy arrays and nested lists are taken, too, and copied.
    """
    dense = dense if isinstance(dense, Tensor) else torch.tensor(dense)
    return _assemble(_ops.from_dense(dense), dense.shape)


def from_torch(A: Tensor) -> SparseMatrix:
    """A torch COO, CSR, CSC or dense matrix. Gradients flow back; index widths are kept."""
    return _assemble(_ops.from_torch(A), A.shape, check=True)  # torch need not have checked


def from_scipy(A: scipy.sparse.sparray | scipy.sparse.spmatrix) -> SparseMatrix:
    """A SciPy sparse array or matrix of any format. Duplicates are added, stored zeros stay, A itself is not changed.

    A copy, for SciPy's methods change arrays in place; dtype and index width are kept.
    """
    csr = A.tocsr(copy=True)
    csr.sum_duplicates()
    parts = torch.from_numpy(csr.indptr), torch.from_numpy(csr.indices), torch.from_numpy(csr.data)
    return _assemble(parts, csr.shape, check=True)


def from_csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
    """CSR arrays as a matrix, through triplets if its rows are not sorted and unique."""
    lengths = indptr.diff()
    well_formed = len(indptr) == shape[0] + 1 and bool((lengths >= 0).all()) and indptr[0] == 0
    if well_formed and int(indptr[-1]) == len(indices) == len(values):
        rows = torch.repeat_interleave(torch.arange(shape[0]), lengths.long())
        if not bool(((rows.diff() > 0) | (indices.diff() > 0)).all()):
            return from_coo(rows, indices, values, shape).to(index_dtype=indices.dtype)
    return SparseMatrix(indptr, indices, values, shape)  # which says what is wrong, if anything


def from_edge_index(edge_index: Tensor, values: Tensor | None = None, num_nodes: int | None = None) -> SparseMatrix:
    """The adjacency matrix of a graph: A[target, source] for each column (source, target) of ``edge_index``.

    Row i gathers from the nodes that point at i, as PyG's layers do. Parallel edges are added; values default to 1.
    """
    return _square(_ops.from_edge_index(edge_index, values, num_nodes))


def eye(
    rows: int,
    cols: int | None = None,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> SparseMatrix:
    """Ones on the diagonal."""
    cols = rows if cols is None else cols
    parts = _ops.eye(rows, cols, dtype or torch.get_default_dtype(), torch.device(device or "cpu"))
    return _assemble(parts, (rows, cols))


def poisson(
    grid: int | Sequence[int], *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> SparseMatrix:
    """The finite-difference Laplacian on a grid with zero boundary, in any number of dimensions.

    >>> gs.poisson(3).to_dense()
    tensor([[ 2., -1.,  0.],
            [-1.,  2., -1.],
            [ 0., -1.,  2.]])
    """
    sides = (grid,) if isinstance(grid, int) else tuple(grid)
    return _square(_ops.poisson(sides, dtype or torch.get_default_dtype(), torch.device(device or "cpu")))


def random(
    rows: int,
    cols: int,
    density: float = 0.01,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
) -> SparseMatrix:
    """round(density · rows · cols) distinct entries at uniformly random places, values uniform on [0, 1)."""
    if not 0 <= density <= 1:
        raise ValueError(f"random: density must be in [0, 1], not {density}")
    nnz = round(density * rows * cols)
    parts = _ops.random((rows, cols), nnz, generator, dtype or torch.get_default_dtype())
    return _assemble(parts, (rows, cols)).to(device)


def _assemble(parts: Parts, shape: Sequence[int], check: bool = False) -> SparseMatrix:
    indptr, indices, values = parts
    return SparseMatrix(indptr, indices, values, shape, check=check)


def _square(parts: Parts) -> SparseMatrix:
    n = parts[0].shape[0] - 1
    return _assemble(parts, (n, n))
