# SPDX-License-Identifier: BSD-3-Clause
"""Gossamer: sparse matrices that can be differentiated, and the graph networks built on them."""

from gossamer import _fakes as _fakes
from gossamer import _library as _library  # loads the C++ library
from gossamer import _solver_fakes as _solver_fakes
from gossamer import datasets, distributed, equations, linalg, nn
from gossamer._attention import (
    dropout,
    gat_attention,
    gat_with_weights,
    gatv2_attention,
    gatv2_with_weights,
    graph_pattern,
)
from gossamer._blocks import allclose, block_diag, diag, hstack, kron, vstack
from gossamer._compare import maximum, minimum
from gossamer._construct import (
    eye,
    from_coo,
    from_dense,
    from_edge_index,
    from_scipy,
    from_torch,
    poisson,
    random,
)
from gossamer._jacobian import Jacobian, hessian, jacobian
from gossamer._jacobian_pattern import jacobian_pattern
from gossamer._library import cmake_prefix_path, show_config
from gossamer._mtx import read_mtx, write_mtx
from gossamer._npz import load_npz, save_npz, write_npz
from gossamer._pattern import Merged, Pattern
from gossamer._products import matmul, spgemm, spmm
from gossamer._sddmm import sddmm
from gossamer._sparse_matrix import SparseMatrix
from gossamer._sums import hadamard, spadd
from gossamer.linalg import ConvergenceError, SingularMatrixError

__version__ = "0.1.0"

__all__ = [
    "ConvergenceError",
    "Jacobian",
    "Merged",
    "Pattern",
    "SingularMatrixError",
    "SparseMatrix",
    "allclose",
    "block_diag",
    "cmake_prefix_path",
    "datasets",
    "diag",
    "distributed",
    "dropout",
    "equations",
    "eye",
    "from_coo",
    "from_dense",
    "from_edge_index",
    "from_scipy",
    "from_torch",
    "gat_attention",
    "gat_with_weights",
    "gatv2_attention",
    "gatv2_with_weights",
    "graph_pattern",
    "hadamard",
    "hessian",
    "hstack",
    "jacobian",
    "jacobian_pattern",
    "kron",
    "matmul",
    "maximum",
    "minimum",
    "nn",
    "load_npz",
    "linalg",
    "poisson",
    "random",
    "read_mtx",
    "save_npz",
    "sddmm",
    "show_config",
    "spadd",
    "spgemm",
    "spmm",
    "vstack",
    "write_mtx",
    "write_npz",
]
