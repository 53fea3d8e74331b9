# SPDX-License-Identifier: BSD-3-Clause
"""Types of results: as torch promotes those of the values, integers included."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gossamer as gs

DTYPES = [torch.int32, torch.int64, torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.complex128]
FACTORS = [2, 3.0, 2j, *(torch.tensor(3, dtype=dtype) for dtype in DTYPES), torch.tensor(2j)]


def matrix(dtype: torch.dtype) -> gs.SparseMatrix:
    return gs.SparseMatrix([0, 2, 3], [0, 1, 1], torch.tensor([1, 5, 7]).to(dtype), (2, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("s", FACTORS, ids=str)
@pytest.mark.parametrize("f", [operator.mul, operator.truediv])
def test_a_number_promotes_as_torch_does(dtype: torch.dtype, s: Any, f: Callable[[Any, Any], Any]) -> None:
    A = matrix(dtype)
    torch.testing.assert_close(f(A, s).values, f(A.values, s))  # the type is compared as well


@pytest.mark.parametrize("other", [[0, 1, 3], [0, 2, 3]], ids=["union", "same pattern"])
def test_integers_add_up_as_integers(other: list[int]) -> None:
    A = matrix(torch.int64)
    B = gs.SparseMatrix(other, [0, 1, 1][: other[1]] + [0, 1][: 3 - other[1]], torch.tensor([2, 3, 4]), (2, 2))
    for f in (operator.add, operator.sub, operator.mul):
        result = f(A, B).to_dense()
        assert result.dtype is torch.int64
        assert torch.equal(result, f(A.to_dense(), B.to_dense()))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_sums_of_integers_are_int64(dtype: torch.dtype, dim: int | None) -> None:
    A = matrix(dtype)
    dense = matrix(torch.int64).to_dense().to(dtype)
    want = dense.sum() if dim is None else dense.sum(dim)
    assert torch.equal(A.sum(dim), want)
    assert A.sum(dim).dtype is torch.int64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("other", DTYPES, ids=str)
def test_two_matrices_promote_as_torch_does(dtype: torch.dtype, other: torch.dtype) -> None:
    A, B = matrix(dtype), gs.SparseMatrix([0, 1, 3], [0, 0, 1], torch.tensor([2, 3, 4]).to(other), (2, 2))
    for f in (operator.add, operator.sub, operator.mul):
        torch.testing.assert_close(f(A, B).to_dense(), f(A.to_dense(), B.to_dense()))


@pytest.mark.parametrize("dtype", DTYPES[2:], ids=str)
@pytest.mark.parametrize("other", DTYPES[2:], ids=str)
def test_scales_promote_as_torch_does(dtype: torch.dtype, other: torch.dtype) -> None:
    A, d = matrix(dtype), torch.tensor([2, 3]).to(other)
    torch.testing.assert_close(A.scale_rows(d).to_dense(), d[:, None] * A.to_dense())
    torch.testing.assert_close(A.scale_cols(d).to_dense(), A.to_dense() * d)


def test_autocast_mixes() -> None:
    """What a layer gives within autocast is 16-bit; solves take it, in float32, and gradients come back in 16 bits."""
    A, b = gs.poisson(4), torch.ones(4)
    half = b.to(torch.bfloat16).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for solve in (gs.linalg.solve, gs.linalg.solve_triangular):
            x = solve(A, half)
            assert x.dtype is torch.float32
            torch.testing.assert_close(x.detach(), solve(A, b))
            x.sum().backward()
        assert (A + A.to(torch.bfloat16)).dtype is torch.float32
        assert A.scale_rows(half).dtype is torch.float32
    assert half.grad is not None
    assert half.grad.dtype is torch.bfloat16
