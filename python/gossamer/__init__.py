# SPDX-License-Identifier: BSD-3-Clause
"""Gossamer: sparse matrices that can be differentiated, and the graph networks built on them."""

from gossamer import _library as _library  # loads the C++ library: first
from gossamer import linalg
from gossamer._library import cmake_prefix_path, show_config
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
from gossamer.linalg import SingularMatrixError
from gossamer.ops import sddmm, spmm
from gossamer.pattern import Pattern
from gossamer.sparse_matrix import SparseMatrix

__version__ = "0.1.0"

__all__ = [
    "Pattern",
    "SingularMatrixError",
    "SparseMatrix",
    "cmake_prefix_path",
    "eye",
    "from_coo",
    "from_dense",
    "from_edge_index",
    "from_scipy",
    "from_torch",
    "linalg",
    "poisson",
    "random",
    "sddmm",
    "show_config",
    "spmm",
]
