# SPDX-License-Identifier: BSD-3-Clause
"""Grids and bands repeat themselves: from the second product with a vector on no index of theirs is read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs


class Lists(TorchDispatchMode):
    """How many tensors the pattern of each product had."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.name() in ("gossamer::spmm", "gossamer::sddmm"):
            self.lengths.append(len(args[0]))
        return func(*args, **(kwargs or {}))


def vector(n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def on_grid(shape: tuple[int, ...], dtype: torch.dtype, index_dtype: torch.dtype) -> gs.SparseMatrix:
    A = gs.poisson(shape, dtype=torch.float64).to(index_dtype=index_dtype)
    return A.with_values(vector(A.nnz, 3, dtype))


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(200,), (30, 40), (40, 30), (12, 12, 12), (300, 300)])
def test_the_second_product_has_the_bits_of_the_first(
    shape: tuple[int, ...], dtype: torch.dtype, index_dtype: torch.dtype
) -> None:
    A = on_grid(shape, dtype, index_dtype)
    x = vector(A.shape[1], 1, dtype)
    for use in (lambda: A @ x, lambda: A.T @ x, lambda: x @ A):
        first, second, third = use(), use(), use()
        assert torch.equal(first, second)
        assert torch.equal(first, third)
    with torch.no_grad():
        cold = gs.SparseMatrix(A.indptr, A.indices, A.values, A.shape)
        assert torch.equal(cold @ x, A @ x)
        assert torch.equal(gs.SparseMatrix(A.indptr, A.indices, A.values, A.shape).T @ x, A.T @ x)
    if dtype == torch.float64 and A.shape[0] < 5000:
        assert torch.allclose(A @ x, A.to_dense() @ x)
        assert torch.allclose(A.T @ x, A.to_dense().T @ x)


def test_runs_go_with_the_second_product_and_its_backward() -> None:
    A = gs.poisson((20, 30), dtype=torch.float64)
    x = vector(600).requires_grad_()
    with Lists() as lists:
        A @ x
        y = A @ x
        y.sum().backward()
        A @ x[:, None].expand(-1, 5)
    assert lists.lengths == [5, 7, 7, 5]  # forward twice, dX = Aᵀ G, and a product with many columns


def test_a_graph_has_none() -> None:
    A = gs.datasets.power_law(500, 4000, seed=0).adjacency
    x = torch.randn(500)
    with Lists() as lists:
        for _ in range(3):
            A @ x
    assert lists.lengths == [2, 2, 2]
    for with_transpose in (False, True):  # that there are none is kept, too
        assert A.pattern.with_runs(with_transpose) is A.pattern.with_runs(with_transpose)


def test_derivatives_along_runs() -> None:
    A, x = gs.poisson((9, 11), dtype=torch.float64), vector(99).requires_grad_()
    values = A.values.clone().requires_grad_()
    for _ in range(2):  # so that the runs are known
        A @ x
    assert gradcheck(lambda v, x: A.with_values(v) @ x, (values, x))
    assert gradcheck(lambda v, x: A.with_values(v).T @ x, (values, x))


def test_strided_vectors_and_threads() -> None:
    A, wide = gs.poisson((60, 80), dtype=torch.float64), torch.randn(4800, 3, dtype=torch.float64)
    want = A @ wide[:, 1].contiguous()
    for _ in range(2):
        assert torch.equal(A @ wide[:, 1], want)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            assert torch.equal(A @ wide[:, 1].contiguous(), want)
    finally:
        torch.set_num_threads(threads)


def test_the_op_refuses_runs_that_do_not_fit() -> None:
    A, x = gs.poisson((20, 30), dtype=torch.float64), vector(600)
    runs = torch.ops.gossamer.runs(A.indptr, A.indices, None, A.shape)
    assert runs[0] == 0
    assert runs[-1] == 600
    for wrong in (runs[:-1], runs[1:], runs.long(), runs[:, None], runs.to("meta")):
        with pytest.raises((ValueError, TypeError)):
            torch.ops.gossamer.spmm([A.indptr, A.indices, wrong], A.values, x, A.shape)
    with pytest.raises(ValueError, match="not 4 tensors"):
        torch.ops.gossamer.spmm([A.indptr, A.indices, runs, runs], A.values, x, A.shape)
    with pytest.raises(ValueError, match="perm must have one entry for each"):
        torch.ops.gossamer.runs(A.indptr, A.indices, A.indices[:-1], A.shape)
