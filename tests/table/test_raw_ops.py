# SPDX-License-Identifier: BSD-3-Clause
"""Ops called directly, torch.ops.gossamer.*, with arguments that do not fit: they may raise, they never read or write
outside. Valid calls are recorded while the case table runs; each is then repeated with one argument spoiled. A crash of
the process fails the test. `make test` runs it once more under AddressSanitizer (scripts/sanitized.sh), which also sees
a read that happens to hit memory of somebody else.

The integers inside a pattern are not spoiled: they are checked when a Pattern is built, and trusted after that. A shape
that is too small for them is spoiled only where an op looks at them once more: the symbolic ones, and those that take
the plan of an exchange between processes, which they check when they first see it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import gossamer as gs
from cases import CASES, Make

SYMBOLIC = {"transpose", "merge", "first_sum", "spgemm_pattern", "band", "levels", "kron_pattern", "analyze", "runs"}
SYMBOLIC |= {"first_product", "pattern_handle", "incomplete_jacobian", "distributed_edges", "entry_keys"}
SYMBOLIC |= {"halo", "halo_sum", "route", "spmm_rows", "sddmm_rows", "gcn_norm_rows", "two_level"}
SYMBOLIC |= {"distributed_part", "distributed_plan", "distributed_transpose", "distributed_swap"}
SYMBOLIC |= {"distributed_gather", "distributed_ordered", "distributed_entry_keys"}
GROUPS = {"distributed_any", "distributed_agree", "distributed_place", "distributed_bytes_sent"}  # no tensors
GROUPS |= {"two_level"}  # of a preconditioner: tests/distributed
FILES = {"read_mtx", "write_mtx", "write_npz", "read_integers"}
REFUSALS = (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, AssertionError)

Call = tuple[tuple[Any, ...], dict[str, Any]]
CALLS: dict[str, Call] = {}


def record(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Keeps the first call of each op whose tensors are not empty."""
    name = str(op).removeprefix("gossamer.").split(".")[0]
    if not str(op).startswith("gossamer.") or name in FILES:
        return
    tensors = [t for x in args for t in (x if isinstance(x, (list, tuple)) else [x]) if isinstance(t, Tensor)]
    if all(t.numel() for t in tensors):
        CALLS.setdefault(name, (args, kwargs))


class FromPython(TorchFunctionMode):
    """Sees what Python calls, ops that are made of others included."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        record(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class FromDispatcher(TorchDispatchMode):
    """Sees what ops call in turn, those of backward passes included."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        record(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def detached(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach()
    return [detached(t) for t in x] if isinstance(x, (list, tuple)) else x


def run_table() -> None:
    """Every row, forward and backward, on one small matrix."""
    for case in CASES:
        inputs = case.inputs(Make("square"))
        for x in inputs:
            if isinstance(x, gs.SparseMatrix) or (isinstance(x, Tensor) and x.is_floating_point()):
                x.requires_grad_()
        result = case.op(gs, *inputs)
        values = result.values if isinstance(result, gs.SparseMatrix) else result
        if isinstance(values, Tensor) and values.requires_grad:
            values.sum().backward()


