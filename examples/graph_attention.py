# SPDX-License-Identifier: BSD-3-Clause
"""Where does graph attention look? GAT and GATv2 on citation graphs, and the weights they learn.

A node i gathers from its neighbours j (itself among them) with weights s that add up to 1. With head k's projected
features xⱼ = W hⱼ,

    GAT      eᵢⱼ = leaky_relu(a_dst · xᵢ + a_src · xⱼ)            sᵢⱼ = exp(eᵢⱼ) / Σ_l exp(e_il)
    GATv2    eᵢⱼ = a · leaky_relu(W_dst hᵢ + W_src hⱼ)            zᵢ  = Σⱼ sᵢⱼ xⱼ  (GATv2: xⱼ = W_src hⱼ)

In GAT the order of a node's neighbours by weight is the same for every node that looks at them, since a_src · xⱼ alone
decides it; in GATv2 it depends on i. How selective attention is, its entropy tells: with dᵢ edges that point at i,

    0 ≤ Hᵢ = −Σⱼ sᵢⱼ log sᵢⱼ ≤ log dᵢ,

with log dᵢ reached by the plain mean, sᵢⱼ = 1/dᵢ, and exp(Hᵢ) the number of neighbours that effectively count.

Two layers, 8 heads with 8 features and ELU, then one score a class; trained as in the GAT paper (docs/nn.md). Graphs
come from --data, a folder with cora, citeseer or pubmed in it. A stochastic block model in which half of a node's
neighbours mislead is always among them, and alone without --data. Writes attention_neighbourhood.png (the weights
around one node), attention_entropy.png (Hᵢ of all nodes beside log dᵢ) and attention_gap.png (log dᵢ − Hᵢ).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import elu

import gossamer as gs
from gossamer.nn.node_classifier import RECIPES, NodeClassifier, for_pubmed, row_normalized, train
from report.papers import GOULD
from report.section import run_from_command_line

TITLE = "Where graph attention looks"
SOURCE = f"{GOULD}, Eqs. 2–14: GAT and GATv2 on Cora, CiteSeer and PubMed"
QUICK: dict[str, Any] = {"runs": 1, "epochs": {"cora": 3, "citeseer": 3, "pubmed": 1, "synthetic": 8}}
DEFAULT: dict[str, Any] = {"runs": 1, "epochs": {"cora": 1000, "citeseer": 200, "synthetic": 500}}
FULL: dict[str, Any] = {"runs": 10, "epochs": {"cora": 1000, "citeseer": 1000, "pubmed": 1000, "synthetic": 1000}}
GRAPHS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "synthetic": "the synthetic graph"}
PAPER = {"cora": "83.0 ± 0.7 %", "citeseer": "72.5 ± 0.7 %", "pubmed": "79.0 ± 0.3 %"}  # GAT, 100 runs
SHORT = GRAPHS | {"synthetic": "synthetic"}
MODELS = {"gat": "GAT", "gatv2": "GATv2"}
LAYERS = ("hidden", "tab:blue", 0.8, 3), ("output", "tab:orange", 2.2, 2)  # colour, width, which one is in front


@dataclass
class Result:
    """Everything by the name of the graph, weights and accuracies then by model."""

    epochs: dict[str, int]  # at most
    accuracy: dict[str, dict[str, list[float]]]  # on the test nodes, one a run
    edge_index: dict[str, Tensor]  # (2, E) with one self-loop a node: sources above targets
    weights: dict[str, dict[str, list[Tensor]]]  # of the first run, (E, heads) for each layer
    y: dict[str, Tensor]  # (N,)
    node: dict[str, int]  # whose neighbourhood is drawn


@torch.no_grad()
def attend(net: NodeClassifier, graph: gs.datasets.Graph) -> tuple[Tensor, list[Tensor]]:
    """The edges, and the attention weights (E, heads) of both layers of a trained network."""
    net.eval()
    out, (edge_index, first) = net.first(graph.x, graph.adjacency, return_attention_weights=True)
    _, (_, second) = net.second(elu(out), graph.adjacency, return_attention_weights=True)
    return edge_index, [first, second]


def entropy(edge_index: Tensor, weights: Tensor, nodes: int) -> Tensor:
    """(N, heads): Hᵢ = −Σⱼ sᵢⱼ log sᵢⱼ, with 0 log 0 = 0."""
    return torch.zeros(nodes, weights.shape[1]).index_add(0, edge_index[1], torch.special.entr(weights))


def degrees(edge_index: Tensor, nodes: int) -> Tensor:
    """(N,): how many edges point at each node."""
    return torch.bincount(edge_index[1], minlength=nodes)


def effective_share(edge_index: Tensor, weights: Tensor, nodes: int) -> float:
    """Mean of exp(Hᵢ) / dᵢ over heads and nodes with two neighbours or more: 1 for a plain mean, 1/d for one only."""
    d = degrees(edge_index, nodes)
    share = entropy(edge_index, weights, nodes).exp() / d[:, None]
    return float(share[d >= 3].mean())


def telling_node(edge_index: Tensor, weights: dict[str, list[Tensor]], test: Tensor) -> int:
    """The test node with 8 to 14 edges, or the one with most edges, whose attention is furthest from uniform."""
    nodes = len(test)
    d = degrees(edge_index, nodes)
    gap = sum(d.log()[:, None].sub(entropy(edge_index, layers[0], nodes)).mean(1) for layers in weights.values())
    good = test & (d >= 8) & (d <= 14)
    return int(torch.where(good, gap, -1.0).argmax() if good.any() else d.argmax())


def synthetic() -> gs.datasets.Graph:
    """Four blocks; half of a node's neighbours are of other classes, and their features give them away."""
    return gs.datasets.stochastic_block_model((150,) * 4, 0.03, 0.01, num_features=16, noise=0.7, seed=0)


