# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention beside what PyG's layers do: gather both ends, softmax by target, scatter."""

from __future__ import annotations

from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import OURS, Bench, Skip

HEADS, WIDTH = 8, 16


def pyg() -> Any:
    """PyG's functions; it is pure Python and works without its extensions."""
    try:
        from torch_geometric import utils
    except ImportError as missing:
        raise Skip("torch_geometric is not installed") from missing
    return utils


class Graph:
    """Inputs of either kind on one graph: x_src, two more, and the gradient of the result."""

    def __init__(self, A: csr_array, dtype: torch.dtype, second: bool) -> None:
        self.second = second
        self.pattern = gs.from_scipy(A).pattern
        self.pattern.transpose()
        self.target, self.source = self.pattern.row_indices, self.pattern.indices.long()
        rows, cols = A.shape
        shapes = [(rows, HEADS, WIDTH), (HEADS, WIDTH)] if second else [(cols, HEADS), (rows, HEADS)]
        generator = torch.Generator().manual_seed(1)
        sizes = [(cols, HEADS, WIDTH), *shapes, (rows, HEADS, WIDTH)]
        *given, self.G = (torch.randn(size, dtype=dtype, generator=generator) for size in sizes)
        self.given = [t.requires_grad_() for t in given]

    def fused(self) -> Tensor:
        return (gs.gatv2_attention if self.second else gs.gat_attention)(self.pattern, *self.given)

    def gathered(self) -> Tensor:
        x, b, c = self.given
        utils = pyg()
        x_j = x.index_select(0, self.source)
        if self.second:
            t = torch.nn.functional.leaky_relu(x_j + b.index_select(0, self.target), 0.2)
            e = (t * c).sum(-1)
        else:
            ends = b.index_select(0, self.source) + c.index_select(0, self.target)
            e = torch.nn.functional.leaky_relu(ends, 0.2)
        weights = utils.softmax(e, self.target, num_nodes=len(self.G))
        result: Tensor = utils.scatter(x_j * weights[..., None], self.target, dim=0, dim_size=len(self.G))
        return result

    def bytes_moved(self) -> tuple[int, int]:
        """Rows of x_src are gathered once for each edge: in the forward, then again over rows and over columns."""
        gathered = self.source.numel() * self.G[:1].nbytes
        return gathered, (4 if self.second else 3) * gathered


def attention_bench(second: bool) -> Bench:
    return Bench(
        setup=lambda A, dtype, columns: Graph(A, dtype, second),
        forward={OURS: Graph.fused, "PyG": Graph.gathered},
        backward={
            OURS: lambda i: grad(i.fused(), i.given, i.G),
            "PyG": lambda i: grad(i.gathered(), i.given, i.G),
        },
        bytes_moved=Graph.bytes_moved,
        columns=(0,),
        matrices=("graph",),
    )
