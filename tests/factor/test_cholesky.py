# SPDX-License-Identifier: BSD-3-Clause
"""The Cholesky factor as a differentiable sparse matrix, against dense mathematics."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import gossamer as gs

f64 = torch.float64


def definite(n: int = 30, seed: int = 0, density: float = 0.06) -> gs.SparseMatrix:
    """Symmetric, badly scaled, with fill."""
    make = torch.Generator().manual_seed(seed)
    half = torch.randn(n, n, generator=make, dtype=f64) * (torch.rand(n, n, generator=make) < density)
    dense = half @ half.T + torch.eye(n, dtype=f64)
    scale = torch.logspace(-1, 1, n, dtype=f64)
    dense = dense * scale[:, None] * scale
    return gs.from_dense((dense + dense.T) / 2)


SHAPES = {
    "random": definite(),
    "grid": gs.poisson((6, 5), dtype=f64),
    "chain": gs.poisson(17, dtype=f64),
    "full": definite(9, density=1.0),
    "diagonal": gs.eye(5, dtype=f64) * 4,
    "two parts": gs.block_diag([gs.poisson((3, 4), dtype=f64), definite(12, 3)]),
    "one": gs.eye(1, dtype=f64) * 9,
    "nothing": gs.eye(0, dtype=f64),
}


def symmetric(A: gs.SparseMatrix, v: Tensor) -> gs.SparseMatrix:
    """(A + Aᵀ) / 2 of values v on a symmetric pattern, whatever they are."""
    return A.with_values((v + v[A.pattern.transpose()[2].long()]) / 2)


def dense_factor(A: gs.SparseMatrix, v: Tensor, perm: Tensor) -> Tensor:
    dense = symmetric(A, v).to_dense()
    return torch.linalg.cholesky(dense[perm][:, perm])


@pytest.mark.parametrize("name", SHAPES)
def test_values(name: str) -> None:
    A = SHAPES[name]
    L, perm = gs.linalg.cholesky(A)
    dense = A.to_dense()
    assert perm.dtype is torch.int64
    assert sorted(perm.tolist()) == list(range(A.shape[0]))
    torch.testing.assert_close(L.to_dense(), torch.linalg.cholesky(dense[perm][:, perm]), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close((L @ L.T).to_dense(), dense[perm][:, perm], rtol=1e-12, atol=1e-12)
    assert not (L.indices > L.pattern.row_indices).any()


@pytest.mark.parametrize("name", ["random", "grid", "chain", "full", "two parts", "diagonal"])
def test_pattern_is_what_elimination_fills(name: str) -> None:
    """Found by eliminating booleans, in the order that was chosen."""
    A = SHAPES[name]
    L, perm = gs.linalg.cholesky(A)
    filled = A.with_values(torch.ones_like(A.values)).to_dense()[perm][:, perm] != 0
    for k in range(len(perm)):
        below = filled[:, k].clone()
        below[: k + 1] = False
        filled |= below[:, None] & below[None, :]
    assert torch.equal(L.with_values(torch.ones_like(L.values)).to_dense() != 0, filled.tril())


@pytest.mark.parametrize("name", ["random", "grid", "chain", "full", "two parts"])
def test_three_derivatives(name: str) -> None:
    """Gradients of gradients in directions that are not symmetric, against dense torch."""
    A = SHAPES[name]
    v = A.values.clone().requires_grad_()
    L, perm = gs.linalg.cholesky(symmetric(A, v))
    weights = torch.randn(L.nnz, dtype=f64, generator=torch.Generator().manual_seed(1))
    W = L.with_values(weights).to_dense()
    got, want = (L.values * weights).sum(), (dense_factor(A, v, perm) * W).sum()
    for order in range(3):
        w = torch.randn(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(order))
        (g,), (h,) = (torch.autograd.grad(y, v, create_graph=True) for y in (got, want))
        size = h.abs().max().item()
        torch.testing.assert_close(g, h, rtol=1e-8, atol=1e-10 * size)
        got, want = (g * w).sum(), (h * w).sum()


def test_gradcheck() -> None:
    A = gs.poisson((3, 3), dtype=f64)

    def factor(v: Tensor) -> Tensor:
        return gs.linalg.cholesky(symmetric(A, v)).L.values

    v = (A.values + 0.1).requires_grad_()
    assert gradcheck(factor, v, check_forward_ad=True)
    assert gradgradcheck(factor, v, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_the_gradient_is_symmetric() -> None:
    """As that of log det is, which it has to give: log det A = 2 Σ log L_ii."""
    A = definite().requires_grad_()
    (2 * gs.linalg.cholesky(A).L.diagonal().log().sum()).backward()
    g = A.grad
    assert g is not None
    torch.testing.assert_close(g.to_dense(), gs.linalg.selected_inverse(A.detach()).to_dense(), rtol=1e-9, atol=1e-12)
    assert torch.equal(g.to_dense(), g.to_dense().T)


def test_second_order_forward() -> None:
    """Forward over forward, and a Hessian by torch.func."""
    A = definite(12, 5, 0.15)
    perm = gs.linalg.cholesky(A).perm

    def ours(v: Tensor) -> Tensor:
        return gs.linalg.cholesky(symmetric(A, v)).L.values.sin().sum()

    def dense(v: Tensor) -> Tensor:
        return dense_factor(A, v, perm).sin().sum()

    for hessian in (torch.func.hessian, lambda f: torch.func.jacfwd(torch.func.jacfwd(f))):
        want = torch.func.hessian(dense)(A.values)
        torch.testing.assert_close(hessian(ours)(A.values), want, rtol=1e-8, atol=1e-9 * want.abs().max().item())


def test_forward_mode_direction() -> None:
    A = gs.poisson((4, 4), dtype=f64)
    with forward_ad.dual_level():
        v = forward_ad.make_dual(A.values, A.values)
        tangent = forward_ad.unpack_dual(gs.linalg.cholesky(A.with_values(v)).L.values).tangent
    torch.testing.assert_close(tangent, gs.linalg.cholesky(A).L.values / 2)  # L(s A) = √s L(A)


def test_vmap_is_one_by_one() -> None:
    A = gs.poisson((4, 3), dtype=f64)
    batch = A.values * torch.tensor([[1.0], [4.0]], dtype=f64)
    L = torch.func.vmap(lambda v: gs.linalg.cholesky(A.with_values(v)).L.values)(batch)
    torch.testing.assert_close(L[1], 2 * L[0])
    grad = torch.func.vmap(torch.func.grad(lambda v: gs.linalg.cholesky(A.with_values(v)).L.values.sum()))(batch)
    torch.testing.assert_close(grad[1], grad[0] / 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision(dtype: torch.dtype) -> None:
    A = gs.poisson((5, 5), dtype=dtype).requires_grad_()
    L = gs.linalg.cholesky(A).L
    assert L.dtype is dtype
    exact = gs.linalg.cholesky(gs.poisson((5, 5), dtype=f64)).L.values.to(dtype)
    assert torch.equal(L.values, exact)
    L.values.float().sum().backward()
    assert A.grad is not None
    assert A.grad.dtype is dtype
    assert A.grad.values.isfinite().all()


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="A must be a SparseMatrix, not Tensor"):
        gs.linalg.cholesky(torch.eye(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be square, not 2 x 3"):
        gs.linalg.cholesky(gs.random(2, 3, 1.0))
    with pytest.raises(ValueError, match="its pattern is not"):
        gs.linalg.cholesky(gs.from_dense(torch.tensor([[1.0, 0.5], [0.0, 1.0]])))
    with pytest.raises(ValueError, match="must be symmetric"):
        gs.linalg.cholesky(gs.from_dense(torch.tensor([[1.0, 0.5], [0.4, 1.0]])))
    with pytest.raises(ValueError, match="not finite"):
        gs.linalg.cholesky(gs.from_dense(torch.tensor([[torch.nan]])))
    with pytest.raises(ValueError, match="one matrix at a time"):
        gs.linalg.cholesky(gs.eye(3).with_values(torch.ones(3, 2)))
    with pytest.raises(TypeError, match="must be float32"):
        gs.linalg.cholesky(gs.eye(3).with_values(torch.ones(3, dtype=torch.complex64)))
    ops = torch.ops.gossamer
    handle = gs.eye(2).pattern.analysis()
    with pytest.raises(RuntimeError, match="handle"):
        ops.cholesky(handle, gs.eye(2).pattern.tensors(), torch.ones(2), torch.arange(2))


@pytest.mark.parametrize("row", [0, 7, 19])
def test_not_positive_definite_names_the_row(row: int) -> None:
    values = torch.full((20,), 3.0, dtype=f64)
    values[row] = -1
    A = gs.diag(values)
    with pytest.raises(ValueError, match=f"not positive definite: the pivot of row {row} is not positive"):
        gs.linalg.cholesky(A)
    zero = gs.eye(3, dtype=f64).with_values(torch.tensor([1.0, 0.0, 1.0], dtype=f64))
    with pytest.raises(ValueError, match="row 1"):
        gs.linalg.cholesky(zero)


def test_the_symbolic_part_is_kept() -> None:
    A = gs.poisson((6, 6), dtype=f64)
    first, second = gs.linalg.cholesky(A), gs.linalg.cholesky(A * 4)
    assert first.L.pattern is second.L.pattern
    assert first.perm is second.perm
    torch.testing.assert_close(second.L.values, 2 * first.L.values)
    assert torch.equal(gs.linalg.cholesky(A.T).L.values, first.L.values)


def test_use_in_sequence() -> None:
    """Copies, pickles, what outlives the matrix, threads, inference mode."""
    A = gs.poisson((7, 6), dtype=f64)
    want = gs.linalg.cholesky(A).L.values
    for twin in (copy.deepcopy(A), pickle.loads(pickle.dumps(A))):
        assert torch.equal(gs.linalg.cholesky(twin).L.values, want)
    L = gs.linalg.cholesky(gs.poisson((7, 6), dtype=f64).requires_grad_()).L
    gc.collect()
    L.values.sum().backward()  # the pattern of the matrix is gone, the node keeps what it needs
    fresh = gs.poisson((7, 6), dtype=f64)
    with torch.inference_mode():
        assert torch.equal(gs.linalg.cholesky(fresh).L.values, want)
    fresh.requires_grad_()
    gs.linalg.cholesky(fresh).L.values.sum().backward()
    assert fresh.grad is not None
    with ThreadPoolExecutor(4) as pool:
        for values in pool.map(lambda _: gs.linalg.cholesky(A).L.values, range(8)):
            assert torch.equal(values, want)


def test_solves_with_the_factor() -> None:
    """x = Pᵀ L⁻ᵀ L⁻¹ P b, and its gradient through L is that of the solve."""
    A = definite().requires_grad_()
    b = torch.randn(30, dtype=f64, generator=torch.Generator().manual_seed(2))
    L, perm = gs.linalg.cholesky(A)
    y = gs.linalg.solve_triangular(L, b[perm])
    x = torch.zeros(30, dtype=f64).index_copy(0, perm, gs.linalg.solve_triangular(L, y, transpose=True))
    torch.testing.assert_close(x, torch.linalg.solve(A.detach().to_dense(), b), rtol=1e-9, atol=1e-12)
    x.square().sum().backward()
    got = A.grad
    B = A.detach().requires_grad_()
    gs.linalg.solve(B, b).square().sum().backward()
    assert got is not None
    assert B.grad is not None
    want = (B.grad.to_dense() + B.grad.to_dense().T) / 2  # the solve sees directions that are not symmetric
    torch.testing.assert_close(got.to_dense(), want, rtol=1e-8, atol=1e-10 * want.abs().max().item())


def test_threads_do_not_change_bits() -> None:
    A = gs.poisson((40, 41), dtype=f64)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            v = A.values.clone().requires_grad_()
            L = gs.linalg.cholesky(A.with_values(v)).L.values
            (g,) = torch.autograd.grad(L.sin().sum(), v)
            results.append((L.detach(), g))
    finally:
        torch.set_num_threads(threads)
    for values, g in results[1:]:
        assert torch.equal(values, results[0][0])
        assert torch.equal(g, results[0][1])
