# SPDX-License-Identifier: BSD-3-Clause
"""Every example in a docstring and every Python block in the README is run."""

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


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))])
def test_python_blocks(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks or page == "docs/design.md"
    for block in blocks:
        exec(compile(block, page, "exec"), {})
