# SPDX-License-Identifier: BSD-3-Clause
"""The part of the machine around matrices: grad modes, threads, processes, devices, tracers, the code of others."""

from __future__ import annotations

import contextlib
import gc
import warnings
from typing import Any

import torch
from factors import in_a_fork
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from twins import Held, close, compare, derived, operand

import gossamer as gs

DEVICE = "cuda" if torch.cuda.device_count() else None
index = st.integers(0, 1000)
compiled = 0  # by all machines of this process


class WithWorld:
    """The rules of what happens around matrices."""

    pool: list[Held]
    at: Any
    fitting: Any
    hold: Any

    @rule(k=index)
    def others_write(self, k: int) -> None:
        """SciPy's code, and values that do not fit: neither may change the matrix."""
        A = self.at(k)
        S = A.matrix.to_scipy()
        S.data[:] = 7
        S.indices[:] = 0
        S.indptr[:] = 0
        accepted = True
        try:
            A.matrix.values = torch.ones(A.matrix.nnz + 1, device=A.matrix.device)
        except ValueError:
            accepted = False
        assert not accepted, "values that do not fit were taken"
        compare(A, "after others wrote")

    @rule(k=index)
    def assign_to_a_transpose_of_a_transpose(self, k: int) -> None:
        """Which is a matrix of its own: the transpose in between does not change."""
        A = self.at(k)
        T = A.matrix.T
        twice = T.T
        twice.values = twice.values.detach() * 3
        close(T @ torch.eye(T.shape[1], dtype=torch.float64, device=T.device), A.dense().T, "the transpose in between")

    @rule(k=index, how=st.sampled_from(["no_grad", "inference", "func"]))
    def look(self, k: int, how: str) -> None:
        """Somebody asks for arrays where nothing is differentiated; what is kept must not depend on it."""
        A = self.at(k)
        with {"no_grad": torch.no_grad, "inference": torch.inference_mode, "func": contextlib.nullcontext}[how]():
            if how == "func":
                torch.func.grad(lambda s: (A.matrix.T * s).sum() * 0 + s)(torch.ones((), device=A.matrix.device))
                gc.collect()  # torch.func's own frames wait for the collector, and hold this one
            assert A.matrix.values.shape == (A.matrix.nnz,)
            assert A.matrix.T.pattern.shape == A.matrix.shape[::-1]
        compare(A, "after a look")

    @rule(k=index, collect=st.booleans())
    def drop(self, k: int, collect: bool) -> None:
        if len(self.pool) > 2:
            self.pool.pop(k % len(self.pool))
        if collect:
            gc.collect()

    @rule(count=st.integers(1, 3))
    def change_threads(self, count: int) -> None:
        torch.set_num_threads(count)

    @precondition(lambda self: DEVICE is not None)
    @rule(k=index)
    def move(self, k: int) -> None:
        """To the device, or back; gradients flow through."""
        A = self.at(k)
        to = "cpu" if A.matrix.device.type == "cuda" else DEVICE
        held = derived(A.matrix.to(to), A.dense() * 1, A.mask, A)
        held.solvable = A.solvable
        self.hold(held, f"move to {to}")

    @rule(k=index)
    def fork(self, k: int) -> None:
        in_a_fork(lambda: [compare(held, "a matrix in a forked process") for held in self.pool])

    @rule(k=index, other=index)
    def compile(self, k: int, other: int) -> None:
        """A tracer takes a second, so that one in ten of these is done."""
        global compiled
        A = self.at(k)
        if k % 10:
            return
        B = self.fitting(A, other, False)
        if A.matrix.device.type != "cpu" or B is None or A.matrix._original is not None:
            return
        compiled += 1
        torch._dynamo.reset()

        def f(M: gs.SparseMatrix, N: gs.SparseMatrix, X: torch.Tensor) -> Any:
            return M @ X - 2 * (N @ X)

        X, x = operand(A.matrix.shape[1], 2, like=A.matrix)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer asks values that are no leaves for their gradients
            got = torch.compile(f, backend="eager", fullgraph=True)(A.matrix, B.matrix, X)
        torch._dynamo.reset()  # which holds what it has traced
        close(got, A.dense() @ x - 2 * (B.dense() @ x), "compile")
