# SPDX-License-Identifier: BSD-3-Clause
"""Sums over the rows of all ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gossamer.distributed._group import group_name


def dot(u: Tensor, v: Tensor, mesh: Any = None) -> Tensor:
    """Σ u v over the rows of all ranks, of each column if they are (n, k): () or (k,), the same on every rank.

    The sum is exact until it is rounded at its end, so that it has the same bits for every number of ranks and
    threads, every order and every partition; products of float64 are rounded, those of shorter types are not. Cost: one
    pass over memory, in which it takes no longer than an ordinary dot, and one exchange of 576 bytes a column.
    ``dot(t, ones)`` is a sum of that kind of the numbers of all ranks.

    Gradient: as for the sum over the ranks of what each of them calls backward on, to any order.

    >>> u = torch.tensor([1e16, 1.0, -1e16], dtype=torch.float64)
    >>> gs.distributed.dot(u, torch.ones(3, dtype=torch.float64)).item()
    1.0
    """
    return torch.ops.gossamer.distributed_dot(u, v, group_name(mesh))


def sum(t: Tensor, mesh: Any = None) -> Tensor:
    """The sum of t over the ranks, which all have one of the same shape: the same on every rank.

    Rounding depends on the number of ranks; ``dot`` is exact. Gradient: the sum over the ranks of theirs, to any order.

    >>> gs.distributed.sum(torch.tensor([1.0, 2.0]))  # one process
    tensor([1., 2.])
    """
    return torch.ops.gossamer.distributed_sum(t, group_name(mesh))
