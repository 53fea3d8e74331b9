# SPDX-License-Identifier: BSD-3-Clause
"""Dots over all ranks, and conjugate gradients on them: the same bits for every number of ranks and every partition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor
from whole import Pair, numbers, on, partitions, with_derivatives

import gossamer as gs

F64 = torch.float64


def owned(n: int, mesh: Any, seed: int = 0) -> Tensor:
    """Which of n rows this rank has: some have many, and the last of several has none."""
    ranks = mesh.size()
    owner = torch.randint(max(ranks - 1, 1), (n,), generator=torch.Generator().manual_seed(seed + ranks))
    return (owner == mesh.get_local_rank()).nonzero().flatten()


def wide(*shape: int, dtype: torch.dtype, spread: int, seed: int) -> Tensor:
    """Numbers whose exponents are far apart, so that a sum in any order rounds."""
    exponents = torch.randint(-spread, spread, shape, generator=torch.Generator().manual_seed(seed))
    return torch.ldexp(numbers(*shape, seed=seed), exponents).to(dtype)


def exactly(u: Tensor, v: Tensor) -> float:
    """By rational numbers: the products rounded to float64, the sum not at all until its end."""
    return float(sum((Fraction(p) for p in (u.double() * v.double()).tolist()), start=Fraction(0)))


def case_dot(mesh: Any) -> None:
    F32 = torch.float32
    for dtype, spread in ((F64, 3), (F64, 80), (F64, 400), (F32, 3), (F32, 20), (torch.bfloat16, 5)):
        u, v = (wide(700, 3, dtype=dtype, spread=spread, seed=seed) for seed in (1, 2))
        u[500:] = -u[:200]  # so that much cancels
        v[500:] = v[:200]
        mine = owned(700, mesh)
        wanted = torch.tensor([exactly(u[:, c], v[:, c]) for c in range(3)], dtype=F64).to(dtype)
        assert torch.equal(gs.distributed.dot(u[mine], v[mine], mesh), wanted)
        found = gs.distributed.dot(u[mine, 0], v[mine, 0], mesh)
        assert torch.equal(found, wanted[0])


@on(1, 3)
def case_dot_of_nan_and_infinity(mesh: Any) -> None:
    mine, inf = owned(9, mesh), float("inf")
    ones = torch.ones(9, dtype=F64)
    for bad, wanted in (({3: inf}, inf), ({3: -inf}, -inf), ({3: inf, 8: -inf}, None), ({0: float("nan")}, None)):
        u = ones.clone()
        for i, number in bad.items():
            u[i] = number
        found = gs.distributed.dot(u[mine], ones[mine], mesh).item()
        assert found == wanted if wanted is not None else found != found


@on(1, 3)
def case_dot_derivatives(mesh: Any) -> None:
    """Of Σ_r w_r s³, s being the dot: each rank calls backward on its own term."""
    u, v = numbers(40), numbers(40, seed=1)
    mine, rank = owned(40, mesh), mesh.get_local_rank()

    def half_square(first: Any) -> Tensor:
        return first[0].square().sum() / 2 + first[1].square().sum() / 2

    def derivatives(a: Tensor, b: Tensor, s: Any, weight: float) -> tuple[Tensor, ...]:
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        first = torch.autograd.grad(weight * s(a, b) ** 3, (a, b), create_graph=True)
        return *(g.detach() for g in first), *torch.autograd.grad(half_square(first), (a, b))

    total = sum(1.0 + r for r in range(mesh.size()))
    wanted = derivatives(u, v, torch.dot, total)
    found = derivatives(u[mine], v[mine], lambda a, b: gs.distributed.dot(a, b, mesh), 1.0 + rank)
    for want, have in zip(wanted, found, strict=True):
        torch.testing.assert_close(have, want[mine], rtol=1e-13, atol=1e-13)


@on(1, 3)
def case_sum(mesh: Any) -> None:
    ranks, rank = mesh.size(), mesh.get_local_rank()
    t = torch.tensor([1.0 + rank, 2.0], dtype=F64, requires_grad=True)
    s = gs.distributed.sum(t, mesh)
    assert s.tolist() == [ranks * (ranks + 1) / 2, 2.0 * ranks]
    (first,) = torch.autograd.grad((s**3).sum(), t, create_graph=True)  # 3 s² on each of the ranks
    torch.testing.assert_close(first, 3 * ranks * s**2)
    (second,) = torch.autograd.grad(first.sum(), t)
    torch.testing.assert_close(second, 6 * ranks**2 * s)
    assert gs.distributed.sum(torch.tensor([2]), mesh).item() == 2 * ranks


@on(1, 3)
def case_dot_under_torch_func(mesh: Any) -> None:
    u, v, mine = numbers(30, 4), numbers(30, 4, seed=1), owned(30, mesh)
    a, b = u[mine], v[mine]
    dots = gs.distributed.dot(a, b, mesh)
    assert torch.equal(torch.vmap(lambda x, y: gs.distributed.dot(x, y, mesh), in_dims=1)(a, b), dots)
    by_hand = gs.distributed.dot(b, b, mesh) + gs.distributed.dot(a, a, mesh)
    _, tangent = torch.func.jvp(lambda x, y: gs.distributed.dot(x, y, mesh), (a, b), (b, a))
    torch.testing.assert_close(tangent, by_hand)
    gradient = torch.func.grad(lambda x: gs.distributed.dot(x, b, mesh).sum())(a)
    torch.testing.assert_close(gradient, b * mesh.size())


def grid() -> gs.SparseMatrix:
    """Of a grid whose coefficients vary, so that every product rounds."""
    A, d = gs.poisson((13, 11), dtype=F64) + 1.0 * gs.eye(143, dtype=F64), 1 + torch.arange(143, dtype=F64) / 143
    return A.scale_rows(d).scale_cols(d)


def every_partition(A: gs.SparseMatrix, ranks: int) -> list[Tensor | None]:
    """Of a solve: that products do not depend on the partition is shown by others, for more of them."""
    known = partitions(A, ranks)
    others = [known["metis"], torch.full((A.shape[0],), ranks - 1)] if ranks in (2, 3) else []
    return [known["random"], *others]


def same_solve(pair: Pair, b: Tensor, method: str = "cg", **how: Any) -> None:
    """x, info, first and second derivatives in every entry of A and in b: the bits of one process.

    Of several columns, the bits of a DistributedMatrix of one process: those of a SparseMatrix are solved in groups.
    """
    solve, rows = getattr(gs.linalg, method), pair.D.row_keys
    whole: Any = pair.A if b.dim() == 1 else gs.distributed.scatter(pair.A, "")
    weight = numbers(*b.shape, seed=9)
    infos = []

    def run(A: Any, rhs: Tensor) -> Tensor:
        x, info = solve(A, rhs, rtol=1e-4, **how)  # bits are compared, not digits: few iterations show as much
        infos.append(info)
        return x  # type: ignore[no-any-return]

    wanted = with_derivatives(lambda v, c: run(whole.with_values(v), c), [pair.A.values, b], weight)
    found = with_derivatives(lambda v, c: run(pair.D.with_values(v), c), [pair.D.values, b[rows]], weight[rows])
    pair.equal("rerer", wanted, found)
    for want, have in zip(*infos, strict=True):
        assert torch.equal(want, have)


def case_cg(mesh: Any) -> None:
    A = grid()
    for parts in every_partition(A, mesh.size()):
        same_solve(Pair(A, mesh, parts), numbers(143))


@on(1, 3)
def case_cg_of_other_right_sides(mesh: Any) -> None:
    A = grid()
    pair = Pair(A, mesh, every_partition(A, mesh.size())[-1])
    same_solve(pair, numbers(143, 3))
    same_solve(pair, 1e-200 * numbers(143))  # its squares are 0
    small = Pair(gs.eye(2, dtype=F64) * 3.0, mesh)  # fewer rows than ranks
    same_solve(small, numbers(2))


@on(1, 3)
def case_other_methods(mesh: Any) -> None:
    A = grid()
    pair = Pair(A, mesh, partitions(A, mesh.size())["random"])
    for method in ("minres", "gmres", "bicgstab"):
        same_solve(pair, numbers(143), method)
    with pytest.raises(NotImplementedError, match="lsmr"):
        gs.linalg.lsmr(pair.D, numbers(143)[pair.D.row_keys])


@on(3)
def case_cg_in_an_unsymmetric_parametrisation(mesh: Any) -> None:
    """The adjoint needs the transpose although A is symmetric: else second derivatives are wrong, and only these."""
    A = grid()
    at, b = (A.pattern.row_indices, A.indices.long()), numbers(143)
    dense = with_derivatives(
        lambda v: torch.linalg.solve(torch.zeros(143, 143, dtype=F64).index_put(at, v), b), [A.values], numbers(143)
    )
    pair = Pair(A, mesh)
    rows = pair.D.row_keys
    found = with_derivatives(
        lambda v: gs.linalg.cg(pair.D.with_values(v), b[rows], rtol=1e-13)[0], [pair.D.values], numbers(143)[rows]
    )
    for want, have, own in zip(dense, found, (rows, pair.entries, pair.entries), strict=True):
        torch.testing.assert_close(have, want[own], rtol=1e-9, atol=1e-10)


def solution(A: gs.SparseMatrix, b: Tensor, parts: Tensor | None, mesh: Any) -> Tensor:
    """All rows of it, on every rank."""
    D = gs.distributed.scatter(A, mesh, parts)
    x, _ = gs.linalg.cg(D, b[D.row_keys])
    return gs.distributed.sum(torch.zeros_like(b).index_copy(0, D.row_keys, x), mesh)


@on(1, 2, 4)
def case_cg_in_float32(mesh: Any) -> None:
    """For every partition the same; a matrix of one process without a group adds up in another way."""
    A, b = grid().to(torch.float32), numbers(143, dtype=torch.float32)
    first, *others = (solution(A, b, parts, mesh) for parts in every_partition(A, mesh.size()))
    for x in others:
        assert torch.equal(x, first)
    torch.testing.assert_close(first, gs.linalg.cg(A, b)[0], rtol=1e-3, atol=1e-3)


@on(2)
def case_cg_unrolled_and_with_a_callback(mesh: Any) -> None:
    A = grid()
    pair, b, calls = Pair(A, mesh), numbers(143), []
    rows = pair.D.row_keys
    weight = numbers(143, seed=9)
    how: dict[str, Any] = {"unrolled": True, "maxiter": 8, "rtol": 0.0}
    wanted = with_derivatives(lambda v, c: gs.linalg.cg(A.with_values(v), c, **how)[0], [A.values, b], weight)
    found = with_derivatives(
        lambda v, c: gs.linalg.cg(pair.D.with_values(v), c, **how)[0], [pair.D.values, b[rows]], weight[rows]
    )
    for want, have, own in zip(wanted, found, (rows, pair.entries, rows, pair.entries, rows), strict=True):
        torch.testing.assert_close(have, want[own], rtol=1e-9, atol=1e-10)
    M = gs.distributed.scatter(gs.eye(143, dtype=F64), mesh)
    _, info = gs.linalg.cg(pair.D, b[rows], callback=calls.append, M=M)
    assert len(calls) == info.iterations


@on(1, 3)
def case_errors_of_cg(mesh: Any) -> None:
    """On every rank, and the same."""
    D = gs.distributed.scatter(grid(), mesh)
    n, last = D.local_shape[0], mesh.get_local_rank() == mesh.size() - 1
    with pytest.raises(ValueError, match=r"cg: b must be"):
        gs.linalg.cg(D, torch.ones(n + last, dtype=F64))
    with pytest.raises(ValueError, match=r"cg: x0 must be"):
        gs.linalg.cg(D, torch.ones(n, dtype=F64), torch.ones(n, 1 + last, dtype=F64))
    with pytest.raises(gs.linalg.ConvergenceError, match="maxiter is reached; after 2 iterations"):
        gs.linalg.cg(D, numbers(143)[D.row_keys], maxiter=2)
    with pytest.raises(gs.linalg.ConvergenceError, match="not positive definite"):
        gs.linalg.cg(-D, numbers(143)[D.row_keys])
    with pytest.raises(ValueError, match=r"dot: u"):
        gs.distributed.dot(torch.ones(3 + last), torch.ones(3), mesh)
