# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.studies.accuracy FOLDER: what decides the accuracy of GAT, its layers or how it is trained?

One protocol (gossamer.nn.node_classifier.train) for three networks, with the same seeds:

  ours    GATConv of gossamer
  pyg     GATConv of PyG
  paper   the layer as the authors' program has it: each head drops entries of its own input, drops entries of the
          transformed features after the scores were taken from them, has a bias in its scores, and is initialised alone
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import elu

import gossamer as gs
from bench.rows.layers import pyg
from gossamer.nn._edges import SelfLoops, edges_of
from gossamer.nn._linear import Features, Linear
from gossamer.nn.node_classifier import RECIPES, NodeClassifier, Recipe, drop, for_pubmed, row_normalized, train


class PyG(torch.nn.Module):
    """NodeClassifier with PyG's layers."""

    def __init__(self, recipe: Recipe, features: int, classes: int) -> None:
        super().__init__()
        self.p = recipe.dropout
        layer = pyg().GATConv
        self.first = layer(features, recipe.hidden, recipe.heads, dropout=self.p)
        wide = recipe.hidden * recipe.heads
        self.second = layer(wide, classes, recipe.out_heads, concat=False, dropout=self.p)

    def forward(self, x: Tensor, adjacency: gs.SparseMatrix) -> Tensor:
        edge_index = torch.stack([adjacency.indices.long(), adjacency.pattern.row_indices])
        dropout = torch.nn.functional.dropout
        hidden = elu(self.first(dropout(x, self.p, self.training), edge_index))
        return self.second(dropout(hidden, self.p, self.training), edge_index)


class PaperLayer(torch.nn.Module):
    """One layer of the authors' program; heads are drawn and dropped one by one."""

    def __init__(self, features: int, out: int, heads: int, concat: bool, p: float) -> None:
        super().__init__()
        self.concat, self.p = concat, p
        self.transforms = torch.nn.ModuleList(Linear(features, out) for _ in range(heads))
        self.sources = torch.nn.ModuleList(Linear(out, 1) for _ in range(heads))
        self.targets = torch.nn.ModuleList(Linear(out, 1) for _ in range(heads))
        self.score_bias = torch.nn.Parameter(torch.zeros(2, heads))
        self.bias = torch.nn.Parameter(torch.zeros(heads, out))

    def forward(self, x: Features, adjacency: gs.SparseMatrix) -> Tensor:
        P = edges_of("PaperLayer", adjacency, adjacency.shape, SelfLoops.REPLACE).pattern
        heads = [transform(drop(x, self.p, self.training)) for transform in self.transforms]
        source = torch.cat([s(z) for s, z in zip(self.sources, heads, strict=True)], 1) + self.score_bias[0]
        target = torch.cat([t(z) for t, z in zip(self.targets, heads, strict=True)], 1) + self.score_bias[1]
        dropped = gs.dropout(torch.stack(heads, 1), self.p, self.training)
        p = self.p if self.training else 0.0
        Z = gs.gat_attention(P, dropped, source, target, None, negative_slope=0.2, dropout=p) + self.bias
        return Z.flatten(1) if self.concat else Z.mean(1)


class Paper(torch.nn.Module):
    """The network of the authors' program."""

    def __init__(self, recipe: Recipe, features: int, classes: int) -> None:
        super().__init__()
        wide = recipe.hidden * recipe.heads
        self.first = PaperLayer(features, recipe.hidden, recipe.heads, True, recipe.dropout)
        self.second = PaperLayer(wide, classes, recipe.out_heads, False, recipe.dropout)

    def forward(self, x: Features, adjacency: gs.SparseMatrix) -> Tensor:
        return self.second(elu(self.first(x, adjacency)), adjacency)


NETWORKS: dict[str, Any] = {"ours": NodeClassifier, "pyg": PyG, "paper": Paper}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.accuracy", description=__doc__)
    parser.add_argument("folder", help="a graph in the format of docs/datasets.md")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--networks", default="ours,pyg,paper", help="which of them, in this order")
    parser.add_argument("--pubmed", action="store_true", help="the settings of the paper for PubMed")
    parser.add_argument("--epochs", type=int, default=RECIPES["gat"].epochs)
    options = parser.parse_args(arguments)
    recipe = for_pubmed(RECIPES["gat"]) if options.pubmed else RECIPES["gat"]
    recipe = replace(recipe, epochs=options.epochs)
    graph = row_normalized(gs.datasets.load(options.folder))
    dense = replace(graph, x=graph.x.to_dense() if isinstance(graph.x, gs.SparseMatrix) else graph.x)
    for name in options.networks.split(","):
        given = dense if name == "pyg" else graph
        results = [train(given, recipe, seed, network=NETWORKS[name])[1] for seed in range(options.runs)]
        test = [100 * result.test for result in results]
        spread = f" ± {stdev(test):.1f}" if len(test) > 1 else ""
        epochs = mean(result.epochs for result in results)
        print(f"{name}: test {mean(test):.1f}%{spread} over {len(test)} runs, {epochs:.0f} epochs", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
