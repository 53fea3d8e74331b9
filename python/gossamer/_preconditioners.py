# SPDX-License-Identifier: BSD-3-Clause
"""Preconditioners made of a matrix, differentiable in its values. The work is done in C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._factor import factorize
from gossamer._krylov_call import Factored, handle_of
from gossamer._pattern import Pattern
from gossamer._preconditioner import Preconditioner
from gossamer._sparse_matrix import SparseMatrix
from gossamer._transforms import unwrapped
from gossamer._values import check_matrix
from gossamer.distributed._matrix import DistributedMatrix
from gossamer.distributed._own import of_own_block, own_block


class MatrixPreconditioner(Preconditioner):
    """A preconditioner that was made of the values of a matrix, and can be made again of other ones."""

    def __init__(self, handle: Tensor, A: SparseMatrix, make: tuple[Any, ...]) -> None:
        super().__init__(handle)
        self._A = A
        self._make = make  # a function, and what it takes beside A

    def update(self, A: SparseMatrix | DistributedMatrix) -> Self:
        """Made again, in place, for a matrix with other values on the same pattern; M itself.

        What follows from the pattern is kept: positions, aggregates, patterns of products. Another pattern raises
        ValueError. ``M.T`` and what was computed before stay as they were.
        """
        A = _own(A)
        given = _operands(f"{self._make[0].__name__}.update", A)
        self._handle = torch.ops.gossamer.update_preconditioner.default(self._handle, *given)
        self._A = A
        return self

    def __copy__(self) -> Self:
        """Another object with the same numbers, which can be updated by itself."""
        return type(self)(self._handle, self._A, self._make)

    def __reduce__(self) -> tuple[object, ...]:
        """A deep copy and a pickle are made anew: the numbers belong to objects of one process."""
        make, *arguments = self._make
        return make, (self._A, *arguments)


class IncompleteFactors(MatrixPreconditioner):
    """M = U⁻¹ L⁻¹ with triangles that have no entries but A's: made by ``ichol`` and ``ilu``."""

    @property
    def L(self) -> SparseMatrix:
        """The lower triangle, of ``ilu`` with ones on its diagonal. Gradients flow through its values."""
        return self._triangle(upper=False)

    @property
    def U(self) -> SparseMatrix:
        """The upper triangle, of ``ichol`` Lᵀ."""
        return self._triangle(upper=True)

    def _triangle(self, upper: bool) -> SparseMatrix:
        indptr, indices, values = torch.ops.gossamer.incomplete_triangle.default(self._handle, upper)
        pattern = self._A.pattern.keep(
            ("incomplete", self._make[0].__name__, upper),
            lambda: Pattern(unwrapped(indptr), unwrapped(indices), self._A.shape, check=False),
        )
        return SparseMatrix._trusted(pattern, values)


class Inverse(MatrixPreconditioner):
    """M = A⁻¹: ``block_jacobi`` with one block."""

    def update(self, A: SparseMatrix | DistributedMatrix) -> Self:
        """Made again, in place, for a matrix with other values; M itself."""
        self._A = _own(A)
        self._handle = _inverse(self._A)
        return self


class Amg(MatrixPreconditioner):
    """A V-cycle of smoothed aggregation: made by ``amg``."""

    def update(self, A: SparseMatrix | DistributedMatrix, omega: float | Tensor | None = None) -> Self:
        """Made again, in place, for other values on the same pattern and, if it is given, another omega; M itself.

        The aggregates, and the estimates of eigenvalues, stay as they are: what is learned is a smooth function.
        """
        if omega is None:
            return super().update(A)
        A = _own(A)
        given = _operands("amg.update", A)
        omega = _weight(omega)
        self._handle = torch.ops.gossamer.update_amg.default(self._handle, *given, omega)
        self._A = A
        self._make = (*self._make[:4], omega, *self._make[5:])
        return self

    @property
    def sizes(self) -> list[int]:
        """The rows of each level."""
        return list(torch.ops.gossamer.amg_sizes.default(self._handle))

    @property
    def operator_complexity(self) -> float:
        """The entries of the matrices of all levels over those of A."""
        return torch.ops.gossamer.amg_complexity.default(self._handle)


@of_own_block
def jacobi(A: SparseMatrix) -> MatrixPreconditioner:
    """M = diag(A)⁻¹.

    Cost: n. A diagonal entry that is missing or zero raises SingularMatrixError and names the row. Of a
    DistributedMatrix: this rank's rows of the same M, with the same bits for every partition.

    >>> gs.linalg.jacobi(gs.poisson(3))(torch.ones(3))
    tensor([0.5000, 0.5000, 0.5000])
    """
    return MatrixPreconditioner(torch.ops.gossamer.jacobi.default(*_operands("jacobi", A)), A, (jacobi,))


@of_own_block
def block_jacobi(A: SparseMatrix, size: int | Sequence[int] | None = None) -> MatrixPreconditioner:
    """M = the inverses of the blocks on the diagonal of A, of ``size`` rows each, the last one of what is left.

    size: a number, or a list of numbers of rows that add up to n. Blocks are stored dense, all as large as the largest
    one. A block without an inverse raises SingularMatrixError and is named.

    Of a DistributedMatrix: without ``size``, one block a rank, by ``factorize`` of its own rows and columns; with it,
    such blocks of these. The more ranks, the more iterations, which ``two_level`` keeps few.

    >>> gs.linalg.block_jacobi(gs.poisson(4), 2)(torch.tensor([3.0, 0.0, 0.0, 3.0]))
    tensor([2., 1., 1., 2.])
    """
    check_matrix("block_jacobi", "A", A)
    if size is None:
        return Inverse(_inverse(A), A, (block_jacobi,))
    equal = isinstance(size, int)
    sizes = [size] if isinstance(size, int) else [int(s) for s in size]
    handle = torch.ops.gossamer.block_jacobi.default(*_operands("block_jacobi", A), sizes, equal)
    return MatrixPreconditioner(handle, A, (block_jacobi, size))


