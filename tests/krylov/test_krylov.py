# SPDX-License-Identifier: BSD-3-Clause
"""Iterative solves against dense torch, finite differences and SciPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import scipy.sparse.linalg as sl
import torch
from solvable import F64, METHODS, SYMMETRIC, dense_of, matrix_for, numbers

import gossamer as gs
from gossamer import linalg

SQUARE = METHODS[:4]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [(), (1,), (3,), (21,)])
def test_solutions_and_residuals(method: str, columns: tuple[int, ...]) -> None:
    A, b = matrix_for(method, (12, 11)), numbers(132, *columns)
    x, info = getattr(linalg, method)(A, b, rtol=1e-10)
    torch.testing.assert_close(x, torch.linalg.solve(A.to_dense(), b), rtol=1e-6, atol=1e-7)
    assert info.iterations.shape == info.residual.shape == info.converged.shape == columns
    assert info.converged.all()
    r = b - A @ x
    wanted, scale = (A.T @ r, A.T @ b) if method == "lsmr" else (r, b)
    torch.testing.assert_close(info.residual, wanted.norm(dim=0))
    assert (info.residual <= 1e-10 * scale.norm(dim=0)).all()


def test_as_many_iterations_as_scipy() -> None:
    A, b = gs.poisson((40, 40), dtype=F64), numbers(1600)
    count = [0]
    sl.cg(A.to_scipy(), b.numpy(), rtol=1e-8, callback=lambda _: count.__setitem__(0, count[0] + 1))
    _, info = linalg.cg(A, b, rtol=1e-8)
    assert abs(int(info.iterations) - count[0]) <= 2


@pytest.mark.parametrize("method", SQUARE)
def test_preconditioners(method: str) -> None:
    A, b = matrix_for(method, (10, 10)), numbers(100, 3)
    scale = 0.5 + torch.rand(100, dtype=F64, generator=torch.Generator().manual_seed(1))
    A = gs.diag(scale) @ A @ gs.diag(scale)
    M = gs.diag(1 / A.diagonal())
    solve = getattr(linalg, method)
    for given in (M, lambda r: M @ r):
        x, info = solve(A, b, M=given, rtol=1e-11)
        torch.testing.assert_close(x, torch.linalg.solve(A.to_dense(), b), rtol=1e-7, atol=1e-8)
        assert (info.iterations < solve(A, b, rtol=1e-11)[1].iterations).all()


@pytest.mark.parametrize("method", METHODS)
def test_frozen_columns_do_not_change(method: str) -> None:
    """A column that converges at once gets the same solution beside others that take long, and none goes wrong."""
    A = gs.poisson((20, 20), dtype=F64)
    vectors = torch.linalg.eigh(A.to_dense()).eigenvectors
    easy, hard = vectors[:, [0, 7]], numbers(400, 6)
    b = torch.cat([easy[:, :1], hard, easy[:, 1:], torch.zeros(400, 1, dtype=F64)], 1)
    solve = getattr(linalg, method)
    x, info = solve(A, b, rtol=1e-10)
    assert info.iterations[[0, 7]].max() <= 8 < info.iterations[1:7].min()
    assert info.iterations[8] == 0
    assert (x[:, 8] == 0).all()
    torch.testing.assert_close(x, torch.linalg.solve(A.to_dense(), b), rtol=1e-6, atol=1e-7)
    for c in (0, 7):
        early, _ = solve(A, b, rtol=1e-10, maxiter=int(info.iterations[c]), check=False)
        torch.testing.assert_close(early[:, c], x[:, c], rtol=0, atol=0 if method != "gmres" else 1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_beginning_at_the_solution_and_at_zero(method: str) -> None:
    A, b = matrix_for(method, (6, 6)), numbers(36)
    solve = getattr(linalg, method)
    x, _ = solve(A, b, rtol=1e-12)
    again, info = solve(A, b, x0=x, rtol=1e-8)
    assert info.iterations == 0
    assert torch.equal(again, x)
    zero, info = solve(A, torch.zeros(36, dtype=F64), x0=x)
    assert info.iterations == 0
    assert (zero == 0).all()
    assert info.converged
    closer, info = solve(A, b, x0=x + 1e-4 * numbers(36, seed=9), rtol=1e-9)
    torch.testing.assert_close(closer, x, rtol=1e-6, atol=1e-7)
    assert torch.equal(solve(A, b[:, None], x0=x[:, None], rtol=1e-8)[0][:, 0], x)


@pytest.mark.parametrize("method", METHODS)
def test_no_convergence_raises_forward_and_backward(method: str) -> None:
    A, b = matrix_for(method, (20, 20)).requires_grad_(), numbers(400)
    solve = getattr(linalg, method)
    with pytest.raises(gs.ConvergenceError, match=rf"{method}: no convergence.*maxiter.*after 3 iterations.*wanted"):
        solve(A, b, maxiter=3)
    x, info = solve(A, b, maxiter=3, check=False)
    assert not info.converged
    assert info.iterations == 3
    assert torch.isfinite(x).all()
    x, _ = solve(A, b, maxiter=15, rtol=0.5, adjoint_rtol=1e-12)
    with pytest.raises(gs.ConvergenceError, match=f"{method} with the transpose: no convergence"):
        (x * numbers(400, seed=5)).sum().backward()
    x, _ = solve(A, b, maxiter=15, rtol=0.5, adjoint_rtol=1e-12, callback=lambda info: None)  # driven by Python
    with pytest.raises(gs.ConvergenceError, match=f"{method} with the transpose: no convergence"):
        (x * numbers(400, seed=5)).sum().backward()


@pytest.mark.parametrize("method", METHODS)
def test_breakdowns_and_bad_numbers_raise(method: str) -> None:
    solve = getattr(linalg, method)
    A, b = matrix_for(method), numbers(12, 2)
    for bad in (torch.nan, torch.inf):
        c, v = b.clone(), A.values.clone()
        c[3, 1] = v[5] = bad
        with pytest.raises(gs.ConvergenceError, match="column 1: a number that is not finite"):
            solve(A, c)
        with pytest.raises(gs.ConvergenceError):
            solve(A.with_values(v), b)
    singular = gs.from_dense(torch.ones(2, 2, dtype=F64))
    if method != "lsmr":
        with pytest.raises(gs.ConvergenceError):
            solve(singular, torch.tensor([1.0, 0.0], dtype=F64))
        with pytest.raises(gs.ConvergenceError):  # rounding does not allow that
            solve(gs.poisson((30, 30), dtype=F64), numbers(900), rtol=1e-18)


def test_cg_says_what_is_not_positive_definite() -> None:
    A, b = gs.poisson(5, dtype=F64), numbers(5)
    with pytest.raises(gs.ConvergenceError, match="A is not positive definite"):
        linalg.cg(-A, b)
    for method in SYMMETRIC:
        with pytest.raises(gs.ConvergenceError, match="M is not positive definite"):
            getattr(linalg, method)(A, b, M=-gs.eye(5, dtype=F64))


def test_wrong_arguments_are_named() -> None:
    A, b = gs.poisson(5, dtype=F64), numbers(5)
    cases: list[tuple[Any, Any, str]] = [
        (lambda: linalg.cg(A.to_dense(), b), TypeError, "A must be a SparseMatrix"),  # type: ignore[arg-type]
        (lambda: linalg.cg(A, numbers(4)), ValueError, "b"),
        (lambda: linalg.cg(A, b.float()), (TypeError, ValueError), "b"),
        (lambda: linalg.cg(A, b, x0=numbers(4)), ValueError, "x0"),
        (lambda: linalg.cg(A, b, x0=numbers(5, 1)), ValueError, "x0"),
        (lambda: linalg.cg(A, b, rtol=-1.0), ValueError, "rtol"),
        (lambda: linalg.cg(A, b, maxiter=-1), ValueError, "maxiter"),
        (lambda: linalg.gmres(A, b, restart=0), ValueError, "restart"),
        (lambda: linalg.cg(A, b, M=3), TypeError, "M must be"),
        (lambda: linalg.cg(gs.random(3, 4, density=1.0, dtype=F64), numbers(3)), ValueError, "square, not 3 x 4"),
        (lambda: linalg.lsmr(A, b, x0=b, damp=1.0), ValueError, "x0"),
        (lambda: linalg.cg(A.with_values(torch.stack([A.values] * 2, 1)), b), ValueError, "one matrix"),
        (lambda: linalg.cg(A, b, M=lambda r: 3), TypeError, "a product must be a torch.Tensor"),
        (lambda: linalg.cg(A, b, M=lambda r: r[:2]), ValueError, "a product has shape"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("method", METHODS)
def test_float32_inference_threads_and_vmap(method: str) -> None:
    A, b = matrix_for(method, (9, 8)), numbers(72, 4)
    solve, exact = getattr(linalg, method), torch.linalg.solve(A.to_dense(), b)
    with torch.inference_mode():
        x, info = solve(A.to(dtype=torch.float32), b.float())
    assert x.dtype is torch.float32
    assert info.converged.all()
    torch.testing.assert_close(x.double(), exact, rtol=2e-3, atol=2e-3)
    batched = torch.func.vmap(lambda c: solve(A, c, rtol=1e-10)[0], in_dims=1, out_dims=1)(b)
    torch.testing.assert_close(batched, exact, rtol=1e-6, atol=1e-7)
    stack = torch.stack([A.values, 2 * A.values])
    halves = torch.func.vmap(lambda v: solve(A.with_values(v), b, rtol=1e-10)[0])(stack)
    torch.testing.assert_close(halves, torch.stack([exact, exact / 2]), rtol=1e-6, atol=1e-7)
    threads = torch.get_num_threads()
    one = solve(A, b)[0]
    torch.set_num_threads(3)
    try:
        assert torch.equal(solve(A, b)[0], one)
    finally:
        torch.set_num_threads(threads)


def test_callbacks_see_every_iteration_and_may_stop() -> None:
    A, b = gs.poisson((8, 8), dtype=F64), numbers(64).requires_grad_()
    for method in METHODS:
        seen: list[linalg.KrylovInfo] = []
        x, info = getattr(linalg, method)(A, b, callback=seen.append)
        assert [int(now.iterations) for now in seen] == list(range(1, int(info.iterations) + 1))
        torch.testing.assert_close(x, getattr(linalg, method)(A, b)[0], rtol=1e-6, atol=1e-7)
        x.sum().backward()

    def stop(info: linalg.KrylovInfo) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration):
        linalg.cg(A, b, callback=stop)


def test_compile_and_autocast() -> None:
    A, b = gs.poisson((5, 5), dtype=F64), numbers(25)
    compiled = torch.compile(lambda v, b: linalg.cg(A.with_values(v), b)[0], backend="aot_eager", fullgraph=True)
    v = A.values.clone().requires_grad_()
    compiled(v, b).sum().backward()
    w = A.values.clone().requires_grad_()
    torch.linalg.solve(dense_of(A, w), b).sum().backward()
    torch.testing.assert_close(v.grad, w.grad, rtol=1e-5, atol=1e-6)


# The signal comes while C++ is at work, which the main thread's Python cannot see.
INTERRUPTED = """
import os, signal, threading, torch, gossamer as gs
signal.signal(signal.SIGINT, signal.default_int_handler)
A = gs.poisson((700, 700), dtype=torch.float64)
b = torch.ones(490000, dtype=torch.float64, requires_grad=True)
x, _ = gs.linalg.cg(A, b, rtol=0.9, adjoint_rtol=1e-30, maxiter=10**8)
for work in (lambda: gs.linalg.cg(A, b, rtol=1e-30, maxiter=10**8), lambda: x.sin().sum().backward()):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        work()
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    except RuntimeError:
        try:
            for _ in range(10**9):
                pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
