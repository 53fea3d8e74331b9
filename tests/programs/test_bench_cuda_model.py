# SPDX-License-Identifier: BSD-3-Clause
"""The model of the time on a GPU: what it makes of counts, and that the program that counts is called as it wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import matrices
from bench.studies import cuda_model as model

A100 = model.GPUS[0]


def cell(op: str = "spmm", matrix: str = "tridiagonal 32768", width: int = 1, **changed: Any) -> model.Counted:
    """A kernel that moves a gigabyte."""
    counts = dict.fromkeys(("threads", "spins", "shared", "shuffles"), 0) | {
        "launches": 1, "loads": 60, "stores": 40, "atomics": 0, "lanes": 1600, "bytes": 10, "sectors": 800,
        "compulsory": 500_000_000, "A100_l2": 2_000_000_000, "A100_dram": 1_000_000_000, "H100_l2": 2_000_000_000,
        "H100_dram": 1_000_000_000,
    }  # fmt: skip
    about = {"matrix": matrix, "dtype": "double", "scale": 1, "op": op, "width": width, "heads": 1, "flops": 1e6}
    return {**about, "chain": 0, "counts": counts} | changed


@pytest.mark.parametrize(
    ("changed", "bound", "seconds"),
    [
        ({}, "memory", 1e9 / 1555e9),
        ({"scale": 7}, "memory", 7e9 / 1555e9),
        ({"flops": 97e12}, "flops", 10.0),
        ({"flops": 97e12, "dtype": "float"}, "flops", 97 / 19.5),
        ({"chain": 1_000_000}, "chain", 0.75),
    ],
)
def test_the_slowest_part_decides(changed: dict[str, Any], bound: str, seconds: float) -> None:
    time, by = model.seconds(cell(**changed), A100)
    assert by == bound
    assert time == pytest.approx(seconds + model.LAUNCH)


def test_requests_and_shuffles_take_their_turn() -> None:
    many = cell(scale=2)
    many["counts"]["shuffles"] = 108 * 1_410_000_000 - 100  # a second, with the requests
    assert model.seconds(many, A100) == (pytest.approx(2.0 + model.LAUNCH), "issue")


def test_second_level_and_launches_count() -> None:
    many = cell()
    many["counts"] |= {"A100_dram": 0, "launches": 3}
    assert model.seconds(many, A100) == (pytest.approx(2e9 / 7.2e12 + 3 * model.LAUNCH), "L2")
    many["counts"]["A100_l2"] = 0
    assert model.seconds(many, A100)[1] == "launch"


def test_the_table_marks_what_wants_a_word() -> None:
    (header, _, matrix, line) = model.table([cell(width=64)])
    assert matrix.startswith("| **tridiagonal 32768**, float64 |")
    columns = [text.strip() for text in line.split("|")[1:-1]]
    assert len(columns) == len(model.HEADER) == header.count("|") - 1
    assert columns[:6] == ["`spmm` 64", "500 MB", "1 GB", "**2.00**", "2 GB", "**4.00**"]
    assert columns[6:8] == ["8.0", "50%"]


def test_a_row_of_table_2_is_the_sum_of_its_kernels() -> None:
    lines = list(model.beside_table2([cell("sddmm"), cell("spmm_transposed"), cell("spmm", "R-MAT")]))
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| SpMV Backward"]
    assert "1.29 ms" in lines[2]  # twice 4 µs and 1 GB at 1555 GB/s
    assert "198 µs" in lines[2]


def test_the_pattern_is_written_as_it_is_read(tmp_path: Path) -> None:
    A = matrices.tridiagonal(5)
    model.write_pattern(tmp_path / "A", A)
    raw = (tmp_path / "A").read_bytes()
    assert np.frombuffer(raw[:24], np.int64).tolist() == [5, 5, A.nnz]
    assert np.frombuffer(raw[24:], np.int32).tolist() == [*A.indptr, *A.indices]


def test_every_matrix_has_a_name() -> None:
    assert {c.matrix for c in (*model.CELLS, *model.QUICK)} == model.MATRICES.keys()
    part = matrices.poisson2d(7, lines=3)
    whole = matrices.poisson2d(7)
    assert part.shape == (21, 21)
    assert (part[:14] != whole[:14, :21]).nnz == 0


def test_the_program_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not model.PROGRAM.exists():
        pytest.skip("no cuda_cost: the dev preset builds it")
    assert model.main(["--quick", "--out", str(tmp_path)]) == 0
    counted = json.loads((tmp_path / "cuda_model.json").read_text())
    assert [c["op"] for c in counted] == [op.partition(":")[0] for op in model.QUICK[0].ops]
    spmm = counted[0]["counts"]
    # indptr, indices, values, x and y of tridiag(64), each in whole sectors.
    assert spmm["compulsory"] == spmm["A100_dram"] == 32 * (9 + 24 + 48 + 16 + 16)
    shown = capsys.readouterr().out
    assert "A model, not a measurement" in shown
    assert model.main(["--from", str(tmp_path / "cuda_model.json")]) == 0
    assert capsys.readouterr().out == shown
