# SPDX-License-Identifier: BSD-3-Clause
"""Gossamer: sparse matrices that can be differentiated, and the graph networks built on them."""

from gossamer import _library as _library  # loads the C++ library: first
from gossamer import _sizes as _sizes
from gossamer import datasets, equations, golden, linalg, nn
from gossamer._library import cmake_prefix_path, show_config
from gossamer.attention import (
    dropout,
    gat_attention,
    gat_with_weights,
    gatv2_attention,
    gatv2_with_weights,
    graph_pattern,
)
from gossamer.blocks import allclose, block_diag, diag, hstack, kron, vstack
from gossamer.construct import (
    eye,
    from_coo,
    from_dense,
    from_edge_index,
    from_scipy,
    from_torch,
    poisson,
    random,
)
from gossamer.io import load_npz, read_mtx, save_npz, write_mtx
from gossamer.linalg import SingularMatrixError
from gossamer.ops import hadamard, matmul, sddmm, spadd, spgemm, spmm
from gossamer.pattern import Pattern
from gossamer.sparse_matrix import SparseMatrix

__version__ = "0.1.0"

__all__ = [
    "Pattern",
    "SingularMatrixError",
    "SparseMatrix",
    "allclose",
    "block_diag",
    "cmake_prefix_path",
    "datasets",
    "diag",
    "dropout",
    "equations",
    "eye",
    "from_coo",
    "from_dense",
    "from_edge_index",
    "from_scipy",
    "from_torch",
    "golden",
    "gat_attention",
    "gat_with_weights",
    "gatv2_attention",
    "gatv2_with_weights",
    "graph_pattern",
    "hadamard",
    "hstack",
    "kron",
    "matmul",
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
]
