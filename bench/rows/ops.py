# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the benchmark. A new entry of BENCHES appears in the table, the JSON and the plot."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu, spsolve
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.row import CPU, OURS, Bench, Skip
from bench.rows import peers


def dense(height: int, columns: int, dtype: torch.dtype, seed: int, device: torch.device = CPU) -> Tensor:
    """Random, reproducible; one column is a vector."""
    shape = (height,) if columns == 1 else (height, columns)
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)).to(device)


class Matrix:
    """One sparse matrix in the form of every contender, on shared memory where they allow it. What is for one of them
    alone is made when it is first asked for, which is before anything is timed."""

    def __init__(self, A: csr_array, dtype: torch.dtype, device: torch.device = CPU) -> None:
        self.A = gs.from_scipy(A).to(device, dtype).requires_grad_()
        self.values = self.A.values
        self.rows, self.cols = self.A.pattern.row_indices, self.A.indices
        self.pattern: peers.Pattern = self.A.indptr, self.A.indices, self.A.shape
        indptr, indices, self.perm = self.A.pattern.transpose()
        self.transposed: peers.Pattern = indptr, indices, self.A.shape[::-1]
        self.torch_csr = peers.csr(self.pattern, self.values.detach()).requires_grad_()

    @cached_property
    def scipy(self) -> csr_array:
        return self.A.to_scipy()

    @cached_property
    def cupy(self) -> Any:
        return peers.cupy_csr(self.pattern, self.values)

    def bytes_of(self, with_values: bool) -> int:
        """Indices as stored (int32 where they fit), and the values."""
        index = self.cols.element_size() * (self.rows.numel() + self.A.indptr.numel())
        return index + with_values * self.values.nbytes


class Product(Matrix):
    """Inputs of spmm: A or Aᵀ times X, and the gradient G that the backward starts from."""

    def __init__(
        self, A: csr_array, dtype: torch.dtype, columns: int, transpose: bool, device: torch.device = CPU
    ) -> None:
        super().__init__(A, dtype, device)
        rows, cols = A.shape[::-1] if transpose else A.shape
        self.transpose = transpose
        self.X = dense(cols, columns, dtype, 1, device).requires_grad_()
        self.G = dense(rows, columns, dtype, 2, device)

    @cached_property
    def X_numpy(self) -> Any:
        return self.X.detach().cpu().numpy()

    @cached_property
    def X_cupy(self) -> Any:
        return peers.cupy()[0].from_dlpack(self.X.detach())

    def gathered(self) -> Tensor:
        to, of = (self.cols, self.rows) if self.transpose else (self.rows, self.cols)
        return peers.gathered_product(to, of, self.values, self.X, self.G.shape[0])

    def by_hand(self) -> Tensor:
        return peers.by_hand(self.values, self.X, self.pattern, self.transposed, self.perm, self.transpose)

    def bytes_moved(self) -> tuple[int, int]:
        forward = self.bytes_of(True) + self.X.nbytes + self.G.nbytes
        # dA: pattern, G and X in, values out. dX: pattern, values and G in, dX out. One of the products is with the
        # transpose and reads the permutation, too.
        return forward, 3 * forward + self.perm.nbytes


class Sampled(Matrix):
    """Inputs of sddmm: U Vᵀ on A's pattern, and the gradient G of its values."""

    def __init__(self, A: csr_array, dtype: torch.dtype, columns: int, device: torch.device = CPU) -> None:
        super().__init__(A, dtype, device)
        self.U, self.V = (
            dense(size, columns, dtype, seed, device).requires_grad_() for seed, size in enumerate(A.shape)
        )
        self.G = dense(A.nnz, 1, dtype, 2, device)
        self.G_csr = peers.csr(self.pattern, self.G)
        self.mask = self.torch_csr.detach()

    def sampled_addmm(self) -> Tensor:
        return peers.sampled(self.mask, self.U, self.V)

    def gathered(self) -> Tensor:
        return peers.gathered_dots(self.rows, self.cols, self.U, self.V)

    def bytes_moved(self) -> tuple[int, int]:
        forward = self.bytes_of(True) + self.U.nbytes + self.V.nbytes
        return forward, 3 * forward + self.perm.nbytes  # dU = G V, dV = Gᵀ U


class Solved(Matrix):
    """Inputs of solve: A x = b, and the gradient G of x. A fresh pattern each time, so the analysis is timed, too."""

    def __init__(self, A: csr_array, dtype: torch.dtype, columns: int, device: torch.device = CPU) -> None:
        super().__init__(A, dtype, device)
        self.b = dense(A.shape[0], columns, dtype, 1, device).requires_grad_()
        self.b_numpy = self.b.detach().cpu().numpy()
        self.G = dense(A.shape[0], columns, dtype, 2, device)
        self.columns = self.scipy.tocsc()

    def solve(self, engine: str) -> Tensor:
        indptr, indices, shape = self.pattern
        fresh = gs.SparseMatrix(indptr, indices, self.values, shape)
        try:
            return gs.linalg.solve(fresh, self.b, "lu" if engine in ("umfpack", "eigen") else "auto", engine)
        except ValueError as missing:
            raise Skip(str(missing)) from None

    def bytes_moved(self) -> tuple[int, int]:
        return 0, 0  # depends on the fill


