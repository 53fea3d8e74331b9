# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile(fullgraph=True), and batches of gradients by torch.autograd's own, older vmap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import jacobian

import gossamer as gs

f64 = torch.float64
A = gs.poisson(4, dtype=f64)
B = gs.from_dense(torch.tensor([[1.0, 0, 2, 0], [0, 0, 0, 3], [0, 4, 0, 0], [5, 0, 0, 6]], dtype=f64))
R = gs.random(4, 3, 0.8, dtype=f64, generator=torch.Generator().manual_seed(1))
EDGES = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 0, 3, 1]])


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def dense(result: Any) -> Tensor:
    return result.to_dense() if isinstance(result, gs.SparseMatrix) else result


OPERATORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "A @ x": (lambda A, x: A @ x, (A, torch.arange(4.0, dtype=f64))),
    "x @ A": (lambda A, x: x @ A, (A, torch.arange(4.0, dtype=f64))),
    "A @ X, square": (lambda A, X: A @ X, (B, torch.randn(4, 4, dtype=f64))),
    "X @ A, square": (lambda A, X: X @ A, (B, torch.randn(4, 4, dtype=f64))),
    "A @ X, rectangular": (lambda A, X: A @ X, (R, torch.randn(3, 2, dtype=f64))),
    "torch.matmul(X, A)": (lambda A, X: torch.matmul(X, A), (R, torch.randn(2, 4, dtype=f64))),
    "A @ B": (lambda A, B: A @ B, (A, B)),
    "A + B": (lambda A, B: A + B, (A, B)),
    "A * B": (lambda A, B: A * B, (A, B)),
    "2 * A / s": (lambda A, s: 2 * A / s, (A, torch.tensor(3.0, dtype=f64))),
    "from_coo": (lambda r, v: gs.from_coo(r, r, v, (3, 3)) @ v, (torch.tensor([2, 0, 2]), torch.ones(3, dtype=f64))),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_in_one_graph(name: str) -> None:
    f, inputs = OPERATORS[name]
    torch.testing.assert_close(dense(torch.compile(f, fullgraph=True, backend="eager")(*inputs)), dense(f(*inputs)))


def test_a_product_that_does_not_fit_is_not_the_other_one() -> None:
    X = torch.randn(2, 4, dtype=f64)  # X @ R is possible, R @ X is not
    for fullgraph in (False, True):
        with pytest.raises(Exception, match="X has 2 rows but A has 3 columns"):
            torch.compile(lambda A, X: A @ X, fullgraph=fullgraph, backend="eager")(R, X)


def test_products_of_tensors_are_as_they_were() -> None:
    X = torch.randn(3, 3)
    torch.testing.assert_close(torch.compile(lambda X: X @ X, fullgraph=True, backend="eager")(X), X @ X)


