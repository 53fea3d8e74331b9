# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 11 of Nytko et al., §5: time against the number of nonzeros, forward and backward, with fitted slopes.

The matrix is tridiag(−1, 2, −1) (Eq. 15) in float64, the ops are those of Table 2 on one thread: SpMV, SpSpMM, Sp + Sp,
and SpDMM with k = 16 columns. Each does a fixed number of operations for each nonzero, so time = c · nnzᵖ with p = 1.
(The paper's SpDMM has a square dense operand, k = N: there the operations, N k · 3, are quadratic in the nonzeros.)

p is the least-squares slope of log time over log nnz. It is fitted where operands and result of the forward take more
than twice the last-level cache: below, calls have a fixed cost, data come from the caches, and where they no longer fit
the curve bends. The rule is fixed before anything is measured. A time is the best of several calls, on the clock of the
one thread that runs: wall-clock time on an idle machine, and on a busy one without the turns of others.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from bench import machine
from bench.race import race
from bench.row import OURS
from bench.studies import paper
from bench.studies.paper import SCIPY, Contest
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Fig. 11: time against the number of nonzeros"
SOURCE = f"{NYTKO}, §5, Fig. 11"

QUICK: dict[str, Any] = {"largest": 5e5, "seconds": 0.001, "cache": 0}
DEFAULT: dict[str, Any] = {"largest": 5.6e8, "seconds": 0.3}
FULL: dict[str, Any] = {"largest": 1.12e9, "seconds": 4.0}

COLUMNS = 16
SMALLEST = 1000  # nonzeros
ENOUGH = 3  # sizes for a fit
LEAST = 5  # calls


@dataclass(frozen=True)
class Op:
    """How to make it at size N, and the bytes of its operands and result for each of the N rows."""

    make: Callable[[int], Contest]
    bytes_a_row: int


ENTRY, NUMBER = 12, 8  # bytes
OPS = {
    "SpMV": Op(partial(paper.product, k=1), 3 * ENTRY + 2 * NUMBER),
    "SpSpMM": Op(paper.sparse_product, (3 + 3 + 5) * ENTRY),
    "Sp + Sp": Op(paper.sparse_sum, (3 + 3 + 5) * ENTRY),
    f"SpDMM, {COLUMNS} columns": Op(partial(paper.product, k=COLUMNS), 3 * ENTRY + 2 * COLUMNS * NUMBER),
}


@dataclass
class Result:
    series: dict[str, dict[str, list[float]]]
    """By op: nnz of A, bytes of operands and result; seconds of a call: forward, backward, scipy (forward)."""
    exponents: dict[str, dict[str, float]]
    """By op: forward, backward; and from, the fewest nonzeros in the fit. NaN where too few sizes are large enough."""
    cache: int
    about: str


def exceeds(size: float, cache: int) -> bool:
    """The rule for the fit."""
    return size > 2 * cache


def exponent(nnz: Sequence[float], seconds: Sequence[float]) -> float:
    """p of the least-squares fit log t = log c + p log nnz."""
    return float(np.polyfit(np.log(nnz), np.log(seconds), 1)[0])


def fastest(seconds: Sequence[float]) -> float:
    """The least of the times. On some machines a thread's clock now and then stands still: 0 is no time of a call."""
    return min((s for s in seconds if s > 0), default=float("nan"))


def measure(op: Op, name: str, n: int, seconds: float, first: bool) -> dict[str, float]:
    """One size: all contenders of Table 2 must agree at the first, ours with SciPy at every one."""
    contest = op.make(n)
    contest = contest if first else contest.only(OURS, SCIPY)
    contest.judge(f"{name}, N = {n}")
    contest = contest.only(OURS, SCIPY)
    with torch.no_grad():
        forward = race(contest.forward, seconds, LEAST, time.thread_time)
        backward = race(contest.backward, seconds, LEAST, time.thread_time)
    return {
        "nnz": 3 * n - 2,
        "bytes": op.bytes_a_row * n,
        "forward": fastest(forward[OURS]),
        "backward": fastest(backward[OURS]),
        "scipy": fastest(forward[SCIPY]),
    }


def fit(series: dict[str, list[float]], cache: int) -> dict[str, float]:
    """The exponents over the sizes that exceed twice the cache."""
    large = [k for k, size in enumerate(series["bytes"]) if exceeds(size, cache)]
    if len(large) < ENOUGH:
        return {"forward": float("nan"), "backward": float("nan"), "from": float("nan")}
    nnz = [series["nnz"][k] for k in large]
    slopes = {way: exponent(nnz, [series[way][k] for k in large]) for way in ("forward", "backward")}
    return {**slopes, "from": nnz[0]}


def sizes(op: Op, largest: float) -> list[int]:
    """N of ``largest`` bytes, and its halves down to the smallest."""
    n = int(largest / op.bytes_a_row)
    return [n >> k for k in reversed(range(n.bit_length())) if 3 * (n >> k) >= SMALLEST]


def fitted(slopes: dict[str, float]) -> bool:
    return not math.isnan(slopes["from"])


def compute(
    *,
    largest: float,
    seconds: float,
    cache: int | None = None,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """Every op up to ``largest`` bytes of operands and result; ``seconds`` for each contender at a size of the fit, a
    tenth at others. ``cache``: bytes, None asks the machine. The inputs are the same for every seed: no time depends on
    them."""
    cache = machine.last_level_cache() if cache is None else cache
    result = Result({}, {}, cache, machine.processor())
    rest = sum(max(n, 10**5) for op in OPS.values() for n in sizes(op, largest))  # roughly as the time that is left
    total, threads = rest, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with machine.freed_memory_kept():
            for name, op in OPS.items():
                gc.collect()
                points = []
                for n in sizes(op, largest):
                    budget = seconds if exceeds(op.bytes_a_row * n, cache) else seconds / 10
                    points.append(measure(op, name, n, budget, first=not points))
                    rest -= max(n, 10**5)
                    tick(1 - rest / total)
                result.series[name] = {key: [point[key] for point in points] for key in points[0]}
                result.exponents[name] = fit(result.series[name], cache)
    finally:
        torch.set_num_threads(threads)
    return result


def figures(result: Result) -> dict[str, Figure]:
    figure = Figure(figsize=(10, 7.5), dpi=130, layout="constrained")
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, series) in zip(grid.flat, result.series.items(), strict=True):
        slopes, nnz = result.exponents[name], series["nnz"]
        axes.loglog(nnz, series["scipy"], "s-", color="tab:gray", markersize=4, label="SciPy forward")
        for way, marker, colour in (("forward", "o", "tab:blue"), ("backward", "^", "tab:cyan")):
            label = f"Gossamer {way}" + f", slope {slopes[way]:.2f}" * fitted(slopes)
            axes.loglog(nnz, series[way], marker + "-", color=colour, markersize=5, label=label)
        if fitted(slopes):
            axes.axvspan(slopes["from"] / 2**0.5, nnz[-1] * 2**0.5, color="tab:olive", alpha=0.15)
        guide = [0.4 * min(series["forward"][-1], series["backward"][-1]) * x / nnz[-1] for x in nnz]
        axes.loglog(nnz[len(nnz) // 2 :], guide[len(nnz) // 2 :], ":", color="tab:red", label="slope 1")
        axes.set_title(name, loc="left")
        axes.legend(fontsize=8.5)
        axes.grid(alpha=0.3)
    figure.supxlabel("nonzeros of A")
    figure.supylabel("seconds a call, one thread")
    figure.suptitle("Time against nonzeros, tridiag(−1, 2, −1), float64 (shaded: the sizes of the fit)")
    return {"scaling": figure}


def captions() -> dict[str, str]:
    return {
        "scaling": "Circles are forward passes, triangles backward passes, grey squares SciPy's forward. Small sizes "
        "pay for the call; in the shaded range, where the data exceed twice the last-level cache, the slope is fitted: "
        "1 is linear in the nonzeros."
    }


def table(result: Result) -> tuple[list[str], list[list[str]]]:
    """The fitted exponents."""
    header = ["op", "pass", "exponent of nnz", "fitted over nonzeros", "ns a nonzero at the largest", "SciPy’s"]
    lines = []
    for name, series in result.series.items():
        slopes, last = result.exponents[name], series["nnz"][-1]
        found = fitted(slopes)
        for way in ("forward", "backward"):
            of_fit = [f"{slopes[way]:.3f}", f"{slopes['from']:.1e} … {last:.1e}"] if found else ["–", "too small"]
            theirs = f"{1e9 * series['scipy'][-1] / last:.2f}" if way == "forward" else "–"
            lines.append([name, way, *of_fit, f"{1e9 * series[way][-1] / last:.2f}", theirs])
    return header, lines


def summary(result: Result) -> list[str]:
    told = [
        f"{name} {slopes['forward']:.2f} forward, {slopes['backward']:.2f} backward"
        for name, slopes in result.exponents.items()
        if fitted(slopes)
    ]
    few = [name for name, slopes in result.exponents.items() if not fitted(slopes)]
    return [
        *([f"Time grows as nnz to the power of: {'; '.join(told)} (1 is linear)."] if told else []),
        *([f"No exponent for {', '.join(few)}: fewer than {ENOUGH} sizes are large enough."] if few else []),
        f"Measured on {result.about}, one thread's own clock, best of at least {LEAST} calls; fitted over the sizes "
        f"whose operands and result take more than twice {result.cache / 2**20:.0f} MiB, the last-level cache.",
    ]


def main(arguments: list[str] | None = None) -> int:
    full = "twice as large and ten times the calls: minutes"
    return run_from_command_line(sys.modules[__name__], arguments, program="python -m bench --scaling", full=full)


if __name__ == "__main__":
    raise SystemExit(main())
