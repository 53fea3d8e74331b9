# SPDX-License-Identifier: BSD-3-Clause
"""Draws a module's figures in both schemes and encodes them for a page that needs no other file."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from report.palette import style

LARGEST_SVG = 120_000  # bytes; a picture of more is many points, and smaller as PNG
DPI = 180


@dataclass
class Plate:
    """A figure on the page: one address of data for each scheme."""

    name: str
    caption: str
    light: str
    dark: str
    width: int  # of the picture, in CSS pixels: the page keeps its place while it loads
    height: int


def plates(module: ModuleType, result: Any) -> list[Plate]:
    """Every figure of a module, drawn under each scheme's rcParams."""
    drawn: dict[str, dict[str, str]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for scheme in ("light", "dark"):
        with mpl.rc_context(style(scheme)):
            for name, figure in module.figures(result).items():
                for axes in figure.axes:  # a scale on the right stands on a line, too
                    axes.spines.right.set_visible(axes.yaxis.get_ticks_position() == "right")
                drawn.setdefault(name, {})[scheme] = encode(figure)
                width, height = figure.get_size_inches() * 96
                sizes[name] = round(width), round(height)
    captions = module.captions()
    return [
        Plate(name, captions.get(name, ""), **uris, width=sizes[name][0], height=sizes[name][1])
        for name, uris in drawn.items()
    ]


def encode(figure: Figure) -> str:
    """A data URI: SVG where that is small, else PNG."""
    data, kind = saved(figure, "svg", metadata={"Date": None}), "svg+xml"
    if len(data) > LARGEST_SVG:
        data, kind = with_palette(saved(figure, "png", dpi=DPI)), "png"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def with_palette(png: bytes) -> bytes:
    """The same picture in 256 colours: a third of the size."""
    file = io.BytesIO()
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()


def saved(figure: Figure, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=kind, **options)
    return file.getvalue()
