# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of files runs, and refuses a reader or a writer that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gossamer as gs
from bench import files

SMALL = ["--entries", "300", "--seconds", "0.001"]


def test_every_order_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    assert files.main(SMALL) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line[:17].strip() for line in told[1:]] == ["read by rows", "read by columns", "read shuffled", "write"]


def test_orders_are_orders_of_one_matrix() -> None:
    A = files.random_matrix(300)
    for order, triplets in files.orders(A):
        assert (triplets.tocsr() != A).nnz == 0
        rows, cols = (np.diff(axis) for axis in triplets.coords)
        assert (rows.min() >= 0) == (order == "by rows")
        assert (cols.min() >= 0) == (order == "by columns")


def test_an_entry_in_the_wrong_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = gs.read_mtx

    def misplaced(path: Path) -> gs.SparseMatrix:
        A = read(path)
        indices = A.indices.clone()
        assert indices[-1] != A.shape[1] - 1
        indices[-1] = A.shape[1] - 1  # the last entry stays the last: only its place is wrong
        return gs.SparseMatrix(A.indptr, indices, A.values, A.shape)

    monkeypatch.setattr(gs, "read_mtx", misplaced)
    with pytest.raises(AssertionError, match="reading by rows: gossamer differs"):
        files.main(SMALL)


def test_a_wrong_writer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write = gs.write_mtx
    monkeypatch.setattr(gs, "write_mtx", lambda path, A: write(path, A * (1 + 1e-15)))
    with pytest.raises(AssertionError, match="writing: gossamer differs"):
        files.main(SMALL)
