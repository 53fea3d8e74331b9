# SPDX-License-Identifier: BSD-3-Clause
"""Computes every application and study of the project here, and shows them on one page, DIR/index.html."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from gossamer import _programs

EPILOG = (
    "What is finished is kept in DIR/cache: an interrupted demo goes on where it stopped. Exit codes: 0 done, "
    "1 a section failed (the page shows the others), 2 a mistake in the call, 130 Ctrl-C."
)


def add(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("demo", help="the report, as one HTML page", description=__doc__, epilog=EPILOG)
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where index.html goes (out)")
    parser.add_argument("--full", action="store_true", help="the papers' budgets: an hour or more instead of minutes")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="holds cora/, citeseer/, pubmed/; without it, graphs are synthetic"
    )
    parser.add_argument("--only", metavar="NAME,…", help="these sections, such as heavyball,table2")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (0)")
    parser.add_argument("--fresh", action="store_true", help="compute again what is kept")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Hand over to report/demo.py."""
    demo = _programs.load("report.demo")
    asked = {name: getattr(arguments, name) for name in ("full", "data", "only", "seed", "fresh")}
    try:
        return int(demo.run(arguments.out, **asked))
    except KeyboardInterrupt:
        kept = f"finished sections are kept in {arguments.out / 'cache'}, the same command goes on from there"
        print(f"\ngossamer demo: interrupted; {kept}", file=sys.stderr)
        return 130
