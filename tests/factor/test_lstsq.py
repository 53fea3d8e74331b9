# SPDX-License-Identifier: BSD-3-Clause
"""Least squares against dense torch, numpy and SciPy: tall, wide and damped, to the third derivative."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse.linalg
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs

f64 = torch.float64


def matrix(m: int, n: int, seed: int = 0, density: float = 0.2) -> gs.SparseMatrix:
    """Random entries, and ones along the diagonal, which give it full rank."""
    make = torch.Generator().manual_seed(seed)
    dense = torch.randn(m, n, generator=make, dtype=f64) * (torch.rand(m, n, generator=make) < density)
    return gs.from_dense(dense + 2 * torch.eye(m, n, dtype=f64))


def dense_lstsq(A: Tensor, b: Tensor, damp: float) -> Tensor:
    """By the pseudoinverse's two formulas, which are differentiable."""
    m, n = A.shape
    if m < n:
        return A.T @ torch.linalg.solve(A @ A.T + damp**2 * torch.eye(m, dtype=f64), b)
    return torch.linalg.solve(A.T @ A + damp**2 * torch.eye(n, dtype=f64), A.T @ b)


KINDS = [(17, 9, 0.0), (9, 17, 0.0), (9, 9, 0.0), (17, 9, 0.7), (9, 17, 0.7)]
every_kind = pytest.mark.parametrize(("m", "n", "damp"), KINDS)


@every_kind
@pytest.mark.parametrize("columns", [(), (3,), (0,)])
def test_values(m: int, n: int, damp: float, columns: tuple[int, ...]) -> None:
    A, b = matrix(m, n), torch.randn(m, *columns, dtype=f64, generator=torch.Generator().manual_seed(1))
    x = gs.linalg.lstsq(A, b, damp)
    stacked = np.vstack([A.to_dense().numpy(), damp * np.eye(n)])
    right = np.concatenate([b.numpy(), np.zeros((n, *columns))])
    want = torch.from_numpy(np.linalg.lstsq(stacked, right)[0])
    assert x.shape == (n, *columns)
    torch.testing.assert_close(x, want, rtol=1e-12, atol=1e-13)


@every_kind
def test_three_derivatives(m: int, n: int, damp: float) -> None:
    A = matrix(m, n)
    v, b = A.values.clone().requires_grad_(), torch.randn(m, 2, dtype=f64, requires_grad=True)
    make = torch.Generator().manual_seed(2)
    got = gs.linalg.lstsq(A.with_values(v), b, damp).sin().sum()
    want = dense_lstsq(A.with_values(v).to_dense(), b, damp).sin().sum()
    for _ in range(3):
        mine, dense = (torch.autograd.grad(y, (v, b), create_graph=True) for y in (got, want))
        for g, h in zip(mine, dense, strict=True):
            torch.testing.assert_close(g, h, rtol=1e-8, atol=1e-9 * h.abs().max().item())
        weights = [torch.randn(t.shape, dtype=f64, generator=make) for t in (v, b)]
        got, want = (
            torch.stack([(g * w).sum() for g, w in zip(each, weights, strict=True)]).sum() for each in (mine, dense)
        )


