# SPDX-License-Identifier: BSD-3-Clause
"""Roots against SciPy, closed forms and differences; their gradients to second order, in both modes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest
import scipy.optimize
import torch
from torch import Tensor

import gossamer as gs
from gossamer.linalg import ConvergenceError, root

f64 = torch.float64


def chain(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Each unknown pulls at the next: three entries a row, not symmetric."""
    left, right = torch.nn.functional.pad(x[:-1], (1, 0)), torch.nn.functional.pad(x[1:], (0, 1))
    return a * x**3 + 2 * x - 0.5 * left - 0.3 * right * x - b


def numbers(n: int, seed: int = 0, dtype: torch.dtype = f64) -> Tensor:
    return torch.rand(n, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def solve(a: Tensor, b: Tensor) -> Tensor:
    return root(chain, torch.zeros(len(b), dtype=b.dtype), (a, b), rtol=1e-13)[0]


def test_equals_scipy() -> None:
    a, b = numbers(30), 5 * numbers(30, 1)
    x, info = root(chain, torch.zeros(30, dtype=f64), (a, b))
    want = scipy.optimize.root(lambda x: chain(torch.tensor(x), a, b).numpy(), torch.zeros(30).numpy(), tol=1e-13).x
    torch.testing.assert_close(x, torch.tensor(want))
    assert info.converged
    assert 1 <= info.iterations < 12
    assert info.residual == pytest.approx(chain(x, a, b).norm().item())


def test_pattern_given_or_found() -> None:
    a, b = numbers(200), numbers(200, 1)
    P = gs.poisson(200).pattern
    given, _ = root(chain, torch.zeros(200, dtype=f64), (a, b), P)
    found, _ = root(chain, torch.zeros(200, dtype=f64), (a, b))
    torch.testing.assert_close(given, found)
    with pytest.raises(ValueError, match="root: the pattern is too small: row 1"):
        root(chain, torch.zeros(200, dtype=f64), (a, b), gs.eye(200))


def test_gradients_to_second_order() -> None:
    a, b = numbers(4).requires_grad_(), numbers(4, 1).requires_grad_()
    assert torch.autograd.gradcheck(solve, (a, b))
    assert torch.autograd.gradgradcheck(solve, (a, b))


def test_gradients_of_transforms() -> None:
    a, b = numbers(4), numbers(4, 1)
    reverse = torch.stack([torch.func.grad(lambda a, i=i: solve(a, b)[i])(a) for i in range(4)])
    forward = torch.stack([torch.func.jvp(lambda a: solve(a, b), (a,), (e,))[1] for e in torch.eye(4, dtype=f64)], 1)
    torch.testing.assert_close(forward, reverse)
    h = 1e-6
    rows = [(solve(a + h * e, b) - solve(a - h * e, b)) / (2 * h) for e in torch.eye(4, dtype=f64)]
    torch.testing.assert_close(forward, torch.stack(rows, 1), rtol=1e-6, atol=1e-8)

    def gradient(a: Tensor) -> Tensor:
        return torch.func.grad(lambda a: solve(a, b).square().sum())(a)

    e = numbers(4, 2)
    hessian_e = torch.func.grad(lambda a: gradient(a) @ e)(a)
    torch.testing.assert_close(hessian_e, (gradient(a + h * e) - gradient(a - h * e)) / (2 * h), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(torch.func.jvp(gradient, (a,), (e,))[1], hessian_e)  # forward over reverse


def test_what_has_no_gradient() -> None:
    a, b, x0 = numbers(5), numbers(5, 1), torch.zeros(5, dtype=f64, requires_grad=True)
    x, _ = root(chain, x0, (a, b))
    assert not x.requires_grad
    b.requires_grad_()
    x, _ = root(lambda x, b, power: x**power - b, x0 + 1, (b, 3))  # a param may be anything
    x.sum().backward()
    assert x0.grad is None
    torch.testing.assert_close(b.grad, b.detach() ** (-2 / 3) / 3)
    x, _ = root(lambda x, unused: x**3 - 8, torch.ones(5, dtype=f64), (b,))
    assert torch.equal(torch.autograd.grad(x.sum(), b)[0], torch.zeros(5, dtype=f64))


def test_line_search() -> None:
    """Newton's step for atan leads away from |x| > 1.4: halved, it arrives."""
    x, info = root(torch.atan, torch.tensor([3.0, -10.0, 0.5], dtype=f64))
    assert x.abs().max() < 1e-9
    assert info.converged


def test_start_at_the_root() -> None:
    b = numbers(3).requires_grad_()
    x, info = root(lambda x, b: x - b, b.detach(), (b,))
    assert info == (0, 0.0, True)
    assert root(lambda x, b: x - b, b.detach(), (b,), maxiter=0)[1] == (0, 0.0, True)  # which takes no step
    x.sum().backward()
    assert torch.equal(cast(Tensor, b.grad), torch.ones(3, dtype=f64))
    # An end that cannot be reached is none: the step is a rounding error.
    x, info = root(lambda x: x * x - 2, torch.full((3,), 1.414, dtype=f64), rtol=1e-30)
    assert info.converged
    assert x.square().sub(2).abs().max() < 1e-15


def test_float32() -> None:
    a, b = numbers(50, dtype=torch.float32), numbers(50, 1, torch.float32).requires_grad_()
    x, info = root(chain, torch.zeros(50), (a, b))
    assert x.dtype is torch.float32
    assert info.converged
    x.sum().backward()
    b64 = b.detach().double().requires_grad_()
    solve(a.double(), b64).sum().backward()
    torch.testing.assert_close(cast(Tensor, b.grad).double(), b64.grad, rtol=1e-4, atol=1e-5)


def test_used_again() -> None:
    """Two backwards through one solution, a detached copy of it, and a solve in inference mode between them."""
    a, b = numbers(6).requires_grad_(), numbers(6, 1)
    x = solve(a, b)
    first = torch.autograd.grad(x.sum(), a, retain_graph=True)[0]
    with torch.inference_mode():
        solve(a, b)
    kept = copy.copy(x.detach())
    assert torch.equal(first, torch.autograd.grad(x.sum(), a)[0])
    assert torch.equal(kept, x)


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: root(lambda x: x * x + 1, torch.full((3,), 1.7)), ConvergenceError, "no step makes f fall at iteration"),
    (lambda: root(lambda x: x.exp() - 3, torch.ones(3), maxiter=1), ConvergenceError, "after 1 iterations"),
    (lambda: root(lambda x: x.log(), -torch.ones(3)), ConvergenceError, "f is not finite at iteration 0"),
    (lambda: root(lambda x: x * x[0] - 1, torch.zeros(3)), gs.SingularMatrixError, "singular"),
    (lambda: root(lambda x: x[1:], torch.ones(3)), ValueError, r"as many numbers as x has, \(3,\), not \(2,\)"),
    (
        lambda: root(torch.sin, torch.ones(3), cast(Any, torch.ones(3))),
        TypeError,
        "params must be a sequence of",
    ),
    (lambda: root(torch.sin, torch.ones(3, dtype=torch.int64)), TypeError, "root: x must have a floating-point dtype"),
    (lambda: root(torch.sin, torch.ones(3, 1)), ValueError, "root: x must be a vector"),
    (lambda: root(torch.sin, torch.ones(3), maxiter=-1), ValueError, "maxiter must not be negative"),
    (
        lambda: torch.func.vmap(lambda b: root(lambda x, b: x - b, torch.zeros(3), (b,))[0])(torch.ones(2, 3)),
        NotImplementedError,
        "vmap is not supported",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES)
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
