# SPDX-License-Identifier: BSD-3-Clause
"""Runs an application of examples/ from its command line: computes, prints what was found, saves the figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run(module: Any, arguments: Sequence[str] | None, full: str = "the large budget", data: str | None = None) -> None:
    """``module`` has TITLE, SOURCE, DEFAULT, FULL, compute, summary and figures; see docs/design.md, the report.

    ``full`` and ``data`` are the help of these options; without the latter the application takes no data. With it, data
    that cannot be read are the user's mistake.
    """
    from rich.progress import Progress

    parser = argparse.ArgumentParser(description=f"{module.TITLE}: {module.SOURCE}")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figures")
    parser.add_argument("--full", action="store_true", help=full)
    parser.add_argument("--seed", type=int, default=0)
    if data:
        parser.add_argument("--data", help=data)
    options = parser.parse_args(arguments)
    given = {**(module.FULL if options.full else module.DEFAULT), "seed": options.seed}
    if data:
        given["data"] = options.data
    with Progress(transient=True) as progress:
        bar = progress.add_task(module.TITLE, total=1.0)
        try:
            result = module.compute(**given, tick=lambda done: progress.update(bar, completed=done))
        except (ValueError, OSError) as error:
            if not data:
                raise
            parser.error(str(error))
    print(*module.summary(result), sep="\n")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, figure in module.figures(result).items():
        figure.savefig(options.out / f"{name}.png")
        print(options.out / f"{name}.png")
