# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the values that keep zero."""

from __future__ import annotations

import torch
from torch import Tensor

import gossamer as gs

from .row import Case, Make


def one(make: Make) -> tuple[gs.SparseMatrix]:
    return (make.matrix(make.m, make.n),)


def cube(values: Tensor) -> Tensor:
    return values * values * values


def nonzero(make: Make) -> tuple[gs.SparseMatrix]:
    """No stored zero, where the function has a kink."""
    A = make.matrix(make.m, make.n)
    return (A.map(lambda values: torch.where(values == 0, 0.25, values)),)


CASES = [
    Case("neg", lambda gs, A: -A, lambda A: -A, one),
    Case("times_number", lambda gs, A: 2 * A, lambda A: 2 * A, one),
    Case("times_scalar", lambda gs, A, s: A * s[0], lambda A, s: A * s, lambda make: (*one(make), make.dense(1))),
    Case("scalar_times", lambda gs, s, A: s[0] * A, lambda s, A: s * A, lambda make: (make.dense(1), *one(make))),
    Case("over_scalar", lambda gs, A, s: A / (1 / s[0]), lambda A, s: A * s, lambda make: (*one(make), make.dense(1))),
    Case(
        "scalar_a_head",
        lambda gs, A, s: A * s,
        lambda A, s: A * s,
        lambda make: (make.matrix(make.m, make.n, 3), make.dense(3)),
    ),
    Case("abs", lambda gs, A: A.abs(), lambda A: A.abs(), nonzero),
    Case("pow", lambda gs, A: A**2, lambda A: A**2, nonzero),
    Case("map", lambda gs, A: A.map(cube), cube, one),
    Case(
        "scale_rows",
        lambda gs, A, d: A.scale_rows(d),
        lambda A, d: d[:, None] * A,
        lambda make: (*one(make), make.dense(make.m)),
    ),
    Case(
        "scale_cols",
        lambda gs, A, d: A.scale_cols(d),
        lambda A, d: A * d,
        lambda make: (*one(make), make.dense(make.n)),
    ),
    Case(
        "scale_rows_heads",
        lambda gs, A, d: A.scale_rows(d),
        lambda A, d: d[:, None] * A,
        lambda make: (make.matrix(make.m, make.n, 2), make.dense(make.m, 2)),
    ),
    Case(
        "scale_cols_one_for_all_heads",
        lambda gs, A, d: A.scale_cols(d),
        lambda A, d: A * d[:, None],
        lambda make: (make.matrix(make.m, make.n, 2), make.dense(make.n)),
    ),
]
