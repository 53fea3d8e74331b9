# SPDX-License-Identifier: BSD-3-Clause
"""Another process that has matrices and factors of its own: what is sent to it must not be mistaken for them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import IO, Any

PROGRAM = """
import pickle, sys, torch, gossamer as gs
read, write = sys.stdin.buffer, sys.stdout.buffer
own = [gs.linalg.factorize(gs.eye(n, dtype=torch.float64) * k) for n in (4, 6) for k in range(2, 9)]
while True:
    try:
        kind, thing, b = pickle.load(read)
    except EOFError:  # who asked is gone
        break
    try:
        if kind == "matrix":
            answer = thing.detach() @ b, thing.to_dense().detach(), thing
        else:
            answer = thing.solve(b).detach(), thing.logdet().detach(), thing
    except Exception as error:
        answer = repr(error)
    pickle.dump(answer, write)
    write.flush()
"""
_started: subprocess.Popen[bytes] | None = None


def ask(kind: str, thing: Any, b: Any) -> tuple[Any, Any, Any]:
    """A product with a matrix or a solve with a factor over there, another view of it, and the thing sent back."""
    global _started
    if _started is None:
        _started = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stdin, stdout = _pipes(_started)
    pickle.dump((kind, thing, b), stdin)
    stdin.flush()
    answer = pickle.load(stdout)
    assert not isinstance(answer, str), f"in another process: {answer}"
    return answer


def stop() -> None:
    """Ends the other process, if there is one."""
    global _started
    if _started is not None:
        with _started:  # closes its pipes: it reads the end, and ends
            pass
    _started = None


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout
