# SPDX-License-Identifier: BSD-3-Clause
"""Each line of docs/gradients.md, by finite differences; then the rule itself for every mix of dense and sparse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import gossamer as gs
from cases import Make

M, N, K = 3, 4, 2
H = 1e-6


def example() -> tuple[Tensor, Tensor, Tensor]:
    make = Make(seed=3)
    return make.dense(M, N), make.dense(N, K), make.dense(M, K)


def differences(f: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """∂f/∂at, entry by entry, centred: the shape of f's result, then that of `at`."""
    columns = []
    for k in range(at.numel()):
        step = torch.zeros(at.numel(), dtype=at.dtype).index_fill(0, torch.tensor(k), H).reshape(at.shape)
        columns.append((f(at + step) - f(at - step)) / (2 * H))
    return torch.stack(columns, -1).unflatten(-1, at.shape)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-7)


def test_chain_rule() -> None:
    W, X, dY = example()
    jacobian = differences(lambda x: W @ x, X)
    close(differences(lambda x: (dY * (W @ x)).sum(), X), torch.einsum("ab,abij->ij", dY, jacobian))


def test_most_terms_are_zero_and_the_others_are_entries_of_W() -> None:
    W, X, _ = example()
    jacobian = differences(lambda x: W @ x, X)  # [a, b, i, j]
    for b in range(K):
        for j in range(K):
            close(jacobian[:, b, :, j], W if b == j else torch.zeros_like(W))


def test_left_and_right_products() -> None:
    W, X, dY = example()
    close(differences(lambda x: (dY * (W @ x)).sum(), X), W.T @ dY)
    close(differences(lambda w: (dY * (w @ X)).sum(), W), dY @ X.T)
    close(differences(lambda x: (dY.T * (x @ W.T)).sum(), X.T), dY.T @ W)
    close(differences(lambda w: (dY.T * (X.T @ w)).sum(), W.T), X @ dY.T)


@pytest.mark.parametrize("sparse", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_swaps_transposes_and_masks(sparse: tuple[bool, bool]) -> None:
    make = Make(seed=4)
    matrices = [make.matrix(9, 7), make.matrix(7, 8)]
    dense = [A.to_dense() for A in matrices]
    a, b = (
        A.requires_grad_() if s else D.clone().requires_grad_() for A, D, s in zip(matrices, dense, sparse, strict=True)
    )
    Y = gs.matmul(a, b)
    assert isinstance(Y, gs.SparseMatrix) == all(sparse)
    G = make.dense(9, 8)
    if isinstance(Y, gs.SparseMatrix):
        G = Y.with_values(G[Y.pattern.row_indices, Y.indices.long()]).to_dense().detach()
        close(Y.to_dense(), dense[0] @ dense[1])
        Y.values.backward(G[Y.pattern.row_indices, Y.indices.long()])
    else:
        close(Y, dense[0] @ dense[1])
        Y.backward(G)
    for operand, wanted in ((a, G @ dense[1].T), (b, dense[0].T @ G)):
        if isinstance(operand, gs.SparseMatrix):
            close(operand.grad.values, wanted[operand.pattern.row_indices, operand.indices.long()])
        else:
            close(operand.grad, wanted)
