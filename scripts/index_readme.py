# SPDX-License-Identifier: BSD-3-Clause
"""README.md as a package index shows it, called by the build through [[tool.dynamic-metadata]] in pyproject.toml.

An index knows the text alone, not the files beside it. With a `Source` among [project.urls], relative links and
pictures become links to that place; without one, a link becomes its words, and a picture goes, with its caption.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"

RELATIVE = r"\((?!\w+:|#)([^)\s]+)\)"  # neither https: nor #a-heading
PICTURE = re.compile(rf"!\[([^\]]*)\]{RELATIVE}")
CAPTION = re.compile(r"\n\n\*[^*](?:[^\n]|\n(?!\n))*\*(?=\n\n)")  # a paragraph in italics
LINK = re.compile(rf"(?<!!)\[([^\]]*)\]{RELATIVE}")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def without_files(text: str) -> str:
    """Prose in which nothing leads to a file: there is no place that we could name."""
    text = re.sub(PICTURE.pattern + f"(?:{CAPTION.pattern})?\n*", "", text)
    return LINK.sub(r"\1", text)


def with_files_at(source: str, text: str) -> str:
    """Prose that leads to the files of a repository, by the addresses that the usual forges have."""
    text = PICTURE.sub(rf"![\1]({source}/raw/main/\2)", text)
    return LINK.sub(rf"[\1]({source}/blob/main/\2)", text)


def index_readme(text: str, source: str = "") -> str:
    """The whole page; blocks of code stay as they are."""
    parts = FENCE.split(text)
    parts[::2] = [with_files_at(source.rstrip("/"), part) if source else without_files(part) for part in parts[::2]]
    return "".join(parts)


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """What the build asks for: the field `readme`."""
    text = index_readme(README.read_text(encoding="utf-8"), project.get("urls", {}).get("Source", ""))
    return {"readme": {"content-type": "text/markdown", "text": text}}
