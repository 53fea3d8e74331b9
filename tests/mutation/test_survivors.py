# SPDX-License-Identifier: BSD-3-Clause
"""Changes of one operator or bound that once survived all tests (tests/mutation): the tests that were missing."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from random_matrix import random_matrix
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs
from gossamer.nn._linear import LazyLinear

ops = torch.ops.gossamer


class Calls(TorchDispatchMode):
    """Counts the ops that reach a kernel, such as "gossamer::spmm"."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["lu", "auto"])
def test_the_gradient_of_logdet_beyond_64_columns(kind: str) -> None:
    """The inverse comes by 64 unit columns at a time: two whole blocks and a rest."""
    n = 150
    A = random_matrix(n, n, 0.03)
    A = A + A.T.tril(-1) * 0.5 + gs.eye(n, dtype=torch.float64) * 10  # not symmetric
    A = A.detach().requires_grad_()
    gs.linalg.factorize(A, kind=kind).logdet().backward()
    inverse = torch.linalg.inv(A.to_dense().detach())
    assert A.grad is not None
    torch.testing.assert_close(A.grad.values, inverse.T[A.pattern.row_indices, A.indices.long()])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dot_adds_16_bit_numbers_up_in_float32(dtype: torch.dtype) -> None:
    """In bfloat16, 256 + 1 is 256: 3000 ones in eight sums of 16 bits are 8 * 256."""
    ones = torch.ones(3000, dtype=dtype)
    assert ops.dot(ones, ones) == torch.tensor(3000.0).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_masked_product_does_not_read_the_next_row(dtype: torch.dtype) -> None:
    """(Aᵀ B)[0, 25] is looked for in row 0 of B, which ends before column 25; row 1 begins with it."""
    A = gs.from_coo([0, 1], [0, 1], torch.ones(2, dtype=dtype), (2, 2))
    B = gs.from_coo([0] * 20 + [1], [*range(20), 25], torch.ones(21, dtype=dtype), (2, 30))
    mask = gs.from_coo([0], [25], torch.ones(1), (2, 30))
    assert gs.spgemm(A.T, B, mask=mask).values.tolist() == [0]


@pytest.mark.parametrize("dim", [0, 1, None])
def test_sums_keep_their_precision_under_autocast(dim: int | None, device: torch.device) -> None:
    A = random_matrix(40, 30, 0.3).to(device, torch.float32).requires_grad_()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        got = A.sum(dim)
    assert torch.equal(got, A.sum(dim))
    (got**2).sum().backward()
    assert A.grad is not None
    assert A.grad.values.dtype is torch.float32


@pytest.mark.parametrize("short", [2, 3, 4], ids=["indptr", "indices", "perm"])
def test_a_transpose_that_is_too_short_is_refused(short: int) -> None:
    P = random_matrix(6, 4, 0.5).pattern
    tensors = P.tensors(with_transpose=True)
    tensors[short] = tensors[short][:-1]
    with pytest.raises(ValueError, match="spmm: the transpose in the pattern is of another matrix"):
        ops.spmm(tensors, torch.ones(P.nnz), torch.ones(6), P.shape, True)


def test_derivatives_that_nobody_wants_are_not_computed() -> None:
    A, B = random_matrix(8, 8, 0.3), random_matrix(8, 8, 0.5).tril()
    X = torch.ones(8, 2, dtype=torch.float64)
    U, V = X.clone().requires_grad_(), X.clone()
    wanted = A.detach().requires_grad_()
    summed = wanted + B
    cases: dict[str, tuple[Tensor, str, int]] = {
        "sddmm dU": (gs.sddmm(A, U, V).values, "gossamer::spmm", 1),
        "sddmm dV": (gs.sddmm(A, V, U).values, "gossamer::spmm", 1),
        "sddmm both": (gs.sddmm(A, U, U).values, "gossamer::spmm", 2),
        "spmm dA": (wanted @ X, "gossamer::sddmm", 1),
        "spmm dX": (A @ U, "gossamer::sddmm", 0),
        "sum, first": (summed.values, "gossamer::pick", 1),
        "sum, left": ((wanted + B).values, "gossamer::pick", 1),
        "sum, right": ((B + wanted).values, "gossamer::pick", 1),
        "sum, right again": ((B + wanted).values, "gossamer::pick", 1),
        "product dA": ((wanted @ B).values, "gossamer::spgemm", 1),
        "product dB": ((B @ wanted).values, "gossamer::spgemm", 1),
        "dot": (ops.dot(U, V), "gossamer::scale", 1),
    }
    for name, (result, op, times) in cases.items():
        with Calls() as calls:
            result.sum().backward()
        assert calls.count[op] == times, (name, calls.count)


