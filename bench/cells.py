# SPDX-License-Identifier: BSD-3-Clause
"""Runs the rows: a cell is one op, forward or with backward, on one matrix, width, dtype, and device or number of
threads."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import torch

from bench import matrices
from bench.race import Runs, check, clock_of, race
from bench.row import OURS, Bench, able

MODES = ("forward", "forward+backward")
TOLERANCE = {"float32": 1e-4, "float64": 1e-10}


@dataclass(frozen=True)
class Options:
    """What to run."""

    rows: Sequence[str]
    matrices: Sequence[str]
    columns: Sequence[int] | None  # None: as the row says
    dtypes: Sequence[torch.dtype]
    threads: Sequence[int]
    devices: Sequence[torch.device]
    quick: bool
    budget: float  # seconds for each contender of a cell


@dataclass(frozen=True)
class Cell:
    """The measurements of one cell."""

    row: str
    mode: str
    matrix: str
    shape: tuple[int, int]
    nnz: int
    columns: int
    dtype: str
    device: str
    threads: int
    """Of the host; 0 on a device, where they do not count."""
    bytes_moved: int
    seconds: dict[str, list[float]]
    """Of every call, by contender."""
    skipped: dict[str, str]
    """Reasons, by contender."""

    @property
    def where(self) -> str:
        """The device, or the number of threads: what a bandwidth belongs to."""
        return str(self.threads) if self.device == "cpu" else self.device

    def best(self, name: str = OURS) -> float:
        return min(self.seconds[name])

    def median(self, name: str = OURS) -> float:
        return median(self.seconds[name])

    @property
    def peer(self) -> str | None:
        """The fastest contender that is not this library; None if all are skipped."""
        return min((name for name in self.seconds if name != OURS), key=self.best, default=None)

    def ratio(self, name: str | None = None) -> float | None:
        """How many times faster than a peer (the fastest one, unless named) this library is."""
        name = name or self.peer
        return self.best(name) / self.best() if name in self.seconds else None

    @property
    def bytes_per_second(self) -> float:
        return self.bytes_moved / self.best()

    def to_json(self) -> dict[str, Any]:
        summary = {name: {"best": self.best(name), "median": self.median(name)} for name in self.seconds}
        derived = {"peer": self.peer, "ratio": self.ratio(), "gb_per_s": self.bytes_per_second / 1e9}
        return {**asdict(self), "summary": summary, **derived}


def run(benches: Mapping[str, Bench], options: Options, progress: Callable[[str], None]) -> Iterator[Cell]:
    """Every cell, one after the other. A matrix is made once, its inputs once for both modes and all thread counts."""
    wanted = {name: benches[name].matrices or tuple(options.matrices) for name in options.rows}
    for matrix in dict.fromkeys(name for names in wanted.values() for name in names):
        progress(matrix)
        gc.collect()  # what the last matrix left in cycles; not in each cell, as it takes 0.2 s with torch loaded
        A = matrices.load(matrix, options.quick)
        for row in [row for row in options.rows if matrix in wanted[row]]:
            bench = benches[row]
            own_widths = options.columns is None or bench.matrices or bench.columns == (0,)
            widths = bench.columns if own_widths else options.columns
            for device, dtype, columns in product(options.devices, options.dtypes, widths):
                name = str(dtype).removeprefix("torch.")
                about = {
                    "row": row,
                    "matrix": matrix,
                    "shape": A.shape,
                    "nnz": A.nnz,
                    "columns": columns,
                    "dtype": name,
                    "device": device.type,
                }
                inputs = bench.setup(A, dtype, columns, device)
                contenders = bench.forward, bench.backward
                for mode, ways, moved in zip(MODES, contenders, bench.bytes_moved(inputs), strict=True):
                    if ways:
                        runs = {name: partial(way, inputs) for name, way in able(ways, device).items()}
                        about |= {"mode": mode, "bytes_moved": moved}
                        yield from run_mode(about, runs, bench.loose, options, progress)


def run_mode(
    about: dict[str, Any], runs: Runs, loose: float, options: Options, progress: Callable[[str], None]
) -> list[Cell]:
    """One mode at every number of threads, once the contenders agree."""
    device = torch.device(about["device"])
    title = "{row} {mode}, {matrix} x {columns}, {dtype}, {device}".format_map(about)
    cells = []
    with torch.set_grad_enabled(about["mode"] != "forward"):
        progress(title)
        skipped = check(title, runs, loose * TOLERANCE[about["dtype"]], forgiving=device.type != "cpu")
        ready = {name: run for name, run in runs.items() if name not in skipped}
        for threads in options.threads if device.type == "cpu" else (0,):
            progress(f"{title}, {threads} thread" + "s" * (threads > 1) if threads else title)
            if threads:
                torch.set_num_threads(threads)
            seconds = race(ready, options.budget, clock=clock_of(device))
            cells.append(Cell(**about, threads=threads, seconds=seconds, skipped=skipped))
    return cells
