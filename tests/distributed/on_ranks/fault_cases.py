# SPDX-License-Identifier: BSD-3-Clause
"""Mistakes of one rank, run by every rank of a group: all raise, with that rank's message, and the group is usable
afterwards. A case raises where it fails. That nobody waits for a rank that has raised, the timeout of the run shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from data_cases import F64, complete, place, random, random_parts, shared_folder
from torch import Tensor

import gossamer as gs

RANKS = (1, 3)  # a mistake of one rank is seen by more than one other


def matrix(mesh: Any, seed: int = 0) -> gs.distributed.DistributedMatrix:
    return gs.distributed.scatter(random(24, 24, 0.2, seed), mesh, parts=random_parts(24, seed))


def culprit() -> int:
    """The rank that makes the mistake: the last one."""
    return dist.get_world_size() - 1


def guilty() -> bool:
    return dist.get_rank() == culprit()


@contextmanager
def raised_on_all(mesh: Any, message: str, own: type[Exception] = ValueError) -> Iterator[None]:
    """Everybody raises and names the culprit; one rank alone raises `own`. Then a product works as before."""
    alone = dist.get_world_size() == 1
    with pytest.raises(own if alone else (ValueError, IndexError), match=message) as raised:
        yield
    assert alone or f"rank {culprit()}: " in str(raised.value), str(raised.value)
    A = matrix(mesh, seed=5)
    ones = torch.ones(A.local_shape[1], dtype=F64)
    assert torch.equal(A @ ones, (random(24, 24, 0.2, 5) @ torch.ones(24, dtype=F64))[A.row_keys])


def case_wrong_rows(mesh: Any) -> None:
    A = matrix(mesh)
    x = torch.ones(A.local_shape[1] + guilty(), dtype=F64)
    with raised_on_all(mesh, "rows"):
        A @ x
    with raised_on_all(mesh, "rows"):
        A.T @ x
    with raised_on_all(mesh, "V .* columns"):
        gs.sddmm(A, x[: A.local_shape[0]].unsqueeze(1), x.unsqueeze(1))


def case_wrong_rows_of_a_halo(mesh: Any) -> None:
    A = matrix(mesh)
    with raised_on_all(mesh, "halo"):
        A.halo(torch.ones(A.local_shape[1] + guilty(), dtype=F64))


def case_wrong_width(mesh: Any) -> None:
    """Each rank's x fits its own matrix; together they do not."""
    _, p = place()
    if p == 1:
        return
    A = matrix(mesh)
    x = torch.ones(A.local_shape[1], 3 + guilty(), dtype=F64)
    with pytest.raises(ValueError, match=r"3.*4|4.*3"):
        A @ x


def case_wrong_dtype(mesh: Any) -> None:
    _, p = place()
    if p == 1:
        return
    A = matrix(mesh)
    x = torch.ones(A.local_shape[1], dtype=torch.float32 if guilty() else F64)
    with pytest.raises((ValueError, TypeError, RuntimeError), match=r"[Ff]loat"):
        A @ x


def case_another_pattern(mesh: Any) -> None:
    """A rank that has other offsets than the others, or a column that is nobody's."""
    rank, p = place()
    own = torch.arange(3)
    offsets = torch.arange(p + 1) * 2
    if p > 1:
        wrong = offsets + guilty() * torch.eye(p + 1, dtype=torch.int64)[1]
        with pytest.raises(ValueError, match=r"offsets|rows"):
            gs.distributed.from_rows(own, own[:2], torch.ones(2), wrong, (2 * p, 2 * p), mesh)
    columns = torch.tensor([2 * rank, 2 * p if guilty() else 0])
    with raised_on_all(mesh, "column", own=(ValueError, IndexError)):  # type: ignore[arg-type]
        gs.distributed.from_rows(own, columns, torch.ones(2), offsets, (2 * p, 2 * p), mesh)


