# SPDX-License-Identifier: BSD-3-Clause
"""Computes the sections one after another, with progress, and writes the page."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import gossamer as gs
from bench.rows import products
from report import page, sections
from report.outcome import Outcome, outcome
from report.section import Tick, seldom

GRAPHS = ("cora", "citeseer", "pubmed")


def run(out: Path, *, full: bool, data: Path | None, only: str | None, seed: int, fresh: bool) -> int:
    """Write ``out``/index.html. Exit code 1 if a section failed."""
    names = sections.chosen(only)
    check_data(data)
    folder = prepare(out)
    if "table2" in names:
        products.load_mkl()  # one of its peers; we are the program here, as python -m bench is
    request = page.Request(full, data, seed, only)
    console = Console(highlight=False)
    outcomes = []
    # No thread draws beside what is measured: the bars move when a section ticks.
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        whole = progress.add_task("the report", total=len(names))
        for k, name in enumerate(names):
            task = progress.add_task(name, total=1.0)
            tick = ticking(progress, task, whole, k)
            tick(0.0)
            section = outcome(name, folder, full=full, data=data, seed=seed, fresh=fresh, tick=tick)
            outcomes.append(section)
            progress.remove_task(task)
            console.print(line(section), soft_wrap=True)
    path = out / "index.html"
    page.write(path, outcomes, request)
    failed = [section.name for section in outcomes if section.error]
    if failed:
        console.print(
            f"[red]{len(failed)} of {len(names)} sections failed:[/] {', '.join(failed)}; see the page", soft_wrap=True
        )
    console.print(f"{path.stat().st_size / 1e6:.1f} MB, complete in one file: {escape(str(path))}", soft_wrap=True)
    return 1 if failed else 0


def ticking(progress: Progress, task: TaskID, whole: TaskID, k: int) -> Tick:
    """Moves the bar of the section number k and that of the whole report."""

    def draw(done: float) -> None:
        progress.update(task, completed=done)
        progress.update(whole, completed=k + done, refresh=True)

    return seldom(draw)


def line(section: Outcome) -> str:
    """What the terminal keeps of a section."""
    if section.error:
        return f"[red]✗[/] {section.name}: {escape(section.error)}"
    return f"[green]✓[/] {section.name}: {section.seconds:.1f} s{', kept from before' * section.kept}"


def prepare(out: Path) -> Path:
    """Make the folder and its cache, before an hour is spent on what cannot be written."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out: {out} is a file, a folder was wanted")
    folder = out / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    for place in (out, folder):
        if not os.access(place, os.W_OK):
            raise ValueError(f"--out: {place} cannot be written")
    return folder


def check_data(data: Path | None) -> None:
    """Read the graphs once: a broken file is the user's mistake, and told before anything is computed."""
    if data is None:
        return
    found = [data / name for name in GRAPHS if (data / name).is_dir()]
    if not found:
        raise ValueError(f"--data: {data} has none of {', '.join(GRAPHS)}, a folder that holds them was wanted")
    for folder in found:
        gs.datasets.load(folder)
