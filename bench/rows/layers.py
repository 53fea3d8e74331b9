# SPDX-License-Identifier: BSD-3-Clause
"""Whole graph layers beside PyG's with the same weights: linear maps, self-loops, attention, bias, and the gradients of
the input and of all parameters. DGL has no build for this torch."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import CPU, OURS, Bench, Skip

FEATURES = 128
SIZES: dict[str, dict[str, Any]] = {
    "GCNConv": {"out_channels": 256},
    "GATConv": {"out_channels": 16, "heads": 8},
    "GATv2Conv": {"out_channels": 16, "heads": 8},
}
WORTH_COMPILING = 50_000  # nodes


def pyg() -> Any:
    """PyG's layers; it is pure Python and works without its extensions."""
    try:
        import torch_geometric.nn
    except ImportError as missing:
        raise Skip("torch_geometric is not installed") from missing
    return torch_geometric.nn


class Layer:
    """One layer, ours and PyG's, on one graph."""

    def __init__(self, A: csr_array, dtype: torch.dtype, name: str, device: torch.device = CPU) -> None:
        edges = A.tocoo()
        self.edge_index = torch.stack([torch.from_numpy(axis).long() for axis in edges.coords[::-1]]).to(device)
        make = torch.Generator().manual_seed(1)
        self.x = torch.randn(A.shape[0], FEATURES, dtype=dtype, generator=make).to(device).requires_grad_()
        self.name, self.dtype = name, dtype
        self.ours = getattr(gs.nn, name)(FEATURES, **SIZES[name]).to(device, dtype)
        with torch.no_grad():
            size = self.ours(self.x, self.edge_index).shape
        self.G = torch.randn(size, dtype=dtype, generator=make).to(device)

    @lru_cache(maxsize=2)  # noqa: B019  (the layer lives as long as its cell)
    def theirs(self, compiled: bool) -> Any:
        if compiled and self.x.shape[0] < WORTH_COMPILING:
            raise Skip("a small graph is not worth compiling for")
        layer = getattr(pyg(), self.name)(FEATURES, **SIZES[self.name]).to(self.x.device, self.dtype)
        layer.load_state_dict(self.ours.state_dict())
        if not compiled:
            return layer
        warnings.filterwarnings("ignore")
        return torch.compile(layer)

    def gradients(self, layer: Any) -> tuple[Tensor, ...]:
        leaves = dict(sorted(layer.named_parameters()))
        return grad(layer(self.x, self.edge_index), (self.x, *leaves.values()), self.G)


def layer_bench(name: str) -> Bench:
    return Bench(
        setup=lambda A, dtype, columns, device: Layer(A, dtype, name, device),
        forward={
            OURS: lambda i: i.ours(i.x, i.edge_index),
            "PyG": lambda i: i.theirs(False)(i.x, i.edge_index),
            "PyG compiled": lambda i: i.theirs(True)(i.x, i.edge_index),
        },
        backward={
            OURS: lambda i: i.gradients(i.ours),
            "PyG": lambda i: i.gradients(i.theirs(False)),
            "PyG compiled": lambda i: i.gradients(i.theirs(True)),
        },
        bytes_moved=lambda i: (0, 0),
        columns=(0,),
        matrices=("graph",),
        loose=100,  # a score near 0: rounding decides which slope of leaky ReLU its gradient takes
    )


BENCHES = {name: layer_bench(name) for name in SIZES}
