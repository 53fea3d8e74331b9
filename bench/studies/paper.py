# SPDX-License-Identifier: BSD-3-Clause
"""The ops of Nytko et al., §5, on their matrix, Eq. 15: A = tridiag(−1, 2, −1), N x N, float64.

Each function makes the inputs of one op at size N and gives its contenders. The sparse op and its dense counterpart
have the same inputs, so ours judges both. Forward is the op; backward is the backward pass alone, with the gradients of
all operands: the graph is built by the first call and kept, each further call walks it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import scipy.linalg
import scipy.sparse
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.autograd import grad

import gossamer as gs
from bench.race import check
from bench.row import OURS
from bench.rows import peers, products
from bench.rows.ops import Product
from bench.rows.products import Pair, Triangle, add, cold, multiply

SCIPY, MKL, TORCH, DENSE, COLD = "SciPy", "MKL", "torch.sparse", "torch dense", "gossamer, new pattern"
TOLERANCE = 1e-10  # relative to the largest entry, float64

Run = Callable[[], Any]


def after(runs: dict[str, Run], then: dict[str, Callable[[Any], Any]]) -> dict[str, Run]:
    """The same runs, some with a further step."""
    return runs | {name: lambda run=runs[name], step=step: step(run()) for name, step in then.items()}


@dataclass
class Contest:
    """The contenders of one op by name, ours among them; ``like_ours`` brings a peer's result to the form of ours."""

    forward: dict[str, Run]
    backward: dict[str, Run]
    forward_like_ours: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    backward_like_ours: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    def only(self, *names: str) -> Contest:
        """Without the other contenders; those never called cost nothing."""
        return Contest(
            *({name: step for name, step in steps.items() if name in names} for steps in vars(self).values())
        )

    def judge(self, title: str) -> None:
        """Raise unless all agree with ours."""
        forward = after(self.forward, self.forward_like_ours)
        backward = after(self.backward, self.backward_like_ours)
        with torch.no_grad():
            check(f"{title} forward", forward, TOLERANCE)
            check(f"{title} backward", backward, TOLERANCE)


def matrix(n: int) -> csr_array:
    """Eq. 15."""
    return gs.poisson(n, dtype=torch.float64).to_scipy()


def walk(make: Callable[[], Tensor], leaves: tuple[Tensor, ...], G: Tensor) -> Run:
    """The backward pass alone, once the first call has made Y."""

    @cache
    def Y() -> Tensor:
        with torch.enable_grad():
            return make()

    return lambda: grad(Y(), leaves, G, retain_graph=True)


def entries(M: Tensor, of: gs.SparseMatrix) -> Tensor:
    """The entries of M, dense or torch CSR, on the pattern of another matrix."""
    rows, cols = of.pattern.row_indices, of.indices
    if M.layout == torch.strided:
        return M.detach()[rows, cols]
    arrays = tuple(t.detach().numpy() for t in (M.values(), M.col_indices(), M.crow_indices()))
    where = rows.numpy().copy(), cols.numpy().copy()  # SciPy wants arrays that own their memory
    return torch.from_numpy(csr_array(arrays, shape=tuple(M.shape))[where])


def mkl(A: csr_array, B: Any) -> dict[str, Run]:
    """MKL's product, if it has been loaded."""
    return {MKL: lambda: products.MKL[0](A, B)} if products.MKL else {}


def product(n: int, k: int) -> Contest:
    """SpMV (k = 1) and SpDMM: Y = A X, X dense N x k;  dA = G Xᵀ on A's pattern, dX = Aᵀ G."""
    i = Product(matrix(n), torch.float64, k, transpose=False)
    X, G = peers.as_matrix(i.X), peers.as_matrix(i.G)  # torch.sparse.mm alone masks its gradient
    return Contest(
        forward={
            OURS: lambda: i.A @ i.X,
            SCIPY: lambda: i.scipy @ i.X_numpy,
            **mkl(i.scipy, i.X_numpy),
            TORCH: lambda: i.torch_csr @ i.X,
        },
        backward={
            OURS: walk(lambda: i.A @ i.X, (i.values, i.X), i.G),
            TORCH: walk(lambda: torch.sparse.mm(i.torch_csr, X), (i.torch_csr, i.X), G),
        },
    )


def dense_product(n: int, k: int) -> Contest:
    """DMV (k = 1) and DDMM: the same product with A stored densely;  dA = G Xᵀ everywhere."""
    i = Product(matrix(n), torch.float64, k, transpose=False)
    D = i.A.detach().to_dense().requires_grad_()
    D_numpy = D.detach().numpy()
    return Contest(
        forward={OURS: lambda: i.A @ i.X, DENSE: lambda: D @ i.X, SCIPY: lambda: D_numpy @ i.X_numpy},
        backward={OURS: walk(lambda: i.A @ i.X, (i.values, i.X), i.G), DENSE: walk(lambda: D @ i.X, (D, i.X), i.G)},
        backward_like_ours={DENSE: lambda grads: (entries(grads[0], i.A), grads[1])},
    )


