# SPDX-License-Identifier: BSD-3-Clause
"""A preconditioner with a coarse matrix, for matrices on many processes. The work is done in C++."""

from __future__ import annotations

from typing import Any

import torch

from gossamer._krylov_call import Factored, handle_of
from gossamer._preconditioner import Preconditioner
from gossamer._preconditioners import block_jacobi
from gossamer.distributed._matrix import DistributedMatrix
from gossamer.distributed._own import everyone_has_an_inverse


def two_level(A: DistributedMatrix, M: Any = None, coarse_size: int = 16384) -> Preconditioner:
    """M of each rank's own block and a coarse matrix that all ranks have, for symmetric positive definite A.

    z = Q r + (I - Q A) M (I - A Q) r with Q = T (Tᵀ A T)⁻¹ Tᵀ; the columns of T are 1 on aggregates of strongly
    connected rows of one rank, at most ``coarse_size`` of them on all ranks together. M: a preconditioner made of A,
    such as ``amg(A)``, or a Factor of the own block; without it, ``block_jacobi(A)``. It must be symmetric positive
    definite, and then so is the result. All ranks call it.

    What is smooth is solved by the coarse matrix, so the iterations do not grow with the number of ranks. An
    application costs two products with A and two coarse solves beside M. It depends on the partition, and so do the
    bits of a solve with it; Jacobi does not.

    >>> A = gs.distributed.scatter(gs.poisson((40, 40), dtype=torch.float64))
    >>> M = gs.linalg.two_level(A, gs.linalg.ichol(A), coarse_size=400)
    >>> _, info = gs.linalg.cg(A, torch.ones(1600, dtype=torch.float64), M=M)
    >>> bool(info.iterations < 40)
    True
    """
    if not isinstance(A, DistributedMatrix):
        raise TypeError(f"two_level: A must be a DistributedMatrix, not {type(A).__name__}; amg is for a SparseMatrix")
    if coarse_size < 1:
        raise ValueError(f"two_level: coarse_size must be at least 1, not {coarse_size}")
    M = block_jacobi(A) if M is None else Factored(M) if hasattr(M, "slogdet") else M
    handle = handle_of(M)
    if handle is None or handle[0] is None:
        raise TypeError(f"two_level: M must be a preconditioner of this module or a Factor, not {type(M).__name__}")
    error = None
    try:
        exchange = A.exchange
        made = torch.ops.gossamer.two_level.default(
            exchange.plan, exchange.counts, A.values.detach(), handle[0], coarse_size, exchange.group
        )
    except torch.linalg.LinAlgError as found:  # type: ignore[attr-defined]
        error = found
    everyone_has_an_inverse(A.group, error)
    return Preconditioner(made)
