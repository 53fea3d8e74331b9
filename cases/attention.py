# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention, fused, against the same attention on dense scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

from .row import Case, Make

SLOPE = 0.3


def relu(t: Tensor) -> Tensor:
    return torch.where(t > 0, t, SLOPE * t)


def attend(P: Tensor, scores: Tensor, x_src: Tensor, dropout: float = 0.0) -> Tensor:
    """Z from scores (m, n, H), over the entries of the mask P; rows without any are 0."""
    mask = (P != 0)[..., None]
    weights = torch.where(mask, scores, -torch.inf).softmax(1) if P.shape[1] else scores
    weights = torch.where(mask, weights, 0)
    if dropout:
        rows, cols = P.nonzero().T
        places = torch.arange(len(rows) * scores.shape[2]).reshape(len(rows), scores.shape[2])
        factors = torch.zeros_like(scores).index_put((rows, cols), drawn(places, dropout).to(scores.dtype))
        weights = weights * factors
    return torch.einsum("mnh,nhd->mhd", weights, x_src)


SEED, WORD = 11, 2**64


def drawn(places: Tensor, p: float) -> Tensor:
    """0 or 1 / (1 - p) at each place, by SplitMix64 in Python's integers: see include/gossamer/kernels/dropout.h."""

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    key = mix((SEED + step) % WORD)
    kept = [(mix((key + step * (k + 1)) % WORD) >> 11) >= int(p * 2**53) for k in places.flatten().tolist()]
    return torch.tensor(kept, dtype=torch.float64).reshape(places.shape) / (1 - p)


def at_entries(P: Tensor, on_edges: Tensor) -> Tensor:
    """(nnz, …) as (m, n, …)."""
    rows, cols = P.nonzero().T
    return torch.zeros(*P.shape, *on_edges.shape[1:], dtype=on_edges.dtype).index_put((rows, cols), on_edges)


def dense_gat(P: Tensor, x: Tensor, src: Tensor, dst: Tensor, edge: Tensor | None = None, p: float = 0.0) -> Tensor:
    t = dst[:, None] + src[None] + (0 if edge is None else at_entries(P, edge))
    return attend(P, relu(t), x, p)


def dense_gatv2(P: Tensor, x: Tensor, dst: Tensor, att: Tensor, edge: Tensor | None = None, p: float = 0.0) -> Tensor:
    t = dst[:, None] + x[None] + (0 if edge is None else at_entries(P, edge))
    return attend(P, (att * relu(t)).sum(-1), x, p)


def inputs(second: bool, H: int, d: int, edges: bool = False) -> Callable[[Make], tuple[Any, ...]]:
    def make_inputs(make: Make) -> tuple[Any, ...]:
        P, width = make.pattern(make.m, make.n), (H, d) if second else (H,)
        two = (make.dense(make.m, H, d), make.dense(H, d)) if second else (make.dense(make.n, H), make.dense(make.m, H))
        return (P, make.dense(make.n, H, d), *two, *([make.dense(P.nnz, *width)] if edges else []))

    return make_inputs


def fused(name: str, p: float = 0.0) -> Callable[..., Tensor]:
    def run(gs: Any, P: Any, *tensors: Tensor) -> Tensor:
        return getattr(gs, name)(P, *tensors, negative_slope=SLOPE, dropout=p, seed=SEED)

    return run


def raw(op: Any, p: float = 0.0) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    def call(P: gs.Pattern, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None = None) -> tuple[Any, tuple[Any, ...]]:
        seed = torch.tensor(SEED, device=a.device) if p else None
        return op, (P.tensors(True), a, b, c, d, list(P.shape), SLOPE, p, seed)

    return call


def first(name: str, H: int, d: int, edges: bool = False, p: float = 0.0) -> Case:
    def dense(P: Tensor, x: Tensor, src: Tensor, dst: Tensor, edge: Tensor | None = None) -> Tensor:
        return dense_gat(P, x, src, dst, edge, p)

    return Case(
        name, fused("gat_attention", p), dense, inputs(False, H, d, edges), raw(torch.ops.gossamer.gat.default, p)
    )


def second(name: str, H: int, d: int, edges: bool = False, p: float = 0.0) -> Case:
    def dense(P: Tensor, x: Tensor, dst: Tensor, att: Tensor, edge: Tensor | None = None) -> Tensor:
        return dense_gatv2(P, x, dst, att, edge, p)

    op = torch.ops.gossamer.gatv2.default  # a score of -∞ is a weight of 0, so infinity need not show
    return Case(name, fused("gatv2_attention", p), dense, inputs(True, H, d, edges), raw(op, p), poisons=(torch.nan,))


CASES = [
    first("gat", 2, 3),
    first("gat_edges", 3, 2, edges=True),
    first("gat_dropout", 2, 2, edges=True, p=0.4),
    second("gatv2", 2, 3),
    second("gatv2_edges", 1, 2, edges=True),
    second("gatv2_dropout", 2, 2, p=0.4),
]
