# SPDX-License-Identifier: BSD-3-Clause
"""Files, gathering and checkpoints of many ranks. The cases are in data_cases.py."""

import launch
import pytest


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("data_cases"))
def test_data(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("data_cases", case, ranks, tmp_path_factory)
