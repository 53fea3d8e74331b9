# SPDX-License-Identifier: BSD-3-Clause
"""Factors on a device (a stand-in for one): against dense mathematics, where pivots that are kept go bad, and what is
wrong with a matrix in the words of the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import scipy.io
import torch
from torch import Tensor

import cuda_standin
import gossamer as gs

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")

f64 = torch.float64
CUDA = torch.device("cuda", 0)


def general(n: int = 40, seed: int = 3, size: float = 4.0) -> Tensor:
    """Nonsymmetric, with a negative determinant; pivots are not on the diagonal where `size` is small."""
    make = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, n, generator=make, dtype=f64) * (torch.rand(n, n, generator=make) < 0.15)
    dense += size * torch.eye(n, dtype=f64).roll(n // 3, 1)
    dense[0] *= -torch.linalg.slogdet(dense).sign
    return dense


def definite(n: int = 40) -> Tensor:
    half = general(n)
    square = half @ half.T + torch.eye(n, dtype=f64)
    return (square + square.T) / 2  # to the last bit


def arrow(n: int = 50) -> Tensor:
    """Fills in completely if nothing is ordered."""
    dense = torch.diag(torch.linspace(2, 3, n, dtype=f64))
    dense[0, 1:], dense[1:, 0] = 0.1, -0.2
    return dense


def on_device(dense: Tensor) -> gs.SparseMatrix:
    return gs.from_dense(dense).to(CUDA)


MATRICES: dict[str, Tensor] = {
    "general": general(),
    "definite": definite(),
    "arrow": arrow(),
    "diagonal": torch.diag(torch.arange(1.0, 8.0, dtype=f64)),
    "permutation": torch.eye(9, dtype=f64).roll(4, 0),
    "one": torch.tensor([[-3.0]], dtype=f64),
    "dense": general(33) + torch.rand(33, 33, dtype=f64, generator=torch.Generator().manual_seed(0)),
    "no diagonal": torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 1.0], [0.0, 1.0, 0.0]], dtype=f64)
    + torch.ones(3, 3).triu(2),
}


@pytest.mark.parametrize("columns", [None, 1, 3, 40])
@pytest.mark.parametrize("name", MATRICES)
def test_equals_dense(name: str, columns: int | None) -> None:
    """Solutions, both ways, log|det| with its sign, and their gradients; nothing but the device is used."""
    dense = MATRICES[name]
    A = on_device(dense).requires_grad_()
    b = torch.randn(len(dense), *([] if columns is None else [columns]), dtype=f64)
    factor = gs.linalg.factorize(A, "cholesky" if name == "definite" else "auto")
    assert factor.engine == "device"
    X = dense.clone().requires_grad_()
    ours = factor.solve(b.to(CUDA)), factor.solve(b.to(CUDA), transpose=True), factor.logdet()
    theirs = torch.linalg.solve(X, b), torch.linalg.solve(X.T, b), torch.linalg.slogdet(X).logabsdet
    for y, z in zip(ours, theirs, strict=True):
        assert y.device == CUDA
        torch.testing.assert_close(y.cpu(), z)
    assert factor.slogdet().sign.cpu() == torch.linalg.slogdet(X).sign
    torch.autograd.backward([y.sin().sum() for y in ours])
    torch.autograd.backward([y.sin().sum() for y in theirs])
    rows, cols = A.pattern.row_indices.cpu(), A.indices.cpu()
    torch.testing.assert_close(A.grad.values.cpu(), X.grad[rows, cols])


@pytest.mark.parametrize("make", [general, definite])
def test_derivatives(make: Callable[[int], Tensor]) -> None:
    A = on_device(make(7))
    b = torch.randn(7, 2, dtype=f64).to(CUDA).requires_grad_()
    values = A.values.clone().requires_grad_()
    kind = "lu"  # one value alone may be changed

    def solve(v: Tensor, rhs: Tensor) -> Tensor:
        return gs.linalg.factorize(A.with_values(v), kind).solve(rhs, transpose=True)

    def logdet(v: Tensor) -> Tensor:
        return gs.linalg.factorize(A.with_values(v), kind).logdet()

    assert torch.autograd.gradcheck(solve, (values, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(solve, (values, b))
    assert torch.autograd.gradcheck(logdet, (values,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(logdet, (values,))


@pytest.mark.parametrize("tiny", [0.0, 1e-14])
def test_pivots_that_go_bad_are_chosen_again(tiny: float) -> None:
    """The first values want the diagonal; with the second ones it is lost, or all digits are. They are copied to the
    host once, and the new pivots then serve without it."""
    n = 12
    dense = torch.eye(n, dtype=f64) * 10 + general(n)
    other = dense.clone()
    other.diagonal().fill_(tiny)
    A = gs.SparseMatrix(on_device(dense.abs() + 1).pattern, on_device(dense.abs() + 1).values)
    b = torch.randn(n, dtype=f64).to(CUDA)
    at = A.pattern.row_indices, A.indices.long()

    def copies(matrix: Tensor) -> int:
        values = matrix.to(CUDA)[at]
        cuda_standin.traffic()
        factor = gs.linalg.factorize(A.with_values(values))
        passed = cuda_standin.traffic()[0]
        torch.testing.assert_close(factor.solve(b).cpu(), torch.linalg.solve(matrix, b.cpu()))
        torch.testing.assert_close(factor.logdet().cpu(), torch.linalg.slogdet(matrix).logabsdet)
        return passed

    copies(dense)
    assert copies(dense * 1.01) == 0
    assert copies(other) > 0
    assert copies(other * 1.01) == 0


def test_auto_finds_the_way_back_to_lu() -> None:
    """A pattern whose first values are positive definite, and whose later ones are not symmetric, or indefinite."""
    dense = definite(10)
    A = on_device(dense)
    b = torch.randn(10, dtype=f64)
    crooked, indefinite = dense.clone(), dense.clone()
    crooked[2, 5] *= 3
    indefinite[4, 4] = -1
    for matrix in (dense, crooked, dense, indefinite, dense):
        factor = gs.linalg.factorize(A.with_values(matrix.to(CUDA)[A.pattern.row_indices, A.indices.long()]))
        torch.testing.assert_close(factor.solve(b.to(CUDA)).cpu(), torch.linalg.solve(matrix, b))
        torch.testing.assert_close(factor.solve(b.to(CUDA), True).cpu(), torch.linalg.solve(matrix.T, b))
        assert factor.slogdet().sign.cpu() == torch.linalg.slogdet(matrix).sign


def singular() -> Tensor:
    dense = general(20)
    dense[:, 7] = dense[:, 3]
    return dense


MISTAKES: dict[str, tuple[Tensor, str]] = {
    "singular": (singular(), "auto"),
    "zero row": (torch.tensor([[1.0, 1.0], [0.0, 0.0]], dtype=f64), "lu"),
    "not finite": (torch.tensor([[1.0, torch.inf], [1.0, 2.0]], dtype=f64), "auto"),
    "not symmetric": (general(), "cholesky"),
    "indefinite": (torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=f64), "cholesky"),
    "negative diagonal": (torch.tensor([[1.0, 0.5], [0.5, -1.0]], dtype=f64), "cholesky"),
    "kind": (general(), "qr"),
}


@pytest.mark.parametrize("first", [False, True], ids=["kept", "first"])
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_the_words_of_the_host(name: str, first: bool) -> None:
    """Whether or not pivots are kept with the pattern."""
    dense, kind = MISTAKES[name]
    n = len(dense)
    pattern = gs.from_dense(torch.ones(n, n)).pattern
    A, host = (gs.SparseMatrix(P, dense.flatten().to(P.device)) for P in (pattern.to(CUDA), pattern))
    if not first and kind != "qr":
        gs.linalg.factorize(A.with_values((torch.eye(n, dtype=f64) * n + 0.5).flatten().to(CUDA)), kind)
    with pytest.raises((ValueError, gs.SingularMatrixError)) as on_host:
        gs.linalg.factorize(host, kind, "eigen")
    with pytest.raises(on_host.type) as there:
        gs.linalg.factorize(A, kind)
    assert str(there.value).split("\n")[0] == str(on_host.value).split("\n")[0]


def test_complex() -> None:
    dense = torch.complex(general(9), general(9, seed=5))
    b = torch.randn(9, dtype=torch.complex128)
    factor = gs.linalg.factorize(on_device(dense))
    assert factor.engine == "device"
    torch.testing.assert_close(factor.solve(b.to(CUDA)).cpu(), torch.linalg.solve(dense, b))
    torch.testing.assert_close(factor.solve(b.to(CUDA), True).cpu(), torch.linalg.solve(dense.T, b))
    torch.testing.assert_close(factor.logdet().cpu(), torch.linalg.slogdet(dense).logabsdet)


def test_an_engine_of_the_host_is_used_if_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b = on_device(general()), torch.ones(40, dtype=f64, device=CUDA)
    factor = gs.linalg.factorize(A, engine="eigen")
    assert factor.engine == "eigen"
    torch.testing.assert_close(factor.solve(b), gs.linalg.solve(A, b, engine="device"))
    assert factor.solve(b).device == CUDA
    with pytest.raises(ValueError, match='the engine "device" is for matrices on a CUDA device'):
        gs.linalg.factorize(A.to("cpu"), engine="device")
    monkeypatch.setenv("GOSSAMER_ENGINE", "eigen")
    assert gs.linalg.factorize(A).engine == "eigen"
    assert gs.linalg.factorize(A, engine="device").engine == "device"
    monkeypatch.setenv("GOSSAMER_ENGINE", "device")
    assert gs.linalg.factorize(A.to("cpu")).engine == "eigen"  # the variable is not for a matrix of the host
    with pytest.raises(ValueError, match=r'engine must be "auto".* not "superlu"'):
        gs.linalg.factorize(A, engine="superlu")


def test_a_factor_of_a_device_is_not_for_the_host() -> None:
    A = on_device(general())
    handle, host = gs.linalg.factorize(A)._handle, A.to("cpu")
    ops = torch.ops.gossamer
    with pytest.raises(ValueError, match="factor_solve: the factor is on a device, and b is not"):
        ops.factor_solve(handle, host.pattern.tensors(True), host.values, torch.ones(40, dtype=f64), host.shape)
    with pytest.raises(ValueError, match="factor_logdet: the factor is on a device, and values are not"):
        ops.factor_logdet(handle, host.pattern.tensors(True), host.values, host.shape)


@pytest.mark.parametrize(("axis", "kind"), [("rows", "lu"), ("cols", "lu"), ("both", "auto")])
def test_badly_scaled_is_not_singular(axis: str, kind: str) -> None:
    d = torch.logspace(-20, 20, 6, dtype=f64)
    A, b = gs.poisson(6, dtype=f64), torch.arange(1.0, 7.0, dtype=f64)
    scaled = A.scale_rows(d) if axis == "rows" else A.scale_cols(d)
    scaled = scaled.scale_rows(d) if axis == "both" else scaled
    x = gs.linalg.solve(scaled.to(CUDA), (b if axis == "cols" else d * b).to(CUDA), kind=kind).cpu()
    wanted = torch.linalg.solve(A.to_dense(), b)
    torch.testing.assert_close(x if axis == "rows" else d * x, wanted, rtol=1e-13, atol=0)


def test_nan_and_changed_values() -> None:
    A = on_device(general())
    factor = gs.linalg.factorize(A)
    b = torch.ones(40, 2, dtype=f64, device=CUDA)
    b[3, 0] = torch.nan
    assert factor.solve(b)[:, 0].isnan().any()
    A.values.mul_(3)
    with pytest.raises(gs.SingularMatrixError, match="values were changed after they were factored"):
        factor.solve(torch.ones(40, dtype=f64, device=CUDA))


def test_what_inference_keeps_serves_training() -> None:
    A = on_device(general())
    with torch.inference_mode():
        gs.linalg.factorize(A).logdet()
    B = A.with_values((2 * A.values).requires_grad_())
    gs.linalg.factorize(B).logdet().backward()
    assert B.values.grad is not None


def test_the_same_bits_every_time() -> None:
    A, b = on_device(general()), torch.randn(40, 3, dtype=f64).to(CUDA)
    gs.linalg.factorize(A)
    first = gs.linalg.solve(A, b)
    assert all(torch.equal(gs.linalg.solve(A, b), first) for _ in range(5))


@pytest.mark.parametrize("name", ["494_bus", "fs_183_1", "west0479", "jagmesh7"])
def test_real_matrices(data: Path, name: str) -> None:
    A = gs.from_scipy(scipy.io.mmread(data / "matrices" / f"{name}.mtx")).to(f64)
    b = torch.randn(A.shape[0], dtype=f64, generator=torch.Generator().manual_seed(0))
    there = A.to(CUDA)
    gs.linalg.factorize(there)
    values = A.values * (1 + 0.1 * torch.rand(len(A.values), dtype=f64, generator=torch.Generator().manual_seed(1)))
    if name in ("494_bus", "jagmesh7"):
        values = A.values * 1.7  # these are positive definite, and stay so
    B = A.with_values(values)
    factor = gs.linalg.factorize(there.with_values(values.to(CUDA)))
    assert factor.engine == "device"
    for transpose in (False, True):
        x = factor.solve(b.to(CUDA), transpose=transpose).cpu()
        norm = gs.spmm(B.with_values(values.abs()), torch.ones_like(b), transpose=transpose).max()
        error = (gs.spmm(B, x, transpose=transpose) - b).abs().max() / (norm * x.abs().max() + b.abs().max())
        assert error <= 1e-14
    wanted = gs.linalg.factorize(B, engine="eigen").slogdet()
    torch.testing.assert_close(factor.logdet().cpu(), wanted.logabsdet, rtol=1e-8, atol=0)
    assert factor.slogdet().sign.cpu() == wanted.sign
