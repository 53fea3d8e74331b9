# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the case table, against dense mathematics, in every way torch can call it.

A test that takes a `runner` runs three times: on the host, on the stand-in for cuda, and through the C++ front end. One
that is of Python alone (torch.compile, vmap, torch.func, opcheck) takes a `device`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from runners import PYTHON, Runner
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import gossamer as gs
from cases import CASES, KINDS, Case, Make

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_op = pytest.mark.parametrize("case", [c for c in CASES if not c.an_object], ids=lambda case: case.name)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def twin(x: Any, dtype: torch.dtype | None = None) -> Tensor:
    """The dense twin of an input or a result, on the host."""
    if isinstance(x, gs.Pattern):
        ones = torch.ones(x.nnz, dtype=torch.float64, device=x.device)
        return gs.SparseMatrix(x, ones).to_dense().cpu()
    dense = (x.to_dense() if isinstance(x, gs.SparseMatrix) else x).cpu()
    return dense.to(dtype or dense.dtype)


def leaves(inputs: tuple[Any, ...]) -> list[Tensor]:
    """What can be differentiated: values of matrices, dense tensors."""
    tensors = [x.values if isinstance(x, gs.SparseMatrix) else x for x in inputs if not isinstance(x, gs.Pattern)]
    return [t.detach().clone().requires_grad_() for t in tensors]


def with_leaves(inputs: tuple[Any, ...], tensors: tuple[Tensor, ...]) -> list[Any]:
    """The same inputs with other numbers in them."""
    rest = iter(tensors)
    return [
        x if isinstance(x, gs.Pattern) else x.with_values(next(rest)) if isinstance(x, gs.SparseMatrix) else next(rest)
        for x in inputs
    ]


def function(case: Case, inputs: tuple[Any, ...], runner: Runner = PYTHON) -> Callable[..., Tensor]:
    """The op as a function of its leaves, tensors to tensor."""

    def f(*tensors: Tensor) -> Tensor:
        result = runner.run(case, with_leaves(inputs, tensors))
        return result.values if isinstance(result, gs.SparseMatrix) else result

    return f


def dense_function(case: Case, inputs: tuple[Any, ...]) -> Callable[..., Tensor]:
    """The dense formula on the host as a function of the same leaves; for a sparse result, its entries."""
    host = tuple(x.to("cpu") for x in inputs)
    result = PYTHON.run(case, host)

    def f(*tensors: Tensor) -> Tensor:
        dense = case.dense(*(twin(x) for x in with_leaves(host, tuple(t.cpu() for t in tensors))))
        if not isinstance(result, gs.SparseMatrix):
            return dense
        return dense[result.pattern.row_indices, result.indices.long()]

    return f


