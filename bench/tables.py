# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark as a table on the screen and as JSON on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.cells import Cell

HEADINGS = (
    "matrix", "op", "cols", "dtype", "thr or\ndevice", "gossamer\nbest / median", "best peer", "its\nbest / median",
    "ratio", "to torch\n.sparse", "GB/s", "of band-\nwidth",
)  # fmt: skip
LEFT = ("matrix", "op", "dtype", "best peer")


def duration(*seconds: float) -> str:
    """Three digits each and the unit that suits the first."""
    unit, scale = next(((u, s) for u, s in (("s", 1), ("ms", 1e-3)) if seconds[0] >= s), ("µs", 1e-6))
    return " / ".join(three_digits(number / scale) for number in seconds) + f" {unit}"


def three_digits(number: float) -> str:
    return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"


def times(ratio: float | None) -> str:
    """A ratio, green where this library is faster."""
    return "–" if ratio is None else f"[{'green' if ratio >= 1 else 'red'}]{three_digits(ratio)}[/]"


def table(cells: Sequence[Cell], bandwidth: Mapping[str, float]) -> Table:
    """One line a cell; ratios are of best times, peer / ours."""
    result = Table(
        title="ratio = best time of the fastest peer / best time of gossamer",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    for heading in HEADINGS:
        result.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=True)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        peer = cell.peer
        result.add_row(
            Path(cell.matrix).name,
            cell.row + " +bwd" * (cell.mode != "forward"),
            str(cell.columns or "–"),
            cell.dtype,
            cell.where,
            duration(cell.best(), cell.median()),
            peer or "–",
            duration(cell.best(peer), cell.median(peer)) if peer else "–",
            times(cell.ratio()),
            times(cell.ratio("torch.sparse")),
            f"{cell.bytes_per_second / 1e9:.1f}" if cell.bytes_moved else "–",
            f"{cell.bytes_per_second / bandwidth[cell.where]:.0%}" if cell.bytes_moved else "–",
            end_section=following is not None and (cell.matrix, cell.row) != (following.matrix, following.row),
        )
    return result


def print_skipped(console: Console, cells: Sequence[Cell]) -> None:
    """Who sat out, where and why; once for all numbers of threads."""
    lines = {
        f"{name} skipped {cell.row} {cell.mode}, {Path(cell.matrix).name} x {cell.columns}, {cell.dtype}: {reason}"
        for cell in cells
        for name, reason in cell.skipped.items()
    }
    for line in sorted(lines):
        console.print(line, style="dim", highlight=False)


def write_json(path: Path, cells: Sequence[Cell], bandwidth: Mapping[str, float], about: Mapping[str, Any]) -> None:
    """Everything: machine, versions, allocator, options, the seconds of every call."""
    document = {
        **about,
        "bandwidth_gb_per_s": {where: rate / 1e9 for where, rate in bandwidth.items()},
        "cells": [{**cell.to_json(), "of_bandwidth": cell.bytes_per_second / bandwidth[cell.where]} for cell in cells],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
