# SPDX-License-Identifier: BSD-3-Clause
"""Who is wrong: errors of values, first and second derivatives against dense torch, ours and those of peers.

    OMP_NUM_THREADS=1 python -m bench.studies.solvers.peers

A = Poisson on a 20 x 20 grid + 0.1 I (n = 400), symmetric, or with noise beside the diagonal. The loss of a solve is
Σ x³; the second derivative is the gradient of ‖gradient‖². Peers: torch, and torch-sla 0.4.0 if it can be imported.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

import gossamer as gs

F64 = torch.float64
N = 400
A = gs.poisson((20, 20), dtype=F64)
ROWS, COLS = A.pattern.row_indices.long(), A.indices.long()
MIRROR = A.pattern.tensors(True)[4].long()  # the place of entry (j, i)
Loss = Callable[..., Tensor]


def numbers(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def dense(v: Tensor) -> Tensor:
    return torch.zeros(N, N, dtype=F64).index_put((ROWS, COLS), v)


def mirrored(v: Tensor) -> Tensor:
    """A symmetric matrix whose values vary: what symmetric methods may be asked for."""
    return (v + v[MIRROR]) / 2


def cubes(x: Tensor) -> Tensor:
    return (x**3).sum()


VALUES = A.values + 0.1 * (ROWS == COLS)
SKEWED = VALUES + 0.3 * numbers(A.nnz, seed=1) * (ROWS != COLS)
UNEVEN = VALUES + numbers(A.nnz, seed=2).abs() * (ROWS == COLS)  # no two eigenvalues are equal
B = numbers(N, seed=3)
WEIGHTS = numbers(N, 1, seed=4).abs()


@dataclass
class Reference:
    """A loss by dense torch at some inputs, with its derivatives."""

    loss: Loss
    inputs: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        leaves = [x.clone().requires_grad_() for x in self.inputs]
        y = self.loss(*leaves)
        first = torch.autograd.grad(y, leaves, create_graph=True)
        self.value, self.first = y.detach(), first
        self.second = torch.autograd.grad(squares(first), leaves)


def squares(gradients: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([(g * g).sum() for g in gradients]).sum()


def error(got: tuple[Any, ...], wanted: tuple[Tensor, ...]) -> str:
    """The largest one of all inputs, relative."""
    if any(g is None for g in got):
        return "none: no gradient"
    worst = torch.stack([(g.detach() - w).norm() / w.norm() for g, w in zip(got, wanted, strict=True)]).max().item()
    if not worst <= 1e-2:  # also NaN
        return f"**{100 * worst:.0f} % wrong**" if worst == worst else "**NaN**"
    return f"**{worst:.0e}**" if worst > 1e-6 else f"{worst:.0e}"


def row(name: str, loss: Loss, reference: Reference) -> None:
    """One line of the table: what cannot be computed says why, and the rest of the line is empty."""
    leaves = [x.clone().requires_grad_() for x in reference.inputs]
    cells: list[str] = []
    try:
        y = loss(*leaves)
        cells.append(error((y,), (reference.value,)))
        first = torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
        cells.append(error(first, reference.first))
        cells.append(error(torch.autograd.grad(squares(first), leaves, allow_unused=True), reference.second))
    except Exception as refusal:  # whatever a peer raises
        words = " ".join(str(refusal).split())
        cells.append(f"raises {type(refusal).__name__.strip('_')}: {words[:70].replace('|', '/')}")
    print(f"| {' | '.join([name, *cells, *['–'] * (3 - len(cells))])} |", flush=True)


SOLVE = Reference(lambda v, b: cubes(torch.linalg.solve(dense(v), b)), (VALUES, B))
SYMMETRIC_SOLVE = Reference(lambda v, b: cubes(torch.linalg.solve(dense(mirrored(v)), b)), (VALUES, B))
SKEWED_SOLVE = Reference(SOLVE.loss, (SKEWED, B))
LOGDET = Reference(lambda v: torch.linalg.slogdet(dense(v))[1], (VALUES,))


def lowest(values: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of the four smallest eigenvalues, and of their vectors, whatever the signs."""
    return (values[:4] ** 2).sum(), (WEIGHTS * X[:, :4] ** 4).sum()


