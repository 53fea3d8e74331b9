# SPDX-License-Identifier: BSD-3-Clause
"""Solves by a stand-in for cuDSS on a stand-in for a device, in a process of their own, because a library is opened
once: python cudss_checks.py libgossamer_standin.so libcudss.so.1, which test_cudss.py calls."""

import ctypes
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import cuda_standin

torch = cuda_standin.load(sys.argv[1])
cudss = ctypes.CDLL(sys.argv[2])  # libgossamer finds it by its name, because it is loaded
import gossamer as gs  # noqa: E402

f64 = torch.float64
CUDA = torch.device("cuda", 0)
torch.manual_seed(0)


def general(n=20):
    """Nonsymmetric; the pivots are not on the diagonal, which is zero."""
    dense = torch.randn(n, n, dtype=f64) * (torch.rand(n, n) < 0.3) + 3 * torch.eye(n, dtype=f64).roll(1, 0)
    return dense.fill_diagonal_(0)


def definite(n=20):
    half = general(n)
    square = half @ half.T + torch.eye(n, dtype=f64)
    return (square + square.T) / 2  # to the last bit


def is_named():
    assert "cudss 1.1.2 (LU, Cholesky; if it is named)" in torch.ops.gossamer.show_config()
    A = gs.from_dense(general())
    assert gs.linalg.factorize(A.to(CUDA)).engine == "device"
    assert gs.linalg.factorize(A.to(CUDA), engine="cudss").engine == "cudss"
    os.environ["GOSSAMER_ENGINE"] = "cudss"
    assert gs.linalg.factorize(A.to(CUDA)).engine == "cudss"
    assert gs.linalg.factorize(A).engine == "eigen"
    del os.environ["GOSSAMER_ENGINE"]


def equals_dense():
    for dense, kind in ((general(), "auto"), (definite(), "auto"), (definite(), "lu"), (definite(), "cholesky")):
        A, X = gs.from_dense(dense).to(CUDA).requires_grad_(), dense.clone().requires_grad_()
        b = torch.randn(len(dense), 3, dtype=f64)
        factor = gs.linalg.factorize(A, kind, "cudss")
        assert factor.engine == "cudss"
        ours = factor.solve(b.to(CUDA)), factor.solve(b.to(CUDA), True), factor.logdet()
        theirs = torch.linalg.solve(X, b), torch.linalg.solve(X.T, b), torch.linalg.slogdet(X).logabsdet
        for y, z in zip(ours, theirs, strict=True):
            torch.testing.assert_close(y.cpu(), z)
        assert factor.slogdet().sign.cpu() == torch.linalg.slogdet(X).sign
        torch.autograd.backward([y.sin().sum() for y in ours])
        torch.autograd.backward([y.sin().sum() for y in theirs])
        torch.testing.assert_close(A.grad.values.cpu(), X.grad[A.pattern.row_indices.cpu(), A.indices.cpu()])


def derivatives():
    A = gs.from_dense(general(6)).to(CUDA)
    b = torch.randn(6, dtype=f64).to(CUDA).requires_grad_()
    solve = lambda v, rhs: gs.linalg.factorize(A.with_values(v), engine="cudss").solve(rhs)  # noqa: E731
    values = A.values.clone().requires_grad_()
    assert torch.autograd.gradcheck(solve, (values, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(solve, (values, b))


def analyses_are_kept_with_the_pattern():
    A = gs.from_dense(general()).to(CUDA)
    cudss.standin_analyses()
    for k in range(3):
        gs.linalg.solve(A.with_values((1 + k) * A.values), A.values.new_ones(20), engine="cudss")
    assert cudss.standin_analyses() == 1
    both = gs.linalg.factorize(A, engine="cudss"), gs.linalg.factorize(A, engine="cudss")
    assert cudss.standin_analyses() == 1, "two factors at a time need two"
    del both


def heads():
    many = torch.stack([general(8) + 5 * torch.eye(8, dtype=f64).roll(1, 0) for _ in range(3)], 2)
    pattern = gs.from_dense(torch.ones(8, 8)).pattern.to(CUDA)
    A, b = gs.SparseMatrix(pattern, many.reshape(64, 3).to(CUDA)), torch.randn(8, 3, 2, dtype=f64)
    factor = gs.linalg.factorize(A, engine="cudss")
    wanted = torch.linalg.solve(many.movedim(2, 0), b.movedim(1, 0)).movedim(0, 1)
    torch.testing.assert_close(factor.solve(b.to(CUDA)).cpu(), wanted)
    order = torch.tensor([1, 2, 0])
    ops, values = torch.ops.gossamer, A.values[:, order.to(CUDA)]
    logdet = ops.factor_logdet(factor._handle[order], pattern.tensors(True), values, A.shape)
    torch.testing.assert_close(logdet.cpu(), torch.linalg.slogdet(many.movedim(2, 0)).logabsdet[order])


def what_it_cannot_do_is_left_to_us():
    """A pivot that is replaced, one that is not positive, and a matrix that has none."""
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=f64)
    A = gs.from_dense(indefinite).to(CUDA)
    assert gs.linalg.factorize(A, engine="cudss").engine == "cudss"  # as LU
    for dense, kind in ((indefinite, "cholesky"), (torch.ones(3, 3, dtype=f64), "lu")):
        messages = []
        for matrix, engine in ((gs.from_dense(dense).to(CUDA), "cudss"), (gs.from_dense(dense), "eigen")):
            try:
                gs.linalg.factorize(matrix, kind, engine)
            except (ValueError, gs.SingularMatrixError) as error:
                messages.append(str(error).split("\n")[0])
        assert len(messages) == 2, messages
        assert messages[0] == messages[1], messages
    crooked = definite()
    crooked[0, 1] += 1  # Cholesky reads one triangle: the trial finds out
    B, b = gs.from_dense(crooked).to(CUDA), torch.ones(20, dtype=f64)
    torch.testing.assert_close(gs.linalg.solve(B, b.to(CUDA), engine="cudss").cpu(), torch.linalg.solve(crooked, b))


CHECKS = (
    is_named,
    equals_dense,
    derivatives,
    analyses_are_kept_with_the_pattern,
    heads,
    what_it_cannot_do_is_left_to_us,
)
for check in CHECKS:
    check()
    print(check.__name__, "ok", flush=True)
os.environ["CUDSS_STANDIN_REFUSES_TRANSPOSES"] = "1"
equals_dense()
print("transposes refused ok")
