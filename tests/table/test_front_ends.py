# SPDX-License-Identifier: BSD-3-Clause
"""C++ against Python: the same results, to the last bit, on the same patterns; the same layers; the same words."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from front_end import cpp, to_cpp, to_python
from runners import PYTHON, Runner

import gossamer as gs
from cases import CASES, KINDS, Case, Make

pytestmark = pytest.mark.parametrize("runner", ["cpp"], indirect=True)


def kind_of(result: Any) -> type:
    """A transpose without arrays of its own is a matrix like any other."""
    return gs.SparseMatrix if isinstance(result, gs.SparseMatrix) else type(result)


def assert_same(ours: Any, theirs: Any) -> None:
    """Bit for bit, and of the same dtypes; a matrix on the same pattern, of the same index width."""
    assert kind_of(ours) is kind_of(theirs)
    if isinstance(ours, gs.SparseMatrix):
        assert ours.shape == theirs.shape
        assert_same(ours.indptr, theirs.indptr)
        assert_same(ours.indices, theirs.indices)
        return assert_same(ours.values, theirs.values)
    assert ours.dtype is theirs.dtype
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_results_are_the_same(case: Case, index_dtype: torch.dtype, runner: Runner) -> None:
    for kind in KINDS:
        inputs = case.inputs(Make(kind, torch.float32, index_dtype))
        assert_same(runner.run(case, inputs), PYTHON.run(case, inputs))


@pytest.mark.parametrize("name", ["eye", "poisson", "random", "from_dense", "from_torch", "from_edge_index"])
def test_constructions_are_the_same(name: str, runner: Runner) -> None:
    given: dict[str, tuple[Any, ...]] = {
        "eye": (3,),
        "poisson": ((3, 4),),
        "random": (5, 7, 0.5),  # 17.5 entries
        "from_dense": (torch.eye(3),),
        "from_torch": (torch.eye(3).to_sparse_csc(),),
        "from_edge_index": (torch.tensor([[0, 1, 1], [2, 2, 0]]),),
    }
    results = []
    for front_end in (cpp, gs):
        torch.manual_seed(0)
        results.append(to_python(getattr(front_end, name)(*given[name])))
    assert_same(*results)


def test_representations_are_the_same(runner: Runner) -> None:
    make = Make()
    for A in (
        make.matrix(4, 5),
        make.matrix(2, 2, 3),
        make.matrix(3, 3).to(torch.bfloat16),
        gs.eye(2).requires_grad_(),
    ):
        assert to_cpp(A).repr() == repr(A)
        assert torch.ops.gossamer_cpp.pattern_repr(to_cpp(A.pattern)) == repr(A.pattern)


ROWS, COLS = torch.tensor([2, 0, -1, 2]), torch.tensor([4, 0, 0, -5])
WIDE = torch.tensor([[0, 1, 3, 0], [-1, 2, 2, 2]])
KEYS = [
    *(2, -4, slice(1, 3), slice(None, None, -2), ROWS, ROWS.int(), torch.tensor([True, False, False, True]), ...),
    *((1, slice(1, None)), (slice(None), 3), (..., -1), (slice(0, 3), COLS), (ROWS, slice(3, None, -1)), (ROWS, 2)),
    *((0, COLS), (1, 2), (ROWS, COLS), (ROWS, COLS[:1]), (ROWS[:1], COLS), (torch.tensor(3), slice(None))),
    *(
        (ROWS[:, None], COLS),
        (ROWS[:, None], COLS[None]),
        (WIDE, COLS),
        (ROWS, WIDE),
        (WIDE, WIDE),
        (WIDE[:, :1], WIDE),
    ),
    *((WIDE[:0], COLS), (ROWS[:0], COLS[:0]), (WIDE[:, :0], WIDE[:, :0]), (ROWS[None], COLS[:, None])),
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("heads", [(), (2,)], ids=["one", "heads"])
def test_indexing_is_the_same(key: Any, heads: tuple[int, ...], runner: Runner) -> None:
    A = Make().matrix(4, 5, *heads)
    assert_same(to_python(to_cpp(A)[key]), A[key])


def test_dropout_is_the_same(runner: Runner) -> None:
    x = torch.ones(1000)
    for given in ((), (0.3, True, None), (0.3, True, 7), (0.3, False, 7)):
        results = []
        for dropout in (
            torch.ops.gossamer_cpp.dropout,
            lambda x, p=0.5, on=True, seed=None: gs.dropout(x, p, on, seed=seed),
        ):
            torch.manual_seed(0)
            results.append(dropout(x, *given))
        assert_same(*results)


def layers() -> list[Any]:
    """Name, arguments and whether edges have features or weights."""
    gcn = [{}, {"improved": True}, {"normalize": False}, {"add_self_loops": False, "bias": False}]
    attention: list[dict[str, Any]] = [
        {"heads": 2},
        {"heads": 3, "concat": False, "add_self_loops": False},
        {"heads": 2, "edge_dim": 2, "fill_value": "max", "residual": True},
    ]
    rows = [("GCNConv", how, weighted) for how in gcn for weighted in (False, True)]
    rows += [(name, how, "edge_dim" in how) for name in ("GATConv", "GATv2Conv") for how in attention]
    rows += [("GATv2Conv", {"heads": 2, "share_weights": True}, False)]
    return [pytest.param(*row, id=f"{row[0]}-{k}") for k, row in enumerate(rows)]


@pytest.mark.parametrize(("name", "how", "featured"), layers())
@pytest.mark.parametrize("as_matrix", [False, True], ids=["edge_index", "matrix"])
def test_layers_are_the_same(name: str, how: dict[str, Any], featured: bool, as_matrix: bool, runner: Runner) -> None:
    """Parameters of the same names; with equal ones the same output and gradients, to the last bit."""
    make = Make(seed=1)
    A = make.matrix(8, 8)
    edge_index = torch.stack([A.indices.long(), A.pattern.row_indices])
    x, layer = make.dense(8, 3).requires_grad_(), getattr(gs.nn, name)(3, 4, **how).double()
    if name == "GCNConv":
        A = A.with_values(A.values.abs() + 1)
        features = A.values + 1 if featured else None
    else:
        features = make.dense(A.nnz, 2) if featured else None
    out = layer(x, A if as_matrix else edge_index, features)
    named = dict(layer.named_parameters())
    wanted = [out, *torch.autograd.grad(out.sin().sum(), [x, *named.values()])]

    graph = to_cpp(A).wire if as_matrix else [edge_index]
    given = x.detach(), graph, features, list(named), [p.detach() for p in named.values()]
    op = torch.ops.gossamer_cpp
    if name == "GCNConv":
        defaults = {"improved": False, "normalize": True, "bias": True, "add_self_loops": None} | how
        got = op.gcn_layer(4, *defaults.values(), *given)
    else:
        defaults = {"heads": 1, "concat": True, "add_self_loops": True, "edge_dim": None, "fill_value": "mean"}
        defaults |= {"residual": False, "share_weights": False} | how
        got = op.attention_layer(name, 4, *defaults.values(), *given)
    for a, b in zip(got, wanted, strict=True):
        assert torch.equal(a, b)
