# SPDX-License-Identifier: BSD-3-Clause
"""Finds the programs around the library: examples/, bench/ and report/, in a checkout or where they were installed."""

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
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
    for plain in ("examples", "tests"):  # folders without an __init__.py: any package of that name would go before
        if plain not in sys.modules:
            sys.modules[plain] = ModuleType(plain)
            sys.modules[plain].__path__ = [str(place / plain)]
    return importlib.import_module(name)
