# SPDX-License-Identifier: BSD-3-Clause
"""This rank's block of a matrix, and the plan by which ranks exchange rows: made once for a pattern, and kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gossamer import _library as _library  # an op must be there before its name is looked up
from gossamer._pattern import Pattern

_ops = torch.ops.gossamer


class Exchange:
    """A plan (src/torch/distributed/exchange.h): tensors, counts, the group, and who owns what.

    ``row_offsets`` and ``col_offsets`` say which rows and columns each rank owns, ``row_keys`` and ``col_keys`` are the
    original numbers of this rank's own. The transpose's part is made when it is first needed, by all ranks together.
    """

    def __init__(
        self,
        plan: list[Tensor],
        counts: list[int],
        group: str,
        offsets: tuple[Tensor, Tensor],
        keys: tuple[Tensor, Tensor],
        mesh: Any,
    ) -> None:
        self.plan, self.counts, self.group, self.mesh = plan, counts, group, mesh
        self.offsets, self.keys = offsets, keys
        self.shape = int(offsets[0][-1]), int(offsets[1][-1])
        self.transpose: Block | None = None  # of Aᵀ, once somebody has asked for its arrays

    @property
    def has_transpose(self) -> bool:
        return len(self.plan) > 5

    def with_transpose(self) -> Exchange:
        """Itself, with the transpose's part. All ranks call it."""
        if not self.has_transpose:
            if torch.compiler.is_compiling():
                raise RuntimeError("distributed: ranks cannot plan inside torch.compile; call A.prepare() before")
            self.plan, self.counts = _ops.distributed_transpose(self.plan, self.counts, self.keys[0], self.group)
        return self

    def ready_for(self, *operands: Tensor, transpose: bool = False) -> Exchange:
        """Itself, with the transpose's part if the call needs it, or if a derivative by an operand of any rank will."""
        if not self.has_transpose and (transpose or self._any_wants_grad(operands)):
            return self.with_transpose()
        return self

    def _any_wants_grad(self, operands: tuple[Tensor, ...]) -> bool:
        wanted = torch.is_grad_enabled() and any(t.requires_grad for t in operands)
        if not self.group or not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return wanted
        return bool(_ops.distributed_any(wanted, self.group))

    def _list(self, k: int) -> list[int]:
        """One of the lists of counts, which have a number for each rank."""
        p = (len(self.counts) - 4) // 6 if self.has_transpose else (len(self.counts) - 2) // 2
        return self.counts[2 + k * p : 2 + (k + 1) * p]

    @property
    def route(self) -> tuple[Tensor, Tensor, list[int], list[int]]:
        """Where values of A's entries go to be those of the transpose: {out, into, send, recv}."""
        return self.plan[10], self.plan[11], self._list(4), self._list(5)

    @property
    def halo(self) -> tuple[Tensor, list[int], list[int]]:
        """Which own rows of x are sent for A x, how many to each rank, how many come from each."""
        return self.plan[2], self._list(0), self._list(1)


class Block(Pattern):
    """This rank's rows: own columns first, then those of the halo. Columns are not sorted in a row: they stand in the
    order of the original ones, in which sums are made."""

    exchange: Exchange

    @classmethod
    def of(cls, exchange: Exchange) -> Block:
        indptr, indices = exchange.plan[:2]
        rows, owned = exchange.counts[:2]
        block = cls(indptr, indices, (rows, owned + sum(exchange.halo[2])), check=False, simple=None)
        block.exchange = exchange
        return block

    def swapped(self) -> Block:
        """The block of the transpose. Kept; the other way round it is this one."""
        exchange = self.exchange.with_transpose()
        if exchange.transpose is None:
            plan, counts = _ops.distributed_swap(exchange.plan, exchange.counts)
            turned = exchange.offsets[::-1], exchange.keys[::-1]
            swapped = Exchange(plan, counts, exchange.group, *turned, exchange.mesh)
            exchange.transpose = Block.of(swapped)
            swapped.transpose = self
        return exchange.transpose
