# SPDX-License-Identifier: BSD-3-Clause
"""Every example in a docstring and every Python block of the pages is run; every other block has its own test."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gossamer as gs

ROOT = Path(__file__).parents[2]


def modules(package: ModuleType) -> list[str]:
    """The package and its modules, commands apart, which are run as a user runs them."""
    found = [package.__name__]
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.ispkg and not module.name.startswith("gossamer._"):
            found += modules(importlib.import_module(module.name))
        elif not module.ispkg and module.name != "gossamer.__main__":
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules(gs))
def test_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), extraglobs={"gs": gs, "torch": torch})
    assert results.failed == 0


def test_examples_of_classes_are_found() -> None:
    """A public class says that it is of the package that users import it from: its examples are found there."""
    found = {test.name for package in (gs, gs.nn) for test in doctest.DocTestFinder(exclude_empty=True).find(package)}
    assert found >= {"gossamer.SparseMatrix", "gossamer.nn.GCNConv", "gossamer.nn.GATConv", "gossamer.nn.GATv2Conv"}


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
