# SPDX-License-Identifier: BSD-3-Clause
"""Every solver on every real matrix: what it took and the true error, or how it refused, as Markdown tables.

    OMP_NUM_THREADS=1 python -m bench.studies.solvers.real_matrices FOLDER [NAME ...]

FOLDER holds MatrixMarket files. Errors are computed by SciPy and NumPy from what was returned, never by us, and each
is beside the bound that our documentation promises: `Outcome.wrong` is a silent wrong answer. tests/real asks for none.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as sl
import torch
from torch import Tensor

import gossamer as gs
from bench.studies.solvers.settings import given_matrices

RTOL = 1e-8
REFUSALS = (gs.ConvergenceError, gs.SingularMatrixError, ValueError, TypeError)  # what the documentation names
SYMMETRIC = ["494_bus", "bcsstk13", "bcsstk16", "bcspwr10", "jagmesh7", "USAir97", "c-62", "mhd1280b"]
NONSYMMETRIC = [
    "fs_183_1",
    "west0479",
    "mbeacxc",
    "orani678",
    "sherman3",
    "memplus",
    "cage10",
    "young1c",
    "NotreDame_www",
]
RECTANGULAR = ["ash219", "lp_e226", "well1033", "illc1850"]


@dataclass
class Problem:
    """A x = b, or the least squares of it."""

    name: str
    A: gs.SparseMatrix
    S: Any  # the same as SciPy reads it
    b: Tensor
    symmetric: bool

    @property
    def norm(self) -> float:
        """‖A‖∞, which is at most √n times the 2-norm and at least its n-th part."""
        return float(abs(self.S).sum(1).max())


@dataclass
class Outcome:
    """What a solver did: its cost and the error beside what was promised, or a refusal."""

    cost: str  # iterations or seconds; the words of a refusal
    error: float = 0.0
    bound: float = 0.0

    @property
    def refused(self) -> bool:
        return self.bound == 0

    @property
    def wrong(self) -> bool:
        return not self.error <= self.bound  # NaN is wrong

    def __str__(self) -> str:
        return self.cost if self.refused else f"{self.cost}, {self.error:.0e}" + " **wrong**" * self.wrong


def read(folder: Path, name: str) -> Problem:
    """b = A x, so that singular systems have a solution, too; a tall A gets its own b, or one that no x gives."""
    path = next(folder.glob(f"{name}.mtx*"))
    A = gs.read_mtx(path)
    assert isinstance(A, gs.SparseMatrix)
    A = A if A.dtype.is_complex else A.to(torch.float64)
    S = sp.csr_array(scipy.io.mmread(path))
    m, n = S.shape
    given = folder / f"{name}_rhs1.mtx"
    b = scipy.io.mmread(given)[:, 0] if m > n and given.exists() else S @ (1 + np.sin(np.arange(n)))
    if m > n and not given.exists():
        b = b + np.cos(np.arange(m))
    return Problem(name, A, S, torch.from_numpy(np.ascontiguousarray(b)), name in SYMMETRIC)


def direct(kind: str, p: Problem, maxiter: int) -> Outcome:
    start = time.process_time()
    x = gs.linalg.solve(p.A, p.b, kind).numpy()
    seconds, b = time.process_time() - start, p.b.numpy()
    size = p.norm * np.abs(x).max() + np.abs(b).max()
    return Outcome(f"{seconds:.2f} s", float(np.abs(b - p.S @ x).max() / size), 1e-12)


def log_determinant(p: Problem, maxiter: int) -> Outcome:
    start = time.process_time()
    value = float(gs.linalg.factorize(p.A).logdet())
    seconds = time.process_time() - start
    if p.A.shape[0] <= 1500:
        true = float(np.linalg.slogdet(p.S.toarray())[1])
    else:
        true = float(np.log(np.abs(sl.splu(p.S.tocsc()).U.diagonal())).sum())
    return Outcome(f"{seconds:.2f} s", abs(value - true) / max(abs(true), 1.0), 1e-10)


PRECONDITIONERS: dict[str, Callable[[gs.SparseMatrix], Any]] = {
    "none": lambda A: None,
    "jacobi": gs.linalg.jacobi,
    "ichol": gs.linalg.ichol,
    "ilu": gs.linalg.ilu,
    "amg": gs.linalg.amg,
}


def iterative(method: str, preconditioner: str, p: Problem, maxiter: int) -> Outcome:
    M = PRECONDITIONERS[preconditioner](p.A)
    x, info = getattr(gs.linalg, method)(p.A, p.b, M=M, rtol=RTOL, maxiter=maxiter)
    b = p.b.numpy()
    error = np.linalg.norm(b - p.S @ x.numpy()) / np.linalg.norm(b)
    return Outcome(str(int(info.iterations)), float(error), 1.01 * RTOL)


def lsmr(p: Problem, maxiter: int) -> Outcome:
    x, info = gs.linalg.lsmr(p.A, p.b, rtol=RTOL, maxiter=maxiter)
    b, T = p.b.numpy(), p.S.T
    error = np.linalg.norm(T @ (b - p.S @ x.numpy())) / np.linalg.norm(T @ b)
    return Outcome(str(int(info.iterations)), max(float(error), RTOL * outside(p, x.numpy())), 1.01 * RTOL)


def outside(p: Problem, x: Any) -> float:
    """How much of x is outside of the rows of a wide A, in units of 1e-10: none, if it is the smallest solution."""
    if p.S.shape[0] >= p.S.shape[1]:
        return 0.0
    T = p.S.T.toarray()
    return float(np.linalg.norm(x - T @ np.linalg.lstsq(T, x)[0]) / np.linalg.norm(x) / 1e-10)


def lstsq(p: Problem, maxiter: int) -> Outcome:
    """The backward error: r beside ‖A‖ ‖x‖ + ‖b‖, or, where r is not 0 in the solution, Aᵀ r beside ‖A‖ ‖r‖."""
    start = time.process_time()
    x = gs.linalg.lstsq(p.A, p.b).numpy()
    seconds, b = time.process_time() - start, p.b.numpy()
    r, norm = b - p.S @ x, float(sl.norm(p.S))
    if p.S.shape[0] > p.S.shape[1]:
        error = np.linalg.norm(p.S.T @ r) / (norm * np.linalg.norm(r))
    else:
        error = np.linalg.norm(r) / (norm * np.linalg.norm(x) + np.linalg.norm(b))
    return Outcome(f"{seconds:.2f} s", max(float(error), 1e-10 * outside(p, x)), 1e-10)


def eigenvalues(p: Problem, sigma: float | None, k: int) -> Any:
    """By LAPACK; by ARPACK, at a number beside sigma if SciPy finds that singular, for matrices that are too large."""
    if p.A.shape[0] <= 1500:
        values = np.linalg.eigvalsh(p.S.toarray())
    else:
        try:
            values = sl.eigsh(p.S.tocsc(), k, sigma=sigma, return_eigenvectors=False)
        except RuntimeError:
            values = sl.eigsh(p.S.tocsc(), 4 * k, sigma=1e-8 * p.norm, return_eigenvectors=False)
    distance = np.abs(values) if sigma is None else -np.abs(values - sigma)
    return values[np.argsort(-distance)[:k]]


def eigsh(sigma: float | None, p: Problem, maxiter: int) -> Outcome:
    """The residual beside ‖A‖, and the values beside LAPACK's or ARPACK's: none may be missing, and 6 digits must be
    right of what is more than rounding errors of ‖A‖."""
    start = time.process_time()
    values, X = (t.numpy() for t in gs.linalg.eigsh(p.A, 4, sigma=sigma))
    seconds = time.process_time() - start
    residual = np.abs(p.S @ X - X * values).max() / p.norm
    # Of a pair λ, -λ that k cuts either one is right, so magnitudes are compared.
    got, true = np.sort(np.abs(values)), np.sort(np.abs(eigenvalues(p, sigma, 4)))
    missed = (np.maximum(np.abs(got - true) - 1e-14 * p.norm, 0) / np.maximum(true, 1e-14 * p.norm)).max()
    return Outcome(f"{seconds:.2f} s", float(max(residual, 1e-4 * missed)), 1e-10)


def cholesky(p: Problem, maxiter: int) -> Outcome:
    start = time.process_time()
    L, perm = gs.linalg.cholesky(p.A)
    seconds = time.process_time() - start
    F, order = L.to_scipy().tocsr(), perm.numpy()
    difference = abs(F @ F.T - p.S[order][:, order])
    return Outcome(f"{seconds:.2f} s", float(difference.max() / p.norm), 1e-12)


def svds(p: Problem, maxiter: int) -> Outcome:
    start = time.process_time()
    U, S, Vh = (t.numpy() for t in gs.linalg.svds(p.A, 3))
    seconds = time.process_time() - start
    true = np.sort(np.linalg.svd(p.S.toarray(), compute_uv=False)[:3] if max(p.S.shape) <= 2000 else sl.svds(p.S, 3)[1])
    residual = max(np.abs(p.S @ Vh.T - U * S).max(), np.abs(p.S.T @ U - Vh.T * S).max(), np.abs(S - true).max())
    return Outcome(f"{seconds:.2f} s", float(residual / true.max()), 1e-10)


Run = Callable[[Problem, int], Outcome]
DIRECT: dict[str, Run] = {f"solve {kind}": partial(direct, kind) for kind in ("auto", "lu", "cholesky")}
DIRECT |= {"cholesky": cholesky, "logdet": log_determinant}
SYMMETRIC_KRYLOV: dict[str, Run] = {
    f"{method} {M}": partial(iterative, method, M)
    for method in ("cg", "minres")
    for M in ("none", "jacobi", "ichol", "amg")
}
KRYLOV: dict[str, Run] = {
    f"{method} {M}": partial(iterative, method, M)
    for method in ("gmres", "bicgstab")
    for M in ("none", "jacobi", "ilu", "amg")
}
LEAST: dict[str, Run] = {"lsmr": lsmr, "lstsq": lstsq}
SPECTRA: dict[str, Run] = {"eigsh": partial(eigsh, None), "eigsh σ=0": partial(eigsh, 0.0), "svds": svds}
EVERY = DIRECT | SYMMETRIC_KRYLOV | KRYLOV | LEAST | SPECTRA


def attempt(run: Run, p: Problem, maxiter: int) -> Outcome:
    """Any other exception than the documented ones is a defect, and passes."""
    try:
        return run(p, maxiter)
    except REFUSALS as error:
        words = str(error).splitlines()[0].split(": ", 1)[-1].removeprefix("no convergence: ")
        return Outcome(f"{type(error).__name__.strip('_')}: {re.split('[;(]|: |, or', words)[0].strip()}")


# What takes minutes, with the reason.
HEAVY = {
    ("c-62", "lstsq"): "rows of 5 060 entries make AᵀA nearly dense",
    ("c-62", "eigsh σ=0"): "SciPy's factorisation, the judge, fills for minutes",
    ("c-62", "logdet"): "SciPy's factorisation, the judge, fills for minutes",
    ("NotreDame_www", "lstsq"): "columns of 10 717 entries make AᵀA nearly dense",
}


def iterations(p: Problem) -> int:
    """The most that a table waits for."""
    return 2000 if p.A.nnz < 3e5 else 200


def table(title: str, runs: dict[str, Run], problems: list[Problem]) -> bool:
    """Prints a table; whether no answer in it is wrong."""
    print(f"\n## {title}\n\n| | {' | '.join(runs)} |\n|{'---|' * (len(runs) + 1)}", flush=True)
    right = True
    for p in problems:
        cells = []
        for name, run in runs.items():
            outcome = Outcome("not run") if (p.name, name) in HEAVY else attempt(run, p, iterations(p))
            right &= not outcome.wrong
            cells.append(str(outcome).replace("|", "∣"))
        print(f"| {p.name} | {' | '.join(cells)} |", flush=True)
    return right


def main(arguments: list[str] | None = None) -> bool:
    given = given_matrices("real_matrices", __doc__, arguments)
    torch.set_num_threads(1)
    folder, wanted = given.folder, given.names
    symmetric, others, tall = (
        [read(folder, name) for name in names if not wanted or name in wanted]
        for names in (SYMMETRIC, NONSYMMETRIC, RECTANGULAR)
    )
    square = symmetric + others
    right = [
        table("Direct", DIRECT, square),
        table("Iterative, symmetric", SYMMETRIC_KRYLOV, symmetric),
        table("Iterative, any", KRYLOV, square),
        table("Least squares", LEAST, square + tall),
        table("Eigenvalues", SPECTRA, symmetric),
        table("Singular values", {"svds": svds}, others + tall),
    ]
    print(f"\nSilent wrong answers: {'none' if all(right) else 'yes'}")
    return all(right)


if __name__ == "__main__":
    sys.exit(not main())
