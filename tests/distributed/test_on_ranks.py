# SPDX-License-Identifier: BSD-3-Clause
"""Products, solves, layers, files and mistakes on 1 to 4 ranks beside one process. The cases are in on_ranks/."""

import launch
import pytest


@pytest.mark.parametrize(("ranks", "case"), [(p, case) for p in launch.RANKS for case in launch.all_cases(p, [])])
def test_on_ranks(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check(case, ranks, tmp_path_factory)
