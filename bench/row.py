# SPDX-License-Identifier: BSD-3-Clause
"""One row of the benchmark: what it takes to time an op on any matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from scipy.sparse import csr_array

OURS = "gossamer"
CPU = torch.device("cpu")
HOST_ONLY = frozenset({"scipy", "scipy splu", "mkl", "eigen", "cholmod", "pardiso", "umfpack"})
DEVICE_ONLY = frozenset({"cupy"})  # torch.sparse is cuSPARSE there, and PyG is PyG

Run = Callable[[Any], Any]
"""Inputs to result: an array, a torch tensor, a SparseMatrix, or a sequence of them."""


class Skip(Exception):
    """Raised by a contender that cannot do this cell; the text is the reason, and is printed."""


def able(ways: Mapping[str, Run], device: torch.device) -> dict[str, Run]:
    """The contenders that compute on this kind of device."""
    unable = HOST_ONLY if device.type == "cuda" else DEVICE_ONLY
    return {name: way for name, way in ways.items() if name not in unable}


@dataclass(frozen=True)
class Bench:
    """An op and its contenders, this library's (``OURS``) and the peers', by name.

    ``setup(A, dtype, columns, device)`` makes the inputs that every other callable takes; one column means a vector.
    The results of all contenders are compared before anything is timed, so they must mean the same: a sparse result
    counts as its values in CSR order.
    """

    setup: Callable[[csr_array, torch.dtype, int, torch.device], Any]
    forward: Mapping[str, Run]
    """Name to result. Timed without grad mode."""
    bytes_moved: Callable[[Any], tuple[int, int]]
    """Bytes that must move, everything once: in the forward; in the forward and backward together. 0: not known."""
    backward: Mapping[str, Run] = field(default_factory=dict)
    """Name to gradients of every differentiable input. Timed from the forward on."""
    columns: tuple[int, ...] = (1, 64, 128)
    """Widths of the dense operands; (0,) where the inputs have their own."""
    matrices: tuple[str, ...] = ()
    """The named matrices this row is for; empty means those that the command line asks for."""
    loose: float = 1.0
    """How many times the usual difference two contenders may have: more where rounding decides on a branch."""