@pytest.mark.parametrize("first", ["gossamer", "torch._dynamo"])
def test_the_order_of_imports_does_not_matter(first: str) -> None:
    second = "torch._dynamo" if first == "gossamer" else "gossamer"
    program = f"""
import sys, torch, {first}
assert {first == "torch._dynamo"} == ("torch._dynamo" in sys.modules)
import {second}, gossamer as gs
A, x = gs.poisson(3), torch.ones(3)
assert torch.equal(torch.compile(lambda A, x: A @ x, fullgraph=True, backend="eager")(A, x), A @ x)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "GCNConv": lambda: gs.nn.GCNConv(3, 2),
    "GATConv": lambda: gs.nn.GATConv(3, 2, heads=2),
    "GATv2Conv": lambda: gs.nn.GATv2Conv(3, 2, add_self_loops=False),
    "GATConv with features of edges": lambda: gs.nn.GATConv(3, 2, edge_dim=2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_one_graph(name: str) -> None:
    layer, x = LAYERS[name](), torch.randn(4, 3)
    more = (torch.randn(5, 2),) if "features" in name else ()
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x, EDGES, *more), layer(x, EDGES, *more))


Z = torch.randn(4, 2, 3, dtype=f64, generator=torch.Generator().manual_seed(3))
x = torch.arange(1.0, 5.0, dtype=f64)
FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "spmm": (lambda v: A.with_values(v) @ x, A.values),
    "spmm in X": (lambda X: A @ X, x),
    "sddmm": (lambda X: gs.sddmm(A, X, X).values, Z[:, 0]),
    "spgemm": (lambda v: (A.with_values(v) @ B).values, A.values),
    "sum of two": (lambda v: (A.with_values(v) + B).values, A.values),
    "hadamard": (lambda v: (A.with_values(v) * B).values, A.values),
    "row_softmax": (lambda v: A.with_values(v).row_softmax().values, A.values),
    "sum": (lambda v: A.with_values(v).sum(1), A.values),
    "amax": (lambda v: A.with_values(v).amax(1), A.values),
    "diagonal": (lambda v: A.with_values(v).diagonal(), A.values),
    "solve_triangular": (lambda v: gs.linalg.solve_triangular(A.with_values(v), x), A.values),
    "solve": (lambda v: gs.linalg.solve(A.with_values(v), x), A.values),
    "logdet": (lambda v: gs.linalg.factorize(A.with_values(v)).logdet(), A.values),
    "gat": (lambda z: gs.gat_attention(A.pattern, z, z[..., 0], z[..., 1]), Z),
    "gatv2": (lambda z: gs.gatv2_attention(A.pattern, z, z, z[0]), Z),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jacobian_in_one_batch_is_the_jacobian(name: str) -> None:
    f, at = FUNCTIONS[name]
    torch.testing.assert_close(jacobian(f, at, vectorize=True), jacobian(f, at))


def test_gradients_in_a_batch() -> None:
    v = A.values.clone().requires_grad_()
    y = A.with_values(v) @ x
    (batch,) = torch.autograd.grad(y, v, torch.eye(4, dtype=f64), is_grads_batched=True, retain_graph=True)
    one_by_one = [torch.autograd.grad(y[i], v, retain_graph=True)[0] for i in range(4)]
    torch.testing.assert_close(batch, torch.stack(one_by_one))


def test_a_transposed_complex_solve_is_an_ordinary_tensor() -> None:
    factor = gs.linalg.factorize(B.to(torch.complex128) * 1j)
    b = torch.ones(4, dtype=torch.complex128)
    got = factor.solve(b, transpose=True).numpy()
    torch.testing.assert_close(torch.from_numpy(got), torch.linalg.solve(1j * B.to_dense().T, b))


def test_a_matrix_is_an_input_of_an_exported_program() -> None:
    class Product(torch.nn.Module):
        def forward(self, A: gs.SparseMatrix, x: Tensor) -> Tensor:
            return A @ x

    exported = torch.export.export(Product(), (A, x)).module()
    torch.testing.assert_close(exported(A * 2, x), 2 * (A @ x))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_dropout_obeys_vmap(randomness: str) -> None:
    rows = torch.func.vmap(lambda v: gs.dropout(v, 0.5), randomness=randomness)(torch.ones(3, 64))
    assert torch.equal(rows[0], rows[1]) == (randomness == "same")
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.vmap(lambda v: gs.dropout(v, 0.5))(torch.ones(3, 64))


@pytest.mark.parametrize("name", ["solve", "krylov", "lstsq", "eigsh", "cholesky", "A @ B"])
def test_a_batch_without_members_does_not_crash(name: str) -> None:
    """A result has the size of a batch, or ValueError says that it is empty."""
    ops: dict[str, Callable[[Tensor], Tensor]] = {
        "solve": lambda v: gs.linalg.solve(A.with_values(v), x),
        "krylov": lambda v: gs.linalg.cg(A.with_values(v), x)[0],
        "lstsq": lambda v: gs.linalg.lstsq(A.with_values(v), x),
        "eigsh": lambda v: gs.linalg.eigsh(A.with_values(v), 1)[0],
        "cholesky": lambda v: gs.linalg.cholesky(A.with_values(v)).L.values,
        "A @ B": lambda v: (A.with_values(v) @ B).values,
    }
    try:
        assert len(torch.func.vmap(ops[name])(A.values.new_empty((0, A.nnz)))) == 0
    except ValueError as error:
        assert "vmap over an empty batch" in str(error)  # noqa: PT017
