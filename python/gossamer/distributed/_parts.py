# SPDX-License-Identifier: BSD-3-Clause
"""Which process each row goes to."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix


def partition(A: SparseMatrix | Pattern, parts: int, *, method: str = "auto") -> Tensor:
    """Which of ``parts`` processes each row goes to: (rows,) int64, balanced by entries + 1.

    ``"metis"`` keeps neighbours together, so that processes need few rows of each other; it takes square matrices, with
    the pattern of A + Aᵀ if they are not symmetric, and wants pymetis or libmetis. ``"contiguous"`` cuts the rows into
    ranges. ``"auto"`` is METIS if it is there and A is square. Everything that takes parts takes any such tensor.

    >>> gs.distributed.partition(gs.poisson(6), 3, method="contiguous")
    tensor([0, 0, 1, 1, 2, 2])
    """
    if not isinstance(A, (SparseMatrix, Pattern)):
        raise TypeError(f"partition: A must be a SparseMatrix or a Pattern, not {type(A).__name__}")
    if not isinstance(parts, int):
        raise TypeError(f"partition: parts must be an integer, not {type(parts).__name__}")
    pattern = A.pattern if isinstance(A, SparseMatrix) else A
    rows, cols = pattern.shape
    tensors = pattern.tensors()
    wanted = method == "metis" or (method == "auto" and rows == cols)
    if wanted and importlib.util.find_spec("pymetis") and 1 < parts < rows:
        return _by_pymetis(tensors, pattern.shape, parts)
    return torch.ops.gossamer.distributed_parts(tensors, pattern.shape, parts, method)


def _by_pymetis(tensors: list[Tensor], shape: tuple[int, int], parts: int) -> Tensor:
    import pymetis

    ptr, neighbours, weights = (t.numpy() for t in torch.ops.gossamer.distributed_graph(tensors, shape))
    graph = pymetis.CSRAdjacency(ptr, neighbours)
    _, part = pymetis.part_graph(parts, graph, vweights=weights, options=pymetis.Options(seed=1))
    return torch.tensor(part, dtype=torch.int64)
