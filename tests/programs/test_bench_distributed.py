# SPDX-License-Identifier: BSD-3-Clause
"""The quality of a partition against its definition, and the model of large machines against numbers made by hand."""

from __future__ import annotations

import pytest
import torch

import gossamer as gs
from bench.studies.distributed import model, partition


def test_quality_of_a_partition() -> None:
    """Counted by sets."""
    A = gs.random(30, 30, density=0.2, generator=torch.Generator().manual_seed(0))
    part = partition.random_parts(A, 3)
    entries = list(zip(A.pattern.row_indices.tolist(), A.indices.tolist(), strict=True))
    cut = [(i, j) for i, j in entries if part[i] != part[j]]
    halos = [{j for i, j in cut if part[i] == r} for r in range(3)]
    found = partition.quality(A, part, 3)
    assert found.cut == pytest.approx(len(cut) / A.nnz)
    assert found.halo_max == max(len(halo) for halo in halos)
    assert found.halo_sum == pytest.approx(sum(len(halo) for halo in halos) / 30)
    loads = [sum(int(part[i]) == r for i, _ in entries) for r in range(3)]
    assert found.imbalance == pytest.approx(max(loads) / (A.nnz / 3))


def test_study(capsys: pytest.CaptureFixture[str]) -> None:
    partition.main(["--quick", "--parts", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * 3
    assert len({line.count("|") for line in lines}) == 1


def test_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert model.aggregated() == 128 + 256 + 172 + 256 + 172
    assert model.receive(4, 1.0) == pytest.approx(111_059_956 * 984 * 4 / 4 / 25e9)
    assert model.random_halo(2) == pytest.approx(1.0, abs=1e-6)  # thirty neighbours: nobody has none abroad
    model.main(["--machines", "4", "16"])
    printed = capsys.readouterr().out
    assert "A model: no number below was measured." in printed
    assert "| 16 | " in printed
