# SPDX-License-Identifier: BSD-3-Clause
"""Sparse with sparse, against SciPy on random patterns and on real matrices; what is kept; bad input."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

import gossamer as gs
from cases import Make


def matrix(m: int, n: int, seed: int = 0) -> gs.SparseMatrix:
    return Make(seed=seed).matrix(m, n)


def test_operators() -> None:
    A, B = matrix(8, 8), matrix(8, 8, seed=1)
    assert torch.equal((A @ B).values, gs.spgemm(A, B).values)
    assert torch.equal(torch.matmul(A, B).values, gs.spgemm(A, B).values)
    assert torch.equal((A + B).to_dense(), A.to_dense() + B.to_dense())
    assert torch.equal((A - B).to_dense(), A.to_dense() - B.to_dense())
    assert torch.equal((A * B).to_dense(), A.to_dense() * B.to_dense())


def test_computed_zeros_stay() -> None:
    A = gs.from_coo([0, 0], [0, 1], [1.0, 1.0], (1, 2))
    B = gs.from_coo([0, 1], [0, 0], [1.0, -1.0], (2, 1))
    assert (A @ B).nnz == 1
    assert (A @ B).values.tolist() == [0.0]
    assert (A - A.with_values(A.values.clone())).nnz == 2


def test_symbolic_work_is_done_once_and_forgotten_with_the_other_pattern() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    assert (A @ B).pattern is (A @ B).pattern
    assert (A + B).pattern is (A - B).pattern
    assert {what for what, _ in A.pattern._kept} == {"product", "equal", "union", "union pattern"}
    del B
    gc.collect()
    assert not A.pattern._kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex128, torch.int64])
def test_a_first_sum_has_the_bits_of_later_ones(dtype: torch.dtype) -> None:
    """The first takes one pass, the second finds the maps, the third has them."""
    a, b = torch.randn(2, 300, dtype=torch.float64) * 10
    a[:3], b[:3] = torch.tensor([-0.0, torch.nan, torch.inf]), torch.tensor([-0.0, 1.0, -torch.inf])
    A, B = (gs.from_coo(torch.arange(300) % 7, torch.arange(300) * k % 97, v, (7, 97)) for k, v in ((5, a), (8, b)))
    A, B = (
        X.with_values(X.values.nan_to_num().to(dtype) if dtype is torch.int64 else X.values.to(dtype)) for X in (A, B)
    )
    first, second, third = A + B, A + B, A + B
    assert first.pattern is second.pattern is third.pattern
    assert torch.equal(first.values.view(torch.uint8), second.values.view(torch.uint8))
    assert torch.equal(second.values.view(torch.uint8), third.values.view(torch.uint8))
    assert torch.equal(first.to_dense().nan_to_num(), (A.to_dense() + B.to_dense()).nan_to_num())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex128, torch.int64])
def test_a_first_product_has_the_bits_of_later_ones(dtype: torch.dtype) -> None:
    """The first takes one pass, the second has the pattern."""
    a = (torch.randn(900, dtype=torch.float64) * 10).to(dtype)
    A = gs.from_coo(torch.arange(900) % 70, torch.arange(900) * 13 % 90, a, (70, 90))
    grid = gs.poisson((9, 10)).to(dtype=dtype)
    for B in (grid, A.T.with_values(A.T.values.clone())):
        first, second = A @ B, A @ B
        assert first.pattern is second.pattern
        assert torch.equal(first.values.view(torch.uint8), second.values.view(torch.uint8))
        gs.Pattern(first.indptr, first.indices, first.shape)  # which checks that rows ascend
        want, scale = A.to_dense() @ B.to_dense(), 0.02 if dtype is torch.bfloat16 else 1e-5
        assert (first.to_dense() - want).abs().max() <= scale * want.abs().max()


def test_a_first_product_under_derivatives_and_transforms() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    want = (A @ B).to_dense()
    a, b = A.values.detach(), B.values.detach()

    def total(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        P, Q = (gs.Pattern(X.indptr, X.indices, X.shape) for X in (A, B))  # nobody has seen them
        return (gs.SparseMatrix(P, a) @ gs.SparseMatrix(Q, b)).to_dense()

    inputs = (a.clone().requires_grad_(), b.clone().requires_grad_())
    assert torch.autograd.gradcheck(total, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(total, inputs)
    assert torch.equal(torch.func.vmap(total, in_dims=(0, None))(torch.stack([a, a]), b), torch.stack([want, want]))
    assert torch.allclose(torch.func.jvp(total, (a, b), (a, b))[1], 2 * want)
    gradient = torch.func.grad(lambda a: total(a, b).sum())(a)
    assert torch.allclose(gradient, B.to_dense().sum(1)[A.indices.long()])


def test_what_torch_func_multiplied_first_can_be_multiplied_later() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    torch.func.grad(lambda a: (A.with_values(a) @ B).values.sum())(A.values.detach())
    assert torch.equal((A @ B).to_dense(), A.to_dense() @ B.to_dense())


def test_a_result_holds_no_more_than_its_entries() -> None:
    """Found in room for the most there can be, it is saved and counted as what it is."""
    A, B = matrix(60, 60), matrix(60, 60, seed=1)
    for C in (A @ B, A + B):
        for t in (C.indices, C.values):
            assert t.untyped_storage().nbytes() == t.numel() * t.element_size()
            assert t.is_contiguous()


def test_a_first_sum_leaves_the_maps_to_those_who_need_them() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    (A + B).values.sum()
    assert A.pattern.keeps("union pattern", B.pattern)
    assert not A.pattern.keeps("union", B.pattern)
    A, B = matrix(6, 6).requires_grad_(), matrix(6, 6, seed=1)
    G = torch.randn(6, 6, dtype=A.dtype)
    ((A + B).to_dense() * G).sum().backward()
    assert A.pattern.keeps("union", B.pattern)
    assert A.grad is not None
    assert torch.equal(A.grad.values, G[A.pattern.row_indices, A.indices.long()])


def test_a_first_sum_under_transforms() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    want = (A + B).to_dense()

    def total(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        P, Q = (gs.Pattern(X.indptr, X.indices, X.shape) for X in (A, B))  # nobody has seen them
        return (gs.SparseMatrix(P, a) + gs.SparseMatrix(Q, b)).to_dense()

    a, b = A.values.detach(), B.values.detach()
    twice = torch.func.vmap(total, in_dims=(0, None))(torch.stack([a, a]), b)
    assert torch.equal(twice, torch.stack([want, want]))
    tangent = torch.func.jvp(total, (a, b), (a, b))[1]
    assert torch.equal(tangent, want)
    gradient = torch.func.grad(lambda a: total(a, b).sum())(a)
    assert torch.equal(gradient, torch.ones_like(a))


def test_what_inference_mode_derives_can_be_trained_on() -> None:
    A, B = matrix(6, 6), matrix(6, 6, seed=1)
    with torch.inference_mode():
        A.T, A @ B, A + B, A * B
    A.requires_grad_()
    for C in (A.T, A @ B, A + B, A * B):
        C.values.sum().backward()
    assert A.grad is not None


def test_same_pattern_needs_no_maps() -> None:
    A = matrix(6, 6)
    B = A.with_values(A.values * 2)
    assert (A + B).pattern is A.pattern
    assert not A.pattern._kept


def expect_close(ours: gs.SparseMatrix, theirs: scipy.sparse.csr_array) -> None:
    assert abs(ours.to_scipy() - theirs).max() <= 1e-12 * max(abs(theirs).max(), 1e-300)
    assert ours.nnz >= theirs.nnz  # SciPy drops sums that happen to be zero


def real_matrices(data: Path) -> Iterator[tuple[str, scipy.sparse.csr_array]]:
    for path in sorted((data / "matrices").glob("*.mtx*")):
        _, _, _, form, field, _ = scipy.io.mminfo(path)
        if form == "coordinate" and field != "complex":
            yield path.name, scipy.sparse.csr_array(scipy.io.mmread(path)).astype(np.float64)


def test_real_matrices_equal_scipy(data: Path) -> None:
    """A x, Aᵀ x, A A (or A Aᵀ), A + Aᵀ and A ∘ Aᵀ for every real sparse matrix of the collection."""
    seen = []
    for name, S in real_matrices(data):
        seen.append(name)
        A, St = gs.from_scipy(S), S.T.tocsr()
        square = S.shape[0] == S.shape[1]
        x, y = (np.random.default_rng(0).standard_normal(size) for size in S.shape[::-1])
        size = 1e-12 * max(abs(S).sum(axis=1).max(), abs(S).sum(axis=0).max())
        assert abs((A @ torch.from_numpy(x)).numpy() - S @ x).max() <= size, name
        assert abs(gs.spmm(A, torch.from_numpy(y), transpose=True).numpy() - St @ y).max() <= size, name
        expect_close(A @ (A if square else A.T), S @ (S if square else St))
        if square:
            expect_close(A + A.T, S + St)
            expect_close(A * A.T, S.multiply(St).tocsr())
    assert len(seen) >= 15


def test_bad_input() -> None:
    A, B = matrix(3, 4), matrix(3, 4)
    for inference in (False, True):
        with torch.inference_mode(inference):
            with pytest.raises(ValueError, match=r"^spgemm: A is 3 x 4 and B is 3 x 4, which do not multiply$"):
                A @ B
            with pytest.raises(ValueError, match=r"^spadd: A is 3 x 4 but B is 4 x 3$"):
                A + B.T
            with pytest.raises(TypeError, match=r"^spadd: B must be a SparseMatrix, not Tensor$"):
                gs.spadd(A, B.to_dense())
            with pytest.raises(ValueError, match=r"^spgemm: the mask is 3 x 4 but the product is 3 x 3$"):
                gs.spgemm(A, B.T, mask=A)


NARROW, WIDE = torch.int32, torch.int64


@pytest.mark.parametrize("widths", [(NARROW, NARROW, WIDE), (NARROW, WIDE, NARROW), (WIDE, NARROW, NARROW)])
def test_index_widths_may_differ(widths: tuple[torch.dtype, ...]) -> None:
    A, B, C = (matrix(5, 5, seed).to(index_dtype=width).requires_grad_() for seed, width in enumerate(widths))
    a, b, c = (M.to_dense().detach().requires_grad_() for M in (A, B, C))
    mask = C.with_values(torch.ones_like(C.values)).to_dense().detach()
    results = {
        "spgemm": (A @ B, a @ b),
        "masked": (gs.spgemm(A, B, mask=C), (a @ b) * mask),
        "spadd": (A + B - C, a + b - c),
        "hadamard": (A * B * C, a * b * c),
        "kron": (gs.kron(A, B), torch.kron(a, b)),
        "stack": (gs.hstack([A, B, C]), torch.cat([a, b, c], 1)),
    }
    for name, (got, wanted) in results.items():
        torch.testing.assert_close(got.to_dense(), wanted, msg=lambda text, name=name: f"{name}: {text}")
    assert gs.allclose(A, A.to(index_dtype=WIDE))
    sum((got.values**2).sum() for got, _ in results.values()).backward()
    sum((wanted**2).sum() for _, wanted in results.values()).backward()
    for M, m in ((A, a), (B, b), (C, c)):
        rows, cols = M.pattern.row_indices, M.indices.long()
        torch.testing.assert_close(M.grad.values, m.grad[rows, cols])


def test_a_mask_of_any_width_keeps_its_own_pattern() -> None:
    A, M = matrix(4, 4), gs.from_torch(matrix(4, 4).to_torch().to(torch.float64))
    wide = M.to(index_dtype=WIDE)
    C = gs.spgemm(A, A, mask=wide)
    assert C.pattern is wide.pattern
    assert torch.equal(C.values, gs.spgemm(A, A, mask=M.to(index_dtype=NARROW)).values)


def test_the_op_itself_checks_its_mask() -> None:
    A, M = matrix(4, 4), matrix(4, 7)
    left = A.pattern.tensors(), A.values, A.shape
    with pytest.raises(ValueError, match="the mask is 4 x 7 but the product is 4 x 4"):
        torch.ops.gossamer.spgemm(*left, *left, M.pattern.tensors(), M.shape, 0)
    wide = A.pattern.to(index_dtype=WIDE)
    with pytest.raises(TypeError, match="A has Int indices but the mask has Long"):
        torch.ops.gossamer.spgemm(*left, *left, wide.tensors(), wide.shape, 0)


def test_a_sum_with_a_part_of_a_pattern_shares_it() -> None:
    A = gs.poisson((4, 4))
    assert (A + gs.eye(16)).pattern is A.pattern
