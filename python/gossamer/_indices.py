# SPDX-License-Identifier: BSD-3-Clause
"""Indices and shapes as users give them; types as they read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Shape = tuple[int, int]


def as_index(name: str, given: Any) -> Tensor:
    """A tensor from a tensor, a NumPy array or a list; lists become int64. NumPy's memory is its owner's to change."""
    if isinstance(given, Tensor):
        return given
    tensor = torch.tensor(given)
    return tensor.long() if tensor.numel() == 0 else tensor


def as_shape(op: str, shape: Sequence[int]) -> Shape:
    """(rows, cols) as two ints."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 2:
        raise ValueError(f"{op}: shape must be (rows, cols), not {sizes}")
    return sizes[0], sizes[1]


def short(dtype: torch.dtype) -> str:
    """float32, not torch.float32."""
    return str(dtype).removeprefix("torch.")
