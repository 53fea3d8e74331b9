# SPDX-License-Identifier: BSD-3-Clause
"""A mistake of one rank raises on all (fault_cases.py), and the end of one raises on its peers (fault_program.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "fault_program.py"
GUARD = 240  # seconds: far more than it takes; a rank that hangs fails the test


@pytest.mark.parametrize("event", ["kill", "raise"])
def test_end_of_one_rank(event: str, tmp_path: Path) -> None:
    size = 3
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), event, str(rank), str(size), str(tmp_path)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        errors = [process.communicate(timeout=GUARD)[1] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    *peers, ended = ranks
    # One that raises ends with code 1, or by a signal if a thread of gloo's wants the interpreter while it shuts down.
    assert (ended.returncode == -signal.SIGKILL) if event == "kill" else (ended.returncode != 0), errors[-1]
    for rank, process in enumerate(peers):
        assert process.returncode == 0, errors[rank]
        kind, message = json.loads((tmp_path / f"{rank}.json").read_text())
        assert kind in ("RuntimeError", "DistBackendError"), message
        assert "onnection" in message or "closed" in message, message
    assert (event == "kill") or "ArithmeticError: a mistake of the program's own" in errors[-1]
