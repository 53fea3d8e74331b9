# SPDX-License-Identifier: BSD-3-Clause
"""Results and gradients on ill-conditioned real matrices, beside solutions of 50 digits by mpmath: a solver answers for
a few rounding errors, the condition number for the rest. The errors are those of bench/studies/solvers/errors.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from mpmath import mp

import gossamer as gs
from bench.studies.solvers import exact
from bench.studies.solvers.errors import EPS, RUNS, Entries, backward_error, system
from bench.studies.solvers.real_matrices import read

CASES = [(what, name) for what, (matrices, _) in RUNS.items() for name in matrices]
# In ε, but for iterations, which have tolerances. 45 ε are 10⁻¹⁴, from which on a solve refines: all that is promised.
BACKWARD, FORWARD, TOLERANCE, PROMISED = 8.0, 1.0, 1.01, 45.0
OF_EIGSH = {"residual": 450.0, "λ": 45.0, "dA forward": 10.0}  # its iteration ends at residuals of 10⁻¹³


@pytest.fixture
def matrices(data: Path) -> Path:
    if not (data / "matrices").exists():
        pytest.skip(f"no matrices in {data}")
    return data / "matrices"


@pytest.mark.parametrize(("what", "name"), CASES)
def test_errors_are_those_of_rounding(matrices: Path, what: str, name: str) -> None:
    blocks, run = RUNS[what]
    errors = run(system(matrices, name, blocks[name]))
    assert errors.pop("condition") > 1
    for of, error in errors.items():
        bound = TOLERANCE if what.startswith(("cg", "gmres")) else FORWARD if "forward" in of else BACKWARD
        bound = OF_EIGSH[of] if what.startswith("eigsh") else bound
        assert error <= bound, f"{what} on {name}: the error of {of} is {error:.3g}, at most {bound} was wanted"


def exact_residual(S: Any, x: Any, b: Any) -> Any:
    """b - S x in numpy's long double, whose products of two doubles lose eleven bits less."""
    if np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("a long double is a double here")
    products = S.data.astype(np.longdouble) * x.astype(np.longdouble)[S.indices]
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    sums = np.zeros(S.shape[0], np.longdouble)
    np.add.at(sums, rows, products)
    return b.astype(np.longdouble) - sums


# jagmesh7 and cage10 have entries of a like size, and their LU grows them the most.
LARGE = ["bcsstk13", "bcsstk16", "jagmesh7", "orani678", "sherman3", "memplus", "cage10"]


@pytest.mark.parametrize("name", LARGE)
def test_backward_errors_of_large_ones(matrices: Path, name: str) -> None:
    """Of x and of db = A⁻ᵀ g; with `refine` a few rounding errors, whatever the pivots were."""
    p = read(matrices, name)
    S, g = sp.csr_array(p.S), np.cos(np.arange(len(p.b)))
    factor = gs.linalg.factorize(p.A)
    for refine, bound in ((False, PROMISED), (True, 4.0)):
        b = p.b.detach().clone().requires_grad_()
        x = factor.solve(b, refine=refine)
        x.backward(torch.from_numpy(g))
        assert b.grad is not None
        for of, T, y, given in (("x", S, x.detach(), p.b.numpy()), ("db", sp.csr_array(S.T), b.grad, g)):
            got = y.numpy()
            size = float(abs(T).sum(1).max()) * np.abs(got).max() + np.abs(given).max()
            error = float(np.abs(exact_residual(T, got, given)).max() / size) / EPS
            assert error <= bound, f"{of} of {name}, refine={refine}: {error:.3g} ε"


def test_the_reference_has_its_digits() -> None:
    """Hilbert's matrix of 8 rows, times 360360, for its entries to be doubles; mpmath's own dense algorithms judge."""
    n = 8
    H = np.array([[360360 // (i + j + 1) for j in range(n)] for i in range(n)], dtype=np.float64)
    assert np.array_equal(H * (np.arange(n)[:, None] + np.arange(n) + 1), np.full((n, n), 360360.0))
    A = Entries(H)
    with mp.workdps(exact.DIGITS):
        inverse = mp.matrix(H.tolist()) ** -1
        wanted = [inverse[i, 0] for i in range(n)]
        got = exact.solution(A, [mp.mpf(i == 0) for i in range(n)])
        assert max(abs(a - b) for a, b in zip(got, wanted, strict=True)) <= mp.mpf(10) ** -35 * exact.norm(wanted)
        assert abs(exact.log_determinant(A) - mp.log(abs(mp.det(mp.matrix(H.tolist()))))) < mp.mpf(10) ** -35
        values = mp.eigsy(mp.matrix(H.tolist()), eigvals_only=True)
        rough, vectors = np.linalg.eigh(H)
        for k in range(n):
            value, _ = exact.eigenpair(A, rough[k], vectors[:, k])
            assert abs(value - values[k]) <= mp.mpf(10) ** -35 * values[n - 1]


def test_a_wrong_digit_is_seen() -> None:
    A = Entries(sp.csr_array(np.diag([1.0, 2.0, 4.0])))
    b = np.array([1.0, 2.0, 4.0])
    assert backward_error(A, 4.0, np.ones(3), b) == 0
    assert backward_error(A, 4.0, np.array([1.0, 1.0, 1.0 + 100 * EPS]), b) == pytest.approx(50)
