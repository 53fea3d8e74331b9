# SPDX-License-Identifier: BSD-3-Clause
"""The plot: how many times faster than the fastest peer, one panel for each op and mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from bench.cells import MODES, Cell

SHADES = ["#9ecae1", "#2171b5", "#08306b", "#41ab5d"]
BAR = 0.17  # inches


def write_plot(path: Path, cells: Sequence[Cell], subtitle: str) -> None:
    """Rows are ops, columns modes; in a panel a group is a matrix and width, a bar a device or number of threads."""
    cells = [cell for cell in cells if cell.peer]
    if not cells:
        return
    rows = list(dict.fromkeys(cell.row for cell in cells))
    places = list(dict.fromkeys(cell.where for cell in cells))
    panels = {(row, mode): [c for c in cells if (c.row, c.mode) == (row, mode)] for row in rows for mode in MODES}
    sizes = [max(len({label(c, cells) for c in panels[row, mode]}) for mode in MODES) for row in rows]
    heights = [size * (len(places) + 0.6) * BAR + 0.75 for size in sizes]
    figure = Figure(figsize=(12, sum(heights) + 0.9), dpi=130, layout="constrained")
    grid = figure.subplots(len(rows), 2, squeeze=False, height_ratios=heights, sharex=True)
    ratios = [cell.ratio() or 1 for cell in cells]
    low, high = min(0.5, *ratios), max(2, *ratios)
    for row, axes_of_row in zip(rows, grid, strict=True):
        for mode, axes in zip(MODES, axes_of_row, strict=True):
            if panels[row, mode]:
                panel(axes, panels[row, mode], cells, places)
                axes.set_title(f"{row}: {mode.replace('+', ' + ')}", loc="left", fontsize=10, fontweight="bold")
                axes.set_xlim(low * 0.9, high * (high / low) ** 0.4)  # room for names
                axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
            else:
                axes.axis("off")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(places), fontsize=9, frameon=False)
    title = "Time of the fastest peer / time of gossamer: right of 1×, gossamer is faster"
    figure.suptitle(f"{title}\n{subtitle}", x=0.01, ha="left", fontsize=11)
    figure.savefig(path)


def label(cell: Cell, cells: Sequence[Cell]) -> str:
    """What tells a group from the others of its panel."""
    dtype = f" {cell.dtype}" if len({c.dtype for c in cells}) > 1 else ""
    return f"{Path(cell.matrix).stem} × {cell.columns}{dtype}"


def panel(axes: Any, shown: Sequence[Cell], cells: Sequence[Cell], places: Sequence[str]) -> None:
    """Bars to the right of 1 are wins; the peer is named at the bar's end."""
    labels = list(dict.fromkeys(label(cell, cells) for cell in shown))
    height = 0.8 / len(places)
    for k, place in enumerate(places):
        name = f"{place} thread" + "s" * (place != "1") if place.isdigit() else place
        bars = [cell for cell in shown if cell.where == place]
        where = [labels.index(label(cell, cells)) + (k - (len(places) - 1) / 2) * height for cell in bars]
        ratios = [cell.ratio() or 1 for cell in bars]
        axes.barh(where, [r - 1 for r in ratios], height, left=1, color=SHADES[k % len(SHADES)], label=name)
        for y, ratio, cell in zip(where, ratios, bars, strict=True):
            text = f"{ratio:.{1 if ratio >= 10 else 2}f}  {cell.peer}"
            axes.text(max(ratio, 1) * 1.06, y, text, va="center", fontsize=7.5)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8.5)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="x", labelsize=8, labelbottom=True)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}×")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
