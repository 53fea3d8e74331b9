# SPDX-License-Identifier: BSD-3-Clause
"""A matrix and tensors that go with its rows, in a folder: a file a process, and a plan of them."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gossamer._files import PathLike, atomic
from gossamer._npz import _DAMAGE
from gossamer._sparse_matrix import SparseMatrix
from gossamer.distributed._construct import from_rows
from gossamer.distributed._group import group_name, one_for_all, rank_and_size
from gossamer.distributed._matrix import DistributedMatrix
from gossamer.distributed._parts import partition

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh

PLAN, VERSION = "plan.json", 1
Array = np.ndarray[Any, Any]


@dataclasses.dataclass
class Plan:
    """What every process knows of the files: process r has rows row_offsets[r] … row_offsets[r + 1] - 1 of a new
    numbering and entries[r] entries. `id` is in every file of one save, and in no other."""

    id: int
    shape: list[int]
    row_offsets: list[int]
    column_offsets: list[int]
    entries: list[int]
    rows: list[str]
    version: int = VERSION

    @property
    def parts(self) -> int:
        return len(self.entries)

    def sizes(self, rank: int) -> tuple[int, int]:
        """How many rows and columns of X a process owns."""
        return tuple(o[rank + 1] - o[rank] for o in (self.row_offsets, self.column_offsets))  # type: ignore[return-value]


def save(
    A: SparseMatrix | DistributedMatrix,
    folder: PathLike,
    parts: Tensor | int | None = None,
    *,
    column_parts: Tensor | None = None,
    **rows: Tensor,
) -> None:
    """Write A and tensors of (rows, …) for ``load``: part-0.npz, part-1.npz, … and plan.json.

    ``parts`` (rows,) says which process has each row, see ``partition``, or how many processes there will be. For a
    square A, rows of X go with the rows of A; for another, ``column_parts`` (columns,) or ranges of equal length. A
    DistributedMatrix is written by all its processes, each its own rows, and takes neither.

    Each file appears whole or not at all, the plan last. What the system refuses raises OSError, on one process; a
    DistributedMatrix raises on all.
    """
    path = Path(os.fspath(folder))
    if isinstance(A, DistributedMatrix):
        if parts is not None or column_parts is not None:
            raise ValueError("save: a DistributedMatrix has its parts")
        return _save_own(A, path, rows)
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"save: A must be a SparseMatrix or a DistributedMatrix, not {type(A).__name__}")
    if parts is None:
        raise TypeError("save: parts says which process has each row, or how many there are")
    owners = partition(A, parts) if isinstance(parts, int) else _owners("parts", parts, A.shape[0], "rows")
    count = parts if isinstance(parts, int) else int(owners.max()) + 1 if len(owners) else 1
    square = A.shape[0] == A.shape[1] and column_parts is None
    column_owners = owners if square else _columns(A, count, column_parts)
    for name, t in rows.items():
        _check_length("save", name, t, A.shape[0], "rows")
    path.mkdir(parents=True, exist_ok=True)
    indptr, indices, values = A.indptr.cpu(), A.indices.cpu(), A.values.detach().cpu()
    id, entries = secrets.randbits(60), []
    for rank in range(count):
        part = torch.ops.gossamer.distributed_part(indptr, indices, owners, column_owners, count, rank)
        at, own, columns, offsets, (row_keys, column_keys) = part
        entries.append(len(at))
        plan = Plan(id, list(A.shape), offsets[0].tolist(), offsets[1].tolist(), entries, list(rows))
        keys = {"row_keys": row_keys, "column_keys": column_keys}
        tensors = {f"rows.{name}": t.detach()[row_keys.to(t.device)] for name, t in rows.items()}
        _write_part(path, plan, rank, own, columns, values[at], keys | tensors)
    _write_plan(path, plan)


def _save_own(A: DistributedMatrix, path: Path, rows: dict[str, Tensor]) -> None:
    """A collective: each process writes its part, the first one the plan when all are there."""
    rank, _ = rank_and_size(A.group)
    numbers = torch.tensor([secrets.randbits(60), A.nnz])
    ids, entries = torch.ops.gossamer.distributed_gathered(numbers, A.group).unbind(1)
    offsets, column_offsets = A.offsets.tolist(), A.column_offsets.tolist()
    plan = Plan(int(ids[0]), list(A.shape), offsets, column_offsets, entries.tolist(), list(rows))
    first = column_offsets[rank]
    columns = A.halo(torch.arange(first, column_offsets[rank + 1]))[A.pattern.indices.long()]
    with one_for_all(A.group):
        for name, t in rows.items():
            _check_length("save", name, t, A.local_shape[0], "own rows")
        path.mkdir(parents=True, exist_ok=True)
        tensors = {f"rows.{name}": t.detach() for name, t in rows.items()}
        keys = {"row_keys": A.row_keys, "column_keys": A.col_keys}
        _write_part(path, plan, rank, A.pattern.indptr, columns, A.values.detach(), keys | tensors)
    with one_for_all(A.group):
        if rank == 0:
            _write_plan(path, plan)


def load(
    folder: PathLike, mesh: DeviceMesh | ProcessGroup | None = None
) -> tuple[DistributedMatrix, dict[str, Tensor]]:
    """Read what ``save`` wrote, each process its own part: the matrix, and the tensors of its rows by their names.

    A collective. There must be as many processes as parts. Nothing in the files is trusted; what is wrong with one of
    them raises on every rank and names the file.
    """
    group = group_name(mesh)
    path = Path(os.fspath(folder))
    rank, size = rank_and_size(group)
    with one_for_all(group):
        plan = _read_plan(path)
        if plan.parts != size:
            raise ValueError(f"load: {path} has {plan.parts} parts for {size} processes; save it with parts={size}")
        arrays = _read_part(path, plan, rank)
    torch.ops.gossamer.distributed_agree("", f"load: a folder of save {plan.id}", group)  # disks may differ
    rows = {name: arrays[f"rows.{name}"] for name in plan.rows}
    A = from_rows(
        arrays["indptr"],
        arrays["indices"].long(),
        arrays["data"],
        torch.tensor(plan.row_offsets),
        (plan.shape[0], plan.shape[1]),
        mesh,
        keys=arrays["row_keys"],
        column_offsets=torch.tensor(plan.column_offsets),
        column_keys=arrays["column_keys"],
    )
    return A, rows


def _columns(A: SparseMatrix, count: int, given: Tensor | None) -> Tensor:
    """Which process has each row of X; by default, ranges of equal length."""
    if given is None:
        return torch.arange(A.shape[1]) * count // max(A.shape[1], 1)
    owners = _owners("column_parts", given, A.shape[1], "columns")
    if len(owners) and int(owners.max()) >= count:
        raise ValueError(f"save: column_parts names process {int(owners.max())}, but parts has {count}")
    return owners


def _check_length(op: str, name: str, t: Tensor, length: int, of: str) -> None:
    if t.dim() == 0 or len(t) != length:
        raise ValueError(f"{op}: {name} has shape {tuple(t.shape)}, but A has {length} {of}")


def _owners(name: str, parts: Tensor, length: int, of: str) -> Tensor:
    if not isinstance(parts, Tensor) or parts.dtype.is_floating_point or parts.dtype.is_complex:
        raise TypeError(f"save: {name} must be a tensor of integers")
    _check_length("save", name, parts, length, of)
    if parts.dim() != 1 or (length and int(parts.min()) < 0):
        raise ValueError(f"save: {name} must be a vector of processes, from 0")
    return parts.cpu().long()


def _part_name(rank: int) -> str:
    return f"part-{rank}.npz"


def _array(name: str, t: Tensor) -> Array:
    if t.dtype is torch.bfloat16:
        raise TypeError(f"save: NumPy has no bfloat16; save {name} in float32")
    array: Array = t.cpu().numpy()
    return array


def _write_part(
    path: Path, plan: Plan, rank: int, indptr: Tensor, columns: Tensor, values: Tensor, others: dict[str, Tensor]
) -> None:
    """SciPy's arrays of a CSR matrix with the columns of the new numbering, and ours beside them."""
    small = plan.shape[1] <= torch.iinfo(torch.int32).max
    tensors = {"indptr": indptr, "indices": columns.int() if small else columns, "data": values, **others}
    arrays: dict[str, Any] = {name: _array(name, t) for name, t in tensors.items()}
    arrays |= {"format": np.array(b"csr"), "shape": np.array([plan.sizes(rank)[0], plan.shape[1]])}
    with atomic(path / _part_name(rank)) as file:
        np.savez(file, id=np.array(plan.id), **arrays)


