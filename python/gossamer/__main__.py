# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``python -m gossamer COMMAND …``, or ``gossamer COMMAND …`` where it is installed.

A command is a module of gossamer._commands with ``add(subparsers)``, which adds its parser and sets ``run``; ``run``
returns an exit code, or None for 0. See docs/command_line.md.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

from gossamer import __version__
from gossamer._commands import COMMANDS

EPILOG = "gossamer COMMAND --help tells the options of each. Exit codes: 0 done, 1 failed, 2 a mistake in the call."
TOO_LARGE = ("allocate memory", "calculation overflowed")  # what torch says of a tensor that cannot be made
EXTRAS = {"matplotlib", "rich", "scipy", "jinja2", "threadpoolctl"}  # of gossamer-sparse[demo]


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="gossamer", description="Sparse matrices that can be differentiated, and graph networks.", epilog=EPILOG
    )
    top.add_argument("--version", action="version", version=f"gossamer {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. A mistake of the user's ends with one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ± gets a ? there, not a traceback
            stream.reconfigure(errors="replace")
    top = parser()
    arguments, arguments_left = top.parse_known_args(argv)
    if arguments_left and not hasattr(arguments, "passes_on"):
        top.error(f"{arguments.command}: unknown arguments {' '.join(arguments_left)}")
    arguments.rest = arguments_left
    try:
        return arguments.run(arguments) or 0
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        print(f"gossamer {arguments.command}: needs {package}; pip install 'gossamer-sparse[demo]'", file=sys.stderr)
    except (ValueError, TypeError, IndexError, OSError) as error:
        print(f"gossamer {arguments.command}: {error}", file=sys.stderr)
    except (MemoryError, RuntimeError) as error:  # torch raises a RuntimeError of several lines
        if not isinstance(error, MemoryError) and not any(word in str(error) for word in TOO_LARGE):
            raise
        reason = str(error).partition("\n")[0]
        print(f"gossamer {arguments.command}: not enough memory: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\ngossamer {arguments.command}: interrupted", file=sys.stderr)
        return 130
    return 2


if __name__ == "__main__":
    sys.exit(main())
