# SPDX-License-Identifier: BSD-3-Clause
"""Mini-batches: layers on sampled blocks, as a neighbour sampler makes them, beside PyG's with the same weights.

A block has some nodes as targets and, for each, up to ten of its neighbours as sources. Nothing can be kept: each step
brings an ``edge_index`` that nobody has seen, so the time has the work on its pattern in it, forward and backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import CPU, OURS, Bench
from bench.rows.layers import pyg

FEATURES, OUT, FANOUT, TARGETS = 128, 128, 10, 24_000
HEADS = {"out_channels": 16, "heads": 8}


def sampled(A: csr_array, targets: int, seed: int = 0) -> tuple[Tensor, int, int]:
    """edge_index of a block, its numbers of targets and of sources. Targets come first among the sources, edges by
    target; the sources of a target in the order they were drawn in."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(A.shape[0], min(targets, A.shape[0]), replace=False)
    drawn = [rng.permutation(A.indices[A.indptr[i] : A.indptr[i + 1]])[:FANOUT] for i in chosen]
    target = np.repeat(np.arange(len(chosen)), [len(row) for row in drawn])
    others = np.concatenate(drawn)
    nodes = np.concatenate([chosen, np.setdiff1d(others, chosen)])
    number = np.zeros(max(A.shape), np.int64)
    number[nodes] = np.arange(len(nodes))
    return torch.from_numpy(np.stack([number[others], target])), len(chosen), len(nodes)


class Sage(torch.nn.Module):
    """PyG's SAGEConv in our products: W (the mean of the neighbours) + V x."""

    def __init__(self) -> None:
        super().__init__()
        self.lin_l, self.lin_r = torch.nn.Linear(FEATURES, OUT), torch.nn.Linear(FEATURES, OUT, bias=False)

    def forward(self, x: tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        pattern, _ = gs.graph_pattern(edge_index, (x[1].shape[0], x[0].shape[0]))
        share = 1 / pattern.indptr.diff().clamp(min=1).to(x[0].dtype)
        mean = gs.SparseMatrix(pattern, share.repeat_interleave(pattern.indptr.diff(), output_size=pattern.nnz))
        return self.lin_l(mean @ x[0]) + self.lin_r(x[1])


class Block:
    """One layer, ours and PyG's, on one block: bipartite, but for GCN, which adds itself to a square one."""

    def __init__(self, A: csr_array, dtype: torch.dtype, name: str, device: torch.device = CPU) -> None:
        edge_index, targets, sources = sampled(A, TARGETS)
        self.edge_index = edge_index.to(device)
        make = torch.Generator().manual_seed(1)
        self.x = torch.randn(sources, FEATURES, dtype=dtype, generator=make).to(device).requires_grad_()
        self.square, self.targets = name == "GCNConv", targets
        both = (FEATURES, FEATURES)
        if name == "SAGEConv":
            self.ours, self.make = Sage(), lambda: pyg().SAGEConv(both, OUT)
        elif name == "GCNConv":
            self.ours, self.make = gs.nn.GCNConv(FEATURES, OUT), lambda: pyg().GCNConv(FEATURES, OUT)
        else:
            given: dict[str, Any] = {"in_channels": both, "add_self_loops": False, **HEADS}
            self.ours, self.make = getattr(gs.nn, name)(**given), lambda: getattr(pyg(), name)(**given)
        self.ours = self.ours.to(device, dtype)
        with torch.no_grad():
            size = self.run(self.ours).shape
        self.G = torch.randn(size, dtype=dtype, generator=make).to(device)
        self.peer: Any = None

    def theirs(self) -> Any:
        if self.peer is None:
            self.peer = self.make().to(self.x.device, self.x.dtype)
            self.peer.load_state_dict(self.ours.state_dict())
        return self.peer

    def run(self, layer: Any) -> Tensor:
        edges = self.edge_index.clone()  # a new one each time
        result: Tensor = layer(self.x if self.square else (self.x, self.x[: self.targets]), edges)
        return result

    def gradients(self, layer: Any) -> tuple[Tensor, ...]:
        leaves = dict(sorted(layer.named_parameters()))
        return grad(self.run(layer), (self.x, *leaves.values()), self.G)


def batch_bench(name: str) -> Bench:
    return Bench(
        setup=lambda A, dtype, columns, device: Block(A, dtype, name, device),
        forward={OURS: lambda i: i.run(i.ours), "PyG": lambda i: i.run(i.theirs())},
        backward={OURS: lambda i: i.gradients(i.ours), "PyG": lambda i: i.gradients(i.theirs())},
        bytes_moved=lambda i: (0, 0),
        columns=(0,),
        matrices=("graph",),
        loose=100,  # as for whole layers: rounding decides which slope of leaky ReLU a gradient takes
    )


BENCHES = {f"batch {name}": batch_bench(name) for name in ("SAGEConv", "GCNConv", "GATConv", "GATv2Conv")}
