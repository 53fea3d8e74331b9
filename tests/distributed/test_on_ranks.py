# SPDX-License-Identifier: BSD-3-Clause
"""Products, solves, layers, files and mistakes on 1 to 4 ranks beside one process. The cases are in on_ranks/."""

import launch
import pytest


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.all_cases([]))
def test_on_ranks(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check(case, ranks, tmp_path_factory)
