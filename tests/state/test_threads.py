# SPDX-License-Identifier: BSD-3-Clause
"""One matrix, one factor, one layer, used by eight threads at once, forward and backward: each gets the bits that one
thread alone gets. The objects are new each time, so that what they find once and keep is asked for by all at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

F64 = torch.float64
THREADS, ROUNDS = 8, 10


@pytest.fixture(autouse=True)
def often_another_thread() -> Iterator[None]:
    """Python changes threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def from_all(use: Callable[[], Any]) -> list[Any]:
    """What use() gives in eight threads that start together; an error is among the results."""
    start = threading.Barrier(THREADS)
    found: list[Any] = [None] * THREADS

    def run(t: int) -> None:
        torch.set_num_threads(1)
        start.wait()
        try:
            found[t] = use()
        except Exception as error:
            found[t] = error

    team = [threading.Thread(target=run, args=(t,)) for t in range(THREADS)]
    for each in team:
        each.start()
    for each in team:
        each.join()
    return found


def with_gradients(y: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    return [y.detach(), *torch.autograd.grad(y.sin().sum(), leaves)]


def laplacian(k: int) -> gs.SparseMatrix:
    return (gs.poisson((12, 12), dtype=F64) * (1.0 + k)).requires_grad_()


def columns(n: int) -> Tensor:
    return torch.linspace(-1, 1, 3 * n, dtype=F64).sin().reshape(n, 3).requires_grad_()


def of_matrix(A: gs.SparseMatrix) -> list[Tensor]:
    X = columns(A.shape[1])
    return with_gradients(A @ X + (A @ A) @ X + (A + A.T) @ X, [A.values, X])


def of_factor(factor: gs.linalg.Factor) -> list[Tensor]:
    b = columns(factor.A.shape[0])
    y = factor.solve(b) + factor.solve(b, transpose=True) + factor.logdet()
    return with_gradients(y, [factor.A.values, b])


def of_layer(layer: Any, graph: gs.SparseMatrix) -> list[Tensor]:
    x = columns(graph.shape[1])
    return with_gradients(layer(x, graph), [*layer.parameters(), x])


def shared(what: str, k: int) -> Callable[[], list[Tensor]]:
    """A new object, and what is done with it."""
    if what == "matrix":
        A = laplacian(k)
        return lambda: of_matrix(A)
    if what in ("cholesky", "lu"):
        factor = gs.linalg.factorize(laplacian(k), kind=what)
        return lambda: of_factor(factor)
    torch.manual_seed(k)
    layer, graph = getattr(gs.nn, what)(3, 4).double(), laplacian(k).detach()
    return lambda: of_layer(layer, graph)


@pytest.mark.parametrize("what", ["matrix", "cholesky", "lu", "GCNConv", "GATConv", "GATv2Conv"])
def test_eight_threads_share_an_object(what: str) -> None:
    torch.set_num_threads(1)
    for k in range(ROUNDS):
        alone = shared(what, k)()
        for found in from_all(shared(what, k)):
            assert isinstance(found, list), found
            for got, wanted in zip(found, alone, strict=True):
                assert torch.equal(got, wanted)


def test_a_transpose_that_another_thread_finds_first() -> None:
    """One thread is on its way to the op when another has found the transpose: both get the same."""
    P = gs.poisson((4, 5), dtype=F64).pattern
    keep, found = P.keep, []

    def late(key: Any, make: Callable[[], Any], other: Any = None) -> Any:
        P.keep = keep  # type: ignore[method-assign]
        found.append(P.transpose())
        P._kept.clear()
        return keep(key, make, other)

    P.keep = late  # type: ignore[method-assign]
    for got, wanted in zip(P.transpose(), found[0], strict=True):
        assert torch.equal(got, wanted)
