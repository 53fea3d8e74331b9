# SPDX-License-Identifier: BSD-3-Clause
"""A minute of the Python fuzzers; `make test` runs this under the sanitizers, `make fuzz` the long way."""

from __future__ import annotations

import pytest
from run import FUZZERS, run

EXECUTIONS = {"ops": 3000, "planetoid": 3000, "graph_folder": 2000, "npz": 3000, "matrix_state": 2000}
EXECUTIONS["command_line"] = 500


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(FUZZERS))
def test_refused_or_harmless(name: str) -> None:
    assert 0 < run(name, EXECUTIONS[name]) < EXECUTIONS[name]  # some are refused, and some get through