@every_kind
def test_gradcheck(m: int, n: int, damp: float) -> None:
    A = matrix(m // 2, n // 2)
    v, b = A.values.clone().requires_grad_(), torch.randn(m // 2, dtype=f64, requires_grad=True)

    def solve(v: Tensor, b: Tensor) -> Tensor:
        return gs.linalg.lstsq(A.with_values(v), b, damp)

    assert gradcheck(solve, (v, b), check_forward_ad=True)
    assert gradgradcheck(solve, (v, b), check_fwd_over_rev=True)


@every_kind
def test_transforms(m: int, n: int, damp: float) -> None:
    """vmap over values, over b, over both; a Jacobian of a gradient."""
    A, b = matrix(m, n), torch.randn(m, dtype=f64)

    def solve(v: Tensor, b: Tensor) -> Tensor:
        return gs.linalg.lstsq(A.with_values(v), b, damp)

    values, right = torch.stack([A.values, 2 * A.values]), torch.stack([b, -b])
    for in_dims in ((0, None), (None, 0), (0, 0)):
        given = [t if d == 0 else t[0] for t, d in zip((values, right), in_dims, strict=True)]
        got = torch.vmap(solve, in_dims)(*given)
        each = [solve(*(t[k] if d == 0 else t for t, d in zip(given, in_dims, strict=True))) for k in range(2)]
        torch.testing.assert_close(got, torch.stack(each))

    def energy(b: Tensor) -> Tensor:
        return solve(A.values, b).square().sum()

    hessian = torch.func.jacfwd(torch.func.grad(energy))(b)
    inverse = dense_lstsq(A.to_dense(), torch.eye(m, dtype=f64), damp)
    torch.testing.assert_close(hessian, 2 * inverse.T @ inverse)


DEFICIENT = {
    "a column twice": [[1.0, 2.0, 1.0], [0.5, 1.0, 0.5], [3.0, 0.0, 3.0], [0.0, 1.0, 0.0]],
    "an empty column": [[1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [3.0, 0.0, 1.0], [4.0, 0.0, 1.0]],
    "a sum": [[1.0, 2.0, 3.0], [4.0, 1.0, 5.0], [0.1, 0.2, 0.1 + 0.2], [0.7, 0.1, 0.7 + 0.1]],
}


@pytest.mark.parametrize("name", DEFICIENT)
@pytest.mark.parametrize("wide", [False, True])
def test_without_full_rank(name: str, wide: bool) -> None:
    dense = torch.tensor(DEFICIENT[name], dtype=f64)
    A = gs.from_dense(dense.T if wide else dense)
    b = torch.ones(A.shape[0], dtype=f64)
    with pytest.raises(gs.SingularMatrixError, match="rows" if wide else "columns"):
        gs.linalg.lstsq(A, b)
    damped = gs.linalg.lstsq(A, b, damp=0.1)
    torch.testing.assert_close(damped, dense_lstsq(A.to_dense(), b, 0.1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [5, 60, 300])
def test_large_deficient_problems_raise(n: int) -> None:
    """Differences along the edges of a graph do not see a constant; random columns and a combination of them."""
    make = torch.Generator().manual_seed(n)
    i, j = torch.randint(0, n, (2, 6 * n), generator=make)
    i, j = i[i != j], j[i != j]
    edge = torch.arange(len(i))
    w = torch.rand(len(i), generator=make, dtype=f64) + 0.5
    D = gs.from_coo(torch.cat([edge, edge]), torch.cat([i, j]), torch.cat([w, -w]), (len(i), n))
    dense = torch.randn(2 * n, n - 1, generator=make, dtype=f64)
    combined = torch.cat([dense, dense @ torch.randn(n - 1, 1, generator=make, dtype=f64)], 1)
    for A in (D, gs.from_dense(combined)):
        with pytest.raises(gs.SingularMatrixError):
            gs.linalg.lstsq(A, torch.ones(A.shape[0], dtype=f64))


def test_badly_scaled_columns_are_not_deficient() -> None:
    A = matrix(30, 12)
    scale = torch.logspace(-6, 6, 12, dtype=f64)
    b = torch.randn(30, dtype=f64)
    x = gs.linalg.lstsq(A.scale_cols(scale), b)
    torch.testing.assert_close(x * scale, gs.linalg.lstsq(A, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_ill_conditioned(condition: float) -> None:
    """As accurate as numpy's, which is by singular values, where normal equations alone lose twice the digits."""
    make = np.random.default_rng(0)
    U, _ = np.linalg.qr(make.standard_normal((60, 20)))
    V, _ = np.linalg.qr(make.standard_normal((20, 20)))
    A = U * np.geomspace(1, 1 / condition, 20) @ V.T
    x = make.standard_normal(20)
    b = A @ x
    got = gs.linalg.lstsq(gs.from_dense(torch.from_numpy(A)), torch.from_numpy(b)).numpy()
    peer = np.linalg.lstsq(A, b)[0]
    assert np.abs(got - x).max() < 10 * max(np.abs(peer - x).max(), 1e-14)


@pytest.mark.parametrize("name", ["well1033", "illc1850"])
def test_real_matrices(data: Path, name: str) -> None:
    """The problems of Paige and Saunders (1982), with their right-hand sides."""
    S = scipy.io.mmread(data / "matrices" / f"{name}.mtx").tocsr()
    b = np.asarray(scipy.io.mmread(data / "matrices" / f"{name}_rhs1.mtx")).ravel()
    x = gs.linalg.lstsq(gs.from_scipy(S).to(f64), torch.from_numpy(b)).numpy()
    dense = S.toarray()
    want = np.linalg.lstsq(dense, b)[0]
    assert np.abs(x - want).max() < 1e-10 * np.abs(want).max()
    gradient = np.abs(dense.T @ (b - dense @ x)).max()
    assert gradient < 1e-14 * np.abs(dense).sum(0).max() * np.linalg.norm(b)
    peer = scipy.sparse.linalg.lsmr(S, b, atol=1e-13, btol=1e-13, maxiter=20000)[0]
    assert np.abs(x - peer).max() < 1e-5 * np.abs(want).max()  # LSMR stops before it
    wide = gs.linalg.lstsq(gs.from_scipy(S.T.tocsr()).to(f64), torch.from_numpy(dense.T @ b)).numpy()
    smallest = np.linalg.lstsq(dense.T, dense.T @ b)[0]
    assert np.abs(wide - smallest).max() < 1e-9 * np.abs(smallest).max()


def test_float32() -> None:
    A, b = matrix(20, 8), torch.randn(20)
    single = A.to(torch.float32).requires_grad_()
    x = gs.linalg.lstsq(single, b)
    assert x.dtype is torch.float32
    exact = gs.linalg.lstsq(single.detach().to(f64), b.double())
    torch.testing.assert_close(x.double(), exact, rtol=1e-6, atol=1e-7)
    x.sum().backward()
    assert single.grad is not None
    assert single.grad.dtype is torch.float32


def test_use_in_sequence() -> None:
    A, b = matrix(25, 10), torch.ones(25, dtype=f64)
    x = gs.linalg.lstsq(A, b)
    for twin in (copy.deepcopy(A), pickle.loads(pickle.dumps(A)), A.T.T, A.to(index_dtype=torch.int64)):
        assert torch.equal(gs.linalg.lstsq(twin, b), x)
    torch.testing.assert_close(gs.linalg.lstsq(2 * A, b), x / 2)  # on the patterns that are kept
    torch.testing.assert_close(gs.linalg.lstsq(A.T, b[:10]), gs.linalg.lstsq(gs.from_dense(A.T.to_dense()), b[:10]))
    with torch.inference_mode():
        assert torch.equal(gs.linalg.lstsq(matrix(25, 10), b), x)
    empty = gs.linalg.lstsq(gs.from_dense(torch.zeros(4, 0)), torch.ones(4))
    assert empty.shape == (0,)
    assert gs.linalg.lstsq(gs.from_dense(torch.zeros(0, 3)), torch.ones(0)).tolist() == [0, 0, 0]
    assert gs.linalg.lstsq(gs.from_dense(torch.zeros(3, 2)), torch.ones(3), damp=1.0).tolist() == [0, 0]


def test_threads_do_not_change_bits() -> None:
    A, b = matrix(400, 150, density=0.03), torch.randn(400, dtype=f64)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(gs.linalg.lstsq(A, b))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(x, results[0]) for x in results)


def test_mistakes() -> None:
    A, b = matrix(6, 3), torch.ones(6, dtype=f64)
    lstsq = gs.linalg.lstsq
    with pytest.raises(TypeError, match="A must be a SparseMatrix, not Tensor"):
        lstsq(A.to_dense(), b)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"b must be a torch.Tensor, not list"):
        lstsq(A, [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="b has 5 rows but A has 6"):
        lstsq(A, b[:5])
    with pytest.raises(ValueError, match=r"b must be \(m,\) or \(m, k\), not \(6, 1, 1\)"):
        lstsq(A, b.view(6, 1, 1))
    for damp in (-1.0, torch.nan, torch.inf):
        with pytest.raises(ValueError, match="damp must be a number ≥ 0"):
            lstsq(A, b, damp)
    with pytest.raises(ValueError, match='method must be "cholesky" or "lsmr", not "qr"'):
        lstsq(A, b, method="qr")
    with pytest.raises(ValueError, match="one matrix at a time"):
        lstsq(A.with_values(torch.ones(A.nnz, 2, dtype=f64)), b)
    with pytest.raises(TypeError, match="must be real"):
        lstsq(A.with_values(A.values + 0j), b)
    with pytest.raises(TypeError, match="b is Float but values is Double"):
        lstsq(A, b.float())
    with pytest.raises(ValueError, match="not finite"):
        lstsq(A.with_values(A.values / 0), b)
    assert lstsq(A, b * torch.nan).isnan().all()
