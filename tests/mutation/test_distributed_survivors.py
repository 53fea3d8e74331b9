# SPDX-License-Identifier: BSD-3-Clause
"""Changes of distributed matrices that once survived all tests, seen by one process: the tests that were missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from random_matrix import random_matrix
from torch import Tensor

import gossamer as gs


@pytest.mark.parametrize("part", [-1, 1])
def test_parts_are_ranks(part: int) -> None:
    """Of this process alone, which is rank 0."""
    with pytest.raises(ValueError, match="scatter: parts names ranks"):
        gs.distributed.scatter(random_matrix(6, 6), parts=torch.full((6,), part))


def test_offsets_are_those_of_rows_and_of_columns() -> None:
    D = gs.distributed.scatter(random_matrix(4, 6))
    assert D.offsets.tolist() == [0, 4]
    assert D.column_offsets.tolist() == [0, 6]


@pytest.mark.parametrize("parts", [torch.zeros(6, 1, dtype=torch.int64), torch.zeros(5, dtype=torch.int64)])
def test_parts_are_one_integer_a_row(parts: Tensor) -> None:
    with pytest.raises(ValueError, match="scatter: parts must be 6 integers"):
        gs.distributed.scatter(random_matrix(6, 6), parts=parts)


def test_a_row_without_entries_comes_back_from_a_folder(tmp_path: Path) -> None:
    A = gs.from_coo([0, 3], [1, 2], torch.ones(2), (4, 4))
    gs.distributed.save(A, tmp_path, 1)
    assert torch.equal(gs.distributed.load(tmp_path)[0].values, A.values)


def test_a_matrix_without_rows_is_saved_as_one_part(tmp_path: Path) -> None:
    gs.distributed.save(gs.from_dense(torch.zeros(0, 3)), tmp_path, torch.zeros(0, dtype=torch.int64))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-0.npz", "plan.json"]
    assert gs.distributed.load(tmp_path)[0].shape == (0, 3)


@pytest.mark.parametrize("keys", [torch.arange(3), torch.arange(4)[None], torch.arange(4.0)])
def test_keys_are_one_integer_a_row(keys: Tensor) -> None:
    A = gs.poisson(4)
    with pytest.raises(ValueError, match="from_rows: keys must be 4 integers"):
        gs.distributed.from_rows(A.indptr, A.indices, A.values, [0, 4], A.shape, keys=keys)


def test_a_checkpoint_of_no_rows_is_written_by_rank_0() -> None:
    nothing = gs.distributed.scatter(gs.from_dense(torch.zeros(0, 3)))
    assert len(gs.distributed.Rows(torch.zeros(0, 2), nothing).__create_chunk_list__()) == 1
    some = gs.distributed.scatter(random_matrix(4, 6))
    assert len(gs.distributed.Rows(torch.zeros(4, 2), some).__create_chunk_list__()) == 1


def test_a_function_is_no_block_of_two_levels() -> None:
    D = gs.distributed.scatter(gs.poisson(6))
    with pytest.raises(TypeError, match="two_level: M must be a preconditioner of this module or a Factor"):
        gs.linalg.two_level(D, lambda r: r, coarse_size=2)


@pytest.mark.parametrize("count", [-1, 2**63, 0.5, True])
def test_a_plan_holds_counts(tmp_path: Path, count: float) -> None:
    gs.distributed.save(random_matrix(4, 4), tmp_path, 1)
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "id": count}))
    with pytest.raises(ValueError, match="a number is not a count"):
        gs.distributed.load(tmp_path)
