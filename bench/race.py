# SPDX-License-Identifier: BSD-3-Clause
"""The contenders of one cell: first they must agree, then they run in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

import gossamer as gs
from bench.row import OURS, Skip

Runs = Mapping[str, Callable[[], Any]]

TURN = 2e-3  # seconds: a quick contender makes several calls in its turn
MOST_CALLS = 1000
FAR_BEHIND = 5  # times the fastest
LONG = 10  # budgets: of a call that takes so long, what only the first one does is no part to speak of


def as_arrays(result: Any) -> list[NDArray[Any]]:
    """A contender's result as arrays to compare; a sparse one counts as its values in CSR order."""
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in as_arrays(part)]
    if type(result).__module__.partition(".")[0] in ("cupy", "cupyx"):
        result = result.get()
    if isinstance(result, gs.SparseMatrix):
        result = result.values
    if scipy.sparse.issparse(result):
        return [scipy.sparse.csr_array(result).sorted_indices().data]
    if isinstance(result, torch.Tensor) and result.layout == torch.sparse_csr:
        parts = (t.detach().cpu().numpy() for t in (result.values(), result.col_indices(), result.crow_indices()))
        return [scipy.sparse.csr_array(tuple(parts), shape=tuple(result.shape)).sorted_indices().data]
    if isinstance(result, torch.Tensor):
        return [result.detach().cpu().numpy()]
    return [np.asarray(result)]


def check(title: str, runs: Runs, tolerance: float, forgiving: bool = False) -> dict[str, str]:
    """Raise unless all contenders compute the same; returns those that cannot compute it, with their reasons.

    ``forgiving``: a peer that fails has no time, but does not stop the others. For devices that we have never seen.
    """
    first: tuple[str, list[NDArray[Any]]] | None = None
    skipped = {}
    for name, run in runs.items():
        try:
            arrays = as_arrays(run())
        except Skip as reason:
            skipped[name] = str(reason)
            continue
        except Exception as failure:
            if name == OURS or not forgiving:
                raise
            skipped[name] = f"fails: {type(failure).__name__}: {failure}".splitlines()[0]
            continue
        if first is None:
            first = name, arrays
        elif (difference := compare(first[1], arrays)) > tolerance or np.isnan(difference):
            raise AssertionError(f"{title}: {name} differs from {first[0]} by {difference:.1e} (relative)")
    return skipped


def compare(ours: list[NDArray[Any]], theirs: list[NDArray[Any]]) -> float:
    """The largest difference, relative to the largest entry; infinite for different sizes."""
    worst = 0.0
    if [a.size for a in ours] != [b.size for b in theirs]:
        return float("inf")
    for a, b in zip(ours, theirs, strict=True):
        scale = np.abs(a).max(initial=np.finfo(a.dtype).tiny)
        worst = np.maximum(worst, np.abs(a - b.reshape(a.shape)).max(initial=0) / scale)  # NaN stays
    return float(worst)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def device_clock() -> float:
    """The time when the device is done with all that was asked of it: what is launched is timed, not the launch."""
    torch.cuda.synchronize()
    return time.perf_counter()


def clock_of(device: torch.device) -> Callable[[], float]:
    return device_clock if device.type == "cuda" else time.perf_counter


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    result = run()
    seconds = clock() - start
    del result  # freed outside of the measurement
    return seconds


def race(
    runs: Runs, budget: float, least: int = 2, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of every call of every contender, round-robin, after a warm-up call each.

    Each contender may spend ``budget`` seconds, but everybody is timed at least ``least`` times. One that spends its
    budget in the warm-up call, far behind the fastest, is timed once more, or not even that if the call was a long one:
    minutes would go to those that lose.
    """
    with no_garbage_collection():
        warm = {name: timed(run, clock) for name, run in runs.items()}
        slow = {name for name, s in warm.items() if s > budget and s > FAR_BEHIND * min(warm.values())}
        samples: dict[str, list[float]] = {name: [] for name in runs}
        for name in slow:
            samples[name] = [warm[name] if warm[name] > LONG * budget else timed(runs[name], clock)]
        turn = {name: max(1, min(50, int(TURN / max(seconds, 1e-9)))) for name, seconds in warm.items()}
        left = dict.fromkeys(runs, budget)
        racing = set(runs) - slow
        while racing:
            for name in [name for name in runs if name in racing]:
                calls = [timed(runs[name], clock) for _ in range(turn[name])]
                samples[name] += calls
                left[name] -= sum(calls)
                if (left[name] <= 0 and len(samples[name]) >= least) or len(samples[name]) >= MOST_CALLS:
                    racing.discard(name)
    return samples
