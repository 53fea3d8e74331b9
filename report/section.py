# SPDX-License-Identifier: BSD-3-Clause
"""What a section of the report is, and its own command line.

A section is a module of examples/ or of bench/studies/: an application or a study that can be computed with a budget,
told in sentences and drawn. report/sections.py lists them; each also runs alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

Tick = Callable[[float], None]
"""Told the fraction that is done, which never falls and ends at 1."""

REFRESH = 0.1  # seconds between two pictures of a bar
WIDTH = 200  # of a table that goes to a file


@runtime_checkable
class Section(Protocol):
    """The names a module must have to be a section. ``Result`` is a dataclass of tensors, numbers, texts, lists and
    dicts, so that torch.load reads it back with ``weights_only``: finished sections are kept in files."""

    TITLE: str
    SOURCE: str
    """The paper and the equations, or that the question is our own."""

    QUICK: Mapping[str, Any]
    """A budget of seconds, for tests. Budgets are keyword arguments of ``compute``."""
    DEFAULT: Mapping[str, Any]
    """A budget of at most a minute or two."""
    FULL: Mapping[str, Any]
    """The paper's own budget."""

    Result: type[Any]

    def compute(self, *, seed: int = 0, tick: Tick = ..., **budget: Any) -> Any:
        """Makes a ``Result``. A section that reads data also takes ``data``, a folder."""

    def figures(self, result: Any) -> Mapping[str, Figure]:
        """The figures by the stems of their files, drawn in the colours of matplotlib's rcParams."""

    def captions(self) -> Mapping[str, str]:
        """What there is to see in each figure, by the same names."""

    def summary(self, result: Any) -> Sequence[str]:
        """What was found, with numbers, a sentence or two each."""


@runtime_checkable
class Tabular(Protocol):
    """A section that also has a table."""

    def table(self, result: Any) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """The headings and the lines."""


def run_from_command_line(
    section: Any,
    arguments: Sequence[str] | None = None,
    *,
    program: str | None = None,
    full: str = "the large budget",
    data: str | None = None,
    numbers: Mapping[str, str] | None = None,
) -> int:
    """Compute, print the table and the summary, save the figures; the exit code.

    ``program``, ``full`` and ``data`` are for the help: the command, and what these two options mean. A section without
    ``data`` takes none. With it, data that cannot be read are the user's mistake. ``numbers`` are names of the budget,
    with a help each, that can be given as options.
    """
    parser = command_line(section, program or f"python -m {section.__spec__.name}", full, data)
    for name, help_ in (numbers or {}).items():
        parser.add_argument(f"--{name}", type=int, metavar="N", help=help_)
    options = parser.parse_args(arguments)
    budget = {**(section.FULL if options.full else section.QUICK if options.quick else section.DEFAULT)}
    budget |= {"seed": options.seed} | ({"data": options.data} if data else {})
    budget |= {name: given for name in numbers or {} if (given := getattr(options, name)) is not None}
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    with Progress(console=console, transient=True, auto_refresh=False) as progress:  # no thread beside what is measured
        bar = progress.add_task(section.TITLE, total=1.0)
        tick = seldom(lambda done: progress.update(bar, completed=done, refresh=True))
        try:
            result = section.compute(**budget, tick=tick)
        except (ValueError, OSError) as error:
            if not data:
                raise
            parser.error(str(error))
    if isinstance(section, Tabular):
        print_table(console, *section.table(result))
    for sentence in section.summary(result):
        console.print(sentence, markup=False, soft_wrap=not console.is_terminal)
    options.out.mkdir(parents=True, exist_ok=True)
    for stem, figure in section.figures(result).items():
        figure.savefig(options.out / f"{stem}.png")
        console.print(f"see {options.out / stem}.png", markup=False, soft_wrap=True)
    return 0


def command_line(section: Any, program: str, full: str, data: str | None) -> argparse.ArgumentParser:
    """The options that every section has."""
    parser = argparse.ArgumentParser(prog=program, description=f"{section.TITLE}: {section.SOURCE}.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figures (out)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help=full)
    size.add_argument("--quick", action="store_true", help="a tiny budget, a few seconds")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (0)")
    if data:
        parser.add_argument("--data", help=data)
    return parser


def seldom(draw: Tick) -> Tick:
    """``draw``, called only so often: a step of a section may take a microsecond."""
    drawn = -1.0

    def tick(done: float) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REFRESH:
            drawn = now
            draw(done)

    return tick


def print_table(console: Console, header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Words to the left, numbers to the right, a gap after each op's backward."""
    result = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    for k, heading in enumerate(header):
        result.add_column(heading, justify="right" if k else "left", no_wrap=not k)
    for line in lines:
        result.add_row(*line, end_section="ackward" in line[0] + line[1])
    console.print(result)
