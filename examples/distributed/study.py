# SPDX-License-Identifier: BSD-3-Clause
"""Does it matter how many processes share a graph? The same training by one, two and four of them.

GCN and GATv2 are trained on a power-law graph (power_law.py) by training.py under torchrun, with p processes on this
machine. Process r owns a share of the nodes; what its edges want of other nodes is its halo. Told for every p:

    the loss of every step, whose differences between p are rounding (the forward has the same bits for every p; only
    sums over processes, such as those of gradients, are made in another order)
    own and halo nodes of every process, and the bytes it sends a step: what the edges want, times the layers' widths
    whether a run in which a process is killed ends with the same bits as one that is left in peace

Times are of one machine, whose cores the processes share: nothing here was measured on more than one.
Writes distributed_loss.png and distributed_halo.png.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from report.section import run_from_command_line

TITLE = "One graph, many processes"
SOURCE = "our own question: training on torch.distributed with gs.distributed"
QUICK: dict[str, Any] = {"sizes": (1, 2), "nodes": 2_000, "steps": 6}
DEFAULT: dict[str, Any] = {"sizes": (1, 2, 4), "nodes": 20_000, "steps": 30}
FULL: dict[str, Any] = {"sizes": (1, 2, 4, 8), "nodes": 200_000, "steps": 60}
MODELS = {"gcn": "GCN", "gatv2": "GATv2"}
ROOT = Path(__file__).parent.parent.parent


@dataclass
class Result:
    nodes: int
    loss: dict[str, dict[int, Tensor]]  # by model and number of processes, one number a step
    accuracy: dict[str, dict[int, float]]
    seconds: dict[str, dict[int, float]]  # a step
    ranks: dict[str, dict[int, list[dict[str, float]]]]  # own, halo, edges, memory (MB), sent (bytes), of each process
    killed: dict[str, bool]  # by model: whether the run with a killed process has the weights of the other


def launched(size: int, model: str, nodes: int, steps: int, seed: int, *more: str, restarts: int = 0) -> Any:
    """What the first of ``size`` processes found."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
        training = ["-m", "examples.distributed.training", "--model", model, "--nodes", str(nodes)]
        training += ["--epochs", str(steps), "--seed", str(seed), "--out", str(out), *more]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [*torchrun, "--max-restarts", str(restarts), *training]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        return json.loads(out.read_text())


def compute(
    *,
    sizes: tuple[int, ...],
    nodes: int,
    steps: int,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    result = Result(nodes, *({model: {} for model in MODELS} for _ in range(4)), killed={})
    runs = [(model, size) for model in MODELS for size in sizes]
    weights: dict[str, Any] = {}
    for k, (model, size) in enumerate(runs):
        found = launched(size, model, nodes, steps, seed)
        result.loss[model][size] = torch.tensor(found["losses"], dtype=torch.float64)
        result.accuracy[model][size], result.seconds[model][size] = found["accuracy"], found["seconds"]
        result.ranks[model][size] = found["ranks"]
        weights[model] = found["weights"]  # of the last size
        tick((k + 1) / (len(runs) + len(MODELS)))
    for k, model in enumerate(MODELS):
        with TemporaryDirectory() as kept:
            risky = ("--checkpoint", kept, "--every", "2", "--kill-at", str(steps // 2))
            again = launched(sizes[-1], model, nodes, steps, seed, *risky, restarts=2)
        result.killed[model] = again["attempts"] == 2 and again["weights"] == weights[model]
        tick((len(runs) + k + 1) / (len(runs) + len(MODELS)))
    return result


def difference(curves: dict[int, Tensor]) -> float:
    """The largest between the losses of a step, over the numbers of processes."""
    together = torch.stack(list(curves.values()))
    return (together.amax(0) - together.amin(0)).max().item()


def figures(result: Result) -> dict[str, Figure]:
    loss = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    axes = loss.subplots()
    for colour, (model, curves) in zip(("tab:blue", "tab:orange"), result.loss.items(), strict=True):
        for k, (size, curve) in enumerate(curves.items()):
            style = {"linewidth": 6.0 - 5.0 * k / len(curves), "alpha": 0.3 + 0.7 * k / len(curves)}
            label = f"{MODELS[model]}, {size} process{'es' if size > 1 else ''}"
            axes.plot(range(1, len(curve) + 1), curve, color=colour, label=label, **style)
    axes.set(xlabel="step", ylabel="cross entropy", title=f"Loss on {result.nodes} nodes, whoever shares them")
    axes.legend(ncols=2, fontsize="small")
    axes.grid(alpha=0.3)

    halo = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    left, right = halo.subplots(1, 2)
    bars = [(f"{size}:{r}", rank) for size, ranks in result.ranks["gatv2"].items() for r, rank in enumerate(ranks)]
    names, own = [name for name, _ in bars], [rank["own"] for _, rank in bars]
    left.bar(names, own, color="tab:blue", label="own")
    left.bar(names, [rank["halo"] for _, rank in bars], bottom=own, color="tab:orange", label="halo")
    left.set(xlabel="processes : process", ylabel="nodes", title="What a process has")
    left.tick_params(axis="x", rotation=90)
    left.legend()
    for model, by_size in result.ranks.items():
        steps = len(result.loss[model][1])
        sent = [max(rank["sent"] for rank in ranks) / steps / 1e6 for ranks in by_size.values()]
        right.plot([str(size) for size in by_size], sent, marker="o", label=MODELS[model])
    right.set(xlabel="processes", ylabel="MB a step", title="What it sends, at most")
    right.legend()
    right.grid(alpha=0.3)
    return {"distributed_loss": loss, "distributed_halo": halo}


def captions() -> dict[str, str]:
    return {
        "distributed_loss": "Loss of every step. The curves of different numbers of processes lie on one another.",
        "distributed_halo": "Left: own nodes, and those of others that their edges come from. The halo shrinks more "
        "slowly than the share. Right: bytes sent in a step, forward and backward, by the process that sends most.",
    }


def table(result: Result) -> tuple[list[str], list[list[str]]]:
    header = ["model", "processes", "nodes each", "halo, at most", "MB sent a step", "peak MB", "s a step", "accuracy"]
    lines = []
    for model, by_size in result.ranks.items():
        for size, ranks in by_size.items():
            most = {key: max(rank[key] for rank in ranks) for key in ranks[0]}
            sent = most["sent"] / len(result.loss[model][size]) / 1e6
            numbers = [f"{most['own']:.0f}", f"{most['halo']:.0f}", f"{sent:.2f}", f"{most['memory']:.0f}"]
            ends = [f"{result.seconds[model][size]:.3f}", f"{100 * result.accuracy[model][size]:.2f} %"]
            lines.append([MODELS[model], str(size), *numbers, *ends])
    return header, lines


def summary(result: Result) -> list[str]:
    sizes = ", ".join(map(str, result.loss["gcn"]))
    lines = [
        f"{MODELS[model]} by {sizes} processes: losses of a step differ by at most {difference(curves):.1e}."
        for model, curves in result.loss.items()
    ]
    same = [MODELS[model] for model, equal in result.killed.items() if equal]
    other = [MODELS[model] for model, equal in result.killed.items() if not equal]
    if same:
        lines.append(f"{' and '.join(same)}, a process killed in the middle: the same weights at the end, to the bit.")
    if other:
        lines.append(f"{' and '.join(other)}, a process killed in the middle: the weights at the end DIFFER.")
    return [*lines, "All processes ran on one machine; nothing was measured on more than one."]


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(sys.modules[__name__], arguments, full="200 000 nodes, up to 8 processes")


if __name__ == "__main__":
    main()
