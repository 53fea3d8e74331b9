# SPDX-License-Identifier: BSD-3-Clause
"""Triangular solves along the runs of rows that grids and bands have, beside dense ones, with their gradients."""

from __future__ import annotations

import pytest
import torch

import gossamer as gs

f64 = torch.float64


def grid(*size: int) -> gs.SparseMatrix:
    A = gs.poisson(size, dtype=f64)
    draw = torch.Generator().manual_seed(3)
    return A.with_values(A.values + 0.1 * torch.rand(A.nnz, dtype=f64, generator=draw))


def band(n: int, offsets: list[int]) -> gs.SparseMatrix:
    dense = sum(torch.diag(torch.arange(1.0, n - abs(k) + 1, dtype=f64) / n + 3 * (k == 0), k) for k in offsets)
    assert isinstance(dense, torch.Tensor)
    return gs.from_dense(dense)


MATRICES = {
    "tridiagonal": band(200, [-1, 0, 1]),
    "far": band(200, [-9, -4, 0, 7]),
    "many": band(200, [-6, -5, -4, -3, -2, 0, 1]),
    "grid": grid(12, 30),
    "box": grid(5, 6, 40),
}


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_runs_are_solved_as_dense_triangles_are(name: str, upper: bool, unit: bool, transpose: bool) -> None:
    """Solve, gradients and second derivative; the first call and the next ones, columns and a vector: the same bits."""
    A = MATRICES[name].copy()
    values = (A.values * (0.2 if unit else 1)).requires_grad_()
    A = A.with_values(values)
    n = A.shape[0]
    b = torch.linspace(-1, 2, n, dtype=f64, requires_grad=True)

    def solved(rhs: torch.Tensor) -> torch.Tensor:
        return gs.linalg.solve_triangular(A, rhs, upper=upper, unit_diagonal=unit, transpose=transpose)

    D = A.to_dense()
    T = D.triu() if upper else D.tril()
    T = T - torch.diag(T.diagonal()) + torch.eye(n, dtype=f64) if unit else T
    T = T.mT if transpose else T
    want = torch.linalg.solve_triangular(T, b[:, None], upper=upper != transpose)[:, 0]
    first, x = solved(b), solved(b)
    runs = A.pattern.with_runs(True)[5:]
    assert len(runs) == 2
    assert all(len(found) > 2 for found in runs)
    assert torch.equal(first, x)
    assert torch.equal(x, solved(b[:, None].expand(n, 3))[:, 1])
    torch.testing.assert_close(x, want, rtol=1e-12, atol=1e-12)
    g = torch.linspace(1, -3, n, dtype=f64)
    got, wanted = (torch.autograd.grad(y @ g, [values, b], create_graph=True) for y in (x, want))
    torch.testing.assert_close(got, wanted, rtol=1e-11, atol=1e-11)
    got, wanted = (torch.autograd.grad(d[0].square().sum() + d[1] @ g, [values, b]) for d in (got, wanted))
    torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("upper", [False, True])
def test_a_zero_inside_a_run_is_named(upper: bool) -> None:
    A = grid(12, 30)
    values = A.values.clone()
    row = 5 * 30 + 17
    start = int(A.indptr[row])
    values[start + A.indices[start : start + 5].tolist().index(row)] = 0
    for _ in range(2):
        with pytest.raises(gs.SingularMatrixError, match=f"row {row} has a zero on the diagonal"):
            gs.linalg.solve_triangular(A.with_values(values), torch.ones(360, dtype=f64), upper=upper)
