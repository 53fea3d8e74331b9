# SPDX-License-Identifier: BSD-3-Clause
"""The part of the machine that solves: factors that are kept, copied, sent, and outlive their matrices."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import worker
from hypothesis import strategies as st
from hypothesis.stateful import rule
from torch import Tensor
from twins import Base, Held, close, operand

import gossamer as gs

index = st.integers(0, 1000)


@dataclass(eq=False)
class HeldFactor:
    """A factor, its dense twin, and what may change behind its back."""

    factor: Any
    dense: Tensor
    base: Base | None
    born: int

    def stale(self) -> bool:
        return self.base is not None and self.base.changes != self.born


class WithFactors:
    """The rules of solving."""

    pool: list[Held]

    def __init__(self) -> None:
        super().__init__()
        self.factors: list[HeldFactor] = []

    def solvable(self, k: int) -> Held | None:
        fits = [held for held in self.pool if held.solvable]
        return fits[k % len(fits)] if fits else None

    @rule(k=index, width=st.integers(0, 2), kind=st.sampled_from(["auto", "lu"]))
    def solve(self, k: int, width: int, kind: str) -> None:
        A = self.solvable(k)
        if A is None:
            return
        n = A.matrix.shape[0]
        b, y = operand(n, width, like=A.matrix) if width else operand(n, like=A.matrix)
        close(gs.linalg.solve(A.matrix, b, kind=kind), torch.linalg.solve(A.dense(), y), "solve")
        x = gs.linalg.solve_triangular(A.matrix, b)
        wanted = torch.linalg.solve_triangular(A.dense().tril(), y if width else y[:, None], upper=False)
        close(x if width else x[:, None], wanted, "solve_triangular")

    @rule(k=index, kind=st.sampled_from(["auto", "lu"]))
    def factorize(self, k: int, kind: str) -> None:
        A = self.solvable(k)
        if A is not None:
            born = A.base.changes if A.base else 0
            factor = gs.linalg.factorize(A.matrix, kind=kind)
            dense = A.dense().detach().clone()
            self.factors.append(HeldFactor(factor, dense, A.base if A.twin is None else None, born))
            del self.factors[:-4]

    @rule(k=index, transpose=st.booleans())
    def use_factor(self, k: int, transpose: bool) -> None:
        """A factor whose matrix was changed refuses, or solves with the values as they are now."""
        if not self.factors:
            return
        held = self.factors[k % len(self.factors)]
        if held.stale():
            return
        D = held.dense
        b, y = operand(D.shape[0], 2, like=held.factor.A)
        close(held.factor.solve(b, transpose), torch.linalg.solve(D.T if transpose else D, y), "factor.solve")
        close(held.factor.logdet(), torch.linalg.slogdet(D)[1], "logdet")
        inverse = held.factor.selected_inverse()
        mask = inverse.with_values(torch.ones_like(inverse.values.detach())).to_dense().cpu() != 0
        close(inverse.to_dense(), torch.linalg.inv(D) * mask, "selected_inverse")

    @rule(k=index)
    def refuse_changed(self, k: int) -> None:
        if not self.factors:
            return
        held = self.factors[k % len(self.factors)]
        if not held.stale():
            return
        b, y = operand(held.dense.shape[0], 2, like=held.factor.A)
        now = held.factor.A.to_dense().detach().cpu()
        try:
            x = held.factor.solve(b)
        except torch.linalg.LinAlgError:
            return
        close(x, torch.linalg.solve(now, y), "a factor of changed values")

    @rule(k=index)
    def differentiate_solve(self, k: int) -> None:
        A = self.solvable(k)
        if A is None or A.base is None or not A.matrix.requires_grad:
            return
        n = A.matrix.shape[0]
        b, y = operand(n, 2, like=A.matrix)
        factor = gs.linalg.factorize(A.matrix)
        ours = factor.solve(b).sin().sum() + factor.logdet() + gs.linalg.solve_triangular(A.matrix, b, upper=True).sum()
        D = A.dense()
        upper = torch.linalg.solve_triangular(D.triu(), y, upper=True)
        theirs = torch.linalg.solve(D, y).sin().sum() + torch.linalg.slogdet(D)[1] + upper.sum()
        close(ours, theirs, "loss of a solve")
        (got,) = torch.autograd.grad(ours, A.base.values, retain_graph=True)
        (wanted,) = torch.autograd.grad(theirs, A.base.dense, retain_graph=True)
        close(got, wanted[A.base.mask], "gradient of a solve")

    @rule(k=index, way=st.sampled_from(["copy", "deepcopy", "pickle", "worker", "fork", "drop"]))
    def copy_factor(self, k: int, way: str) -> None:
        if not self.factors:
            return
        held = self.factors[k % len(self.factors)]
        A = held.factor.A
        if way == "drop":
            self.factors.pop(k % len(self.factors))
        elif held.stale() or A.device.type != "cpu" or not A.values.is_leaf:
            return
        elif way == "fork":
            in_a_fork(lambda: close(held.factor.logdet(), torch.linalg.slogdet(held.dense)[1], "logdet in a fork"))
        elif way == "copy":
            self.factors.append(HeldFactor(copy.copy(held.factor), held.dense, held.base, held.born))
        else:
            travelled = self.travelled_factor(held, way)
            self.factors[k % len(self.factors)] = HeldFactor(travelled, held.dense, None, 0)  # the original is gone
            del held
            self.use_factor(k, False)
        del self.factors[:-4]

    def travelled_factor(self, held: HeldFactor, way: str) -> Any:
        if way == "deepcopy":
            return copy.deepcopy(held.factor)
        if way == "pickle":
            return pickle.loads(pickle.dumps(held.factor))
        b = torch.ones(held.dense.shape[0], dtype=torch.float64)
        x, logdet, back = worker.ask("factor", held.factor, b)
        close(x, torch.linalg.solve(held.dense, b), "a solve in another process")
        close(logdet, torch.linalg.slogdet(held.dense)[1], "logdet in another process")
        return back


def in_a_fork(check: Callable[[], object]) -> None:
    """Runs a check in a forked process, on one thread: OpenMP's others do not survive a fork."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)  # a child that waits for a lock for ever is ended, and noticed
            torch.set_num_threads(1)
            check()
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a forked process ended with status {status}"
