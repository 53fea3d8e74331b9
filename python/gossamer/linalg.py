# SPDX-License-Identifier: BSD-3-Clause
"""Solves with sparse matrices, differentiable in the matrix and in the right-hand side. The work is done in C++."""

from gossamer._cholesky import Cholesky, cholesky
from gossamer._convergence import ConvergenceError
from gossamer._expm import expm_multiply
from gossamer._factor import (
    Factor,
    SignAndLogDet,
    SingularMatrixError,
    factorize,
    selected_inverse,
    solve,
    solve_triangular,
)
from gossamer._krylov import bicgstab, cg, gmres, lsmr, minres
from gossamer._krylov_call import KrylovInfo
from gossamer._least_squares import lstsq
from gossamer._linear_operator import LinearOperator
from gossamer._preconditioner import Preconditioner
from gossamer._preconditioners import (
    Amg,
    IncompleteFactors,
    MatrixPreconditioner,
    amg,
    block_jacobi,
    ichol,
    ilu,
    jacobi,
)
from gossamer._root import RootInfo, root
from gossamer._spectral import eigsh, svds
from gossamer._two_level import two_level

__all__ = [
    "Amg",
    "Cholesky",
    "ConvergenceError",
    "Factor",
    "IncompleteFactors",
    "KrylovInfo",
    "LinearOperator",
    "MatrixPreconditioner",
    "Preconditioner",
    "RootInfo",
    "SignAndLogDet",
    "SingularMatrixError",
    "amg",
    "bicgstab",
    "block_jacobi",
    "cg",
    "cholesky",
    "eigsh",
    "expm_multiply",
    "factorize",
    "gmres",
    "ichol",
    "ilu",
    "jacobi",
    "lsmr",
    "lstsq",
    "minres",
    "root",
    "selected_inverse",
    "solve",
    "solve_triangular",
    "svds",
    "two_level",
]

for _name in __all__:  # where users find them, and where pickles look for them; errors are torch's
    if not _name.endswith("Error"):
        globals()[_name].__module__ = __name__
