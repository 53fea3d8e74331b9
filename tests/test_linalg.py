# SPDX-License-Identifier: BSD-3-Clause
"""Solves: what the case table does not ask. Mistakes, singular matrices, level sets, real matrices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scipy.io
import scipy.sparse.linalg
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
        'factorize: engine must be "auto", "eigen", "cholmod", "umfpack", "pardiso", not "superlu"',
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


def test_a_factor_that_is_gone_is_an_error() -> None:
    A = gs.poisson(3, dtype=f64)
    handle = gs.linalg.factorize(A)._handle
    copy = handle.clone()
    del handle
    with pytest.raises(RuntimeError, match="this factor is gone"):
        torch.ops.gossamer.factor_solve(copy, A.pattern.tensors(), A.values, ones(3), A.shape)


INSTALLED = torch.ops.gossamer.show_config().split("solver engines: ")[1]


def engine_or_skip(name: str) -> str:
    if f"{name} " not in INSTALLED:
        pytest.skip(f"{name} is not installed: {INSTALLED}")
    return name


every_engine = pytest.mark.parametrize("engine", ["eigen", "cholmod", "umfpack", "pardiso"])


def general(n: int = 60) -> gs.SparseMatrix:
    """Nonsymmetric, with a negative determinant."""
    make = torch.Generator().manual_seed(3)
    dense = torch.randn(n, n, generator=make, dtype=f64) * (torch.rand(n, n, generator=make) < 0.1)
    dense += 4 * torch.eye(n, dtype=f64)
    dense[0] *= -torch.linalg.slogdet(dense).sign
    return gs.from_dense(dense)


@every_engine
@pytest.mark.parametrize("kind", ["lu", "cholesky"])
def test_engine_equals_dense(engine: str, kind: str) -> None:
    """Solutions, both ways, log|det| with its sign, and their gradients."""
    A = gs.poisson((6, 7), dtype=f64) if kind == "cholesky" else general()
    b = torch.randn(A.shape[0], 3, dtype=f64, generator=torch.Generator().manual_seed(0))
    factor = gs.linalg.factorize(A.requires_grad_(), kind, engine_or_skip(engine))
    does = {"cholmod": ["cholesky"], "umfpack": ["lu"]}.get(engine, ["lu", "cholesky"])
    assert factor.engine == (engine if kind in does else "eigen")
    X = A.detach().to_dense().requires_grad_()
    ours = factor.solve(b), factor.solve(b, transpose=True), factor.logdet()
    dense = torch.linalg.solve(X, b), torch.linalg.solve(X.T, b), torch.linalg.slogdet(X).logabsdet
    torch.testing.assert_close(ours, dense)
    assert factor.slogdet().sign == torch.linalg.slogdet(X).sign == (1 if kind == "cholesky" else -1)
    torch.autograd.backward([y.sin().sum() for y in ours])
    torch.autograd.backward([y.sin().sum() for y in dense])
    torch.testing.assert_close(A.grad.values, X.grad[A.pattern.row_indices, A.indices])


@every_engine
def test_engine_tells_what_is_singular(engine: str) -> None:
    engine_or_skip(engine)
    dense = general(20).to_dense()
    dense[:, 7] = dense[:, 3]
    with pytest.raises(SingularMatrixError, match="the matrix is singular"):
        gs.linalg.factorize(gs.from_dense(dense), engine=engine).solve(ones(20))
    indefinite = gs.from_dense(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=f64))
    with pytest.raises(ValueError, match=r"not positive definite: the pivot of column [01] is not positive"):
        gs.linalg.factorize(indefinite, "cholesky", engine)
    assert gs.linalg.solve(indefinite, torch.tensor([4.0, 5.0], dtype=f64), engine=engine).tolist() == pytest.approx(
        [2.0, 1.0]
    )


@every_engine
def test_engine_is_independent_of_threads(engine: str) -> None:
    A, b = gs.poisson((15, 15, 15), dtype=f64), ones(15**3)
    engine_or_skip(engine)
    before, solutions = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        solutions.append([gs.linalg.solve(A, b, kind, engine) for kind in ("lu", "cholesky")])
    torch.set_num_threads(before)
    assert all(torch.equal(x, y) for other in solutions[1:] for x, y in zip(solutions[0], other, strict=True))


def test_large_problems_go_to_the_fast_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOSSAMER_ENGINE", raising=False)
    fast = next((name for name in ("pardiso", "cholmod") if f"{name} " in INSTALLED), "eigen")
    assert gs.linalg.factorize(gs.poisson((24, 24, 24), dtype=f64)).engine == fast
    assert gs.linalg.factorize(gs.poisson((9, 9), dtype=f64)).engine == "eigen"


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


# Real, square and nonsingular. cage10 takes seconds with Eigen, so it waits for a fast engine. c-62, a KKT system with
# dense rows, is left out: PARDISO's pivots do not hold without matching, and Eigen's LU takes minutes and gigabytes.
NONSINGULAR = ["494_bus", "bcsstk13", "bcsstk16", "cage10", "fs_183_1", "jagmesh7", "memplus", "orani678", "sherman3"]
NONSINGULAR += ["west0479"]


def scipy_solutions(name: str, M: Any, g: Any, b: Any) -> tuple[Any, Any]:
    """M⁻ᵀ g and M⁻¹ b. SuperLU takes half a minute for cage10, which is so well-conditioned that it may be iterated."""
    if name == "cage10":
        iterate = scipy.sparse.linalg.bicgstab
        return iterate(M.T.tocsr(), g, rtol=1e-13)[0], iterate(M.tocsr(), b, rtol=1e-13)[0]
    lu = scipy.sparse.linalg.splu(M)
    return lu.solve(g, "T"), lu.solve(b)


@pytest.mark.parametrize("name", NONSINGULAR)
@pytest.mark.parametrize("transpose", [False, True])
def test_real_matrices(data: Path, name: str, transpose: bool) -> None:
    """The backward error of the solution, and the gradients, whose truth is SciPy's SuperLU."""
    if name == "cage10" and "pardiso " not in INSTALLED:
        pytest.skip("cage10 takes too long without PARDISO")
    A = gs.from_scipy(scipy.io.mmread(data / "matrices" / f"{name}.mtx")).to(f64).requires_grad_()
    b, g = torch.randn(2, A.shape[0], dtype=f64, generator=torch.Generator().manual_seed(0))
    b.requires_grad_()
    x = gs.linalg.factorize(A).solve(b, transpose=transpose)
    sizes = A.detach().with_values(A.values.detach().abs())

    def backward_error(x: torch.Tensor, b: torch.Tensor, transpose: bool) -> torch.Tensor:
        norm = gs.spmm(sizes, torch.ones_like(b), transpose=transpose).max()
        residual = (gs.spmm(A.detach(), x, transpose=transpose) - b).abs().max()
        return residual / (norm * x.abs().max() + b.abs().max())

    assert backward_error(x.detach(), b.detach(), transpose) <= 1e-12
    x.backward(g)
    assert backward_error(b.grad, g, not transpose) <= 1e-12
    M = A.detach().to_scipy().T if transpose else A.detach().to_scipy()
    adjoint, solution = (torch.from_numpy(y) for y in scipy_solutions(name, M.tocsc(), g.numpy(), b.detach().numpy()))
    rows, cols = A.pattern.row_indices, A.indices
    truth = -adjoint[cols] * solution[rows] if transpose else -adjoint[rows] * solution[cols]
    # Two backward stable solves differ by the condition number, which is 10^16 here at worst.
    loose = {"sherman3": 1e-2, "fs_183_1": 1e-2, "west0479": 1e-3, "bcsstk13": 1e-5, "bcsstk16": 1e-6}.get(name, 1e-8)
    assert (A.grad.values - truth).abs().max() <= loose * truth.abs().max()


@pytest.mark.parametrize("name", ["USAir97", "bcspwr10", "mbeacxc"])
def test_singular_real_matrices_raise(data: Path, name: str) -> None:
    A = gs.from_scipy(scipy.io.mmread(data / "matrices" / f"{name}.mtx")).to(f64)
    with pytest.raises(SingularMatrixError):
        gs.linalg.factorize(A)
