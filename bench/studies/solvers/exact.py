# SPDX-License-Identifier: BSD-3-Clause
"""Solutions to 50 digits, by mpmath: what a result is compared to where its last digits matter.

A system is solved by correcting: the residual has 50 digits, what it asks for has those of SciPy's LU in double.

    x ← x + (L U)⁻¹ (b - A x)

Each step gains the digits that the LU has right, and the residual tells when they are all there, whatever SciPy did.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from mpmath import mp, mpmathify

Vector = list[Any]  # of mpmath's numbers
DIGITS = 50


class Entries:
    """A matrix whose products have 50 digits: its entries are doubles, which are numbers like others."""

    def __init__(self, S: Any) -> None:
        self.S = sp.csr_array(S)
        self.S.sum_duplicates()
        self.values = [mpmathify(v) for v in self.S.data.tolist()]

    @property
    def T(self) -> Entries:
        return Entries(self.S.T)

    def __matmul__(self, x: Sequence[Any]) -> Vector:
        indptr, indices = self.S.indptr.tolist(), self.S.indices.tolist()
        with mp.workdps(DIGITS):
            return [mp.fsum(self.values[k] * x[indices[k]] for k in range(*row)) for row in itertools.pairwise(indptr)]


def numbers(x: Any) -> Vector:
    return [mpmathify(v) for v in np.asarray(x).tolist()]


def norm(x: Sequence[Any]) -> float:
    """The largest magnitude."""
    return float(max(abs(v) for v in x))


def difference(x: Sequence[Any], y: Sequence[Any]) -> Vector:
    with mp.workdps(DIGITS):
        return [a - b for a, b in zip(x, y, strict=True)]


def corrected(solve: Callable[[Any], Any], residual: Callable[[Vector], Vector], x: Vector) -> Vector:
    """x with a residual of zero; `solve` says, in double, how x has to change for a residual to vanish."""
    first = last = norm(residual(x))
    for _ in range(60):
        r = residual(x)
        size = norm(r)
        if size == 0 or (size > last / 10 and size <= 1e-25 * first):  # the fifty digits are used up
            return x
        last = size
        # Scaled, lest the last steps fall below the smallest double.
        step = solve(np.array([float(v / size) for v in r]))
        with mp.workdps(DIGITS):
            x = [a + mpmathify(d) * size for a, d in zip(x, step.tolist(), strict=True)]
    raise ArithmeticError(f"50 digits: the residual went from {first:.1e} to {last:.1e} only")


def solution(A: Entries, b: Sequence[Any]) -> Vector:
    """Of A x = b."""
    lu = sl.splu(sp.csc_matrix(A.S))
    return corrected(lu.solve, lambda x: difference(b, A @ x), [mp.zero] * A.S.shape[1])


def eigenpair(A: Entries, value: float, vector: Any) -> tuple[Any, Vector]:
    """λ and x of a symmetric A with A x = λ x and cᵀ x = 1, beside a pair in double, for c that pair's vector.

    Newton's method with a fixed matrix, [A - λ I, -x; cᵀ, 0], which is regular if λ is simple.
    """
    n = len(vector)
    column = sp.csr_array(vector[:, None])
    jacobian = sp.block_array([[A.S - value * sp.eye_array(n), -column], [column.T, None]])
    lu, c = sl.splu(sp.csc_matrix(jacobian)), numbers(vector)

    def residual(z: Vector) -> Vector:
        with mp.workdps(DIGITS):
            x, scale = z[:-1], mp.fsum(a * b for a, b in zip(c, z[:-1], strict=True))
            return [z[-1] * a - b for a, b in zip(x, A @ x, strict=True)] + [1 - scale]

    z = corrected(lu.solve, residual, [*c, mpmathify(value)])
    return z[-1], z[:-1]


def log_determinant(A: Entries) -> Any:
    """log|det A| by elimination in 50 digits, in the order of SciPy's LU, whose pivots are no zeros."""
    lu = sl.splu(sp.csc_matrix(A.S))
    row_at, column_at = np.argsort(lu.perm_r), np.empty_like(lu.perm_c)
    column_at[lu.perm_c] = np.arange(len(lu.perm_c))
    ordered = Entries(A.S[row_at][:, column_at])
    indptr, indices = ordered.S.indptr.tolist(), ordered.S.indices.tolist()
    rows = [dict(zip(indices[a:b], ordered.values[a:b], strict=True)) for a, b in itertools.pairwise(indptr)]
    below: list[list[int]] = [[] for _ in rows]  # the rows that have an entry in a column, beneath the diagonal
    for i, row in enumerate(rows):
        for j in row:
            if j < i:
                below[j].append(i)
    with mp.workdps(DIGITS):
        total = mp.zero
        for k, pivot_row in enumerate(rows):
            pivot = pivot_row.pop(k)
            total += mp.log(abs(pivot))
            for i in below[k]:
                factor = rows[i].pop(k) / pivot
                for j, v in pivot_row.items():
                    if j not in rows[i] and j < i:
                        below[j].append(i)
                    rows[i][j] = rows[i].get(j, mp.zero) - factor * v
        return total
