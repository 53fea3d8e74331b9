# SPDX-License-Identifier: BSD-3-Clause
"""The products of a DistributedMatrix are those of one process, bit for bit. The cases are in core_cases.py."""

import launch
import pytest


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("core_cases"))
def test_core(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("core_cases", case, ranks, tmp_path_factory)


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("plan_cases"))
def test_plan(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("plan_cases", case, ranks, tmp_path_factory)
