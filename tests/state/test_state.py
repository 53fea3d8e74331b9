# SPDX-License-Identifier: BSD-3-Clause
"""The machine, run: briefly with every test run, and for as many steps as GOSSAMER_STATE says by `make state`."""

from __future__ import annotations

import os

import machine
import pytest
import worker
import world
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

STEPS = int(os.environ.get("GOSSAMER_STATE", "0"))
LENGTH = 40


def test_sequences_of_uses_agree_with_dense_twins(capsys: pytest.CaptureFixture[str]) -> None:
    """Every value and every gradient is compared; the steps are printed."""
    profile = settings(
        max_examples=max(STEPS // LENGTH, 1) if STEPS else 120,
        stateful_step_count=LENGTH,
        derandomize=not STEPS,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(machine.Machine, settings=profile)
    finally:
        worker.stop()
    with capsys.disabled():
        print(f"\nstate machine: {machine.steps} steps compared, {world.compiled} compilations")
