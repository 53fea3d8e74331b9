# SPDX-License-Identifier: BSD-3-Clause
"""Times the library beside its peers: `gossamer bench …` is `python -m bench …`, wherever the package is."""

from __future__ import annotations

import argparse
from typing import Any

from gossamer import _programs

STUDIES = {"--table2": "bench.table2", "--scaling": "bench.scaling"}


def add(subparsers: Any) -> None:
    """Add the parser of this command. It takes no argument itself: all of them, --help too, are the benchmark's."""
    parser = subparsers.add_parser("bench", help="the benchmark; --table2, --scaling: the studies", add_help=False)
    parser.set_defaults(run=run, passes_on=True)


def run(arguments: argparse.Namespace) -> int:
    """Hand over to bench/, or to one of its studies with the remaining arguments."""
    rest = list(arguments.rest)
    _programs.load("bench.products").load_mkl()  # here, as in python -m bench, we are the program
    for option, module in STUDIES.items():
        if option in rest:
            rest.remove(option)
            return int(_programs.load(module).main(rest) or 0)
    return int(_programs.load("bench.__main__").main(rest))