def wrong_plans(plan: list[Tensor], counts: list[int]) -> Iterator[tuple[str, list[Tensor], list[int]]]:
    """What a plan may have wrong, and what is said of it; the tensors are copies."""
    rows, owned = counts[:2]
    p = (len(counts) - 4) // 6

    def at(k: int, place: int, number: int) -> list[Tensor]:
        changed = plan[k].clone()
        changed[place] = number
        return [*plan[:k], changed, *plan[k + 1 :]]

    yield "fit its shape", at(1, -1, owned + sum(counts[2 + p : 2 + 2 * p])), counts
    yield "fit its shape", at(0, 1, 10**6), counts
    yield "ranges", [*plan[:3], torch.tensor([0, rows + 1]), *plan[4:]], counts
    yield "no run", [*plan[:4], torch.tensor([0, rows]).to(plan[0].dtype), *plan[5:]], counts
    yield "place", at(11, 0, -1), counts
    yield "place", at(11, 0, int(plan[11][1])), counts
    yield "quarter", [*plan[:12], plan[12][:-1]], counts
    yield "tensors", plan[:-1], counts
    yield "counts", plan, counts[:-1]
    yield "rows", plan, [rows, owned, *(-1 for _ in counts[2:])]
    if p > 1 and len(plan[2]):
        yield "not among the own", at(2, 0, owned), counts
        yield "need no halo", [*plan[:3], torch.tensor([0, rows]), *plan[4:]], counts


def case_wrong_contents_of_a_plan(mesh: Any) -> None:
    """torch.ops with the plan of one rank spoiled: nobody reads outside, and nobody waits."""
    A = matrix(mesh).prepare()
    ops, x, values = torch.ops.gossamer, torch.ones(A.local_shape[1], 2, dtype=F64), A.values
    own, numbers = A.exchange.plan, A.exchange.counts
    for message, wrong, counts in wrong_plans(own, numbers):
        plan = (wrong, counts) if guilty() else (own, numbers)
        with raised_on_all(mesh, message, own=(ValueError, IndexError)):  # type: ignore[arg-type]
            ops.spmm_rows(*plan, values, x, True, None, False, A.group)
    changed = [t.clone() for t in own]
    assert ops.spmm_rows(changed, numbers, values, x, True, None, False, A.group).shape == x.shape
    changed[1][0] = 10**6 if guilty() else changed[1][0]  # a plan that was good: torch counts the change
    with raised_on_all(mesh, "fit its shape", own=IndexError):
        ops.sddmm_rows(changed, numbers, x, x, None, False, A.group)


def case_ranks_that_expect_other_rows(mesh: Any) -> None:
    """Each plan is good by itself, but one rank sends less than another waits for."""
    _, p = place()
    if p == 1:
        return
    ops, x = torch.ops.gossamer, torch.ones(4, dtype=F64)
    send, recv = [1] * p, [1] * p
    if guilty():
        send[0] = 0
    index = torch.zeros(sum(send), dtype=torch.int64)
    name = mesh.get_group().group_name
    with pytest.raises(ValueError, match="another does not expect"):
        ops.halo(x, index, send, recv, name)
    with pytest.raises(ValueError, match="another does not expect"):
        ops.halo_sum(torch.ones(p, dtype=F64), index, send, recv, 4, name)
    with raised_on_all(mesh, "index is outside"):
        ops.halo(x, torch.full((p,), 4 if guilty() else 0), [1] * p, [1] * p, name)


def saved(folder: Path, seed: int = 0) -> None:
    _, p = place()
    if dist.get_rank() == 0:
        gs.distributed.save(random(20, 20, 0.2, seed), folder, complete(p, random_parts(20)), x=torch.ones(20, 2))
    dist.barrier()


def spoil(folder: Path, how: Callable[[Path], None]) -> None:
    """The culprit spoils its own part."""
    if guilty():
        how(folder / f"part-{culprit()}.npz")
    dist.barrier()


