# SPDX-License-Identifier: BSD-3-Clause
"""Rows to processes: the graph against dense mathematics, balance against counting, METIS of both sources."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

OPS = torch.ops.gossamer


def random(rows: int, cols: int, density: float, index: torch.dtype) -> gs.SparseMatrix:
    A = gs.random(rows, cols, density=density, generator=torch.Generator().manual_seed(rows))
    return gs.SparseMatrix(gs.Pattern(A.indptr.to(index), A.indices.to(index), A.shape), A.values)


def weights(A: gs.SparseMatrix) -> Tensor:
    return A.indptr.diff().long() + 1


def loads(A: gs.SparseMatrix, part: Tensor, parts: int) -> Tensor:
    return torch.zeros(parts, dtype=torch.int64).index_add_(0, part, weights(A))


def cut(A: gs.SparseMatrix, part: Tensor) -> int:
    return int((part[A.pattern.row_indices.long()] != part[A.indices.long()]).sum())


def star(n: int) -> gs.SparseMatrix:
    """Node 0 knows everyone: unweighted, whoever has it does most of the work."""
    at = torch.arange(1, n)
    rows, cols = torch.cat([torch.zeros_like(at), at]), torch.cat([at, torch.zeros_like(at)])
    return gs.from_coo(rows, cols, torch.ones(2 * n - 2), (n, n))


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("n", [0, 1, 7, 30])
def test_graph_is_that_of_both_directions(n: int, index: torch.dtype) -> None:
    A = random(n, n, 0.2, index)
    ptr, neighbours, weight = OPS.distributed_graph(A.pattern.tensors(), A.shape)
    dense = A.to_dense() != 0
    wanted = (dense | dense.T) & ~torch.eye(n, dtype=torch.bool)
    got = torch.zeros(n, n, dtype=torch.int64)
    rows = torch.repeat_interleave(torch.arange(n), ptr.diff())
    got.index_put_((rows, neighbours), torch.ones_like(rows), accumulate=True)
    assert torch.equal(got, wanted.long())
    assert torch.equal(weight, weights(A))


def test_graph_of_parallel_edges_and_unsorted_columns() -> None:
    """A block of a distributed matrix, and a graph with double edges, have rows in any order."""
    P = gs.Pattern(torch.tensor([0, 4, 5, 5]), torch.tensor([2, 1, 2, 0, 1]), (3, 3), check=False)
    ptr, neighbours, weight = OPS.distributed_graph(P.tensors(), P.shape)
    assert ptr.tolist() == [0, 2, 3, 4]
    assert neighbours.tolist() == [2, 1, 0, 0]
    assert weight.tolist() == [5, 2, 1]


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_contiguous_is_balanced_by_entries(parts: int, index: torch.dtype) -> None:
    A = random(200, 90, 0.1, index)
    part = gs.distributed.partition(A, parts, method="contiguous")
    assert part.dtype is torch.int64
    assert (part.diff() >= 0).all()
    assert int(part.min()) >= 0
    assert int(part.max()) < parts
    load, heaviest = loads(A, part, parts), int(weights(A).max())
    assert (load - weights(A).sum() / parts).abs().max() <= heaviest  # half a row at each end


@pytest.mark.parametrize(("n", "parts"), [(0, 3), (1, 1), (1, 4), (3, 5), (5, 5), (2, 2)])
@pytest.mark.parametrize("method", ["auto", "contiguous"])
def test_few_rows(n: int, parts: int, method: str) -> None:
    part = gs.distributed.partition(gs.eye(n), parts, method=method)
    assert len(part) == len(part.unique()) == n  # a process each
    assert ((part >= 0) & (part < parts)).all()


def by_library(A: gs.SparseMatrix, parts: int) -> Tensor:
    """Without pymetis: what C++ takes."""
    try:
        return OPS.distributed_parts(A.pattern.tensors(), A.shape, parts, "metis")
    except NotImplementedError:
        pytest.skip("libmetis is not on this machine")


def by_pymetis(A: gs.SparseMatrix, parts: int) -> Tensor:
    pytest.importorskip("pymetis")
    return gs.distributed.partition(A, parts, method="metis")


@pytest.mark.parametrize("by", [by_library, by_pymetis])
@pytest.mark.parametrize("parts", [2, 4, 9])
def test_metis_cuts_less_than_ranges(by: Any, parts: int) -> None:
    A = gs.poisson((40, 40))
    shuffled = A.submatrix(*[torch.randperm(1600, generator=torch.Generator().manual_seed(0))] * 2)
    part = by(shuffled, parts)
    assert part.dtype is torch.int64
    assert cut(shuffled, part) < cut(shuffled, gs.distributed.partition(shuffled, parts, method="contiguous")) / 4
    assert loads(shuffled, part, parts).max() <= 1.1 * weights(A).sum() / parts
    assert torch.equal(part, by(shuffled, parts))  # the same on every call


@pytest.mark.parametrize("by", [by_library, by_pymetis])
def test_metis_balances_entries_not_rows(by: Any) -> None:
    """The node that everyone knows weighs half of all: it is nearly alone with its process."""
    A = star(401)
    load = loads(A, by(A, 2), 2)
    assert load.max() <= 1.1 * load.sum() / 2


@pytest.mark.parametrize("by", [by_library, by_pymetis])
def test_metis_sees_both_directions(by: Any) -> None:
    """A cycle of directed edges inside each of two groups, in random order: no edge need be cut."""
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1))
    groups = order.view(2, 50)
    to = groups.roll(1, dims=1)
    A = gs.from_coo(groups.flatten(), to.flatten(), torch.ones(100), (100, 100))
    assert cut(A, by(A, 2)) == 0


def test_without_pymetis(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" takes the library's METIS, or ranges: whatever the op itself would."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "pymetis" else found(name, *a))
    A = gs.poisson((9, 9))
    wanted = OPS.distributed_parts(A.pattern.tensors(), A.shape, 3, "auto")
    assert torch.equal(gs.distributed.partition(A, 3), wanted)


def test_rectangular_ones_get_ranges() -> None:
    A = gs.random(20, 8, density=0.3)
    assert torch.equal(gs.distributed.partition(A, 3), gs.distributed.partition(A, 3, method="contiguous"))


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        (lambda: gs.distributed.partition(torch.eye(3), 2), TypeError, "A must be a SparseMatrix or a Pattern"),
        (lambda: gs.distributed.partition(gs.eye(3), 0), ValueError, "parts must be at least 1, not 0"),
        (lambda: gs.distributed.partition(gs.eye(3), 1.5), TypeError, "parts must be an integer, not float"),
        (lambda: gs.distributed.partition(gs.eye(3), 2, method="kahip"), ValueError, 'not "kahip"'),
        (lambda: gs.distributed.partition(gs.random(4, 3, 0.5), 2, method="metis"), ValueError, "not 4 x 3"),
        (lambda: OPS.distributed_parts([torch.zeros(1)], (0, 0), 2, "auto"), ValueError, "at least two tensors"),
        (lambda: OPS.distributed_graph([torch.tensor([0, 1]), torch.tensor([5])], (1, 1)), ValueError, "does not fit"),
    ],
)
def test_mistakes(mistake: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        mistake()
