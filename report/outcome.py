# SPDX-License-Identifier: BSD-3-Clause
"""What became of a section: its result as the page shows it, or the error that took its place."""

from __future__ import annotations

import importlib
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from report import cache, sections
from report.figures import Plate, plates
from report.section import Tabular, Tick


@dataclass
class Outcome:
    name: str
    title: str
    source: str = ""
    commands: list[str] = field(default_factory=list)
    budget: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    kept: bool = False  # computed by an earlier, interrupted or equal demo
    summary: list[str] = field(default_factory=list)
    plates: list[Plate] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    error: str = ""
    trace: str = ""


def outcome(name: str, folder: Path, *, full: bool, data: Path | None, seed: int, fresh: bool, tick: Tick) -> Outcome:
    """Compute a section, or take what is kept of it in ``folder``. Whatever goes wrong in it is its error."""
    section = Outcome(
        name, name.replace("_", " ").capitalize(), commands=sections.commands(name, full=full, data=data, seed=seed)
    )
    threads = torch.get_num_threads()
    try:
        module = importlib.import_module(sections.SECTIONS[name])
        section.title, section.source = module.TITLE, module.SOURCE
        section.budget = sections.budget(name, module, full=full, data=data, seed=seed)
        path, key = folder / f"{name}.pt", cache.key(module, section.budget)
        kept = None if fresh else cache.read(path, key, module)
        section.kept = kept is not None
        if kept is None:
            start = time.perf_counter()
            result = module.compute(**section.budget, tick=tick)
            kept = cache.Kept(result, time.perf_counter() - start)
            cache.write(path, key, kept)
        section.seconds = kept.seconds
        section.summary = list(module.summary(kept.result))
        section.plates = plates(module, kept.result)
        if isinstance(module, Tabular):
            section.header, section.rows = module.table(kept.result)
    except Exception as error:  # the other sections are shown all the same
        section.error = f"{type(error).__name__}: {error}"
        section.trace = traceback.format_exc()
    finally:
        torch.set_num_threads(threads)
    return section
