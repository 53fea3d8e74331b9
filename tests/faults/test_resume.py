# SPDX-License-Identifier: BSD-3-Clause
"""SIGKILL at any moment of a training: with the same file it goes on, and ends with the bits of one never killed.

The moments are not chosen by a clock: the process kills itself in the middle of the n-th epoch, of the writing of the
state, before its file is renamed, and after.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gossamer as gs
from gossamer.nn.node_classifier import RECIPES, train

PROGRAM = """
import os, signal, sys, torch, gossamer as gs
from dataclasses import replace
from pathlib import Path
from gossamer.nn.node_classifier import RECIPES, train
model, path, moment, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
calls = 0

def dying(function, before):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == n and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **options)
        if calls == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call

if moment == "step":
    torch.optim.Adam.step = dying(torch.optim.Adam.step, True)
if moment == "saved":
    torch.save = dying(torch.save, False)
if moment == "synced":
    os.fsync = dying(os.fsync, False)
if moment == "renamed":
    Path.replace = dying(Path.replace, False)
graph = gs.datasets.stochastic_block_model((60, 60), seed=1)
recipe = replace(RECIPES[model], epochs=12, patience=5)
net, result = train(graph, recipe, 3, resume=path)
torch.save({"net": net.state_dict(), "losses": result.losses, "epochs": result.epochs}, path + ".end")
"""


def run(model: str, path: Path, moment: str, n: int) -> int:
    command = [sys.executable, "-c", PROGRAM, model, str(path), moment, str(n)]
    return subprocess.run(command, check=False, capture_output=True).returncode


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_killed_and_resumed_is_the_same_to_the_bit(tmp_path: Path, model: str) -> None:
    assert run(model, tmp_path / "whole", "never", 0) == 0
    wanted = torch.load(tmp_path / "whole.end")
    path = tmp_path / "killed"
    for moment, n in [("step", 3), ("saved", 2), ("synced", 1), ("renamed", 2)]:
        assert run(model, path, moment, n) == -signal.SIGKILL
    assert run(model, path, "never", 0) == 0
    found = torch.load(tmp_path / "killed.end")
    assert found["losses"] == wanted["losses"]
    assert found["epochs"] == wanted["epochs"]
    assert all(torch.equal(found["net"][name], value) for name, value in wanted["net"].items())


def test_a_file_of_another_training_is_refused(tmp_path: Path) -> None:
    graph, recipe = gs.datasets.stochastic_block_model((60, 60), seed=1), replace(RECIPES["gcn"], epochs=2)
    path = tmp_path / "state"
    _, first = train(graph, recipe, 3, resume=path)
    _, again = train(graph, recipe, 3, resume=path)  # nothing is left to do
    assert again.losses == first.losses
    with pytest.raises(ValueError, match="of another training: seed differ"):
        train(graph, recipe, 4, resume=path)
    with pytest.raises(ValueError, match="of another training: lr differ"):
        train(graph, replace(recipe, lr=0.5), 3, resume=path)
    with pytest.raises(ValueError, match="of another training: graph differ"):
        train(gs.datasets.stochastic_block_model((60, 60), seed=2), recipe, 3, resume=path)
    good = path.read_bytes()
    for damaged in (b"", b"text", good[:100], good[:-200]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="not a state of a training"):
            train(graph, recipe, 3, resume=path)
