# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the sparse-sparse operations: products, sums, triangular solves.

Symbolic work is kept with a pattern here; the peers do all of it in every call. So each row comes twice: as a training
loop meets it, and ``cold``, with patterns nobody has seen.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import scipy.sparse
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import CPU, OURS, Bench, Skip
from bench.rows import peers

MKL: list[Callable[[Any, Any], Any]] = []  # its product, once load_mkl has found it


def load_mkl() -> None:
    """For the command line alone: a second MKL beside torch's does not go with the stand-in that the tests load."""
    if MKL:
        return
    # PyPI's mkl lies where sparse_dot_mkl does not look; GNU's threads are torch's: torch.set_num_threads is obeyed.
    for library in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
        os.environ.setdefault("MKL_RT", str(library))
    os.environ.setdefault("MKL_THREADING_LAYER", "GNU")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from sparse_dot_mkl import dot_product_mkl
        except (ImportError, OSError):
            return
    MKL.append(dot_product_mkl)


SIZES = ("tridiagonal", "poisson2d", "powerlaw16")


def cold(A: gs.SparseMatrix) -> gs.SparseMatrix:
    """The same matrix on a pattern that knows nothing yet."""
    return gs.SparseMatrix(A.indptr, A.indices, A.values, A.shape, check=False)


def moved(A: csr_array) -> csr_array:
    """A with its columns moved by two, around the end: equal patterns, such as those of A and Aᵀ on a grid, would be
    added without a union."""
    B = csr_array((A.data, (A.indices + 2) % A.shape[1], A.indptr), A.shape)
    B.sort_indices()
    return B


class Pair:
    """A and B, which is Aᵀ if not given, made to be two different matrices; the gradient G of the result's values."""

    def __init__(
        self,
        A: csr_array,
        dtype: torch.dtype,
        op: Callable[[Any, Any], Any],
        B: csr_array | None = None,
        device: torch.device = CPU,
    ) -> None:
        self.A = gs.from_scipy(A).to(device, dtype).requires_grad_()
        self.B = gs.from_scipy(csr_array(A.T) if B is None else B).to(device, dtype).requires_grad_()
        self.torch = [peers.csr((X.indptr, X.indices, X.shape), X.values.detach()) for X in (self.A, self.B)]
        with torch.no_grad():
            values = op(self.A, self.B).values
        self.G = torch.randn(values.shape, dtype=dtype, generator=torch.Generator().manual_seed(2)).to(device)

    @cached_property
    def scipy(self) -> tuple[csr_array, csr_array]:
        return self.A.to_scipy(), self.B.to_scipy()

    @cached_property
    def cupy(self) -> list[Any]:
        return [peers.cupy_csr((X.indptr, X.indices, X.shape), X.values) for X in (self.A, self.B)]

    def gradients(self, C: gs.SparseMatrix) -> tuple[Tensor, ...]:
        return grad(C.values, (self.A.values, self.B.values), self.G)


def mkl(i: Pair) -> Any:
    """MKL's product, with as many threads as torch has."""
    if not MKL:
        raise Skip("sparse_dot_mkl is not loaded")
    return MKL[0](*i.scipy)


def transposed(A: csr_array) -> csr_array:
    return csr_array(A.T)


def pair_bench(
    op: Callable[[Any, Any], Any],
    other: Callable[[csr_array], csr_array],
    fresh: bool,
    matrices: tuple[str, ...],
    more: dict[str, Any],
) -> Bench:
    """C = op(A, B), dA and dB, where B = other(A)."""

    def ours(i: Pair) -> gs.SparseMatrix:
        result: gs.SparseMatrix = op(cold(i.A), cold(i.B)) if fresh else op(i.A, i.B)
        return result

    return Bench(
        setup=lambda A, dtype, columns, device: Pair(A, dtype, op, other(A), device),
        forward={
            OURS: ours,
            "scipy": lambda i: op(*i.scipy),
            "torch.sparse": lambda i: op(*i.torch),
            "cupy": lambda i: op(*i.cupy),
            **more,
        },
        backward={OURS: lambda i: i.gradients(ours(i))},
        bytes_moved=lambda i: (0, 0),
        columns=(0,),
        matrices=matrices,
    )


def dominant_triangle(A: csr_array) -> csr_array:
    """The lower triangle of A with a diagonal that dominates its row."""
    lower = scipy.sparse.tril(abs(A), -1, format="csr")
    return csr_array(lower + scipy.sparse.diags_array(lower.sum(axis=1) + 1.0))


class Triangle:
    """A lower triangular L, b, and the gradient G of L⁻¹ b."""

    def __init__(self, L: csr_array, dtype: torch.dtype, device: torch.device = CPU) -> None:
        self.L = gs.from_scipy(L).to(device, dtype).requires_grad_()
        b, G = (torch.randn(L.shape[0], dtype=dtype, generator=torch.Generator().manual_seed(k)) for k in (1, 2))
        self.b, self.G, self.b_numpy = b.to(device).requires_grad_(), G.to(device), b.detach().numpy()
        self.b_column = self.b.detach()[:, None]
        self.torch = peers.csr((self.L.indptr, self.L.indices, self.L.shape), self.L.values.detach())

    @cached_property
    def scipy(self) -> csr_array:
        return self.L.to_scipy()

    @cached_property
    def cupy(self) -> tuple[Any, Any]:
        b = peers.cupy()[0].from_dlpack(self.b.detach())
        return peers.cupy_csr((self.L.indptr, self.L.indices, self.L.shape), self.L.values), b


TRIANGULAR = Bench(
    setup=lambda A, dtype, columns, device: Triangle(dominant_triangle(A), dtype, device),
    forward={
        OURS: lambda i: gs.linalg.solve_triangular(i.L, i.b),
        "scipy": lambda i: scipy.sparse.linalg.spsolve_triangular(i.scipy, i.b_numpy, lower=True),
        "torch.sparse": lambda i: torch.triangular_solve(i.b_column, i.torch, upper=False).solution[:, 0],
        "cupy": lambda i: peers.cupy()[1].linalg.spsolve_triangular(*i.cupy, lower=True),
    },
    backward={OURS: lambda i: grad(gs.linalg.solve_triangular(i.L, i.b), (i.L.values, i.b), i.G)},
    bytes_moved=lambda i: (0, 0),
    columns=(0,),
    matrices=("tridiagonal", "poisson2d", "powerlaw"),
)


def multiply(A: Any, B: Any) -> Any:
    return A @ B


def add(A: Any, B: Any) -> Any:
    return A + B


BENCHES = {
    "spgemm": pair_bench(multiply, transposed, False, SIZES, {"mkl": mkl}),
    "spgemm cold": pair_bench(multiply, transposed, True, SIZES, {"mkl": mkl}),
    "spadd": pair_bench(add, moved, False, ("tridiagonal", "poisson2d", "powerlaw"), {}),
    "spadd cold": pair_bench(add, moved, True, ("tridiagonal", "poisson2d", "powerlaw"), {}),
    "solve_triangular": TRIANGULAR,
}
