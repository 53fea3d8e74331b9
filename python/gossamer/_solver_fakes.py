# SPDX-License-Identifier: BSD-3-Clause
"""Fakes of solvers, by which a tracer knows their results without running them: see _fakes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gossamer import _library as _library  # an op must be there before its fake
from gossamer._fakes import Gathered, some


# Factors are handles on the host, whatever the device of the matrix.
def _analyze(pattern: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def _factorize(analysis: Tensor, values: Tensor, kind: str, engine: str = "auto") -> Tensor:
    return torch.empty(values.shape[1:], dtype=torch.int64)


def _factor_solve(
    factor: Tensor,
    pattern: Sequence[Tensor],
    values: Tensor,
    b: Tensor,
    shape: Sequence[int],
    t: bool = False,
    refine: bool = False,
) -> Tensor:
    return b.new_empty(b.shape)


def _factor_logdet(factor: Tensor, pattern: Sequence[Tensor], values: Tensor, shape: Sequence[int]) -> Tensor:
    return values.new_empty(values.shape[1:])


def _factor_inverse(
    factor: Tensor, pattern: Sequence[Tensor], values: Tensor, shape: Sequence[int], t: bool = False
) -> Tensor:
    return values.new_empty(values.shape)


def _inverse_tangent(
    factor: Tensor,
    pattern: Sequence[Tensor],
    values: Tensor,
    M: Tensor,
    shape: Sequence[int],
    t: bool = False,
    m: bool = False,
) -> Tensor:
    return values.new_empty(values.shape)


def _factor_sign(factor: Tensor, values: Tensor) -> Tensor:
    return values.new_empty(values.shape[1:])


# Eigenvalues: the transform is a handle on the host, all else has the size of what it is given.
def _symmetric_part(pattern: Sequence[Tensor], values: Tensor, shape: Sequence[int], name: str) -> Tensor:
    return torch.empty_like(values)


def _spectral_transform(
    analysis: Tensor | None,
    pattern: Sequence[Tensor],
    a: Tensor,
    m: Tensor | None,
    shape: Sequence[int],
    sigma: float | None,
    dense: bool,
) -> Tensor:
    return torch.empty(a.shape[1:], dtype=torch.int64)


def _eigenpairs(
    transform: Tensor,
    pattern: Sequence[Tensor],
    a: Tensor,
    m: Tensor | None,
    shape: Sequence[int],
    k: int,
    which: str,
    ncv: int,
    maxiter: int,
    tol: float,
    v0: Tensor | None,
    tolerance: float,
) -> Gathered:
    return a.new_empty((k, k)), a.new_empty((shape[0], k)), a.new_empty((k,), dtype=torch.int64)


def _deflated_solve(
    transform: Tensor,
    pattern: Sequence[Tensor],
    a: Tensor,
    m: Tensor | None,
    X: Tensor,
    Theta: Tensor,
    B: Tensor,
    shape: Sequence[int],
) -> Tensor:
    return B.new_empty(B.shape)


def _cluster_quotient(Theta: Tensor, N: Tensor, labels: Tensor) -> Tensor:
    return N.new_empty(N.shape)


def _cluster_values(Theta: Tensor, labels: Tensor, tolerance: float) -> Tensor:
    return Theta.new_empty(Theta.shape[:1])


def _same_for_every_basis(labels: Tensor, X: Tensor, G: Tensor, tolerance: float) -> Tensor:
    return torch.empty_like(G)


def _same_for_equal_values(labels: Tensor, g: Tensor, tolerance: float) -> Tensor:
    return torch.empty_like(g)


def _above_rounding(S: Tensor, largest: Tensor, rounding: float) -> Tensor:
    return torch.empty_like(S)


def _probe_rows(
    Y: Tensor, product: Tensor, open: Tensor, cols: int, buckets: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = some(Y, torch.int64)
    return rows, torch.empty_like(rows), open.new_empty(open.shape, dtype=torch.int8)


def _incomplete_jacobian(
    pattern: Sequence[Tensor], shape: Sequence[int], kind: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    entries, nnz = some(pattern[1]), pattern[1].shape[0]
    sources = torch.empty_like(entries, dtype=torch.int64)
    return entries.new_empty((nnz + 1,)), entries, sources, entries.new_empty((nnz,), dtype=torch.float64)


def _cholesky_pattern(
    analysis: Tensor, pattern: Sequence[Tensor], shape: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    perm = pattern[0].new_empty((shape[0],), dtype=torch.int64)
    at = pattern[1].new_empty(pattern[1].shape, dtype=torch.int64)
    return torch.empty((), dtype=torch.int64), torch.empty_like(pattern[0]), some(pattern[1]), perm, at


def _cholesky(plan: Tensor, factor: Sequence[Tensor], values: Tensor, at: Tensor) -> Tensor:
    return values.new_empty(factor[1].shape)


def _cholesky_tangent(plan: Tensor, factor: Sequence[Tensor], l: Tensor, N: Tensor) -> Tensor:
    return l.new_empty(l.shape)


def _cholesky_adjoint(plan: Tensor, factor: Sequence[Tensor], l: Tensor, G: Tensor) -> Tensor:
    return l.new_empty(l.shape)


def _gram_factor(analysis: Tensor, gram: Tensor, wide: bool) -> Tensor:
    return torch.empty(gram.shape[1:], dtype=torch.int64)


def _augmented_solve(
    factor: Tensor,
    pattern: Sequence[Tensor],
    values: Tensor,
    b: Tensor,
    c: Tensor,
    shape: Sequence[int],
    damp: float,
    t: bool,
) -> tuple[Tensor, Tensor]:
    return b.new_empty(b.shape), c.new_empty(c.shape)


FAKES = (
    _analyze,
    _factorize,
    _factor_solve,
    _factor_logdet,
    _factor_inverse,
    _inverse_tangent,
    _factor_sign,
    _symmetric_part,
    _spectral_transform,
    _eigenpairs,
    _deflated_solve,
    _cluster_quotient,
    _cluster_values,
    _same_for_every_basis,
    _same_for_equal_values,
    _above_rounding,
    _probe_rows,
    _incomplete_jacobian,
    _cholesky_pattern,
    _cholesky,
    _cholesky_tangent,
    _cholesky_adjoint,
    _gram_factor,
    _augmented_solve,
)
for fake in FAKES:  # each is named after its op
    torch.library.register_fake("gossamer::" + fake.__name__.removeprefix("_"), fake)
