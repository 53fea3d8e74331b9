# SPDX-License-Identifier: BSD-3-Clause
"""Full-graph training of GCN and GATv2 on a graph that the processes share, whatever becomes of one of them.

    torchrun --standalone --nproc-per-node 4 --max-restarts 2 -m examples.distributed.training --model gatv2

Every process owns some nodes: their features, their labels and the edges that point at them. A layer fetches what its
edges want of others (the halo), the fused kernels work on own rows, DistributedDataParallel adds up the gradients of
the parameters, and the loss is the mean over the training nodes of all processes. What a step draws depends on its
number alone, and every few steps are kept with torch.distributed.checkpoint: a run whose process is killed is started
again by torchrun and ends with the same bits as one that was left in peace (--kill-at shows it).

Graphs: Coauthor CS from a folder (--data, see docs/datasets.md); or a power-law graph (power_law.py), of which every
process makes its own rows, so that it is never whole anywhere. The real one is --nodes 2000000.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import gossamer as gs
from examples.distributed import elastic, power_law
from examples.distributed.elastic import total
from gossamer.nn.node_classifier import row_normalized


@dataclass(frozen=True)
class Share:
    """What one process has of a graph: rows of the matrix, and the data of its nodes."""

    A: Any
    x: Tensor | gs.SparseMatrix
    y: Tensor
    trained: Tensor
    classes: int


class Network(torch.nn.Module):
    """Two layers of either kind; attention drops a part of its weights."""

    def __init__(self, model: str, features: int, classes: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.first: torch.nn.Module
        self.second: torch.nn.Module
        if model == "gcn":
            self.first = gs.nn.GCNConv(features, hidden * heads, cached=True)
            self.second = gs.nn.GCNConv(hidden * heads, classes, cached=True)
        else:
            self.first = gs.nn.GATv2Conv(features, hidden, heads, dropout=dropout)
            self.second = gs.nn.GATv2Conv(hidden * heads, classes, concat=False, dropout=dropout)

    def forward(self, x: Tensor | gs.SparseMatrix, A: Any) -> Tensor:
        out: Tensor = self.second(self.first(x, A).relu(), A)
        return out


def size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def generated(nodes: int, features: int, seed: int) -> Share:
    """This process's rows of the power-law graph: an equal share of the nodes, in their order."""
    offsets = torch.arange(size() + 1) * nodes // size()
    first, last = offsets[rank()].item(), offsets[rank() + 1].item()
    own = power_law.rows(int(first), int(last), nodes, features, seed)
    A = gs.distributed.from_rows(own.indptr, own.columns, torch.ones(len(own.columns)), offsets, (nodes, nodes))
    return Share(A, own.x, own.y, own.trained, power_law.CLASSES)


def coauthors(folder: Path) -> Share:
    """Coauthor CS, which is small enough to be read whole; each process keeps its part, by METIS where it is there."""
    graph = row_normalized(gs.datasets.load(str(folder)))
    parts = gs.distributed.partition(graph.adjacency, size())
    if dist.is_initialized():
        dist.broadcast(parts, src=0)  # they are the same everywhere, unless METIS is installed on some machines only
    A = gs.distributed.scatter(graph.adjacency, parts=parts)
    own = A.row_keys
    x = graph.x.to_dense() if isinstance(graph.x, gs.SparseMatrix) else graph.x
    return Share(A, x[own], graph.y[own], graph.train_mask[own], graph.num_classes)


def die_if_asked(options: argparse.Namespace, step: int) -> None:
    """To be seen: SIGKILL to the last process before the given step, in the first attempt."""
    if step == options.kill_at and elastic.attempt() == 0 and rank() == size() - 1:
        os.kill(os.getpid(), signal.SIGKILL)


