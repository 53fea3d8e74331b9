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
