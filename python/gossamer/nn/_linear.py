# SPDX-License-Identifier: BSD-3-Clause
"""x Wᵀ + b for dense or sparse x, and the initialisations of PyG's layers."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedParameter

from gossamer._products import spmm
from gossamer._sparse_matrix import SparseMatrix

Features = Tensor | SparseMatrix
"""(N, F); sparse features stay sparse."""


def glorot(weight: Tensor) -> None:
    """Uniform in ±√(6 / (fan_in + fan_out)), the last two sizes."""
    bound = math.sqrt(6.0 / (weight.shape[-2] + weight.shape[-1]))
    torch.nn.init.uniform_(weight, -bound, bound)


class Linear(torch.nn.Module):
    """Glorot weights; a bias uniform in ±1/√in. A SparseMatrix goes in as it is: x Wᵀ is then a sparse product."""

    def __init__(self, in_channels: int, out_channels: int, bias: bool = False) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.weight = torch.nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias = torch.nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.weight)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_channels) if self.in_channels else 0.0
            torch.nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Features) -> Tensor:
        return self._product(x, self.weight, self.bias)

    def scores(self, x: Features, att: Tensor) -> Tensor:
        """a · W x, a number a head, att being (1, heads, out): (n, heads).

        As x (Wᵀ a), which is as narrow as the heads. For a map whose W x nobody else wants. The weights must be there:
        a lazy map gets its own by a first forward.
        """
        by_heads = self.weight.t().unflatten(1, att.shape[1:])
        return self._product(x, torch.ops.gossamer.head_scores.default(by_heads, att)[:, 0].t().contiguous(), None)

    def _product(self, x: Features, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not isinstance(x, SparseMatrix):
            if x.dim() != 2 or x.shape[1] != self.in_channels:
                raise ValueError(f"Linear: x must be (nodes, {self.in_channels}), not shape {tuple(x.shape)}")
            return torch.nn.functional.linear(x, weight, bias)
        product = spmm(x, weight.t())
        return product if bias is None else product + bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """Learns its number of inputs from the first x, or from a state_dict, and is a Linear from then on."""

    cls_to_become = Linear

    def __init__(self, out_channels: int, bias: bool = False) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Lazy modules are a new feature")
            super().__init__(0, out_channels, bias)
        self.in_channels = -1
        self.weight = UninitializedParameter()  # type: ignore[assignment]

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, x: Features) -> None:
        if not isinstance(self.weight, UninitializedParameter):  # it came with a state_dict
            self.in_channels = self.weight.shape[1]
            return
        self.in_channels = x.shape[-1]
        self.weight.materialize((self.out_channels, self.in_channels))
        self.reset_parameters()


def linear(in_channels: int, out_channels: int, bias: bool = False) -> Linear:
    """A Linear; with ``in_channels`` -1 one that learns that number."""
    return LazyLinear(out_channels, bias) if in_channels == -1 else Linear(in_channels, out_channels, bias)
