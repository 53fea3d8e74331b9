# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C returns from a factorisation that would take a minute, and everything works afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

import gossamer as gs
from gossamer._interrupt import interruptible

# The signal comes when the work has begun; the work is still going on when the interrupt arrives.
PROGRAM = """
import os, signal, threading, torch, gossamer as gs

def at_work():
    return any(thread.name == "gossamer at work" for thread in threading.enumerate())

def interrupt():
    while not at_work():
        pass
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts without it
small = gs.poisson(30)
threading.Thread(target=interrupt, daemon=True).start()
try:
    gs.linalg.factorize(gs.poisson((40, 40, 40)), kind="lu", engine="eigen")
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    x = gs.linalg.solve(small, torch.ones(30))
    print("interrupted", at_work(), torch.allclose(small @ x, torch.ones(30), atol=1e-3), flush=True)
os._exit(0)
"""


def test_control_c_returns_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted True True\n", done.stderr


def test_results_and_errors_come_through() -> None:
    threads = torch.get_num_threads()
    seen = interruptible(lambda: (threading.current_thread() is threading.main_thread(), torch.get_num_threads()))
    assert seen == (False, threads)
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)
    n = 20_000
    diagonal = gs.diag(torch.ones(n, dtype=torch.float64))
    torch.testing.assert_close(gs.linalg.solve(2 * diagonal, torch.ones(n, dtype=torch.float64)).sum().item(), n / 2)
    zero = torch.ones(n, dtype=torch.float64)
    zero[7] = 0
    with pytest.raises(gs.SingularMatrixError):
        gs.linalg.solve(gs.diag(zero), zero)


def test_a_transform_stays_in_its_thread() -> None:
    at = torch.func.vmap(
        lambda x: x + interruptible(lambda: float(threading.current_thread() is threading.main_thread()))
    )
    assert at(torch.zeros(2)).tolist() == [1.0, 1.0]
