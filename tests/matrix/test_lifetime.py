# SPDX-License-Identifier: BSD-3-Clause
"""Matrices copied, pickled, dropped and used again: what is kept with a pattern never serves another one, is never
copied, and is freed with the pattern, without the cyclic collector."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import random
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import gossamer as gs


def off_diagonal(k: int) -> gs.SparseMatrix:
    return gs.from_dense(torch.diag(torch.ones(2), k))


def test_a_copy_does_not_inherit_pairs() -> None:
    A, B = gs.eye(3), off_diagonal(1)
    assert (A @ B).nnz == 2
    copied = copy.deepcopy(A)
    del B
    C = off_diagonal(-1)
    torch.testing.assert_close((copied @ C).to_dense(), C.to_dense())


COPIES: dict[str, Callable[[gs.SparseMatrix], gs.SparseMatrix]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda A: pickle.loads(pickle.dumps(A)),
}
PAIRS: dict[str, Callable[[gs.SparseMatrix, gs.SparseMatrix], gs.SparseMatrix]] = {
    "sum": lambda A, B: A + B,
    "product": lambda A, B: A @ B,
    "hadamard": lambda A, B: A * B,
}


@pytest.mark.parametrize("pair", PAIRS)
def test_random_sequences_of_copies_and_pairs(pair: str) -> None:
    """Objects come and go, so that addresses and keys are used again; a dense twin runs along."""
    draw = random.Random(7)
    alive = [gs.random(4, 4, 0.4, dtype=torch.float64) for _ in range(3)]
    for _ in range(180):
        how = COPIES[draw.choice(list(COPIES))]
        A, B = draw.choice(alive), draw.choice(alive)
        got = PAIRS[pair](A, B).to_dense()
        want = {"sum": A.to_dense() + B.to_dense(), "product": A.to_dense() @ B.to_dense()}
        torch.testing.assert_close(got, want.get(pair, A.to_dense() * B.to_dense()))
        alive[draw.randrange(3)] = how(A) if draw.random() < 0.5 else gs.random(4, 4, 0.4, dtype=torch.float64)


def test_what_is_kept_is_not_pickled() -> None:
    A = gs.poisson(5)
    plain = len(pickle.dumps(A))
    A @ A, A + A.T, A.T @ A, gs.linalg.solve(A, torch.ones(5))
    assert len(pickle.dumps(A)) == plain
    buffer = io.BytesIO()
    torch.save(A, buffer)
    buffer.seek(0)
    assert gs.allclose(torch.load(buffer, weights_only=False), A)


def test_an_unpickled_pattern_is_checked() -> None:
    P = copy.copy(gs.poisson(3).pattern)
    P.indices = torch.full_like(P.indices, 99)
    stored = pickle.dumps(P)
    with pytest.raises(ValueError, match="99"):
        pickle.loads(stored)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


USES: dict[str, Callable[[gs.SparseMatrix], object]] = {
    "nothing": lambda A: None,
    "transpose": lambda A: A.T,
    "transposed twice": lambda A: A.T.T,
    "normal equations": lambda A: A.T @ A,
    "square": lambda A: A @ A,
    "sum with itself": lambda A: A + A.T,
    "a union that is A": lambda A: A + gs.eye(6),
    "hadamard": lambda A: A * A.T,
    "solve": lambda A: gs.linalg.solve(A, torch.ones(6)),
    "triangular": lambda A: gs.linalg.solve_triangular(A, torch.ones(6)),
    "parts": lambda A: (A.tril(), A.diagonal(), A[[0, 1]], A[:, 1]),
    "index widths": lambda A: A @ A.to(index_dtype=torch.int64),
    "layer": lambda A: gs.nn.GATConv(2, 2)(torch.ones(6, 2), A),
    "complex": lambda A: gs.linalg.solve(A.to(torch.complex64), torch.ones(6, dtype=torch.complex64)),
    "gradient": lambda A: (A @ torch.ones(6)).sum().backward(),
    "equal": lambda A: gs.allclose(A, gs.poisson((2, 3))),
}


@pytest.mark.parametrize("use", USES)
def test_counting_references_frees_a_pattern_and_what_it_kept(use: str, no_collector: None) -> None:
    A = gs.poisson((2, 3)).requires_grad_()
    USES[use](A)
    seen = [weakref.ref(A.pattern), weakref.ref(A.pattern.T)]
    del A
    assert [ref() for ref in seen] == [None, None]


def test_a_union_that_is_one_of_the_two_does_not_hold_it(no_collector: None) -> None:
    """The other one lives on, and what is kept for the pair with it."""
    A, B = gs.poisson((2, 3)), gs.eye(6)
    assert (A + B).pattern is A.pattern
    seen = weakref.ref(A.pattern)
    del A
    assert seen() is None
    assert B.nnz == 6


def test_a_transpose_outlives_its_original() -> None:
    A = gs.random(4, 6, 0.5, generator=torch.Generator().manual_seed(0))
    dense, T = A.to_dense(), A.T
    assert T.pattern.T is A.pattern
    del A
    torch.testing.assert_close(T.T.to_dense(), dense)
    assert T.pattern.T.T is T.pattern


def test_values_that_do_not_fit_cannot_be_assigned() -> None:
    A = gs.poisson(3)
    with pytest.raises(ValueError, match=r"values has shape \(3,\) but the pattern has 7 entries"):
        A.values = torch.ones(3)
    A.values = 2 * torch.ones(7)
    torch.testing.assert_close(A.sum(), torch.tensor(14.0))


def test_scipy_code_cannot_change_a_matrix() -> None:
    A = gs.SparseMatrix([0, 2, 3], [0, 1, 1], torch.tensor([0.0, 2.0, 3.0]), (2, 2))
    S = A.to_scipy()
    S.eliminate_zeros()
    S.indices[:] = 10**6
    torch.testing.assert_close(A.to_dense(), torch.tensor([[0.0, 2.0], [0.0, 3.0]]))
    B = gs.from_scipy(A.to_scipy())
    given = A.to_scipy()
    C = gs.from_scipy(given)
    given.indices[:] = 10**6
    given.data[:] = 0
    assert gs.allclose(B, C)


def test_numpy_arrays_are_copied() -> None:
    indptr, indices = np.array([0, 1, 2]), np.array([0, 1])
    A = gs.SparseMatrix(indptr, indices, np.ones(2), (2, 2))
    indices[:] = 10**6
    torch.testing.assert_close(A.to_dense(), torch.eye(2, dtype=torch.float64))
