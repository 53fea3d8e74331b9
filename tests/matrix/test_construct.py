# SPDX-License-Identifier: BSD-3-Clause
"""Ways into and out of a SparseMatrix, against SciPy and dense torch; gradients, widths and dtypes are kept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse
import torch
from torch.autograd import gradcheck, gradgradcheck

import gossamer as gs
from cases import KINDS, Make


def scipy_matrix(m: int, n: int, density: float, dtype: type = np.float64) -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((m, n), density=density, rng=np.random.default_rng(0), dtype=dtype).tocsr()


@pytest.mark.parametrize("kind", KINDS)
def test_from_coo_equals_scipy(kind: str, device: torch.device) -> None:
    m, n, _ = KINDS[kind]
    rng = np.random.default_rng(1)
    k = 3 * m * n  # so most places are named several times
    rows, cols, values = rng.integers(0, max(m, 1), k), rng.integers(0, max(n, 1), k), rng.standard_normal(k)
    wanted = scipy.sparse.coo_array((values, (rows, cols)), shape=(m, n)).tocsr()
    wanted.sum_duplicates()
    A = gs.from_coo(*(torch.from_numpy(x).to(device) for x in (rows, cols, values)), (m, n))
    assert A.indices.dtype is torch.int32
    assert A.device == device
    assert np.array_equal(A.indptr.cpu().numpy(), wanted.indptr)
    assert np.array_equal(A.indices.cpu().numpy(), wanted.indices)
    np.testing.assert_allclose(A.values.cpu().numpy(), wanted.data, rtol=1e-13, atol=1e-13)


def test_from_coo_keeps_entries_that_sum_to_zero() -> None:
    A = gs.from_coo([0, 0], [1, 1], [2.0, -2.0], (1, 2))
    assert A.nnz == 1
    assert A.values.tolist() == [0.0]


def test_from_coo_is_differentiable(device: torch.device) -> None:
    rows, cols = torch.tensor([1, 0, 1, 1], device=device), torch.tensor([0, 1, 0, 2], device=device)
    values = torch.randn(4, dtype=torch.float64, device=device, requires_grad=True)

    def f(v: torch.Tensor) -> torch.Tensor:
        return gs.from_coo(rows, cols, v, (2, 3)).values

    assert gradcheck(f, values, check_forward_ad=True)
    assert gradgradcheck(f, values)


def test_from_coo_with_heads() -> None:
    A = gs.from_coo([0, 0], [1, 1], torch.tensor([[1.0, 10.0], [2.0, 20.0]]), (1, 2))
    assert A.values.tolist() == [[3.0, 30.0]]
    assert A.to_dense().shape == (1, 2, 2)


def test_from_coo_uses_wide_indices_when_it_must() -> None:
    A = gs.from_coo([1], [2**40], [1.0], (3, 2**40 + 1))
    assert A.indices.dtype is torch.int64
    assert A.indices.tolist() == [2**40]


@pytest.mark.parametrize("kind", KINDS)
def test_from_dense(kind: str, device: torch.device) -> None:
    D = Make(kind, device=device).matrix(*KINDS[kind][:2]).to_dense()
    A = gs.from_dense(D)
    assert A.nnz == int((D != 0).sum())
    assert torch.equal(A.to_dense().cpu(), D.cpu())


def test_from_dense_keeps_nan_and_is_differentiable(device: torch.device) -> None:
    assert gs.from_dense(torch.tensor([[torch.nan, 0.0]], device=device)).nnz == 1
    D = torch.tensor([[0.0, 2.0], [3.0, 0.0]], dtype=torch.float64, device=device, requires_grad=True)
    (gs.from_dense(D).values ** 2).sum().backward()
    assert D.grad.tolist() == [[0.0, 4.0], [6.0, 0.0]]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_from_scipy_any_format(layout: str) -> None:
    S = scipy_matrix(6, 8, 0.3).asformat(layout)
    assert np.array_equal(gs.from_scipy(S).to_dense().numpy(), S.toarray())
    assert np.array_equal(gs.from_scipy(scipy.sparse.csr_matrix(S)).to_dense().numpy(), S.toarray())


def test_from_scipy_sums_duplicates_keeps_zeros_and_leaves_its_argument_alone() -> None:
    S = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 0.0, 4.0]), np.array([2, 0, 1, 2]), np.array([0, 4, 4])), shape=(2, 3)
    )
    before = S.indices.copy()
    A = gs.from_scipy(S)
    assert A.indices.tolist() == [0, 1, 2]
    assert A.values.tolist() == [2.0, 0.0, 5.0]
    assert np.array_equal(S.indices, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scipy_round_trip_keeps_dtype_and_width(dtype: type, index: type) -> None:
    S = scipy_matrix(5, 7, 0.4).astype(dtype)
    S = scipy.sparse.csr_array((S.data, S.indices.astype(index), S.indptr.astype(index)), shape=S.shape)
    back = gs.from_scipy(S).to_scipy()
    assert back.dtype == dtype
    assert back.indices.dtype == S.indices.dtype
    assert np.array_equal(back.toarray(), S.toarray())


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc, torch.sparse_coo, torch.strided])
def test_from_torch_is_differentiable(layout: torch.layout) -> None:
    D = torch.from_numpy(scipy_matrix(5, 7, 0.4).toarray()).requires_grad_()
    A = gs.from_torch(D if layout is torch.strided else D.to_sparse(layout=layout))
    assert torch.equal(A.to_dense(), D)
    (A.values**2).sum().backward()
    assert torch.equal(D.grad, 2 * D.detach())


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_torch_round_trip_keeps_width_and_gradients(index: torch.dtype) -> None:
    A = Make(dtype=torch.float32, index_dtype=index).matrix(6, 5).requires_grad_()
    T = A.to_torch()
    assert T.col_indices().dtype is index
    assert gs.from_torch(T).indices.dtype is index
    T.to_dense().square().sum().backward()
    assert torch.equal(A.grad.values, 2 * A.values.detach())


def test_from_torch_sums_coo_duplicates() -> None:
    T = torch.sparse_coo_tensor([[1, 1, 0], [2, 2, 1]], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
    assert torch.equal(gs.from_torch(T).to_dense(), T.to_dense())


def test_from_edge_index_gathers_along_edges(device: torch.device) -> None:
    edges = torch.tensor([[0, 0, 3, 3], [1, 2, 1, 1]], device=device)  # the last edge is there twice
    A = gs.from_edge_index(edges)
    assert A.shape == (4, 4)
    D = A.to_dense().cpu()
    assert D[1].tolist() == [1.0, 0.0, 0.0, 2.0]
    assert D[2].tolist() == [1.0, 0.0, 0.0, 0.0]
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
    assert gs.from_edge_index(edges, weight, num_nodes=6).to_dense()[1, 3].item() == 7
    assert gs.from_edge_index(torch.empty(2, 0, dtype=torch.int64, device=device)).shape == (0, 0)


def test_generators(device: torch.device) -> None:
    assert torch.equal(gs.eye(3, 5, device=device).to_dense().cpu(), torch.eye(3, 5))
    assert gs.eye(2, dtype=torch.float64).dtype is torch.float64
    one, two = gs.poisson(3).to_dense(), gs.poisson(4).to_dense()
    wanted = torch.kron(one, torch.eye(4)) + torch.kron(torch.eye(3), two)
    assert torch.equal(gs.poisson((3, 4), device=device).to_dense().cpu(), wanted)
    wanted = torch.kron(wanted, torch.eye(2)) + torch.kron(torch.eye(12), gs.poisson(2).to_dense())
    assert torch.equal(gs.poisson((3, 4, 2), device=device).to_dense().cpu(), wanted)
    assert gs.poisson((3, 0)).shape == (0, 0)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_random_has_just_that_many_entries(density: float) -> None:
    A = gs.random(30, 40, density, generator=torch.Generator().manual_seed(0))
    assert A.nnz == round(density * 1200)
    assert ((A.values >= 0) & (A.values < 1)).all()
    again = gs.random(30, 40, density, generator=torch.Generator().manual_seed(0))
    assert A.pattern == again.pattern
    assert torch.equal(A.values, again.values)


def test_to_moves_and_converts(device: torch.device) -> None:
    A = Make().matrix(5, 4)
    B = A.to(device, torch.float32, index_dtype=torch.int64)
    assert (B.device, B.dtype, B.indices.dtype) == (device, torch.float32, torch.int64)
    assert A.to(torch.float32).dtype is torch.float32
    assert A.to("cpu").pattern is A.pattern
    assert A.pattern == B.to("cpu").pattern


def test_gradients_live_on_the_pattern() -> None:
    A = Make().matrix(5, 4).requires_grad_()
    assert A.grad is None
    (A @ torch.ones(4, dtype=torch.float64)).sum().backward()
    assert A.grad.pattern is A.pattern
    assert torch.equal(A.grad.values, torch.ones(A.nnz, dtype=torch.float64))
    assert not A.detach().requires_grad


def test_transposes_are_built_once_and_turn_back() -> None:
    A = Make().matrix(5, 4)
    assert A.T.T.pattern is A.pattern
    assert torch.equal(A.T.T.values, A.values)
    assert A.pattern.transpose() is A.pattern.transpose()


def test_repr_says_what_it_is() -> None:
    A = gs.poisson((3, 3))
    assert repr(A) == "SparseMatrix(9 x 9, nnz=33, float32, int32, cpu)"
    assert repr(A.requires_grad_()) == "SparseMatrix(9 x 9, nnz=33, float32, int32, cpu, requires_grad=True)"
    assert repr(A.with_values(torch.ones(33, 2))) == "SparseMatrix(9 x 9, nnz=33, heads=2, float32, int32, cpu)"
    assert repr(A.pattern) == "Pattern(9 x 9, nnz=33, int32, cpu)"


def test_torch_func_differentiates_a_matrix() -> None:
    A = Make().matrix(5, 4)
    x = torch.ones(4, dtype=torch.float64)
    G = torch.func.grad(lambda M: (M @ x).square().sum())(A)
    assert isinstance(G, gs.SparseMatrix)
    assert G.pattern is A.pattern
    assert torch.equal(G.values, (2 * (A @ x))[A.pattern.row_indices])


def test_show_config(capsys: pytest.CaptureFixture[str]) -> None:
    gs.show_config()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines.keys() >= {"gossamer", "vector code", "threads", "torch", "cuda kernels", "solver engines"}
    assert lines["gossamer"] == gs.__version__
    assert lines["vector code"] in ("baseline", "avx2", "avx512")
    # The stand-in brings emulated kernels and a device; the library alone has neither.
    if not torch.cuda.is_available():
        assert lines["cuda kernels"] == ("emulated; 1 device" if torch.cuda.device_count() else "not in this build")


def test_pattern_and_values(device: torch.device) -> None:
    """The pattern is shared, with what is kept of it, and gradients flow to the values, whatever their heads."""
    P = Make(device=device).pattern(9, 7)
    for heads in ((), (3,)):
        values = torch.randn(P.nnz, *heads, device=device, requires_grad=True)
        A = gs.SparseMatrix(P, values)
        assert A.pattern is P
        assert A.values is values
        A.to_dense().sum().backward()
        assert torch.equal(values.grad, torch.ones_like(values))
    assert gs.SparseMatrix(P, [1] * P.nnz if device.type == "cpu" else torch.ones(P.nnz, device=device)).nnz == P.nnz


def test_pattern_and_values_that_do_not_fit() -> None:
    P = gs.eye(3).pattern
    with pytest.raises(ValueError, match=r"values has shape \(2,\) but the pattern has 3 entries"):
        gs.SparseMatrix(P, torch.ones(2))
    with pytest.raises(ValueError, match=r"values has shape \(\) but the pattern has 3 entries"):
        gs.SparseMatrix(P, torch.tensor(1.0))
    with pytest.raises(ValueError, match="values are on meta but the pattern is on cpu"):
        gs.SparseMatrix(P, torch.ones(3, device="meta"))
    for wrong in ((P, P.indices, torch.ones(3)), (P, torch.ones(3), None, (3, 3)), (P.indptr, P.indices)):
        with pytest.raises(TypeError, match=r"wants \(indptr, indices, values, shape\) or \(pattern, values\)"):
            gs.SparseMatrix(*wrong)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda A: pickle.loads(pickle.dumps(A))])
def test_copies_and_pickles(copied: Callable[[gs.SparseMatrix], gs.SparseMatrix]) -> None:
    """Neither what is kept of a product nor a factor, which is a handle of this process, goes with them."""
    A = gs.poisson((3, 4), dtype=torch.float64)
    b = torch.arange(12.0, dtype=torch.float64)
    x, AA = gs.linalg.solve(A, b), (A @ A.T.T).to_dense()
    B = copied(A)
    assert type(B) is gs.SparseMatrix
    assert B.pattern == A.pattern
    assert torch.equal(B.values, A.values)
    assert torch.equal(gs.linalg.solve(B, b), x)
    assert torch.equal((B @ B).to_dense(), AA)


def test_pickles_name_what_users_import() -> None:
    """So a pickle of today is read by a version whose files stand elsewhere."""
    graph = gs.datasets.stochastic_block_model((60, 60), seed=0)
    layer = gs.nn.GATConv(2, 3)
    stored = pickle.dumps((gs.eye(2), graph))
    assert b"gossamer._" not in stored
    assert b"gossamer.datasets" in stored
    assert repr(pickle.loads(stored)) == repr((gs.eye(2), graph))
    assert (type(layer).__module__, type(layer).__qualname__) == ("gossamer.nn", "GATConv")
