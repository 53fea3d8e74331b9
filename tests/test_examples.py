# SPDX-License-Identifier: BSD-3-Clause
"""The examples run, and find what theory says they must."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

import gossamer as gs

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def jacobi() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "learned_jacobi.py"), run_name="learned_jacobi")


def test_learned_jacobi_runs(jacobi: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = jacobi["main"](["--out", str(tmp_path), "--steps", "40", "--seed", "3"])
    assert history.loss.shape == (41,)
    assert history.weights.shape == (41, 16)
    assert history.loss[-1] < 0.5 * history.loss[0]
    assert "after 40 steps" in capsys.readouterr().out
    for name in ("jacobi_loss.png", "jacobi_weights.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_learned_jacobi_repeats_with_its_seed(jacobi: dict[str, Any]) -> None:
    first, again, other = (jacobi["train"](steps=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.loss, again.loss)
    assert not torch.equal(first.loss, other.loss)


def test_learned_jacobi_finds_the_best_weights(jacobi: dict[str, Any]) -> None:
    torch.set_num_threads(1)  # small tensors
    history = jacobi["train"](vectors=4096, steps=300)
    omega = history.weights[-1]
    assert history.loss[-1] < history.loss[0]
    assert torch.equal(omega.argsort(descending=True)[:2].sort().values, torch.tensor([0, 15]))  # the ends
    torch.testing.assert_close(omega, omega.flip(0), atol=0.04, rtol=0)
    # The expected loss is quadratic in Ω; its minimum solves (A ∘ A²) ω = 2 diag(A²), as D = 2 I.
    A = gs.poisson(16, dtype=torch.float64).to_dense()
    best = torch.linalg.solve(A * (A @ A), 2 * (A @ A).diagonal())
    torch.testing.assert_close(omega, best, atol=0.03, rtol=0)
