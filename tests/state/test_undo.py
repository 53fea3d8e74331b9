# SPDX-License-Identifier: BSD-3-Clause
"""The list of undone fixes names what stands in the files; in the long run, the machine finds each of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import undo


@pytest.mark.parametrize("name", undo.UNDONE)
def test_a_fix_can_be_undone(name: str, tmp_path: Path) -> None:
    package = undo.package_without(name, tmp_path) / "gossamer"
    for file, _, before in undo.UNDONE[name]:
        assert before in (package / file).read_text()


@pytest.mark.skipif("GOSSAMER_STATE" not in os.environ, reason="a long run: make state")
@pytest.mark.parametrize("name", undo.UNDONE)
def test_the_machine_finds_it(name: str) -> None:
    assert undo.finding(name)
