# SPDX-License-Identifier: BSD-3-Clause
"""Tensors on two devices in one call are refused, by every op, before anything is read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import cuda_standin
import gossamer as gs
from cases import CASES, Case, Make

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")


def elsewhere(x: Any) -> Any:
    """An argument with its last tensor of the device on another one; None if it has none."""
    if isinstance(x, Tensor) and x.is_cuda:
        return torch.ops.gossamer_standin.on_second_device(x)
    if isinstance(x, (list, tuple)) and x and isinstance(x[-1], Tensor) and x[-1].is_cuda:
        return [*x[:-1], elsewhere(x[-1])]
    return None


def on_device(x: Any) -> int:
    tensors = x if isinstance(x, (list, tuple)) else [x]
    return sum(isinstance(t, Tensor) and t.is_cuda for t in tensors)


class Repeated(TorchDispatchMode):
    """Makes every call of ours again, once for each argument, which is on another device then."""

    refused = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func).startswith("gossamer.") and sum(map(on_device, args)) > 1:
            for k, x in enumerate(args):
                other = elsewhere(x)
                if other is None:
                    continue
                with pytest.raises(ValueError, match=r"on cuda:[01]"):
                    func(*args[:k], other, *args[k + 1 :], **(kwargs or {}))
                self.refused += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("case", [case for case in CASES if not case.an_object], ids=lambda case: case.name)
def test_two_devices_are_refused(case: Case) -> None:
    inputs = case.inputs(Make("square", torch.float32, device=torch.device("cuda", 0)))
    with Repeated() as repeated:
        case.op(gs, *inputs)
    if case.name in ("spmm", "sddmm", "spgemm", "gat", "solve_lower"):
        assert repeated.refused > 0
