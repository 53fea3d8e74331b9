# SPDX-License-Identifier: BSD-3-Clause
"""Jacobi and block Jacobi against their dense definitions, and what all preconditioners of a matrix share: derivatives,
transposes, updates, copies, transforms, errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from torch import Tensor

import gossamer as gs

f64 = torch.float64
Make = Callable[[gs.SparseMatrix], Any]

MAKERS: dict[str, Make] = {
    "jacobi": gs.linalg.jacobi,
    "block_jacobi": lambda A: gs.linalg.block_jacobi(A, 3),
    "ichol": gs.linalg.ichol,
    "ilu": gs.linalg.ilu,
    "amg": lambda A: gs.linalg.amg(A, coarse_size=6),
}
each = pytest.mark.parametrize("name", MAKERS)


def grid() -> gs.SparseMatrix:
    return gs.poisson((5, 4), dtype=f64)


def disturbed(A: gs.SparseMatrix, seed: int = 0) -> gs.SparseMatrix:
    """Not symmetric any more."""
    noise = torch.rand(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(seed))
    return A.with_values(A.values + 0.1 * noise)


def richer() -> gs.SparseMatrix:
    A = grid()
    return A @ A + A


def columns(M: Any, n: int) -> Tensor:
    return M(torch.eye(n, dtype=f64))


def test_jacobi_is_the_inverse_diagonal() -> None:
    A = disturbed(grid())
    torch.testing.assert_close(columns(gs.linalg.jacobi(A), 20), A.to_dense().diagonal().reciprocal().diag())


@pytest.mark.parametrize("size", [1, 4, 6, 20, 50, [3, 1, 7, 9]])
def test_block_jacobi_inverts_the_blocks(size: int | list[int]) -> None:
    A = disturbed(richer())
    sizes = size if isinstance(size, list) else [size] * (20 // size) + [20 % size] * (20 % size > 0)
    blocks, first = [], 0
    for rows in sizes:
        blocks.append(torch.linalg.inv(A.to_dense()[first : first + rows, first : first + rows]))
        first += rows
    torch.testing.assert_close(columns(gs.linalg.block_jacobi(A, size), 20), torch.block_diag(*blocks))


@each
def test_application_is_differentiable(name: str) -> None:
    A = disturbed(grid()) if name != "ichol" else grid()
    M = MAKERS[name](A)
    r = torch.randn(20, 2, dtype=f64, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def apply(transposed: bool) -> Callable[[Tensor, Tensor], Tensor]:
        def f(values: Tensor, r: Tensor) -> Tensor:
            N = copy.copy(M).update(A.with_values(values))
            return (N.T if transposed else N)(r)

        return f

    v = A.values.clone().requires_grad_()
    for transposed in (False, True):
        assert torch.autograd.gradcheck(apply(transposed), (v, r))
    w = torch.randn(20, 2, dtype=f64, generator=torch.Generator().manual_seed(2))
    assert torch.autograd.gradgradcheck(lambda v: (apply(False)(v, r.detach()) * w).sum().reshape(1), v)
    assert torch.autograd.gradgradcheck(apply(False), (v, r), fast_mode=True)  # mixed ones, too


@each
def test_transpose_and_columns(name: str) -> None:
    A = disturbed(richer())
    M = MAKERS[name](A)
    Z = columns(M, 20)
    tolerance: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(columns(M.T, 20), Z.T, **tolerance)
    torch.testing.assert_close(columns(M.T.T, 20), Z, **tolerance)
    for j in range(0, 20, 7):
        e = torch.zeros(20, dtype=f64)
        e[j] = 1
        torch.testing.assert_close(M(e), Z[:, j], **tolerance)
    assert M(torch.zeros(20, 0, dtype=f64)).shape == (20, 0)
    strided = torch.eye(40, dtype=f64)[::2, ::2]
    torch.testing.assert_close(M(strided), Z, **tolerance)


@each
def test_update_is_making_it_again(name: str) -> None:
    A, B = disturbed(grid()), disturbed(grid(), seed=1)
    M = MAKERS[name](A)
    before, old = columns(M, 20), M.T
    twin = copy.copy(M)
    assert M.update(B) is M
    if name != "amg":  # whose aggregates and eigenvalues stay those of A
        torch.testing.assert_close(columns(M, 20), columns(MAKERS[name](B), 20))
    assert not torch.allclose(columns(M, 20), before)
    assert torch.equal(columns(twin, 20), before)
    torch.testing.assert_close(columns(old, 20), before.T)
    torch.testing.assert_close(columns(M.update(A), 20), before, rtol=1e-12, atol=1e-13)
    same = gs.SparseMatrix(A.indptr.long(), A.indices.long(), A.values, A.shape)  # equal, another object and width
    torch.testing.assert_close(columns(M.update(same), 20), before, rtol=1e-12, atol=1e-13)
    for other in (richer(), gs.poisson((4, 5), dtype=f64), gs.eye(3, dtype=f64)):
        with pytest.raises(ValueError, match=f"{name}.update: A has another pattern"):
            M.update(other)
    assert torch.equal(columns(M, 20), columns(M, 20))


@each
def test_copies_and_pickles(name: str) -> None:
    M = gs.linalg.block_jacobi(grid(), 3) if name == "block_jacobi" else getattr(gs.linalg, name)(grid())
    want, kind = columns(M, 20), type(M)
    others = copy.copy(M), copy.deepcopy(M), pickle.loads(pickle.dumps(M))
    del M
    for other in others:
        assert type(other) is kind
        assert torch.equal(columns(other, 20), want)


@each
def test_transforms_and_modes(name: str) -> None:
    A = grid()
    M = MAKERS[name](A)
    R = torch.randn(3, 20, dtype=f64, generator=torch.Generator().manual_seed(0))
    want = M(R.T.contiguous()).T
    torch.testing.assert_close(torch.func.vmap(M)(R), want)

    def value(v: Tensor) -> Tensor:
        return copy.copy(M).update(A.with_values(v))(R[0]).square().sum()

    v = A.values.clone()
    leaf = v.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(value(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(value)(v), wanted)
    torch.testing.assert_close(torch.func.jvp(value, (v,), (v,))[1], (wanted * v).sum())
    torch.testing.assert_close(torch.func.grad(value)(v), wanted)  # nothing of the transform was kept
    with pytest.raises(NotImplementedError, match="vmap over r"):
        torch.func.vmap(value)(torch.stack([v, v]))
    with torch.inference_mode():
        torch.testing.assert_close(M(R[0]), want[0])
        fresh = MAKERS[name](A)
    r = R[0].clone().requires_grad_()
    fresh(r).sum().backward()
    assert r.grad is not None


@each
def test_no_grad_builds_no_graph(name: str) -> None:
    A = grid().requires_grad_()
    with torch.no_grad():
        M = MAKERS[name](A)
    assert not M(torch.ones(20, dtype=f64)).requires_grad
    assert MAKERS[name](A)(torch.ones(20, dtype=f64)).requires_grad


@each
def test_float32(name: str) -> None:
    single, double = MAKERS[name](grid().to(dtype=torch.float32)), MAKERS[name](grid())
    z = single(torch.ones(20))
    assert z.dtype is torch.float32
    torch.testing.assert_close(z.double(), double(torch.ones(20, dtype=f64)), rtol=1e-4, atol=1e-5)


@each
def test_errors(name: str) -> None:
    make = MAKERS[name]
    with pytest.raises(TypeError, match=f"{name}: A must be a SparseMatrix, not Tensor"):
        make(torch.eye(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be square"):
        make(gs.from_dense(torch.ones(2, 3, dtype=f64)))
    with pytest.raises(ValueError, match=r"values must be \(nnz,\)"):
        make(grid().with_values(torch.ones(grid().nnz, 2, dtype=f64)))
    with pytest.raises(TypeError, match="float32 or float64"):
        make(grid().with_values(torch.ones(grid().nnz, dtype=torch.complex128)))
    M = make(grid())
    for shape in ((19,), (20, 2, 2), ()):
        with pytest.raises(ValueError, match="r must be"):
            M(torch.zeros(shape, dtype=f64))


def test_errors_of_options() -> None:
    A = grid()
    for size, message in [(0, "at least one row"), ([10, 5], "15 rows together"), ([25, -5], "at least one row")]:
        with pytest.raises(ValueError, match=message):
            gs.linalg.block_jacobi(A, size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shift must not be negative"):
        gs.linalg.ichol(A, shift=-1)


@each
def test_small_matrices(name: str) -> None:
    one = MAKERS[name](gs.from_dense(torch.tensor([[4.0]], dtype=f64)))
    torch.testing.assert_close(one(torch.tensor([2.0], dtype=f64)), torch.tensor([0.5], dtype=f64))
    assert MAKERS[name](gs.from_dense(torch.zeros(0, 0, dtype=f64)))(torch.zeros(0, dtype=f64)).shape == (0,)


@pytest.mark.parametrize(
    ("name", "most"), [("jacobi", 1.0), ("block_jacobi", 0.95), ("ichol", 0.4), ("ilu", 0.4), ("amg", 0.12)]
)
def test_they_precondition(name: str, most: float) -> None:
    """Iterations of SciPy's cg, beside those that it needs without; the diagonal of A is constant here."""
    A = gs.poisson((40, 30), dtype=f64)
    S, M = A.to_scipy(), gs.linalg.amg(A) if name == "amg" else MAKERS[name](A)
    b = np.random.default_rng(0).standard_normal(1200)

    def apply(r: np.ndarray) -> np.ndarray:
        return M(torch.from_numpy(r.ravel())).numpy()

    counts = []
    for operator in (None, scipy.sparse.linalg.LinearOperator(S.shape, apply, dtype=np.float64)):
        steps: list[None] = []
        x, info = scipy.sparse.linalg.cg(S, b, rtol=1e-8, M=operator, callback=lambda _, s=steps: s.append(None))
        assert info == 0
        assert np.linalg.norm(b - S @ x) <= 1.1e-8 * np.linalg.norm(b)
        counts.append(len(steps))
    assert counts[1] <= most * counts[0]
