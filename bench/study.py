# SPDX-License-Identifier: BSD-3-Clause
"""Runs a study of the benchmark, Table 2 or the scaling, from its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench.report import print_table


def run(study: Any, arguments: Sequence[str] | None, *, name: str, about: str, full: str, width: int) -> int:
    """Compute, print the table and the summary, save the figures. ``width``: of the text without a terminal."""
    parser = argparse.ArgumentParser(prog=f"python -m bench --{name}", description=about)
    parser.add_argument("--out", type=Path, default=Path("out"), help=f"where {name}.png goes")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help=full)
    size.add_argument("--quick", action="store_true", help="tiny matrices, a few seconds")
    parser.add_argument("--seed", type=int, default=0, help="for the sake of the other studies: no time depends on it")
    options = parser.parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = width
    budget = study.FULL if options.full else study.QUICK if options.quick else study.DEFAULT
    with Progress(console=console, transient=True, auto_refresh=False) as progress:  # no thread beside us
        task = progress.add_task(name, total=1.0)
        result = study.compute(
            **budget, seed=options.seed, tick=lambda done: progress.update(task, completed=done, refresh=True)
        )
    print_table(console, *study.table(result))
    for line in study.summary(result):
        console.print(line, highlight=False)
    options.out.mkdir(parents=True, exist_ok=True)
    for stem, figure in study.figures(result).items():
        figure.savefig(options.out / f"{stem}.png")
        console.print(f"see {options.out / stem}.png", highlight=False)
    return 0