def run_the_rest() -> None:
    """Calls of what no row of the table reaches: constructions, layers, weights of attention."""
    A, edges = gs.poisson((2, 3)), torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    gs.allclose(A, gs.from_torch(A.to_torch()) + gs.eye(6))
    gs.from_edge_index(edges)
    A.argmax(1)
    gs.random(3, 4, 0.5)
    gs.dropout(torch.ones(5), 0.5, seed=1)
    gs.linalg.factorize(A).slogdet()
    gs.linalg.solve(A.to(torch.complex64), torch.ones(6, dtype=torch.complex64))
    assert gs.linalg.factorize(A).engine
    P = A.clone().requires_grad_()
    for M in (gs.linalg.jacobi(P), gs.linalg.block_jacobi(P, 2), gs.linalg.ilu(P), gs.linalg.ichol(P)):
        M.update(P)(torch.ones(6)).sum().backward()
    assert gs.linalg.ilu(A).L.nnz
    multigrid = gs.linalg.amg(A, coarse_size=2).update(A, omega=1.0)
    assert multigrid(torch.ones(6)).numel() * len(multigrid.sizes) * multigrid.operator_complexity
    for M in (None, gs.eye(6), gs.linalg.factorize(A)):
        gs.linalg.cg(P, torch.ones(6), M=M)[0].sum().backward()
    gs.linalg.cg(A, torch.ones(6), callback=lambda info: None)
    D, u = gs.distributed.scatter(A), torch.ones(6, requires_grad=True)
    (gs.distributed.dot(u, u) + gs.distributed.sum(u).sum()).backward()
    gs.linalg.cg(D, torch.ones(6), M=gs.linalg.two_level(D, coarse_size=2))
    x, pattern = torch.ones(3, 2, 4), gs.graph_pattern(edges, (3, 3))[0]
    gs.gat_with_weights(pattern, x, x[..., 0], x[..., 0], dropout=0.5, seed=1)
    gs.gatv2_with_weights(pattern, x, x, x[0], dropout=0.5, seed=1)
    gs.SparseMatrix(pattern, torch.ones(4)).coalesce()
    gs.nn.GCNConv(4, 2)(x[:, 0], edges)
    gs.nn.GATConv(4, 2, heads=2, edge_dim=1)(x[:, 0], edges, torch.ones(4, 1))
    shared = gs.distributed.scatter(gs.SparseMatrix(pattern, torch.ones(4)))  # by this process alone
    gs.nn.GCNConv(4, 2)(x[:, 0], shared)
    gs.nn.GATConv(4, 2, dropout=0.5)(x[:, 0], shared)
    gs.datasets.stochastic_block_model([60, 60], 0.3, 0.1, seed=1)
    gs.datasets.power_law(300, 900, seed=1)
    torch.ops.gossamer.row_indices(pattern.indptr, pattern.indices)
    L = gs.poisson((6, 7), dtype=torch.float64).requires_grad_()  # large enough for Lanczos
    values, X = gs.linalg.eigsh(L, 2, gs.eye(42, dtype=torch.float64), sigma=0.1, v0=torch.ones(42))
    (values.sum() + (X**4).sum()).backward()
    indptr_t, indices_t, perm = gs.poisson(40).pattern.transpose()
    torch.ops.gossamer.runs(indptr_t, indices_t, perm, (40, 40))
    run_jacobians(gs.poisson(40).pattern)
    run_data_by_parts(gs.poisson(12))
    run_distributed(gs.poisson((6, 7)).pattern)


def run_jacobians(P: gs.Pattern) -> None:
    """The steps of a Jacobian that is found by its products: here, of the identity."""
    ops, x, f64 = torch.ops.gossamer, torch.ones(40, dtype=torch.float64), torch.float64
    colour, _ = ops.colour(P.tensors(True), P.shape, True)
    ops.colour_seeds(colour, 0, 2, f64)
    Y = ops.probe_seeds(40, 2, 1, 0, ops.probe_count(40, 2, f64), f64)
    v = ops.probe_direction(40, 1, f64)
    ops.probe_rows(Y, v, torch.arange(40), 40, 2, 1)
    ops.probe_point(x, 1, 1)
    ops.jacobian_mismatch(P.tensors(), torch.ones(P.nnz, dtype=f64), v, x, P.shape)
    gs.linalg.expm_multiply(gs.poisson(6), torch.ones(6))
    torch.func.jvp(lambda v: gs.linalg.cholesky(gs.diag(v)).L.values, (torch.ones(3),), (torch.ones(3),))


def run_data_by_parts(A: gs.SparseMatrix) -> None:
    """By one process: rows to parts, in the order of their keys, gathered."""
    for method in ("contiguous", "metis"):
        gs.distributed.partition(A, 3, method=method)
    torch.ops.gossamer.distributed_graph(A.pattern.tensors(), A.shape)
    D = gs.distributed.scatter(A)
    gs.distributed.Rows(D.values, D, of="entries").restore()
    gs.distributed.gather(torch.ones(12), D)
    torch.ops.gossamer.distributed_gathered(torch.ones(2), "")


