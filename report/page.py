# SPDX-License-Identifier: BSD-3-Clause
"""The page: one HTML file with its style, script and figures inside. page.html is the template."""

from __future__ import annotations

import datetime
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench import machine
from gossamer._files import atomic
from report.outcome import Outcome
from report.palette import SCHEMES

HERE = Path(__file__).parent
NUMBER = re.compile(r"[-−–±<>≈~]?\s*\d|[-–—]?$")  # a cell that is read by its digits, or empty


@dataclass
class Request:
    """What the user asked for, and the machine as it was then."""

    full: bool
    data: Path | None
    seed: int
    only: str | None = None
    about: dict[str, Any] = field(default_factory=machine.describe)

    def command(self) -> str:
        """The call that makes this page."""
        given = {"--only": self.only, "--seed": self.seed or None, "--data": self.data}
        options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        return shlex.join(["gossamer", "demo", *(["--full"] if self.full else []), *options])


def write(path: Path, outcomes: Sequence[Outcome], request: Request) -> None:
    """Render, then write: whole or not at all."""
    page = render(outcomes, request)
    with atomic(path) as file:
        file.write(page.encode())


def render(outcomes: Sequence[Outcome], request: Request) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(duration=duration, arguments=arguments)
    environment.tests["numeric"] = numeric
    return environment.get_template("page.html").render(
        sections=outcomes,
        facts=facts(outcomes, request),
        build=build(request),
        command=request.command(),
        colours={name: (SCHEMES["light"][name], SCHEMES["dark"][name]) for name in SCHEMES["light"]},
        threads=threads(),
        css=(HERE / "page.css").read_text(encoding="utf-8"),
        js=(HERE / "page.js").read_text(encoding="utf-8"),
    )


def facts(outcomes: Sequence[Outcome], request: Request) -> dict[str, str]:
    """What a reader asks first of a number."""
    computer, versions = request.about["machine"], request.about["versions"]
    spent = duration(sum(section.seconds for section in outcomes))
    return {
        "Machine": f"{computer['processor']}, {computer['cores']} cores, {computer['memory_gb']} GB, "
        f"{torch.get_num_threads()} of them used",
        "Versions": ", ".join(f"{name} {versions[name]}" for name in ("gossamer", "torch", "scipy", "numpy", "python")),
        "Budgets": f"{'the papers’ own' if request.full else 'default (--full: the papers’ own)'}, seed {request.seed}",
        "Graphs": str(request.data) if request.data else "synthetic, for want of --data with the citation graphs",
        "Computed in": f"{spent}, {datetime.datetime.now().astimezone():%-d %B %Y, %H:%M %Z}",
    }


def build(request: Request) -> dict[str, str]:
    """gs.show_config and the system."""
    lines = torch.ops.gossamer.show_config().splitlines()
    config = {name.capitalize(): text for name, colon, text in (line.partition(": ") for line in lines) if colon}
    load = request.about["machine"]["load_at_start"]
    busy = ": others used this machine, the times are theirs, too" if load > 0.5 else ""
    return {
        **config,
        "System": request.about["machine"]["system"],
        "Load at the start": f"{load:.1f}{busy}",
        "Threads that wait": os.environ.get("OMP_WAIT_POLICY", "spin (OMP_WAIT_POLICY is not set)"),
    }


def duration(seconds: float) -> str:
    """0.42 s, 12 s, 3 min 5 s"""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def arguments(budget: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in budget.items())


def numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Is this a column of numbers, which stand right? The first names the rows."""
    return column > 0 and all(NUMBER.match(row[column]) for row in rows)


def threads(count: int = 22) -> list[tuple[float, float, float, float]]:
    """The ornament: straight threads from (0, y) to (x, 1) with x + y = 1, whose envelope is a parabola."""
    return [(0.0, k / count, k / count, 1.0) for k in range(count + 1)]
