# SPDX-License-Identifier: BSD-3-Clause
"""The host and the emulated device agree to rounding on real matrices that are small enough for the emulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import cuda_standin
import gossamer as gs

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")

NAMES = ["494_bus", "USAir97", "ash219", "bcspwr10", "fs_183_1", "illc1850", "jagmesh7", "lp_e226"]
NAMES += ["sherman3", "well1033", "west0479"]


def with_gradients(f: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    leaves = [x.detach().requires_grad_() for x in inputs]
    result = f(*leaves)
    G = torch.arange(result.numel(), device=result.device, dtype=result.dtype).cos().view_as(result)
    return [result.detach(), *torch.autograd.grad(result, leaves, G)]


def results(A: gs.SparseMatrix) -> dict[str, list[Tensor]]:
    """Products, sums, patterns, a softmax and an attention, with gradients."""
    m, n = A.shape
    x = torch.linspace(-1, 1, n, dtype=A.dtype, device=A.device)
    Y = torch.stack([x, x.square(), x.cos()], 1)
    features, score = torch.ones(n, 2, 3, dtype=A.dtype, device=A.device) * Y[:, None, :1], Y[:, :2].contiguous()
    pattern, of_rows = A.pattern, torch.ones(m, 2, dtype=A.dtype, device=A.device)
    return {
        "A x": with_gradients(lambda v, x: A.with_values(v) @ x, A.values, x),
        "A X": with_gradients(lambda v, X: A.with_values(v) @ X, A.values, Y),
        "Aᵀ A": with_gradients(lambda v: (A.with_values(v).T @ A.with_values(v)).values, A.values),
        "A ∘ A + A": with_gradients(lambda v: (A.with_values(v) * A + A).values, A.values),
        "softmax": with_gradients(lambda v: A.with_values(v).row_softmax().values, A.values / A.values.abs().max()),
        "GAT": with_gradients(lambda X, a, b: gs.gat_attention(pattern, X, a, b), features, score, of_rows),
        "every second row, backwards": [A[::2, torch.arange(n, device=A.device).flip(0)].to_dense()],
    }


@pytest.mark.parametrize("name", NAMES)
def test_host_and_device_agree(name: str, data: Path) -> None:
    A = gs.read_mtx(data / "matrices" / f"{name}.mtx").to(torch.float64)
    on_host, on_device = results(A), results(A.to(torch.device("cuda", 0)))
    for what, wanted in on_host.items():
        for got, expected in zip(on_device[what], wanted, strict=True):
            # Gradients of scores are differences of numbers of size 1, where all of a row have one slope.
            size = max(float(expected.abs().max()), 1.0) if expected.numel() else 1.0
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-11, atol=1e-13 * size, msg=f"{what}: {name}")