def run_distributed(P: gs.Pattern) -> None:
    """One process alone: what it sends, it sends to itself. The columns of the first half are made a halo."""
    ops, n = torch.ops.gossamer, P.shape[0]
    half, offsets = n // 2, torch.tensor([0, n])
    ops.distributed_part(P.indptr, P.indices, torch.zeros(n).long(), torch.zeros(n).long(), 1, 0)
    ops.distributed_plan(P.indptr, P.indices, offsets, offsets, "")
    indices = torch.where(P.indices < half, n + P.indices, P.indices)
    runs = torch.arange(n + 1, dtype=indices.dtype)
    plan = [P.indptr, indices, torch.arange(half), torch.tensor([n - 1, n]), runs]
    plan, counts = ops.distributed_transpose(plan, [n, n, half, half], torch.arange(n), "")
    plan[8], plan[9] = torch.tensor([n - 1, n]), runs
    ops.distributed_swap(plan, counts)
    x, values = torch.ones(n, 2), torch.ones(P.nnz)
    ops.halo_sum(ops.halo(x, plan[2], [half], [half], ""), plan[2], [half], [half], n, "")
    ops.route(values, plan[10], plan[11], [len(plan[10])], [len(plan[10])], False, "")
    for t in (False, True):
        ops.spmm_rows(plan, counts, values, x, t, None, False, "")
    ops.sddmm_rows(plan, counts, x, x, None, False, "")
    ops.gcn_norm_rows(plan, counts, values, "")


@pytest.fixture(scope="module")
def calls() -> dict[str, Call]:
    if not CALLS:
        with FromPython(), FromDispatcher():
            run_table()
            run_the_rest()
        for name, (args, kwargs) in CALLS.items():
            CALLS[name] = tuple(detached(x) for x in args), kwargs
    return CALLS


def spoiled_tensors(t: Tensor) -> Iterator[Tensor]:
    """Other lengths, dimensions, types, devices and strides. A part is copied: beyond a view lies the rest."""
    if t.layout is not torch.strided:
        yield t.to_dense()
        return
    yield t.new_empty(0)
    yield t.unsqueeze(0)
    yield t.unsqueeze(-1)
    yield t.to("meta")
    if t.is_complex():
        yield from (t.real, t.to(torch.complex128))
    elif t.is_floating_point():
        yield from (t.float(), t.bfloat16(), t.long(), t.to(torch.complex128))
    else:
        yield from (t.to(torch.int64 if t.dtype is torch.int32 else torch.int32), t.double(), t.to(torch.int16))
    if t.dim():
        yield from (t[:-1].clone(), torch.cat([t, t]), t[0].clone(), torch.stack([t, t], -1)[..., 0])
    if torch.cuda.device_count():
        yield t.to("cuda")


def spoiled(name: str, x: Any) -> Iterator[Any]:
    """The values of one argument that are tried in place of a good one."""
    if isinstance(x, Tensor):
        yield from spoiled_tensors(x)
    elif isinstance(x, (list, tuple)) and x and isinstance(x[0], Tensor):
        yield from ([], x[:-1], [*x, x[0]])
        for k, t in enumerate(x):
            yield from ([*x[:k], other, *x[k + 1 :]] for other in spoiled_tensors(t))
    elif isinstance(x, (list, tuple)):
        yield from ([], x[:-1], [*x, 1], [-1] * len(x))
        for k, size in enumerate(x):
            yield [*x[:k], size + 1, *x[k + 1 :]]
            if name in SYMBOLIC:
                yield [*x[:k], size - 1, *x[k + 1 :]]
    elif isinstance(x, bool):
        yield not x
    elif isinstance(x, int):
        yield from (-1, x + 1, 2**40)
    elif isinstance(x, float):
        yield from (-1.0, float("nan"))
    elif isinstance(x, str):
        yield "nothing"
    elif x is None:
        yield torch.ones(3, dtype=torch.int64)


OPS = sorted(
    name.split("::")[1].split(".")[0]
    for name in torch._C._dispatch_get_all_op_names()
    if name.startswith("gossamer::") and name.split("::")[1] not in FILES
)


@pytest.mark.parametrize("name", OPS)
def test_a_spoiled_argument_raises_or_is_harmless(name: str, calls: dict[str, Call]) -> None:
    if name not in calls:
        pytest.skip("it takes no tensor but those of a graph that is checked whole")
    args, kwargs = calls[name]
    op = getattr(torch.ops.gossamer, name)
    op(*args, **kwargs)
    for k, good in enumerate(args):
        for bad in spoiled(name, good):
            if isinstance(good, int) and bad == 2**40 and name not in {"band", "row_argmax"}:
                continue  # a size: allocating it is the caller's wish
            with torch.no_grad(), contextlib.suppress(*REFUSALS):
                op(*args[:k], bad, *args[k + 1 :], **kwargs)


def test_every_op_is_called(calls: dict[str, Call]) -> None:
    assert set(OPS) - set(calls) <= {"show_config", "golden", "check_graph", "krylov_signals"} | GROUPS
