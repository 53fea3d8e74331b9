# SPDX-License-Identifier: BSD-3-Clause
"""Writes every quantity of a graph attention network on a given graph, forward and backward, as a .npz file."""

from __future__ import annotations

import argparse
from typing import Any

import torch

from gossamer import datasets
from gossamer._npz import write_npz
from gossamer.equations import golden

EPILOG = "The names, shapes and equation numbers are in docs/equations.md. The same options give the same bytes."

LARGEST = 2**31 - 1


def add(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "export-golden", help="golden vectors for accelerators, as .npz", description=__doc__, epilog=EPILOG
    )
    parser.add_argument("--data", required=True, help="a folder (see docs/datasets.md), or 'synthetic'")
    parser.add_argument("--model", choices=("gat", "gatv2"), default="gat")
    parser.add_argument("--hidden", type=int, nargs="*", default=[8], help="features of a head, for each hidden layer")
    parser.add_argument("--heads", type=int, nargs="+", default=[2], help="heads of each layer, or one number for all")
    parser.add_argument("--seed", type=int, default=0, help="of the parameters, and of a synthetic graph")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--no-self-loops", action="store_true", help="do not add an edge from each node to itself")
    parser.add_argument("--out", required=True, help="the file to write, FILE.npz")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Read or make the graph, compute, write, and say what was written."""
    for name in ("hidden", "heads"):
        if not all(1 <= value <= LARGEST for value in getattr(arguments, name)):
            raise ValueError(f"--{name} must be in 1 … {LARGEST}, not {getattr(arguments, name)}")
    if not 0 <= arguments.seed < 2**63:
        raise ValueError(f"--seed must be in 0 … 2^63 - 1, not {arguments.seed}")
    if arguments.data == "synthetic":
        graph = datasets.stochastic_block_model((60, 60, 60), num_features=12, seed=arguments.seed)
    else:
        graph = datasets.load(arguments.data)
    arrays = golden(
        graph,
        version=2 if arguments.model == "gatv2" else 1,
        hidden=arguments.hidden,
        heads=arguments.heads,
        seed=arguments.seed,
        self_loops=not arguments.no_self_loops,
        dtype=getattr(torch, arguments.dtype),
    )
    write_npz(arguments.out, arrays)
    print(f"{graph}: loss {arrays['loss'].item():.6f}, {len(arrays)} arrays in {arguments.out}")
