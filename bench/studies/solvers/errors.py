# SPDX-License-Identifier: BSD-3-Clause
"""How many digits of a solve are right: results and gradients on real matrices, beside solutions of 50 digits.

    python -m bench.studies.solvers.errors FOLDER [NAME ...]

Each number is an error in units of ε = 2⁻⁵², with the condition number beside it: a backward error, which the solver
answers for, and a forward error divided by the condition number, by which the matrix multiplies the former.
tests/real/test_errors.py holds the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
import torch
from mpmath import mp

import gossamer as gs
from bench.studies.solvers import exact
from bench.studies.solvers.exact import Entries, difference, norm, numbers
from bench.studies.solvers.settings import given_matrices

EPS = float(np.finfo(np.float64).eps)
RTOL = 1e-10  # of the iterative solvers

# How much is taken of a matrix: a block from the top left; nothing is all of it. Blocks of definite ones are definite.
DEFINITE = {"494_bus": None, "bcsstk13": 150, "bcsstk16": 150}
SQUARE = DEFINITE | {"fs_183_1": None, "west0479": None}
TALL = {"ash219": None, "well1033": None, "illc1850": None}


@dataclass
class System:
    """A x = b, to 50 digits as well."""

    A: gs.SparseMatrix
    exact: Entries
    b: Any
    g: Any  # the gradient that comes to x

    @property
    def norm(self) -> float:
        return float(abs(self.exact.S).sum(1).max())

    @property
    def condition(self) -> float:
        """‖A‖ ‖A⁻¹‖, of the largest sums of rows; of a tall one that of 2-norms."""
        dense = self.exact.S.toarray()
        return float(np.linalg.cond(dense, np.inf if dense.shape[0] == dense.shape[1] else 2))


def system(folder: Path, name: str, size: int | None) -> System:
    S = sp.csr_array(scipy.io.mmread(folder / f"{name}.mtx")).astype(np.float64)[:size, :size]
    m, n = S.shape
    b = S @ (1 + np.sin(np.arange(n))) + (np.cos(np.arange(m)) if m > n else 0)
    return System(gs.from_scipy(S), Entries(S), b, np.cos(np.arange(n)))


def backward_error(A: Entries, size: float, x: Any, b: Any) -> float:
    """‖b - A x‖ / (‖A‖ ‖x‖ + ‖b‖), in ε, the residual being exact."""
    r = difference(numbers(b), A @ numbers(x))
    return norm(r) / (size * float(np.abs(x).max()) + float(np.abs(b).max())) / EPS


def forward_error(x: Any, wanted: Any) -> float:
    return norm(difference(numbers(x), wanted)) / norm(wanted)


def gradients(s: System, f: Callable[..., Any], *operands: Any) -> tuple[Any, Any, Any]:
    """The result, dA and db for the gradient g."""
    A, b = s.A.detach().requires_grad_(), torch.from_numpy(s.b).requires_grad_()
    x = f(A, b, *operands)
    x.backward(torch.from_numpy(s.g))
    assert A.grad is not None
    assert b.grad is not None
    return x.detach().numpy(), A.grad.values.numpy(), b.grad.numpy()


def solve(s: System, kind: str) -> dict[str, float]:
    """x, db = A⁻ᵀ g and dA = -db xᵀ on the pattern. The condition number of Aᵀ is another one in this norm."""
    x, dA, db = gradients(s, gs.linalg.solve, kind)
    A, T = s.exact, s.exact.T
    wanted, adjoint = exact.solution(A, numbers(s.b)), exact.solution(T, numbers(s.g))
    rows = np.repeat(np.arange(A.S.shape[0]), np.diff(A.S.indptr))
    with mp.workdps(exact.DIGITS):
        of_values = [-adjoint[i] * wanted[j] for i, j in zip(rows.tolist(), A.S.indices.tolist(), strict=True)]
    cond, of_T = s.condition, float(np.linalg.cond(T.S.toarray(), np.inf))
    return {
        "condition": cond,
        "x": backward_error(A, s.norm, x, s.b),
        "x forward": forward_error(x, wanted) / cond / EPS,
        "db": backward_error(T, float(abs(T.S).sum(1).max()), db, s.g),
        "db forward": forward_error(db, adjoint) / of_T / EPS,
        "dA forward": forward_error(dA, of_values) / max(cond, of_T) / EPS,
    }


def determinant(s: System) -> dict[str, float]:
    """log|det A|, its gradient A⁻ᵀ and the inverse's diagonal, of which every n/8-th column is compared."""
    A = s.A.detach().requires_grad_()
    factor = gs.linalg.factorize(A)
    value = factor.logdet()
    value.backward()
    assert A.grad is not None
    true = exact.log_determinant(s.exact)
    n, cond = s.exact.S.shape[0], s.condition
    gradient, inverse = A.grad.to_scipy().tocsr(), factor.selected_inverse().detach().to_scipy().tocsc()
    errors: dict[str, list[float]] = {"dA": [], "inverse": []}
    for j in range(0, n, max(n // 8, 1)):
        unit = [mp.mpf(k == j) for k in range(n)]
        column = exact.solution(s.exact, unit)  # of A⁻¹, and a row of A⁻ᵀ
        for of, got in (("dA", gradient[[j]]), ("inverse", inverse[:, [j]].T.tocsr())):
            at = got.indices.tolist()
            if at:
                gone = norm(difference(numbers(got.data), [column[i] for i in at]))
                errors[of].append(gone / norm(column) / cond / EPS)
    return {
        "condition": cond,
        "logdet": abs(float(value.detach() - float(true))) / max(abs(float(true)), 1.0) / EPS,
        "dA forward": max(errors["dA"]),
        "inverse forward": max(errors["inverse"]),
    }


def least_squares(s: System) -> dict[str, float]:
    """x and db by the augmented system, r + A x = b, Aᵀ r = 0, and u + A v = 0, Aᵀ u = g for db = u."""
    x, _, db = gradients(s, gs.linalg.lstsq)
    A, T = s.exact, s.exact.T
    m, n = A.S.shape
    augmented = Entries(sp.block_array([[sp.eye_array(m), A.S], [A.S.T, None]]))
    zero = [mp.zero]
    wanted = exact.solution(augmented, numbers(s.b) + zero * n)
    adjoint = exact.solution(augmented, zero * m + numbers(s.g))[:m]
    cond = s.condition
    r = wanted[:m]
    size, of_x = float(np.linalg.norm(A.S.toarray(), 2)), float(np.linalg.norm([float(v) for v in wanted[m:]]))
    of_r = float(np.linalg.norm([float(v) for v in r]))
    steep = cond + cond**2 * of_r / (size * of_x)  # Wedin: what the problem itself multiplies errors by
    normal = T @ difference(numbers(s.b), A @ numbers(x))
    return {
        "condition": cond,
        "x": float(np.linalg.norm([float(v) for v in normal])) / (size * of_r) / EPS,
        "x forward": forward_error(x, wanted[m:]) / steep / EPS,
        "db": backward_error(T, float(abs(T.S).sum(1).max()), db, s.g),
        "db forward": forward_error(db, adjoint) / cond / EPS,
    }


def eigenvalues(s: System, sigma: float | None) -> dict[str, float]:
    """Three values, which errors of ε ‖A‖ are owed, and the gradient xxᵀ of the first beside ε ‖A‖ / gap."""
    A = s.A.detach().requires_grad_()
    values, X = gs.linalg.eigsh(A, 3, sigma=sigma)
    values[0].backward()
    assert A.grad is not None
    size = float(np.linalg.norm(s.exact.S.toarray(), 2))
    every = np.linalg.eigvalsh(s.exact.S.toarray())
    found = {"condition": s.condition, "residual": 0.0, "λ": 0.0}
    for k, value in enumerate(values.tolist()):
        x = X.detach().numpy()[:, k]
        true, _ = exact.eigenpair(s.exact, value, x)
        with mp.workdps(exact.DIGITS):
            r = [a - value * b for a, b in zip(s.exact @ numbers(x), numbers(x), strict=True)]
        found["residual"] = max(found["residual"], float(mp.norm(r, 2)) / size / EPS)
        found["λ"] = max(found["λ"], abs(float(true - value)) / size / EPS)
    lowest, at = float(values[0].detach()), X.detach().numpy()[:, 0]
    _, v = exact.eigenpair(s.exact, lowest, at)
    rows = np.repeat(np.arange(len(v)), np.diff(s.exact.S.indptr))
    with mp.workdps(exact.DIGITS):
        length = mp.fsum(a * a for a in v)
        wanted = [v[i] * v[j] / length for i, j in zip(rows.tolist(), s.exact.S.indices.tolist(), strict=True)]
    gap = np.sort(np.abs(every - lowest))[1]
    found["dA forward"] = norm(difference(numbers(A.grad.values.numpy()), wanted)) / (size / gap) / EPS
    return found


def iterative(s: System, method: str) -> dict[str, float]:
    """Residuals, exact ones, beside the tolerance: 1 is what was promised."""
    M = gs.linalg.ichol(s.A) if method == "cg" else gs.linalg.ilu(s.A)

    def run(A: gs.SparseMatrix, b: torch.Tensor) -> torch.Tensor:
        return getattr(gs.linalg, method)(A, b, M=M, rtol=RTOL, maxiter=2000)[0]

    x, _, db = gradients(s, run)
    residuals = [
        np.linalg.norm([float(v) for v in difference(numbers(b), A @ numbers(y))]) / np.linalg.norm(b) / RTOL
        for A, y, b in ((s.exact, x, s.b), (s.exact.T, db, s.g))
    ]
    return {"condition": s.condition, "x": float(residuals[0]), "db": float(residuals[1])}


Run = Callable[[System], dict[str, float]]
RUNS: dict[str, tuple[dict[str, int | None], Run]] = {
    "solve, lu": (SQUARE, partial(solve, kind="lu")),
    "solve, cholesky": (DEFINITE, partial(solve, kind="cholesky")),
    "logdet and inverse": (SQUARE, determinant),
    "lstsq": (TALL, least_squares),
    "eigsh": (DEFINITE, partial(eigenvalues, sigma=None)),
    "eigsh, σ = 0": ({"494_bus": None, "bcsstk13": 150}, partial(eigenvalues, sigma=0.0)),
    "cg with ichol": ({"494_bus": None, "bcsstk16": 150}, partial(iterative, method="cg")),
    "gmres with ilu": ({"bcsstk13": 150, "sherman3": 800}, partial(iterative, method="gmres")),
}


def main(arguments: list[str] | None = None) -> None:
    given = given_matrices("errors", __doc__, arguments)
    torch.set_num_threads(1)
    for what, (matrices, run) in RUNS.items():
        titled = False
        for name, size in matrices.items():
            if given.names and name not in given.names:
                continue
            errors = run(system(given.folder, name, size))
            if not titled:
                print(f"\n| {what} | {' | '.join(errors)} |\n|{'---|' * (len(errors) + 1)}", flush=True)
            titled = True
            block = f"{name}, {size} rows" if size else name
            print(f"| {block} | {' | '.join(f'{v:.2g}' for v in errors.values())} |", flush=True)


if __name__ == "__main__":
    main()
