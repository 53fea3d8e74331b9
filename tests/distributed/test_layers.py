# SPDX-License-Identifier: BSD-3-Clause
"""Layers on a DistributedMatrix are those of one process. The cases are in layer_cases.py."""

import launch
import pytest


@pytest.mark.parametrize("ranks", launch.RANKS)
@pytest.mark.parametrize("case", launch.cases("layer_cases"))
def test_layers(case: str, ranks: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    launch.check("layer_cases", case, ranks, tmp_path_factory)
