# SPDX-License-Identifier: BSD-3-Clause
"""Runs the cases of all files in on_ranks/ on some ranks: one torchrun for each number of them, whoever asks first.

As a program it is one of the ranks: each case is called on all of them, and what it raises is written to a file.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "on_ranks"))
RANKS = [1, 2, 3, 4]
LIMIT = 900  # seconds that a run may take before it is taken for a hanging one
PATIENCE = 60  # seconds that a rank waits for another


def check(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fails as the case has failed on one of the ranks."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"distributed_{ranks}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "log").exists():
            run(ranks, folder)
    log = (folder / "log").read_text()
    for rank in range(ranks):
        found = folder / f"{rank}.json"
        outcomes = json.loads(found.read_text()) if found.exists() else {}
        outcome = outcomes.get(case, f"it was not run; the log ends with\n{log[-3000:]}")
        assert outcome == "good", f"rank {rank} of {ranks}: {outcome}"


def run(ranks: int, folder: Path, *only: str) -> None:
    """All cases, or those whose names hold one of the words, on so many ranks."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    command = [*torchrun, str(HERE / "launch.py"), str(folder), *only]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
        log = done.stdout + done.stderr
    except subprocess.TimeoutExpired as hanging:
        log = f"nothing after {LIMIT} s\n{hanging.stdout!r}\n{hanging.stderr!r}"
    (folder / "log").write_text(log)


def all_cases(ranks: int, only: list[str]) -> dict[str, Callable[[Any], None]]:
    """Every function case_… that runs on so many ranks, or those whose names hold one of the words. A case may say on
    how many it runs, and so may its file (RANKS); else on all."""
    found = {}
    for file in sorted((HERE / "on_ranks").glob("*_cases.py")):
        own = vars(importlib.import_module(file.stem))
        for name, case in own.items():
            if name.startswith("case_") and ranks in getattr(case, "ranks", own.get("RANKS", RANKS)):
                found[f"{file.stem}.{name}"] = case
    return {name: case for name, case in found.items() if not only or any(word in name for word in only)}


def main(folder: Path, only: list[str]) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=timedelta(seconds=PATIENCE))
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    outcomes: dict[str, str] = {}
    for name, case in all_cases(dist.get_world_size(), only).items():
        started = time.perf_counter()
        try:
            case(mesh)
            outcomes[name] = "good"
        except (Exception, pytest.fail.Exception):  # whatever it is, the test says it
            outcomes[name] = traceback.format_exc()
        print(f"{time.perf_counter() - started:6.2f} s  {name}")
        (folder / f"{dist.get_rank()}.json").write_text(json.dumps(outcomes))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
