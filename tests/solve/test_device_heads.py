# SPDX-License-Identifier: BSD-3-Clause
"""Several matrices on one pattern of a device: factored together, with pivots of their own where they need them."""

from __future__ import annotations

import pytest
import torch

import cuda_standin
import gossamer as gs

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")

f64 = torch.float64
CUDA = torch.device("cuda", 0)


def dominant(n: int, seed: int) -> torch.Tensor:
    """No entry is zero, and the diagonal is large."""
    make = torch.Generator().manual_seed(seed)
    return torch.rand(n, n, generator=make, dtype=f64) + 0.1 + 20 * torch.eye(n, dtype=f64)


def test_heads_have_pivots_of_their_own_where_they_need_them() -> None:
    """Four matrices on one pattern; the second and the fourth have zeros on the diagonal."""
    n, H = 9, 4
    many = torch.stack([dominant(n, seed) for seed in range(H)], 2)
    for h in (1, 3):
        many[:, :, h].diagonal().zero_()
    pattern = gs.from_dense(torch.ones(n, n)).pattern.to(CUDA)
    A = gs.SparseMatrix(pattern, many.reshape(n * n, H).to(CUDA)).requires_grad_()
    b = torch.randn(n, H, 3, dtype=f64)
    X = many.clone().requires_grad_()
    wanted = torch.linalg.solve(X.movedim(2, 0), b.movedim(1, 0)).movedim(0, 1)
    factor = gs.linalg.factorize(A)
    x = factor.solve(b.to(CUDA))
    torch.testing.assert_close(x.cpu(), wanted)
    sign, logabsdet = torch.linalg.slogdet(X.movedim(2, 0))
    torch.testing.assert_close(factor.slogdet().sign.cpu(), sign)
    torch.testing.assert_close(factor.logdet().cpu(), logabsdet)
    (x.sin().sum() + factor.logdet().sin().sum()).backward()
    (wanted.sin().sum() + logabsdet.sin().sum()).backward()
    torch.testing.assert_close(A.grad.values.cpu(), X.grad.reshape(n * n, H))


def test_heads_of_a_handle_may_be_in_any_order() -> None:
    n = 6
    many = torch.stack([dominant(n, seed) for seed in range(3)], 2)
    A = gs.SparseMatrix(gs.from_dense(torch.ones(n, n)).pattern.to(CUDA), many.reshape(n * n, 3).to(CUDA))
    handle, order = gs.linalg.factorize(A)._handle, torch.tensor([2, 0, 1])
    b = torch.randn(n, 3, dtype=f64)
    x = torch.ops.gossamer.factor_solve(
        handle[order], A.pattern.tensors(True), A.values[:, order.to(CUDA)], b.to(CUDA), A.shape
    )
    wanted = torch.linalg.solve(many[:, :, order].movedim(2, 0), b.T).T
    torch.testing.assert_close(x.cpu(), wanted)


def test_vmap_over_matrices() -> None:
    A = gs.from_dense(dominant(8, 0)).to(CUDA)
    values = torch.stack([A.values, 2 * A.values, -A.values])
    b = torch.randn(8, dtype=f64).to(CUDA)
    solve = torch.func.vmap(lambda v: gs.linalg.factorize(A.with_values(v)).solve(b))
    torch.testing.assert_close(solve(values), torch.stack([gs.linalg.solve(A.with_values(v), b) for v in values]))
