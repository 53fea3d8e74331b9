# SPDX-License-Identifier: BSD-3-Clause
"""Where a training stands, in a file: killed at any moment, it goes on from there and ends with the same bits."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gossamer._files import PathLike, atomic
from gossamer._sparse_matrix import SparseMatrix

if TYPE_CHECKING:
    from gossamer.datasets import Graph

# What torch.load raises at a file that is not its own.
_DAMAGE = (
    *(RuntimeError, ValueError, TypeError, LookupError, EOFError, AttributeError, ImportError),
    *(OSError, MemoryError, pickle.UnpicklingError),
)


class Checkpoint:
    """A file that holds the state of one training: of this recipe, seed and graph, and of no other.

    It is written whole or not at all, so a kill leaves the state before or the one after. The first state is that of
    the file, if it is there.
    """

    def __init__(self, path: PathLike, recipe: Any, seed: int, graph: Graph) -> None:
        self.path = Path(os.fspath(path))
        self.of = {**asdict(recipe), "seed": seed, "graph": _digest(graph), "torch": str(torch.__version__)}
        self.state: dict[str, Any] | None = None
        if self.path.exists():
            self._load()

    def save(self, state: dict[str, Any]) -> None:
        """Keep a state in place of the one before."""
        contents = io.BytesIO()  # torch's writer would hide what the system says of a full disk
        torch.save({"of": self.of, "state": state, "random": torch.get_rng_state()}, contents)
        with atomic(self.path) as file:
            file.write(contents.getbuffer())
        self.state = state

    def _load(self) -> None:
        contents = io.BytesIO(self.path.read_bytes())
        try:
            kept = torch.load(contents, weights_only=True)  # tensors and numbers: nothing of the file is run
            of, self.state, random = kept["of"], kept["state"], kept["random"]
            torch.set_rng_state(random)
        except _DAMAGE:  # torch advises to run what is in the file: not here
            raise ValueError(f"resume: {self.path} is not a state of a training, or damaged") from None
        if of != self.of:
            other = sorted(name for name in self.of if not isinstance(of, dict) or of.get(name) != self.of[name])
            raise ValueError(f"resume: {self.path} is of another training: {', '.join(other)} differ")


def _digest(graph: Graph) -> str:
    """A word for what a training reads of a graph."""
    found = hashlib.sha256()
    x = graph.x
    tensors = [x.indptr, x.indices, x.values] if isinstance(x, SparseMatrix) else [x]
    tensors += [graph.adjacency.indptr, graph.adjacency.indices, graph.adjacency.values, graph.y]
    for t in (*tensors, graph.train_mask, graph.val_mask, graph.test_mask):
        found.update(t.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
