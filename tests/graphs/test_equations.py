# SPDX-License-Identifier: BSD-3-Clause
"""The 39 equations of graph attention: a row of the table each. The function gets dense inputs that autograd made, and
its result is compared with what autograd says of a dense, masked layer: a wrong equation fails in its own row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from dense_attention import SLOPE, Case
from torch import Tensor

from gossamer import equations as eq

ROOT = Path(__file__).parents[2]
Pairs = Iterator[tuple[Tensor, Tensor]]
TABLE: dict[int, tuple[Callable[[Case], Pairs], tuple[int, ...], tuple[bool, ...]]] = {}


def equation(*numbers: int, versions: tuple[int, ...] = (1, 2), last: tuple[bool, ...] = (False, True)):
    """Enters a row: yields (ours, what it should be). `last`: for hidden layers, for output layers, or both."""

    def enter(row: Callable[[Case], Pairs]) -> Callable[[Case], Pairs]:
        TABLE.update(dict.fromkeys(numbers, (row, versions, last)))
        return row

    return enter


@equation(1)
def convolution(c: Case) -> Pairs:
    W, A = torch.ones(5, 2, dtype=torch.float64).cumsum(0), c.A.to_dense()
    for i in range(len(A)):
        yield eq.convolution(c.A, c.H_in, W)[i], sum(A[i, j] * c.H_in[j] for j in range(len(A))) @ W


@equation(2, versions=(1,))
def combination(c: Case) -> Pairs:
    yield eq.combination(c.H_in, c.W), torch.stack([c.H_in @ W for W in c.W], 1)


@equation(3, versions=(2,))
def combinations(c: Case) -> Pairs:
    yield eq.combination(c.H_in, c.W_dst), torch.stack([c.H_in @ W for W in c.W_dst], 1)
    yield eq.combination(c.H_in, c.W_src), torch.stack([c.H_in @ W for W in c.W_src], 1)


@equation(4, versions=(1,))
def coefficients_v1(c: Case) -> Pairs:
    yield eq.coefficients_v1(c.X, c.a_dst), c.c_dst
    yield eq.coefficients_v1(c.X, c.a_src), c.c_src


@equation(5, versions=(2,))
def coefficients_v2(c: Case) -> Pairs:
    yield eq.coefficients_v2(c.X_dst), c.c_dst
    yield eq.coefficients_v2(c.X_src), c.c_src


@equation(6, versions=(1,))
def entries_v1(c: Case) -> Pairs:
    ours = eq.logits_v1(eq.outer_sum(c.A, c.c_dst, c.c_src), SLOPE)
    for p, (i, j) in enumerate(zip(c.rows, c.cols, strict=True)):
        e = c.c_dst[i] + c.c_src[j]
        yield ours[p], torch.maximum(e, SLOPE * e)


@equation(7, versions=(2,))
def entries_v2(c: Case) -> Pairs:
    ours = eq.logits_v2(c.a, eq.outer_sum(c.A, c.c_dst, c.c_src), SLOPE)
    for p, (i, j) in enumerate(zip(c.rows, c.cols, strict=True)):
        e = c.c_dst[i] + c.c_src[j]
        yield ours[p], (c.a * torch.maximum(e, SLOPE * e)).sum(-1)


@equation(8, versions=(1,))
def logits_v1(c: Case) -> Pairs:
    yield eq.outer_sum(c.A, c.c_dst, c.c_src), c.on_edges(c.sum)
    yield eq.logits_v1(c.on_edges(c.sum), SLOPE), c.on_edges(c.L)


@equation(9, versions=(2,))
def logits_v2(c: Case) -> Pairs:
    yield eq.outer_sum(c.A, c.c_dst, c.c_src), c.on_edges(c.sum)
    yield eq.logits_v2(c.a, c.on_edges(c.sum), SLOPE), c.on_edges(c.L)


@equation(10)
def attention(c: Case) -> Pairs:
    yield eq.attention(c.A, c.on_edges(c.L)), c.on_edges(c.S)


@equation(11, versions=(1,))
@equation(12, versions=(2,))
def aggregation(c: Case) -> Pairs:
    yield eq.aggregation(c.A, c.on_edges(c.S), c.X), c.Z


@equation(13, last=(False,))
def hidden_output(c: Case) -> Pairs:
    yield eq.hidden_output(c.Z), c.H


@equation(14, last=(True,))
def final_output(c: Case) -> Pairs:
    yield eq.final_output(c.Z), c.H


@equation(15, last=(False,))
def hidden_delta(c: Case) -> Pairs:
    yield eq.hidden_delta(c.Z, c.grad("H")), c.grad("Z")


@equation(16, last=(True,))
def output_jacobian(c: Case) -> Pairs:
    for i, row in enumerate(c.mean):
        yield eq.output_jacobian(c.H)[i], torch.func.jacrev(lambda z: z.softmax(-1))(row)


@equation(17, last=(True,))
def output_delta(c: Case) -> Pairs:
    jacobians = torch.stack([torch.func.jacrev(lambda z: z.softmax(-1))(row) for row in c.mean])
    yield eq.output_delta(jacobians, c.grad("H")), c.grad("mean")
    yield eq.loss(c.H, c.y, c.mask), c.loss
    yield eq.loss_gradient(c.H, c.y, c.mask), c.grad("H")


@equation(18, last=(True,))
def head_delta(c: Case) -> Pairs:
    yield eq.head_delta(c.grad("mean"), c.heads), c.grad("Z")


@equation(19)
def attention_gradient(c: Case) -> Pairs:
    yield eq.attention_gradient(c.A, c.grad("Z"), c.X), c.on_edges(c.grad("S"))


@equation(20)
def attention_jacobian(c: Case) -> Pairs:
    L, S = c.on_edges(c.L), c.on_edges(c.S)
    for i in range(c.A.shape[0]):
        row = L[c.rows == i].T
        of_head = [torch.func.jacrev(lambda l: l.softmax(-1))(head) for head in row]
        yield eq.attention_jacobian(c.A, S, i), torch.stack(of_head)


@equation(21)
def logit_gradient(c: Case) -> Pairs:
    ours = eq.logit_gradient(c.A, c.on_edges(c.S), c.on_edges(c.grad("S")))
    yield ours, c.on_edges(c.grad("L"))
    yield c.grad("L").sum((0, 1)), ours.sum(0)  # and nothing outside of the edges


@equation(22, 23, versions=(1,))
def slopes_v1(c: Case) -> Pairs:
    (slopes,) = torch.autograd.grad(c.dense.L.sum(), c.dense.sum, retain_graph=True)
    yield eq.slopes_v1(c.on_edges(c.sum), SLOPE), c.on_edges(slopes)


@equation(24, versions=(1,))
def edge_gradient_v1(c: Case) -> Pairs:
    (slopes,) = torch.autograd.grad(c.dense.L.sum(), c.dense.sum, retain_graph=True)
    yield eq.edge_gradient_v1(c.on_edges(slopes), c.on_edges(c.grad("L"))), c.on_edges(c.grad("sum"))


@equation(25, versions=(1,))
@equation(29, versions=(2,))
def sums(c: Case) -> Pairs:
    yield eq.destination_sum(c.A, c.on_edges(c.grad("sum"))), c.grad("c_dst")
    yield eq.source_sum(c.A, c.on_edges(c.grad("sum"))), c.grad("c_src")


@equation(26, versions=(1,))
def vector_gradient_v1(c: Case) -> Pairs:
    yield eq.vector_gradient_v1(c.X, c.grad("c_dst")), c.grad("a_dst")
    yield eq.vector_gradient_v1(c.X, c.grad("c_src")), c.grad("a_src")


@equation(27, versions=(2,))
def slopes_v2(c: Case) -> Pairs:
    (slopes,) = torch.autograd.grad(c.dense.L.sum(), c.dense.sum, retain_graph=True)
    yield eq.slopes_v2(c.a, c.on_edges(c.sum), SLOPE), c.on_edges(slopes)


@equation(28, versions=(2,))
def edge_gradient_v2(c: Case) -> Pairs:
    (slopes,) = torch.autograd.grad(c.dense.L.sum(), c.dense.sum, retain_graph=True)
    yield eq.edge_gradient_v2(c.on_edges(slopes), c.on_edges(c.grad("L"))), c.on_edges(c.grad("sum"))


@equation(30, versions=(2,))
def vector_gradient_v2(c: Case) -> Pairs:
    yield eq.vector_gradient_v2(c.on_edges(c.grad("L")), c.on_edges(c.sum), SLOPE), c.grad("a")


def terms(c: Case) -> list[Tensor]:
    """(N, K, d) each: what reaches X by way of destinations, of sources, and of the aggregation."""
    of_aggregation = torch.einsum("ijk,ikd->jkd", c.S, c.grad("Z"))
    if c.version == 2:
        return [c.grad("c_dst"), c.grad("c_src"), of_aggregation]
    return [c.grad("c_dst")[..., None] * c.a_dst, c.grad("c_src")[..., None] * c.a_src, of_aggregation]


def times_weights(term: Tensor, W: Tensor) -> Tensor:
    return sum(term[:, k] @ W[k].T for k in range(len(W)))


def bracket(c: Case) -> Tensor:
    S, sums = c.on_edges(c.S), (c.grad("c_dst"), c.grad("c_src"))
    if c.version == 1:
        return eq.bracket_v1(c.A, S, c.grad("Z"), sums[0], c.a_dst, sums[1], c.a_src)
    return eq.bracket_v2(c.A, S, c.grad("Z"), sums[1])


@equation(31, versions=(1,))
def feature_gradient_terms_v1(c: Case) -> Pairs:
    yield eq.feature_gradient_v1(bracket(c), c.W), sum(times_weights(term, c.W) for term in terms(c))


@equation(32, 33, versions=(1,))
def feature_gradient_v1(c: Case) -> Pairs:
    yield bracket(c), c.grad("X")
    yield eq.feature_gradient_v1(c.grad("X"), c.W), c.grad("H_in")


@equation(34, versions=(1,))
def weight_gradient_terms(c: Case) -> Pairs:
    expected = sum(torch.einsum("nf,nkd->kfd", c.H_in, term) for term in terms(c))
    yield eq.weight_gradient(c.H_in, bracket(c)), expected


@equation(35, versions=(1,))
def weight_gradient_v1(c: Case) -> Pairs:
    yield eq.weight_gradient(c.H_in, c.grad("X")), c.grad("W")


@equation(36, versions=(2,))
def feature_gradient_terms_v2(c: Case) -> Pairs:
    weights = (c.W_dst, c.W_src, c.W_src)
    expected = sum(times_weights(term, W) for term, W in zip(terms(c), weights, strict=True))
    yield eq.feature_gradient_v2(c.grad("c_dst"), c.W_dst, bracket(c), c.W_src), expected


@equation(37, 38, versions=(2,))
def feature_gradient_v2(c: Case) -> Pairs:
    yield bracket(c), c.grad("X_src")
    yield eq.feature_gradient_v2(c.grad("X_dst"), c.W_dst, c.grad("X_src"), c.W_src), c.grad("H_in")


@equation(39, versions=(2,))
def weight_gradient_v2(c: Case) -> Pairs:
    yield eq.weight_gradient(c.H_in, c.grad("X_dst")), c.grad("W_dst")
    yield eq.weight_gradient(c.H_in, bracket(c)), c.grad("W_src")


CASES = [
    pytest.param(number, version, last, id=f"{number}-v{version}-{'last' if last else 'hidden'}")
    for number, (_, versions, places) in sorted(TABLE.items())
    for version in versions
    for last in places
]


@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize(("number", "version", "last"), CASES)
def test_equation(number: int, version: int, last: bool, heads: int) -> None:
    pairs = list(TABLE[number][0](Case(version, heads, last, seed=number)))
    assert pairs
    for ours, expected in pairs:
        torch.testing.assert_close(ours, expected.detach())


def test_the_page_lists_every_equation() -> None:
    """docs/equations.md: 39 rows, each with functions that exist in both front ends, and its row here."""
    page = (ROOT / "docs" / "equations.md").read_text()
    header = (ROOT / "include" / "gossamer" / "equations.h").read_text()
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 40)) == sorted(TABLE)
    for number, functions, test in rows:
        names = re.findall(r"`(\w+)`", functions)
        assert names
        for name in names:
            assert hasattr(eq, name), name
            assert re.search(rf"\b{name.removesuffix('_v1').removesuffix('_v2')}", header), name
        assert test.strip("`") == TABLE[int(number)][0].__name__
