# SPDX-License-Identifier: BSD-3-Clause
"""Solves. The matrices are square whatever the kind: m x m."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import AN_OP, Case


def triangular(upper: bool = False, unit_diagonal: bool = False, transpose: bool = False) -> dict[str, Any]:
    """The three ways to say the same solve: the function, the dense formula, the raw op."""
    how = {"upper": upper, "unit_diagonal": unit_diagonal, "transpose": transpose}

    def op(gs: Any, L: Any, b: Tensor) -> Tensor:
        return gs.linalg.solve_triangular(L, b, **how)

    def dense(L: Tensor, b: Tensor) -> Tensor:
        T = L.triu(int(unit_diagonal)) if upper else L.tril(-int(unit_diagonal))
        T = T + torch.eye(len(L), dtype=L.dtype) * unit_diagonal
        return torch.linalg.solve(T.T if transpose else T, b)

    def raw(L: gs.SparseMatrix, b: Tensor) -> tuple[Any, tuple[Any, ...]]:
        levels = [] if L.values.is_cuda else L.pattern.levels(upper)  # on two devices, which a tracer refuses
        args = (L.pattern.tensors(True), L.values, b, list(L.shape), levels, *how.values())
        return torch.ops.gossamer.solve_triangular.default, args

    return {"op": op, "dense": dense, "raw": raw, "poisons": (torch.nan,)}


def with_vector(make: Any) -> tuple[Any, ...]:
    return make.dominant(make.m), make.dense(make.m)


def with_columns(width: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda make: (make.dominant(make.m), make.dense(make.m, width))


def dense_heads(L: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(L.movedim(2, 0).tril(), b.movedim(1, 0), upper=False).movedim(0, 1)


CASES = [
    Case("solve_lower", inputs=with_vector, **triangular()),
    Case("solve_upper", inputs=with_vector, **triangular(upper=True)),
    Case("solve_lower_transposed", inputs=with_columns(3), **triangular(transpose=True)),
    Case("solve_upper_transposed", inputs=with_vector, **triangular(upper=True, transpose=True)),
    Case("solve_unit_lower", inputs=with_columns(2), **triangular(unit_diagonal=True)),
    Case("solve_unit_upper", inputs=with_vector, **triangular(upper=True, unit_diagonal=True, transpose=True)),
    Case("solve_lower_many", inputs=with_columns(37), **triangular()),
    Case(
        "solve_lower_heads",
        lambda gs, L, b: gs.linalg.solve_triangular(L, b),
        dense_heads,
        lambda make: (make.dominant(make.m, 3), make.dense(make.m, 3, 2)),
        triangular()["raw"],
        poisons=(torch.nan,),
    ),
    Case(
        "keep_triangle",
        lambda gs, L: L.with_values(
            torch.ops.gossamer.keep_triangle(L.pattern.tensors(), L.values, L.shape, True, False)
        ),
        lambda L: L.triu(),
        lambda make: (make.dominant(make.m),),
        timed=False,
        python_only=AN_OP,
    ),
]


def raw_factor_solve(transpose: bool) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    def raw(A: gs.SparseMatrix, b: Tensor) -> tuple[Any, tuple[Any, ...]]:
        handle = gs.linalg.factorize(A)._handle
        args = (handle, A.pattern.tensors(True), A.values, b, list(A.shape), transpose)
        return torch.ops.gossamer.factor_solve.default, args

    return raw


def symmetric(make: Any) -> gs.SparseMatrix:
    """(A + Aᵀ) / 2 of a dominant A: positive definite."""
    dense = make.dominant(make.m).to("cpu").to_dense()
    A = gs.from_dense((dense + dense.T) / 2)
    return A.to(make.device, index_dtype=make.index_dtype)


CASES += [
    Case(
        "solve",
        lambda gs, A, b: gs.linalg.solve(A, b),
        torch.linalg.solve,
        with_vector,
        raw_factor_solve(False),
        poisons=(),
    ),
    Case(
        "solve_transposed",
        lambda gs, A, b: gs.linalg.factorize(A, "lu").solve(b, transpose=True),
        lambda A, b: torch.linalg.solve(A.T, b),
        with_columns(3),
        raw_factor_solve(True),
        poisons=(),
    ),
    Case(
        "solve_heads",
        lambda gs, A, b: gs.linalg.solve(A, b),
        lambda A, b: torch.linalg.solve(A.movedim(2, 0), b.movedim(1, 0)).movedim(0, 1),
        lambda make: (make.dominant(make.m, 2), make.dense(make.m, 2, 3)),
        poisons=(),
    ),
    Case(
        "solve_symmetric",
        lambda gs, A, b: gs.linalg.solve(A, b),
        torch.linalg.solve,
        lambda make: (symmetric(make), make.dense(make.m, 2)),
        raw_factor_solve(False),
        poisons=(),
    ),
]


def inverse_on_pattern(A: Tensor) -> Tensor:
    return torch.linalg.inv(A) * (A.detach() != 0)


def raw_inverse(A: gs.SparseMatrix) -> tuple[Any, tuple[Any, ...]]:
    handle = gs.linalg.factorize(A)._handle
    return torch.ops.gossamer.factor_inverse.default, (handle, A.pattern.tensors(True), A.values, list(A.shape), False)


CASES += [
    Case(
        "logdet",
        lambda gs, A: gs.linalg.factorize(A).logdet(),
        lambda A: torch.linalg.slogdet(A).logabsdet,
        lambda make: (make.dominant(make.m),),
        lambda A: (
            torch.ops.gossamer.factor_logdet.default,
            (gs.linalg.factorize(A)._handle, A.pattern.tensors(True), A.values, list(A.shape)),
        ),
        poisons=(),
    ),
    Case(
        "logdet_symmetric",
        lambda gs, A: gs.linalg.factorize(A).logdet(),
        lambda A: torch.linalg.slogdet(A).logabsdet,
        lambda make: (symmetric(make),),
        poisons=(),
    ),
    Case(
        "selected_inverse",
        lambda gs, A: gs.linalg.selected_inverse(A),
        inverse_on_pattern,
        lambda make: (make.dominant(make.m),),
        raw_inverse,
        poisons=(),
    ),
    Case(
        "selected_inverse_symmetric",
        lambda gs, A: gs.linalg.selected_inverse(A),
        inverse_on_pattern,
        lambda make: (symmetric(make),),
        raw_inverse,
        poisons=(),
    ),
    Case(
        "logdet_heads",
        lambda gs, A: gs.linalg.factorize(A, "lu").logdet(),
        lambda A: torch.linalg.slogdet(A.movedim(2, 0)).logabsdet,
        lambda make: (make.dominant(make.m, 2),),
        poisons=(),
        timed=False,
    ),
]