def _write_plan(path: Path, plan: Plan) -> None:
    with atomic(path / PLAN) as file:
        file.write(json.dumps(dataclasses.asdict(plan), indent=1, ensure_ascii=False).encode() + b"\n")


def _read_plan(path: Path) -> Plan:
    text = (path / PLAN).read_bytes()
    try:
        known = json.loads(text)
        if known["version"] != VERSION:
            raise ValueError(f"its version is {known['version']}, not {VERSION}")
        plan = Plan(**known)
        _check_plan(plan)
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"load: {path / PLAN}: {error or type(error).__name__}") from None
    return plan


def _check_plan(plan: Plan) -> None:
    numbers = [plan.id, *plan.shape, *plan.entries, *plan.row_offsets, *plan.column_offsets]
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError("a number is not a count")
    for name, offsets, end in (
        ("row_offsets", plan.row_offsets, plan.shape[0]),
        ("column_offsets", plan.column_offsets, plan.shape[1]),
    ):
        fits = len(offsets) == plan.parts + 1 and offsets == sorted(offsets) and (offsets[0], offsets[-1]) == (0, end)
        if not fits:
            raise ValueError(f"its {name} are not {plan.parts + 1} numbers that ascend from 0 to {end}")


def _read_part(path: Path, plan: Plan, rank: int) -> dict[str, Tensor]:
    name = path / _part_name(rank)
    with name.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as contents:
                wanted = [
                    "indptr",
                    "indices",
                    "data",
                    "row_keys",
                    "column_keys",
                    *(f"rows.{name}" for name in plan.rows),
                ]
                if int(contents["id"]) != plan.id:
                    raise ValueError(f"it is of another save than {PLAN}")
                arrays = {key: torch.from_numpy(np.ascontiguousarray(contents[key])) for key in wanted}
            _check_part(arrays, plan, rank)
        except _DAMAGE as error:
            raise ValueError(f"load: {name}: {error or type(error).__name__}") from None
    return arrays


