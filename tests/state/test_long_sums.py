# SPDX-License-Identifier: BSD-3-Clause
"""Sums over vectors that torch splits among its threads, of 32768 numbers or more: the bits are the same for each
number of threads, in the result and in the gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import gossamer as gs

SIDE = 300
N = SIDE * SIDE
LARGE_ROWS = 1 + 9 * (torch.arange(N) > N - 3)


def matrix(v: Tensor) -> gs.SparseMatrix:
    """A grid with v on its diagonal too; its seven smallest eigenvalues are far from the others."""
    return gs.poisson((SIDE, SIDE), dtype=v.dtype) + gs.diag(v + 9.0 * (torch.arange(N) > 6))


def plate(v: Tensor) -> gs.SparseMatrix:
    """With row sums of D⁻¹ A above 2, so that multigrid asks the power method for the largest eigenvalue."""
    A = matrix(v)
    return A @ A


def root(v: Tensor) -> Tensor:
    A = matrix(v.detach())
    x: Tensor = gs.linalg.root(lambda x, p: A @ x + x**3 - p, torch.zeros_like(v), (v,), A.pattern)[0]
    return x


def gradient_of_vectors(v: Tensor) -> Tensor:
    X = gs.linalg.eigsh(matrix(v), 5, which="SA")[1]
    (gradient,) = torch.autograd.grad(X.square().sin().sum(0).square().sum(), v, create_graph=True)
    return gradient


RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "trace": lambda v: torch.stack([matrix(i * v).trace() for i in range(9)]),
    "norm": lambda v: torch.stack([matrix(i * v).norm() for i in range(9)]),
    "eigenvectors": lambda v: gs.linalg.eigsh(matrix(v), 5, which="SA")[1].square(),
    "eigenvectors near a shift": lambda v: gs.linalg.eigsh(matrix(v), 1, sigma=0.0)[1].square(),
    "gradient of eigenvectors": gradient_of_vectors,
    "singular vectors": lambda v: gs.linalg.svds(matrix(v).scale_rows(LARGE_ROWS), 2)[0].square(),
    "unrolled": lambda v: gs.linalg.cg(matrix(v), v, unrolled=True)[0],
    "multigrid": lambda v: gs.linalg.cg(plate(v), v, M=gs.linalg.amg(plate(v)))[0],
    "root": root,
}


@pytest.mark.parametrize("name", RESULTS)
def test_threads_agree_bitwise(name: str) -> None:
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        v = torch.rand(N, generator=torch.Generator().manual_seed(1), dtype=torch.float64).add(0.5).requires_grad_()
        y = RESULTS[name](v)
        (gradient,) = torch.autograd.grad(y.sin().cumsum(0)[-1].sum(), v)
        found.append((y.detach(), gradient))
    for y, gradient in found[1:]:
        assert torch.equal(y, found[0][0])
        assert torch.equal(gradient, found[0][1])
