# SPDX-License-Identifier: BSD-3-Clause
"""The exact dot beside our ordinary one and torch.dot, out of cache and in it.

    python -m bench.studies.distributed.dot

Wall time, the smallest of interleaved runs, in nanoseconds a number; and the ratio of the exact one to the faster of
the other two in the same run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import gossamer as gs


def interleaved(works: dict[str, Callable[[], Tensor]], repeats: int) -> dict[str, float]:
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def compare(n: int, dtype: torch.dtype, threads: int, repeats: int) -> None:
    torch.set_num_threads(threads)
    u, v = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
    calls = max(1, 2**20 // n)  # so that a run of a short one takes long enough to be timed

    def many(work: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            for _ in range(calls):
                result = work(u, v)
            return result

        return run

    ordinary = torch.ops.gossamer.dot.default
    works = {"exact": many(gs.distributed.dot), "ordinary": many(ordinary), "torch.dot": many(torch.dot)}
    seconds = interleaved(works, repeats)
    times = ", ".join(f"{name} {seconds[name] / calls / n * 1e9:.3f}" for name in works)
    ratio = seconds["exact"] / min(seconds["ordinary"], seconds["torch.dot"])
    print(f"n = {n}, {dtype}, {threads} thread(s): {times} ns; exact / ordinary {ratio:.2f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.distributed.dot", description=__doc__)
    parser.add_argument("--n", type=int, nargs="*", default=[2**24, 90_000], help="lengths")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    for n in options.n:
        for dtype in (torch.float64, torch.float32):
            for threads in options.threads:
                compare(n, dtype, threads, options.repeats)


if __name__ == "__main__":
    main()
