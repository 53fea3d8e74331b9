# SPDX-License-Identifier: BSD-3-Clause
"""A matrix that is a function, and solves with it that are differentiable in its parameters.

The solve is one node of autograd whatever its method, and its derivative is written in the same solve: with A x = b,

    db = A⁻ᵀ g        d params = -∂⟨db, A(params) x⟩ / ∂ params        x' = A⁻¹(b' - A' x)

so that derivatives of any order are right. Least squares: least_squares.h has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gossamer._indices import as_shape

Params = tuple[Tensor, ...]


def _vjp(f: Callable[..., Any], *at: Tensor) -> tuple[Any, Callable[[Any], Any]]:
    """f(*at), and the product of a cotangent with its Jacobian."""
    value, pull = torch.func.vjp(f, *at)[:2]
    return value, pull


class LinearOperator:
    """What a matrix does to a vector, for ``cg``, ``minres``, ``gmres``, ``bicgstab`` and ``lsmr``.

    ``matvec(x, *params)`` gives A x for x (cols,), or (cols, k) if b has columns, in ops of torch; it must be linear in
    x. ``rmatvec(u, *params)`` gives Aᵀ u; without it the transpose is found by differentiating matvec, at the cost of
    one more call. ``symmetric=True`` says that Aᵀ is A for all parameters.

    ``params`` are the tensors that A depends on, and only these get gradients: a tensor that matvec merely captures is
    a constant. The gradient is right to any order, in forward mode and under ``torch.func``, too.

    >>> k = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> A = gs.linalg.LinearOperator((3, 3), lambda x, k: k * x, params=(k,), symmetric=True)
    >>> x, info = gs.linalg.cg(A, torch.ones(3))
    >>> x.sum().backward()
    >>> k.grad  # -1 / k²
    tensor([-1.0000, -0.2500, -0.0625])
    """

    def __init__(
        self,
        shape: Sequence[int],
        matvec: Callable[..., Tensor],
        rmatvec: Callable[..., Tensor] | None = None,
        params: Sequence[Tensor] = (),
        symmetric: bool = False,
    ) -> None:
        rows, cols = as_shape("LinearOperator", shape)
        self.shape = rows, cols
        if not callable(matvec) or not (rmatvec is None or callable(rmatvec)):
            raise TypeError("LinearOperator: matvec and rmatvec must be functions of (x, *params)")
        if symmetric and self.shape[0] != self.shape[1]:
            raise ValueError(f"LinearOperator: a symmetric operator must be square, not {rows} x {cols}")
        self.params: Params = tuple(params)
        for p in self.params:
            if not isinstance(p, Tensor):
                raise TypeError(f"LinearOperator: params must be tensors, not {type(p).__name__}")
        self.symmetric = symmetric
        self._matvec, self._rmatvec = matvec, rmatvec

    def matvec(self, x: Tensor) -> Tensor:
        """A x."""
        return self._apply(x, self.params, False)

    def rmatvec(self, u: Tensor) -> Tensor:
        """Aᵀ u."""
        return self._apply(u, self.params, True)

    @property
    def T(self) -> LinearOperator:
        """Aᵀ, with the same parameters."""
        return LinearOperator(
            self.shape[::-1],
            lambda u, *params: self._apply(u, params, True),
            lambda x, *params: self._apply(x, params, False),
            self.params,
            self.symmetric,
        )

    def _apply(self, x: Tensor, params: Params, t: bool) -> Tensor:
        if not t or self.symmetric:
            return self._matvec(x, *params)
        if self._rmatvec is not None:
            return self._rmatvec(x, *params)
        zero = x.new_zeros((self.shape[1], *x.shape[1:]))
        pull = _vjp(lambda z: self._matvec(z, *params), zero)[1]
        result: Tensor = pull(x)[0]
        return result


class Solve(torch.autograd.Function):
    """(x, info) of A x = b, or Aᵀ x = b if t, by ``call.run``, and its derivatives."""

    @staticmethod
    def forward(A: LinearOperator, call: Any, t: bool, b: Tensor, x0: Tensor | None, *params: Tensor) -> Any:
        with torch.no_grad():
            return call.run(
                lambda x: A._apply(x, params, t), lambda u: A._apply(u, params, not t), A.shape, b.detach(), x0, t
            )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.A, ctx.call, ctx.t, b, _, *params = inputs
        x, info = output
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(b, x, *params)
        ctx.save_for_forward(b, x, *params)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        b, x, *params = ctx.saved_tensors
        there = At(ctx.A, ctx.call, ctx.t, tuple(params), b, x)
        db = there.solve(grads[0], other=True)
        wanted = ctx.needs_input_grad[5:]
        d = there.params_gradient(grads[0], db) if any(wanted) else (None,) * len(params)
        return None, None, None, db, None, *(g if w else None for g, w in zip(d, wanted, strict=True))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        b, x, *params = ctx.saved_tensors
        moving = tuple(torch.zeros_like(p) if q is None else q for p, q in zip(params, tangents[5:], strict=True))
        return At(ctx.A, ctx.call, ctx.t, tuple(params), b, x).tangent(tangents[3], moving), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, A: LinearOperator, call: Any, t: bool, *tensors: Any) -> Any:
        """One by one: matvec may know vectors alone."""
        results = []
        for i in range(info.batch_size):
            member = [z if d is None else z.select(d, i) for z, d in zip(tensors, in_dims[3:], strict=True)]
            results.append(_apply(A, call, t, *member))
        return tuple(torch.stack(part) for part in zip(*results, strict=True)), (0, 0)


def _apply(*arguments: Any) -> Any:
    return Solve.apply(*arguments)  # type: ignore[no-untyped-call]


class At:
    """Where a solve is differentiated: the operator, the right-hand side and the solution."""

    def __init__(self, A: LinearOperator, call: Any, t: bool, params: Params, b: Tensor, x: Tensor) -> None:
        self.A, self.call, self.t, self.params, self.b, self.x = A, call, t, params, b, x
        rows, cols = A.shape[::-1] if t else A.shape
        self.squares, self.tall, self.damp = call.method == "lsmr", rows >= cols, call.damp

    def solve(self, rhs: Tensor, other: bool = False) -> Tensor:
        x: Tensor = _apply(self.A, self.call.derivative(other), self.t != other, rhs, None, *self.params)[0]
        return x

    def product(self, x: Tensor, other: bool = False, params: Params | None = None) -> Tensor:
        return self.A._apply(x, self.params if params is None else params, self.t != other)

    def params_gradient(self, g: Tensor, z: Tensor) -> tuple[Tensor, ...]:
        """-∂⟨z, A x⟩ and, for least squares, ∂⟨u, A w⟩."""
        first = self._pull(self.x, z)
        if not self.squares:
            return tuple(-d for d in first)
        if self.damp == 0 and not self.tall:
            u, w = self.solve(self.x, other=True), g - self.product(z, other=True)
        else:
            u = self.b - self.product(self.x)
            w = (g - self.product(z, other=True)) / self.damp**2 if self.damp else self.solve(z)
        return tuple(e - d for d, e in zip(first, self._pull(w, u), strict=True))

    def tangent(self, b: Tensor | None, params: Params) -> Tensor:
        Ax = self._push(self.x, params, False)
        first = self.solve(-Ax if b is None else b - Ax)
        if not self.squares:
            return first
        if self.damp == 0 and not self.tall:
            w = self._push(self.solve(self.x, other=True), params, True)
            return first + w - self.solve(self.product(w))
        w = self._push(self.b - self.product(self.x), params, True)
        z = self.solve(w, other=True)
        return first + ((w - self.product(z, other=True)) / self.damp**2 if self.damp else self.solve(z))

    def _pull(self, x: Tensor, u: Tensor) -> tuple[Tensor, ...]:
        """∂⟨u, A(params) x⟩ / ∂ params: a vjp of the operator itself, differentiable again."""
        if not self.params:
            return ()
        pull = _vjp(lambda *q: self.product(x, params=q), *self.params)[1]
        return tuple(pull(u))

    def _push(self, x: Tensor, moving: Params, other: bool) -> Tensor:
        """A' x, or A'ᵀ x. Forward mode does not nest; a vjp is linear, so its own vjp is the jvp."""
        y, pull = _vjp(lambda *q: self.product(x, other, q), *self.params)
        push = _vjp(lambda c: pull(c), torch.zeros_like(y))[1]
        result: Tensor = push(tuple(moving))[0]
        return result
