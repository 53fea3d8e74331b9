# SPDX-License-Identifier: BSD-3-Clause
"""Times the library beside its peers: `gossamer bench …` is `python -m bench …`, wherever the package is."""

from __future__ import annotations

import argparse
from typing import Any

from gossamer import _programs


def add(subparsers: Any) -> None:
    """Add the parser of this command. It takes no argument itself: all of them, --help too, are the benchmark's."""
    parser = subparsers.add_parser("bench", help="the benchmark; --table2, --scaling: the studies", add_help=False)
    parser.set_defaults(run=run, passes_on=True)


def run(arguments: argparse.Namespace) -> int:
    """Hand over to bench/."""
    if not {"-h", "--help"} & set(arguments.rest):
        _programs.load("bench.rows.products").load_mkl()  # here, as in python -m bench, we are the program
    return int(_programs.load("bench.__main__").main(arguments.rest))