def flip(path: Path) -> None:
    """One bit of the values."""
    text = bytearray(path.read_bytes())
    with np.load(path) as file:
        values = file["data"].tobytes()
    text[text.index(values) + len(values) // 2] ^= 1
    path.write_bytes(text)


def case_missing_part(mesh: Any) -> None:
    with shared_folder() as folder:
        saved(folder)
        spoil(folder, lambda path: path.unlink())
        with raised_on_all(mesh, f"part-{culprit()}.npz", own=FileNotFoundError):
            gs.distributed.load(folder, mesh)


def case_damaged_part(mesh: Any) -> None:
    with shared_folder() as folder:
        for how in (flip, lambda path: path.write_bytes(path.read_bytes()[:200]), lambda path: path.write_bytes(b"")):
            saved(folder)
            spoil(folder, how)
            with raised_on_all(mesh, f"part-{culprit()}.npz"):
                gs.distributed.load(folder, mesh)


def case_part_of_another_save(mesh: Any) -> None:
    with shared_folder() as folder:
        saved(folder)
        saved(folder / "other", seed=1)
        name = f"part-{culprit()}.npz"
        spoil(folder, lambda path: path.write_bytes((folder / "other" / name).read_bytes()))
        with raised_on_all(mesh, f"{name}: it is of another save than plan.json"):
            gs.distributed.load(folder, mesh)


def case_wrong_plan(mesh: Any) -> None:
    """All ranks read the same plan, and all see what is wrong with it."""
    rank, p = place()
    with shared_folder() as folder:
        saved(folder)
        text = (folder / "plan.json").read_text()
        known = json.loads(text)
        spoiled = {
            "version is 2, not 1": {**known, "version": 2},
            "row_offsets are not": {**known, "row_offsets": known["row_offsets"][::-1]},
            "not a count": {**known, "entries": [-1] * p},
            "plan.json": {key: value for key, value in known.items() if key != "shape"},
        }
        for message, plan in spoiled.items():
            dist.barrier()
            if rank == 0:
                (folder / "plan.json").write_text(json.dumps(plan))
            dist.barrier()
            with pytest.raises(ValueError, match=message):
                gs.distributed.load(folder, mesh)


def case_wrong_number_of_parts(mesh: Any) -> None:
    _, p = place()
    with shared_folder() as folder:
        if dist.get_rank() == 0:
            gs.distributed.save(gs.eye(9), folder, p + 1)
        dist.barrier()
        with pytest.raises(ValueError, match=f"has {p + 1} parts for {p} processes"):
            gs.distributed.load(folder, mesh)


def case_a_rank_cannot_write(mesh: Any) -> None:
    """Its folder is a file, as a full or read-only disk would refuse it: nobody writes a plan."""
    A = matrix(mesh)
    with shared_folder() as folder:
        blocked = folder / "blocked"
        if guilty():
            blocked.write_text("not a folder")
        dist.barrier()
        with raised_on_all(mesh, "blocked", own=OSError):
            gs.distributed.save(A, blocked if guilty() else folder / "good")
        assert not (folder / "good" / "plan.json").exists()


def case_wrong_rows_to_gather_and_save(mesh: Any) -> None:
    A = matrix(mesh)
    t = torch.ones(A.local_shape[0] + guilty())
    with raised_on_all(mesh, "gather: t has shape"):
        gs.distributed.gather(t, A)
    with raised_on_all(mesh, "Rows: t has shape"):
        gs.distributed.Rows(t, A)
    with shared_folder() as folder, raised_on_all(mesh, "save: x has shape", own=ValueError):
        gs.distributed.save(A, folder, x=t)


def case_group_that_is_gone(mesh: Any) -> None:
    ranks = list(range(dist.get_world_size()))
    group = dist.new_group(ranks)
    A = matrix(group)
    x = torch.ones(A.local_shape[1], dtype=F64)
    assert len(A @ x) == A.local_shape[0]
    name = A.group
    dist.barrier()
    dist.destroy_process_group(group)
    for op in (lambda: A @ x, lambda: A.T @ x, lambda: A.halo(x), lambda: gs.distributed.gather(x, A)):
        with pytest.raises(RuntimeError, match=name):
            op()