def load(data: str | None, wanted: Iterable[str]) -> dict[str, gs.datasets.Graph]:
    """Those of the wanted graphs that are found in the folder, by name; the synthetic one is always there."""
    made = {"synthetic": synthetic()}
    if data is None:
        return made
    names = [name for name in wanted if name in PAPER]
    found = {name: Path(data, name) for name in names if Path(data, name).is_dir()}
    if not found:
        raise FileNotFoundError(f"graph_attention: data must be a folder with {' or '.join(names)} in it, not {data}")
    return {name: row_normalized(gs.datasets.load(folder)) for name, folder in found.items()} | made


def compute(
    *,
    runs: int,
    epochs: dict[str, int],
    data: str | None = None,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """Train both models on the graphs that ``epochs`` names, at most so long; attention is the first run's."""
    graphs = load(data, epochs)
    jobs = [(name, model, k) for name in graphs for model in MODELS for k in range(runs)]
    result = Result({name: epochs[name] for name in graphs}, {}, {}, {}, {}, {})
    for done, (name, model, k) in enumerate(jobs):
        graph, recipe = graphs[name], RECIPES[model]
        recipe = replace(for_pubmed(recipe) if name == "pubmed" else recipe, epochs=epochs[name])

        def show(epoch: int, *_: float, done: int = done, most: int = recipe.epochs) -> None:
            tick((done + epoch / most) / len(jobs))

        net, trained = train(graph, recipe, seed + k, show)
        tick((done + 1) / len(jobs))
        result.accuracy.setdefault(name, {}).setdefault(model, []).append(trained.test)
        if k == 0:
            result.edge_index[name], result.weights.setdefault(name, {})[model] = attend(net, graph)
    for name, graph in graphs.items():
        result.y[name] = graph.y
        result.node[name] = telling_node(result.edge_index[name], result.weights[name], graph.test_mask)
    return result


FAINT_TO_STRONG = LinearSegmentedColormap.from_list("faint to strong", ["tab:blue", "darkgrey", "tab:red"])


def star(axes: Axes, node: int, sources: list[int], ratio: list[float], y: Tensor, norm: TwoSlopeNorm) -> None:
    """A node with its neighbours around it; the ring is its edge to itself. Wide and red: above a plain mean."""
    classes = colormaps["Dark2"]
    around = [j for j in sources if j != node]
    angle = {j: pi / 2 - 2 * pi * k / len(around) for k, j in enumerate(around)}
    for j, r in zip(sources, ratio, strict=True):
        look = {"color": FAINT_TO_STRONG(norm(r)), "linewidth": 0.4 + 1.2 * min(r, 3.0)}
        if j == node:
            axes.plot([0.3 * cos(t * pi / 20) for t in range(41)], [0.3 * sin(t * pi / 20) for t in range(41)], **look)
        else:
            axes.plot([0, cos(angle[j])], [0, sin(angle[j])], **look, zorder=1)
            axes.plot(cos(angle[j]), sin(angle[j]), "o", color=classes(int(y[j]) % 8), markersize=5.5)
    axes.plot(0, 0, "o", color=classes(int(y[node]) % 8), markersize=7)
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def neighbourhood(result: Result) -> Figure:
    """A row a graph, GAT left, GATv2 right: the first four heads of the hidden layer, then the output layer."""
    norm = TwoSlopeNorm(1.0, 0.0, 2.0)
    figure = Figure(figsize=(13, 0.7 + 1.4 * len(result.y)), dpi=130, layout="constrained")
    figure.suptitle("Attention of one node to its neighbours, class by colour")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.05, wspace=0, hspace=0)
    grid = figure.subplots(len(result.y), 11, squeeze=False, width_ratios=[1] * 5 + [0.3] + [1] * 5)
    for row, (name, edges) in zip(grid, result.edge_index.items(), strict=True):
        at = (edges[1] == result.node[name]).nonzero().flatten()
        at = at[result.y[name][edges[0, at]].argsort(stable=True)]  # classes stand together
        row[5].axis("off")
        for half, (hidden, output) in zip((row[:5], row[6:]), result.weights[name].values(), strict=True):
            names = [f"head {k}" for k in range(1, 5)] + ["output"]
            for axes, which, s in zip(half, names, (*hidden.T[:4], output.mean(1)), strict=True):
                ratio = (s[at] * len(at)).tolist()  # 1 for a plain mean
                star(axes, result.node[name], edges[0, at].tolist(), ratio, result.y[name], norm)
                axes.set_xlabel(which, fontsize=8)
        row[0].set_ylabel(SHORT[name])
    for middle, model in zip((grid[0, 2], grid[0, 8]), MODELS.values(), strict=True):
        middle.set_title(model)
    scale = figure.colorbar(ScalarMappable(norm, FAINT_TO_STRONG), ax=grid, extend="max", ticks=[0, 1, 2], aspect=25)
    scale.set_label("weight $d_i\\, s_{ij}$, 1 in a plain mean", fontsize=9)
    return figure


