# SPDX-License-Identifier: BSD-3-Clause
"""The case table: one row per op = inputs + dense formula. tests/table does the rest for each row.

Each module here holds the rows of one family as `CASES`; a new module is found by itself.
"""

from importlib import import_module
from pkgutil import iter_modules

from .row import KINDS, Case, Make

_families = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if module.name != "row"]
CASES: list[Case] = [case for family in _families for case in family.CASES]

__all__ = ["CASES", "KINDS", "Case", "Make"]
