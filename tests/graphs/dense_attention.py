# SPDX-License-Identifier: BSD-3-Clause
"""A layer of graph attention on a dense, masked adjacency matrix, whose every quantity autograd differentiates."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu, leaky_relu

import gossamer as gs

SLOPE = 0.2


def directed_graph(nodes: int, seed: int) -> gs.SparseMatrix:
    """Random directed edges, a few self-loops; node 2 has no edge that points at it, node 3 none that leaves it."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(nodes, nodes, generator=generator) < 0.35
    mask[2], mask[:, 3] = False, False
    values = torch.rand(nodes, nodes, generator=generator, dtype=torch.float64) + 0.5
    return gs.from_dense(torch.where(mask, values, 0.0))


def parameters(version: int, heads: int, features: int, width: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    matrix, vector = (heads, features, width), (heads, width)
    sizes = (matrix, vector, vector) if version == 1 else (matrix, matrix, vector)
    drawn = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    return drawn[0], drawn[1], drawn[2]


class Layer:
    """The forward pass; each attribute is a node of the autograd graph of its own."""

    def __init__(self, mask: Tensor, H: Tensor, layer: tuple[Tensor, Tensor, Tensor], version: int, last: bool) -> None:
        self.version, self.last, self.mask, self.H_in = version, last, mask, H
        if version == 1:
            self.W, self.a_dst, self.a_src = layer
            self.X = torch.einsum("nf,kfd->nkd", H, self.W)
            self.c_dst = torch.einsum("nkd,kd->nk", self.X, self.a_dst)
            self.c_src = torch.einsum("nkd,kd->nk", self.X, self.a_src)
        else:
            self.W_dst, self.W_src, self.a = layer
            self.X_dst = torch.einsum("nf,kfd->nkd", H, self.W_dst)
            self.X = self.X_src = torch.einsum("nf,kfd->nkd", H, self.W_src)
            self.c_dst, self.c_src = self.X_dst.clone(), self.X_src.clone()
        self.sum = self.c_dst[:, None] + self.c_src[None, :]  # (N, N, K) or (N, N, K, d)
        activated = leaky_relu(self.sum, SLOPE)
        self.L = activated if version == 1 else torch.einsum("ijkd,kd->ijk", activated, self.a)
        weights = self.L.exp() * mask[:, :, None]  # exp(-∞) where there is no edge
        self.S = weights / (weights.sum(1, keepdim=True) + ~mask.any(1)[:, None, None])
        self.Z = torch.einsum("ijk,jkd->ikd", self.S, self.X)
        self.mean = self.Z.mean(1)
        self.H = self.mean.softmax(-1) if last else elu(self.Z).flatten(1)


def cross_entropy(H: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    return -H[mask, y[mask]].log().mean()


@dataclass
class Case:
    """One layer with odd sizes, its loss, and the gradient of the loss for any of its quantities."""

    version: int
    heads: int
    last: bool
    seed: int = 0

    def __post_init__(self) -> None:
        nodes, features, width = 9, 5, 3
        generator = torch.Generator().manual_seed(self.seed)
        self.A = directed_graph(nodes, self.seed)
        self.rows, self.cols = self.A.pattern.row_indices, self.A.indices.long()
        H = torch.randn(nodes, features, generator=generator, dtype=torch.float64, requires_grad=True)
        layer = parameters(self.version, self.heads, features, width, self.seed + 1)
        for parameter in layer:
            parameter.requires_grad_()
        self.dense = Layer(self.A.to_dense() != 0, H, layer, self.version, self.last)
        self.y = torch.arange(nodes) % width
        self.mask = torch.arange(nodes) % 3 != 1
        if self.last:
            self.loss = cross_entropy(self.dense.H, self.y, self.mask)
        else:
            self.loss = (self.dense.H * torch.randn(self.dense.H.shape, generator=generator, dtype=torch.float64)).sum()

    def __getattr__(self, name: str) -> Tensor:
        """A dense quantity, out of the autograd graph."""
        return getattr(self.__dict__["dense"], name).detach()

    def grad(self, name: str) -> Tensor:
        """∂ℒ/∂(quantity), dense."""
        (gradient,) = torch.autograd.grad(self.loss, getattr(self.dense, name), retain_graph=True)
        return gradient

    def on_edges(self, dense: Tensor) -> Tensor:
        """(N, N, …) → (E, …)."""
        return dense[self.rows, self.cols]
