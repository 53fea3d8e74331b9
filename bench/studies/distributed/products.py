# SPDX-License-Identifier: BSD-3-Clause
"""Bytes, memory and CPU time of A X and its gradients, on many ranks and beside the plain op in one process.

The grid is cut into strips. A step is the product and the gradient by X, and in a second column by the values too.
CPU time is that of all threads of all ranks, the least of some steps; memory is the peak above what the inputs take.

    python -m bench.studies.distributed.products --grid 1000 --columns 64
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import gossamer as gs

MB = 1e6
SMALL = 50
KINDS = ("dX", "dX and dA")
Measured = dict[str, Any]


def resident(field: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at most."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def step(multiply: Callable[[Tensor, Tensor], Tensor], values: Tensor, X: Tensor, G: Tensor, kind: str) -> None:
    inputs = [X.requires_grad_()] + ([values.requires_grad_()] if kind == KINDS[1] else [])
    torch.autograd.grad(multiply(values, X), inputs, G)


def measure(multiply: Callable[[Tensor, Tensor], Tensor], values: Tensor, X: Tensor, G: Tensor, steps: int) -> Measured:
    """Memory and bytes of the first step, CPU time of each of the others."""
    found: Measured = {}
    before = resident("VmRSS")
    for kind in KINDS:
        sent = torch.ops.gossamer.distributed_bytes_sent()
        Path("/proc/self/clear_refs").write_text("5")  # from here on the peak counts anew
        step(multiply, values.detach(), X.detach(), G, kind)
        found[kind] = {
            "memory": resident("VmHWM") - before,
            "bytes": torch.ops.gossamer.distributed_bytes_sent() - sent,
            "seconds": [],
        }
        for _ in range(steps):
            began = time.process_time()
            step(multiply, values.detach(), X.detach(), G, kind)
            found[kind]["seconds"].append(time.process_time() - began)
    return found


def plain(grid: int, columns: int, steps: int) -> Measured:
    """One process, without ranks."""
    if grid > SMALL:
        plain(SMALL, columns, steps=1)  # loads all code that a step needs
    A = gs.poisson((grid, grid))
    A.pattern.transpose()
    X, G = torch.rand(2, A.shape[0], columns).unbind()
    return measure(lambda v, x: A.with_values(v) @ x, A.values, X, G, steps)


def on_rank(grid: int, columns: int, steps: int) -> Measured:
    """One of the ranks."""
    if grid > SMALL:
        on_rank(SMALL, columns, steps=1)
    whole = gs.poisson((grid, grid))
    began = time.process_time()
    A = gs.distributed.scatter(whole).prepare()
    planned = time.process_time() - began
    del whole
    rows = A.local_shape[0]
    X, G = torch.rand(2, rows, columns).unbind()
    found = measure(lambda v, x: A.with_values(v) @ x, A.values, X, G, steps)
    cut = int((A.pattern.indices >= rows).sum())
    return {**found, "planned": planned, "halo": A.pattern.shape[1] - rows, "cut": cut, "nnz": A.nnz}


def worker(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    arguments = options.grid, options.columns, options.steps
    if options.worker == "plain":
        found, rank = plain(*arguments), 0
    else:
        dist.init_process_group("gloo")
        found, rank = on_rank(*arguments), dist.get_rank()
        dist.destroy_process_group()
    (Path(options.out) / f"{rank}.json").write_text(json.dumps(found))


def run(options: argparse.Namespace, ranks: int | None) -> list[Measured]:
    """What each rank has measured; None is the plain op."""
    module = "bench.studies.distributed.products"
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks else []
    with tempfile.TemporaryDirectory() as out:
        sizes = [f"--grid={options.grid}", f"--columns={options.columns}", f"--steps={options.steps}", f"--out={out}"]
        command = [sys.executable, *launcher, "-m", module, *sizes, f"--worker={ranks or 'plain'}"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
        return [json.loads((Path(out) / f"{rank}.json").read_text()) for rank in range(ranks or 1)]


def cpu(measured: list[Measured], kind: str) -> float:
    """Of a step, summed over the ranks: the least of all steps."""
    return min(sum(times) for times in zip(*(rank[kind]["seconds"] for rank in measured), strict=True))


def line(name: str, measured: list[Measured], base: list[Measured]) -> str:
    text = f"{name:>6}"
    for kind in KINDS:
        memory = max(rank[kind]["memory"] for rank in measured)
        share = memory / max(1, *(rank[kind]["memory"] for rank in base))
        seconds = cpu(measured, kind)
        sent = max(rank[kind]["bytes"] for rank in measured)
        text += f" | {sent / MB:8.3f} MB {memory / MB:7.1f} MB {share:6.3f}"
        text += f" {seconds:7.3f} s {seconds / cpu(base, kind):6.3f}"
    if "halo" in measured[0]:
        cut = sum(rank["cut"] for rank in measured) / sum(rank["nnz"] for rank in measured)
        halo = max(rank["halo"] for rank in measured)
        text += f" | halo {halo:6}, cut {cut:7.3%}, planned in {sum(rank['planned'] for rank in measured):5.1f} s"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.distributed.products", description=__doc__)
    parser.add_argument("--grid", type=int, default=1000, help="rows and columns of the grid")
    parser.add_argument("--columns", type=int, default=64, help="of X")
    parser.add_argument("--steps", type=int, default=8, help="timed ones")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        worker(options)
        return 0
    base = run(options, None)
    title = "sent, memory, of plain, CPU, of plain"
    print(f"Poisson {options.grid}², {options.columns} columns, float32; {title}:")
    print(f"{'ranks':>6}" + "".join(f" | {kind:^47}" for kind in KINDS))
    print(line("plain", base, base), flush=True)
    for ranks in options.ranks:
        print(line(str(ranks), run(options, ranks), base), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
