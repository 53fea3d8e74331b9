# SPDX-License-Identifier: BSD-3-Clause
"""A.T costs nothing: nothing is gathered for a product or a solve, and it behaves as the matrix it stands for."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs
from gossamer import linalg


def matrix(rows: int = 7, cols: int = 5, seed: int = 0) -> gs.SparseMatrix:
    generator = torch.Generator().manual_seed(seed)
    return gs.random(rows, cols, 0.4, generator=generator, dtype=torch.float64)


def square(seed: int = 0) -> gs.SparseMatrix:
    return matrix(6, 6, seed) + 3 * gs.eye(6, dtype=torch.float64)


def dense(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


class Calls(TorchDispatchMode):
    """The names of the ops that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


USES: dict[str, Callable[[gs.SparseMatrix], Any]] = {
    "A.T @ x": lambda A: A.T @ dense(6),
    "A.T @ X": lambda A: A.T @ dense(6, 3),
    "x @ A.T": lambda A: dense(6) @ A.T,
    "X @ A.T": lambda A: dense(3, 6) @ A.T,
    "spmm, transposed": lambda A: gs.spmm(A.T, dense(6, 3), transpose=True),
    "a product with A.T.T": lambda A: A.T.T @ dense(6),
    "A.T @ B.T": lambda A: (A.T @ A.T) @ dense(6),
    "A.T @ B": lambda A: (A.T @ square(1)) @ dense(6),
    "solve": lambda A: linalg.solve(A.T, dense(6)),
    "solve, transposed": lambda A: linalg.factorize(A.T).solve(dense(6, 2), transpose=True),
    "logdet": lambda A: linalg.factorize(A.T).logdet(),
    "the inverse where A has entries": lambda A: linalg.factorize(A.T).selected_inverse() @ dense(6),
    "the sign": lambda A: linalg.factorize(A.T).slogdet().sign,
    "solve_triangular": lambda A: linalg.solve_triangular(A.T, dense(6), upper=True),
    "solve_triangular, transposed": lambda A: linalg.solve_triangular(A.T, dense(6), transpose=True),
    "with numbers": lambda A: A.T @ [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "its shape, type and place": lambda A: (A.T.shape, A.T.nnz, A.T.dtype, A.T.device),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_is_gathered(use: Callable[[gs.SparseMatrix], Any]) -> None:
    A = square()
    expected = use(A.T.T)  # whatever is kept with the pattern is now there
    arrays = gs.SparseMatrix(A.pattern.T, A.T.values)  # the transpose as a matrix of its own
    with Calls() as calls:
        result = use(A)
    assert not any("index" in name or "gather" in name for name in calls.names)
    assert not isinstance(expected, Tensor) or torch.equal(result, expected)
    of_arrays = use(arrays.T)  # of the arrays of Aᵀ, transposed: of A
    assert result == of_arrays if not isinstance(result, Tensor) else torch.allclose(result, of_arrays)


@pytest.mark.parametrize(
    "use", ["A.T @ x", "A.T @ X", "x @ A.T", "X @ A.T", "A.T @ B", "A.T @ B.T", "solve", "solve_triangular"]
)
def test_derivatives(use: str) -> None:
    A = square()

    def f(values: Tensor) -> Any:
        return USES[use](A.with_values(values))

    values = A.values.clone().requires_grad_()
    assert gradcheck(f, values)
    assert gradgradcheck(f, values)
    wanted = f(values)
    with_arrays = torch.func.grad(lambda v: USES[use](gs.SparseMatrix(A.pattern.T, v).T).sum())
    there = with_arrays(A.T.values.detach())
    assert torch.allclose(grad(wanted.sum(), values)[0], gs.SparseMatrix(A.pattern.T, there).T.values)


def test_the_transpose_of_a_transpose_is_the_matrix() -> None:
    A = matrix()
    assert A.T.T.values is A.values
    assert A.T.T.pattern is A.pattern
    T = A.T
    assert torch.equal(T.to_dense(), A.to_dense().T)  # its arrays are there now
    assert torch.equal(T.T.to_dense(), A.to_dense())


def test_it_sees_the_values_until_it_has_its_own() -> None:
    A, x = matrix(), dense(7)
    T = A.T
    with torch.no_grad():
        A.values.mul_(2)
    assert torch.equal(T @ x, A.T @ x)
    A.values = torch.zeros(A.nnz, dtype=torch.float64)  # another tensor: not that of the transpose
    assert (T @ x).abs().sum() > 0
    own = T.values
    own.zero_()  # its own now: the products are with them
    assert (T @ x).abs().sum() == 0
    T.values = torch.ones(A.nnz, dtype=torch.float64)
    assert torch.equal(T @ torch.ones(7, dtype=torch.float64), T.to_dense().sum(1))


def test_values_assigned_before_anybody_asked() -> None:
    A = matrix()
    T = A.T
    T.values = torch.ones(A.nnz, dtype=torch.float64)
    assert torch.equal(T.to_dense(), (A.to_dense().T != 0).double())
    with pytest.raises(ValueError, match="values has shape"):
        A.T.values = torch.ones(3)


def test_a_transpose_as_the_leaf() -> None:
    T = matrix().T.requires_grad_()
    (T @ dense(7)).sum().backward()
    assert T.grad is not None
    assert torch.allclose(T.grad.to_dense(), (T.to_dense() != 0) * dense(7))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda A: pickle.loads(pickle.dumps(A))])
