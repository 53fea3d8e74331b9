# SPDX-License-Identifier: BSD-3-Clause
"""examples/distributed: the graph is the same for everybody, a killed run ends with the bits of one left in peace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from examples.distributed import power_law, study

ROOT = Path(__file__).parents[2]


def trained(folder: Path, ranks: int, *more: str, restarts: int = 0) -> dict[str, Any]:
    """What the first of so many processes found; [standard output, standard error] under "said"."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    out = folder / f"found_{len(list(folder.iterdir()))}.json"
    command = [*torchrun, "--max-restarts", str(restarts), "-m", "examples.distributed.training", "--out", str(out)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *more], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return {**found, "said": done.stdout}


SMALL = ("--nodes", "1200", "--features", "8", "--hidden", "4", "--heads", "2", "--epochs", "8")


@pytest.mark.parametrize("model", ["gcn", "gatv2"])
def test_a_killed_run_ends_with_the_bits_of_one_left_in_peace(model: str, tmp_path: Path) -> None:
    """SIGKILL to a process before step 5; checkpoints after steps 3 and 6."""
    peaceful = trained(tmp_path, 2, "--model", model, *SMALL)
    risky = ("--checkpoint", str(tmp_path / "kept"), "--every", "3", "--kill-at", "5")
    killed = trained(tmp_path, 2, "--model", model, *SMALL, *risky, restarts=2)
    assert peaceful["attempts"] == 1
    assert killed["attempts"] == 2
    assert killed["losses"] == peaceful["losses"]
    assert killed["weights"] == peaceful["weights"]
    assert peaceful["losses"][-1] < peaceful["losses"][0]


def test_the_number_of_processes_is_rounding(tmp_path: Path) -> None:
    one, three = (trained(tmp_path, ranks, "--model", "gatv2", *SMALL) for ranks in (1, 3))
    torch.testing.assert_close(torch.tensor(three["losses"]), torch.tensor(one["losses"]), rtol=1e-4, atol=0)
    assert sum(rank["own"] for rank in three["ranks"]) == 1200
    assert sum(rank["edges"] for rank in three["ranks"]) == one["ranks"][0]["edges"]
    assert one["ranks"][0]["sent"] == one["ranks"][0]["halo"] == 0
    assert three["said"].count("nodes, halo") == 3  # a line a process, with its memory and time


def test_coauthor_cs(tmp_path: Path, data: Path) -> None:
    folder = data / "gnn-benchmark" / "coauthor_cs"
    if not folder.is_dir():
        pytest.skip(f"no Coauthor CS at {folder}")
    found = trained(
        tmp_path, 2, "--data", str(folder), "--epochs", "12", "--hidden", "8", "--heads", "2", "--lr", "0.05"
    )
    assert sum(rank["own"] for rank in found["ranks"]) == 18333
    assert found["accuracy"] > 0.8


def test_every_share_of_the_graph_is_a_part_of_the_same_graph() -> None:
    whole = power_law.rows(0, 3000, 3000, 5, seed=7)
    for cuts in ([0, 3000], [0, 1, 700, 3000], [0, 0, 2999, 3000]):
        parts = [power_law.rows(a, b, 3000, 5, seed=7) for a, b in pairwise(cuts)]
        for name in ("columns", "x", "y", "trained"):
            assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))
        assert torch.equal(torch.cat([part.indptr.diff() for part in parts]), whole.indptr.diff())
    degree = whole.indptr.diff()
    assert degree.min() >= power_law.LEAST
    assert degree.max() > 10 * power_law.LEAST  # a heavy tail
    assert whole.columns.min() >= 0
    assert whole.columns.max() < 3000
    assert not torch.equal(power_law.rows(0, 9, 3000, 5, seed=8).x, whole.x[:9])


def test_the_study_tells_what_it_found() -> None:
    result = study.compute(sizes=(1, 2), nodes=400, steps=4)
    assert all(result.killed.values())
    told = " ".join(study.summary(result))
    assert "GCN and GATv2, a process killed in the middle: the same weights at the end, to the bit" in told
    assert "nothing was measured on more than one" in told
    assert max(study.difference(curves) for curves in result.loss.values()) < 1e-4
    header, lines = study.table(result)
    assert [line[:2] for line in lines] == [["GCN", "1"], ["GCN", "2"], ["GATv2", "1"], ["GATv2", "2"]]
    assert all(len(line) == len(header) for line in lines)
    assert study.figures(result).keys() == study.captions().keys()
