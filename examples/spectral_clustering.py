# SPDX-License-Identifier: BSD-3-Clause
"""Which links of a graph count? Spectral clustering, trained through the eigenvectors of a graph of citations.

The nodes are papers with words Xᵢ, the edges citations, also between topics. Spectral clustering looks at the k
smoothest vectors on the graph, those of the smallest eigenvalues of its Laplacian

    L(w) = I − D^-1/2 W D^-1/2,        W = (w_ij) on the edges, D the diagonal of its row sums,

and calls nodes alike whose rows Vᵢ of these vectors point in one direction: K_ij = Vᵢ·Vⱼ / (|Vᵢ| |Vⱼ|). All citations
count alike there, w = 1. Here their weights are learned, from the words of both ends,

    w_ij = exp(s cos(Xᵢ Θ, Xⱼ Θ)),        Θ (words, d) and s: parameters,

so that K says of the labelled nodes which class they are of: with c(i, y) the mean of K_ij over labelled j ≠ i of
class y,

    ℓ(Θ, s) = −mean over labelled i of log softmax(τ c(i, ·))[yᵢ].

Every step solves L v = λ v by shift and invert and differentiates through the vectors. K does not depend on the basis
of the k vectors, so the gradient is right where eigenvalues are equal, too. Before and after, every node takes the
class whose labelled nodes it is most alike, c(i, y). Writes clustering_accuracy.png and clustering_weights.png. A
graph is read from a folder (--data, see docs/datasets.md), of which the largest component is kept; without one a
stochastic block model with noisy features stands in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

import gossamer as gs
from report.section import run_from_command_line

TITLE = "Spectral clustering with learned weights"
SOURCE = "our own: gradients through the eigenvectors of a sparse matrix"
QUICK: dict[str, Any] = {"steps": 4}
DEFAULT: dict[str, Any] = {"steps": 60}
FULL: dict[str, Any] = {"steps": 200}
SHARPNESS = 8.0  # τ
WIDTH = 16  # d
SHIFT = -0.05  # below the spectrum: L − σ is positive definite


@dataclass
class Result:
    graph: str  # the name of the data's folder, or "synthetic"
    nodes: int
    edges: int
    vectors: int  # k
    loss: Tensor  # (steps + 1,)
    accuracy: Tensor  # (steps + 1, 3): training, validation, test
    within: Tensor  # log of the learned weights of edges within a class
    between: Tensor  # and between classes


@dataclass
class Task:
    """A connected graph: its adjacency matrix, words, classes, and the nodes of each split."""

    A: gs.SparseMatrix
    X: gs.SparseMatrix
    y: Tensor
    splits: tuple[Tensor, Tensor, Tensor]  # indices: training, validation, test


def component(A: gs.SparseMatrix) -> Tensor:
    """The nodes of the component of the node with most neighbours."""
    reached = torch.zeros(A.shape[0], dtype=torch.float64)
    reached[A.sum(1).argmax()] = 1
    while True:
        further = ((A @ reached) + reached > 0).double()
        if torch.equal(further, reached):
            return reached.nonzero().squeeze(1)
        reached = further


def task_of(graph: gs.datasets.Graph) -> Task:
    """The largest component in float64, its edges in both directions and without loops."""
    A = graph.adjacency.to(torch.float64)
    A = A + A.T
    rows, cols = A.pattern.row_indices, A.indices.long()
    straight = rows != cols
    A = gs.from_coo(rows[straight], cols[straight], torch.ones(int(straight.sum()), dtype=torch.float64), A.shape)
    nodes = component(A)
    X = graph.x if isinstance(graph.x, gs.SparseMatrix) else gs.from_dense(graph.x)
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    splits = tuple(mask[nodes].nonzero().squeeze(1) for mask in masks)
    words = X.to(torch.float64).submatrix(nodes)
    return Task(A.submatrix(nodes, nodes), words, graph.y[nodes], (splits[0], splits[1], splits[2]))


class Weights(torch.nn.Module):
    """The logarithms of the weights of the edges: s cos(Xᵢ Θ, Xⱼ Θ)."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.theta = torch.nn.Parameter(torch.randn(words, WIDTH, dtype=torch.float64) / words**0.5)
        self.s = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, task: Task) -> gs.SparseMatrix:
        Z = normalize(task.X @ self.theta, dim=1)
        return self.s * gs.sddmm(task.A.pattern, Z, Z)


def alike(log_weights: gs.SparseMatrix, k: int) -> Tensor:
    """Rows whose products are K: those of the k smoothest vectors of the Laplacian, of length 1."""
    W = log_weights.with_values(log_weights.values.exp())
    scale = W.sum(1).rsqrt()
    L = gs.eye(W.shape[0], dtype=torch.float64) - W.scale_rows(scale).scale_cols(scale)
    _, V = gs.linalg.eigsh(L, k, sigma=SHIFT)
    return normalize(V, dim=1)


