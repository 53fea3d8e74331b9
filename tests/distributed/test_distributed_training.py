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


def test_coauthor_cs(tmp_path: Path, data: Path) -> None:
    folder = data / "gnn-benchmark" / "coauthor_cs"
    if not folder.is_dir():
        pytest.skip(f"no Coauthor CS at {folder}")
    found = trained(
        tmp_path, 2, "--data", str(folder), "--epochs", "12", "--hidden", "8", "--heads", "2", "--lr", "0.05"
    )
    assert sum(rank["own"] for rank in found["ranks"]) == 18333
    assert found["accuracy"] > 0.8
    assert found["said"].count("nodes, halo") == 2  # a line a process, with its memory and time


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
    """Six runs of torchrun, so all that it finds is looked at here: killed runs end with the bits of
    those left in peace, and the number of processes is rounding."""
    result = study.compute(sizes=(1, 3), nodes=400, steps=7)
    assert all(result.killed.values())
    for curves in result.loss.values():
        torch.testing.assert_close(curves[3], curves[1], rtol=1e-4, atol=0)
        assert curves[1][-1] < curves[1][0]
    for ranks in result.ranks.values():
        assert sum(rank["own"] for rank in ranks[3]) == 400
        assert sum(rank["edges"] for rank in ranks[3]) == ranks[1][0]["edges"]
        assert ranks[1][0]["sent"] == ranks[1][0]["halo"] == 0
    told = " ".join(study.summary(result))
    assert "GCN and GATv2, a process killed in the middle: the same weights at the end, to the bit" in told
    assert "nothing was measured on more than one" in told
    header, lines = study.table(result)
    assert [line[:2] for line in lines] == [["GCN", "1"], ["GCN", "3"], ["GATv2", "1"], ["GATv2", "3"]]
    assert all(len(line) == len(header) for line in lines)
    assert study.figures(result).keys() == study.captions().keys()
