# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C returns from what can take seconds. Loops in C++ ask for signals; kernels and engines, which do not, are left
to a thread. A signal is sent when the work has begun, and a program that does not hear of it never ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.flop_counter

import gossamer as gs
from gossamer import _interrupt

F64 = torch.float64

# The main thread is in an op when its innermost frame is that of torch's call: the other one runs only while an op, or
# a wait, has let go of Python's lock.
PROGRAM = """
import os, signal, sys, threading, torch, gossamer as gs

def interrupt(main=threading.get_ident()):
    while {where}:
        pass
    os.kill(os.getpid(), signal.SIGINT)

def at_work():
    return any(thread.name == "gossamer at work" for thread in threading.enumerate())

def in_backward(frame=None):
    return sys._current_frames()[threading.main_thread().ident].f_code.co_name == "_engine_run_backward"

def in_op():
    return sys._current_frames()[threading.main_thread().ident].f_code.co_filename.endswith("torch/_ops.py")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts without it
torch.set_default_dtype(torch.float64)
{before}
threading.Thread(target=interrupt, daemon=True).start()
try:
    try:
        {work}
        print("finished", flush=True)
    except RuntimeError:  # what C++ threw; Python raises KeyboardInterrupt as soon as it runs
        for _ in range(10**9):
            pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
x = gs.linalg.solve(gs.poisson(30), torch.ones(30))
print(torch.allclose(gs.poisson(30) @ x, torch.ones(30)), flush=True)
os._exit(0)
"""
GRID = "A = gs.poisson((40, 40, 40))"
UPWIND = "A = gs.poisson((120, 120)); A = A.with_values(A.values + 0.1 * torch.rand(A.nnz)).requires_grad_()"
LONG: dict[str, tuple[str, str, str]] = {
    "factorize": ("not at_work()", GRID, 'gs.linalg.factorize(A, kind="lu", engine="eigen")'),
    "eigsh": ("not at_work()", GRID, "gs.linalg.eigsh(A, 40, which='SM', maxiter=10**6, tol=1e-300)"),
    "expm_multiply": (
        "not in_op()",
        "A = gs.poisson((300, 300))",
        "gs.linalg.expm_multiply(A, torch.ones(90000), 1e6)",
    ),
    "selected_inverse": ("not in_op()", UPWIND + '; F = gs.linalg.factorize(A, kind="lu")', "F.selected_inverse()"),
    "logdet, backward": ("not in_backward()", UPWIND + "; y = gs.linalg.factorize(A).logdet()", "y.backward()"),
}


@pytest.mark.parametrize("what", LONG)
def test_control_c_returns(what: str) -> None:
    where, before, work = LONG[what]
    program = PROGRAM.format(where=where, before=before, work=work)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\nTrue\n", done.stdout + done.stderr


def calls(tmp: Path) -> dict[str, Any]:
    """Each call that is left to a thread, if what it is given is large; those that have one with their gradient."""
    A, b = gs.poisson((5, 5), dtype=F64), torch.arange(25, dtype=F64).sin()
    gs.write_mtx(tmp / "A.mtx", A)

    def gradient(f: Any) -> Any:
        leaf = A.with_values(A.values.clone()).requires_grad_()
        y = f(leaf)
        return [y.detach(), torch.autograd.grad(y.sin().sum(), leaf.values)[0]]

    return {
        "factorize": lambda: gradient(lambda A: gs.linalg.factorize(A).solve(b)),
        "cholesky": lambda: gradient(lambda A: gs.linalg.cholesky(A)[0].values),
        "lstsq": lambda: gradient(lambda A: gs.linalg.lstsq(A, b)),
        "eigsh": lambda: gradient(lambda A: gs.linalg.eigsh(A, 1)[0]),
        "svds": lambda: gradient(lambda A: gs.linalg.svds(A, 1)[1]),
        "first product": lambda: gradient(lambda A: (A @ A.detach().clone()).values),
        "spgemm": lambda: gradient(lambda A: [gs.spgemm(A, A), gs.spgemm(A, A)][1].values),
        "product of patterns": lambda: [A.pattern.product(gs.eye(25).pattern).indices],
        "amg": lambda: gradient(lambda A: gs.linalg.amg(A)(b)),
        "read_mtx": lambda: [gs.read_mtx(tmp / "A.mtx").values],
        "write_mtx": lambda: [gs.write_mtx(tmp / "B.mtx", A), gs.read_mtx(tmp / "B.mtx").values][1:],
    }


def threads_of(monkeypatch: pytest.MonkeyPatch, work: Any) -> tuple[Any, int]:
    """What the work gives if everything counts as large, and how many threads it took."""
    started: list[str] = []

    class Counted(threading.Thread):
        def start(self) -> None:
            started.append(self.name)
            super().start()

    with monkeypatch.context() as patch:
        for size in ("LONG", "MANY", "LARGE"):
            patch.setattr(_interrupt, size, 0)
        patch.setattr(_interrupt.threading, "Thread", Counted)
        return work(), started.count("gossamer at work")


WHAT = ["factorize", "cholesky", "lstsq", "eigsh", "svds", "first product", "spgemm", "product of patterns", "amg"]


@pytest.mark.parametrize("what", [*WHAT, "read_mtx", "write_mtx"])
def test_large_work_is_left_to_a_thread(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same results and gradients; of `spgemm` the second product has its pattern."""
    usual = calls(tmp_path)[what]()
    got, threads = threads_of(monkeypatch, calls(tmp_path)[what])
    assert threads > 0
    for a, b in zip(got, usual, strict=True):
        assert torch.equal(a, b)


def test_modes_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    A = gs.poisson((5, 5), dtype=F64).requires_grad_()

    def product() -> Any:
        return gs.spgemm(A, A).values

    assert threads_of(monkeypatch, product)[0].requires_grad
    with torch.no_grad():
        assert not threads_of(monkeypatch, product)[0].requires_grad
    with torch.inference_mode():
        assert threads_of(monkeypatch, product)[0].is_inference()
    with torch.autocast("cpu", torch.bfloat16):
        assert threads_of(monkeypatch, product)[1] == 0
    watches = [
        torch.autograd.graph.save_on_cpu(),
        torch.utils.flop_counter.FlopCounterMode(display=False),
        torch.device("cpu"),
        torch.autograd.profiler.profile(use_kineto=False),
    ]
    for watch in watches:  # each sees the ops of its own thread alone
        with watch:
            assert threads_of(monkeypatch, product)[1] == 0
