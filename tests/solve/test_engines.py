# SPDX-License-Identifier: BSD-3-Clause
"""The engines behind linalg.solve, and the real matrices. PARDISO cannot stand beside the stand-in for cuda, which
shows torch's own MKL to everyone: `make test` runs this file a second time without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scipy.io
import scipy.sparse.linalg
import torch

import gossamer as gs
from gossamer import SingularMatrixError

f64 = torch.float64


def ones(*size: int) -> torch.Tensor:
    return torch.ones(size, dtype=f64)


INSTALLED = torch.ops.gossamer.show_config().split("solver engines: ")[1]


def engine_or_skip(name: str) -> str:
    if f"{name} " not in INSTALLED:
        pytest.skip(f"{name} is not there: {INSTALLED}")
    return name


every_engine = pytest.mark.parametrize("engine", ["gossamer", "eigen", "cholmod", "umfpack", "pardiso"])


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
    does = {"pardiso": ["lu", "cholesky"], "gossamer": ["cholesky"], "cholmod": ["cholesky"]}.get(engine, ["lu"])
    assert factor.engine == (engine if kind in does else "eigen" if kind == "lu" else "gossamer")
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
    pardiso = "pardiso " in INSTALLED
    block, sheet = gs.poisson((18, 18, 18), dtype=f64), gs.poisson((100, 100), dtype=f64)
    assert gs.linalg.factorize(block, "lu").engine == ("pardiso" if pardiso else "eigen")
    assert gs.linalg.factorize(sheet, "lu").engine == "eigen"  # short columns
    assert gs.linalg.factorize(block).engine == "gossamer"
    long = gs.from_dense(torch.eye(1600, dtype=f64) * 1600 + 1)  # 850 000 multiplications a row
    assert gs.linalg.factorize(long).engine == "gossamer"
    monkeypatch.setenv("GOSSAMER_ENGINE", "eigen")
    assert gs.linalg.factorize(block, "lu").engine == "eigen"
    monkeypatch.setenv("GOSSAMER_ENGINE", "superlu")
    with pytest.raises(ValueError, match=r'engine must be "auto", .*, not "superlu"'):
        gs.linalg.factorize(gs.poisson(9, dtype=f64))


# Real, square and nonsingular. cage10 takes seconds with Eigen, and c-62, a KKT system with a few dense rows, minutes:
# they wait for a fast engine.
NONSINGULAR = [
    "494_bus",
    "bcsstk13",
    "bcsstk16",
    "c-62",
    "cage10",
    "fs_183_1",
    "jagmesh7",
    "memplus",
    "orani678",
    "sherman3",
]
NONSINGULAR += ["west0479"]


def scipy_solutions(name: str, M: Any, g: Any, b: Any) -> tuple[Any, Any]:
    """M⁻ᵀ g and M⁻¹ b. SuperLU takes half a minute for cage10, which is so well-conditioned that it may be iterated,
    and minutes for c-62, of which another ordering without pivoting makes seconds: M is symmetric, and refined once."""
    if name == "c-62":
        lu = scipy.sparse.linalg.splu(
            M, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        first = [lu.solve(v) for v in (g, b)]
        return first[0] + lu.solve(g - M @ first[0]), first[1] + lu.solve(b - M @ first[1])
    if name == "cage10":
        iterate = scipy.sparse.linalg.bicgstab
        return iterate(M.T.tocsr(), g, rtol=1e-13)[0], iterate(M.tocsr(), b, rtol=1e-13)[0]
    lu = scipy.sparse.linalg.splu(M)
    return lu.solve(g, "T"), lu.solve(b)


@pytest.mark.parametrize(
    ("name", "transpose"),
    [(name, transpose) for name in NONSINGULAR for transpose in (False, True) if name != "c-62" or not transpose],
)  # c-62 is symmetric
def test_real_matrices(data: Path, name: str, transpose: bool) -> None:
    """The backward error of the solution, and the gradients, whose truth is SciPy's SuperLU."""
    if name in ("cage10", "c-62") and "pardiso " not in INSTALLED:
        pytest.skip(f"{name} takes too long without PARDISO")
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
    loose = {
        "sherman3": 1e-2,
        "fs_183_1": 1e-2,
        "west0479": 1e-3,
        "bcsstk13": 1e-5,
        "bcsstk16": 1e-6,
        "c-62": 1e-6,
    }.get(name, 1e-8)
    assert (A.grad.values - truth).abs().max() <= loose * truth.abs().max()


@pytest.mark.parametrize("name", ["USAir97", "bcspwr10", "mbeacxc"])
def test_singular_real_matrices_raise(data: Path, name: str) -> None:
    A = gs.from_scipy(scipy.io.mmread(data / "matrices" / f"{name}.mtx")).to(f64)
    with pytest.raises(SingularMatrixError):
        gs.linalg.factorize(A)
