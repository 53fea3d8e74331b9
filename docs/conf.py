# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: `make docs` builds it into build/docs, without a network, with warnings as errors."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))

import gossamer

ROOT = Path(__file__).parent.parent

# autodoc takes the order of members and the overloads from the file of a class: here classes name that file again.
for place in (gossamer, gossamer.nn, gossamer.datasets):
    for thing in vars(place).values():
        if isinstance(thing, type) and thing.__module__ == place.__name__:
            thing.__module__ = next(f.__module__ for f in vars(thing).values() if hasattr(f, "__code__"))

project = "Gossamer"
author = "the Gossamer authors"
release = gossamer.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3  # page.md#a-heading works as it does on GitHub
highlight_language = "text"
smartquotes = False  # x' is a derivative

html_theme = "furo"
html_title = f"Gossamer {release}"
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
nitpick_ignore_regex = [
    (
        "py:.*",
        r"Tensor|PathLike|DeviceMesh|ProcessGroup|(torch|numpy|scipy|collections|os|typing|gossamer\._scipy_names)\..*",
    ),
    ("py:.*", r"gossamer\.distributed\._exchange\..*"),  # what a matrix has inside
]  # no network, so no links to their pages


# Lists that would have to be edited whenever something is added are written here. A page says where by a comment:
#
#   <!-- headers: include/gossamer -->      in Markdown: the headers in a folder
#   .. functions: _attention _sddmm         in reStructuredText: the public functions of modules


def headers(folder: Path) -> str:
    """A table of the headers with the first sentence of each, then the headers: whole, or the heads of kernels."""
    kernels = folder.name == "kernels"
    table, sections = ["| | |", "|---|---|"], []
    for path in sorted(folder.glob("*.h"), key=lambda path: (path.stem != "gossamer", path.stem)):
        name, place = f"kernels/{path.name}" if kernels else path.name, f"../../{path.relative_to(ROOT).as_posix()}"
        table.append(f"| [{name}](#{re.sub(r'[^a-z0-9_]', '', name)}) | {first_sentence(path)} |")
        head = '\n:end-before: "#pragma once"' if kernels else ""
        link = f"\n\n[{path.name}]({place})" if kernels else ""
        include = f"```{{literalinclude}} {place}\n:language: cpp\n:lines: 2-{head}\n```"
        sections.append(f"### {name}\n\n{include}{link}")
    return "\n\n".join(["\n".join(table), *sections])


def first_sentence(path: Path) -> str:
    """Of the comment at the head of a file, below the licence."""
    comment = re.search(r"(?<=BSD-3-Clause\n)(?:// .*\n)+", path.read_text())
    words = comment[0].replace("// ", "").replace("\n", " ") if comment else ""
    return re.split(r"(?<=\w[.:])\s", words.strip(), maxsplit=1)[0].rstrip(":").replace("|", "\\|")


def functions(modules: list[str]) -> str:
    """The public functions of these modules, in the order of their definition."""
    public = [thing for name in gossamer.__all__ if inspect.isfunction(thing := getattr(gossamer, name))]
    found = [f for module in modules for f in public if f.__module__ == f"gossamer.{module}"]
    found.sort(key=lambda f: (modules.index(f.__module__.removeprefix("gossamer.")), f.__code__.co_firstlineno))
    return "\n".join(f".. autofunction:: {f.__name__}" for f in found)


def expand(app: Sphinx, page: str, source: list[str]) -> None:
    def listed(match: re.Match[str]) -> str:
        folder = ROOT / match[1]
        app.env.note_dependency(str(folder))  # a new header makes the page anew
        return headers(folder)

    source[0] = re.sub(r"<!-- headers: (\S+) -->", listed, source[0])
    source[0] = re.sub(r"(?m)^\.\. functions: (.+)$", lambda match: functions(match[1].split()), source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", expand)
