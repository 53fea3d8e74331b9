# SPDX-License-Identifier: BSD-3-Clause
"""Trains a two-layer GCN, GAT or GATv2 to classify the nodes of a graph, and tells the test accuracy."""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import inf
from statistics import mean, stdev
from typing import Any

from gossamer import datasets
from gossamer.nn.node_classifier import RECIPES, Recipe, for_pubmed, row_normalized, train

EPILOG = "The defaults of each model are those of its paper. A given option overrides --pubmed."
LARGEST = 2**31 - 1
INTEGERS, NUMBERS = ("epochs", "hidden", "heads", "out_heads"), ("lr", "weight_decay", "dropout")  # fields of Recipe


def add(subparsers: Any) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser("train", help="train a graph network on a graph", description=__doc__, epilog=EPILOG)
    parser.add_argument("--model", choices=sorted(RECIPES), default="gcn")
    parser.add_argument("--data", required=True, help="a folder (see docs/datasets.md), or 'synthetic'")
    parser.add_argument("--runs", type=int, default=1, help="how often, with seeds from --seed on")
    parser.add_argument("--seed", type=int, default=0)
    settings = "output heads 8, lr 0.01, weight decay 0.001: the GAT paper's for PubMed"
    parser.add_argument("--pubmed", action="store_true", help=settings)
    kept = "keep the state here after each epoch, and go on from it: FILE.1, FILE.2, … with several runs"
    parser.add_argument("--resume", metavar="FILE", help=kept)
    for name in INTEGERS + NUMBERS:
        kind = int if name in INTEGERS else float
        parser.add_argument(
            option(name), dest=name, metavar="N" if kind is int else "X", type=kind, help="as in the paper"
        )
    parser.set_defaults(run=run)


def option(name: str) -> str:
    """The option of a field of Recipe."""
    return "--" + name.replace("out_", "output_").replace("_", "-")


def chosen(arguments: argparse.Namespace) -> Recipe:
    """The paper's recipe, PubMed's if asked for, with the options that were given."""
    given = {name: value for name in INTEGERS + NUMBERS if (value := getattr(arguments, name)) is not None}
    for name, value in given.items():
        if name in INTEGERS and not 1 <= value <= LARGEST:
            raise ValueError(f"{option(name)} must be in 1 … {LARGEST}, not {value}")
        if not 0 <= value < inf:
            raise ValueError(f"{option(name)} must be a number that is not negative, not {value}")
    recipe = RECIPES[arguments.model]
    return replace(for_pubmed(recipe) if arguments.pubmed else recipe, **given)


def run(arguments: argparse.Namespace) -> None:
    """Train, with a progress bar on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not 1 <= arguments.runs <= LARGEST:
        raise ValueError(f"--runs must be in 1 … {LARGEST}, not {arguments.runs}")
    if not 0 <= arguments.seed < 2**63 - arguments.runs:  # what torch takes
        raise ValueError(f"--seed must be in 0 … 2^63 - runs, not {arguments.seed}")
    recipe = chosen(arguments)
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

            file = arguments.resume if arguments.runs == 1 or not arguments.resume else f"{arguments.resume}.{k + 1}"
            _, result = train(graph, recipe, arguments.seed + k, show, resume=file)
            progress.remove_task(task)
            tests.append(result.test)
            print(
                f"run {k + 1}: {result.epochs} epochs, train {result.train:.1%}, "
                f"validation {result.val:.1%}, test {result.test:.1%}"
            )
    if len(tests) > 1:
        print(f"test {mean(tests):.1%} ± {stdev(tests):.1%} over {len(tests)} runs")
