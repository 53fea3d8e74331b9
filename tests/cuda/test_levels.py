# SPDX-License-Identifier: BSD-3-Clause
"""Triangular solves on a device level by level, for patterns whose level sets were asked for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import cuda_standin
import gossamer as gs

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")
DEVICE = torch.device("cuda", 0)


def two_levels(n: int) -> gs.SparseMatrix:
    """Lower triangular: rows of the second half need one of the first. Two levels, n / 2 rows each."""
    torch.manual_seed(0)
    half, below = torch.arange(n // 2), torch.arange(n // 2, n)
    rows, cols = torch.cat([half, below, below]), torch.cat([half, half, below])
    return gs.from_coo(rows, cols, torch.rand(len(rows), dtype=torch.float64) + 1, (n, n)).to(DEVICE)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("transpose", [False, True])
def test_levels_give_the_same(columns: tuple[int, ...], transpose: bool) -> None:
    L, b = two_levels(1024), torch.rand(1024, *columns, dtype=torch.float64, device=DEVICE, requires_grad=True)

    def solve() -> tuple[Tensor, Tensor]:
        x = gs.linalg.solve_triangular(L, b, transpose=transpose)
        (db,) = torch.autograd.grad(x.sum(), b)
        return x.detach().cpu(), db.cpu()

    row_by_row = solve()
    assert L.pattern.levels_at_hand(upper=False) == []
    level_ptr, order = L.pattern.levels(upper=False)
    assert (level_ptr.device.type, order.device.type) == ("cpu", "cuda")
    assert level_ptr[:4].tolist() == [0, 512, 1024, 1024]
    cuda_standin.traffic()
    by_levels = solve()
    copies, looks = cuda_standin.traffic()
    assert (copies, looks) == (2, 2)  # the two results come to the host; the pivots of two solves are looked at
    for one, other in zip(row_by_row, by_levels, strict=True):
        assert torch.equal(one, other)


def test_levels_are_used_where_there_are_few() -> None:
    """Levels that lie, so that it shows: the second half of the rows is said to need nothing."""
    for n, used in [(1024, True), (256, False)]:
        L, b = two_levels(n), torch.ones(n, dtype=torch.float64, device=DEVICE)
        level_ptr = torch.full((n + 1,), n, dtype=L.indices.dtype)
        level_ptr[0], level_ptr[1] = 0, n // 2
        order = torch.arange(n, dtype=L.indices.dtype).flip(0).to(DEVICE)
        solve = torch.ops.gossamer.solve_triangular.default
        x = solve(L.pattern.tensors(), L.values, b, L.shape, [level_ptr, order])
        wanted = solve(L.pattern.tensors(), L.values, b, L.shape, [])
        assert torch.equal(x.cpu(), wanted.cpu()) != used


def test_a_zero_pivot_is_named() -> None:
    L = two_levels(1024)
    L.pattern.levels(upper=False)
    values = L.values.clone()
    values[512 + 2 * (700 - 512) + 1] = 0  # the diagonal of row 700: rows of the second half have two entries each
    with pytest.raises(gs.linalg.SingularMatrixError, match="row 700 has a zero on the diagonal"):
        gs.linalg.solve_triangular(L.with_values(values), torch.ones(1024, dtype=torch.float64, device=DEVICE))


def test_levels_of_another_device_are_refused() -> None:
    L, b = two_levels(512), torch.ones(512, dtype=torch.float64, device=DEVICE)
    level_ptr, order = L.pattern.levels(upper=False)
    with pytest.raises(ValueError, match="the levels are of another matrix"):
        torch.ops.gossamer.solve_triangular.default(
            L.pattern.tensors(), L.values, b, L.shape, [level_ptr.to(DEVICE), order]
        )
