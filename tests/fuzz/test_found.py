# SPDX-License-Identifier: BSD-3-Clause
"""Raw ops that read or wrote outside, or ended the process, until a long run of the fuzzers found it."""

from __future__ import annotations

import pytest
import torch

import gossamer as gs

ops = torch.ops.gossamer


def test_a_shape_is_not_negative() -> None:
    """Minus one row needs no number of indptr, of which the first was read."""
    nothing = torch.zeros(0, dtype=torch.int64)
    for shape in ((-1, -1), (-1, 3), (0, -1)):
        indptr = torch.zeros(shape[0] + 1, dtype=torch.int64)
        for call in (
            lambda s=shape, p=indptr: ops.transpose(p, nothing, s),
            lambda s=shape, p=indptr: ops.spmm([p, nothing], nothing.double(), torch.zeros(3, 2), s),
        ):
            with pytest.raises(ValueError, match="shape must not be negative, as -1 is"):
                call()


def test_patterns_are_on_one_device() -> None:
    """One on meta has no numbers, and was read."""
    here = gs.poisson(4).pattern.tensors()
    there = [t.to("meta") for t in here]
    with pytest.raises(ValueError, match="kron: A is on cpu but B on meta"):
        ops.kron_pattern(here, (4, 4), there, (4, 4))
    with pytest.raises(ValueError, match="blocks: block 1 is on meta but block 0 on cpu"):
        ops.blocks([here[0], there[0]], [here[1], there[1]], [0, 0, 4, 4], (8, 8))


def test_a_derivative_of_a_meta_factor_wants_two_sizes() -> None:
    """The op itself is a fake then, and looks at nothing."""
    A = gs.poisson(4, dtype=torch.float64)
    values, factor = A.values.clone().requires_grad_(), torch.empty((), dtype=torch.int64, device="meta")
    result = ops.inverse_tangent(factor, A.pattern.tensors(True), values, torch.ones_like(values), [])
    with pytest.raises(ValueError, match=r"an inverse's shape must be \(rows, cols\), not 0 numbers"):
        result.sum().backward()


@pytest.mark.parametrize("size", [(), (3,)])
def test_features_of_edges_are_one_an_edge(size: tuple[int, ...]) -> None:
    """A number without dimensions has no first size, which was written to."""
    with pytest.raises(ValueError, match=r"loop_features: edge_attr must be \(2, …\), not"):
        ops.loop_features(torch.tensor([[0, 1], [1, 0]]), torch.ones(size), 2, "mean")


def test_a_derivative_of_a_meta_plan_wants_a_pattern() -> None:
    values = torch.ones(3, device="meta", requires_grad=True)
    plan = torch.empty((), dtype=torch.int64, device="meta")
    for op in (ops.cholesky_tangent, ops.cholesky_adjoint):
        with pytest.raises(ValueError, match=r"the factor's pattern is \{indptr, indices\}, not 0 tensors"):
            op(plan, [], values, values)
