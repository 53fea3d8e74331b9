# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of what people do with matrices, and a dense twin of each of them that runs along."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import weakref
from typing import Any

import torch
import worker
from factors import WithFactors
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from torch import Tensor
from twins import Held, close, compare, derived, leaf, losses, operand, viewed
from world import WithWorld

import gossamer as gs

SIZES = (4, 6)  # of rows and of columns: products and sums find partners
MOST = 9  # matrices at a time
COPIES = ["copy", "deepcopy", "pickle", "save", "clone", "detach", "worker", "same values"]
index = st.integers(0, 1000)
seeds = st.integers(0, 10**6)

steps = 0  # of all machines of this process


class Machine(WithFactors, WithWorld, RuleBasedStateMachine):
    """The pool of matrices, the factors, and every action as a rule."""

    def __init__(self) -> None:
        super().__init__()
        self.pool: list[Held] = []
        self.seen: list[weakref.ref[gs.Pattern]] = []
        self.threads = torch.get_num_threads()
        gc.collect()
        gc.freeze()  # what is there already is not looked at again, so that collecting takes no time
        gc.disable()

    def teardown(self) -> None:
        """Counting references alone has freed every pattern."""
        self.pool.clear()
        self.factors.clear()
        torch.set_num_threads(self.threads)
        alive = sum(ref() is not None for ref in self.seen)
        gc.enable()
        failed = sys.exc_info()[0] is not None  # then the traceback holds some
        assert failed or alive == 0, f"{alive} patterns wait for the collector"

    def hold(self, held: Held, what: str) -> None:
        """Compares and keeps; the oldest makes room."""
        compare(held, what)
        if held.matrix._original is None:
            self.seen.append(weakref.ref(held.matrix.pattern))
        self.pool.append(held)
        if len(self.pool) > MOST:
            self.pool.pop(0)

    def at(self, k: int) -> Held:
        return self.pool[k % len(self.pool)]

    def fitting(self, A: Held, k: int, product: bool) -> Held | None:
        """Another one on the same device, to multiply with or to add to."""
        m, n = A.matrix.shape
        fits = [
            B
            for B in self.pool
            if B.matrix.device == A.matrix.device
            and (B.matrix.shape[0] == n if product else B.matrix.shape == (m, n))
            and float(A.dense().detach().abs().max()) * float(B.dense().detach().abs().max()) < 1e8
        ]
        return fits[k % len(fits)] if fits else None

    @invariant()
    def count(self) -> None:
        global steps
        steps += 1

    # Birth.

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        self.build(0, 0, seed, False, True, 0)
        self.build_solvable(0, seed, False, True)

    @rule(m=index, n=index, seed=seeds, wide=st.booleans(), grad=st.booleans(), way=st.integers(0, 2))
    def build(self, m: int, n: int, seed: int, wide: bool, grad: bool, way: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = SIZES[m % 2], SIZES[n % 2]
        mask = torch.rand(shape, generator=generator) < (0.0, 0.3, 0.3, 0.6)[seed % 4]
        dense = torch.randn(shape, generator=generator, dtype=torch.float64) * mask
        rows, cols = mask.nonzero().T
        if way == 0:
            A = gs.from_coo(rows, cols, dense[mask], shape)
        elif way == 1:
            A = gs.SparseMatrix([0, *mask.sum(1).cumsum(0).tolist()], cols.tolist(), dense[mask].tolist(), shape)
            A = A.to(torch.float64) if A.nnz == 0 else A.with_values(dense[mask])
        else:
            A = gs.from_dense(dense)
        A = A.to(index_dtype=torch.int64 if wide else torch.int32)
        self.hold(leaf(A.requires_grad_(grad), dense, mask), "build")

    @rule(n=index, seed=seeds, wide=st.booleans(), grad=st.booleans())
    def build_solvable(self, n: int, seed: int, wide: bool, grad: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        size = SIZES[n % 2]
        dense = torch.randn(size, size, generator=generator, dtype=torch.float64)
        dense = dense * (torch.rand(size, size, generator=generator) < 0.4)
        if seed % 2:
            dense = dense + dense.T
        dense.diagonal().copy_(1 + dense.abs().sum(0) + dense.abs().sum(1))
        A = gs.from_dense(dense).to(index_dtype=torch.int64 if wide else torch.int32)
        self.hold(leaf(A.requires_grad_(grad), dense, dense != 0, True), "build_solvable")

    # Copies.

    @rule(k=index, way=st.sampled_from(COPIES))
    def copy(self, k: int, way: str) -> None:
        A = self.at(k)
        if way == "copy":
            self.hold(viewed(copy.copy(A.matrix), A, lambda d: d), way)
        elif way == "detach":
            self.hold(viewed(A.matrix.detach(), A, lambda d: d.detach()), way)
        elif way == "clone":
            self.hold(derived(A.matrix.clone(), A.dense().clone(), A.mask, A), way)
        elif way == "same values":
            self.hold(viewed(gs.SparseMatrix(A.matrix.pattern, A.matrix.values), A, lambda d: d), way)
        else:
            here = A.matrix.values.is_leaf and A.matrix.device.type == "cpu"  # torch copies leaves alone
            given = A.matrix if here else A.matrix.detach().to("cpu")
            self.hold(leaf(self.travelled(given, way), A.dense(), A.mask, A.solvable), way)

    def travelled(self, A: gs.SparseMatrix, way: str) -> gs.SparseMatrix:
        if way == "deepcopy":
            return copy.deepcopy(A)
        if way == "save":
            buffer = io.BytesIO()
            torch.save(A, buffer)
            buffer.seek(0)
            return torch.load(buffer, weights_only=False)
        if way == "worker" and A.device.type == "cpu":
            b = torch.ones(A.shape[1], dtype=torch.float64)
            product, dense, back = worker.ask("matrix", A, b)
            close(product, A.to_dense() @ b, "a product in another process")
            close(dense, A.to_dense(), "a matrix in another process")
            return back
        return pickle.loads(pickle.dumps(A))

    # Parts.

    @rule(k=index)
    def transpose(self, k: int) -> None:
        A = self.at(k)
        self.hold(viewed(A.matrix.T, A, lambda d: d.T), "transpose")

    @rule(k=index, way=st.integers(0, 5), seed=seeds)
    def slice(self, k: int, way: int, seed: int) -> None:
        A = self.at(k)
        m, n = A.matrix.shape
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randint(m, (SIZES[seed % 2],), generator=generator)
        cols = torch.randint(n, (SIZES[seed // 2 % 2],), generator=generator)
        r, c = rows.to(A.matrix.device), cols.to(A.matrix.device)
        k = seed % 5 - 2
        results = [
            lambda M: (M[r], lambda d: d[rows]),
            lambda M: (M[:, c], lambda d: d[:, cols]),
            lambda M: (M[r[:, None], c], lambda d: d[rows][:, cols]),
            lambda M: (M.tril(k), lambda d: d.tril(k)),
            lambda M: (M.triu(k), lambda d: d.triu(k)),
            lambda M: (M[::-1], lambda d: d.flip(0)),
        ]
        B, f = results[way](A.matrix)
        self.hold(derived(B, f(A.dense()), f(A.mask), A), f"slice {way}")

    @rule(k=index, factor=st.sampled_from([0.5, 2.0]))
    def assign_behind(self, k: int, factor: float) -> None:
        """Other values are assigned to a matrix: its transpose, and a factor of it, were made of those before."""
        A = self.at(k)
        T, old = viewed(A.matrix.T, A, lambda d: d.T), A.dense().detach().clone()
        made = gs.linalg.factorize(A.matrix) if A.solvable else None
        values = (A.matrix.values.detach() * factor).requires_grad_(A.matrix.requires_grad)
        A.matrix.values = values
        self.pool[k % len(self.pool)] = leaf(A.matrix, old * factor, A.mask, A.solvable)
        compare(self.at(k), "values assigned")
        self.hold(T, "the transpose of what was there before")
        if made is not None:
            b, y = operand(old.shape[0], like=A.matrix)
            close(made.solve(b), torch.linalg.solve(old, y), "a factor of what was there before")
            close(made.logdet(), torch.linalg.slogdet(old)[1], "logdet of what was there before")

    # Products and sums.

    @rule(k=index, other=index)
    def multiply(self, k: int, other: int) -> None:
        A = self.at(k)
        B = self.fitting(A, other, True)
        if B is not None:
            mask = A.mask.double() @ B.mask.double() > 0
            self.hold(derived(A.matrix @ B.matrix, A.dense() @ B.dense(), mask, A, B), "multiply")

    @rule(k=index, other=index, way=st.sampled_from(["+", "-", "*"]))
    def add(self, k: int, other: int, way: str) -> None:
        A = self.at(k)
        B = self.fitting(A, other, False)
        if B is None:
            return
        a, b = A.dense(), B.dense()
        C, twin, mask = {
            "+": lambda: (A.matrix + B.matrix, a + b, A.mask | B.mask),
            "-": lambda: (A.matrix - B.matrix, a - b, A.mask | B.mask),
            "*": lambda: (A.matrix * B.matrix, a * b, A.mask & B.mask),
        }[way]()
        self.hold(derived(C, twin, mask, A, B), way)

    @rule(k=index, seed=seeds)
    def meet_for_a_moment(self, k: int, seed: int) -> None:
        """Others that are gone at once: what was kept for a pair must not serve the next one in the same place."""
        A = self.at(k)
        n = A.matrix.shape[1]
        generator = torch.Generator().manual_seed(seed)
        for _ in range(4):
            b = torch.randn(n, n, generator=generator, dtype=torch.float64)
            b = b * (torch.rand(n, n, generator=generator) < 0.3)
            B = gs.from_dense(b).to(A.matrix.device)
            close((A.matrix @ B).to_dense(), A.dense() @ b, "a product with one that is gone soon")
            if A.matrix.shape == (n, n):
                close((A.matrix + B).to_dense(), A.dense() + b, "a sum with one that is gone soon")
                close((A.matrix * B).to_dense(), A.dense() * b, "an entrywise product with one that is gone soon")
            del B

    @rule(k=index, width=st.integers(0, 3), left=st.booleans())
    def multiply_dense(self, k: int, width: int, left: bool) -> None:
        A = self.at(k)
        shape = (A.matrix.shape[0 if left else 1], width) if width else (A.matrix.shape[0 if left else 1],)
        X, x = operand(*shape, like=A.matrix)
        if width and left:
            X, x = X.T, x.T
        got = X @ A.matrix if left else A.matrix @ X
        close(got, x @ A.dense() if left else A.dense() @ x, "multiply_dense")

    # Derivatives.

    @rule(k=index, way=st.integers(0, 5), twice=st.booleans())
    def differentiate(self, k: int, way: int, twice: bool) -> None:
        A = self.at(k)
        ours, theirs = losses(A, way)
        close(ours, theirs, f"loss {way}")
        assert ours.requires_grad == theirs.requires_grad, f"loss {way}: one of matrix and twin is differentiated"
        bases = [base for base in A.bases if base.values.requires_grad]
        if not ours.requires_grad or not bases:
            return
        try:
            got = gradients(ours, [base.values for base in bases], [1] * len(bases), twice)
            wanted = gradients(theirs, [base.dense for base in bases], [base.mask for base in bases], twice)
        except RuntimeError:
            assert A.stale(), f"loss {way}: no values were changed, but the derivative is refused"
            return
        for base, g, w in zip(bases, got, wanted, strict=True):
            g = torch.zeros_like(base.values) if g is None else g
            w = torch.zeros_like(base.dense) if w is None else w
            close(g, w[base.mask], f"gradient of loss {way}{', twice' * twice}")

    # Changes.

    @rule(k=index, factor=st.sampled_from([0.5, 2.0, -1.0]), assign=st.booleans())
    def change(self, k: int, factor: float, assign: bool) -> None:
        """In place, which everything that shares the memory sees; or by other values, which it alone has then."""
        A = self.at(k)
        factor = abs(factor) if A.solvable else factor
        if assign:
            new = A.dense().detach() * factor
            values = new[A.mask].to(A.matrix.device).requires_grad_(A.matrix.requires_grad)
            A.matrix.values = values
            self.pool[k % len(self.pool)] = leaf(A.matrix, new, A.mask, A.solvable)
            compare(self.at(k), "values assigned")
        elif A.base is not None:
            for other in self.pool:
                other.settle()
            if A.base is not None and A.twin is None:
                A.base.change(A.base.dense.detach() * factor)
        for held in self.pool:
            compare(held, "a matrix after values were changed")


def gradients(loss: Tensor, leaves: list[Tensor], masks: list[Any], twice: bool) -> list[Tensor | None]:
    """The gradients, or those of the sum of their sines where entries are stored."""
    first = torch.autograd.grad(loss, leaves, retain_graph=True, create_graph=twice, allow_unused=True)
    if not twice:
        return list(first)
    sines = [(g * mask).sin().sum() for g, mask in zip(first, masks, strict=True) if g is not None and g.requires_grad]
    if not sines:
        return [None] * len(leaves)
    return list(torch.autograd.grad(sum(sines), leaves, retain_graph=True, allow_unused=True))
