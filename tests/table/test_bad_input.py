# SPDX-License-Identifier: BSD-3-Clause
"""Every mistake a caller can make gives one exact error, in normal and in inference mode: op, argument, got, wanted. It
is the same in both front ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from runners import Mistake, Runner

import gossamer as gs

f64 = torch.float64


def matrix(gs: Any = gs) -> Any:
    """2 x 3 with entries (0, 1), (1, 0), (1, 2)."""
    return gs.SparseMatrix([0, 1, 3], [1, 0, 2], torch.tensor([1.0, 2.0, 3.0], dtype=f64), (2, 3))


def pattern(gs: Any, indptr: Any, indices: Any, shape: Any) -> Any:
    return gs.Pattern(torch.tensor(indptr, dtype=torch.int64), torch.tensor(indices, dtype=torch.int64), shape)


def ones(*size: int, dtype: torch.dtype = f64) -> torch.Tensor:
    return torch.ones(size, dtype=dtype)


MISTAKES: list[Mistake] = [
    # Patterns: structure.
    (
        lambda gs: pattern(gs, [0, 1], [0], (2, 3)),
        ValueError,
        "Pattern: indptr has 2 entries but a matrix of 2 rows needs 3",
    ),
    (lambda gs: pattern(gs, [1, 1, 1], [0], (2, 3)), ValueError, "Pattern: indptr[0] is 1, not 0"),
    (lambda gs: pattern(gs, [0, 2, 1], [0], (2, 3)), ValueError, "Pattern: indptr decreases from 2 to 1 at row 1"),
    (lambda gs: pattern(gs, [0, 1, 2], [0], (2, 3)), ValueError, "Pattern: indptr ends at 2 but there are 1 indices"),
    (
        lambda gs: pattern(gs, [0, 1, 1], [0, 1], (2, 3)),
        ValueError,
        "Pattern: indptr ends at 1 but there are 2 indices",
    ),
    (lambda gs: pattern(gs, [0, 1, 1], [3], (2, 3)), ValueError, "Pattern: column 3 in row 0 is outside the 3 columns"),
    (
        lambda gs: pattern(gs, [0, 1, 1], [-1], (2, 3)),
        ValueError,
        "Pattern: column -1 in row 0 is outside the 3 columns",
    ),
    (lambda gs: pattern(gs, [0, 0, 2], [1, 1], (2, 3)), ValueError, "Pattern: column 1 in row 1 appears twice"),
    (
        lambda gs: pattern(gs, [0, 0, 2], [2, 1], (2, 3)),
        ValueError,
        "Pattern: columns in row 1 are not sorted: 1 follows 2",
    ),
    (lambda gs: pattern(gs, [0], [], (-1, 3)), ValueError, "Pattern: shape (-1, 3) is negative"),
    (lambda gs: pattern(gs, [0], [], (0, -3)), ValueError, "Pattern: shape (0, -3) is negative"),
    (lambda gs: pattern(gs, [0], [], (0, 1, 2)), ValueError, "Pattern: shape must be (rows, cols), not (0, 1, 2)"),
    (
        lambda gs: pattern(gs, [[0]], [], (0, 0)),
        ValueError,
        "Pattern: indptr must have one dimension, not shape (1, 1)",
    ),
    (
        lambda gs: gs.Pattern(torch.tensor([0.0]), torch.tensor([0]), (0, 0)),
        TypeError,
        "Pattern: indptr must be int32 or int64, not Float",
    ),
    (
        lambda gs: gs.Pattern(torch.tensor([0, 1]), torch.tensor([0], dtype=torch.int32), (1, 1)),
        TypeError,
        "Pattern: indices is Int but indptr is Long",
    ),
    (
        lambda gs: gs.Pattern(torch.zeros(2, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), (1, 2**31 + 1)),
        ValueError,
        "Pattern: 2147483649 columns do not fit int32 indices; use int64",
    ),
    (
        lambda gs: gs.Pattern(torch.zeros(2).long(), torch.zeros(0).long(), (1, 2**31)).to(index_dtype=torch.int32),
        ValueError,
        "Pattern.to: shape (1, 2147483648) with 0 entries does not fit int32",
    ),
    # Matrices.
    (
        lambda gs: matrix(gs).with_values(ones(2)),
        ValueError,
        "SparseMatrix: values has shape (2,) but the pattern has 3 entries",
    ),
    (
        lambda gs: matrix(gs).with_values(ones(3, 1, 1)),
        ValueError,
        "SparseMatrix: values has shape (3, 1, 1) but the pattern has 3 entries",
    ),
    # Triplets.
    (lambda gs: gs.from_coo([2], [0], [1.0], (2, 3)), ValueError, "from_coo: rows[0] is 2, outside 0 … 1"),
    (lambda gs: gs.from_coo([0, 0], [0, -1], [1.0, 1.0], (2, 3)), ValueError, "from_coo: cols[1] is -1, outside 0 … 2"),
    (
        lambda gs: gs.from_coo([0, 1], [0], [1.0, 1.0], (2, 3)),
        ValueError,
        "from_coo: rows has 2 entries but cols has 1",
    ),
    (
        lambda gs: gs.from_coo([0], [0], [1.0, 1.0], (2, 3)),
        ValueError,
        "from_coo: values has shape (2,) but there are 1 rows",
    ),
    (lambda gs: gs.from_coo([0.5], [0], [1.0], (2, 3)), TypeError, "from_coo: rows must be integers, not Float"),
    (lambda gs: gs.from_coo([], [], [], (-2, 3)), ValueError, "from_coo: shape (-2, 3) is negative"),
    (
        lambda gs: gs.from_coo([[0]], [0], [1.0], (1, 1)),
        ValueError,
        "from_coo: rows must have one dimension, not shape (1, 1)",
    ),
    # Other ways in.
    (lambda gs: gs.from_dense(ones(3)), ValueError, "from_dense: wants a matrix, not shape (3,)"),
    (lambda gs: gs.from_torch(ones(2, 2, 2)), ValueError, "from_torch: wants a matrix, not shape (2, 2, 2)"),
    (
        lambda gs: gs.from_torch(torch.eye(4).to_sparse_bsr((2, 2))),
        TypeError,
        "from_torch: wants a strided, COO, CSR or CSC tensor, not SparseBsr",
    ),
    (
        lambda gs: gs.from_edge_index(torch.zeros(3, 2).long()),
        ValueError,
        "from_edge_index: edge_index must be (2, E), not (3, 2)",
    ),
    (
        lambda gs: gs.from_edge_index(torch.tensor([[0], [5]]), num_nodes=2),
        ValueError,
        "from_coo: rows[0] is 5, outside 0 … 1",
    ),
    (lambda gs: gs.eye(-1), ValueError, "eye: sizes must not be negative, got -1 x -1"),
    (lambda gs: gs.poisson((3, -1)), ValueError, "poisson: side -1 is negative"),
    (lambda gs: gs.poisson(()), ValueError, "poisson: wants at least one dimension"),
    (lambda gs: gs.poisson((2**40, 2**40)), ValueError, "poisson: the grid is too large"),
    (lambda gs: gs.random(2, 2, 1.5), ValueError, "random: density must be in [0, 1], not 1.5"),
    (lambda gs: gs.random(-2, 2, 0.5), ValueError, "random: shape must be two sizes, not [-2, 2]"),
    # Products.
    (lambda gs: matrix(gs) @ ones(2), ValueError, "spmm: X has 2 rows but A has 3 columns"),
    (lambda gs: gs.spmm(matrix(gs), ones(3, 1), transpose=True), ValueError, "spmm: X has 3 rows but A has 2 rows"),
    (lambda gs: ones(4, 3) @ matrix(gs), ValueError, "spmm: X has 3 rows but A has 2 rows"),
    (lambda gs: ones(2, 2, 2) @ matrix(gs), ValueError, "matmul: X A wants X of shape (n,) or (k, n), not (2, 2, 2)"),
    (lambda gs: matrix(gs) @ ones(3, 2, 2), ValueError, "spmm: X must be (n,) or (n, d), not (3, 2, 2)"),
    (lambda gs: matrix(gs) @ torch.tensor(1.0, dtype=f64), ValueError, "spmm: X has 0 rows but A has 3 columns"),
    (lambda gs: matrix(gs) @ ones(3, dtype=torch.float32), TypeError, "spmm: X is Float but values is Double"),
    (
        lambda gs: matrix(gs) @ ones(3).to(torch.float8_e4m3fn),
        TypeError,
        "spmm: X must be float32, float64, bfloat16 or float16, not Float8_e4m3fn",
    ),
    (
        lambda gs: matrix(gs) @ ones(3, dtype=torch.complex64),
        TypeError,
        "spmm: X must be float32, float64, bfloat16 or float16, not ComplexFloat",
    ),
    (
        lambda gs: matrix(gs).with_values(ones(3, 2)) @ ones(3, 4),
        ValueError,
        "spmm: values (3, 2) need X of shape (n, H) or (n, H, d), not (3, 4)",
    ),
    (lambda gs: gs.spmm(ones(2, 3), ones(3)), TypeError, "spmm: A must be a SparseMatrix, not Tensor"),
    (lambda gs: gs.spmm(matrix(gs), "x"), TypeError, "spmm: X must be a torch.Tensor or an array, not str"),
    (lambda gs: gs.sddmm(matrix(gs), ones(3, 2), ones(3, 2)), ValueError, "sddmm: U has 3 rows but A has 2 rows"),
    (lambda gs: gs.sddmm(matrix(gs), ones(2, 2), ones(2, 2)), ValueError, "sddmm: V has 2 rows but A has 3 columns"),
    (
        lambda gs: gs.sddmm(matrix(gs), ones(2, 2), ones(3, 4)),
        ValueError,
        "sddmm: U (2, 2) and V (3, 4) must be (n,), (n, d) or (n, H, d) and agree but for their rows",
    ),
    (
        lambda gs: gs.sddmm(matrix(gs), ones(2), ones(3, dtype=torch.float32)),
        TypeError,
        "sddmm: V is Float but U is Double",
    ),
    (
        lambda gs: gs.sddmm(ones(2, 3), ones(2), ones(3)),
        TypeError,
        "sddmm: P must be a Pattern or a SparseMatrix, not Tensor",
    ),
    (
        lambda gs: torch.ops.gossamer.spmm([torch.tensor([0])], ones(0), ones(0), [0, 0]),
        ValueError,
        "spmm: a pattern is {indptr, indices}, perhaps the transpose's three, perhaps runs: not 1 tensors",
    ),
]

# What has another type than C++ would take, or is of Python alone.
PYTHON_ONLY = {
    "Pattern: shape must be (rows, cols), not (0, 1, 2)",
    "Pattern.to: shape (1, 2147483648) with 0 entries does not fit int32",
    "spmm: A must be a SparseMatrix, not Tensor",
    "spmm: X must be a torch.Tensor or an array, not str",
    "sddmm: P must be a Pattern or a SparseMatrix, not Tensor",
    "spmm: a pattern is {indptr, indices}, perhaps the transpose's three, perhaps runs: not 1 tensors",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m[2][:60] for m in MISTAKES])
@pytest.mark.parametrize("inference", [False, True], ids=["normal", "inference"])
@pytest.mark.parametrize("runner", ["cpu", "cpp"], indirect=True)
def test_mistake_is_named(mistake: Mistake, inference: bool, runner: Runner) -> None:
    runner.assert_mistake(mistake, PYTHON_ONLY, inference)


@pytest.mark.parametrize("inference", [False, True], ids=["normal", "inference"])
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
def test_devices_must_agree(device: torch.device, inference: bool) -> None:
    A, x = matrix(), ones(3)
    with torch.inference_mode(inference):
        with pytest.raises(ValueError, match=r"^spmm: X is on cuda:0 but the pattern is on cpu$"):
            A @ x.to(device)
        with pytest.raises(ValueError, match=r"^spmm: X is on cpu but the pattern is on cuda:0$"):
            A.to(device) @ x
        with pytest.raises(ValueError, match=r"^SparseMatrix: values are on cuda:0 but the pattern is on cpu$"):
            A.with_values(A.values.to(device))
        with pytest.raises(ValueError, match=r"^from_coo: rows are on cuda:0, cols on cuda:0, values on cpu$"):
            gs.from_coo(torch.tensor([0]).to(device), torch.tensor([0]).to(device), ones(1), (1, 1))


def test_numbers_that_are_not_finite_are_welcome() -> None:
    A = matrix().with_values(torch.tensor([torch.inf, torch.nan, 0.0], dtype=f64))
    y = A @ torch.tensor([1.0, 1.0, torch.inf], dtype=f64)
    assert y[0] == torch.inf
    assert y[1].isnan()


def test_empty_everything() -> None:
    A = gs.from_coo([], [], [], (0, 0))
    assert (A @ torch.ones(0)).shape == (0,)
    assert (A @ torch.ones(0, 3)).shape == (0, 3)
    assert (gs.from_coo([], [], [], (2, 0)) @ torch.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert (gs.from_coo([0], [0], [1.0], (2, 1)) @ torch.ones(1, 0)).shape == (2, 0)
    assert gs.sddmm(gs.eye(2), torch.ones(2, 0), torch.ones(2, 0)).values.tolist() == [0.0, 0.0]
