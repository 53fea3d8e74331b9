# SPDX-License-Identifier: BSD-3-Clause
"""A learned matrix in a module: everything torch does with modules."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import Tensor

import gossamer as gs


class Model(torch.nn.Module):
    def __init__(self, A: gs.SparseMatrix) -> None:
        super().__init__()
        self.A = gs.nn.SparseParameter(A)

    def forward(self, x: Tensor) -> Tensor:
        return self.A.matrix.T @ torch.tanh(self.A(x))


def matrix(seed: int = 0) -> gs.SparseMatrix:
    return gs.random(4, 3, 0.5, generator=torch.Generator().manual_seed(seed))


def test_values_are_the_parameter_and_the_pattern_is_saved() -> None:
    model = Model(matrix())
    assert [name for name, _ in model.named_parameters()] == ["A.values"]
    assert set(model.state_dict()) == {"A.values", "A.indptr", "A.indices"}


def test_a_step_of_an_optimiser_is_that_of_the_dense_matrix() -> None:
    A, x = matrix(), torch.tensor([1.0, -2.0, 0.5])
    model, D = Model(A), A.to_dense().requires_grad_()
    (D.T @ torch.tanh(D @ x)).square().sum().backward()
    assert D.grad is not None
    model(x).square().sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    want = (D - 0.1 * D.grad).detach() * (A.to_dense() != 0)
    torch.testing.assert_close(model.A.matrix.detach().to_dense(), want)
    assert not torch.equal(A.values, model.A.values)  # A itself stays


def test_a_state_goes_to_another_model_with_its_pattern() -> None:
    model, other, x = Model(matrix(0)), Model(matrix(1)), torch.randn(3)
    other(x)  # something is kept with the old pattern by now
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    torch.testing.assert_close(other(x), model(x))
    fresh = Model(matrix(2))
    fresh.load_state_dict(model.state_dict(), assign=True)
    torch.testing.assert_close(fresh(x), model(x))


def test_a_broken_pattern_is_not_loaded() -> None:
    model = Model(matrix())
    state = copy.deepcopy(model.state_dict())
    state["A.indices"] += 100
    with pytest.raises(ValueError, match="Pattern: "):
        model.load_state_dict(state)
    model(torch.ones(3))


def test_copies_are_their_own() -> None:
    model, x = Model(matrix()), torch.randn(3)
    want = model(x).detach()
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), torch.optim.swa_utils.AveragedModel(model)]
    with torch.no_grad():
        model.A.values.zero_()
    for other in copies:
        torch.testing.assert_close(other(x), want)
    assert torch.equal(model(x), torch.zeros(3))


def test_types_and_devices(device: torch.device) -> None:
    model, x = Model(matrix()), torch.randn(3, dtype=torch.float64)
    want = model.double()(x)
    assert model.A.indices.dtype is torch.int32
    model.to(device)
    moved = model(x.to(device))
    assert moved.device.type == device.type
    torch.testing.assert_close(moved.cpu(), want)


def test_matrices_of_one_forward_share_what_is_kept() -> None:
    parameter = gs.nn.SparseParameter(matrix())
    assert parameter.matrix.pattern is parameter.matrix.pattern


def test_frozen_and_compiled() -> None:
    frozen = gs.nn.SparseParameter(matrix(), requires_grad=False)
    assert not frozen.matrix.requires_grad
    model, x = Model(matrix()), torch.randn(3)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))
