# SPDX-License-Identifier: BSD-3-Clause
"""What is kept with a pattern and first made inside a transform of torch.func serves outside of it, and in another
one: it is made of ordinary tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gossamer as gs

f64 = torch.float64


def fresh(grid: tuple[int, int] = (5, 4)) -> gs.SparseMatrix:
    """A new pattern every time, with which nothing is kept."""
    A = gs.poisson(grid, dtype=f64)
    return gs.SparseMatrix(A.indptr.clone(), A.indices.clone(), A.values, A.shape)


def shifted() -> gs.SparseMatrix:
    """Another pattern of the same shape."""
    values = torch.linspace(1, 2, 19, dtype=f64)
    return gs.from_coo(torch.arange(19), torch.arange(1, 20), values, (20, 20)) + 3 * gs.eye(20, dtype=f64)


x = torch.linspace(-1, 1, 20, dtype=f64)

# Of a matrix and another one, whose patterns are new: what derives something from them.
USES: dict[str, Callable[[gs.SparseMatrix, gs.SparseMatrix], Any]] = {
    "transpose": lambda A, B: A.T @ x,
    "transposed arrays": lambda A, B: A.T.values,
    "runs": lambda A, B: A @ (A @ (A @ x)),
    "levels": lambda A, B: gs.linalg.solve_triangular(A, x) + A.pattern.levels(False)[1].sum(),
    "union": lambda A, B: (A + B) @ x,
    "union twice": lambda A, B: (A + B) @ x + (A + B).values.sum(),
    "intersection": lambda A, B: (A * B) @ x,
    "product": lambda A, B: (A @ B) @ x,
    "product with a transpose": lambda A, B: (A.T @ A) @ x,
    "int64": lambda A, B: (A + B.to(index_dtype=torch.int64)) @ x,
    "factor": lambda A, B: gs.linalg.solve(A, x),
    "cholesky": lambda A, B: gs.linalg.cholesky(A).L.values,
    "iterations": lambda A, B: gs.linalg.cg(A, x, rtol=1e-13)[0],
    "incomplete factor": lambda A, B: gs.linalg.ilu(A).L @ x,
    "block Jacobi": lambda A, B: gs.linalg.block_jacobi(A, 2)(x),
    "eigenvalues": lambda A, B: gs.linalg.eigsh(A, 2, sigma=0)[0],
    "singular values": lambda A, B: gs.linalg.svds(B, 2)[1],
    "least squares": lambda A, B: gs.linalg.lstsq(B, x),
    "diagonal": lambda A, B: A.diagonal() + A.tril().sum(1),
}
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, v: torch.func.grad(lambda v: f(v).sin().sum())(v),
    "jvp": lambda f, v: torch.func.jvp(f, (v,), (torch.ones_like(v),)),
    "vmap": lambda f, v: torch.func.vmap(f)(torch.stack([v, v])),
    "grad in vmap": lambda f, v: torch.func.vmap(torch.func.grad(lambda v: f(v).sin().sum()))(torch.stack([v, v])),
    "hessian": lambda f, v: torch.func.hessian(lambda v: f(v).sin().sum())(v),
}
OBJECTS = ("incomplete factor", "block Jacobi")  # of one matrix each: not for vmap over its values


def dense(result: Any) -> Tensor:
    return result.to_dense() if isinstance(result, gs.SparseMatrix) else result


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("use", USES)
def test_first_inside_then_outside(use: str, transform: str) -> None:
    if use in OBJECTS and transform != "grad" and transform != "jvp":
        pytest.skip("a preconditioner is one of one matrix")
    A, B, f = fresh(), shifted(), USES[use]
    wanted = dense(f(fresh(), shifted()))
    v = (B if use in ("singular values", "least squares") else A).values.detach()

    def of_values(v: Tensor) -> Tensor:
        matrices = (A, B.with_values(v)) if use in ("singular values", "least squares") else (A.with_values(v), B)
        return dense(f(*matrices))

    TRANSFORMS[transform](of_values, v)
    torch.testing.assert_close(dense(f(A, B)), wanted)
    torch.testing.assert_close(TRANSFORMS["jvp"](of_values, v)[0], wanted)
    for P in (A.pattern, B.pattern):
        for t in tensors_in([P._transpose, P._lists, *P._kept.values()]):
            assert not torch._C._functorch.is_functorch_wrapped_tensor(t)


def tensors_in(kept: Any) -> list[Tensor]:
    if isinstance(kept, Tensor):
        return [kept]
    if isinstance(kept, gs.Pattern):
        return [kept.indptr, kept.indices]
    parts = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, (list, tuple)) else []
    return [t for part in parts for t in tensors_in(part)]
