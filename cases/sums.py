# SPDX-License-Identifier: BSD-3-Clause
"""Sums and entrywise products of two matrices, and the ops their gradients are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .row import AN_OP, Case, Make


def two(make: Make) -> tuple[Any, ...]:
    """Two matrices of one shape that share some entries."""
    return make.matrix(make.m, make.n), make.matrix(make.m, make.n)


def without_ties(make: Make) -> tuple[Any, ...]:
    """No stored zero, which would tie with one that is not stored: there, no derivative exists."""
    return tuple(A.map(lambda values: torch.where(values == 0, 0.25, values)) for A in two(make))


def within(make: Make) -> tuple[Any, ...]:
    """A's entries are among B's, none of which is 0."""
    B = without_ties(make)[0]
    A = B.tril(1)
    return A.with_values(make.dense(A.nnz)), B


def over(A: Tensor, B: Tensor) -> Tensor:
    return torch.where(B == 0, 0, A / torch.where(B == 0, 1, B))


def raw_scale(u: Tensor, s: Tensor) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.scale.default, (u, s)


def raw_dot(u: Tensor, v: Tensor) -> tuple[Any, tuple[Any, ...]]:
    return torch.ops.gossamer.dot.default, (u, v)


CASES = [
    Case(
        "dot",
        lambda gs, u, v: torch.ops.gossamer.dot(u, v),
        lambda u, v: (u * v).sum(),
        lambda make: (make.dense(make.m * make.n), make.dense(make.m * make.n)),
        raw_dot,
        python_only=AN_OP,
    ),
    Case(
        "scale",
        lambda gs, u, s: torch.ops.gossamer.scale(u, s),
        lambda u, s: s * u,
        lambda make: (make.dense(make.m, make.n), make.dense()),
        raw_scale,
        python_only=AN_OP,
    ),
    Case("spadd", lambda gs, A, B: A + B, lambda A, B: A + B, two, timed=True),
    Case("spsub", lambda gs, A, B: A - B, lambda A, B: A - B, two),
    Case(
        "spadd_scaled",
        lambda gs, A, B, alpha, beta: gs.spadd(A, B, alpha, beta),
        lambda A, B, alpha, beta: alpha * A + beta * B,
        lambda make: (*two(make), make.dense(), make.dense()),
    ),
    Case(
        "spadd_heads",
        lambda gs, A, B: A + B,
        lambda A, B: A + B,
        lambda make: (make.matrix(make.m, make.n, 2), make.matrix(make.m, make.n, 2)),
    ),
    Case("hadamard", lambda gs, A, B: A * B, lambda A, B: A * B, two, timed=True),
    Case("maximum", lambda gs, A, B: gs.maximum(A, B), torch.maximum, without_ties),
    Case("minimum", lambda gs, A, B: gs.minimum(A, B), torch.minimum, without_ties, poisons=(torch.nan, -torch.inf)),
    Case("quotient", lambda gs, A, B: A / B, over, within, poisons=(torch.nan,)),
    Case(
        "multiply",
        lambda gs, A, X: A.multiply(X),
        lambda A, X: A * X,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.m, make.n)),
    ),
    Case(
        "multiply_heads",
        lambda gs, A, X: A.multiply(X),
        lambda A, X: A * X,
        lambda make: (make.matrix(make.m, make.n, 2), make.dense(make.m, make.n, 2)),
    ),
    Case(
        "multiply_row",
        lambda gs, A, x: A.multiply(x),
        lambda A, x: A * x,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.n)),
    ),
    Case(
        "multiply_column",
        lambda gs, A, x: A.multiply(x),
        lambda A, x: A * x,
        lambda make: (make.matrix(make.m, make.n), make.dense(make.m, 1)),
    ),
]
