# SPDX-License-Identifier: BSD-3-Clause
"""Tells what this installation is: versions, vector code, threads, devices, solver engines, optional packages."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import gossamer
from gossamer import _programs

OPTIONAL = ("numpy", "scipy", "matplotlib", "rich", "jinja2", "torch-geometric", "mkl")


def add(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("info", help="versions, threads, devices, engines", description=__doc__)
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> None:
    """Print what a bug report needs."""
    gossamer.show_config()
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    cuda = [torch.cuda.get_device_name(k) for k in range(count)]
    print(f"devices: {', '.join(['cpu', *(f'cuda:{k} ({name})' for k, name in enumerate(cuda))])}")
    print(f"python: {platform.python_version()}, {platform.platform()}")
    print(f"packages: {', '.join(f'{name} {installed(name)}' for name in OPTIONAL)}")
    print(f"library: {Path(gossamer.__file__).parent}")
    print(f"programs: {_programs.folder()}")


def installed(name: str) -> str:
    """The version of a package, or that there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