def assert_equal(got: Tensor, wanted: Tensor, dtype: torch.dtype = torch.float64) -> None:
    torch.testing.assert_close(got.cpu().to(wanted.dtype), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@every_case
@pytest.mark.parametrize("kind", KINDS)
def test_equals_dense(case: Case, kind: str, runner: Runner) -> None:
    for dtype in (torch.float64, torch.float32):
        for index_dtype in (torch.int32, torch.int64):
            inputs = case.inputs(Make(kind, dtype, index_dtype, runner.device))
            result = runner.run(case, inputs)
            wanted = case.dense(*(twin(x, torch.float64) for x in inputs))
            assert_equal(twin(result), wanted, dtype)
            assert (result.values if isinstance(result, gs.SparseMatrix) else result).dtype is dtype


@every_op
def test_half_precision_sums_in_float32(case: Case, runner: Runner) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        inputs = case.inputs(Make("ordinary", dtype, device=runner.device))
        wanted = case.dense(*(twin(x, torch.float64) for x in inputs))
        assert_equal(twin(runner.run(case, inputs)), wanted, dtype)


@every_case
@pytest.mark.parametrize("kind", ["ordinary", "one row", "no entries", "no rows"])
def test_gradients(case: Case, kind: str, runner: Runner) -> None:
    inputs = case.inputs(Make(kind, device=runner.device))
    gradcheck(function(case, inputs, runner), leaves(inputs), check_forward_ad=True, fast_mode=not runner.exhaustive)


@every_case
def test_second_derivatives(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("ordinary", device=runner.device))
    fast = not runner.exhaustive
    gradgradcheck(function(case, inputs, runner), leaves(inputs), check_fwd_over_rev=True, fast_mode=fast)


@every_case
def test_gradients_equal_dense(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("square", device=runner.device))
    ours, theirs = leaves(inputs), leaves(inputs)
    function(case, inputs, runner)(*ours).sin().sum().backward()
    dense_function(case, inputs)(*theirs).sin().sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert a.grad.shape == a.shape
        assert_equal(a.grad, b.grad.cpu())


@every_case
def test_forward_mode_equals_dense(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("ordinary", device=runner.device))
    primals = [t.detach() for t in leaves(inputs)]
    moves = [torch.ones_like(t) for t in primals]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(a, b) for a, b in zip(primals, moves, strict=True)]
        moved = forward_ad.unpack_dual(function(case, inputs, runner)(*duals)).tangent
    host = [t.cpu() for t in primals], [t.cpu() for t in moves]
    wanted = torch.func.jvp(dense_function(case, inputs), tuple(host[0]), tuple(host[1]))[1]
    assert_equal(moved, wanted)


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "amg"], ids=lambda case: case.name)  # made outside
def test_torch_func(case: Case, device: torch.device) -> None:
    inputs = case.inputs(Make("ordinary", device=device))
    runner = Runner(device)
    f, dense = function(case, inputs, runner), dense_function(case, inputs)
    at = tuple(t.detach() for t in leaves(inputs))
    host = tuple(t.cpu() for t in at)
    everything = tuple(range(len(at)))

    def loss(g: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *t: g(*t).sin().sum()

    transforms = [
        lambda g: torch.func.grad(loss(g), everything),
        lambda g: torch.func.jacrev(g, everything),
        lambda g: torch.func.jacfwd(g, everything),
        lambda g: torch.func.hessian(loss(g), everything),
        lambda g: lambda *t: torch.func.vjp(g, *t)[1](torch.ones_like(g(*t))),
        lambda g: lambda *t: torch.func.jvp(g, t, tuple(torch.ones_like(x) for x in t)),
    ]
    for transform in transforms:
        got, wanted = transform(f)(*at), transform(dense)(*host)
        for a, b in zip(*map(torch.utils._pytree.tree_leaves, (got, wanted)), strict=True):
            size = max([1.0, *b.abs().flatten().tolist()])  # of which small entries keep the rounding errors
            assert_equal(a.cpu() / size, b / size)


@every_case
def test_vmap(case: Case, device: torch.device) -> None:
    """Over each input alone, over all at once, in and out at several dimensions, and nested."""
    inputs = case.inputs(Make("ordinary", device=device))
    f = function(case, inputs, Runner(device))
    at = [t.detach() for t in leaves(inputs)]
    if case.an_object:  # made of the matrix, which comes first
        f, at = partial(f, at[0]), at[1:]
    batches = [torch.stack([t, 2 * t, t + 1]) for t in at]
    for which in [*range(len(at)), None]:
        in_dims = tuple(0 if which in (k, None) else None for k in range(len(at)))
        given = [b if d == 0 else t for t, b, d in zip(at, batches, in_dims, strict=True)]
        got = torch.vmap(f, in_dims)(*given)
        for k in range(3):
            assert_equal(
                got[k], f(*(b[k] if d == 0 else t for t, b, d in zip(at, batches, in_dims, strict=True))).cpu()
            )
        last = [b.movedim(0, -1) if d == 0 else t for t, b, d in zip(at, batches, in_dims, strict=True)]
        dims = tuple(-1 if d == 0 else None for d in in_dims)
        out = min(1, got.dim() - 1)
        assert_equal(torch.vmap(f, dims, out_dims=out)(*last), got.movedim(0, out).cpu())
    nested = torch.vmap(torch.vmap(f))(*(torch.stack([b, -b]) for b in batches))
    assert_equal(nested[1, 2], f(*(-b[2] for b in batches)).cpu())


@every_op
def test_compiles_without_a_break(case: Case, device: torch.device) -> None:
    inputs = case.inputs(Make("ordinary", device=device))
    f = function(case, inputs)
    f(*leaves(inputs))  # symbolic work, whose size depends on data, is done and kept before anything is traced
    torch._dynamo.reset()  # each case is a new program, not a recompilation of the last
    compiled = torch.compile(lambda *t: f(*t).sin().sum(), fullgraph=True, backend="aot_eager")
    ours, eager = leaves(inputs), leaves(inputs)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=case.sized_by_data):
        compiled(*ours).backward()
    f(*eager).sin().sum().backward()
    for a, b in zip(ours, eager, strict=True):
        assert_equal(a.grad, b.grad.cpu())


