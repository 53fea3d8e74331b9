# SPDX-License-Identifier: BSD-3-Clause
"""Roots of nonlinear systems by Newton's method with sparse Jacobians, differentiable in the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gossamer._convergence import ConvergenceError
from gossamer._factor import Factor, factorize
from gossamer._jacobian import Jacobian
from gossamer._jacobian_pattern import check_point
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer._transforms import is_batched, outside, unwrapped

_ops = torch.ops.gossamer

SHORTEST = 2.0**-30  # step of the line search


class RootInfo(NamedTuple):
    """How Newton's method went."""

    iterations: int
    residual: float  # ‖f(x)‖₂
    converged: bool


def root(
    f: Callable[..., Tensor],
    x0: Tensor,
    params: Sequence[Any] = (),
    pattern: Pattern | SparseMatrix | None = None,
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int = 50,
    kind: str = "auto",
    mode: str = "auto",
    chunk_size: int | None = None,
) -> tuple[Tensor, RootInfo]:
    """x with ``f(x, *params)`` = 0 near x0, and how it was found: iterations, residual ‖f(x)‖, converged.

    Newton's method: J(x) d = -f(x) by ``linalg.factorize`` of the sparse Jacobian (``gs.jacobian``, which says what
    pattern, mode and chunk_size are; without a pattern it is found at x0 and grows where it must), and the longest of
    the steps d, d/2, d/4 … by which ‖f‖ falls (Armijo). It ends when ‖f(x)‖ ≤ max(rtol ‖f(x0)‖, atol), or when the
    step is a rounding error of x. rtol: 1e-10, and 1e-5 in float32. An iteration that does not end in maxiter steps, or
    where no step makes ‖f‖ fall, raises ConvergenceError; a Jacobian without an inverse SingularMatrixError. kind is
    that of the factorisation.

    Gradient: by the implicit function theorem, dparams = -(∂f/∂params)ᵀ J⁻ᵀ g at the solution: one more factorisation,
    however many iterations there were. Right to any order and in forward mode. Only tensors among ``params`` have one:
    what f uses besides is a constant. So is x0.

    >>> a = torch.tensor([4.0, 9.0], requires_grad=True)
    >>> x, info = gs.linalg.root(lambda x, a: x * x - a, torch.ones(2), (a,))
    >>> x.sum().backward()
    >>> x.detach(), a.grad, info.converged
    (tensor([2., 3.]), tensor([0.2500, 0.1667]), True)
    """
    check_point("root", x0)
    if isinstance(params, Tensor):
        raise TypeError("root: params must be a sequence of tensors, not one tensor: (p,)")
    if maxiter < 0:
        raise ValueError(f"root: maxiter must not be negative, but is {maxiter}")
    J = Jacobian("root", f, pattern, 0, False, mode, chunk_size, check=True, keep_pattern=True)
    if any(isinstance(p, Tensor) and is_batched(p) for p in (x0, *params)):
        raise NotImplementedError("root: vmap is not supported, for each problem takes its own iterations")
    constants = [unwrapped(p).detach() if isinstance(p, Tensor) else p for p in params]
    with torch.no_grad():
        x, info = _newton(f, J, unwrapped(x0).detach(), constants, rtol, atol, maxiter, kind)
    x = unwrapped(x)
    return _Implicit.apply(_Problem(f, J, kind), x, *params), info  # type: ignore[no-untyped-call]


def _newton(
    f: Callable[..., Tensor],
    J: Jacobian,
    x: Tensor,
    params: list[Any],
    rtol: float | None,
    atol: float,
    maxiter: int,
    kind: str,
) -> tuple[Tensor, RootInfo]:
    x, y = x.clone(), f(x, *params)
    if not isinstance(y, Tensor) or y.shape != x.shape:
        what = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"root: f must return as many numbers as x has, {tuple(x.shape)}, not {what}")
    eps = torch.finfo(x.dtype).eps
    rtol = (1e-5 if x.dtype is torch.float32 else 1e-10) if rtol is None else rtol
    size = _ops.norm(y).item()
    goal = max(rtol * size, atol)
    for k in range(maxiter + 1):
        if size <= goal:
            return x, RootInfo(k, size, True)
        if not size < float("inf"):
            raise ConvergenceError(f"root: f is not finite at iteration {k}")
        if k == maxiter:
            break
        step = _factor(J(x, *params), kind).solve(-y)
        small = _ops.norm(step).item() <= 8 * eps * _ops.norm(x).item()
        length = 1.0
        while True:
            trial = x + length * step
            y_trial = f(trial, *params)
            size_trial = _ops.norm(y_trial).item()
            if size_trial <= (1 - 1e-4 * length) * size:
                x, y, size = trial, y_trial, size_trial
                break
            length /= 2
            if small or length < SHORTEST:
                break
        if small:
            return x, RootInfo(k + 1, size, True)
        if length < SHORTEST:
            raise ConvergenceError(f"root: no step makes f fall at iteration {k}, where its norm is {size:.3g}")
    raise ConvergenceError(f"root: the norm of f is {size:.3g} after {maxiter} iterations, not {goal:.3g}")


def _factor(J: SparseMatrix, kind: str) -> Factor:
    with outside():
        J.pattern.analysis()  # is kept with the pattern
    return factorize(J, kind)


class _Problem(NamedTuple):
    f: Callable[..., Tensor]
    J: Jacobian
    kind: str

    def solve(self, x: Tensor, params: Sequence[Any], b: Tensor, transpose: bool) -> Tensor:
        return _factor(self.J(x, *params), self.kind).solve(b, transpose)


class _Implicit(torch.autograd.Function):
    """x as a function of the params: f(x, params) = 0, so J x' = -(∂f/∂params) params'."""

    @staticmethod
    def forward(problem: _Problem, x: Tensor, *params: Any) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.problem, _, *params = inputs
        ctx.params = [None if isinstance(p, Tensor) else p for p in params]  # tensors are saved as torch wants it
        saved = [output, *(p for p in params if isinstance(p, Tensor))]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, params = _saved(ctx)
        wanted = [k for k in range(len(params)) if ctx.needs_input_grad[2 + k]]
        u = ctx.problem.solve(x, params, g, True)
        of_wanted = _partial(ctx.problem.f, x, params, wanted)
        grads = torch.func.vjp(of_wanted, *(params[k] for k in wanted))[1](-u)
        all_grads: list[Tensor | None] = [None] * len(params)
        for k, grad in zip(wanted, grads, strict=True):
            all_grads[k] = grad
        return None, None, *all_grads

    @staticmethod
    def jvp(ctx: Any, _problem: None, _x: Tensor | None, *tangents: Tensor | None) -> Tensor:
        x, params = _saved(ctx)
        moved = [k for k, tangent in enumerate(tangents) if tangent is not None]
        of_moved = _partial(ctx.problem.f, x, params, moved)
        b = torch.func.jvp(of_moved, tuple(params[k] for k in moved), tuple(tangents[k] for k in moved))[1]
        tangent: Tensor = ctx.problem.solve(x, params, -b, False)
        return tangent


def _saved(ctx: Any) -> tuple[Tensor, list[Any]]:
    x, *tensors = ctx.saved_tensors
    rest = iter(tensors)
    return x, [next(rest) if p is None else p for p in ctx.params]


def _partial(f: Callable[..., Tensor], x: Tensor, params: list[Any], which: list[int]) -> Callable[..., Tensor]:
    """f as a function of some of its params."""

    def of_some(*some: Tensor) -> Tensor:
        given = list(params)
        for k, p in zip(which, some, strict=True):
            given[k] = p
        return f(x, *given)

    return of_some
