# SPDX-License-Identifier: BSD-3-Clause
"""Table 2: the paper's rows on the paper's matrix, contenders that must agree, sizes that fit. No time decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import style

from bench import __main__ as command
from bench import machine
from bench.row import OURS
from bench.rows import products
from bench.studies import paper, table2
from bench.studies.table2 import ALL, ROWS, Row


@pytest.fixture(scope="module")
def result() -> table2.Result:
    return table2.compute(**table2.QUICK)


def test_matrix_is_the_papers() -> None:
    want = 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    assert np.array_equal(paper.matrix(6).toarray(), want)


def test_the_papers_numbers_are_the_papers(data: Path) -> None:
    """Row for row as in the text of the paper: test, ours CPU, SciPy CPU, …, iterations, N."""
    seeds = list((data.parent / "seeds").glob("002_*.txt"))
    if not seeds:
        pytest.skip(f"no text of the paper at {data.parent / 'seeds'}")
    lines = [line.split("\t") for line in seeds[0].read_text().splitlines()]
    table = {line[0]: line[1:] for line in lines if len(line) == 8 and line[0].endswith("ward")}
    assert len(table) == 2 * len(ROWS)
    for row in ROWS:
        forward, backward = table[f"{row.name} Forward"], table[f"{row.name} Backward"]
        assert (row.forward, row.scipy, row.backward) == (float(forward[0]), float(forward[1]), float(backward[0]))
        assert {(int(line[-2]), int(line[-1].replace(",", ""))) for line in (forward, backward)} == {
            (row.iterations, row.n)
        }


def test_every_row_is_measured(result: table2.Result) -> None:
    found = [(row["name"], row["mode"]) for row in result.rows]
    assert found == [(row.name, mode) for row in ROWS for mode in ("Forward", "Backward")]
    for row in result.rows:
        forward = row["mode"] == "Forward"
        dense = row["name"].startswith("D")
        assert all(seconds > 0 for seconds in row["best"].values())
        assert (OURS in row["best"]) == (ALL in row["best"]) == (not dense)
        assert (paper.DENSE in row["best"]) == dense
        assert (paper.SCIPY in row["best"]) == forward
        assert row["n"] == (256 if row["name"] in ("SpMV", "SpSpMM", "Sp + Sp", "SpTRSV") else 64)
    assert result.rows[0]["paper"] == pytest.approx(141e-6)
    assert result.rows[0]["paper_scipy"] == pytest.approx(92e-6)


def test_table_has_a_cell_for_everything(result: table2.Result) -> None:
    header, lines = table2.table(result)
    assert all(len(line) == len(header) for line in lines)
    assert all(isinstance(cell, str) and cell for line in [header, *lines] for cell in line)
    shown = dict(zip(header, lines[0], strict=True))
    assert shown["ms a call"] == "SpMV Forward"
    assert shown["N"] == "256"
    assert shown["paper’s N"] == "32768"
    assert shown["paper’s machine: the authors’"] == "0.141"
    assert shown["torch dense"] == "–"
    assert "MKL" not in header
    assert any("MKL was not loaded" in line for line in table2.summary(result))


def test_ratio_is_to_the_fastest_peer_on_one_thread() -> None:
    best = {OURS: 2.0, ALL: 1.0, paper.COLD: 0.1, paper.SCIPY: 6.0, paper.TORCH: 5.0}
    assert table2.ratio({"best": best}) == (2.5, paper.TORCH)
    assert table2.ratio({"best": {OURS: 2.0}}) is None
    assert table2.ratio({"best": {paper.DENSE: 2.0}}) is None


def test_result_can_be_kept(result: table2.Result, tmp_path: Path) -> None:
    torch.save(asdict(result), tmp_path / "result.pt")
    assert table2.Result(**torch.load(tmp_path / "result.pt", weights_only=True)) == result


def slightly(result: Any) -> Any:
    """Wrong by a millionth."""
    return tuple(slightly(part) for part in result) if isinstance(result, tuple) else result * (1 + 1e-6)


def contenders() -> list[Any]:
    small = [(row, row.make(8)) for row in ROWS]
    return [
        pytest.param(row, mode, name, id=f"{row.name}-{mode}-{name}")
        for row, contest in small
        for mode in ("forward", "backward")
        for name in getattr(contest, mode)
        if name != OURS
    ]


@pytest.mark.parametrize(("row", "mode", "name"), contenders())
def test_a_wrong_contender_is_refused(row: Row, mode: str, name: str) -> None:
    contest = row.make(8)
    contest.judge(row.name)
    runs: dict[str, Callable[[], Any]] = getattr(contest, mode)
    right = runs[name]
    runs[name] = lambda: slightly(right())
    with pytest.raises(AssertionError, match=rf"{mode}: {name} differs from gossamer"):
        contest.judge(row.name.replace("+", "and"))


@pytest.mark.parametrize("row", [row for row in ROWS if row.name != "SpTRSV"], ids=lambda row: row.name)
def test_a_wrong_gradient_of_ours_is_refused(row: Row) -> None:
    """SpTRSV's backward has no peer of its own: that of DTRSV judges the same gradients."""
    contest = row.make(8)
    right = contest.backward[OURS]
    contest.backward[OURS] = lambda: slightly(right())
    with pytest.raises(AssertionError, match=r"backward: .* differs from gossamer"):
        contest.judge(row.name)


def test_backward_walks_a_kept_graph() -> None:
    made = []
    x = torch.ones(3, requires_grad=True)
    run = paper.walk(lambda: made.append(1) or x.square(), (x,), torch.ones(3))
    with torch.no_grad():
        assert not made
        for _ in range(3):
            assert torch.equal(run()[0], torch.full((3,), 2.0))
    assert len(made) == 1


def test_dense_rows_shrink_until_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in ROWS if row.name == "D + D")
    n = table2.fitting(row, 32768, 24e9)
    assert 8 * row.squares * n**2 <= 24e9 * table2.SHARE < 8 * row.squares * (2 * n) ** 2
    assert table2.fitting(ROWS[0], 32768, 1.0) == 32768  # nothing dense
    monkeypatch.setattr(machine, "available_memory", lambda: 10**5)
    small = table2.compute(**table2.QUICK)
    assert next(row["n"] for row in small.rows if row["name"] == "D + D") == 32
    assert any(note.startswith("D + D at N = 32: N = 64 would need") for note in small.notes)


def test_memory_of_this_machine_is_known() -> None:
    total = Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0]
    assert 10**6 < machine.available_memory() <= 1024 * int(total)


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_figures_have_captions(result: table2.Result, look: str, tmp_path: Path) -> None:
    with style.context(look):
        drawn = table2.figures(result)
        assert drawn.keys() == table2.captions().keys()
        drawn["table2"].savefig(tmp_path / "table2.png")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    assert command.main(["--table2", "--quick", "--out", str(tmp_path)]) == 0
    assert torch.get_num_threads() == threads
    assert not products.MKL  # only a program loads it
    told = capsys.readouterr().out
    assert "SpTRSV Backward" in told
    assert (tmp_path / "table2.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        command.main(["--table2", "--rows", "spmm"])
    assert "--rows" in capsys.readouterr().err
