# SPDX-License-Identifier: BSD-3-Clause
"""Triangular and direct solves with sparse matrices. The work is done in C++."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gossamer import _interrupt
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer._values import check_matrix

SingularMatrixError = torch.linalg.LinAlgError  # type: ignore[attr-defined]
"""A matrix that cannot be solved with; the message names the row, column or pivot. What torch.linalg raises, too."""


def solve_triangular(
    L: SparseMatrix, b: Tensor, upper: bool = False, unit_diagonal: bool = False, transpose: bool = False
) -> Tensor:
    """x with T x = b, or Tᵀ x = b, where T is the lower (or upper) triangle of L.

    Entries of the other triangle are not read and get the gradient 0; so does the diagonal with ``unit_diagonal``,
    where it counts as 1. A diagonal entry that is missing or zero raises SingularMatrixError and names the row.

    Shapes: L (n, n) with values (nnz,): b (n,) or (n, k) gives the same. With values (nnz, H), H matrices on one
    pattern: b (n, H) or (n, H, k).

    Cost: O(nnz H k). The level sets of the triangle (rows that can be solved at once) are found by the first solve,
    O(nnz), and kept with the pattern; on a device by ``L.pattern.levels(upper)`` alone, for many solves.

    Gradient: db = T⁻ᵀ g, dL = -(db xᵀ) on the triangle (operands swapped if transposed).

    >>> L = gs.from_dense(torch.tensor([[2.0, 0.0], [1.0, 4.0]]))
    >>> gs.linalg.solve_triangular(L, torch.tensor([2.0, 9.0]))
    tensor([1., 2.])
    """
    _check_operands("solve_triangular", "L", L, b)
    if L._original is not None:  # the upper triangle of Aᵀ is the transpose of the lower one of A
        L, upper, transpose = L._original, not upper, not transpose
    L.pattern.check_simple("solve_triangular")
    tensors = L.pattern.tensors_for(b, L.values, with_transpose=transpose)
    if b.dim() == 1:  # along the runs of rows that a grid or a band has
        tensors = L.pattern.with_runs(len(tensors) == 5)
    # A device needs none, and would have to tell the host where they begin: it uses those that were asked for.
    levels_of = L.pattern.levels_at_hand if L.values.is_cuda else L.pattern.levels
    levels = levels_of(upper) if L.shape[0] == L.shape[1] else []
    op = torch.ops.gossamer.solve_triangular.default
    return op(tensors, L.values, b, L.shape, levels, upper, unit_diagonal, transpose)


class SignAndLogDet(NamedTuple):
    """As ``torch.linalg.slogdet`` gives it."""

    sign: Tensor
    logabsdet: Tensor


class Factor:
    """The factors of a square matrix, made by ``factorize``: solve with it and with its transpose any number of times.

    Gradients flow to the matrix that was factored and to the right-hand sides. The matrix must not be changed in place.
    """

    def __init__(self, A: SparseMatrix, kind: str = "auto", engine: str = "auto") -> None:
        self._flipped = A._original is not None  # what is factored then is Aᵀ
        A = A._trusted(A.pattern, A.values) if A._original is None else A._original
        self.A = A.T if self._flipped else A  # as it is now: others may be assigned to the caller's later
        self._real = _real_form(A)  # what is factored, or its real form
        self._asked = kind, engine
        factorize, analysis = torch.ops.gossamer.factorize.default, self._real.pattern.analysis()
        given = analysis, self._real.values, kind, engine
        self._handle = _interrupt.called(_interrupt.takes_long(A.pattern), factorize, *given)

    def __reduce__(self) -> tuple[object, ...]:
        """A copy and a pickle are factored anew: the factors themselves belong to one object in one process."""
        return Factor, (self.A, *self._asked)

    @property
    def engine(self) -> str:
        """What made the factors: "gossamer", "eigen", "cholmod", "umfpack", "pardiso", "device" or "cudss"."""
        return torch.ops.gossamer.factor_engine.default(self._handle)

    def solve(self, b: Tensor, transpose: bool = False, refine: bool = False) -> Tensor:
        """x with A x = b, or Aᵀ x = b; shapes as ``linalg.solve``.

        ``refine`` corrects x, and every derivative of it, until the backward error ‖b - A x‖ / (‖A‖ ‖x‖ + ‖b‖) is a
        rounding error. Without, this is done only where it exceeds 10⁻¹⁴: where pivots turned out poor.
        """
        _check_operands("solve", "A", self.A, b)
        A, ops = self._real, torch.ops.gossamer
        op = ops.complex_solve.default if self.A.dtype.is_complex else ops.factor_solve.default
        return op(self._handle, A.pattern.tensors(True), A.values, b, A.shape, transpose != self._flipped, refine)

    def logdet(self) -> Tensor:
        """log|det A|, a scalar, or (H,) with H matrices on one pattern; ``slogdet`` tells the sign.

        Gradient: dA = g A⁻ᵀ on A's pattern, from the same factors. Of a Cholesky factorisation the gradient and the
        second derivative cost a few more of them; of an LU, and on a device, n solves, 64 columns at a time.

        >>> gs.linalg.factorize(gs.poisson(3)).logdet().exp()
        tensor(4.)
        """
        A = self._real
        result = torch.ops.gossamer.factor_logdet.default(self._handle, A.pattern.tensors(True), A.values, A.shape)
        return result / 2 if self.A.dtype.is_complex else result  # det of the real form is |det A|²

    def slogdet(self) -> SignAndLogDet:
        """The sign of det A (1 or -1, without a gradient) and log|det A|, like ``torch.linalg.slogdet``.

        >>> swap = gs.from_dense(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
        >>> sign, logabsdet = gs.linalg.factorize(swap).slogdet()
        >>> round((sign * logabsdet.exp()).item(), 4)
        -6.0
        """
        if self.A.dtype.is_complex:
            raise TypeError("slogdet: the phase of a complex determinant is not known; logdet is")
        return SignAndLogDet(torch.ops.gossamer.factor_sign.default(self._handle, self._real.values), self.logdet())

    def selected_inverse(self) -> SparseMatrix:
        """A⁻¹ where A has entries, as a matrix on A's pattern; ``linalg.selected_inverse`` says what it costs."""
        A = self._real_matrix("selected_inverse")
        inverse = torch.ops.gossamer.factor_inverse.default
        Z = A.with_values(inverse(self._handle, A.pattern.tensors(True), A.values, A.shape))
        return Z.T if self._flipped else Z

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of A⁻¹, (n,) or (n, H): marginal variances, if A is the precision matrix of a Gaussian field.

        A must have all entries of its diagonal. Cost and gradient: those of ``linalg.selected_inverse``.

        >>> gs.linalg.factorize(gs.poisson(3)).inverse_diagonal()
        tensor([0.7500, 1.0000, 0.7500])
        """
        A = self._real_matrix("inverse_diagonal")
        i = torch.arange(A.shape[0], device=A.pattern.device)
        if not A.pattern.keep("whole diagonal", lambda: len(A._find(i, i)[0]) == len(i)):
            raise ValueError("inverse_diagonal: A must have all entries of its diagonal, where the inverse is known")
        return self.selected_inverse().diagonal()

    def _real_matrix(self, op: str) -> SparseMatrix:
        """What was factored."""
        if self.A.dtype.is_complex:
            raise TypeError(f"{op}: the matrix must be real, not {self.A.dtype}")
        return self._real


def factorize(A: SparseMatrix, kind: str = "auto", engine: str = "auto") -> Factor:
    """Factor a square matrix once, to solve with it, with its transpose and through their gradients.

    kind: "lu" (fill-reducing ordering, partial pivoting), "cholesky" (symmetric positive definite, else ValueError), or
    "auto": Cholesky if A is symmetric with a positive diagonal and turns out positive definite, else LU. Rows and
    columns are scaled by powers of two first. The analysis of the pattern is kept with it and serves all its matrices.

    engine: "gossamer" (Cholesky) and "eigen" (LU), which are always there, "cholmod", "umfpack", "pardiso" (where
    installed, see ``gs.show_config()``), or "auto": the environment variable GOSSAMER_ENGINE if it is set, else the
    fastest for the size of the problem. An engine that has no factorisation of this kind, or cannot do this matrix,
    leaves it to the first two; ``factor.engine`` says which one did it. A matrix on a CUDA device is factored there
    ("device", or "cudss" if it is named and installed), with pivots from the host that are kept with the pattern as
    long as they serve; one of the engines above, if it is named, gets a copy.

    A complex matrix of n rows is factored as a real one of 2n rows.

    A matrix that is singular, to working precision, raises SingularMatrixError and names a row, a column or a pivot.
    Ctrl-C returns at once; what an engine has begun, it finishes behind the scenes.

    >>> factor = gs.linalg.factorize(gs.poisson(3))
    >>> factor.solve(torch.tensor([1.0, 0.0, 0.0])), factor.solve(torch.tensor([0.0, 0.0, 4.0]), transpose=True)
    (tensor([0.7500, 0.5000, 0.2500]), tensor([1., 2., 3.]))
    """
    check_matrix("factorize", "A", A)
    return Factor(A, kind, engine)


def solve(A: SparseMatrix, b: Tensor, kind: str = "auto", engine: str = "auto") -> Tensor:
    """x with A x = b, by a direct factorisation: ``factorize(A, kind, engine).solve(b)``.

    Shapes: A (n, n) with values (nnz,): b (n,) or (n, k) gives the same. With values (nnz, H), H matrices on one
    pattern: b (n, H) or (n, H, k). float32 is factored and solved in float64 and rounded at the end.

    Gradient: db = A⁻ᵀ g, dA = -(db xᵀ) on A's pattern, from the same factors.

    >>> gs.linalg.solve(gs.poisson(3), torch.tensor([0.0, 0.0, 4.0]))
    tensor([1., 2., 3.])
    """
    return factorize(A, kind, engine).solve(b)


def selected_inverse(A: SparseMatrix) -> SparseMatrix:
    """A⁻¹ where A has entries, as a matrix on A's pattern: ``factorize(A).selected_inverse()``.

    The inverse itself is dense; these are the entries that the gradient of log det needs, and the diagonal is that of
    the inverse. For a symmetric positive definite matrix it costs two to four times a factorisation, and so does its
    derivative. For others, whose LU has no such structure, and on a device, it is n solves.

    Gradient: dA = -(A⁻ᵀ G A⁻ᵀ) on A's pattern.

    >>> gs.linalg.selected_inverse(gs.poisson(3)).to_dense()
    tensor([[0.7500, 0.5000, 0.0000],
            [0.5000, 1.0000, 0.5000],
            [0.0000, 0.5000, 0.7500]])
    """
    return factorize(A).selected_inverse()


def _real_form(A: SparseMatrix) -> SparseMatrix:
    """A, or the real matrix of twice the size that stands for a complex one; its pattern is kept with A's."""
    if not A.values.is_complex():
        return A

    def derive() -> tuple[Pattern, Tensor]:
        indptr, indices, positions = torch.ops.gossamer.real_form.default(A.pattern.tensors(), A.shape)
        return Pattern(indptr, indices, (2 * A.shape[0], 2 * A.shape[1]), check=False), positions

    pattern, positions = A.pattern.keep("real form", derive)
    return SparseMatrix._trusted(pattern, torch.ops.gossamer.real_values.default(A.values, positions))


def _check_operands(op: str, name: str, A: SparseMatrix, b: Tensor) -> None:
    check_matrix(op, name, A)
    if not isinstance(b, Tensor):
        raise TypeError(f"{op}: b must be a torch.Tensor, not {type(b).__name__}")
