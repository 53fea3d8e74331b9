# SPDX-License-Identifier: BSD-3-Clause
"""A power-law graph of any size that is never whole anywhere: every row is a function of (seed, row).

Node i has a class, features and incoming edges; whoever owns i makes them, and every number of processes makes the
same graph. With u independent and uniform in [0, 1), drawn by a hash of (seed, what, i, k):

    degree of i      min(⌊LEAST u^(-1/(α-1))⌋, MOST), α = 2.5: P(degree ≥ d) falls as d^-1.5
    column k of i    with probability NEAR a node of the village of i, VILLAGE consecutive nodes;
                     else ⌊n u³⌋: nodes of low number are known everywhere, and node j is pointed at as j^-2/3
    class of i       a hash of its village
    features of i    u - 1/2 each, and SIGNAL more at the place of the class: a neighbourhood tells more than a node
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LEAST, MOST, EXPONENT = 6, 1000, 1.5
NEAR, VILLAGE = 0.9, 1024
CLASSES, SIGNAL = 16, 0.15
TRAINED = 0.1  # share of the nodes that the loss sees

DEGREE, IS_NEAR, COLUMN, CLASS, FEATURE, SPLIT = range(6)  # what is drawn


@dataclass(frozen=True)
class Rows:
    """The nodes first … first + n_own - 1: their incoming edges as rows of CSR with global columns, and their data."""

    indptr: Tensor
    columns: Tensor
    x: Tensor
    y: Tensor
    trained: Tensor


def mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64, whose products wrap around; its shifts must not drag the sign along."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        z = (z ^ ((z >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return z ^ ((z >> 31) & ((1 << 33) - 1))


def uniform(seed: int, what: int, i: Tensor, k: Tensor | int = 0) -> Tensor:
    """In [0, 1), float64: a function of its arguments."""
    key = mix(mix(mix(torch.tensor(seed * 8 + what)) + i) + k)
    return ((key >> 11) & ((1 << 53) - 1)).double() / 2**53


def rows(first: int, last: int, n: int, features: int, seed: int = 0) -> Rows:
    """The nodes first … last - 1 of the graph of n nodes. Memory: that of these rows."""
    own = torch.arange(first, last)
    degree = (LEAST * (1 - uniform(seed, DEGREE, own)).pow(-1 / EXPONENT)).clamp(max=min(MOST, n)).long()
    indptr = torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)])
    row = own.repeat_interleave(degree)
    k = torch.arange(len(row)) - indptr[:-1].repeat_interleave(degree)
    near = uniform(seed, IS_NEAR, row, k) < NEAR
    u = uniform(seed, COLUMN, row, k)
    village = row // VILLAGE * VILLAGE
    size = (n - village).clamp(max=VILLAGE)
    columns = torch.where(near, village + (u * size).long(), (n * u**3).long())
    y = (uniform(seed, CLASS, own // VILLAGE) * CLASSES).long()
    x = uniform(seed, FEATURE, own[:, None], torch.arange(features)).float() - 0.5
    x[torch.arange(len(own)), y % features] += SIGNAL
    return Rows(indptr, columns, x, y, uniform(seed, SPLIT, own) < TRAINED)
