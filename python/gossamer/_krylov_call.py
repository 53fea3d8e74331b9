# SPDX-License-Identifier: BSD-3-Clause
"""One iterative solve: by one op where C++ can do it all, and driven from here where an operator, a callback or the
preconditioner is Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gossamer._linear_operator import LinearOperator, Solve
from gossamer._preconditioner import Preconditioner
from gossamer._sparse_matrix import SparseMatrix
from gossamer._transforms import is_batched, unwrapped
from gossamer.distributed._group import one_for_all
from gossamer.distributed._matrix import DistributedMatrix

Matrix = SparseMatrix | LinearOperator | DistributedMatrix
Products = Callable[[Tensor], Tensor]


class KrylovInfo(NamedTuple):
    """How an iterative solve went, for each column of b (0-dim for one vector), on the host.

    ``iterations`` it took; the ``residual`` ‖b - A x‖, computed anew from x (for lsmr ‖Aᵀ(b - A x) - damp² x‖); and
    whether it ``converged``: the residual is at most max(rtol ‖b‖, atol) (for lsmr, rtol ‖Aᵀ b‖).
    """

    iterations: Tensor
    residual: Tensor
    converged: Tensor


def _info_of(numbers: Tensor) -> KrylovInfo:
    return KrylovInfo(numbers[0].long(), numbers[1], numbers[2] != 0)


@dataclass(frozen=True)
class Call:
    """One solve as the user asked for it, and the solves of its derivatives."""

    method: str
    rtol: float
    atol: float
    maxiter: int
    restart: int
    damp: float
    check: bool
    adjoint_rtol: float
    M: Any
    callback: Callable[[KrylovInfo], object] | None
    unrolled: bool = False
    group: str = ""  # of the processes that have parts of the rows
    m_of_rows: bool = False  # lsmr, square: M approximates (A Aᵀ)⁻¹ instead of (Aᵀ A)⁻¹

    def derivative(self, other: bool) -> Call:
        """To the tolerance of derivatives, relative to what comes in, and always checked; with Mᵀ if `other`."""
        M = self._transposed_M() if other else self.M
        how = replace(self, rtol=self.adjoint_rtol, atol=0.0, check=True, callback=None)
        return replace(how, M=M, m_of_rows=self.m_of_rows != other)

    def _transposed_M(self) -> Any:
        if self.M is None or isinstance(self.M, Factored):
            return None if self.M is None else self.M.T
        if hasattr(self.M, "T"):
            return self.M.T
        if self.method in ("cg", "minres", "lsmr"):
            return self.M  # it is symmetric, or the method itself would not work
        raise TypeError(
            f"{self.method}: the gradient needs Mᵀ: give the callable M an attribute T, or use a SparseMatrix"
        )

    def run(
        self, A: Products, At: Products, shape: tuple[int, int], b: Tensor, x0: Tensor | None, t: bool
    ) -> tuple[Tensor, Tensor]:
        """(x, info): asks the method what it wants multiplied, and does it."""
        ops = torch.ops.gossamer
        rows, cols = shape[::-1] if t else shape
        how = self.rtol, self.atol, self.maxiter, self.restart, self.damp, self.M is not None
        also = self.m_of_rows, self.unrolled, self.callback is not None, self.group
        run = ops.krylov_begin(b, x0, rows, cols, self.method, *how, *also)
        answer = None
        while True:
            ask, question = ops.krylov_next(run, answer)
            if ask == 0:
                break
            if ask == 4:
                answer = None
                assert self.callback is not None
                self.callback(_info_of(question))
            else:
                answer = A(question) if ask == 1 else At(question) if ask == 2 else self._precondition(question)
                if not isinstance(answer, Tensor):
                    raise TypeError(f"{self.method}: a product must be a torch.Tensor, not {type(answer).__name__}")
        result: tuple[Tensor, Tensor] = ops.krylov_end(
            run, self.check and not self.unrolled, f"{self.method} with the transpose" if t else self.method
        )
        return result

    def _precondition(self, r: Tensor) -> Tensor:
        result: Tensor = self.M @ r if isinstance(self.M, (SparseMatrix, DistributedMatrix)) else self.M(r)
        return result


class Factored:
    """A factor as a preconditioner: z = A⁻¹ r."""

    def __init__(self, factor: Any, transposed: bool = False) -> None:
        self.factor, self.transposed = factor, transposed

    def __call__(self, r: Tensor) -> Tensor:
        result: Tensor = self.factor.solve(r, transpose=self.transposed)
        return result

    @property
    def T(self) -> Factored:
        return Factored(self.factor, not self.transposed)


def _plain(t: Tensor) -> Tensor:
    """Numbers alone: a preconditioner is a constant, also within torch.func.grad."""
    if is_batched(t):
        raise ValueError("krylov: M cannot be batched by vmap")
    return unwrapped(t).detach()


def handle_of(M: Any) -> tuple[Tensor | None, bool] | None:
    """M as the op takes it, and whether transposed; None if only Python can apply it."""
    ops = torch.ops.gossamer
    if M is None:
        return None, False
    if isinstance(M, Preconditioner):
        return M._handle, M._transposed
    if isinstance(M, SparseMatrix):
        return ops.matrix_preconditioner(M.pattern.tensors(True), _plain(M.values), M.shape), False
    if isinstance(M, Factored) and not M.factor.A.dtype.is_complex:
        factor, A = M.factor, M.factor._real
        made = ops.factor_preconditioner(
            factor._handle, A.pattern.tensors(True), _plain(A.values), A.shape, factor._flipped
        )
        return made, M.transposed
    return None


def solve(A: Matrix, b: Tensor, x0: Tensor | None, call: Call) -> tuple[Tensor, KrylovInfo]:
    """By one op if it can be, which compiles and batches; else driven from here."""
    if isinstance(A, LinearOperator):
        operator = A
    elif isinstance(A, DistributedMatrix):
        call = replace(call, group=A.group)
        operator = _operator_of_rows(A, b, x0, call.method)
    else:
        handle = None if call.callback or call.unrolled else handle_of(call.M)
        if handle is not None:
            return _by_op(A, b, x0, call, *handle)
        pattern = A.pattern
        operator = LinearOperator(
            A.shape,
            lambda x, v: SparseMatrix._trusted(pattern, v) @ x,
            lambda u, v: SparseMatrix._trusted(pattern, v).T @ u,
            (A.values,),
        )
    if call.unrolled:
        x, info = call.run(operator.matvec, operator.rmatvec, operator.shape, b, x0, False)
    else:
        x, info = Solve.apply(operator, call, False, b, x0, *operator.params)  # type: ignore[no-untyped-call]
    return x, _info_of(info)


def _operator_of_rows(A: DistributedMatrix, b: Tensor, x0: Tensor | None, method: str) -> LinearOperator:
    """What this rank does for A x; every rank has found its b to be right."""
    if method == "lsmr" or not torch.equal(A.offsets, A.column_offsets):
        raise NotImplementedError(
            f"{method}: a DistributedMatrix must be square, its rows and columns owned alike; least squares are for "
            "one process"
        )
    rows = A.local_shape[0]
    with one_for_all(A.group, f"{method}: b {b.dtype} (rows, {tuple(b.shape[1:])}), x0 {x0 is not None}"):
        for name, t in (("b", b), ("x0", b if x0 is None else x0)):
            if t.dim() not in (1, 2) or t.shape != (rows, *b.shape[1:]) or t.dtype is not A.dtype:
                raise ValueError(
                    f"{method}: {name} must be ({rows},) or ({rows}, k), this rank's rows, of {A.dtype}, not "
                    f"{tuple(t.shape)} of {t.dtype}"
                )
    A.exchange.ready_for(A.values, b)
    return LinearOperator(
        A.local_shape,
        lambda x, v: A.with_values(v) @ x,
        lambda u, v: A.with_values(v).T @ u,
        (A.values,),
    )


def _by_op(
    A: SparseMatrix, b: Tensor, x0: Tensor | None, call: Call, M: Tensor | None, m_t: bool
) -> tuple[Tensor, KrylovInfo]:
    t = A._original is not None
    A = A if A._original is None else A._original
    tensors = A.pattern.with_runs(True)
    m_t = m_t and call.method != "lsmr"  # whose M is symmetric: there m_t says on which side of a square A it stands
    how = call.method, call.rtol, call.atol, call.maxiter, call.restart, call.damp, call.check, call.adjoint_rtol
    try:
        x, info = torch.ops.gossamer.krylov_solve.default(tensors, A.values, b, x0, M, A.shape, *how, t, m_t)
    finally:
        _look_for_signals()
    return x, _info_of(info)


def _look_for_signals() -> None:
    """Nothing: Python looks for signals when it calls a function. A KeyboardInterrupt then replaces the op's error."""


def _let_signals_through() -> None:
    """Ctrl-C within the op: C++ looks for signals some times a second, by these functions of Python, whose library it
    does not link. A signal that raises is sent once more and ends the op with an error, and Python raises
    KeyboardInterrupt as soon as it runs again; also in a backward, whose caller is torch."""
    names = "PyGILState_Ensure", "PyErr_CheckSignals", "PyErr_Clear", "PyErr_SetInterrupt", "PyGILState_Release"
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in names]
    torch.ops.gossamer.krylov_signals(addresses)


_let_signals_through()
