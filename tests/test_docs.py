# SPDX-License-Identifier: BSD-3-Clause
"""Every example in a docstring and every Python block of the pages is run; every other block has its own test."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

import gossamer as gs

ROOT = Path(__file__).parent.parent
MODULES = [
    "attention",
    "blocks",
    "construct",
    "datasets",
    "elementwise",
    "equations",
    "golden",
    "io",
    "linalg",
    "ops",
    "pattern",
    "reduce",
    "sparse_matrix",
    "structure",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(f"gossamer.{name}")
    results = doctest.testmod(module, extraglobs={"gs": gs, "torch": torch})
    assert results.failed == 0


PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]

TESTED_BY = {
    "python": "test_python_blocks",
    "cpp": "tests/cpp/docs_blocks.py",
    "cmake": "tests/cpp/docs_blocks.py",
    "sh": "test_docs_commands.py",
    "": "test_docs_commands.py",
    "{toctree}": "test_docs_site.py",
    "{include}": "test_docs_site.py",
}


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks(page: str) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, page, "exec"), {})


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_test(page: str) -> None:
    opened = re.findall(r"^[ >]*```(.*)$", (ROOT / page).read_text(), re.MULTILINE)
    assert len(opened) % 2 == 0
    assert {line.split(" ")[0] for line in opened[::2]} <= TESTED_BY.keys()
    assert set(opened[1::2]) <= {""}
