# SPDX-License-Identifier: BSD-3-Clause
"""The two-layer networks of the GCN, GAT and GATv2 papers, and their training on a graph with a fixed split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, elu, relu

from gossamer._attention import dropout
from gossamer._files import PathLike
from gossamer._sparse_matrix import SparseMatrix
from gossamer.datasets import Graph
from gossamer.nn._checkpoint import Checkpoint
from gossamer.nn._gat_conv import GATConv
from gossamer.nn._gatv2_conv import GATv2Conv
from gossamer.nn._gcn_conv import GCNConv
from gossamer.nn._linear import Features


@dataclass(frozen=True)
class Recipe:
    """How a network is built and trained. The defaults of each model are those of its paper."""

    model: str
    hidden: int
    heads: int
    out_heads: int
    dropout: float
    lr: float
    weight_decay: float
    epochs: int
    patience: int  # epochs without a better validation loss or accuracy before stopping; 0: none


RECIPES = {
    "gcn": Recipe("gcn", 16, 1, 1, 0.5, 0.01, 5e-4, 200, 0),
    "gat": Recipe("gat", 8, 8, 1, 0.6, 0.005, 5e-4, 1000, 100),
    "gatv2": Recipe("gatv2", 8, 8, 1, 0.6, 0.005, 5e-4, 1000, 100),
}


def for_pubmed(recipe: Recipe) -> Recipe:
    """The GAT paper's changes for PubMed, a graph with only 60 training nodes; GCN's settings are the same for all."""
    if recipe.model == "gcn":
        raise ValueError(
            "for_pubmed: wants a recipe of gat or gatv2, not of gcn, whose settings are the same for PubMed"
        )
    return replace(recipe, out_heads=8, lr=0.01, weight_decay=1e-3)


def drop(x: Features, p: float, training: bool) -> Features:
    """Dropout; of a sparse matrix only the stored entries can be dropped, the others are zero."""
    return x.map(lambda v: dropout(v, p, training)) if isinstance(x, SparseMatrix) else dropout(x, p, training)


class NodeClassifier(torch.nn.Module):
    """Two layers: hidden with ReLU (GCN) or concatenated heads and ELU (GAT), then one score a class."""

    def __init__(self, recipe: Recipe, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.recipe = recipe
        self.first: GCNConv | GATConv | GATv2Conv
        self.second: GCNConv | GATConv | GATv2Conv
        if recipe.model == "gcn":
            self.first, self.second = GCNConv(num_features, recipe.hidden), GCNConv(recipe.hidden, num_classes)
            return
        layer = {"gat": GATConv, "gatv2": GATv2Conv}[recipe.model]
        wide = recipe.hidden * recipe.heads
        self.first = layer(num_features, recipe.hidden, recipe.heads, dropout=recipe.dropout)
        self.second = layer(wide, num_classes, recipe.out_heads, concat=False, dropout=recipe.dropout)

    def forward(self, x: Features, adjacency: Tensor | SparseMatrix) -> Tensor:
        p = self.recipe.dropout
        activate = relu if self.recipe.model == "gcn" else elu
        hidden = activate(self.first(drop(x, p, self.training), adjacency))
        out: Tensor = self.second(dropout(hidden, p, self.training), adjacency)
        return out


@dataclass(frozen=True)
class Trained:
    """The accuracies at the epoch that was best on the validation nodes, or the last one without patience."""

    train: float
    val: float
    test: float
    epochs: int
    losses: list[float]


def row_normalized(graph: Graph) -> Graph:
    """Features that add up to 1 in each node, as the papers use them; a node without features keeps none."""
    total = graph.x.sum(1)
    scale = torch.where(total == 0, torch.ones_like(total), 1 / total)
    x = graph.x.scale_rows(scale) if isinstance(graph.x, SparseMatrix) else graph.x * scale[:, None]
    return replace(graph, x=x)


def train(
    graph: Graph,
    recipe: Recipe,
    seed: int = 0,
    progress: Callable[[int, float, float], None] | None = None,
    network: Callable[[Recipe, int, int], Any] = NodeClassifier,
    resume: PathLike | None = None,
) -> tuple[Any, Trained]:
    """Adam on the cross entropy of the training nodes. Weight decay is on the first layer for GCN, on all for GAT.

    ``progress(epoch, loss, validation accuracy)`` is called after each epoch. With patience, training stops when
    neither the validation loss nor the accuracy has improved for that long, and the best parameters are restored.
    ``network`` makes what is trained: a module whose layers are called ``first`` and ``second``. ``resume`` is a file
    that holds the state after each epoch: if it is there, the training goes on from it and ends with the same bits.
    """
    torch.manual_seed(seed)
    net = network(recipe, graph.num_features, graph.num_classes)
    if isinstance(graph.x, SparseMatrix):
        net = net.to(graph.x.dtype)
    second_decay = 0.0 if recipe.model == "gcn" else recipe.weight_decay
    groups = [
        {"params": net.first.parameters(), "weight_decay": recipe.weight_decay},
        {"params": net.second.parameters(), "weight_decay": second_decay},
    ]
    optimizer = torch.optim.Adam(groups, lr=recipe.lr)
    best, losses, epoch = Best(), list[float](), 0
    checkpoint = None if resume is None else Checkpoint(resume, recipe, seed, graph)
    if checkpoint is not None and checkpoint.state is not None:
        net.load_state_dict(checkpoint.state["net"])
        optimizer.load_state_dict(checkpoint.state["optimizer"])
        best, losses, epoch = Best(**checkpoint.state["best"]), checkpoint.state["losses"], checkpoint.state["epoch"]
    while epoch < recipe.epochs and not 0 < recipe.patience <= best.waited:
        epoch += 1
        net.train()
        optimizer.zero_grad()
        out = net(graph.x, graph.adjacency)
        loss = cross_entropy(out[graph.train_mask], graph.y[graph.train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if recipe.patience or progress is not None:
            val_loss, val_accuracy = validate(net, graph)
            if recipe.patience:
                best.see(net, val_loss, val_accuracy)
        if checkpoint is not None:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "best": vars(best)}
            checkpoint.save({**state, "losses": losses, "epoch": epoch})
        if progress is not None:
            progress(epoch, losses[-1], val_accuracy)
    if best.state is not None:
        net.load_state_dict(best.state)
    return net, Trained(*accuracies(net, graph), epoch, losses)


@dataclass
class Best:
    """The best validation so far, and the parameters that had it."""

    loss: float = float("inf")
    accuracy: float = 0.0
    state: dict[str, Tensor] | None = None
    waited: int = 0  # epochs since either has improved

    def see(self, net: torch.nn.Module, loss: float, accuracy: float) -> None:
        """Another epoch."""
        if loss > self.loss and accuracy < self.accuracy:
            self.waited += 1
            return
        if loss <= self.loss and accuracy >= self.accuracy:
            self.state = {name: value.clone() for name, value in net.state_dict().items()}
        self.loss, self.accuracy, self.waited = min(self.loss, loss), max(self.accuracy, accuracy), 0


@torch.no_grad()
def validate(net: torch.nn.Module, graph: Graph) -> tuple[float, float]:
    """Loss and accuracy on the validation nodes."""
    net.eval()
    out, y = net(graph.x, graph.adjacency)[graph.val_mask], graph.y[graph.val_mask]
    return cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


@torch.no_grad()
def accuracies(net: torch.nn.Module, graph: Graph) -> tuple[float, float, float]:
    """On the training, validation and test nodes."""
    net.eval()
    right = net(graph.x, graph.adjacency).argmax(1) == graph.y
    masks = graph.train_mask, graph.val_mask, graph.test_mask
    train, val, test = (right[mask].float().mean().item() for mask in masks)
    return train, val, test
