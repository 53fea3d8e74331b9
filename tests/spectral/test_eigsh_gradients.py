# SPDX-License-Identifier: BSD-3-Clause
"""Two derivatives of eigenvalues and vectors: against dense eigh and differences, and where values are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from symmetric_matrices import (
    Symmetric,
    dense_pairs,
    gradient_of,
    mass_like,
    projector_loss,
    random_symmetric,
    weighted,
)
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs

f64 = torch.float64
eigsh = gs.linalg.eigsh


@pytest.mark.parametrize("generalised", [False, True])
@pytest.mark.parametrize("n", [14, 40])
@pytest.mark.parametrize("mode", [{"sigma": 0.3}, {"which": "LA"}, {"which": "LM"}, {"which": "SA"}], ids=str)
def test_two_derivatives_equal_those_of_dense_eigh(mode: dict[str, Any], n: int, generalised: bool) -> None:
    A, M = Symmetric(random_symmetric(n, n)), Symmetric(mass_like(n, n + 1)) if generalised else None
    a, m = A.values, None if M is None else M.values
    inputs = [v for v in (a, m) if v is not None]
    ours = weighted(*eigsh(A(a), 3, None if M is None or m is None else M(m), **mode))
    dense_M = None if M is None or m is None else M(m).to_dense()
    dense = weighted(*dense_pairs(A(a).to_dense(), dense_M, 3, mode.get("which", "LM"), mode.get("sigma")))
    first, want = (torch.autograd.grad(loss, inputs, create_graph=True) for loss in (ours, dense))
    probes = [torch.randn_like(v) for v in inputs]
    second, want_second = (
        torch.autograd.grad([(g * p).sum() for g, p in zip(gradient, probes, strict=True)], inputs)
        for gradient in (first, want)
    )
    for got, expected in zip((*first, *second), (*want, *want_second), strict=True):
        assert (got - expected).norm() < 1e-10 * expected.norm()


@pytest.mark.parametrize("mode", [{"sigma": 0.3}, {"which": "LA"}], ids=str)
def test_gradcheck(mode: dict[str, Any]) -> None:
    """Also forward mode, forward over reverse, and a matrix that is large enough for Lanczos."""
    for n in (6, 40):
        A, M = Symmetric(random_symmetric(n, 1, 0.04)), Symmetric(mass_like(n, 2))

        def f(a: Tensor, m: Tensor, A: Symmetric = A, M: Symmetric = M) -> tuple[Tensor, Tensor]:
            values, X = eigsh(A(a), 2, M(m), **mode)
            return values, X.square() @ torch.ones(2, dtype=f64) + X[:, 0] * X[0, 0]

        inputs = (A.values, M.values)
        assert gradcheck(f, inputs, check_forward_ad=n == 6, fast_mode=n > 6)
        assert gradgradcheck(f, inputs, fast_mode=True, check_fwd_over_rev=n == 6)


@pytest.mark.parametrize("mode", [{"sigma": 0}, {"which": "SA"}], ids=str)
def test_projector_on_a_degenerate_space(mode: dict[str, Any]) -> None:
    """λ₂ = λ₃ of a square grid: the gradient is that of differences, where torch.linalg.eigh has NaN; so is the second
    derivative."""
    A = Symmetric(gs.poisson((7, 7), dtype=f64).to_dense())

    def ours(a: Tensor) -> Tensor:
        values, X = eigsh(A(a), 4, **mode)
        return projector_loss(X[:, :3]) + projector_loss(X[:, 1:3]) + (values[1] + values[2]) ** 2

    def dense(a: Tensor) -> Tensor:
        values, X = torch.linalg.eigh(A(a).to_dense())
        return projector_loss(X[:, :3]) + projector_loss(X[:, 1:3]) + (values[1] + values[2]) ** 2

    a, generator = A.values, torch.Generator().manual_seed(1)
    direction = torch.randn(a.shape, generator=generator, dtype=f64)
    (gradient,) = torch.autograd.grad(ours(a), a, create_graph=True)
    h = 1e-4
    ahead, here, behind = (dense(a.detach() + t * direction) for t in (h, 0, -h))
    torch.testing.assert_close((gradient * direction).sum(), (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)
    (second,) = torch.autograd.grad((gradient * direction).sum(), a)
    want = (ahead - 2 * here + behind) / h**2
    torch.testing.assert_close((second * direction).sum(), want, rtol=1e-4, atol=1e-5)
    (nan,) = torch.autograd.grad(dense(a), a)
    assert not torch.isfinite(nan).all()


LOSSES: list[tuple[Callable[[Tensor, Tensor], Tensor], str]] = [
    (lambda values, X: (X[:, 1] ** 4).sum(), "the loss depends on the basis"),
    (lambda values, X: (X**4).sum(), "the loss depends on the basis"),
    (lambda values, X: values[1], "treats equal eigenvalues differently"),
    (lambda values, X: (values.exp() * X[0] * X[5]).sum(), "treats equal eigenvalues differently"),
]


@pytest.mark.parametrize(("loss", "message"), LOSSES)
@pytest.mark.parametrize("grid", [(4, 4), (9, 9)])
def test_a_loss_that_depends_on_the_basis_raises(
    loss: Callable[[Tensor, Tensor], Tensor], message: str, grid: tuple[int, int]
) -> None:
    A = gs.poisson(grid, dtype=f64).requires_grad_()
    result = loss(*eigsh(A, 3, sigma=0))
    with pytest.raises(ValueError, match=message):
        result.backward()
    nearly = gs.poisson((grid[0], grid[1] + 1), dtype=f64).requires_grad_()
    loss(*eigsh(nearly, 3, sigma=0)).backward()
    assert torch.isfinite(gradient_of(nearly)).all()


def test_second_derivatives_of_equal_values_alone_are_refused() -> None:
    A = gs.poisson((6, 6), dtype=f64).requires_grad_()
    values, _ = eigsh(A, 3, sigma=0)
    (gradient,) = torch.autograd.grad(values.square().sum(), A.values, create_graph=True)
    direction = torch.randn(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="treats equal eigenvalues differently"):
        (gradient * direction).sum().backward()


@pytest.mark.parametrize("grid", [(4, 4), (9, 9)])
def test_k_that_cuts_an_eigenspace(grid: tuple[int, int]) -> None:
    """The values and vectors that are whole have gradients, the vector that is not raises."""
    A = gs.poisson(grid, dtype=f64).requires_grad_()
    values, X = eigsh(A, 2, sigma=0)
    (values[0] + X[:, 0].pow(4).sum()).backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="k cuts a space of equal"):
        X[:, 1].pow(4).sum().backward()


def test_forward_mode() -> None:
    A = Symmetric(random_symmetric(40, 9))
    a, direction = A.values.detach(), torch.randn(A.A.nnz, dtype=f64)
    f = lambda v: weighted(*eigsh(A(v), 3, sigma=0.1))  # noqa: E731
    tangent = torch.func.jvp(f, (a,), (direction,))[1]
    torch.testing.assert_close(tangent, (torch.func.grad(f)(a) * direction).sum())