@pytest.mark.parametrize("case", [c for c in CASES if c.raw], ids=lambda case: case.name)
def test_opcheck(case: Case, device: torch.device) -> None:
    inputs = case.inputs(Make("ordinary", device=device))
    op, args = case.raw(*with_leaves(inputs, tuple(leaves(inputs))))
    torch.library.opcheck(op, args)


@every_case
def test_index_widths_agree_bitwise(case: Case, runner: Runner) -> None:
    narrow, wide = (
        runner.run(case, case.inputs(Make("ordinary", torch.float32, i, runner.device)))
        for i in (torch.int32, torch.int64)
    )
    assert torch.equal(twin(narrow), twin(wide))


@every_case
def test_thread_counts_agree_bitwise(case: Case) -> None:
    """Forward and gradients, on matrices large enough to be split."""
    inputs = case.inputs(Make(dtype=torch.float32, shape=(700, 900, 0.2)))
    results = []
    for threads in (1, 3):  # 2, too, in tests/state/test_hashes.py
        torch.set_num_threads(threads)
        ours = leaves(inputs)
        y = function(case, inputs)(*ours)
        y.sin().sum().backward()
        results.append([y.detach(), *(t.grad for t in ours)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)


@every_case
def test_strided_equals_contiguous_bitwise(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("ordinary", device=runner.device))
    tensors = [t.detach() for t in leaves(inputs)]
    wanted = function(case, inputs, runner)(*tensors)

    def every_other(t: Tensor) -> Tensor:
        spread = torch.full([2 * s for s in t.shape], torch.nan, dtype=t.dtype, device=t.device)
        view = spread[tuple(slice(None, None, 2) for _ in t.shape)]
        return view.copy_(t)

    def slice_of_columns(t: Tensor) -> Tensor:
        if t.dim() == 0:
            return t
        wider = torch.full([*t.shape[:-1], t.shape[-1] + 3], torch.nan, dtype=t.dtype, device=t.device)
        return wider[..., 1:-2].copy_(t)

    def column_major(t: Tensor) -> Tensor:
        return t.T.contiguous().T if t.dim() == 2 else t.flip(0).contiguous().flip(0)

    for layout in (every_other, slice_of_columns, column_major):
        assert torch.equal(function(case, inputs, runner)(*(layout(t) for t in tensors)).cpu(), wanted.cpu())


@every_case
def test_inference_mode_and_no_grad(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("ordinary", device=runner.device))
    wanted = twin(runner.run(case, inputs))
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            assert torch.equal(twin(runner.run(case, case.inputs(Make("ordinary", device=runner.device)))), wanted)
            assert torch.equal(twin(runner.run(case, inputs)), wanted)


@every_case
def test_nan_and_infinity_propagate(case: Case, runner: Runner) -> None:
    """Into every entry of the result that the dense formula says depends on the poisoned one."""
    inputs = case.inputs(Make("square", device=runner.device))
    at = tuple(t.detach() for t in leaves(inputs))
    host = tuple(t.cpu() for t in at)
    for k, poison in [(k, poison) for k in range(len(at)) for poison in case.poisons]:
        jacobian = torch.func.jacrev(dense_function(case, inputs), k)(*host)
        jacobian = jacobian.flatten(-host[k].dim()) if host[k].dim() else jacobian.unsqueeze(-1)
        most_read = int((jacobian != 0).reshape(-1, host[k].numel()).sum(0).argmax())
        poisoned = [t.clone() for t in at]
        poisoned[k].view(-1)[most_read] = poison
        got = function(case, inputs, runner)(*poisoned).cpu()
        assert (jacobian[..., most_read] != 0).any()
        assert not got.isfinite()[jacobian[..., most_read] != 0].any()


AUTOCAST = ["spmm", "spmv", "spmm_transposed", "dense_times_sparse", "spmm_heads", "sddmm", "sddmm_heads"]


@pytest.mark.parametrize("case", [c for c in CASES if c.name in AUTOCAST], ids=lambda case: case.name)
def test_autocast(case: Case, runner: Runner) -> None:
    inputs = case.inputs(Make("ordinary", torch.float32, device=runner.device))
    ours = leaves(inputs)
    with torch.autocast(runner.device.type, dtype=torch.bfloat16):
        result = function(case, inputs, runner)(*ours)
    assert result.dtype is torch.bfloat16
    assert_equal(result, dense_function(case, inputs)(*leaves(inputs)).cpu(), torch.bfloat16)
    result.float().sum().backward()
    assert all(t.grad.dtype is torch.float32 for t in ours)
