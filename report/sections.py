# SPDX-License-Identifier: BSD-3-Clause
"""The sections of the report: one module each, in the order of the page."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

SECTIONS = {
    "learned_jacobi": "examples.learned_jacobi",
    "heavyball": "examples.heavyball",
    "learned_preconditioner": "examples.learned_preconditioner",
    "learned_amg": "examples.learned_amg",
    "diffusion_coefficient": "examples.diffusion_coefficient",
    "newton_pde": "examples.newton_pde",
    "topology": "examples.topology",
    "gaussian_field": "examples.gaussian_field",
    "gcn_citeseer": "examples.gcn_citeseer",
    "graph_attention": "examples.graph_attention",
    "spectral_clustering": "examples.spectral_clustering",
    "distributed": "examples.distributed.study",
    "table2": "bench.studies.table2",
    "scaling": "bench.studies.scaling",
}
# Which folder of --data each takes.
DATA = {"gcn_citeseer": "citeseer", "graph_attention": ".", "spectral_clustering": "cora"}


def chosen(only: str | None) -> list[str]:
    """The names in ``only``, separated by commas, in the order of the page; all if there is none."""
    if only is None:
        return list(SECTIONS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in SECTIONS]:
        raise ValueError(f"--only: no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if not names:
        raise ValueError(f"--only: no section given; there are {', '.join(SECTIONS)}")
    return [name for name in SECTIONS if name in names]


def budget(name: str, module: ModuleType, *, full: bool, data: Path | None, seed: int) -> dict[str, Any]:
    """The keyword arguments of ``module.compute``."""
    arguments = {**(module.FULL if full else module.DEFAULT), "seed": seed}
    folder = data / DATA[name] if data and name in DATA else None
    if folder and folder.is_dir():
        arguments["data"] = str(folder)
    return arguments


def commands(name: str, *, full: bool, data: Path | None, seed: int) -> list[str]:
    """What computes this section again: its own program, and the report of it alone."""
    options = [*(["--full"] if full else []), *(["--seed", str(seed)] if seed else [])]
    own, report = list(options), list(options)
    if data and name in DATA and (data / DATA[name]).is_dir():
        own += ["--data", str(data / DATA[name])]
        report += ["--data", str(data)]
    module = SECTIONS[name]
    program = ["bench", f"--{name}"] if module.startswith("bench.") else [module]
    return [shlex.join(["python", "-m", *program, *own]), shlex.join(["gossamer", "demo", "--only", name, *report])]