def scores(V: Tensor, labelled: Tensor, y: Tensor, classes: int) -> Tensor:
    """c(i, y) for all nodes: the mean of K over the labelled nodes of each class but the node itself."""
    one_hot = torch.nn.functional.one_hot(y[labelled], classes).to(V.dtype)
    total = V @ (V[labelled].T @ one_hot)
    counts = one_hot.sum(0).expand_as(total).clone()
    own = torch.zeros_like(total).index_put((labelled,), one_hot)
    return (total - own * V.square().sum(1, keepdim=True)) / (counts - own).clamp_min(1)


def synthetic(seed: int) -> gs.datasets.Graph:
    return gs.datasets.stochastic_block_model((80,) * 4, 0.08, 0.03, num_features=40, noise=1.0, seed=seed)


def compute(
    *,
    steps: int,
    data: str | None = None,
    vectors: int | None = None,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """Train with Adam for so many steps; k is the number of classes unless ``vectors`` says so."""
    if steps < 1:
        raise ValueError(f"spectral_clustering: steps must be at least 1, not {steps}")
    graph = synthetic(seed) if data is None else gs.datasets.load(data)
    task, classes = task_of(graph), graph.num_classes
    k = classes if vectors is None else vectors
    torch.manual_seed(seed)
    weights = Weights(task.X.shape[1])
    adam = torch.optim.Adam(weights.parameters(), lr=0.05)
    labelled = task.splits[0]
    loss, accuracy = torch.empty(steps + 1), torch.empty(steps + 1, 3)
    for step in range(steps + 1):
        c = scores(alike(weights(task), k), labelled, task.y, classes)
        objective = cross_entropy(SHARPNESS * c[labelled], task.y[labelled])
        loss[step] = objective.item()
        right = (c.argmax(1) == task.y).float()
        accuracy[step] = torch.stack([right[split].mean() for split in task.splits])
        if step < steps:
            adam.zero_grad()
            objective.backward()
            adam.step()
        tick(step / steps)
    log_weights = weights(task).values.detach()
    same = task.y[task.A.pattern.row_indices] == task.y[task.A.indices.long()]
    name = "synthetic" if data is None else Path(data).resolve().name
    size = task.A.shape[0], task.A.nnz // 2
    return Result(name, *size, k, loss, accuracy, log_weights[same].float(), log_weights[~same].float())


def figures(result: Result) -> dict[str, Figure]:
    course = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    axes = course.subplots()
    for k, name in enumerate(("training", "validation", "test")):
        axes.plot(100 * result.accuracy[:, k], label=f"{name}, {100 * result.accuracy[-1, k]:.1f} at the end")
    axes.set(xlabel="step", ylabel="accuracy, %", title=f"Spectral clustering of {result.graph}, weights learned")
    axes.grid(alpha=0.3)
    axes.legend()
    weights = Figure(figsize=(7, 4.2), dpi=130, layout="constrained")
    axes = weights.subplots()
    for values, name in ((result.within, "within a class"), (result.between, "between classes")):
        axes.hist(values.numpy(), bins=40, density=True, alpha=0.6, label=f"{name}, mean {values.mean():.2f}")
    axes.set(xlabel="log of the weight", ylabel="density", title="Weights of the edges after training")
    axes.legend()
    return {"clustering_accuracy": course, "clustering_weights": weights}


def captions() -> dict[str, str]:
    return {
        "clustering_accuracy": "Share of nodes whose class is that of the labelled nodes they are most alike. At step "
        "0 all edges weigh the same.",
        "clustering_weights": "The learned weights: edges within a class, and between two. The network sees the words "
        "of both ends, and the classes of the training nodes alone.",
    }


def summary(result: Result) -> list[str]:
    before, after = 100 * result.accuracy[0], 100 * result.accuracy[-1]
    lines = [
        f"{result.nodes} nodes, {result.edges} edges, {result.vectors} vectors: the accuracy on the test nodes goes "
        f"from {before[2]:.1f} % with equal weights to {after[2]:.1f} % with learned ones, on the training nodes "
        f"from {before[0]:.1f} % to {after[0]:.1f} %.",
        f"Edges within a class weigh {(result.within.mean() - result.between.mean()).exp():.2f} times as much as those "
        "between classes, by the means of their logarithms.",
    ]
    if result.graph == "synthetic":
        lines.append("No data was given: this is a synthetic stochastic block model.")
    return lines


def main(arguments: list[str] | None = None) -> None:
    folder = "a folder such as planetoid/cora (docs/datasets.md)"
    run_from_command_line(sys.modules[__name__], arguments, full="200 steps", data=folder)


if __name__ == "__main__":
    main()