def distributions(result: Result, gap: bool) -> Figure:
    """A row a graph, GAT left, GATv2 right: over the nodes, the entropy beside that of a plain mean, or their gap."""
    figure = Figure(figsize=(10, 0.9 + 2.5 * len(result.y)), dpi=130, layout="constrained")
    grid = figure.subplots(len(result.y), 2, squeeze=False, sharex=True, sharey=True)
    for row, (name, edges) in zip(grid, result.edge_index.items(), strict=True):
        uniform = degrees(edges, len(result.y[name])).log()
        for axes, (model, layers) in zip(row, result.weights[name].items(), strict=True):
            if not gap:
                axes.ecdf(uniform, color="grey", linewidth=4.5, alpha=0.55, label="plain mean, log $d_i$")
            for (layer, colour, width, front), s in zip(LAYERS, layers, strict=True):
                for k, H in enumerate(entropy(edges, s, len(uniform)).T):
                    label = f"{layer} layer, a line a head" if k == 0 else None
                    shown = (uniform - H).clamp(min=1e-7) if gap else H  # rounding may make the gap negative
                    axes.ecdf(shown, color=colour, linewidth=width, label=label, zorder=front)
            axes.set_title(f"{MODELS[model]} on {SHORT[name]}", fontsize=11)
            axes.grid(alpha=0.3)
        row[0].set_ylabel("share of nodes up to there")
    grid[0, 0].legend(loc="upper left", fontsize=8)
    for axes in grid[-1]:
        if gap:
            axes.set(xlabel="gap to a plain mean, log $d_i$ − $H_i$, nats", xscale="log", xlim=(1e-6, 2))
        else:
            axes.set(xlabel="entropy $H_i$ of a node's attention, nats", xlim=(0, 3.5))
    figure.suptitle("How far is attention from a plain mean?" if gap else "How selective is attention?")
    return figure


def figures(result: Result) -> dict[str, Figure]:
    entropy, gap = (distributions(result, gap) for gap in (False, True))
    return {"attention_neighbourhood": neighbourhood(result), "attention_entropy": entropy, "attention_gap": gap}


def captions() -> dict[str, str]:
    return {
        "attention_neighbourhood": "Weights of the edges that point at one node, chosen for its uneven attention: grey "
        "is what a plain mean would give, red and wide is more, blue and thin is less; the ring is the node itself. On "
        "the synthetic graph a trained GATv2 prefers neighbours of the node's own class.",
        "attention_entropy": "Distribution over the nodes of the attention's entropy beside that of log d, the entropy "
        "of a plain mean over the same neighbours: the further left of grey, the fewer neighbours count.",
        "attention_gap": "The same as a difference, on a logarithmic scale: at 0.1 nats a tenth fewer neighbours count "
        "than in a plain mean. On the citation graphs most attention is far below that.",
    }


def summary(result: Result) -> list[str]:
    lines = []
    for name, models in result.accuracy.items():
        found = {model: 100 * torch.tensor(tests) for model, tests in models.items()}
        runs = len(found["gat"])
        spread = {model: f" ± {tests.std():.1f}" if runs > 1 else "" for model, tests in found.items()}
        told = ", ".join(f"{MODELS[model]} {tests.mean():.1f}{spread[model]} %" for model, tests in found.items())
        how = f"{runs} run{'s' * (runs > 1)} of at most {result.epochs[name]} epochs"
        paper = f" (the GAT paper's: {PAPER[name]})" if name in PAPER else ""
        lines.append(f"Test accuracy on {GRAPHS[name]}, {how}: {told}{paper}.")
    for name, edges in result.edge_index.items():
        share = {m: [effective_share(edges, s, len(result.y[name])) for s in result.weights[name][m]] for m in MODELS}
        told = "; ".join(f"{MODELS[model]} {100 * a:.1f} % and {100 * b:.1f} %" for model, (a, b) in share.items())
        count = f"Neighbours that effectively count, exp(H)/d, on {GRAPHS[name]}"
        lines.append(f"{count} in the hidden and the output layer: {told} (a plain mean: 100 %).")
    if list(result.accuracy) == ["synthetic"]:
        lines.append("No data was given: all of this is on a synthetic stochastic block model.")
    return lines


def main(arguments: list[str] | None = None) -> None:
    run_from_command_line(
        sys.modules[__name__],
        arguments,
        full="10 runs of up to 1000 epochs, as in the paper",
        data="a folder with cora, citeseer or pubmed in it (docs/datasets.md)",
    )


if __name__ == "__main__":
    main()