def test_a_product_keeps_the_transpose_its_derivative_reads(device: torch.device) -> None:
    A, B = random_matrix(9, 9, 0.3).to(device), random_matrix(9, 9, 0.4).to(device).requires_grad_()
    for _ in range(2):
        C = A @ B
        with Calls() as calls:
            C.values.sum().backward()
        assert calls.count["gossamer::transpose"] == 0
    with Calls() as calls:
        (A @ B).values.sum().backward()
    assert calls.count["gossamer::transpose"] == 0


@pytest.mark.parametrize("key", [True, False, (slice(None), True), (True, 0), (0, False), (True, True), (np.True_, 0)])
def test_a_boolean_is_no_index(key: Any) -> None:
    """NumPy would add an axis; here it is a mistake, and not row 1."""
    with pytest.raises((TypeError, IndexError)):
        gs.poisson(3)[key]


@pytest.mark.parametrize("runs", [False, True])
def test_sampled_products_of_vectors_give_no_negative_zeros(runs: bool) -> None:
    """An entry is a sum, 0 + u v, as it is for matrices of one column and more."""
    A = gs.poisson(200).to(torch.float64)
    u, v = torch.full((200,), -1.0, dtype=torch.float64), torch.zeros(200, dtype=torch.float64)
    pattern = A.pattern.with_runs(False) if runs else A.pattern.tensors()
    assert (len(pattern) == 3) == runs
    values = ops.sddmm(pattern, u, v, A.shape)
    assert not torch.signbit(values).any()
    wide = ops.sddmm(pattern, u[:, None], v[:, None], A.shape)
    assert torch.equal(torch.signbit(wide), torch.signbit(values))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_files_hold_matrices_without_rows_or_columns(shape: tuple[int, int], tmp_path: Path) -> None:
    gs.save_npz(tmp_path / "nothing.npz", gs.from_dense(torch.zeros(shape)))
    assert gs.load_npz(tmp_path / "nothing.npz").shape == shape


def test_defaults_are_what_is_promised() -> None:
    """Defaults are read by nobody who gives arguments, so they are compared with their documented values."""
    promised = {
        gs.datasets.power_law: {"num_nodes": 1000, "num_edges": 5000, "exponent": 2.5, "num_classes": 4},
        gs.equations.golden: {"version": 1, "hidden": (8,), "heads": (2,), "seed": 0, "self_loops": True},
        gs.datasets.stochastic_block_model: {"p_in": 0.1, "p_out": 0.01, "num_features": 16, "noise": 1.0},
        gs.linalg.gmres: {"restart": 30},
        LazyLinear: {"bias": False},
    }
    for function, defaults in promised.items():
        parameters = inspect.signature(function).parameters
        assert {name: parameters[name].default for name in defaults} == defaults


