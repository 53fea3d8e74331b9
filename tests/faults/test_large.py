# SPDX-License-Identifier: BSD-3-Clause
"""More than 2³¹ entries, and entries × heads beyond 2³¹, through products, attention and their gradients.

Outside of `make test`: `make test-large` wants 20 GiB of memory and minutes. GOSSAMER_LARGE sets another number of
entries, which a small machine can hold; without it the tests are skipped. All numbers are small integers, so that sums
are exact and every result is known in closed form.
"""

from __future__ import annotations

import os

import pytest
import torch

import gossamer as gs

ENTRIES = int(os.environ.get("GOSSAMER_LARGE", "0"))
pytestmark = pytest.mark.skipif(ENTRIES == 0, reason="wants 20 GiB: make test-large")
COLS, HEADS = 8, 16


def wide() -> gs.Pattern:
    """A full matrix of 64 rows: int64 indices, 16 GiB of them, and next to nothing besides."""
    rows = 64
    cols = -(-ENTRIES // rows)
    indptr = torch.arange(rows + 1, dtype=torch.int64) * cols
    return gs.Pattern(indptr, torch.arange(cols).repeat(rows), (rows, cols), check=False, simple=True)


def tall() -> gs.Pattern:
    """A full matrix of 8 columns, whose entries times the heads are so many; int32 indices."""
    rows = -(-ENTRIES // HEADS // COLS)
    indptr = torch.arange(0, COLS * rows + 1, COLS, dtype=torch.int32)
    indices = torch.arange(COLS, dtype=torch.int32).repeat(rows)
    return gs.Pattern(indptr, indices, (rows, COLS), check=False, simple=True)


def test_spmm_and_sddmm() -> None:
    """A x, and the gradient of A's values, which is sddmm. That of x would want the transpose, 48 GiB more."""
    P = wide()
    assert P.nnz >= ENTRIES
    x = torch.zeros(P.shape[1], dtype=torch.float16)
    x[0], x[-1], x[-3] = 1, 2, 4
    y = torch.ops.gossamer.spmm(P.tensors(), torch.ones(1, dtype=torch.float16).expand(P.nnz), x, P.shape)
    assert y.tolist() == [7.0] * 64
    g = torch.arange(64, dtype=torch.float16)
    d_values = torch.ops.gossamer.sddmm(P.tensors(), g, x, P.shape)
    assert d_values.shape == (P.nnz,)
    for row in (0, 1, 62, 63):
        part = d_values[row * P.shape[1] : (row + 1) * P.shape[1]]
        assert part[[0, -3, -1]].tolist() == [row, 4 * row, 2 * row]
        assert int(part.count_nonzero()) == (3 if row else 0)


def test_entries_times_heads() -> None:
    """Fewer entries with 16 heads: both gradients, the transpose included."""
    P, heads = tall(), HEADS
    assert P.nnz * heads >= ENTRIES
    values = torch.ones(P.nnz, heads, dtype=torch.float16).requires_grad_()
    x = torch.ones(COLS, heads, 1, dtype=torch.float16).requires_grad_()
    y = gs.spmm(gs.SparseMatrix(P, values), x)
    assert bool((y == COLS).all())
    y.sum(dtype=torch.float32).backward()
    assert values.grad is not None
    assert bool((values.grad[-1000:] == 1).all())
    assert x.grad is not None


def test_attention_and_its_gradient() -> None:
    """Equal scores: every weight is 1/8, and the result is the mean of ones."""
    P, heads = tall(), HEADS
    rows = P.shape[0]
    x = torch.ones(COLS, heads, 1).requires_grad_()
    source = torch.zeros(COLS, heads).requires_grad_()
    target = torch.zeros(1, 1).expand(rows, heads)
    z = gs.gat_attention(P, x, source, target)
    assert bool((z == 1).all())
    chosen = torch.zeros(rows, 1, 1)  # of all rows the sum would be 2²¹ and more, to which float32 adds no eighth
    chosen[::16] = 1
    z.backward(chosen.expand_as(z))
    assert x.grad is not None
    assert bool((x.grad == -(-rows // 16) / COLS).all())