def _check_part(arrays: dict[str, Tensor], plan: Plan, rank: int) -> None:
    """Whatever a file says, nothing later reads outside: lengths, and every number that points somewhere."""
    own, own_columns = plan.sizes(rank)
    entries = plan.entries[rank]
    lengths = {"indptr": own + 1, "indices": entries, "data": entries, "row_keys": own, "column_keys": own_columns}
    lengths |= {f"rows.{name}": own for name in plan.rows}
    for name, length in lengths.items():
        if arrays[name].dim() == 0 or len(arrays[name]) != length:
            raise ValueError(f"its {name} has shape {tuple(arrays[name].shape)}, not {length} rows")
    for name, end in (("indices", plan.shape[1]), ("row_keys", plan.shape[0]), ("column_keys", plan.shape[1])):
        t = arrays[name]
        if t.dtype not in (torch.int32, torch.int64) or t.dim() != 1 or bool(((t < 0) | (t >= end)).any()):
            raise ValueError(f"its {name} are not integers in 0 … {end - 1}")
    indptr = arrays["indptr"]
    if indptr.dtype not in (torch.int32, torch.int64) or indptr.dim() != 1:
        raise ValueError("its indptr is not a vector of integers")
    if indptr[0] != 0 or indptr[-1] != entries or bool((indptr.diff() < 0).any()):
        raise ValueError(f"its indptr does not ascend from 0 to {entries}")
