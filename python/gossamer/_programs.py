# SPDX-License-Identifier: BSD-3-Clause
"""Finds the programs around the library, in a checkout or where they were installed: bench, cases, examples, report."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

_here = Path(__file__).parent


def folder() -> Path:
    """The folder that holds them: gossamer/programs of an installed package, else the root of the checkout."""
    for place in (_here / "programs", _here.parent.parent):
        if (place / "report" / "demo.py").exists():
            return place
    raise OSError(f"examples, bench and report are neither in {_here / 'programs'} nor in {_here.parent.parent}")


def load(name: str) -> ModuleType:
    """Import one of their modules by its name there, such as ``report.demo``."""
    place = folder()
    if sys.path[0] != str(place):  # first: other packages, too, leave a folder of examples among the installed ones
        sys.path.insert(0, str(place))
    return importlib.import_module(name)