ENGINES = {OURS: "auto", "eigen": "eigen", "cholmod": "cholmod", "pardiso": "pardiso", "umfpack": "umfpack"}


def torch_transposed_backward(i: Product) -> Any:
    """torch's own way for Aᵀ X has a dense gradient; its entries on the pattern are what is asked for."""
    peers.refuse_dense_gradient(i.torch_csr)
    dA, dX = grad(i.torch_csr.t() @ i.X, (i.torch_csr, i.X), i.G)
    return dA[i.rows, i.cols], dX


def product_bench(transpose: bool, columns: tuple[int, ...]) -> Bench:
    """Y = A X or Aᵀ X, dA and dX."""
    if transpose:
        torch_backward = torch_transposed_backward
        peers_forward = {
            "scipy": lambda i: i.scipy.T @ i.X_numpy,
            "torch.sparse": lambda i: i.torch_csr.t() @ i.X,
            "torch by hand": lambda i: i.by_hand(),
            "cupy": lambda i: i.cupy.T @ i.X_cupy,
        }
    else:
        peers_forward = {
            "scipy": lambda i: i.scipy @ i.X_numpy,
            "torch.sparse": lambda i: i.torch_csr @ i.X,
            "cupy": lambda i: i.cupy @ i.X_cupy,
        }

        def torch_backward(i: Product) -> Any:  # a vector as a column: only torch.sparse.mm masks its gradient
            Y = torch.sparse.mm(i.torch_csr, peers.as_matrix(i.X))
            return grad(Y, (i.torch_csr, i.X), peers.as_matrix(i.G))

    return Bench(
        setup=lambda A, dtype, columns, device: Product(A, dtype, columns, transpose, device),
        forward={OURS: lambda i: gs.spmm(i.A, i.X, transpose), **peers_forward},
        backward={
            OURS: lambda i: grad(gs.spmm(i.A, i.X, transpose), (i.values, i.X), i.G),
            "torch.sparse": torch_backward,
            "torch by hand": lambda i: grad(i.by_hand(), (i.values, i.X), i.G),
            "torch gather": lambda i: grad(i.gathered(), (i.values, i.X), i.G),
        },
        bytes_moved=Product.bytes_moved,
        columns=columns,
    )


BENCHES = {
    "spmm": product_bench(transpose=False, columns=(1, 64, 128)),
    "spmm_transposed": product_bench(transpose=True, columns=(1, 64)),
    "sddmm": Bench(
        setup=Sampled,
        forward={
            OURS: lambda i: gs.sddmm(i.A, i.U, i.V),
            "torch.sparse": lambda i: i.sampled_addmm(),
            "torch gather": lambda i: i.gathered(),
        },
        backward={
            OURS: lambda i: grad(gs.sddmm(i.A, i.U, i.V).values, (i.U, i.V), i.G),
            "torch.sparse": lambda i: grad(i.sampled_addmm(), (i.U, i.V), i.G_csr),
            "torch gather": lambda i: grad(i.gathered(), (i.U, i.V), i.G),
        },
        bytes_moved=Sampled.bytes_moved,
        columns=(1, 64),
    ),
    "solve": Bench(
        setup=Solved,
        forward={
            **{name: lambda i, engine=engine: i.solve(engine) for name, engine in ENGINES.items()},
            "scipy": lambda i: spsolve(i.scipy, i.b_numpy),
            "scipy splu": lambda i: splu(i.columns).solve(i.b_numpy),
        },
        backward={
            name: lambda i, engine=engine: grad(i.solve(engine), (i.values, i.b), i.G)
            for name, engine in ENGINES.items()
        },
        bytes_moved=Solved.bytes_moved,
        columns=(1,),
        matrices=("poisson300", "poisson3d"),
    ),
    "call overhead": Bench(
        setup=lambda A, dtype, columns, device: Product(A, dtype, columns, False, device),
        forward={
            OURS: lambda i: i.A @ i.X,
            "scipy": lambda i: i.scipy @ i.X_numpy,
            "torch.sparse": lambda i: i.torch_csr @ i.X,
            "cupy": lambda i: i.cupy @ i.X_cupy,
        },
        bytes_moved=Product.bytes_moved,
        columns=(1,),
        matrices=("tiny",),
    ),
}