def test_a_graph_is_equal_to_itself_alone() -> None:
    """Comparing fields would ask tensors for one truth value."""
    one, other = (gs.datasets.stochastic_block_model((60, 60), seed=0) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_a_map_gives_one_number_an_entry_or_a_head() -> None:
    A = random_matrix(6, 5)
    with pytest.raises(ValueError, match="map: f must give values for"):
        A.map(lambda v: v[:, None, None])


def test_arrays_of_scipy_are_checked() -> None:
    S = random_matrix(6, 5).to_scipy()
    S.indices[-1] = 99
    with pytest.raises(ValueError, match="99"):
        gs.from_scipy(S)


def test_one_number_for_a_whole_diagonal() -> None:
    A = random_matrix(4, 6, 0.5)
    dense = A.to_dense()
    dense.fill_diagonal_(2)
    assert torch.equal(A.with_diagonal(torch.tensor(2.0, dtype=torch.float64)).to_dense(), dense)


def test_rows_that_a_small_file_announces_are_bounded_by_a_gibibyte(tmp_path: Path) -> None:
    """An index for each of them would take 1.4 GB."""
    scipy.sparse.save_npz(tmp_path / "tall.npz", scipy.sparse.coo_array(([1.0], ([0], [0])), shape=(180_000_000, 1)))
    with pytest.raises(ValueError, match="max_bytes"):
        gs.load_npz(tmp_path / "tall.npz")


def test_options_of_torchs_functions_are_refused() -> None:
    """They would be dropped without a word: torch.add(A, B, alpha=2) is A + 2 B."""
    A = random_matrix(4, 4)
    for call in (lambda: torch.add(A, A, alpha=2), lambda: torch.sub(A, A, alpha=2), lambda: torch.atan2(A, A)):
        with pytest.raises(TypeError, match=r"NotImplemented|no implementation"):
            call()


def test_raw_solves_take_one_factor_a_head() -> None:
    A = gs.poisson(4, dtype=torch.float64)
    many = A.values[:, None, None].expand(-1, 2, 2).contiguous()
    factor, b = torch.zeros(2, 2, dtype=torch.int64), torch.ones(4, 2, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="factor_solve: a factor of shape"):
        ops.factor_solve(factor, A.pattern.tensors(), many, b, A.shape)


def test_raw_spectral_ops_want_float64() -> None:
    A = gs.poisson(4)
    with pytest.raises(ValueError, match=r"spectral_transform: values must be .* in float64"):
        ops.spectral_transform(None, A.pattern.tensors(True), A.values.float(), None, A.shape, None, True)
    A = A.to(torch.float64)
    transform = ops.spectral_transform(None, A.pattern.tensors(True), A.values, None, A.shape, None, True)
    X, theta = torch.eye(4, dtype=torch.float64)[:, :2], torch.ones(2, 2, dtype=torch.float64)
    for given in ((X.float(), theta, X), (X, theta.float(), X), (X, theta, X.float())):
        with pytest.raises(ValueError, match="X, Theta and B must be matrices in float64 on the host"):
            ops.deflated_solve(transform, A.pattern.tensors(True), A.values, None, *given, A.shape)


def test_an_entry_is_not_zero_if_one_of_its_heads_is_not() -> None:
    A = gs.from_coo([0, 0, 1], [0, 1, 1], torch.ones(3), (2, 2))
    rows, cols = A.with_values(torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 3.0]])).nonzero()
    assert (rows.tolist(), cols.tolist()) == ([0, 1], [1, 1])


def test_types_of_arrays_count_and_those_of_lists_do_not() -> None:
    """As in NumPy and torch; a list of complex numbers is complex."""
    A, ones = gs.poisson(4), np.ones((4, 4))
    for B, dtype in [(ones, torch.float64), (ones.tolist(), torch.float32), ((1j * ones).tolist(), torch.complex64)]:
        assert (A * B).dtype is dtype
    for x, dtype in [(ones[0], torch.float64), (np.float32(ones[0]), torch.float32), ([1, 2, 3, 4], torch.float32)]:
        assert (A @ x).dtype is dtype


@pytest.mark.parametrize("shape", [(5,), (3, 4), (5, -4), (-5, -4)])
def test_a_shape_that_does_not_fit_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="reshape: "):
        random_matrix(5, 4).reshape(*shape)


def test_the_last_argument_is_also_counted_from_the_end() -> None:
    x = torch.tensor([1.0, 2.0])
    assert gs.jacobian(torch.sin, argnums=-1)(x).values.tolist() == torch.cos(x).tolist()
    with pytest.raises(ValueError, match="argnums is -2, but there are 1 arguments"):
        gs.jacobian(torch.sin, argnums=-2)(x)
