# SPDX-License-Identifier: BSD-3-Clause
"""CUDA graphs: the numeric work on kept patterns is captured once, forward and backward, and replayed on other numbers.

A capture forbids to copy between host and device and to look at a number; the stand-in refuses both.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_traffic import BY_HOST, LOOKS
from torch import Tensor

import cuda_standin
import gossamer as gs
from cases import CASES, Case, Make

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")
CUDA = torch.device("cuda", 0)


def step(case: Case, inputs: tuple[Any, ...], leaves: list[Tensor]) -> list[Tensor]:
    """The result and the gradients of those inputs that have one."""
    result = case.op(gs, *inputs)
    values = result.values if isinstance(result, gs.SparseMatrix) else result
    if not isinstance(values, Tensor) or not values.requires_grad:
        return [values] if isinstance(values, Tensor) else []
    gradients = torch.autograd.grad(values, leaves, torch.ones_like(values), allow_unused=True)
    return [values.detach(), *(g for g in gradients if g is not None)]


CAPTURED = [case for case in CASES if not case.an_object and case.name not in LOOKS and case.name not in BY_HOST]


@pytest.mark.parametrize("case", CAPTURED, ids=lambda case: case.name)
def test_a_graph_is_replayed_on_other_numbers(case: Case) -> None:
    inputs = case.inputs(Make("square", torch.float64, device=CUDA))
    leaves = []
    for x in inputs:
        if isinstance(x, gs.SparseMatrix) or (isinstance(x, Tensor) and x.is_floating_point()):
            x.requires_grad_()
            leaves.append(x.values if isinstance(x, gs.SparseMatrix) else x)
    step(case, inputs, leaves)  # as before every capture: what is kept with the patterns is made
    with cuda_standin.capture():
        captured = step(case, inputs, leaves)
    with torch.no_grad():
        for leaf in leaves:
            leaf.mul_(0.5).add_(0.125)
    if captured and leaves:
        assert cuda_standin.replay() > 0
    for replayed, wanted in zip(captured, step(case, inputs, leaves), strict=True):
        torch.testing.assert_close(replayed, wanted, rtol=0, atol=0)


def test_a_replay_draws_another_mask() -> None:
    A = gs.poisson((4, 5)).to(CUDA)
    x, alpha = torch.ones(20, 2, 3, device=CUDA), torch.ones(20, 2, device=CUDA)
    gs.gat_attention(A.pattern, x, alpha, alpha, dropout=0.5)
    torch.manual_seed(0)
    with cuda_standin.capture():
        Z, mask = gs.gat_attention(A.pattern, x, alpha, alpha, dropout=0.5), gs.dropout(x, 0.5)
    first = Z.clone(), mask.clone()
    cuda_standin.replay()
    assert not Z.equal(first[0])
    assert not mask.equal(first[1])


def test_a_capture_refuses_what_a_device_would_refuse() -> None:
    x = torch.ones(3, device=CUDA)
    with cuda_standin.capture(), pytest.raises(RuntimeError, match="while a graph is captured"):
        x.sum().item()
    with cuda_standin.capture(), pytest.raises(RuntimeError, match="while a graph is captured"):
        x.cpu()