@of_own_block
def ichol(A: SparseMatrix, shift: float = 0) -> IncompleteFactors:
    """M = L⁻ᵀ L⁻¹ with L Lᵀ = A + shift · diag(A) at the entries of the lower triangle of A: IC(0).

    Of a DistributedMatrix, here and below: that of each rank's own rows and columns.

    Only the lower triangle of A is read; its entries get the whole gradient, as those of a matrix whose upper triangle
    follows from them, and the entries above the diagonal get 0. A pivot that is not positive raises SingularMatrixError
    and names the row; M-matrices and diagonally dominant matrices have none, and a larger shift helps others.

    Cost: a few passes over A. Gradient: J dL = dA with a sparse triangular J, which has about 2.3 entries for each of L
    on a grid. Its pattern is found once and kept with A's; a backward is one triangular solve with it, of any order.

    >>> M = gs.linalg.ichol(gs.poisson(3))
    >>> M(torch.tensor([0.0, 0.0, 4.0]))  # a tridiagonal matrix has no other entries: exact
    tensor([1.0000, 2.0000, 3.0000])
    """
    handle = torch.ops.gossamer.ichol.default(*_operands("ichol", A), float(shift))
    return IncompleteFactors(handle, A, (ichol, shift))


@of_own_block
def ilu(A: SparseMatrix) -> IncompleteFactors:
    """M = U⁻¹ L⁻¹ with L U = A at the entries of A, L with ones on its diagonal: ILU(0).

    A row without a diagonal entry, or with a zero pivot, raises SingularMatrixError and is named. Cost and gradient: as
    those of ``ichol``, with J on all entries of A.

    >>> M = gs.linalg.ilu(gs.poisson(3))
    >>> M.U.diagonal()
    tensor([2.0000, 1.5000, 1.3333])
    """
    return IncompleteFactors(torch.ops.gossamer.ilu.default(*_operands("ilu", A)), A, (ilu,))


@of_own_block
def amg(
    A: SparseMatrix,
    theta: float = 0.08,
    near_null_space: Tensor | None = None,
    block_size: int = 1,
    omega: float | Tensor | None = None,
    coarse_size: int = 300,
) -> Amg:
    """One V-cycle of algebraic multigrid by smoothed aggregation, for matrices that discretise elliptic equations.

    theta: entries with a_ij² ≤ θ² a_ii a_jj count as weak, on each level half of it; the aggregates follow the strong
    ones. near_null_space: (n, m), vectors that A nearly maps to 0, such as the rigid motions of elasticity, with
    ``block_size`` rows a point; without it, the constants. omega: the weight of the smoothing of the prolongation, over
    the largest eigenvalue of D⁻¹A; a number or a tensor, 0-dim or one a level, which may want a gradient. coarse_size:
    a level of so many rows is solved directly.

    Smoothing is a forward Gauss–Seidel sweep before and a backward one after the coarse correction, so M is symmetric
    if A is. Rows without entries, or with a zero on the diagonal, are passed through as if they had a 1 there.

    Gradient: of everything in the values of A (and in omega), to any order; the aggregates, the near null space and the
    eigenvalue estimates are those of the matrix that M was made of, also after ``update``. A solver that differentiates
    implicitly needs none of it: make M of ``A.detach()`` there.

    >>> A = gs.poisson((50, 50), dtype=torch.float64)
    >>> M = gs.linalg.amg(A)
    >>> b = torch.ones(2500, dtype=torch.float64)
    >>> x = M(b)
    >>> for _ in range(12):
    ...     x = x + M(b - A @ x)
    >>> bool((b - A @ x).norm() < 1e-3 * b.norm())
    True
    """
    omega = None if omega is None else _weight(omega)
    given = _operands("amg", A)
    how = float(theta), near_null_space, block_size, omega, coarse_size
    handle = _interrupt.called(_interrupt.is_long(A.pattern), torch.ops.gossamer.amg.default, *given, *how)
    return Amg(handle, A, (amg, theta, near_null_space, block_size, omega, coarse_size))


def _weight(omega: float | Tensor) -> Tensor:
    return omega if isinstance(omega, Tensor) else torch.tensor(float(omega), dtype=torch.float64)


def _inverse(A: SparseMatrix) -> Tensor:
    """M = A⁻¹ by the factors of A, as a handle."""
    if A.shape[0] == 0:
        return jacobi(A)._handle
    handle = handle_of(Factored(factorize(A)))
    assert handle is not None
    assert handle[0] is not None
    return handle[0]


def _own(A: SparseMatrix | DistributedMatrix) -> SparseMatrix:
    return own_block(A) if isinstance(A, DistributedMatrix) else A


def _operands(op: str, A: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The pattern as a handle, which keeps in C++ what is found once, and the values."""
    check_matrix(op, "A", A)
    P = A.pattern
    P.check_simple(op)
    handle = P.keep("handle", lambda: torch.ops.gossamer.pattern_handle.default(P.tensors(), P.shape))
    return handle, A.values
