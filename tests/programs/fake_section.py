# SPDX-License-Identifier: BSD-3-Clause
"""A section of the report that computes nothing worth knowing, in no time. Tests load it under several names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

TITLE = "Squares & <cubes>"
SOURCE = "N. Obody, “On Powers”, §1, Eq. 1"
QUICK: dict[str, Any] = {"points": 3}
DEFAULT: dict[str, Any] = {"points": 8}
FULL: dict[str, Any] = {"points": 64}

calls: list[dict[str, Any]] = []
before: list[Callable[[], None]] = []  # what happens in compute, before anything is computed


@dataclass
class Result:
    x: Tensor
    powers: dict[str, Tensor]
    names: list[str]


def compute(
    *, points: int, seed: int = 0, data: str | None = None, tick: Callable[[float], None] = lambda done: None
) -> Result:
    calls.append({"points": points, "seed": seed, "data": data})
    for happens in before:
        happens()
    tick(0.5)
    x = torch.arange(points, dtype=torch.float64) + seed
    tick(1.0)
    return Result(x, {"square": x**2, "cube": x**3}, ["square", "cube"])


def figures(result: Result) -> dict[str, Figure]:
    lines = Figure(figsize=(7, 4), layout="constrained")
    axes = lines.subplots()
    for name in result.names:
        axes.plot(result.x, result.powers[name], label=name)
    axes.set(xlabel="x", ylabel="power", title="Powers")
    axes.legend()
    cloud = Figure(figsize=(6, 4), layout="constrained")
    axes = cloud.subplots()
    axes.scatter(*torch.rand(2, 3000, generator=torch.Generator().manual_seed(0)))
    axes.set(xlabel="x", ylabel="y", title="Many points")
    return {"lines": lines, "cloud": cloud}


def captions() -> dict[str, str]:
    return {"lines": "Both powers; the cube wins for x > 1.", "cloud": "Points without a pattern."}


def summary(result: Result) -> list[str]:
    return [f"The largest cube is {result.powers['cube'].max():g}.", 'Quotes " and <tags> stay text.']


def table(result: Result) -> tuple[list[str], list[list[str]]]:
    header = ["x", *(f"a column with a long name, number {k}" for k in range(6))]
    return header, [[f"{x:g}", *["12.5 ms"] * 6] for x in result.x.tolist()]
