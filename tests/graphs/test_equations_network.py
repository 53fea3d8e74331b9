# SPDX-License-Identifier: BSD-3-Clause
"""The equations of all layers together, against autograd on dense layers and against finite differences."""

from __future__ import annotations

import re

import pytest
import torch
from dense_attention import Layer, cross_entropy, directed_graph, parameters
from torch import Tensor

import gossamer as gs
from gossamer import equations as eq


def dense_network(A: gs.SparseMatrix, H: Tensor, y: Tensor, mask: Tensor, layers, version: int):
    built: list[Layer] = []
    for l, layer in enumerate(layers):
        built.append(Layer(A.to_dense() != 0, built[-1].H if built else H, layer, version, l == len(layers) - 1))
    return built, cross_entropy(built[-1].H, y, mask)


NAMES_OF_GRADIENTS = {"delta": "H", "delta_prime": "Z", "dS": "S", "dL": "L", "Delta_edge": "sum"}
NAMES_OF_GRADIENTS |= {"Sigma_dst": "c_dst", "Sigma_src": "c_src", "bracket": "X", "dH": "H_in", "output_delta": "mean"}
NAMES_OF_GRADIENTS |= {f"d{name}": name for name in ("W", "W_dst", "W_src", "a", "a_dst", "a_src")}


@pytest.mark.parametrize("version", [1, 2])
def test_network(version: int) -> None:
    A, widths, heads = directed_graph(11, 5), [7, 3, 5, 4], [2, 3, 2]
    H = torch.randn(11, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    inputs = [7, 2 * 3, 3 * 5]
    layers = [parameters(version, heads[l], inputs[l], widths[l + 1], l) for l in range(3)]
    for parameter in (parameter for layer in layers for parameter in layer):
        parameter.requires_grad_()
    y, mask = torch.arange(11) % 4, torch.arange(11) % 2 == 0
    found = eq.network(A, H, y, mask, layers, version)
    dense, loss = dense_network(A, H, y, mask, layers, version)
    torch.testing.assert_close(found["loss"], loss)
    rows, cols, seen = A.pattern.row_indices, A.indices.long(), {"loss"}
    for l, layer in enumerate(dense):
        for name in (name.split(".")[1] for name in found if name.startswith(f"layer{l + 1}.")):
            if name in NAMES_OF_GRADIENTS:
                expected = torch.autograd.grad(loss, getattr(layer, NAMES_OF_GRADIENTS[name]), retain_graph=True)[0]
            elif name == "C_prime":
                expected = torch.autograd.grad(layer.L.sum(), layer.sum, retain_graph=True)[0]
            elif name == "jacobian":
                expected = torch.stack([h.diag() - h.outer(h) for h in layer.H])
            else:
                expected = getattr(layer, name)
            expected = expected[rows, cols] if expected.shape[:2] == (11, 11) else expected
            torch.testing.assert_close(found[f"layer{l + 1}.{name}"], expected, msg=f"layer{l + 1}.{name}")
            seen.add(f"layer{l + 1}.{name}")
    assert seen == set(found)
    assert torch.equal(found["layer2.dH"], found["layer1.delta"])  # (33), (38)


@pytest.mark.parametrize("version", [1, 2])
def test_network_by_finite_differences(version: int) -> None:
    A, y, mask = directed_graph(8, 2), torch.arange(8) % 3, torch.ones(8, dtype=torch.bool)
    generator = torch.Generator().manual_seed(3)
    H = torch.randn(8, 5, dtype=torch.float64, generator=generator)
    layers = [parameters(version, 2, 5, 3, 1), parameters(version, 3, 6, 3, 2)]
    found, step = eq.network(A, H, y, mask, layers, version), 1e-6
    names = [["dW", "da_dst", "da_src"], ["dW_dst", "dW_src", "da"]][version - 1]
    tensors = {f"layer{l + 1}.{name}": p for l in (0, 1) for name, p in zip(names, layers[l], strict=True)}
    for name, tensor in {"layer1.dH": H, **tensors}.items():
        flat, gradient = tensor.view(-1), found[name].reshape(-1)
        for k in torch.randperm(flat.numel(), generator=generator)[:8].tolist():
            losses = []
            for sign in (1, -1):
                flat[k] += sign * step
                losses.append(eq.network(A, H, y, mask, layers, version)["loss"])
                flat[k] -= sign * step
            torch.testing.assert_close((losses[0] - losses[1]) / (2 * step), gradient[k], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("version", [1, 2])
def test_network_on_a_device(version: int, device: torch.device) -> None:
    A, y, mask = directed_graph(8, 2), torch.arange(8) % 3, torch.ones(8, dtype=torch.bool)
    H = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    layers = [parameters(version, 2, 5, 3, 1), parameters(version, 3, 6, 3, 2)]
    moved = [tuple(parameter.to(device) for parameter in layer) for layer in layers]
    found = eq.network(A.to(device), H.to(device), y.to(device), mask.to(device), moved, version)
    for name, expected in eq.network(A, H, y, mask, layers, version).items():
        assert found[name].device == device
        torch.testing.assert_close(found[name].cpu(), expected)


def test_the_plain_path_is_differentiable() -> None:
    A, c = directed_graph(6, 0), torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)

    def f(c: Tensor) -> Tensor:
        L = eq.logits_v2(c[0], eq.outer_sum(A, c, 2 * c))
        return eq.hidden_output(eq.aggregation(A, eq.attention(A, L), c))

    assert torch.autograd.gradcheck(f, (c,))


def test_mistakes() -> None:
    A, H, W = gs.eye(3), torch.ones(3, 5), torch.ones(2, 4, 3)
    layer = (torch.ones(1, 5, 2), torch.ones(1, 2), torch.ones(1, 2))
    y, mask = torch.tensor([0, 1, 2]), torch.ones(3, dtype=torch.bool)
    mistakes = {
        "combination: H has 5 features but W is for 4": lambda: eq.combination(H, W),
        "combination: W must be (K, F, d), not (4, 3)": lambda: eq.combination(H, W[0]),
        "coefficients: a has shape (3,)": lambda: eq.coefficients_v1(torch.ones(3, 2, 3), torch.ones(3)),
        "outer_sum: c_dst has shape (3, 2)": lambda: eq.outer_sum(A, torch.ones(3, 2), torch.ones(3, 1)),
        "loss: class 2 is outside the 2 classes": lambda: eq.network(A, H, y, mask, [layer]),
        "loss: the mask is empty": lambda: eq.network(A, H, y, ~mask, [layer]),
        "network: wants at least one layer": lambda: eq.network(A, H, y, mask, []),
        "network: version must be 1 or 2, not 3": lambda: eq.network(A, H, y, mask, [layer], version=3),
        "network: A must be square, not 3 x 4": lambda: eq.network(gs.eye(3, 4), H, y, mask, [layer]),
        "there is no row 3 of 3": lambda: eq.attention_jacobian(A, torch.ones(3, 1), 3),
    }
    for message, call in mistakes.items():
        with pytest.raises((ValueError, IndexError), match=re.escape(message)):
            call()
    with pytest.raises(TypeError, match="A must be a Pattern or a SparseMatrix, not Tensor"):
        eq.attention(torch.ones(3, 3), torch.ones(3, 1))
