# SPDX-License-Identifier: BSD-3-Clause
"""Checks the stand-in itself: python check_standin.py libgossamer_standin.so libgossamer_standin_probe.so"""

import copy
import ctypes
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cuda_standin

torch = cuda_standin.load(sys.argv[1])
probe = ctypes.CDLL(sys.argv[2])
torch.manual_seed(0)
F64 = {"device": "cuda", "dtype": torch.float64}


def same(got, wanted):
    assert got.device == torch.device("cuda:0"), got.device
    torch.testing.assert_close(got.cpu(), wanted)


def moves_and_makes():
    a = torch.randn(3, 4)
    for b in (
        a.to("cuda"),
        a.cuda(),
        a.to("cuda:0", torch.float64).float(),
        torch.empty(3, 4, device="cuda").copy_(a),
    ):
        same(b, a)
    same(torch.zeros(3, device="cuda"), torch.zeros(3))
    same(torch.arange(2, 9, device="cuda"), torch.arange(2, 9))
    same(torch.tensor([1, 2], device="cuda"), torch.tensor([1, 2]))
    same(torch.empty_strided((2, 3), (1, 2), device="cuda").fill_(1), torch.ones(2, 3))
    same(torch.empty(0, 5, device="cuda"), torch.empty(0, 5))
    torch.rand(4, device="cuda"), torch.randn(4, device="cuda", generator=torch.Generator())
    assert "cuda:0" in repr(a.cuda())
    assert a.cuda().sum().item() == a.sum().item()
    same(copy.deepcopy(torch.nn.Linear(2, 2).cuda()).weight.detach() * 0, torch.zeros(2, 2))


def views_and_in_place():
    a = torch.arange(24.0).reshape(4, 6)
    b = a.cuda()
    for f in (
        lambda t: t.T,
        lambda t: t[1:, ::2],
        lambda t: t.view(6, 4),
        lambda t: t.reshape(2, 12),
        lambda t: t.unfold(1, 2, 3),
        lambda t: t.diagonal(),
        lambda t: t.expand(2, 4, 6),
        lambda t: t[:, 1],
    ):
        same(f(b), f(a))
        assert f(b).untyped_storage()._cdata == b.untyped_storage()._cdata
    for t in (a, b):
        t[:, 1] = 7
        t.T[2].mul_(3)
        t.view(-1)[5:9] += 1
        t.index_add_(0, torch.tensor([0, 2], device=t.device), torch.ones(2, 6, device=t.device))
    same(b, a)
    out = torch.empty(0, device="cuda")
    torch.add(b, 1, out=out)
    same(out, a + 1)
    same(b.resize_(2, 3), a.resize_(2, 3))
    z = torch.randn(3, dtype=torch.complex128)
    same(z.cuda().conj() * 2, z.conj() * 2)
    same(z.conj().cuda(), z.conj())


def lists():
    a = torch.randn(6, 4)
    for f in (
        lambda t: t.split(2),
        lambda t: t.unbind(1),
        lambda t: torch.linalg.qr(t),
        lambda t: t.sort(1),
        lambda t: torch._foreach_add([t, t], 1),
        lambda t: [torch.cat([t, t]), torch.stack([t, t])],
    ):
        for got, wanted in zip(f(a.cuda()), f(a), strict=True):
            same(got, wanted)
    same(
        a.cuda()[torch.tensor([1, 0]), torch.tensor([2, 3]).cuda()],
        a[torch.tensor([1, 0]), torch.tensor([2, 3])],
    )
    same(a.cuda()[a.cuda() > 0], a[a > 0])


def autograd():
    w = torch.randn(4, 3, **F64, requires_grad=True)
    x = torch.randn(5, 4, **F64, requires_grad=True)
    threads = set()
    y = (x @ w).relu()
    y.register_hook(lambda g: threads.add(threading.get_ident()))
    y.pow(2).sum().backward()
    assert len(threads) == 1
    assert threading.get_ident() not in threads, "backward did not run on the device thread"
    same(w.grad, 2 * (x.T @ (x @ w).relu()).detach().cpu())
    f = lambda a, b: (a @ b).tanh()[1:, ::2]  # noqa: E731
    assert torch.autograd.gradcheck(f, (x, w), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(f, (x, w))
    parameter = torch.nn.Parameter(torch.ones(3, device="cuda"))
    adam = torch.optim.Adam([parameter], lr=0.5)
    parameter.sum().backward()
    adam.step()
    same(parameter.detach(), torch.full((3,), 0.5))


def transforms():
    x = torch.randn(4, **F64)
    f = lambda t: t.sin() * t.sum()  # noqa: E731
    same(torch.func.grad(lambda t: t.sin().sum())(x), x.cpu().cos())
    same(torch.func.vmap(f)(x.expand(3, 4)), f(x.cpu()).expand(3, 4))
    same(torch.func.jacrev(f)(x), torch.func.jacfwd(f)(x.cpu()))
    same(
        torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
        torch.func.jvp(f, (x.cpu(),), (torch.ones(4).double(),))[1],
    )
    same(torch.func.hessian(lambda t: (t**3).sum())(x), torch.diag(6 * x.cpu()))
    same(torch.func.functionalize(lambda t: t.clone().add_(1).view(2, 2))(x), (x.cpu() + 1).view(2, 2))
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        assert f(fake).device == x.device
        assert torch.empty(2, device="cuda").device.type == "cuda"
    traced = torch.fx.experimental.proxy_tensor.make_fx(f, tracing_mode="symbolic")(x)
    same(traced(x), f(x.cpu()))
    same(torch.compile(f, backend="aot_eager", fullgraph=True)(x), f(x.cpu()))


def sparse():
    a = torch.randn(5, 4).relu()
    coo, csr = a.to_sparse().cuda(), a.to_sparse_csr().cuda()
    for t in (coo, csr, a.cuda().to_sparse(), a.cuda().to_sparse_csr()):
        same(t.to_dense(), a)
    same(csr.crow_indices(), a.to_sparse_csr().crow_indices())
    same(coo.indices(), a.to_sparse().indices())
    same(torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), csr.values(), (5, 4)).to_dense(), a)
    same(csr @ torch.ones(4, 2, device="cuda"), a @ torch.ones(4, 2))


def weak_kernels():
    assert probe.probe_linked()
    a = torch.randn(9, 7, dtype=torch.float64).relu()
    csr = a.to_sparse_csr()
    parts = [t.cuda() for t in (csr.crow_indices().int(), csr.col_indices().int(), csr.values())]
    x, y = torch.randn(7, 5, **F64), torch.full((9, 5), float("nan"), **F64)
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (*parts, x)]
    probe.probe_spmm(
        *map(ctypes.c_int64, (9, 7, csr.values().numel())),
        *pointers,
        ctypes.c_int64(5),
        ctypes.c_void_p(y.data_ptr()),
    )
    same(y, a @ x.cpu())


for check in (moves_and_makes, views_and_in_place, lists, autograd, transforms, sparse, weak_kernels):
    check()
    print(check.__name__, "ok", flush=True)
