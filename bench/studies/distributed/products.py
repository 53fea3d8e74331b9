# SPDX-License-Identifier: BSD-3-Clause
"""Bytes, memory and CPU time of A X and its gradients, on many ranks and beside the plain op in one process.

A step is the product and the gradient by X, and in a second column by the values too. CPU time is that of all threads
of all ranks, the least of some steps; memory is the peak above what the inputs take. The grid is cut into strips. A
power-law graph with 64 communities, edges in both directions, is cut by METIS, or at random.

Processes that run at once share the memory's bandwidth, and wait for it in CPU time. "2 apart" tells how much: as many
plain processes, each with its share of the matrix and nothing to say to the others.

    python -m bench.studies.distributed.products --grid 1000 --columns 64
    python -m bench.studies.distributed.products --nodes 131072 --parts metis
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
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
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


def matrix(options: argparse.Namespace) -> gs.SparseMatrix:
    """Whole, or one of so many shares."""
    if options.nodes is None:
        return gs.poisson((options.grid // options.shares, options.grid))
    shape = {"num_classes": 64, "homophily": 0.9, "num_features": 1, "seed": 0}
    nodes = options.nodes // options.shares
    return gs.datasets.power_law(nodes, 14 * nodes, **shape).adjacency


def owners(A: gs.SparseMatrix, options: argparse.Namespace) -> Tensor | None:
    """The rank of each row; None is equal ranges."""
    ranks = dist.get_world_size()
    if options.parts == "random":
        return torch.randint(ranks, (A.shape[0],), generator=torch.Generator().manual_seed(0))
    return gs.distributed.partition(A, ranks, method="metis") if options.parts == "metis" else None


def small(options: argparse.Namespace) -> argparse.Namespace:
    """To load all code that a step needs."""
    return argparse.Namespace(
        **{**vars(options), "grid": SMALL, "shares": 1, "nodes": None, "parts": "ranges", "steps": 1}
    )


def plain(options: argparse.Namespace) -> Measured:
    """One process, without ranks."""
    A = matrix(options)
    A.pattern.transpose()
    X, G = torch.rand(2, A.shape[0], options.columns).unbind()
    found = measure(lambda v, x: A.with_values(v) @ x, A.values, X, G, options.steps)
    return {**found, "nnz": A.nnz}


def on_rank(options: argparse.Namespace) -> Measured:
    """One of the ranks."""
    whole = matrix(options)
    parts = owners(whole, options)
    began = time.process_time()
    A = gs.distributed.scatter(whole, parts=parts).prepare()
    planned = time.process_time() - began
    del whole
    rows = A.local_shape[0]
    X, G = torch.rand(2, rows, options.columns).unbind()
    found = measure(lambda v, x: A.with_values(v) @ x, A.values, X, G, options.steps)
    cut = int((A.pattern.indices >= rows).sum())
    return {**found, "planned": planned, "halo": A.pattern.shape[1] - rows, "rows": rows, "cut": cut, "nnz": A.nnz}


def worker(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.worker == "plain":
        plain(small(options))
        found, rank = plain(options), 0
    else:
        dist.init_process_group("gloo")
        on_rank(small(options))
        found, rank = on_rank(options), dist.get_rank()
        dist.destroy_process_group()
    (Path(options.out) / f"{rank}.json").write_text(json.dumps(found))


def command(options: argparse.Namespace, launcher: Sequence[str], kind: str, shares: int, out: str) -> list[str]:
    sizes = [f"--grid={options.grid}", f"--columns={options.columns}", f"--steps={options.steps}", f"--out={out}"]
    sizes += [f"--parts={options.parts}"] + ([f"--nodes={options.nodes}"] if options.nodes else [])
    module = ["-m", "bench.studies.distributed.products", f"--worker={kind}", f"--shares={shares}"]
    return [sys.executable, *launcher, *module, *sizes]


def run(options: argparse.Namespace, ranks: int) -> list[Measured]:
    """What each rank has measured."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            command(options, launcher, "rank", 1, out), check=True, env=ENVIRONMENT, stderr=subprocess.DEVNULL
        )
        return [json.loads((Path(out) / f"{rank}.json").read_text()) for rank in range(ranks)]


def apart(options: argparse.Namespace, shares: int) -> list[Measured]:
    """What so many plain processes have measured, each with its share of the matrix, at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / str(k) for k in range(shares)]
        for out in outs:
            out.mkdir()
        commands = [command(options, [], "plain", shares, str(out)) for out in outs]
        for process in [subprocess.Popen(each, env=ENVIRONMENT, stderr=subprocess.DEVNULL) for each in commands]:
            if process.wait():
                raise RuntimeError(f"a plain process ended with {process.returncode}")
        return [json.loads((out / "0.json").read_text()) for out in outs]


def cpu(measured: list[Measured], kind: str) -> float:
    """Of a step, summed over the ranks: the least of all steps."""
    return min(sum(times) for times in zip(*(rank[kind]["seconds"] for rank in measured), strict=True))


def line(name: str, measured: list[Measured], base: list[Measured]) -> str:
    text = f"{name:>7}"
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
        share = max(rank["halo"] / max(rank["rows"], 1) for rank in measured)
        planned = sum(rank["planned"] for rank in measured)
        text += f" | halo {halo:6} ({share:.1%} of own), cut {cut:7.3%}, planned in {planned:5.1f} s"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.distributed.products", description=__doc__)
    parser.add_argument("--grid", type=int, default=1000, help="rows and columns of the grid")
    parser.add_argument("--nodes", type=int, help="of a power-law graph, in place of the grid")
    parser.add_argument("--parts", choices=("ranges", "metis", "random"), default="ranges")
    parser.add_argument("--columns", type=int, default=64, help="of X")
    parser.add_argument("--steps", type=int, default=8, help="timed ones")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--worker", choices=("plain", "rank"), help=argparse.SUPPRESS)
    parser.add_argument("--shares", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        worker(options)
        return 0
    base = apart(options, 1)
    title = "sent, memory, of plain, CPU, of plain"
    name = f"Power law {options.nodes}" if options.nodes else f"Poisson {options.grid}²"
    entries = f"{base[0]['nnz']} entries, {options.parts}"
    print(f"{name}, {entries}, {options.columns} columns, float32; {title}:")
    print(f"{'ranks':>7}" + "".join(f" | {kind:^47}" for kind in KINDS))
    print(line("plain", base, base), flush=True)
    for ranks in options.ranks:
        if ranks > 1:
            print(line(f"{ranks} apart", apart(options, ranks), base), flush=True)
        print(line(str(ranks), run(options, ranks), base), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
