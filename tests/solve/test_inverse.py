# SPDX-License-Identifier: BSD-3-Clause
"""The inverse on the pattern, by the blocks of our own factor and by n solves: values, derivatives of the first three
orders in directions that are not symmetric, and what depends on them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

f64 = torch.float64


def definite(n: int = 40, seed: int = 0) -> gs.SparseMatrix:
    """Symmetric, badly scaled, with fill."""
    make = torch.Generator().manual_seed(seed)
    half = torch.randn(n, n, generator=make, dtype=f64) * (torch.rand(n, n, generator=make) < 0.06)
    dense = half @ half.T + torch.eye(n, dtype=f64)
    scale = torch.logspace(-2, 2, n, dtype=f64)
    dense = dense * scale[:, None] * scale
    return gs.from_dense((dense + dense.T) / 2)


def on_pattern(A: gs.SparseMatrix, dense: Tensor) -> Tensor:
    return dense[A.pattern.row_indices, A.indices]


def to_dense(A: gs.SparseMatrix, values: Tensor) -> Tensor:
    return A.with_values(values).to_dense()


@pytest.mark.parametrize("kind", ["cholesky", "lu"])
@pytest.mark.parametrize("transpose", [False, True])
def test_three_derivatives(kind: str, transpose: bool) -> None:
    """Gradients of gradients of A⁻¹, or A⁻ᵀ, in directions that are not symmetric."""
    A = definite(25)
    v = A.values.clone().requires_grad_()
    handle = gs.linalg.factorize(A.with_values(v), kind)._handle
    Z = torch.ops.gossamer.factor_inverse(handle, A.pattern.tensors(True), v, A.shape, transpose)
    inverse = torch.linalg.inv(to_dense(A, v))
    want = on_pattern(A, inverse.T if transpose else inverse)
    for order in range(4):
        size = want.abs().max().item()
        torch.testing.assert_close(Z, want, rtol=1e-9, atol=1e-11 * size, msg=lambda m, o=order: f"order {o}: {m}")
        if order < 3:
            w = torch.randn(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(order))
            (Z,), (want,) = (torch.autograd.grad(y, v, w, create_graph=True) for y in (Z, want))


def test_second_derivative_of_the_determinant() -> None:
    A = definite(30)
    hessian = torch.func.hessian(lambda v: gs.linalg.factorize(A.with_values(v)).logdet())(A.values)
    want = torch.func.hessian(lambda v: torch.linalg.slogdet(to_dense(A, v)).logabsdet)(A.values)
    torch.testing.assert_close(hessian, want, rtol=1e-9, atol=1e-11 * want.abs().max().item())


def test_heads_have_an_inverse_each() -> None:
    A, B = definite(20), definite(20).to_dense()
    both = A.with_values(torch.stack([A.values, 3 * on_pattern(A, B)], 1).requires_grad_())
    Z = gs.linalg.selected_inverse(both)
    torch.testing.assert_close(Z.values[:, 1], Z.values[:, 0] / 3)
    Z.values.sum().backward()
    assert both.values.grad is not None
    torch.testing.assert_close(both.values.grad[:, 1], both.values.grad[:, 0] / 9)


@pytest.mark.parametrize("engine", ["cholmod", "pardiso"])
def test_factors_of_others_have_the_same_inverse(engine: str) -> None:
    """Their blocks are not ours, which are made when they are needed."""
    if f"{engine} " not in torch.ops.gossamer.show_config():
        pytest.skip(f"{engine} is not there")
    A = gs.poisson((9, 8), dtype=f64)
    factor = gs.linalg.factorize(A, "cholesky", engine)
    assert factor.engine == engine
    torch.testing.assert_close(factor.inverse_diagonal(), torch.linalg.inv(A.to_dense()).diagonal())


def test_a_large_matrix() -> None:
    """Too large for n solves: 40 000 rows, of which three are compared."""
    A = gs.poisson((200, 200), dtype=f64).requires_grad_()
    factor = gs.linalg.factorize(A)
    factor.logdet().backward()
    assert A.grad is not None
    k = torch.tensor([0, 12_345, 39_999])
    E = torch.zeros(A.shape[0], 3, dtype=f64).index_put((k, torch.arange(3)), torch.ones((), dtype=f64))
    columns = factor.solve(E).detach()
    torch.testing.assert_close(factor.inverse_diagonal()[k], columns[k, torch.arange(3)])
    rows = A.grad.to_scipy()
    for c, i in enumerate(k.tolist()):
        row = rows[[i]].tocoo()
        torch.testing.assert_close(torch.from_numpy(row.data), columns[torch.from_numpy(row.col).long(), c])


def test_the_same_bits_for_every_number_of_threads() -> None:
    A = gs.poisson((120, 120), dtype=f64).requires_grad_()
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        (g,) = torch.autograd.grad(gs.linalg.factorize(A).logdet(), A.values, create_graph=True)
        (h,) = torch.autograd.grad(g, A.values, torch.arange(A.nnz, dtype=f64).sin())
        results.append((g.detach(), h))
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_mistakes_are_named() -> None:
    swap = gs.from_dense(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    assert gs.linalg.selected_inverse(gs.from_dense(torch.tensor([[4.0]]))).values.tolist() == [0.25]
    assert gs.linalg.selected_inverse(swap).to_dense().tolist() == [[0.0, pytest.approx(1 / 3)], [0.5, 0.0]]
    with pytest.raises(ValueError, match="inverse_diagonal: A must have all entries of its diagonal"):
        gs.linalg.factorize(swap).inverse_diagonal()
    unit: Any = gs.from_dense(torch.eye(2, dtype=torch.complex64))
    for call in (gs.linalg.selected_inverse, lambda A: gs.linalg.factorize(A).inverse_diagonal()):
        with pytest.raises(TypeError, match=r"(selected_inverse|inverse_diagonal): the matrix must be real, not "):
            call(unit)
    A, B = gs.poisson(5, dtype=f64), gs.poisson(6, dtype=f64)
    handle = gs.linalg.factorize(A)._handle
    with pytest.raises(ValueError, match="the factor is of another matrix, with 5 rows"):
        torch.ops.gossamer.factor_inverse(handle, B.pattern.tensors(True), B.values, B.shape)
    with pytest.raises(ValueError, match=r"inverse_tangent: M"):
        torch.ops.gossamer.inverse_tangent(handle, A.pattern.tensors(True), A.values, A.values[:-1], A.shape)
