# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``python -m gossamer COMMAND …``, or ``gossamer COMMAND …`` where it is installed.

A command is a module of gossamer.commands with ``add(subparsers)``, which adds its parser and sets ``run``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gossamer import __version__
from gossamer.commands import COMMANDS


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(prog="gossamer", description="Sparse matrices and graph networks.")
    top.add_argument("--version", action="version", version=f"gossamer {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. A mistake of the user's ends with one line on stderr and exit code 2."""
    arguments = parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except (ValueError, TypeError, IndexError, OSError) as error:
        print(f"gossamer {arguments.command}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
