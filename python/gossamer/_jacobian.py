# SPDX-License-Identifier: BSD-3-Clause
"""Sparse Jacobians and Hessians: columns that share no row are differentiated together. The colouring is in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gossamer._jacobian_pattern import Linearised, Mismatch, check_point, checked_values, colouring, find
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix

MODES = ("auto", "forward", "reverse")


class Jacobian:
    """What ``jacobian`` and ``hessian`` return: a function of x whose value is a SparseMatrix.

    Its attribute ``pattern`` is the one that was given, or the one that was found, if it is to be kept, and else None.
    """

    __module__ = "gossamer"  # where users find it, and where pickles look for it

    def __init__(
        self,
        op: str,
        f: Callable[..., Any],
        pattern: Pattern | SparseMatrix | None,
        argnums: int,
        has_aux: bool,
        mode: str,
        chunk_size: int | None,
        check: bool,
        keep_pattern: bool,
    ) -> None:
        pattern = pattern.pattern if isinstance(pattern, SparseMatrix) else pattern
        if not callable(f):
            raise TypeError(f"{op}: f must be a function, not {type(f).__name__}")
        if pattern is not None and not isinstance(pattern, Pattern):
            raise TypeError(f"{op}: pattern must be a Pattern, a SparseMatrix or None, not {type(pattern).__name__}")
        if isinstance(argnums, bool) or not isinstance(argnums, int):
            raise TypeError(f"{op}: argnums must be the number of one argument, not {argnums!r}")
        if mode not in MODES:
            raise ValueError(f"{op}: mode must be one of {MODES}, not {mode!r}")
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"{op}: chunk_size must be at least 1, not {chunk_size}")
        if pattern is not None:
            pattern.check_simple(op)
        self.pattern = pattern  # given, or found and kept
        self._op, self._f, self._argnums, self._has_aux = op, f, argnums, has_aux
        self._mode, self._chunk_size, self._check, self._keep = mode, chunk_size, check, keep_pattern
        self._given = pattern is not None

    def __call__(self, *args: Any) -> Any:
        if not -len(args) <= self._argnums < len(args):
            raise ValueError(f"{self._op}: argnums is {self._argnums}, but there are {len(args)} arguments")
        place = self._argnums % len(args)
        check_point(self._op, args[place])

        def of_x(x: Tensor) -> Any:
            given = [*args]
            given[place] = x
            return self._f(*given)

        def f(x: Tensor) -> Any:
            return self._function(of_x, x)

        near = Linearised(self._op, f, args[place], self._chunk_size)
        J = self._matrix(near)
        return (J, of_x(args[place])[1]) if self._has_aux else J

    def _function(self, of_x: Callable[[Tensor], Any], x: Tensor) -> Any:
        """What is differentiated: f itself, and for a Hessian its gradient."""

        def first(x: Tensor) -> Any:
            return of_x(x)[0] if self._has_aux else of_x(x)

        if self._op != "hessian":
            return first(x)

        def scalar(x: Tensor) -> Tensor:
            y = first(x)
            if not isinstance(y, Tensor) or y.dim() != 0:
                what = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
                raise ValueError(f"hessian: f must return a number, a tensor of shape (), not {what}")
            return y

        return torch.func.grad(scalar)(x)

    def _matrix(self, near: Linearised) -> SparseMatrix:
        kept = self.pattern is not None
        P = self._found(near) if self.pattern is None else self.pattern
        values, wrong = self._values(near, P)
        if wrong is not None and kept and not self._given:  # what was found elsewhere does not suffice here
            P = P.merge(self._found(near)).pattern
            values, wrong = self._values(near, P)
        if wrong is not None and not wrong.finite:
            raise ValueError(f"{self._op}: the derivatives of f in row {wrong.row} are not finite at x")
        if wrong is not None:
            stored = int(P.indptr[wrong.row + 1] - P.indptr[wrong.row])
            raise ValueError(
                f"{self._op}: the pattern is too small: row {wrong.row} has other entries than the {stored} it stores"
            )
        if self._keep and not self._given:
            self.pattern = P
        return SparseMatrix._trusted(P, values)

    def _values(self, near: Linearised, P: Pattern) -> tuple[Tensor, Mismatch | None]:
        n = len(near.x)
        if P.shape[1] != n:
            raise ValueError(f"{self._op}: the pattern is {P.shape[0]} x {P.shape[1]}, but x has {n} elements")
        if P.device != near.x.device:
            raise ValueError(f"{self._op}: the pattern is on {P.device}, but x is on {near.x.device}")
        near.rows = P.shape[0]
        if self._check:
            return checked_values(near, P, self._mode)
        return colouring(P, self._mode).values(near)[0], None

    def _found(self, near: Linearised) -> Pattern:
        with torch.no_grad():
            return find(near.at(near.x.detach()), points=3, seed=0, symmetric=self._op == "hessian")


def jacobian(
    f: Callable[..., Any],
    pattern: Pattern | SparseMatrix | None = None,
    *,
    argnums: int = 0,
    has_aux: bool = False,
    mode: str = "auto",
    chunk_size: int | None = None,
    check: bool = True,
    keep_pattern: bool = False,
) -> Jacobian:
    """A function that computes J_ij = ∂f_i/∂x_j as a SparseMatrix, in the manner of ``torch.func.jacfwd``.

    f takes tensors, of which the one that ``argnums`` names is a vector (n,), and returns a vector (m,), or with
    ``has_aux`` that and something else, which is passed on: ``J, aux = gs.jacobian(f, P, has_aux=True)(x)``.

    pattern: where J may have entries. Columns that share no row get one colour and one product J v together, so a grid
    with five entries a row takes 7 products, however large it is. Colours are found once, in O(nnz), and kept with the
    pattern. Without one ``jacobian_pattern`` finds it at the x of each call, which costs a hundred products; with
    ``keep_pattern`` at the first x alone, is then ``.pattern`` of the returned function, and grows when a later x has
    other entries.

    mode: "forward" multiplies J v, "reverse" vᵀ J (rows that share no column get one colour), "auto" is forward unless
    reverse needs less than half the products. chunk_size products are made at once, by vmap; 1 does without vmap.

    check: one more product, with a random vector, must be that of the matrix, up to rounding errors. A pattern that is
    too small, or derivatives that are not finite, raise ValueError and name the row.

    Gradient: the values can be differentiated with respect to x and to all that f uses, also by torch.func. In forward
    mode they are, bit for bit, those of ``torch.func.jacfwd``, if f's operations give the same bits in every batch.

    >>> def f(u):
    ...     return u[1:] ** 2 - u[:-1]
    >>> gs.jacobian(f)(torch.tensor([1.0, 2.0, 3.0])).to_dense()
    tensor([[-1.,  4.,  0.],
            [ 0., -1.,  6.]])
    """
    return Jacobian("jacobian", f, pattern, argnums, has_aux, mode, chunk_size, check, keep_pattern)


def hessian(
    f: Callable[..., Any],
    pattern: Pattern | SparseMatrix | None = None,
    *,
    argnums: int = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    check: bool = True,
    keep_pattern: bool = False,
) -> Jacobian:
    """A function that computes H_ij = ∂²f/∂x_i∂x_j as a SparseMatrix, in the manner of ``torch.func.hessian``.

    f returns a number, a tensor of shape (). This is the Jacobian of its gradient, forward mode over reverse mode; all
    that ``jacobian`` says holds. The pattern is symmetric, and holds both triangles.

    >>> gs.hessian(lambda u: (u[1:] * u[:-1]).sum())(torch.ones(3)).to_dense()
    tensor([[0., 1., 0.],
            [1., 0., 1.],
            [0., 1., 0.]])
    """
    return Jacobian("hessian", f, pattern, argnums, has_aux, "forward", chunk_size, check, keep_pattern)
