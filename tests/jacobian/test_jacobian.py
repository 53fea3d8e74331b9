# SPDX-License-Identifier: BSD-3-Clause
"""Sparse Jacobians and Hessians against torch's dense ones."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from jacobian_functions import bidiagonal, differences, diffusion, grid, numbers
from torch import Tensor

import gossamer as gs

f64 = torch.float64


@pytest.mark.parametrize("dtype", [f64, torch.float32])
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3])
def test_bit_equal_to_jacfwd(dtype: torch.dtype, chunk_size: int | None) -> None:
    f, u = diffusion(12), numbers(144, dtype)
    J = gs.jacobian(f, grid(12), chunk_size=chunk_size)(u)
    assert torch.equal(J.to_dense(), torch.func.jacfwd(f)(u))
    assert J.dtype is dtype


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_rectangular(mode: str) -> None:
    u = numbers(30)
    for f, P in ((differences, bidiagonal(29)), (lambda u: torch.cat([u, u * u, u[:3]]), None)):
        J = gs.jacobian(f, P, mode=mode)(u)
        torch.testing.assert_close(J.to_dense(), torch.func.jacrev(f)(u))


def test_a_full_row_goes_in_reverse() -> None:
    """One full row needs as many colours as columns, and one product from the left."""
    calls = []

    def f(u: Tensor) -> Tensor:
        calls.append(0)
        return u.square().sum()[None]

    P = gs.from_dense(torch.ones(1, 200)).pattern
    u = numbers(200)
    assert torch.equal(gs.jacobian(f, P, check=False, chunk_size=1)(u).to_dense(), 2 * u[None])
    assert len(calls) == 1


def test_arguments() -> None:
    f, u, w = diffusion(5), numbers(25), numbers(25, seed=1)
    J = gs.jacobian(f, grid(5))
    assert torch.equal(J(u, w).to_dense(), torch.func.jacfwd(f)(u, w))
    Jw = gs.jacobian(f, argnums=1)(u, w)
    assert torch.equal(Jw.to_dense(), -torch.eye(25, dtype=f64))
    assert Jw.nnz == 25
    assert torch.equal(gs.jacobian(f, argnums=-1)(u, w).to_dense(), Jw.to_dense())
    K, aux = gs.jacobian(lambda u: (f(u), "besides"), grid(5), has_aux=True)(u)
    assert aux == "besides"
    assert torch.equal(K.to_dense(), torch.func.jacfwd(f)(u))
    of_matrix = gs.jacobian(f, gs.poisson((5, 5)))  # a matrix stands for its pattern
    assert torch.equal(of_matrix(u).to_dense(), K.to_dense())


def test_colours_are_kept_with_the_pattern() -> None:
    P, f = grid(10), diffusion(10)
    gs.jacobian(f, P)(numbers(100))
    kept = P._kept["colouring", True]
    assert kept.colours == 5
    gs.jacobian(f, P)(numbers(100))
    assert P._kept["colouring", True] is kept
    assert gs.jacobian(f, copy.deepcopy(P))(numbers(100)).nnz == P.nnz


def test_values_can_be_differentiated() -> None:
    f, P = diffusion(2), grid(2)
    u, w = numbers(4).requires_grad_(), numbers(4, seed=1).requires_grad_()

    def values(u: Tensor, w: Tensor) -> Tensor:
        return gs.jacobian(lambda u: f(u * w), P)(u).values

    assert torch.autograd.gradcheck(values, (u, w))
    assert torch.autograd.gradgradcheck(values, (u, w))

    def reverse(u: Tensor) -> Tensor:
        return gs.jacobian(f, P, mode="reverse")(u).values

    assert torch.autograd.gradcheck(reverse, u)


def test_within_transforms() -> None:
    """grad, jvp and vmap of a function of the Jacobian; each as the first to ask for the colours."""
    f, u = diffusion(4), numbers(16)

    def trace(u: Tensor) -> Tensor:
        return (gs.jacobian(f, P)(u).values ** 2).sum()

    def dense(u: Tensor) -> Tensor:
        return (torch.func.jacfwd(f)(u) ** 2).sum()

    P = grid(4)
    torch.testing.assert_close(torch.func.grad(trace)(u), torch.func.grad(dense)(u))
    torch.testing.assert_close(trace(u), dense(u))
    P = grid(4)
    torch.testing.assert_close(torch.func.jvp(trace, (u,), (u,))[1], torch.func.grad(dense)(u) @ u)
    P = grid(4)
    many = torch.stack([u, 2 * u, -u])
    torch.testing.assert_close(torch.func.vmap(trace)(many), torch.stack([dense(v) for v in many]))
    P = grid(4)
    torch.testing.assert_close(torch.func.hessian(trace)(u), torch.func.hessian(dense)(u))
    found = torch.func.grad(lambda u: (gs.jacobian(f)(u).values ** 2).sum())(u)  # the pattern is looked for inside
    torch.testing.assert_close(found, torch.func.grad(dense)(u))


def test_inference_mode_then_training() -> None:
    f, P = diffusion(4), grid(4)
    J = gs.jacobian(f, P)
    with torch.inference_mode():
        J(numbers(16))
    u = numbers(16).requires_grad_()
    J(u).values.sum().backward()
    assert u.grad is not None
    assert not P._kept["colouring", True].at.is_inference()


def test_from_threads() -> None:
    f, P, u = diffusion(20), grid(20), numbers(400)
    want, got = gs.jacobian(f, grid(20))(u).values, []
    J = gs.jacobian(f, P)
    threads = [threading.Thread(target=lambda: got.append(J(u).values)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 4
    assert all(torch.equal(values, want) for values in got)


def test_hessian() -> None:
    def energy(u: Tensor, w: Tensor) -> Tensor:
        return (u[1:] * u[:-1] ** 2).sum() + (w * u**4).sum()

    u, w = numbers(200), numbers(200, seed=1)
    H = gs.hessian(energy)(u, w)
    assert torch.equal(H.to_dense(), torch.func.jacfwd(torch.func.grad(energy))(u, w))
    torch.testing.assert_close(H.to_dense(), torch.func.hessian(energy)(u, w))
    assert H.pattern == H.pattern.T
    assert H.nnz == 200 + 2 * 199
    assert torch.equal(gs.hessian(energy, H.pattern)(u, w).values, H.values)
    H, aux = gs.hessian(lambda u: (energy(u, w), 3), H.pattern, has_aux=True)(u)
    assert aux == 3
    with pytest.raises(ValueError, match="hessian: the pattern is too small: row 0"):
        gs.hessian(energy, gs.eye(200))(u, w)


def smaller(P: gs.Pattern, row: int) -> gs.Pattern:
    """Without the last entry of a row."""
    rows, cols = P.row_indices, P.indices.long()
    keep = torch.ones(P.nnz, dtype=torch.bool)
    keep[int(P.indptr[row + 1]) - 1] = False
    return gs.from_coo(rows[keep], cols[keep], torch.ones(P.nnz - 1), P.shape).pattern


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("dtype", [f64, torch.float32])
def test_a_pattern_that_is_too_small_raises(mode: str, dtype: torch.dtype) -> None:
    u = numbers(64, dtype)
    for row in (0, 17, 63):
        with pytest.raises(ValueError, match="jacobian: the pattern is too small: row"):
            gs.jacobian(diffusion(8), smaller(grid(8), row), mode=mode)(u)
    message = "row 17 has other entries than the 4 it stores"
    with pytest.raises(ValueError, match=message):  # alone in its colours, so that no other row is wrong
        gs.jacobian(diffusion(8), smaller(grid(8), 17), mode="reverse")(u)


def test_rounding_errors_are_no_missing_entries() -> None:
    """Terms that cancel leave noise in rows that have no entries, or small ones."""
    f = lambda u: torch.cat([(u + 1e8 * u) - 1e8 * u - u, 1e8 * u])  # noqa: E731
    P = gs.from_coo(torch.arange(50, 100), torch.arange(50), torch.ones(50), (100, 50)).pattern
    assert gs.jacobian(f, P)(numbers(50)).nnz == 50


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: gs.jacobian(differences)(torch.arange(4)), TypeError, "jacobian: x must have a floating-point dtype"),
    (lambda: gs.jacobian(differences)([1.0]), TypeError, "jacobian: x must be a torch.Tensor, not list"),
    (lambda: gs.jacobian(differences)(torch.ones(2, 2)), ValueError, r"jacobian: x must be a vector \(n,\)"),
    (lambda: gs.jacobian(torch.sum)(torch.ones(2)), ValueError, r"f must return a vector \(m,\), not shape \(\)"),
    (lambda: gs.jacobian(lambda u: [u])(torch.ones(2)), TypeError, "f must return a tensor, not list"),
    (lambda: gs.jacobian(lambda u: u > 0)(torch.ones(2)), TypeError, "must return floating-point numbers, not torch.b"),
    (lambda: gs.jacobian(cast(Any, 3)), TypeError, "jacobian: f must be a function, not int"),
    (
        lambda: gs.jacobian(torch.sin, cast(Any, 3)),
        TypeError,
        "pattern must be a Pattern, a SparseMatrix or None",
    ),
    (
        lambda: gs.jacobian(torch.sin, argnums=cast(Any, (0, 1))),
        TypeError,
        "argnums must be the number of one arg",
    ),
    (lambda: gs.jacobian(torch.sin, argnums=1)(torch.ones(2)), ValueError, "argnums is 1, but there are 1 arguments"),
    (lambda: gs.jacobian(torch.sin, mode="up"), ValueError, "mode must be one of"),
    (lambda: gs.jacobian(torch.sin, chunk_size=0), ValueError, "chunk_size must be at least 1, not 0"),
    (lambda: gs.jacobian(torch.sin, gs.eye(3))(torch.ones(2)), ValueError, "pattern is 3 x 3, but x has 2 elements"),
    (lambda: gs.jacobian(differences, gs.eye(3))(torch.ones(3)), ValueError, "3 x 3, but f gives 2 numbers"),
    (
        lambda: gs.jacobian(torch.sqrt, gs.eye(3))(torch.zeros(3)),
        ValueError,
        "derivatives of f in row 0 are not finite",
    ),
    (lambda: gs.jacobian_pattern(torch.sqrt, torch.zeros(9)), ValueError, "derivatives of f in row 0 are not finite"),
    (lambda: gs.jacobian_pattern(torch.sqrt, torch.zeros(500)), ValueError, "in row 0 are not finite"),
    (lambda: gs.jacobian_pattern(torch.sin, torch.ones(500, dtype=torch.half)), TypeError, "float32 or float64"),
    (lambda: gs.jacobian_pattern(torch.sin, torch.ones(5), points=0), ValueError, "points must be at least 1, not 0"),
    (lambda: gs.hessian(torch.sin)(torch.ones(2)), ValueError, r"hessian: f must return a number, .* not \(2,\)"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES)
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
