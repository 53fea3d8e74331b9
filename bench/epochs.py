# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.epochs FOLDER …: a training epoch of the papers' networks, ours with sparse features beside PyG's.

An epoch is zero_grad, forward with dropout, backward and a step of Adam. Both take turns; the best is told.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy, dropout, elu, relu

import gossamer as gs
from bench import machine
from bench.race import race
from bench.rows.layers import pyg
from gossamer.nn.node_classifier import RECIPES, NodeClassifier, row_normalized


class Theirs(torch.nn.Module):
    """The network of gossamer.nn.node_classifier in PyG's layers, on dense features."""

    def __init__(self, net: NodeClassifier, features: int, classes: int) -> None:
        super().__init__()
        self.recipe = how = net.recipe
        nn = pyg()
        self.first: Any
        self.second: Any
        if how.model == "gcn":
            self.first, self.second = nn.GCNConv(features, how.hidden), nn.GCNConv(how.hidden, classes)
        else:
            layer = {"gat": nn.GATConv, "gatv2": nn.GATv2Conv}[how.model]
            self.first = layer(features, how.hidden, how.heads, dropout=how.dropout)
            self.second = layer(how.hidden * how.heads, classes, how.out_heads, concat=False, dropout=how.dropout)
        self.load_state_dict(net.state_dict())

    def forward(self, x: Any, edge_index: Any) -> Any:
        p, activate = self.recipe.dropout, relu if self.recipe.model == "gcn" else elu
        hidden = activate(self.first(dropout(x, p, self.training), edge_index))
        return self.second(dropout(hidden, p, self.training), edge_index)


def epoch(net: torch.nn.Module, x: Any, adjacency: Any, graph: gs.datasets.Graph) -> Callable[[], None]:
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)

    def step() -> None:
        optimizer.zero_grad()
        out = net(x, adjacency)
        cross_entropy(out[graph.train_mask], graph.y[graph.train_mask]).backward()
        optimizer.step()

    return step


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.epochs", description=__doc__)
    parser.add_argument("folders", nargs="+", help="graphs in the format of docs/datasets.md")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each contender")
    parser.add_argument("--malloc", choices=["default", "keep"], default="default", help="keep: free nothing")
    options = parser.parse_args(arguments)
    print(f"malloc: {machine.use_malloc(options.malloc)}; threads: {options.threads}")
    torch.set_num_threads(options.threads)
    for folder in options.folders:
        graph = row_normalized(gs.datasets.load(folder))
        x = graph.x.to_dense() if isinstance(graph.x, gs.SparseMatrix) else graph.x
        edge_index = torch.stack([graph.adjacency.indices.long(), graph.adjacency.pattern.row_indices])
        for name, recipe in RECIPES.items():
            ours = NodeClassifier(recipe, graph.num_features, graph.num_classes)
            theirs = Theirs(ours, graph.num_features, graph.num_classes)
            runs = {
                "gossamer": epoch(ours, graph.x, graph.adjacency, graph),
                "PyG": epoch(theirs, x, edge_index, graph),
            }
            best = {who: 1e3 * min(times) for who, times in race(runs, options.seconds).items()}
            ratio = best["PyG"] / best["gossamer"]
            print(f"{folder} {name}: gossamer {best['gossamer']:.2f} ms, PyG {best['PyG']:.2f} ms, {ratio:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
