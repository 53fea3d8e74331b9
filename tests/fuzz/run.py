# SPDX-License-Identifier: BSD-3-Clause
"""Runs a fuzzer of this folder so many times: python tests/fuzz/run.py ops --executions 100000 --seed 3.

Execution k of a seed is the same whenever it is run: a crash is run again with --first k. Where it is, is written to a
file before each one, because a crash cannot tell.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import ops
import readers
import torch

FUZZERS: dict[str, Callable[[Random], bool]] = {
    "ops": ops.execute,
    "planetoid": readers.planetoid,
    "graph_folder": readers.graph_folder,
    "npz": readers.npz,
    "matrix_state": readers.matrix_state,
    "command_line": readers.command_line,
}
MOST_MEMORY = 1 << 20  # KiB beyond those at the start
PATIENCE = 300  # seconds for a hundred executions, after which it hangs


def run(name: str, executions: int, seed: int = 0, first: int = 0) -> int:
    """How many of the executions gave a result instead of a refusal. What is wrong is raised."""
    fuzzer, done = FUZZERS[name], 0
    with tempfile.NamedTemporaryFile(prefix=f"gossamer-fuzz-{name}-", delete=False) as file:
        file.write(bytes(8))
    fuzzer(Random(f"{seed}/warm"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Path(file.name).open("r+b") as opened, mmap.mmap(opened.fileno(), 8) as at:
        for k in range(first, first + executions):
            if k % 100 == 0:
                faulthandler.dump_traceback_later(PATIENCE, exit=True)
            at[:] = k.to_bytes(8, "little")
            torch.manual_seed(k)
            try:
                done += fuzzer(Random(f"{seed}/{k}"))
            except BaseException:
                print(f"{name}: execution {k} of seed {seed}", file=sys.stderr)
                raise
            taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert taken < MOST_MEMORY, f"{name}: execution {k} of seed {seed} has taken {taken} KiB"
    faulthandler.cancel_dump_traceback_later()
    Path(file.name).unlink()
    return done


def main(arguments: list[str] | None = None) -> None:
    """Run one fuzzer and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fuzzer", choices=sorted(FUZZERS))
    parser.add_argument("--executions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
    start = time.process_time()
    done = run(given.fuzzer, given.executions, given.seed, given.first)
    took = f"{time.process_time() - start:.0f} s of a core"
    print(f"{given.fuzzer}: {given.executions} executions, {done} with a result, seed {given.seed}, {took}")


if __name__ == "__main__":
    main()
