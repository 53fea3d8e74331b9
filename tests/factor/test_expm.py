# SPDX-License-Identifier: BSD-3-Clause
"""exp(t A) b against torch.linalg.matrix_exp and SciPy."""

from __future__ import annotations

import pytest
import scipy.sparse.linalg
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs

f64 = torch.float64


def matrix(n: int, size: float, seed: int = 0) -> gs.SparseMatrix:
    make = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, n, generator=make, dtype=f64) * (torch.rand(n, n, generator=make) < 0.3)
    return gs.from_dense(size * dense)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("t", [1.0, -0.7, 0.0])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_values(size: float, t: float, columns: tuple[int, ...]) -> None:
    A, b = matrix(20, size), torch.randn(20, *columns, dtype=f64, generator=torch.Generator().manual_seed(1))
    want = torch.linalg.matrix_exp(t * A.to_dense()) @ b
    torch.testing.assert_close(gs.linalg.expm_multiply(A, b, t), want, rtol=1e-11, atol=1e-13 * want.abs().max().item())


@pytest.mark.parametrize("t", [0.1, 1.0, 30.0])
def test_heat_equals_scipy(t: float) -> None:
    """Negative definite: the shift keeps what decays from drowning in what does not."""
    A = -gs.poisson((12, 11), dtype=f64)
    b = torch.randn(132, 2, dtype=f64, generator=torch.Generator().manual_seed(1))
    want = torch.from_numpy(scipy.sparse.linalg.expm_multiply(t * A.to_scipy().tocsc(), b.numpy()))
    x = gs.linalg.expm_multiply(A, b, t)
    torch.testing.assert_close(x, want, rtol=1e-9, atol=1e-12 * want.abs().max().item())
    torch.testing.assert_close(x, torch.linalg.matrix_exp(t * A.to_dense()) @ b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("t", [1.0, -2.5])
def test_gradcheck(t: float) -> None:
    A = matrix(6, 1.0)
    v, b = A.values.clone().requires_grad_(), torch.randn(6, dtype=f64, requires_grad=True)

    def multiply(v: Tensor, b: Tensor) -> Tensor:
        return gs.linalg.expm_multiply(A.with_values(v), b, t)

    assert gradcheck(multiply, (v, b), check_forward_ad=True)
    assert gradgradcheck(multiply, (v, b), check_fwd_over_rev=True)


def test_gradients_equal_dense() -> None:
    A = matrix(15, 2.0)
    v, b = A.values.clone().requires_grad_(), torch.randn(15, 2, dtype=f64, requires_grad=True)
    got = gs.linalg.expm_multiply(A.with_values(v), b, 0.8).sin().sum()
    want = (torch.linalg.matrix_exp(0.8 * A.with_values(v).to_dense()) @ b).sin().sum()
    for g, h in zip(torch.autograd.grad(got, (v, b)), torch.autograd.grad(want, (v, b)), strict=True):
        torch.testing.assert_close(g, h, rtol=1e-9, atol=1e-11 * h.abs().max().item())


def test_other_types_and_transposes() -> None:
    A, b = matrix(10, 1.0), torch.randn(10, dtype=f64)
    exact = gs.linalg.expm_multiply(A, b)
    torch.testing.assert_close(gs.linalg.expm_multiply(A.to(torch.float32), b.float()), exact.float())
    torch.testing.assert_close(gs.linalg.expm_multiply(A.T, b), torch.linalg.matrix_exp(A.to_dense().T) @ b)
    i = A.with_values(1j * A.values)
    torch.testing.assert_close(
        gs.linalg.expm_multiply(i, b + 0j), torch.linalg.matrix_exp(1j * A.to_dense()) @ (b + 0j)
    )
    assert gs.linalg.expm_multiply(gs.eye(0), torch.ones(0)).shape == (0,)
    zero = gs.eye(3).with_values(torch.zeros(3))
    assert gs.linalg.expm_multiply(zero, torch.ones(3)).tolist() == [1, 1, 1]
    with torch.inference_mode():
        assert torch.equal(gs.linalg.expm_multiply(A, b), exact)
    given = b.clone()
    gs.linalg.expm_multiply(A, given)
    assert torch.equal(given, b)  # not written to


def test_mistakes() -> None:
    A, b = matrix(4, 1.0), torch.ones(4, dtype=f64)
    multiply = gs.linalg.expm_multiply
    with pytest.raises(TypeError, match="A must be a SparseMatrix, not Tensor"):
        multiply(A.to_dense(), b)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"b must be a torch.Tensor, not list"):
        multiply(A, [1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be square, not 2 x 3"):
        multiply(gs.random(2, 3, 1.0), torch.ones(2))
    with pytest.raises(ValueError, match="b has 3 rows but A has 4"):
        multiply(A, b[:3])
    with pytest.raises(ValueError, match="t must be a finite number"):
        multiply(A, b, torch.inf)
    with pytest.raises(ValueError, match="not finite"):
        multiply(A.with_values(A.values / 0), b)
    with pytest.raises(ValueError, match="products"):
        multiply(A * 1e12, b)
    with pytest.raises(ValueError, match="one matrix at a time"):
        multiply(A.with_values(torch.ones(A.nnz, 2, dtype=f64)), b)