EIGENVALUES = Reference(lambda v: lowest(*torch.linalg.eigh(dense(mirrored(v))))[0], (UNEVEN,))
EIGENVECTORS = Reference(lambda v: lowest(*torch.linalg.eigh(dense(mirrored(v))))[1], (UNEVEN,))


def projected(X: Tensor) -> Tensor:
    """A loss of the projector on the space of λ₂ = λ₃, which the square grid has."""
    return (X[:, 1:3].T @ WEIGHTS).square().sum()


def projector(v: Tensor) -> Tensor:
    """By a contour: -1/(2πi) ∮ (A - zI)⁻¹ dz, which knows no vectors. The trapezium rule converges geometrically."""
    values = torch.linalg.eigvalsh(dense(VALUES))
    centre = values[1:3].mean()
    radius = 0.5 * min(centre - values[0], values[3] - centre)
    D, total = dense(mirrored(v)).to(torch.complex128), torch.zeros((), dtype=F64)
    w, identity = WEIGHTS.to(torch.complex128), torch.eye(N, dtype=torch.complex128)
    points = 64
    for k in range(points):
        turn = torch.exp(torch.tensor(2j * torch.pi * (k + 0.5) / points, dtype=torch.complex128))
        x = torch.linalg.solve((centre + radius * turn) * identity - D, w)
        total = total + (radius * turn * (w.T @ x)).real.sum() / points
    return total


PROJECTOR = Reference(projector, (VALUES,))


def iterative(method: str, symmetric: bool) -> Loss:
    solve = getattr(gs.linalg, method)
    of = mirrored if symmetric else lambda v: v
    rtol = 1e-11 if method == "lsmr" else 1e-13  # of the normal equations: more is below their rounding errors
    return lambda v, b: cubes(solve(A.with_values(of(v)), b, rtol=rtol)[0])


def ours() -> None:
    direct: Loss = lambda v, b: cubes(gs.linalg.solve(A.with_values(v), b))  # noqa: E731
    row("Gossamer `solve`", direct, SOLVE)
    row("Gossamer `solve`, nonsymmetric", direct, SKEWED_SOLVE)
    for method in ("cg", "minres"):
        row(f"Gossamer `{method}`", iterative(method, symmetric=True), SYMMETRIC_SOLVE)
        row(f"Gossamer `{method}`, unsymmetric directions", iterative(method, symmetric=False), SOLVE)
    for method in ("gmres", "bicgstab", "lsmr"):
        row(f"Gossamer `{method}`, nonsymmetric", iterative(method, symmetric=False), SKEWED_SOLVE)
    row("Gossamer `lstsq`, nonsymmetric", lambda v, b: cubes(gs.linalg.lstsq(A.with_values(v), b)), SKEWED_SOLVE)
    row("Gossamer `logdet`", lambda v: gs.linalg.factorize(A.with_values(v)).logdet(), LOGDET)

    def eigsh(v: Tensor) -> tuple[Tensor, Tensor]:
        return gs.linalg.eigsh(A.with_values(mirrored(v)), 4, sigma=0)

    row("Gossamer `eigsh`, values", lambda v: lowest(*eigsh(v))[0], EIGENVALUES)
    row("Gossamer `eigsh`, vectors", lambda v: lowest(*eigsh(v))[1], EIGENVECTORS)
    row("Gossamer `eigsh`, projector on a degenerate space", lambda v: projected(eigsh(v)[1]), PROJECTOR)


def coo(v: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([ROWS, COLS]), v, (N, N)).coalesce()


