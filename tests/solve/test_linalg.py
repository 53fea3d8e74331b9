# SPDX-License-Identifier: BSD-3-Clause
"""Solves: what the case table does not ask. Mistakes, singular matrices, level sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gossamer as gs
from gossamer import SingularMatrixError

f64 = torch.float64


def ones(*size: int, dtype: torch.dtype = f64) -> torch.Tensor:
    return torch.ones(size, dtype=dtype)


def lower(dtype: torch.dtype = f64) -> gs.SparseMatrix:
    """3 x 3, with entries above the diagonal, too."""
    return gs.from_dense(torch.tensor([[2, 0, 5], [1, 4, 0], [0, 3, 8]], dtype=dtype))


def without_diagonal() -> gs.SparseMatrix:
    return gs.from_coo([0, 1, 2, 2], [0, 0, 1, 2], ones(4), (3, 3))


def with_zero() -> gs.SparseMatrix:
    return gs.from_coo([0, 1, 2, 2], [0, 1, 1, 2], torch.tensor([1.0, 2.0, 3.0, 0.0], dtype=f64), (3, 3))


triangular = gs.linalg.solve_triangular

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: triangular(without_diagonal(), ones(3)),
        SingularMatrixError,
        "solve_triangular: row 1 has no diagonal entry: the matrix is singular",
    ),
    (
        lambda: triangular(without_diagonal(), ones(3, 40), upper=True, transpose=True),
        SingularMatrixError,
        "solve_triangular: row 1 has no diagonal entry: the matrix is singular",
    ),
    (
        lambda: triangular(with_zero(), ones(3)),
        SingularMatrixError,
        "solve_triangular: row 2 has a zero on the diagonal: the matrix is singular",
    ),
    (
        lambda: triangular(with_zero(), ones(3, 2), transpose=True),
        SingularMatrixError,
        "solve_triangular: row 2 has a zero on the diagonal: the matrix is singular",
    ),
    (
        lambda: triangular(gs.from_dense(ones(2, 3)), ones(2)),
        ValueError,
        "solve_triangular: the matrix must be square, not 2 x 3",
    ),
    (lambda: triangular(lower(), ones(2)), ValueError, "solve_triangular: b has 2 rows but A has 3 rows"),
    (
        lambda: triangular(lower(), ones(3, 2, 2)),
        ValueError,
        "solve_triangular: b must be (n,) or (n, k), not (3, 2, 2)",
    ),
    (
        lambda: triangular(lower().with_values(ones(6, 2)), ones(3, 4)),
        ValueError,
        "solve_triangular: values (6, 2) need b of shape (n, H) or (n, H, k), not (3, 4)",
    ),
    (
        lambda: triangular(lower(), ones(3, dtype=torch.float32)),
        TypeError,
        "solve_triangular: b is Float but values is Double",
    ),
    (lambda: triangular(ones(3, 3), ones(3)), TypeError, "solve_triangular: L must be a SparseMatrix, not Tensor"),
    (lambda: triangular(lower(), [1.0]), TypeError, "solve_triangular: b must be a torch.Tensor, not list"),
    (
        lambda: torch.ops.gossamer.solve_triangular(
            lower().pattern.tensors(), lower().values, ones(3), (3, 3), gs.eye(2).pattern.levels(False)
        ),
        ValueError,
        "solve_triangular: the levels are of another matrix",
    ),
    (
        lambda: gs.linalg.solve(gs.from_dense(torch.tensor([[1.0, 2.0], [2.0, 4.0]])), torch.ones(2)),
        SingularMatrixError,
        "factorize: no pivot for column 1: the matrix is singular",
    ),
    (
        lambda: gs.linalg.factorize(gs.from_coo([0, 0, 2], [0, 1, 2], ones(3), (3, 3))),
        SingularMatrixError,
        "factorize: row 1 is zero: the matrix is singular",
    ),
    (
        lambda: gs.linalg.factorize(gs.from_coo([0, 1, 2], [0, 0, 2], ones(3), (3, 3))),
        SingularMatrixError,
        "factorize: column 1 is zero: the matrix is singular",
    ),
    (
        lambda: gs.linalg.factorize(gs.from_dense(ones(2, 3))),
        ValueError,
        "factorize: the matrix must be square, not 2 x 3",
    ),
    (
        lambda: gs.linalg.factorize(lower().with_values(ones(6) * torch.inf)),
        ValueError,
        "factorize: the matrix has an entry that is not finite in row 0",
    ),
    (
        lambda: gs.linalg.factorize(lower(), kind="qr"),
        ValueError,
        'factorize: kind must be "auto", "lu" or "cholesky", not "qr"',
    ),
    (
        lambda: gs.linalg.factorize(lower(), kind="cholesky"),
        ValueError,
        'factorize: kind "cholesky" wants a symmetric matrix',
    ),
    (
        lambda: gs.linalg.factorize(gs.from_dense(torch.tensor([[1.0, 2.0], [2.0, 1.0]])), kind="cholesky"),
        ValueError,
        "factorize: the matrix is not positive definite: the pivot of column 1 is not positive",
    ),
    (
        lambda: gs.linalg.factorize(gs.from_dense(torch.tensor([[0.0, 2.0], [2.0, 1.0]])), kind="cholesky"),
        ValueError,
        "factorize: the matrix is not positive definite: the diagonal of column 0 is not positive",
    ),
    (
        lambda: gs.linalg.factorize(lower(), engine="superlu"),
        ValueError,
        'factorize: engine must be "auto", "gossamer", "eigen", "cholmod", "umfpack", "pardiso", "device", "cudss", '
        'not "superlu"',
    ),
    (lambda: gs.linalg.factorize(ones(2, 2)), TypeError, "factorize: A must be a SparseMatrix, not Tensor"),
    (lambda: gs.linalg.solve(lower(), ones(2)), ValueError, "factor_solve: b has 2 rows but A has 3 rows"),
    (lambda: gs.linalg.solve(lower(), ones(3, 2, 2)), ValueError, "solve: b must be (n,) or (n, k), not (3, 2, 2)"),
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES, ids=[m[2][:60] for m in MISTAKES])
@pytest.mark.parametrize("inference", [False, True], ids=["normal", "inference"])
def test_mistake_is_named(call: Callable[[], Any], error: type[Exception], message: str, inference: bool) -> None:
    with torch.inference_mode(inference), pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert str(caught.value).split("\n")[0] == message


def test_unit_diagonal_needs_none() -> None:
    x = triangular(without_diagonal(), ones(3), unit_diagonal=True)
    assert x.tolist() == [1.0, 0.0, 1.0]


def test_gradient_is_zero_off_the_triangle() -> None:
    L = lower().requires_grad_()
    triangular(L, ones(3)).sum().backward()
    assert L.grad is not None
    assert (L.grad.to_dense().triu(1) == 0).all()
    L.values.grad = None
    triangular(L, ones(3), unit_diagonal=True).sum().backward()
    assert (L.grad.to_dense().triu(0) == 0).all()
    assert L.grad.to_dense()[1, 0] != 0


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("transpose", [False, True])
def test_wide_levels_are_solved_at_once(width: int | None, transpose: bool) -> None:
    """Two levels of 40 000 rows: split between threads, bitwise as one thread does it."""
    n = 80_000
    k = torch.arange(n)
    rows, cols = torch.cat([k, k[n // 2 :]]), torch.cat([k, torch.randperm(n // 2)])
    L = gs.from_coo(rows, cols, 1 + torch.rand(len(rows), dtype=f64), (n, n))
    level_ptr, order = L.pattern.levels(upper=False)
    assert level_ptr[:3].tolist() == [0, n // 2, n]
    assert (level_ptr[2:] == n).all()
    assert torch.equal(order.sort().values, k.int())
    b = torch.randn(n, *([] if width is None else [width]), dtype=f64)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(triangular(L, b, transpose=transpose))
    assert all(torch.equal(x, results[0]) for x in results)
    torch.testing.assert_close(gs.spmm(L, results[0], transpose=transpose), b)


def test_levels_of_a_chain_are_single_rows() -> None:
    P = gs.poisson(5).pattern
    assert P.levels(upper=False)[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert P.levels(upper=False)[1].tolist() == [0, 1, 2, 3, 4]
    assert P.levels(upper=True)[1].tolist() == [4, 3, 2, 1, 0]
    assert P.levels(upper=True) is P.levels(upper=True)


@pytest.mark.parametrize("tiny", [1e-310, 1e308])
def test_extreme_diagonals_are_divided_by(tiny: float) -> None:
    L = gs.from_coo([0, 1], [0, 1], torch.tensor([tiny, 1.0], dtype=f64), (2, 2))
    b = torch.tensor([[tiny] * 5, [1.0] * 5], dtype=f64)
    assert (triangular(L, b) == 1).all()
    assert (triangular(L, b[:, 0].contiguous()) == 1).all()


def test_auto_falls_back_to_lu() -> None:
    """Symmetric with a positive diagonal, but indefinite."""
    A = gs.from_dense(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=f64))
    assert gs.linalg.solve(A, torch.tensor([4.0, 5.0], dtype=f64)).tolist() == pytest.approx([2.0, 1.0])


def test_one_analysis_serves_all_matrices_of_a_pattern() -> None:
    A = gs.poisson((5, 5), dtype=f64)
    b = torch.randn(25, dtype=f64)
    first = gs.linalg.factorize(A)
    analysis = A.pattern.analysis()
    second = gs.linalg.factorize(A.with_values(2 * A.values))
    assert A.pattern.analysis() is analysis
    torch.testing.assert_close(first.solve(b), 2 * second.solve(b))


def test_the_real_form_is_kept_with_the_pattern() -> None:
    """Complex matrices on one pattern share the pattern of their real forms, also one made in inference mode."""
    A = gs.from_dense(torch.tensor([[2, 1j], [0, 1 - 1j]], dtype=torch.complex128))
    b = torch.tensor([1, 1j], dtype=torch.complex128)
    with torch.inference_mode():
        first = gs.linalg.factorize(A)
    values = (2 * A.values).requires_grad_()
    second = gs.linalg.factorize(A.with_values(values))
    assert second._real.pattern is first._real.pattern
    second.solve(b).abs().sum().backward()
    assert values.grad is not None


def test_ops_of_the_real_form_name_what_is_wrong() -> None:
    ops = torch.ops.gossamer
    A = gs.from_dense(torch.eye(2, dtype=torch.complex128))
    indptr, indices, positions = ops.real_form(A.pattern.tensors(), A.shape)
    assert indptr.tolist() == [0, 2, 4, 6, 8]
    assert indices.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    assert ops.real_values(A.values * (1 + 2j), positions).tolist() == [1, -2, 2, 1, 1, -2, 2, 1]
    with pytest.raises(TypeError, match="real_values: values must be complex, not Double"):
        ops.real_values(A.values.real, positions)
    with pytest.raises(ValueError, match=r"real_form: a pattern is \{indptr, indices\}, not 1 tensors"):
        ops.real_form([A.pattern.indptr], A.shape)
    with pytest.raises(IndexError):
        ops.real_values(A.values, positions + 1)


def test_a_factor_that_is_gone_is_an_error() -> None:
    A = gs.poisson(3, dtype=f64)
    handle = gs.linalg.factorize(A)._handle
    copy = handle.clone()
    del handle
    with pytest.raises(RuntimeError, match="what it stood for is gone"):
        torch.ops.gossamer.factor_solve(copy, A.pattern.tensors(), A.values, ones(3), A.shape)


def test_a_compiled_solve_raises_the_same_error() -> None:
    A = gs.from_dense(torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=f64))
    A.pattern.analysis()
    solve = torch.compile(lambda v, b: gs.linalg.solve(A.with_values(v), b), backend="aot_eager", fullgraph=True)
    with pytest.raises(SingularMatrixError, match="the matrix is singular"):
        solve(A.values, ones(2))


def test_fake_handles_live_on_the_host() -> None:
    A = gs.poisson(3, dtype=f64)
    analysis, tensors = A.pattern.analysis(), A.pattern.tensors(True)
    with torch._subclasses.FakeTensorMode() as mode:
        values = torch.empty(7, 2, dtype=f64, device="cuda")
        handle = torch.ops.gossamer.factorize(mode.from_tensor(analysis), values, "auto")
        assert (handle.device.type, handle.shape) == ("cpu", (2,))
        pattern = [torch.empty_like(mode.from_tensor(t), device="cuda") for t in tensors]
        b = torch.empty(3, 2, dtype=f64, device="cuda")
        assert torch.ops.gossamer.factor_solve(handle, pattern, values, b, A.shape).device.type == "cuda"
        assert torch.ops.gossamer.factor_logdet(handle, pattern, values, A.shape).device.type == "cuda"


@pytest.mark.parametrize(("axis", "kind"), [("rows", "auto"), ("rows", "lu"), ("cols", "lu"), ("both", "auto")])
def test_badly_scaled_is_not_singular(axis: str, kind: str) -> None:
    """diag(d) A, A diag(d), and diag(d) A diag(d) if A is symmetric, are as well solved as A."""
    d = torch.logspace(-20, 20, 6, dtype=torch.float64)
    A, b = gs.poisson(6, dtype=torch.float64), torch.arange(1.0, 7.0, dtype=torch.float64)
    want = torch.linalg.solve(A.to_dense(), b)
    scaled = A.scale_rows(d) if axis == "rows" else A.scale_cols(d)
    scaled = scaled.scale_rows(d) if axis == "both" else scaled
    x = gs.linalg.solve(scaled, b if axis == "cols" else d * b, kind=kind, engine="eigen")
    torch.testing.assert_close(x if axis == "rows" else d * x, want, rtol=1e-13, atol=0)


def test_values_changed_after_factoring_are_named() -> None:
    A = gs.poisson(6)
    factor = gs.linalg.factorize(A)
    A.values.mul_(3)
    with pytest.raises(gs.linalg.SingularMatrixError, match="values were changed after they were factored"):
        factor.solve(torch.ones(6))
    torch.testing.assert_close(gs.linalg.solve(A, A @ torch.ones(6)), torch.ones(6))