def train(options: argparse.Namespace, share: Share) -> tuple[torch.nn.Module, list[float], float]:
    """The network, the loss of every step, and the seconds that a step took."""
    torch.manual_seed(options.seed)
    net: torch.nn.Module = Network(
        options.model, share.x.shape[1], share.classes, options.hidden, options.heads, options.dropout
    )
    if dist.is_initialized():
        # find_unused_parameters, although there are none: otherwise DDP packs the gradients anew after its first step,
        # by the order they came in, and gloo adds those of three and more processes in an order that depends on the
        # packing. A killed run has its first step once more, and would have other last bits than one left in peace.
        net = DistributedDataParallel(net, find_unused_parameters=True)
    adam = torch.optim.Adam(net.parameters(), lr=options.lr)
    folder: Path | None = options.checkpoint
    losses = [] if folder is None else elastic.restore(folder, net, adam)
    counted = total(share.trained.sum()).item()
    begun, time_of_start = len(losses), time.perf_counter()
    for step in range(begun, options.epochs):
        die_if_asked(options, step)
        torch.manual_seed(options.seed + step)  # of the dropout: a step draws the same whatever came before it
        adam.zero_grad()
        out = net(share.x, share.A)
        loss = cross_entropy(out[share.trained], share.y[share.trained], reduction="sum") / counted
        (loss * size()).backward()  # what is differentiated is the sum over processes; DDP takes their mean
        adam.step()
        losses.append(total(loss.detach()).item())
        if folder is not None and (step + 1) % options.every == 0:
            elastic.save(folder, net, adam, losses)
    return net, losses, (time.perf_counter() - time_of_start) / max(options.epochs - begun, 1)


@torch.no_grad()
def accuracy(net: torch.nn.Module, share: Share) -> float:
    """Over the nodes that were not trained on."""
    net.eval()
    right = net(share.x, share.A).argmax(1) == share.y
    tested = ~share.trained
    return (total((right & tested).sum()) / total(tested.sum())).item()


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun … -m examples.distributed.training", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", choices=("gcn", "gatv2"), default="gcn")
    parser.add_argument("--data", type=Path, help="a folder with Coauthor CS; a power-law graph without one")
    parser.add_argument("--nodes", type=int, default=20_000, help="of the power-law graph (20000)")
    parser.add_argument("--features", type=int, default=32, help="of its nodes (32)")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=16, help="features of a head (16)")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1, help="of attention's weights (0.1)")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="folder; what is in it is continued")
    parser.add_argument("--every", type=int, default=5, help="steps from one checkpoint to the next (5)")
    parser.add_argument("--kill-at", type=int, help="kill a process before this step, once")
    parser.add_argument("--out", type=Path, help="file for what the first process found, as JSON")
    return parser


def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    elastic.start_group()
    share = coauthors(options.data) if options.data else generated(options.nodes, options.features, options.seed)
    before = torch.ops.gossamer.distributed_bytes_sent()
    net, losses, seconds = train(options, share)
    sent = torch.ops.gossamer.distributed_bytes_sent() - before
    own, columns = share.A.pattern.shape
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = f"{own} nodes, halo {columns - own}, {share.A.nnz} edges, {seconds:.2f} s an epoch, peak {memory:.0f} MB"
    print(f"rank {rank()}: {lines}, {sent / 1e6:.1f} MB sent", flush=True)
    facts = torch.zeros(size(), 5, dtype=torch.float64)
    facts[rank()] = torch.tensor([own, columns - own, share.A.nnz, memory, sent], dtype=torch.float64)
    facts = total(facts)
    found = {
        "losses": losses,
        "accuracy": accuracy(net, share),
        "seconds": seconds,
        "attempts": elastic.attempt() + 1,
        "ranks": [dict(zip(("own", "halo", "edges", "memory", "sent"), row, strict=True)) for row in facts.tolist()],
        "weights": {name: value.flatten().tolist() for name, value in net.state_dict().items()},
    }
    if rank() == 0:
        print(f"loss {losses[0]:.4f} … {losses[-1]:.4f}, accuracy {found['accuracy']:.4f}", flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(found))
    elastic.end_group()


if __name__ == "__main__":
    main()
