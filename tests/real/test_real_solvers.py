# SPDX-License-Identifier: BSD-3-Clause
"""Every solver on every real matrix, whether it claims it or not: what it returns is right by SciPy and NumPy, or it
raises what is documented. The runs and their judges are those of bench/studies/solvers/real_matrices.py."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bench.studies.solvers.real_matrices import (
    EVERY,
    HEAVY,
    NONSYMMETRIC,
    RECTANGULAR,
    SYMMETRIC,
    Outcome,
    Problem,
    attempt,
    read,
)

pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")

# More than two seconds, or nearly, with the reason. The study runs all of these but those in HEAVY.
LONG = HEAVY | {
    ("cage10", "logdet"): "SciPy's factorisation, the judge, takes 10 seconds",
    ("cage10", "lstsq"): "AᵀA fills",
    ("memplus", "lstsq"): "rows of 574 entries make AᵀA large",
    ("memplus", "logdet"): "SciPy's factorisation, the judge, takes a second",
    ("orani678", "bicgstab amg"): "dense rows: a cycle takes a millisecond",
    ("c-62", "cholesky"): "its pattern fills before a pivot is found to be negative",
}
for method in ("cg", "minres", "gmres", "bicgstab"):
    LONG["c-62", f"{method} amg"] = LONG["NotreDame_www", f"{method} amg"] = "dense rows: the coarse matrices are full"
    LONG["NotreDame_www", f"{method} none"] = "a singular matrix of 325 729 rows: 20 ms an iteration, to no end"
for kind in ("auto", "lu"):
    LONG["c-62", f"solve {kind}"] = "minutes without PARDISO"
LONG["NotreDame_www", "lsmr"] = LONG["NotreDame_www", "svds"] = "20 ms a product"

CASES = [(matrix, solver) for matrix in SYMMETRIC + NONSYMMETRIC + RECTANGULAR for solver in EVERY]


@cache
def problem(folder: Path, name: str) -> Problem:
    return read(folder, name)


def outcome(data: Path, matrix: str, solver: str, maxiter: int = 300) -> Outcome:
    if not (data / "matrices").exists():
        pytest.skip(f"no matrices in {data}")
    return attempt(EVERY[solver], problem(data / "matrices", matrix), maxiter)


@pytest.mark.parametrize(("matrix", "solver"), [pair for pair in CASES if pair not in LONG])
def test_right_or_refused(data: Path, matrix: str, solver: str) -> None:
    """Another exception than ConvergenceError, SingularMatrixError, ValueError and TypeError passes `attempt`."""
    found = outcome(data, matrix, solver)
    assert not found.wrong, f"{solver} on {matrix} is silently wrong: error {found.error:.1e}, wanted {found.bound:.1e}"


SOLVED = ["solve auto", "solve lu", "logdet", "lstsq", "eigsh", "eigsh σ=0", "cg amg", "gmres amg", "bicgstab ilu"]


@pytest.mark.parametrize("solver", [*SOLVED, "cholesky", "minres ichol"])
@pytest.mark.parametrize("matrix", ["494_bus", "bcsstk16"])
def test_definite_matrices_are_solved(data: Path, matrix: str, solver: str) -> None:
    """Refusing everything would not be wrong either."""
    found = outcome(data, matrix, solver)
    assert not found.refused, found.cost
    assert not found.wrong


@pytest.mark.parametrize("solver", [*SOLVED, "cholesky", "lsmr", "svds"])
def test_judges_see_what_is_wrong(data: Path, solver: str) -> None:
    """SciPy's matrix is not the one that is solved."""
    if not (data / "matrices").exists():
        pytest.skip(f"no matrices in {data}")
    p = problem(data / "matrices", "494_bus")
    assert attempt(EVERY[solver], Problem(p.name, p.A, p.S * 2, p.b, p.symmetric), 2000).wrong
