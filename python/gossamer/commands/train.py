# SPDX-License-Identifier: BSD-3-Clause
"""Trains a two-layer GCN, GAT or GATv2 to classify the nodes of a graph, and tells the test accuracy."""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

from gossamer import datasets
from gossamer.nn.node_classifier import RECIPES, row_normalized, train

EPILOG = "The defaults of each model are those of its paper."


def add(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("train", help="train a graph network on a graph", description=__doc__, epilog=EPILOG)
    parser.add_argument("--model", choices=sorted(RECIPES), default="gcn")
    parser.add_argument("--data", required=True, help="a folder (see docs/datasets.md), or 'synthetic'")
    parser.add_argument("--runs", type=int, default=1, help="how often, with seeds from --seed on")
    parser.add_argument("--seed", type=int, default=0)
    for name, kind in (("epochs", int), ("hidden", int), ("heads", int), ("lr", float), ("dropout", float)):
        parser.add_argument(f"--{name}", type=kind, default=None, help="as in the paper")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Train, with a progress bar on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if arguments.runs < 1:
        raise ValueError(f"--runs must be at least 1, not {arguments.runs}")
    given = {name: getattr(arguments, name) for name in ("epochs", "hidden", "heads", "lr", "dropout")}
    recipe = replace(RECIPES[arguments.model], **{name: v for name, v in given.items() if v is not None})
    if arguments.data == "synthetic":
        graph = datasets.stochastic_block_model((200, 200, 200), num_features=16, seed=arguments.seed)
    else:
        graph = row_normalized(datasets.load(arguments.data))
    print(graph)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()
    tests = []
    with Progress(*columns, transient=True) as progress:
        for k in range(arguments.runs):
            task = progress.add_task(f"run {k + 1} of {arguments.runs}", total=recipe.epochs, state="")

            def show(epoch: int, loss: float, accuracy: float, task: Any = task) -> None:
                progress.update(task, completed=epoch, state=f"loss {loss:.3f}, validation {accuracy:.1%}")

            _, result = train(graph, recipe, arguments.seed + k, show)
            progress.remove_task(task)
            tests.append(result.test)
            print(
                f"run {k + 1}: {result.epochs} epochs, train {result.train:.1%}, "
                f"validation {result.val:.1%}, test {result.test:.1%}"
            )
    if len(tests) > 1:
        print(f"test {mean(tests):.1%} ± {stdev(tests):.1%} over {len(tests)} runs")
