# SPDX-License-Identifier: BSD-3-Clause
"""The colours of the page and of its figures, in a light and a dark scheme; text has a contrast of at least 4.5."""

from __future__ import annotations

from typing import Any

from matplotlib import cycler

SCHEMES: dict[str, dict[str, str]] = {
    "light": {
        "page": "#fbfaf7",
        "card": "#ffffff",
        "ink": "#1b2024",
        "soft": "#5a636c",
        "line": "#e3dfd7",
        "accent": "#0b6b66",
        "wrong": "#a8321f",
    },
    "dark": {
        "page": "#111417",
        "card": "#181c20",
        "ink": "#e8e5df",
        "soft": "#a2aab2",
        "line": "#2d3339",
        "accent": "#62cfc5",
        "wrong": "#ff9a86",
    },
}
CYCLES = {
    "light": ("#0b6b66", "#c2571a", "#5a4fcf", "#a8326e", "#2271b8", "#8a6a00", "#5a636c"),
    "dark": ("#62cfc5", "#f2995c", "#a79bf5", "#ec7fb0", "#6fb3f2", "#e0b84c", "#a2aab2"),
}


def style(scheme: str) -> dict[str, Any]:
    """matplotlib's rcParams for a figure that stands on a card of the page."""
    colours = SCHEMES[scheme]
    ink, soft = colours["ink"], colours["soft"]
    return {
        **dict.fromkeys(
            ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), colours["card"]
        ),
        **dict.fromkeys(("grid.color", "legend.edgecolor"), colours["line"]),
        **dict.fromkeys(("text.color", "axes.titlecolor", "patch.edgecolor", "boxplot.flierprops.color"), ink),
        **dict.fromkeys(("axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), soft),
        "axes.prop_cycle": cycler(color=CYCLES[scheme]),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlepad": 10.0,
        "axes.titlesize": 11.5,
        "axes.axisbelow": True,
        "font.size": 10.5,
        "lines.linewidth": 1.8,
        "legend.framealpha": 0.85,
        "svg.fonttype": "path",  # the same letters everywhere
        "svg.hashsalt": "gossamer",  # the same figure, the same bytes
    }
