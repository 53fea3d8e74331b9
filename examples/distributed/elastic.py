# SPDX-License-Identifier: BSD-3-Clause
"""What a training needs to be killed and started again by torchrun: a group that starts anew, and checkpoints."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def attempt() -> int:
    """How often torchrun has started the processes again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def start_group(seconds: float = 60) -> None:
    """The default group of the processes that torchrun started; nothing without torchrun.

    The store of torchrun's agent outlives the processes, so that those of a second attempt would read the addresses
    which the dead ones left there. Each attempt therefore writes under names of its own.
    """
    if "RANK" not in os.environ:
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    here = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" and rank == 0
    wait = timedelta(seconds=seconds)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, is_master=here, timeout=wait)
    named = dist.PrefixStore(f"attempt_{attempt()}", store)
    dist.init_process_group("gloo", store=named, rank=rank, world_size=size, timeout=wait)


_SUMS: list[dist.Work] = []


def total(number: float | Tensor) -> Tensor:
    """Over the processes, in float64.

    What gloo's threads did is kept until the process ends. Theirs would else be the last hands on a tensor that Python
    knows, to drop it they would wait for Python's lock, and who ends the group waits for them with that lock held:
    seen with torch 2.13 on a busy machine.
    """
    t = torch.as_tensor(number).to(torch.float64, copy=True)
    if dist.is_initialized():
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        _SUMS.append(work)
    return t


def end_group() -> None:
    """gloo aborts a process that ends without this."""
    if dist.is_initialized():
        dist.destroy_process_group()


def save(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, losses: list[float]) -> None:
    """All ranks: what the next steps depend on. The name of the checkpoint is written last, in one piece."""
    step = len(losses)
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "losses": torch.tensor(losses, dtype=torch.float64)}
    dcp.save(state, checkpoint_id=folder / f"step_{step}")  # returns when every rank has written
    if not dist.is_initialized() or dist.get_rank() == 0:
        (folder / "latest.part").write_text(str(step))
        (folder / "latest.part").replace(folder / "latest")


def restore(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    """All ranks: the newest checkpoint, and the losses so far, one a step; without one nothing, and []."""
    if not (folder / "latest").exists():
        return []
    step = int((folder / "latest").read_text())
    weights, moments = get_state_dict(model, optimizer)
    state: dict[str, Any] = {
        "model": weights,
        "optimizer": moments,
        "losses": torch.zeros(step, dtype=torch.float64),
    }
    dcp.load(state, checkpoint_id=folder / f"step_{step}")
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    losses: list[float] = state["losses"].tolist()
    return losses
