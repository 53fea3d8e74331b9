# SPDX-License-Identifier: BSD-3-Clause
"""Complex matrices: products, sums, solves and their gradients, against dense mathematics and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse.linalg
import torch
from torch import Tensor

import gossamer as gs

c128 = torch.complex128


def matrix(rows: int, cols: int, seed: int) -> gs.SparseMatrix:
    make = torch.Generator().manual_seed(seed)
    dense = torch.randn(rows, cols, dtype=c128, generator=make) * (torch.rand(rows, cols, generator=make) < 0.5)
    return gs.from_dense(dense + 3 * torch.eye(rows, cols))


def dense_of(A: gs.SparseMatrix, values: Tensor) -> Tensor:
    full = torch.zeros(A.shape, dtype=values.dtype)
    return full.index_put((A.pattern.row_indices.long(), A.indices.long()), values)


A, B = matrix(5, 4, 0), matrix(4, 5, 1)
S = matrix(5, 5, 2)
X = torch.randn(4, 3, dtype=c128, generator=torch.Generator().manual_seed(3))
Y = torch.randn(5, 3, dtype=c128, generator=torch.Generator().manual_seed(4))

# ours, the same in dense mathematics, operands: values of a matrix or tensors
CASES: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "A @ X": (lambda a, x: A.with_values(a) @ x, lambda a, x: dense_of(A, a) @ x, (A.values, X)),
    "A.T @ Y": (
        lambda a, y: gs.spmm(A.with_values(a), y, transpose=True),
        lambda a, y: dense_of(A, a).T @ y,
        (A.values, Y),
    ),
    "A @ B": (
        lambda a, b: (A.with_values(a) @ B.with_values(b)).to_dense(),
        lambda a, b: dense_of(A, a) @ dense_of(B, b),
        (A.values, B.values),
    ),
    "A + B.T": (
        lambda a, b: (A.with_values(a) + B.with_values(b).T).to_dense(),
        lambda a, b: dense_of(A, a) + dense_of(B, b).T,
        (A.values, B.values),
    ),
    "sddmm": (
        lambda u, v: gs.sddmm(A.pattern, u, v).values,
        lambda u, v: (u @ v.T)[A.pattern.row_indices.long(), A.indices.long()],
        (Y, X),
    ),
    "sum": (lambda a: A.with_values(a).sum(1), lambda a: dense_of(A, a).sum(1), (A.values,)),
    "norm": (lambda a: A.with_values(a).norm(), lambda a: dense_of(A, a).abs().square().sum().sqrt(), (A.values,)),
    "solve": (
        lambda a, y: gs.linalg.solve(S.with_values(a), y),
        lambda a, y: torch.linalg.solve(dense_of(S, a), y),
        (S.values, Y),
    ),
    "solve transposed": (
        lambda a, y: gs.linalg.factorize(S.with_values(a)).solve(y[:, 0], transpose=True),
        lambda a, y: torch.linalg.solve(dense_of(S, a).T, y[:, 0]),
        (S.values, Y),
    ),
    "logdet": (
        lambda a: gs.linalg.factorize(S.with_values(a)).logdet(),
        lambda a: torch.linalg.slogdet(dense_of(S, a)).logabsdet,
        (S.values,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_dense(name: str) -> None:
    ours, dense, operands = CASES[name]
    first, second = ([x.clone().requires_grad_() for x in operands] for _ in range(2))
    result, truth = ours(*first), dense(*second)
    torch.testing.assert_close(result, truth)
    weight = torch.randn(truth.shape, dtype=truth.dtype, generator=torch.Generator().manual_seed(5))
    for out, leaves in ((result, first), (truth, second)):
        torch.autograd.backward(out, weight)
        assert all(leaf.grad is not None for leaf in leaves)
    for mine, other in zip(first, second, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    ours, _, operands = CASES[name]
    inputs = [x.clone().requires_grad_() for x in operands]
    forward_mode = "solve" not in name and name != "logdet"
    assert torch.autograd.gradcheck(ours, inputs, check_forward_ad=forward_mode)
    assert torch.autograd.gradgradcheck(ours, inputs)


def test_types_do_not_mix() -> None:
    with pytest.raises(TypeError, match="spmm: X is Double but values is ComplexDouble"):
        A @ X.real
    with pytest.raises(TypeError, match="solve: A is complex but b is Double"):
        gs.linalg.solve(S, Y.real)
    with pytest.raises(TypeError, match="slogdet: the phase of a complex determinant is not known"):
        gs.linalg.factorize(S).slogdet()


@pytest.mark.parametrize("name", ["young1c", "mhd1280b"])
def test_real_files(data: Path, name: str) -> None:
    """The complex matrices of the collection: products and sums equal SciPy's; solves have a small backward error."""
    path = data / "matrices" / f"{name}.mtx"
    ours, M = gs.read_mtx(path), scipy.sparse.csr_array(scipy.io.mmread(path))
    x = torch.randn(M.shape[0], dtype=c128, generator=torch.Generator().manual_seed(0))
    for mine, other in ((ours @ x, M @ x.numpy()), (gs.spmm(ours, x, transpose=True), M.T @ x.numpy())):
        assert np.abs(mine.numpy() - other).max() <= 1e-13 * np.abs(other).max()
    for mine, other in ((ours @ ours, M @ M), (ours + ours.T, M + M.T)):
        assert abs(mine.to_scipy() - other).max() <= 1e-13 * abs(other).max()
    ours = ours.requires_grad_()
    solution = gs.linalg.solve(ours, x)
    residual = np.abs(M @ solution.detach().numpy() - x.numpy()).max()
    assert residual <= 1e-12 * (abs(M).sum(1).max() * solution.abs().max() + x.abs().max())
    g = torch.randn(M.shape[0], dtype=c128, generator=torch.Generator().manual_seed(1))
    solution.backward(g)
    lu = scipy.sparse.linalg.splu(M.tocsc())
    adjoint, truth = lu.solve(g.numpy(), "H"), lu.solve(x.numpy())
    rows, cols = ours.pattern.row_indices.numpy(), ours.indices.numpy()
    gradient = -adjoint[rows] * truth[cols].conj()
    loose = 1e-10 if name == "young1c" else 1e-2  # condition numbers 10³ and 10¹³
    assert np.abs(ours.grad.values.numpy() - gradient).max() <= loose * np.abs(gradient).max()
