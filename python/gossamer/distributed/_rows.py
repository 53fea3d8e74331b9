# SPDX-License-Identifier: BSD-3-Clause
"""Rows that many processes hold, as torch.distributed.checkpoint takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gossamer.distributed._group import rank_and_size

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
    from torch.distributed.checkpoint.planner import WriteItem

    from gossamer.distributed._matrix import DistributedMatrix

AXES = ("rows", "columns", "entries")


class Rows(Tensor):
    """The own rows ``t`` of a tensor that all processes share, for a state dict of ``torch.distributed.checkpoint``.

    A checkpoint has them by their original numbers, so that any number of processes with any partition can load what
    others saved. ``t`` (own rows, …) goes with the rows of A, or with its columns or entries by ``of``::

        state = {"x": Rows(x, A), "values": Rows(A.values, A, of="entries")}
        dcp.save(state, checkpoint_id=folder)
        dcp.load(state, checkpoint_id=folder)  # by other processes, which have their own x and A
        x = state["x"].restore()

    Making one and ``restore`` are collectives: rows travel to the process that writes or reads them. It is no tensor to
    compute with, and it has no gradient.
    """

    __module__ = "gossamer.distributed"
    _given: Tensor
    _keys: Tensor
    _group: str
    _block: Tensor
    _begin: int

    @staticmethod
    def __new__(cls, t: Tensor, A: DistributedMatrix, *, of: str = "rows") -> Rows:
        keys, total = _keys("Rows", A, of)
        return cls._of(t, keys, total, A.group)

    def __init__(self, t: Tensor, A: DistributedMatrix, *, of: str = "rows") -> None:
        pass

    @classmethod
    def _of(cls, t: Tensor, keys: Tensor, total: int, group: str) -> Rows:
        """Of rows whose original numbers, of ``total``, are ``keys``."""
        block = torch.ops.gossamer.distributed_ordered(t, keys, total, group, False)
        size = (total, *t.shape[1:])
        made: Rows = Tensor._make_wrapper_subclass(cls, size, dtype=t.dtype, device=t.device)
        made._given, made._keys, made._group, made._block = t, keys, group, block
        rank, ranks = rank_and_size(group)
        made._begin = total * rank // ranks
        return made

    def restore(self) -> Tensor:
        """What was loaded, written into the tensor that this was made of, which is returned."""
        with torch.no_grad():
            back = torch.ops.gossamer.distributed_ordered(self._block, self._keys, len(self), self._group, True)
            self._given.copy_(back)
        return self._given

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        own = f"{self._begin}:{self._begin + len(self._block)}"
        return f"Rows({tuple(self.shape)}, {str(self.dtype).removeprefix('torch.')}, writes {own})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.detach.default:  # what checkpoints do first
            return args[0]
        raise NotImplementedError(f"Rows is for checkpoints alone: {func} wants the tensor it was made of")

    def _chunk(self) -> ChunkStorageMetadata:
        from torch.distributed.checkpoint.metadata import ChunkStorageMetadata

        offsets = torch.Size([self._begin, *[0] * (self.dim() - 1)])
        return ChunkStorageMetadata(offsets=offsets, sizes=self._block.size())

    def _mine(self) -> bool:
        """Whether there is anything to write: two blocks without rows would have the same name. Rank 0 says that a
        tensor without any rows exists."""
        return len(self._block) > 0 or (len(self) == 0 and rank_and_size(self._group)[0] == 0)

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [self._chunk()] if self._mine() else []

    def __create_write_items__(self, fqn: str, object: object) -> list[WriteItem]:
        from torch.distributed.checkpoint.metadata import MetadataIndex, TensorProperties
        from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

        if not self._mine():
            return []
        chunk, properties = self._chunk(), TensorProperties.create_from_tensor(self._block)
        data = TensorWriteData(chunk=chunk, properties=properties, size=self.size())
        return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD, tensor_data=data)]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        return self._block


def _keys(op: str, A: DistributedMatrix, of: str) -> tuple[Tensor, int]:
    """The original numbers of what this process has of A, and how many there are in all."""
    if of == "rows":
        return A.row_keys, A.shape[0]
    if of == "columns":
        return A.col_keys, A.shape[1]
    if of != "entries":
        raise ValueError(f"{op}: of must be one of {', '.join(AXES)}, not {of!r}")
    indptr = A.pattern.indptr
    keys = torch.ops.gossamer.distributed_entry_keys(indptr, A.row_keys, A.shape[0], A.group)
    return keys, int(torch.ops.gossamer.distributed_gathered(torch.tensor([A.nnz]), A.group).sum())


def gather(t: Tensor, A: DistributedMatrix, *, of: str = "rows", rank: int | None = None) -> Tensor | None:
    """All rows of what each process has its own rows ``t`` of, in their original order, on every process.

    With ``rank``, on that process alone; the others get None. ``of`` is as for ``Rows``: t goes with the rows of A, its
    columns or its entries. Differentiable, under the contract that the losses of all ranks are added up. It is as large
    as it is: what does not fit one process cannot be gathered.

    >>> A = gs.distributed.scatter(gs.poisson(3))
    >>> gs.distributed.gather(A @ torch.ones(3), A)
    tensor([1., 0., 1.])
    """
    keys, total = _keys("gather", A, of)
    all_rows: Tensor = torch.ops.gossamer.distributed_gather(t, keys, total, rank, A.group)
    return all_rows if rank is None or rank == rank_and_size(A.group)[0] else None