def csr(v: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(A.pattern.indptr.long(), COLS, v, (N, N))


def lobpcg(S: Tensor) -> Tensor:
    values: Tensor = torch.lobpcg(S, 4, largest=False)[0]
    return (values**2).sum()


def torch_itself() -> None:
    row("torch `sparse.spsolve` (CSR)", lambda v, b: cubes(torch.sparse.spsolve(csr(v), b)), SOLVE)
    row("torch `linalg.solve` (COO)", lambda v, b: cubes(torch.linalg.solve(coo(v), b)), SOLVE)
    row("torch `logdet` (COO)", lambda v: torch.logdet(coo(v)), LOGDET)
    row("torch `lobpcg` (COO), values", lambda v: lobpcg(coo(mirrored(v))), EIGENVALUES)
    row("torch `lobpcg` (CSR), values", lambda v: lobpcg(csr(mirrored(v))), EIGENVALUES)
    projection: Loss = lambda v: projected(torch.linalg.eigh(dense(mirrored(v)))[1])  # noqa: E731
    row("torch `linalg.eigh` (dense), projector on a degenerate space", projection, PROJECTOR)


def torch_sla() -> None:
    try:
        sla: Any = import_module("torch_sla")
    except ImportError:
        print("\ntorch-sla is not installed: pip install torch-sla==0.4.0 --no-deps")
        return

    def by(v: Tensor, b: Tensor, **how: Any) -> Tensor:
        return cubes(sla.solve((v, ROWS, COLS, (N, N)), b, **how))

    def tight(backend: str, method: str) -> dict[str, Any]:
        return {"backend": backend, "method": method, "atol": 1e-13, "rtol": 1e-13}

    row("torch-sla `solve`, as it comes", by, SOLVE)
    row("torch-sla `solve`, as it comes, nonsymmetric", by, SKEWED_SOLVE)
    for method in ("cg", "minres"):
        how = tight("pytorch", method)
        row(f"torch-sla {method}", lambda v, b, how=how: by(mirrored(v), b, **how), SYMMETRIC_SOLVE)
    for method in ("gmres", "bicgstab", "lsqr", "lsmr"):
        how = tight("pytorch", method)
        row(f"torch-sla {method}, nonsymmetric", lambda v, b, how=how: by(v, b, **how), SKEWED_SOLVE)

    def tensor(v: Tensor) -> Any:
        return sla.SparseTensor(v, ROWS, COLS, (N, N))

    row("torch-sla `logdet()`", lambda v: tensor(v).logdet(), LOGDET)
    row('torch-sla `logdet(method="lu")`', lambda v: tensor(v).logdet(method="lu"), LOGDET)
    few = {"k": 4, "which": "SA"}
    row("torch-sla `eigsh`, values", lambda v: lowest(*tensor(mirrored(v)).eigsh(**few))[0], EIGENVALUES)
    row("torch-sla `eigsh`, vectors", lambda v: lowest(*tensor(mirrored(v)).eigsh(**few))[1], EIGENVECTORS)
    degenerate: Loss = lambda v: projected(tensor(mirrored(v)).eigsh(**few)[1])  # noqa: E731
    row("torch-sla `eigsh`, projector on a degenerate space", degenerate, PROJECTOR)
    values = torch.linalg.eigvalsh(dense(mirrored(UNEVEN)))
    pairs = (
        values[(values - 3).abs().argsort()[:2]].sort().values,
        gs.linalg.eigsh(A.with_values(UNEVEN), 2, sigma=3.0)[0],
        tensor(UNEVEN).eigsh(k=2, sigma=3.0)[0].sort().values,
    )
    near, here, there = (", ".join(f"{x:.4f}" for x in pair.tolist()) for pair in pairs)
    print(f"\nThe two eigenvalues nearest to 3: {near}. Gossamer {here}; torch-sla {there}.")


def main(arguments: list[str] | None = None) -> None:
    argparse.ArgumentParser(prog="python -m bench.studies.solvers.peers", description=__doc__).parse_args(arguments)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| | value | first derivative | second derivative |\n|---|---|---|---|")
    ours()
    torch_itself()
    torch_sla()


if __name__ == "__main__":
    main()
