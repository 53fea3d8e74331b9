# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the table gives the same bytes, forward and backward, on 1, 2 and 3 threads, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("hash_table.py")


def hashes(threads: int) -> dict[str, str]:
    environment = {**os.environ, "GOSSAMER_STANDIN": "off", "PYTHONHASHSEED": str(threads)}
    command = [sys.executable, str(PROGRAM), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_hashes_agree_across_threads_and_processes() -> None:
    first, *others = (hashes(threads) for threads in (1, 2, 3, 1))
    assert len(first) > 100
    for other in others:
        differ = [name for name in first if first[name] != other[name]]
        assert not differ
