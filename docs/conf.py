# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: `make docs` builds it into build/docs, without a network, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))

import gossamer

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
    ("py:.*", r"Tensor|(torch|scipy|collections|os|typing)\..*")
]  # no network, so no links to their pages
