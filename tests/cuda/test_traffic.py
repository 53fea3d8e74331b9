# SPDX-License-Identifier: BSD-3-Clause
"""What passes between a device and the host while an op of the table runs there, forward and backward, on patterns that
were used before: nothing, but where it is said here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import cuda_standin
import gossamer as gs
from cases import CASES, KINDS, Case, Make
from gossamer.nn._edges import SelfLoops

pytestmark = pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")

# A triangular solve, and the one in its gradient, each tell the host the first row without a pivot.
TRIANGULAR = {"solve_lower", "solve_upper", "solve_lower_transposed", "solve_upper_transposed"}
LOOKS = dict.fromkeys(TRIANGULAR | {"solve_lower_many", "solve_lower_heads"}, 2)
# A factorisation tells the host how well it solves, and so does each solve, once if nothing has to be refined. The
# gradient of a determinant is one solve for 64 columns.
LOOKS |= dict.fromkeys(("solve", "solve_transposed", "solve_heads", "solve_symmetric"), 3)
LOOKS |= dict.fromkeys(("logdet", "logdet_heads", "logdet_symmetric"), 2)
LOOKS |= dict.fromkeys(("selected_inverse", "selected_inverse_symmetric"), 4)
# Parts are made anew each time, and the host looks how many entries they have; `entry` takes three, one by one.
LOOKS |= dict.fromkeys(("row", "column", "slice", "slice_steps", "slice_backwards"), 1) | {"entry": 3}
# These rows give their indices on the host, from where each array is copied.
COPIES = {"index_rows": 1, "index_cols": 1, "index_rows_and_cols": 2, "index_pairs": 2, "submatrix": 2, "mask": 1}
LOOKS |= dict.fromkeys(COPIES, 1)
# These have no kernels for a device: their operands go to the host, forward and backward, and the results come back.
BY_HOST = {"cholesky": 5, "lstsq": 21, "lstsq_damped": 21, "lsmr": 27, "eigsh": 11, "eigsh_vectors": 11, "svds": 12}
BY_HOST |= dict.fromkeys(("cg", "minres", "gmres", "bicgstab"), 18)
LOOKS["svds"] = 1  # how its pattern and that of its transpose lie in one matrix
COPIES |= BY_HOST


def call(case: Case, inputs: tuple[Any, ...]) -> None:
    result = case.op(gs, *inputs)
    values = result.values if isinstance(result, gs.SparseMatrix) else result
    if isinstance(values, Tensor) and values.requires_grad:
        values.backward(torch.ones_like(values))


@pytest.mark.parametrize("case", [case for case in CASES if not case.an_object], ids=lambda case: case.name)
def test_nothing_passes_by_the_host(case: Case) -> None:
    inputs = case.inputs(Make("square", torch.float32, device=torch.device("cuda", 0)))
    for x in inputs:
        if isinstance(x, gs.SparseMatrix) or (isinstance(x, Tensor) and x.is_floating_point()):
            x.requires_grad_()
    call(case, inputs)  # patterns are derived here, once
    cuda_standin.traffic()
    call(case, inputs)
    copies, looks = cuda_standin.traffic()
    assert (copies, looks) == (COPIES.get(case.name, 0), LOOKS.get(case.name, 0))


def indices(A: gs.SparseMatrix, axis: int) -> Tensor:
    """Unsorted, repeated and counted from the end."""
    size = A.shape[axis]
    return torch.arange(2 * size, device=A.device) * 7 % max(size, 1) - size


@pytest.mark.parametrize("name", ["general", "definite"])
def test_the_first_factorisation_on_a_pattern(name: str) -> None:
    """The pattern, of five tensors, goes to the host, and what was found there comes back; the values of a matrix that
    is not positive definite go there, too. Later ones stay on the device: see the table."""
    A = gs.poisson((4, 5), dtype=torch.float64).to(torch.device("cuda", 0))
    if name == "general":
        A = A.with_values(A.values + 0.1 * torch.arange(A.nnz, device=A.device))
    A.pattern.tensors(True)
    cuda_standin.traffic()
    A.pattern.analysis()
    assert cuda_standin.traffic() == (5, 0)
    gs.linalg.factorize(A, "lu" if name == "general" else "auto")
    assert cuda_standin.traffic() == ((10, 2) if name == "general" else (9, 1))
    gs.linalg.factorize(A, "lu" if name == "general" else "auto")
    assert cuda_standin.traffic() == (0, 1)


# Patterns that are born on a device: what the host looks at is their size.
SYMBOLIC: dict[str, tuple[Any, int]] = {
    "transpose": (lambda A, B: A.T, 0),
    "spmm transposed": (lambda A, B: gs.spmm(A, A.values.new_ones(A.shape[0]), transpose=True), 0),
    "sum": (lambda A, B: A + B, 2),  # and whether the patterns are the same
    "entrywise product": (lambda A, B: A * B, 2),
    "product": (lambda A, B: A @ B, 2),
    "triangle": (lambda A, B: A.tril(), 1),
    "diagonal": (lambda A, B: A.diagonal(1), 2),  # and that there are no parallel edges
    "with_diagonal": (lambda A, B: A.with_diagonal(2.0), 4),
    "slice": (lambda A, B: A[1:, ::-1], 1),
    "rows": (lambda A, B: A[indices(A, 0)], 1),
    "columns": (lambda A, B: A[:, indices(A, 1)], 1),
    "submatrix": (lambda A, B: A.submatrix(indices(A, 0), indices(A, 1)), 1),
    "mask": (lambda A, B: A[torch.arange(A.shape[0], device=A.device) % 2 == 0], 2),
    "entries": (lambda A, B: A[indices(A, 0), indices(A, 0).flip(0)], 2),
    "places": (lambda A, B: A[indices(A, 0)[:, None], indices(A, 0)[None, :]], 1),
    "kron": (lambda A, B: gs.kron(A, B), 0),
    "vstack": (lambda A, B: gs.vstack([A, B, A]), 0),
    "hstack": (lambda A, B: gs.hstack([A, B]), 0),
    "block_diag": (lambda A, B: gs.block_diag([A, B]), 0),
    "checked": (lambda A, B: gs.SparseMatrix(A.indptr, A.indices, A.values, A.shape), 1),
    "from_coo": (lambda A, B: gs.from_coo(A.pattern.row_indices.flip(0), A.indices.flip(0), A.values, A.shape), 1),
}


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize("kind", KINDS)
def test_patterns_are_born_on_the_device(name: str, kind: str) -> None:
    make = Make(kind, torch.float64, device=torch.device("cuda", 0))
    n = max(make.m, make.n)
    A, B = make.matrix(n, n), make.matrix(n, n)
    f, most = SYMBOLIC[name]
    cuda_standin.traffic()
    result = f(A, B)
    copies, looks = cuda_standin.traffic()
    assert copies == 0
    assert looks <= most
    on_host = f(A.to("cpu"), B.to("cpu"))
    if isinstance(result, gs.SparseMatrix):
        assert result.device.type == "cuda"
        assert result.pattern.to("cpu") == on_host.pattern
        result, on_host = result.to_dense(), on_host.to_dense()
    torch.testing.assert_close(result.cpu(), on_host)


@pytest.mark.parametrize("upper", [False, True])
def test_levels_tell_the_host_where_they_begin(upper: bool) -> None:
    """A copy of that, and a look for parallel edges. Both are those of the host."""
    P = gs.poisson((6, 7)).pattern
    on_device = P.to(torch.device("cuda", 0))
    cuda_standin.traffic()
    level_ptr, order = on_device.levels(upper)
    assert cuda_standin.traffic() <= (1, 1)
    assert order.is_cuda
    assert level_ptr.equal(P.levels(upper)[0])
    assert order.cpu().equal(P.levels(upper)[1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int16])
def test_products_of_integers_stay_on_the_device(dtype: torch.dtype) -> None:
    A = gs.poisson((4, 5)).to(dtype)
    wanted = A @ A
    A = A.to(torch.device("cuda", 0))
    result = A @ A  # the pattern is made here
    cuda_standin.traffic()
    result = A @ A
    assert cuda_standin.traffic() == (0, 0)
    assert result.dtype is dtype
    assert result.values.cpu().equal(wanted.values)


@pytest.mark.parametrize("loops", list(SelfLoops))
def test_edges_are_sorted_on_the_device(loops: SelfLoops) -> None:
    """As on the host, bit for bit, with parallel edges and with self-loops, one of them twice."""
    edge_index = torch.tensor([[3, 0, 2, 2, 0, 1, 1, 4], [1, 0, 3, 3, 0, 1, 0, 2]])
    on_device = edge_index.to(torch.device("cuda", 0))
    cuda_standin.traffic()
    made = torch.ops.gossamer.edges(on_device, (5, 5), int(loops))
    assert cuda_standin.traffic() == (0, 1)
    for got, wanted in zip(made, torch.ops.gossamer.edges(edge_index, (5, 5), int(loops)), strict=True):
        assert got.is_cuda
        assert got.dtype is wanted.dtype
        assert got.cpu().equal(wanted)


OUTSIDE: dict[str, Any] = {
    "rows": lambda A, k: A[k],
    "columns": lambda A, k: A[:, k],
    "entries": lambda A, k: A[k, k],
    "edges": lambda A, k: torch.ops.gossamer.edges(torch.stack([k, k]), A.shape, 1),
    "graph": lambda A, k: gs.graph_pattern(torch.stack([k, k]), A.shape),
    "pattern": lambda A, k: gs.Pattern(A.indptr, A.indices + k[0].int(), A.shape),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_out_of_range_is_refused_in_the_words_of_the_host(name: str) -> None:
    A, k = gs.poisson(4), torch.tensor([9, 1, 0])
    with pytest.raises((ValueError, IndexError)) as on_host:
        OUTSIDE[name](A, k)
    with pytest.raises((ValueError, IndexError)) as on_device:
        OUTSIDE[name](A.to("cuda"), k.to("cuda"))
    assert type(on_device.value) is type(on_host.value)
    assert str(on_device.value) == str(on_host.value)