print(bool(gs.linalg.cg(gs.poisson(30, dtype=torch.float64), torch.ones(30, dtype=torch.float64))[1].converged))
"""


def test_control_c_returns_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\ninterrupted\nTrue\n", done.stdout + done.stderr


@pytest.mark.parametrize("method", METHODS)
def test_numbers_whose_squares_are_zero_or_infinite(method: str) -> None:
    """x is linear in b, also where ‖b‖² is no number; an x of 0 had converged there."""
    solve = getattr(linalg, method)
    for dtype, factors in ((F64, [1e-300, 1e-160, 1, 1e200, 0]), (torch.float32, [1e-30, 1, 1e25])):
        A, scales = gs.poisson((8, 8), dtype=dtype), torch.tensor(factors, dtype=dtype)
        b = torch.linspace(1, 2, 64, dtype=dtype)
        x, info = solve(A, b[:, None] * scales, x0=torch.ones(64, 1, dtype=dtype) * scales)
        torch.testing.assert_close(x, solve(A, b)[0][:, None] * scales, rtol=1e-3 if dtype != F64 else 1e-6, atol=0)
        assert info.converged.all()
        assert (info.residual <= 1e-4 * b.double().norm() * scales.double()).all()
    tiny = torch.full((64,), 1e-200, dtype=F64, requires_grad=True)
    (gradient,) = torch.autograd.grad(solve(gs.poisson((8, 8), dtype=F64), tiny)[0].sum(), tiny)
    assert gradient.min() > 0
    with pytest.raises(gs.ConvergenceError, match="scale A"):
        linalg.lsmr(gs.poisson((8, 8), dtype=F64) * 1e-200, torch.ones(64, dtype=F64))
