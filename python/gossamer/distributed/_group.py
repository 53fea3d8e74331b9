# SPDX-License-Identifier: BSD-3-Clause
"""The processes that share a matrix, by the name that torch gives their group. "" is this process alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from gossamer import _library as _library  # an op must be there before its name is looked up


def group_name(mesh: Any) -> str:
    """Of a one-dimensional DeviceMesh, of a ProcessGroup, or, for None, of the default group if there is one."""
    if mesh is None:
        default = dist.group.WORLD if dist.is_available() else None
        return "" if default is None else str(default.group_name)
    if isinstance(mesh, str):
        return mesh
    if hasattr(mesh, "get_group"):
        if mesh.ndim != 1:
            raise ValueError(f"distributed: mesh must have one dimension, not {mesh.ndim}: mesh['rows'] takes one")
        mesh = mesh.get_group()
    if not hasattr(mesh, "group_name"):
        raise TypeError(f"distributed: mesh must be a DeviceMesh, a ProcessGroup or None, not {type(mesh).__name__}")
    return str(mesh.group_name)


def rank_and_size(name: str) -> tuple[int, int]:
    """This process among those of the group."""
    if not name:
        return 0, 1
    rank, size = torch.ops.gossamer.distributed_place(name)
    return rank, size


def refuse(message: str, group: str) -> None:
    """Raises on every rank. In place of an op: the other ranks, which call it, first ask whether all are well."""
    torch.ops.gossamer.distributed_agree(message, "", group)


@contextmanager
def one_for_all(group: str, common: str = "") -> Iterator[None]:
    """What is raised inside on one rank is raised on all, with that rank's number. ``common``: what all must say."""
    error = None
    try:
        yield
    except Exception as found:  # whatever it is: the other ranks wait to hear of it
        if rank_and_size(group)[1] == 1:
            raise
        error = found
    if group:
        message = "" if error is None else str(error) or type(error).__name__
        try:
            torch.ops.gossamer.distributed_agree(message, common, group)
        except Exception as agreed:
            raise agreed from error
