# SPDX-License-Identifier: BSD-3-Clause
"""Multigrid: iterations beside PyAMG's, levels that do not matter, the fused cycle beside the one in public ops and the
dense definition, derivatives, awkward matrices."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

import gossamer as gs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyamg  # type: ignore[import-untyped]

f64 = torch.float64


def cg_iterations(A: gs.SparseMatrix, M: Any, rtol: float = 1e-8) -> int:
    """Preconditioned conjugate gradients from 0, for a fixed random right-hand side."""
    b = torch.from_numpy(np.random.default_rng(0).standard_normal(A.shape[0]))
    r, z = b.clone(), M(b)
    p, rz = z, r @ z
    for k in range(1000):
        if r.norm() <= rtol * b.norm():
            return k
        q = A @ p
        r = r - rz / (p @ q) * q
        z = M(r)
        rz, before = r @ z, rz
        p = z + rz / before * p
    raise AssertionError("no convergence")


def pyamg_iterations(A: Any, B: Any = None) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        residuals: list[float] = []
        hierarchy = pyamg.smoothed_aggregation_solver(A, B=B)
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        hierarchy.solve(b, tol=1e-8, accel="cg", residuals=residuals, maxiter=1000)
    return len(residuals) - 1


def diffusion(k: np.ndarray) -> sp.csr_array:
    """-div(k grad u) on cells of coefficient k, harmonic means between them, u = 0 on the border."""
    cell = np.arange(k.size).reshape(k.shape)
    wide = np.pad(k, 1, mode="edge")
    diagonal, parts = np.zeros(k.shape), []
    for rows, cols in [(0, 1), (2, 1), (1, 0), (1, 2)]:  # a neighbour on each side
        there = wide[rows : rows + k.shape[0], cols : cols + k.shape[1]]
        number = np.pad(cell, 1, constant_values=-1)[rows : rows + k.shape[0], cols : cols + k.shape[1]]
        w = 2 * k * there / (k + there)
        diagonal += np.where(number < 0, 2 * k, w)
        inside = number >= 0
        parts.append((-w[inside], cell[inside], number[inside]))
    parts.append((diagonal.ravel(), cell.ravel(), cell.ravel()))
    values, i, j = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.coo_array((values, (i, j)), shape=(k.size, k.size)).tocsr()


def anisotropic(n: int, epsilon: float) -> sp.csr_array:
    stencil = np.array([[0, -epsilon, 0], [-1, 2 + 2 * epsilon, -1], [0, -epsilon, 0]])
    return pyamg.gallery.stencil_grid(stencil, (n, n), format="csr")


def problem(name: str) -> tuple[Any, Any, int]:
    """A, its near null space, the rows of a point."""
    rng = np.random.default_rng(1)
    if name.startswith("poisson"):
        return pyamg.gallery.poisson(tuple(map(int, name.split()[1].split("x"))), format="csr"), None, 1
    if name == "jumps in blocks":
        return diffusion(np.where(rng.random((8, 8)) < 0.5, 1.0, 1e4).repeat(12, 0).repeat(12, 1)), None, 1
    if name == "jumps in every cell":
        return diffusion(10.0 ** rng.uniform(0, 4, (96, 96))), None, 1
    if name == "anisotropy":
        return anisotropic(100, 1e-3), None, 1
    A, B = pyamg.gallery.linear_elasticity((40, 40))
    return A, B, 2


PROBLEMS = [
    "poisson 60x60",
    "poisson 120x120",
    "poisson 20x20x20",
    "jumps in blocks",
    "jumps in every cell",
    "anisotropy",
]


@pytest.mark.parametrize("name", [*PROBLEMS, "elasticity"])
def test_iterations_beside_pyamg(name: str) -> None:
    A, B, block = problem(name)
    ours = gs.from_scipy(A.tocsr())
    M = gs.linalg.amg(ours, near_null_space=None if B is None else torch.from_numpy(B), block_size=block)
    assert cg_iterations(ours, M) <= 1.5 * pyamg_iterations(A, B)
    assert M.operator_complexity < 2


def test_levels_do_not_matter() -> None:
    counts = []
    for n in (50, 100, 200):
        A = gs.poisson((n, n), dtype=f64)
        M = gs.linalg.amg(A, coarse_size=60)
        counts.append(cg_iterations(A, M))
        assert M.sizes[0] == n * n
        assert M.sizes[-1] <= 100
        assert sorted(M.sizes, reverse=True) == M.sizes
    assert max(counts) <= min(counts) + 2


def test_anisotropy_is_seen() -> None:
    """Without a threshold, as many iterations as PyAMG has without one; with it, a few."""
    A = gs.from_scipy(anisotropic(64, 1e-3))
    assert 2 * cg_iterations(A, gs.linalg.amg(A)) < cg_iterations(A, gs.linalg.amg(A, theta=0.0))


def test_near_null_space_is_used() -> None:
    A, B, block = problem("elasticity")
    ours = gs.from_scipy(A.tocsr())
    with_motions = gs.linalg.amg(ours, near_null_space=torch.from_numpy(B), block_size=block)
    assert cg_iterations(ours, with_motions) < cg_iterations(ours, gs.linalg.amg(ours, block_size=block))


def nonsymmetric() -> gs.SparseMatrix:
    A = gs.poisson((9, 8), dtype=f64).to_dense()
    return gs.from_dense(A + 0.3 * torch.ones(71, dtype=f64).diag(1) - 0.2 * torch.ones(66, dtype=f64).diag(-6))


def awkward() -> dict[str, gs.SparseMatrix]:
    grid = gs.poisson((9, 8), dtype=f64)
    dirichlet = grid.to_dense()
    for row, value in [(5, 1.0), (40, 1e8)]:
        dirichlet[row] = dirichlet[:, row] = 0
        dirichlet[row, row] = value
    pieces = sp.block_diag([gs.poisson((5, 5), dtype=f64).to_scipy(), sp.csr_array((10, 10)), sp.eye_array(5)])
    hub = torch.eye(60, dtype=f64) * 5
    hub[0] = hub[:, 0] = -0.05
    hub[0, 0] = 5
    zero = gs.from_dense(grid.to_dense())
    values = zero.values.clone()
    values[zero.pattern.row_indices.eq(3) & zero.indices.eq(3)] = 0  # stored
    return {
        "grid": grid,
        "negative": -grid,
        "not symmetric": nonsymmetric(),
        "diagonal": gs.diag(torch.arange(1.0, 50.0, dtype=f64)),
        "empty": gs.from_scipy(sp.csr_array((40, 40))),
        "pieces, empty rows": gs.from_scipy(pieces.tocsr()),
        "fixed rows": gs.from_dense(dirichlet),
        "zero on the diagonal": zero.with_values(values),
        "hub": gs.from_dense(hub),
        "wide indices": gs.SparseMatrix(grid.indptr.long(), grid.indices.long(), grid.values, grid.shape),
        "values in steps": grid.with_values(torch.stack([grid.values, grid.values * torch.nan], 1)[:, 0]),
        "transposed": nonsymmetric().T,
    }


@pytest.mark.parametrize("name", awkward())
def test_fused_cycle_is_the_one_in_ops(name: str) -> None:
    """For all columns at once, one by one, and transposed; symmetric for symmetric A."""
    A = awkward()[name]
    M = gs.linalg.amg(A, coarse_size=20)
    n = A.shape[0]
    unit = torch.eye(n, dtype=f64)
    Z = M(unit)
    assert Z.isfinite().all()
    tolerance: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11 * max(1.0, Z.abs().max().item())}
    recorded = unit.clone().requires_grad_()  # takes the way of public ops
    torch.testing.assert_close(M(recorded).detach(), Z, **tolerance)
    torch.testing.assert_close(M.T(recorded).detach(), Z.T, **tolerance)
    torch.testing.assert_close(M.T(unit), Z.T, **tolerance)
    for j in (0, n // 2, n - 1):
        torch.testing.assert_close(M(unit[:, j].clone()), Z[:, j], **tolerance)
    for k in (2, 17, 18):  # the kernel takes 16 columns at a time, and one alone in another way than two
        torch.testing.assert_close(M(unit[:, :k]), Z[:, :k], **tolerance)
    if torch.equal(A.to_dense(), A.to_dense().T):
        torch.testing.assert_close(Z, Z.T, **tolerance)


def test_cycle_is_its_definition() -> None:
    """Two levels, dense: (I - MA) = (I - (D+U)⁻¹A)(I - P (PᵀAP)⁻¹ Pᵀ A)(I - (L+D)⁻¹A), P from the aggregates' ones."""
    A = gs.poisson(12, dtype=f64)
    M = gs.linalg.amg(A, coarse_size=5)
    dense, unit = A.to_dense(), torch.eye(12, dtype=f64)
    groups = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3])  # pairs at the border, then a row and its neighbours
    T = torch.nn.functional.one_hot(groups).to(f64)
    P = (unit - 4 / 3 / 2 * dense / 2) @ (T / T.norm(dim=0))
    coarse = P @ torch.linalg.inv(P.T @ dense @ P) @ P.T
    before, after = unit - torch.linalg.inv(dense.tril()) @ dense, unit - torch.linalg.inv(dense.triu()) @ dense
    want = after @ (unit - coarse @ dense) @ before
    torch.testing.assert_close(unit - M(unit) @ dense, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("block", [1, 2])
def test_derivatives_in_values_and_omega(block: int) -> None:
    """Weak entries, several levels, nodes of several rows."""
    A = gs.poisson((6, 4), dtype=f64)
    noise = torch.rand(A.nnz, dtype=f64, generator=torch.Generator().manual_seed(0))
    A = A.with_values(A.values * (1 - 0.6 * noise * (A.values < 0)))
    omega = torch.tensor([1.2, 1.0], dtype=f64, requires_grad=True)
    r = torch.randn(24, dtype=f64, generator=torch.Generator().manual_seed(1))
    M = gs.linalg.amg(A, coarse_size=3, theta=0.2, block_size=block)
    assert len(M.sizes) >= 2

    def of_values(v: Tensor) -> Tensor:
        return copy.copy(M).update(A.with_values(v))(r)

    v = A.values.clone().requires_grad_()
    torch.testing.assert_close(of_values(v).detach(), M(r))  # made in public ops, and in fused passes
    assert torch.autograd.gradcheck(of_values, v)
    assert torch.autograd.gradgradcheck(lambda v: of_values(v).square().sum().reshape(1), v)
    assert torch.autograd.gradcheck(lambda w: copy.copy(M).update(A, omega=w)(r), omega)
    assert torch.equal(copy.copy(M).update(A, omega=4 / 3)(r), M(r))
    weighted = gs.linalg.amg(A, coarse_size=3, theta=0.2, block_size=block, omega=4 / 3)
    assert torch.equal(weighted(r), M(r))


def test_update_follows_the_values() -> None:
    A = gs.poisson((40, 40), dtype=f64)
    M = gs.linalg.amg(A)
    k = torch.rand(1600, dtype=f64, generator=torch.Generator().manual_seed(0)) + 0.5
    B = A.scale_rows(k).scale_cols(k)
    stale, sizes = cg_iterations(B, M), M.sizes
    M.update(B)
    assert M.sizes == sizes
    assert cg_iterations(B, M) < stale
    torch.testing.assert_close(gs.linalg.amg(A).update(A * 2)(k), gs.linalg.amg(A)(k) / 2)


def test_the_same_for_every_number_of_threads() -> None:
    A = gs.poisson((60, 60), dtype=f64)
    R = torch.randn(3600, 40, dtype=f64, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(gs.linalg.amg(A)(R))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*results)


def test_errors() -> None:
    A = gs.poisson((6, 5), dtype=f64)
    for options, message in [
        ({"theta": 1.0}, "theta must be in"),
        ({"block_size": 4}, "block_size 4 does not divide the 30 rows"),
        ({"near_null_space": torch.ones(29, 1)}, r"near_null_space must be \(30, m\), not \(29, 1\)"),
        ({"omega": torch.ones(2, 2)}, "omega must be"),
        ({"coarse_size": 0}, "coarse_size must be positive"),
    ]:
        with pytest.raises(ValueError, match=message):
            gs.linalg.amg(A, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="omega must be"):
        gs.linalg.amg(A).update(A, omega=torch.ones(0))
    with pytest.raises(TypeError, match="another preconditioner"):
        torch.ops.gossamer.amg_sizes(gs.linalg.jacobi(A)._handle)
