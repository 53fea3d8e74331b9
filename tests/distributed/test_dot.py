# SPDX-License-Identifier: BSD-3-Clause
"""Dots and solves on 1 to 4 ranks. The cases are in dot_cases.py."""

import launch
import pytest


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("dot_cases"))
def test_dot(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("dot_cases", case, ranks, tmp_path_factory)


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("precondition_cases"))
def test_precondition(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("precondition_cases", case, ranks, tmp_path_factory)
