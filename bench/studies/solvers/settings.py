# SPDX-License-Identifier: BSD-3-Clause
"""What all studies of solvers share: the numbers of threads and the types they are run with, and their clock."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

DTYPES = ("float64", "float32")


def parser(study: str, description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"python -m bench.studies.{study}", description=description)
    made.add_argument("--threads", type=int, nargs="+", default=[1], help="one run for each number, such as 1 2")
    made.add_argument("--dtype", nargs="+", default=["float64"], choices=DTYPES, help="one run for each type")
    return made


def given_matrices(study: str, description: str | None, arguments: list[str] | None) -> argparse.Namespace:
    """What a study of files was called with: their ``folder``, and the ``names`` wanted, all if there are none."""
    made = argparse.ArgumentParser(prog=f"python -m bench.studies.solvers.{study}", description=description)
    made.add_argument("folder", type=Path, help="with MatrixMarket files")
    made.add_argument("names", nargs="*", help="of matrices; without, all of them")
    return made.parse_args(arguments)


def each_setting(options: argparse.Namespace) -> Iterator[torch.dtype]:
    """The types, once with each number of threads; a line says which."""
    for threads in options.threads:
        torch.set_num_threads(threads)
        clock = "CPU seconds" if threads == 1 else "seconds of the wall"
        for name in options.dtype:
            print(f"\n{name}, {threads} thread{'s' * (threads > 1)}, {clock}", flush=True)
            torch.manual_seed(0)
            yield getattr(torch, name)


def now() -> float:
    """CPU time of one thread, which a busy machine spoils little; with several, that of the wall."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def timed(work: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """The smallest time of so many calls, and what the last one gave."""
    best, result = float("inf"), None
    for _ in range(runs):
        begin = now()
        result = work()
        best = min(best, now() - begin)
    return best, result


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    return timed(work, runs)[0]
