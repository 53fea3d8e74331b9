# SPDX-License-Identifier: BSD-3-Clause
"""A model of full-graph training on 4 to 64 machines: nothing here was measured on more than one.

    python -m bench.studies.distributed.model

The graph is ogbn-papers100M with both directions of every edge and self-loops, the network a GCN of three layers in
float32. An epoch aggregates (A X and AᵀG) once for each layer forward and for each but the first backward, always on
the narrower side of the weights. With ν = Σ halo rows / nodes, a machine of p

    computes       entries · columns · 4 bytes / p / memory bandwidth + flops of the dense products / p / peak
    receives       ν · nodes · columns · 4 bytes / p
    holds          28 bytes an entry (the matrix 8, its transpose with routes 20), what the backward needs of each node,
                   and the widest halo

without overlap, without cache reuse. The bytes received are the formula that tests/distributed holds to exactly. The
rates are assumptions: they stand in Machine and NETWORK. A random partition has ν = (p - 1) (1 - (1 - 1/p)^degree). All
rows to all (1-D without a plan) has ν = p - 1. A 2-D layout receives at least nodes / √p rows of X an aggregation.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

NODES, EDGES = 111_059_956, 1_615_685_872
ENTRIES = 2 * EDGES + NODES
WIDTHS = (128, 256, 256, 172)
FLOAT = 4  # bytes
MATRIX = 28  # bytes an entry
NETWORK = 25e9  # bytes a second into a machine
LATENCY = 5e-6


class Machine(NamedTuple):
    name: str
    memory: float  # bytes a second
    peak: float  # flops a second


SERVER = Machine("CPU server", 200e9, 2e12)
GPU = Machine("GPU", 1.5e12, 60e12)


def aggregated() -> int:
    """Columns an epoch: forward each layer, backward each but the first."""
    narrow = [min(pair) for pair in pairwise(WIDTHS)]
    return sum(narrow) + sum(narrow[1:])


def flops() -> float:
    """Of the dense products: forward, gradients of weights, gradients of inputs but the first."""
    layers = [2.0 * NODES * a * b for a, b in pairwise(WIDTHS)]
    return 2 * sum(layers) + sum(layers[1:])


def kept_columns() -> int:
    """What the backward needs of a node: X, A X; H, A H; H, H W; the logits; and two gradients of the widest."""
    return 128 + 128 + 256 + 256 + 256 + 172 + 172 + 2 * max(WIDTHS)


def compute(p: int, machine: Machine) -> float:
    return (ENTRIES * aggregated() * FLOAT / machine.memory + flops() / machine.peak) / p


def receive(p: int, halo: float) -> float:
    return halo * NODES * aggregated() * FLOAT / p / NETWORK


def held(p: int) -> tuple[float, float]:
    """Bytes a machine holds without halos, and those of the widest halo for ν = 1."""
    return (ENTRIES * MATRIX + NODES * kept_columns() * FLOAT) / p, NODES * max(WIDTHS) * FLOAT / p


def random_halo(p: int) -> float:
    return (p - 1) * (1 - (1 - 1 / p) ** (ENTRIES / NODES))


def table(machines: Sequence[int], halos: Sequence[float]) -> Iterator[str]:
    listed = " / ".join(f"{nu:g}" for nu in halos)
    yield (
        f"| machines | memory, GB | compute, s | received, s: ν = {listed} | share of an epoch | random (ν) "
        "| all rows to all | 2-D, at least |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for p in machines:
        base, halo = held(p)
        work, times = compute(p, SERVER), [receive(p, nu) for nu in halos]
        shares = " / ".join(f"{t / (t + work):.0%}" for t in times)
        nu = random_halo(p)
        yield (
            f"| {p} | {base / 1e9:.1f} + {halo / 1e9:.1f} ν | {work:.2f} | {' / '.join(f'{t:.2f}' for t in times)} "
            f"| {shares} | {receive(p, nu):.1f} ({nu:.1f}) | {receive(p, p - 1):.1f} | {receive(p, math.sqrt(p)):.1f} |"
        )


def conjugate_gradients(p: int, unknowns: float = 1e9) -> str:
    """3-D Poisson, float64: 7 entries of 12 bytes and ten reads or writes of a vector a row; a cube a machine."""
    bytes_a_row = 7 * 12 + 10 * 8
    work = unknowns * bytes_a_row / p / SERVER.memory
    faces = 6 * (unknowns / p) ** (2 / 3) * 8 / NETWORK
    sums = 4 * 2 * math.log2(p) * LATENCY  # two exact dots of two reductions each, by trees
    share = (faces + sums) / (work + faces + sums)
    return (
        f"CG on 3-D Poisson, 1e9 unknowns, {p} machines: {1e3 * (work + faces + sums):.1f} ms, {share:.1%} of it sent"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.distributed.model", description=__doc__)
    parser.add_argument("--machines", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--halo", type=float, nargs="+", default=[0.5, 1.0, 2.0], help="Σ halo rows / nodes")
    options = parser.parse_args(arguments)
    print("A model: no number below was measured.\n")
    gathered = ENTRIES * aggregated() * FLOAT / 1e12
    print(f"{ENTRIES / 1e9:.2f} G entries, {aggregated()} columns an epoch: {gathered:.1f} TB gathered,")
    print(f"{flops() / 1e12:.1f} TFLOP of dense products\n")
    print("\n".join(table(options.machines, options.halo)))
    shares = [f"{receive(16, nu) / (receive(16, nu) + compute(16, GPU)):.0%}" for nu in options.halo]
    print(f"\nOn GPUs ({GPU.memory / 1e12:g} TB/s, {GPU.peak / 1e12:g} TFLOP/s), 16: {' / '.join(shares)} of an epoch")
    for p in (64, 512):
        print(conjugate_gradients(p))


if __name__ == "__main__":
    main()
