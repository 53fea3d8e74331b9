# SPDX-License-Identifier: BSD-3-Clause
"""Results kept in files, so that a demo that was interrupted goes on where it stopped.

A file holds the key of what was computed. It counts only if the key is the one asked for, whole: a file that is broken,
or of another budget, seed, version, machine or source, is as good as none.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import gossamer
from bench import machine
from gossamer._files import atomic


@dataclass
class Kept:
    result: Any
    seconds: float


def key(module: ModuleType, budget: dict[str, Any]) -> dict[str, str]:
    """Everything a result depends on, as text. The budget has the seed and the data's folder in it."""
    source = Path(module.__file__ or "").read_bytes()
    return {
        "module": module.__name__,
        "source": hashlib.sha256(source).hexdigest(),
        "budget": repr(sorted(budget.items())),
        "version": f"gossamer {gossamer.__version__}, torch {torch.__version__}",
        "machine": f"{machine.processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
    }


def read(path: Path, wanted: dict[str, str], module: ModuleType) -> Kept | None:
    """What is kept in ``path``, or None if that is not what was wanted."""
    try:
        content = torch.load(path, weights_only=True)
        if content["key"] != wanted:
            return None
        return Kept(module.Result(**content["result"]), float(content["seconds"]))
    except Exception:  # a broken file can raise anything; it is computed again
        return None


def write(path: Path, wanted: dict[str, str], kept: Kept) -> None:
    """Keep a result, whole or not at all."""
    result = {field.name: getattr(kept.result, field.name) for field in fields(kept.result)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        torch.save({"key": wanted, "seconds": kept.seconds, "result": result}, file)
