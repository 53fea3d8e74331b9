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
COLS = 8


def band() -> gs.Pattern:
    """Rows of eight entries each, in every column, of which there are eight: its indices are 8 bytes an entry."""
    rows = -(-ENTRIES // COLS)
    indptr = torch.arange(0, COLS * rows + 1, COLS, dtype=torch.int64)
    indices = torch.arange(COLS, dtype=torch.int64).repeat(rows)
    return gs.Pattern(indptr, indices, (rows, COLS), check=False, simple=True)


def test_spmm_and_sddmm() -> None:
    P = band()
    assert P.nnz >= ENTRIES
    values = torch.ones(1, dtype=torch.float16).expand(P.nnz).requires_grad_()
    x = torch.ones(COLS, dtype=torch.float16).requires_grad_()
    y = torch.ops.gossamer.spmm(P.tensors(), values, x, P.shape)
    assert y.shape == (P.shape[0],)
    assert bool((y == COLS).all())
    # The gradient of the values is sddmm, with an entry for each place; of x, the transpose is not built: t=True of
    # the transpose's tensors would be another 24 bytes an entry.
    d_values = torch.ops.gossamer.sddmm(P.tensors(), torch.ones_like(y), x.detach(), P.shape)
    assert d_values.shape == (P.nnz,)
    assert bool((d_values[-1000:] == 1).all())
    assert float(d_values[2**31 - 4 : 2**31 + 4].sum()) == 8 if P.nnz > 2**31 + 4 else True


def test_entries_times_heads() -> None:
    """An eighth of the entries with eight heads and more: their product is beyond 2³¹."""
    heads = 16
    rows = -(-ENTRIES // heads // COLS)
    P = gs.Pattern(
        torch.arange(0, COLS * rows + 1, COLS, dtype=torch.int32), torch.arange(COLS, dtype=torch.int32).repeat(rows),
        (rows, COLS), check=False, simple=True,
    )  # fmt: skip
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
    heads = 16
    rows = -(-ENTRIES // heads // COLS)
    P = gs.Pattern(
        torch.arange(0, COLS * rows + 1, COLS, dtype=torch.int32), torch.arange(COLS, dtype=torch.int32).repeat(rows),
        (rows, COLS), check=False, simple=True,
    )  # fmt: skip
    x = torch.ones(COLS, heads, 1).requires_grad_()
    source = torch.zeros(COLS, heads).requires_grad_()
    target = torch.zeros(1, 1).expand(rows, heads)
    z = gs.gat(P, x, source, target)
    assert bool((z == 1).all())
    z.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.full_like(x, rows / COLS), rtol=1e-3, atol=0)