def pair(i: Pair, op: Callable[[Any, Any], Any], more: dict[str, Run]) -> Contest:
    """C = op(A, B);  dA, dB on their patterns. torch's gradients have C's entries, or more."""
    with torch.no_grad():
        C = op(i.A, i.B)
    A, B = (M.requires_grad_() for M in i.torch)
    G = peers.csr((C.indptr, C.indices, C.shape), i.G)
    ours = {OURS: lambda: op(i.A, i.B), COLD: lambda: op(cold(i.A), cold(i.B))}
    return Contest(
        forward={**ours, SCIPY: lambda: op(*i.scipy), **more, TORCH: lambda: op(A, B)},
        backward={
            OURS: walk(lambda: op(i.A, i.B).values, (i.A.values, i.B.values), i.G),
            TORCH: walk(lambda: op(A, B), (A, B), G),
        },
        backward_like_ours={TORCH: lambda grads: (entries(grads[0], i.A), entries(grads[1], i.B))},
    )


def sparse_product(n: int) -> Contest:
    """SpSpMM: C = A B, where B = Aᵀ on a pattern of its own;  dA = G Bᵀ and dB = Aᵀ G on the patterns."""
    i = Pair(matrix(n), torch.float64, multiply)
    return pair(i, multiply, mkl(*i.scipy))


def summands(n: int) -> Pair:
    """A and the same numbers on the diagonals −2, 0, 2: with equal patterns a sum has no backward that takes time."""
    B = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-2, 0, 2], shape=(n, n), format="csr")
    return Pair(matrix(n), torch.float64, add, csr_array(B))


def sparse_sum(n: int) -> Contest:
    """Sp + Sp: C = A + B;  dA and dB are the entries of G on their patterns."""
    return pair(summands(n), add, {})


def dense_sum(n: int) -> Contest:
    """D + D. torch's backward of a sum computes nothing: it hands on the gradient."""
    i = summands(n)
    with torch.no_grad():
        C = i.A + i.B
    A, B = (M.detach().to_dense().requires_grad_() for M in (i.A, i.B))
    A_numpy, B_numpy = A.detach().numpy(), B.detach().numpy()
    G = C.with_values(i.G).to_dense()
    return Contest(
        forward={OURS: lambda: C.values, DENSE: lambda: A + B, SCIPY: lambda: A_numpy + B_numpy},
        backward={
            OURS: walk(lambda: (i.A + i.B).values, (i.A.values, i.B.values), i.G),
            DENSE: walk(lambda: A + B, (A, B), G),
        },
        forward_like_ours={DENSE: lambda S: entries(S, C), SCIPY: lambda S: entries(torch.from_numpy(S), C)},
        backward_like_ours={DENSE: lambda grads: (entries(grads[0], i.A), entries(grads[1], i.B))},
    )


def triangle(n: int) -> Triangle:
    return Triangle(csr_array(scipy.sparse.tril(matrix(n), format="csr")), torch.float64)


def triangular(n: int) -> Contest:
    """SpTRSV: x = L⁻¹ b, L = the lower triangle of A;  db = L⁻ᵀ g, dL = −db xᵀ on L's pattern."""
    i = triangle(n)
    L = i.torch.requires_grad_()
    solve, leaves = gs.linalg.solve_triangular, (i.L.values, i.b)
    return Contest(
        forward={
            OURS: lambda: solve(i.L, i.b),
            COLD: lambda: solve(cold(i.L), i.b),
            SCIPY: lambda: scipy.sparse.linalg.spsolve_triangular(i.scipy, i.b_numpy, lower=True),
            TORCH: lambda: torch.triangular_solve(i.b_column, L, upper=False).solution[:, 0],
        },
        backward={OURS: walk(lambda: solve(i.L, i.b), leaves, i.G)},  # torch.sparse gives dL densely, N x N
    )


def dense_triangular(n: int) -> Contest:
    """DTRSV: L stored densely."""
    i = triangle(n)
    D = i.L.detach().to_dense().requires_grad_()
    b, G = i.b[:, None], i.G[:, None]
    D_numpy = D.detach().numpy()

    def solve() -> Tensor:
        return torch.linalg.solve_triangular(D, b, upper=False)

    ours = gs.linalg.solve_triangular
    return Contest(
        forward={
            OURS: lambda: ours(i.L, i.b),
            DENSE: solve,
            SCIPY: lambda: scipy.linalg.solve_triangular(D_numpy, i.b_numpy, lower=True, check_finite=False),
        },
        backward={OURS: walk(lambda: ours(i.L, i.b), (i.L.values, i.b), i.G), DENSE: walk(solve, (D, i.b), G)},
        backward_like_ours={DENSE: lambda grads: (entries(grads[0], i.L), grads[1])},
    )
