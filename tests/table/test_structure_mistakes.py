# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes with structure, reductions and elementwise functions: one exact error each, in inference mode too, and the
same in both front ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from runners import Mistake, Runner

f64 = torch.float64


def matrix(gs: Any, *heads: int) -> Any:
    """2 x 3 with entries (0, 1), (1, 0), (1, 2)."""
    return gs.SparseMatrix([0, 1, 3], [1, 0, 2], torch.ones(3, *heads, dtype=f64), (2, 3))


def as_integers(values: torch.Tensor) -> torch.Tensor:
    return values.long()


def first_two(values: torch.Tensor) -> torch.Tensor:
    return values[:2]


def ones(*size: int, dtype: torch.dtype = f64) -> torch.Tensor:
    return torch.ones(size, dtype=dtype)


MISTAKES: list[Mistake] = [
    # Indices.
    (lambda gs: matrix(gs)[2], IndexError, "index: rows[0] is 2, outside -2 … 1"),
    (lambda gs: matrix(gs)[-3], IndexError, "index: rows[0] is -3, outside -2 … 1"),
    (lambda gs: matrix(gs)[0, 3], IndexError, "index: cols[0] is 3, outside -3 … 2"),
    (lambda gs: matrix(gs)[[0, 1, 5]], IndexError, "index: rows[2] is 5, outside -2 … 1"),
    (lambda gs: matrix(gs)[:, [0, -4]], IndexError, "index: cols[1] is -4, outside -3 … 2"),
    (lambda gs: matrix(gs)[[0, 1], [0, 1, 2]], IndexError, "index: rows has 2 entries but cols has 3"),
    (
        lambda gs: matrix(gs)[torch.tensor([True])],
        IndexError,
        "index: the mask of rows has shape (1,) but A has 2 rows",
    ),
    (
        lambda gs: matrix(gs)[:, torch.tensor([True, False])],
        IndexError,
        "index: the mask of columns has shape (2,) but A has 3 columns",
    ),
    (lambda gs: matrix(gs)[[0.5]], TypeError, "index: rows must be integers or booleans, not Float"),
    (lambda gs: matrix(gs)[0.5], TypeError, "index: rows must be integers, a slice, an array or a mask, not float"),
    (
        lambda gs: matrix(gs)[:, None],
        TypeError,
        "index: cols must be integers, a slice, an array or a mask, not NoneType",
    ),
    (
        lambda gs: matrix(gs)[torch.zeros(2, 2).long()],
        IndexError,
        "index: rows must have one dimension, not shape (2, 2)",
    ),
    (lambda gs: matrix(gs)[0, 0, 0], IndexError, "index: a matrix has 2 axes, not 3"),
    (lambda gs: matrix(gs)[::0], ValueError, "slice step cannot be zero"),
    # Stacks.
    (lambda gs: gs.vstack([]), ValueError, "vstack: wants at least one matrix"),
    (
        lambda gs: gs.vstack([matrix(gs), matrix(gs).T]),
        ValueError,
        "vstack: matrix 1 has 2 columns but matrix 0 has 3",
    ),
    (lambda gs: gs.hstack([matrix(gs), matrix(gs).T]), ValueError, "hstack: matrix 1 has 3 rows but matrix 0 has 2"),
    (
        lambda gs: gs.block_diag([matrix(gs), matrix(gs, 2)]),
        ValueError,
        "block_diag: matrix 1 has values (3, 2) but matrix 0 has (3,)",
    ),
    (
        lambda gs: gs.block_diag([matrix(gs), gs.eye(2)]),
        TypeError,
        "block_diag: matrix 1 is Float but matrix 0 is Double",
    ),
    (lambda gs: gs.hstack([ones(2, 3)]), TypeError, "hstack: wants SparseMatrix, not Tensor"),
    (lambda gs: gs.kron(matrix(gs, 2), matrix(gs, 3)), ValueError, "kron: A has values (3, 2) but B has (3, 3)"),
    (
        lambda gs: gs.kron(gs.from_coo([], [], [], (1, 2**40)), gs.from_coo([], [], [], (1, 2**40))),
        ValueError,
        "kron: the result has too many columns, 1099511627776 times 1099511627776",
    ),
    (lambda gs: gs.diag(ones(2, 2, 2)), ValueError, "diag: wants v of shape (n,) or (n, H), not (2, 2, 2)"),
    # Reductions.
    (lambda gs: matrix(gs).sum(2), IndexError, "sum: dim must be 0, 1 or None, not 2"),
    (lambda gs: matrix(gs).mean(-3), IndexError, "mean: dim must be 0, 1 or None, not -3"),
    (lambda gs: matrix(gs).amax(2), IndexError, "amax: dim must be 0, 1 or None, not 2"),
    (lambda gs: matrix(gs)[:, :0].amax(1), ValueError, "amax: a matrix without columns has no largest number"),
    (lambda gs: matrix(gs)[:0].amax(), ValueError, "amax: a matrix without rows has no largest number"),
    (
        lambda gs: matrix(gs).map(as_integers).row_softmax(),
        TypeError,
        "row_softmax: values must be float32, float64, bfloat16 or float16, not Long",
    ),
    (lambda gs: gs.allclose(matrix(gs), ones(2, 3)), TypeError, "allclose: wants SparseMatrix, not Tensor"),
    # Elementwise.
    (lambda gs: matrix(gs) * ones(4), ValueError, "multiply: X has shape (4,) but A is 2 x 3"),
    (lambda gs: ones(2) * matrix(gs), ValueError, "multiply: X has shape (2,) but A is 2 x 3"),
    (lambda gs: matrix(gs) / ones(3, 2), ValueError, "multiply: X has shape (3, 2) but A is 2 x 3"),
    (lambda gs: matrix(gs, 2) * ones(3), ValueError, "mul: wants a number or a tensor of shape () or (H,), not (3,)"),
    (lambda gs: matrix(gs, 2) / ones(3), ValueError, "div: wants a number or a tensor of shape () or (H,), not (3,)"),
    (lambda gs: matrix(gs) ** 0, ValueError, "pow: the exponent must be positive, not 0: 0 ** p would not be 0"),
    (lambda gs: matrix(gs) ** -1.5, ValueError, "pow: the exponent must be positive, not -1.5: 0 ** p would not be 0"),
    (lambda gs: matrix(gs).map(first_two), ValueError, "map: f must give values for 3 entries, not (2,)"),
    (lambda gs: matrix(gs).map(lambda v: 1.0), ValueError, "map: f must give values for 3 entries, not float"),
    (
        lambda gs: matrix(gs).scale_rows(ones(3)),
        ValueError,
        "scale_rows: d has shape (3,) but A has 2 rows and values of shape (3,)",
    ),
    (
        lambda gs: matrix(gs, 2).scale_cols(ones(3, 4)),
        ValueError,
        "scale_cols: d has shape (3, 4) but A has 3 columns and values of shape (3, 2)",
    ),
    (lambda gs: matrix(gs).scale_rows([1.0, 2.0]), TypeError, "scale_rows: d must be a torch.Tensor, not list"),
]

# What has another type than C++ would take, or is of Python alone.
PYTHON_ONLY = {
    "index: rows must be integers, a slice, an array or a mask, not float",
    "index: cols must be integers, a slice, an array or a mask, not NoneType",
    "index: a matrix has 2 axes, not 3",
    "hstack: wants SparseMatrix, not Tensor",
    "allclose: wants SparseMatrix, not Tensor",
    "map: f must give values for 3 entries, not float",
    "scale_rows: d must be a torch.Tensor, not list",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m[2][:60] for m in MISTAKES])
@pytest.mark.parametrize("inference", [False, True], ids=["normal", "inference"])
@pytest.mark.parametrize("runner", ["cpu", "cpp"], indirect=True)
def test_mistake_is_named(mistake: Mistake, inference: bool, runner: Runner) -> None:
    runner.assert_mistake(mistake, PYTHON_ONLY, inference)
