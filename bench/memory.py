# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.memory: the peak memory of one forward and backward of each layer, above its inputs, in MB.

Each contender has a process of its own; the growth of the process's peak is what is told.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Sequence

import torch

from bench import matrices
from bench.rows.layers import SIZES, Layer


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(name: str, contender: str, quick: bool) -> float:
    """In this process: run it only once."""
    layer = Layer(matrices.load("graph", quick), torch.float32, name)
    module = layer.ours if contender == "gossamer" else layer.theirs(False)
    before = peak()
    layer.gradients(module)
    return peak() - before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small graph")
    parser.add_argument("--one", nargs=2, metavar=("LAYER", "WHO"), help="measure one contender in this process")
    options = parser.parse_args(arguments)
    if options.one:
        print(measure(*options.one, options.quick))
        return 0
    for name in SIZES:
        told = {}
        for who in ("gossamer", "PyG"):
            command = [sys.executable, "-m", "bench.memory", "--one", name, who, *["--quick"] * options.quick]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            told[who] = float(done.stdout)
        ratio = told["PyG"] / max(told["gossamer"], 1e-3)
        print(f"{name:10} gossamer {told['gossamer']:7.0f} MB   PyG {told['PyG']:7.0f} MB   {ratio:.1f} times less")
    return 0


if __name__ == "__main__":
    sys.exit(main())