def test_copies_are_matrices(copied: Callable[[gs.SparseMatrix], gs.SparseMatrix]) -> None:
    A = matrix()
    T = copied(A.T)
    assert type(T) is gs.SparseMatrix
    assert torch.equal(T.to_dense(), A.to_dense().T)


def test_everything_else_takes_its_arrays() -> None:
    A = matrix()
    D = A.to_dense().T
    assert torch.equal((A.T + A.T).to_dense(), 2 * D)
    assert torch.equal((2 * A.T).to_dense(), 2 * D)
    assert torch.equal(A.T.sum(1), D.sum(1))
    assert torch.equal(A.T[1:3].to_dense(), D[1:3])
    assert torch.equal(A.T.to(torch.float32).to_dense(), D.float())
    assert torch.allclose((A.T @ A).to_dense(), D @ D.T)
    assert torch.allclose((A @ A.T).to_dense(), D.T @ D)
    assert repr(A.T) == "SparseMatrix(5 x 7, nnz=14, float64, int32, cpu)"


def test_transforms_of_torch() -> None:
    A, x = matrix(), dense(7)
    D = A.to_dense().T
    compiled = torch.compile(lambda A, x: A.T @ x, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(A, x), D @ x)
    gradient = torch.func.grad(lambda A: (A.T @ x).sum())(A)
    assert torch.allclose(gradient.to_dense(), (A.to_dense() != 0) * x[:, None])
    of_transpose = torch.func.grad(lambda T: (T @ x).sum())(A.T)
    assert torch.allclose(of_transpose.to_dense(), (D != 0) * x)
    assert torch.allclose(torch.vmap(lambda v: A.T @ v)(dense(3, 7)), dense(3, 7) @ D.T)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_who_asks_first_does_not_matter(mode: Any) -> None:
    A = matrix().requires_grad_()
    T = A.T
    with mode():
        T.to_dense()  # gathers, but as it was when T was made
    T.to_dense().sum().backward()
    assert A.grad is not None
    assert torch.equal(A.grad.values, torch.ones(A.nnz, dtype=torch.float64))


def test_a_transform_asks_first() -> None:
    A, x = matrix(), dense(7)
    T = A.T
    gradient = torch.func.grad(lambda x: (T.to_dense() @ x + T.sum(1)).sum())(x)
    assert torch.allclose(gradient, A.to_dense().sum(1))
    assert torch.equal(T.values, A.T.values)
    assert torch.equal(T.to_dense(), A.to_dense().T)


def test_threads_ask_at_once() -> None:
    A = matrix(300, 200)
    for _ in range(20):
        T, results = A.T, []
        threads = [threading.Thread(target=lambda T=T, r=results: r.append((T.pattern, T.values))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(pattern == A.pattern.T for pattern, _ in results)
        assert all(torch.equal(values, A.T.values) for _, values in results)


def test_values_assigned_to_the_transpose_of_a_transpose_are_its_own() -> None:
    A = gs.poisson(3)
    T = A.T
    twice = T.T
    twice.values = torch.zeros(A.nnz)
    torch.testing.assert_close(T @ torch.ones(3), A.to_dense().T @ torch.ones(3))
    assert T.T.pattern is A.pattern
