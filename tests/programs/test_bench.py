# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark does what it says on small matrices. Nothing here depends on a time."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.linalg
import torch

from bench import __main__ as command
from bench import matrices
from bench.cells import MODES
from bench.instructions import __main__ as instructions
from bench.race import check, clock_of, race
from bench.row import DEVICE_ONLY, HOST_ONLY, OURS, Skip, able
from bench.rows import ROWS
from cases import CASES

QUICK = ["--quick", "--seconds", "0.001", "--malloc", "default"]


@pytest.fixture(scope="module")
def mtx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rectangular matrix with an empty row and an empty column."""
    path = tmp_path_factory.mktemp("mtx") / "small.mtx"
    A = scipy.sparse.random_array((30, 23), density=0.2, rng=np.random.default_rng(0)).tolil()
    A[4, :] = 0
    A[:, 7] = 0
    scipy.io.mmwrite(path, A.tocoo())
    return path


def run(out: Path, *arguments: str) -> dict[str, Any]:
    assert command.main([*QUICK, "--out", str(out), *arguments]) == 0
    assert (out / "bench.png").read_bytes().startswith(b"\x89PNG")
    return json.loads((out / "bench.json").read_text())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, mtx: Path) -> dict[str, Any]:
    """Every row on a file, in every way."""
    options = ("--columns", "1,5", "--dtype", "float32,float64", "--threads", "1,2")
    return run(tmp_path_factory.mktemp("bench"), *options, "--matrices", str(mtx))


def test_report_tells_the_circumstances(report: dict[str, Any]) -> None:
    assert {"gossamer", "torch", "scipy", "numpy", "python"} <= report["versions"].keys()
    assert report["machine"]["cores"] >= 1
    assert report["allocator"]
    assert report["bandwidth_gb_per_s"].keys() == {"1", "2"}


def test_every_row_is_measured_everywhere(report: dict[str, Any], mtx: Path) -> None:
    keys = ("row", "mode", "matrix", "columns", "dtype", "threads")
    found = {tuple(cell[key] for key in keys) for cell in report["cells"]}
    expected = {
        (row, mode, matrix, columns, dtype, threads)
        for row, bench in ROWS.items()
        for mode, ways in zip(MODES, (bench.forward, bench.backward), strict=True)
        if ways
        for matrix in bench.matrices or (str(mtx),)
        for columns in (bench.columns if bench.matrices or bench.columns == (0,) else (1, 5))
        for dtype in ("float32", "float64")
        for threads in (1, 2)
    }
    assert found == expected
    assert len(report["cells"]) == len(expected)


def test_every_contender_is_timed_or_says_why_not(report: dict[str, Any]) -> None:
    for cell in report["cells"]:
        bench = ROWS[cell["row"]]
        ways = able(bench.forward if cell["mode"] == "forward" else bench.backward, torch.device(cell["device"]))
        assert cell["seconds"].keys() | cell["skipped"].keys() == ways.keys()
        assert OURS in cell["seconds"]
        for name, seconds in cell["seconds"].items():
            assert seconds
            assert cell["summary"][name]["best"] == min(seconds) > 0
        if len(ways) > 1:
            assert cell["ratio"] > 0
            assert (cell["of_bandwidth"] > 0) == (cell["bytes_moved"] > 0)  # 0: not known


def test_every_row_runs_on_every_named_matrix(tmp_path: Path) -> None:
    cells = run(tmp_path, "--columns", "3", "--threads", "1")["cells"]
    named = [cell for cell in cells if not ROWS[cell["row"]].matrices]
    assert {cell["matrix"] for cell in named} == set(matrices.DEFAULT)
    assert {cell["row"] for cell in cells} == ROWS.keys()


def test_screen_shows_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    run(tmp_path, "--rows", "spmm", "--matrices", "tridiagonal", "--columns", "3", "--threads", "1")
    assert torch.get_num_threads() == threads
    shown = capsys.readouterr().out
    assert "spmm +bwd" in shown
    assert "torch.sparse" in shown
    assert "GB/s" in shown


def test_every_case_of_the_tests_is_a_row() -> None:
    assert {case.name for case in CASES if case.timed} <= ROWS.keys()


def test_a_new_row_appears_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "brand new", replace(ROWS["sddmm"], columns=(2,)))
    cells = run(tmp_path, "--rows", "brand new", "--matrices", "tridiagonal", "--threads", "1")["cells"]
    assert [(cell["row"], cell["mode"], cell["columns"]) for cell in cells] == [
        ("brand new", mode, 2) for mode in MODES
    ]


@pytest.mark.parametrize("wrong", [1.0 + 1e-3, float("nan")])
def test_a_wrong_contender_stops_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    bench = ROWS["spmm"]
    cheat = {**bench.forward, "cheat": lambda i: bench.forward["scipy"](i) * wrong}
    monkeypatch.setitem(ROWS, "spmm", replace(bench, forward=cheat))
    with pytest.raises(AssertionError, match="cheat differs from gossamer"):
        run(tmp_path, "--rows", "spmm", "--matrices", "tridiagonal", "--threads", "1")


def test_check_compares_shapes_and_lets_a_contender_decline() -> None:
    def decline() -> None:
        raise Skip("too large")

    assert check("t", {"a": lambda: torch.ones(3), "b": decline}, 0.0) == {"b": "too large"}
    with pytest.raises(AssertionError, match="t: b differs from a"):
        check("t", {"a": lambda: torch.ones(3), "b": lambda: torch.ones(4)}, 1.0)


def raced(seconds: dict[str, float], budget: float) -> tuple[list[str], dict[str, list[float]]]:
    """A race by a clock of our own, which each contender sets forward: who ran, and the times."""
    order: list[str] = []
    now = [0.0]

    def run(name: str) -> None:
        order.append(name)
        now[0] += seconds[name]

    return order, race({name: lambda name=name: run(name) for name in seconds}, budget, clock=lambda: now[0])


def test_race_takes_turns() -> None:
    order, samples = raced({"a": 1.0, "b": 2.0, "c": 3.0}, budget=1e-9)
    assert order == list("abcabcabc")
    assert samples == {"a": [1.0] * 2, "b": [2.0] * 2, "c": [3.0] * 2}


def test_race_waits_for_nobody_who_is_far_behind() -> None:
    order, samples = raced({"a": 1.0, "b": 4.0, "c": 40.0}, budget=3.0)
    assert order == list("abcababa")
    assert samples == {"a": [1.0] * 3, "b": [4.0] * 2, "c": [40.0]}
    order, samples = raced(
        {"a": 1.0, "b": 4.0, "c": 20.0}, budget=3.0
    )  # not so long: its first call is not what counts
    assert order == list("abccababa")
    assert samples["c"] == [20.0]
    assert raced({"a": 1.0, "c": 40.0}, budget=41.0)[1]["c"] == [40.0] * 2  # it has not spent its budget


@pytest.mark.parametrize("name", matrices.DEFAULT)
def test_named_matrices_are_canonical_and_repeat(name: str) -> None:
    A, again = matrices.load(name, quick=True), matrices.load(name, quick=True)
    assert A.has_canonical_format
    assert A.indices.dtype == np.int32
    assert (again != A).nnz == 0


@pytest.mark.parametrize(
    "arguments", [["--rows", "nonsense"], ["--matrices", "nowhere.mtx"], ["--dtype", "float31"], ["--threads", "two"]]
)
def test_bad_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert arguments[1].split(".")[0] in capsys.readouterr().err


@pytest.fixture
def device_of_the_tests() -> None:
    if torch.cuda.device_count() == 0:
        pytest.skip("no stand-in for cuda: GOSSAMER_STANDIN is off, or it is not built")


GENERAL = [name for name, bench in ROWS.items() if not bench.matrices]
ON_DEVICE = ",".join([*GENERAL, "GATConv", "call overhead"])


@pytest.mark.usefixtures("device_of_the_tests")
def test_every_general_row_runs_on_a_device(tmp_path: Path, mtx: Path) -> None:
    report = run(tmp_path, "--device", "cuda", "--rows", ON_DEVICE, "--matrices", str(mtx), "--columns", "1,5")
    assert report["bandwidth_gb_per_s"].keys() == {"cuda"}
    assert {cell["row"] for cell in report["cells"]} == set(ON_DEVICE.split(","))
    for cell in report["cells"]:
        assert (cell["device"], cell["threads"]) == ("cuda", 0)
        assert OURS in cell["seconds"]
        assert not HOST_ONLY & (cell["seconds"].keys() | cell["skipped"].keys())
    spmm = next(cell for cell in report["cells"] if (cell["row"], cell["mode"]) == ("spmm", "forward"))
    assert "torch.sparse" in spmm["seconds"]


@pytest.mark.usefixtures("device_of_the_tests")
def test_cupy_is_a_peer_on_a_device_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy in CuPy's place: the calls, and the form of what comes and goes, are CuPy's."""
    for name, module in {
        "cupy": SimpleNamespace(from_dlpack=lambda tensor: tensor.cpu().numpy()),
        "cupyx": SimpleNamespace(scipy=scipy),
        "cupyx.scipy": scipy,
        "cupyx.scipy.sparse": scipy.sparse,
        "cupyx.scipy.sparse.linalg": scipy.sparse.linalg,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    rows = [name for name, bench in ROWS.items() if DEVICE_ONLY & bench.forward.keys()]
    assert {"spmm", "spmm_transposed", "spgemm", "spadd", "solve_triangular"} <= set(rows)
    for name in rows:  # on matrices smaller than the quick ones: the stand-in is slow
        monkeypatch.setitem(ROWS, name, replace(ROWS[name], matrices=("tiny",) if name == "call overhead" else ()))
    small = tmp_path / "small.mtx"
    scipy.io.mmwrite(small, matrices.tridiagonal(20).tocoo())
    report = run(tmp_path, "--device", "cpu,cuda", "--rows", ",".join(rows), "--matrices", str(small), "--columns", "3")
    for cell in report["cells"]:
        if cell["mode"] == "forward":
            assert ("cupy" in cell["seconds"]) == (cell["device"] == "cuda"), cell["skipped"]


def test_devices_are_those_that_torch_has(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.devices() == ["cpu"]  # a stand-in is not asked for unless it is named
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert command.devices() == ["cpu", "cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SystemExit):
        command.main(["--device", "cuda"])
    assert "torch finds no device" in capsys.readouterr().err


def test_a_peer_that_fails_on_a_device_stops_nobody() -> None:
    def fail() -> None:
        raise RuntimeError("not implemented for CUDA\nand a long trace")

    runs = {OURS: lambda: torch.ones(3), "b": fail}
    assert check("t", runs, 0.0, forgiving=True) == {"b": "fails: RuntimeError: not implemented for CUDA"}
    with pytest.raises(RuntimeError, match="not implemented"):
        check("t", runs, 0.0)
    with pytest.raises(RuntimeError, match="not implemented"):
        check("t", {OURS: fail}, 0.0, forgiving=True)


def test_a_device_is_timed_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: done.append("waited"))
    race({"a": lambda: done.append("ran")}, budget=1e-9, least=1, clock=clock_of(torch.device("cuda")))
    assert done[:3] == ["waited", "ran", "waited"]
    assert clock_of(torch.device("cpu")) is time.perf_counter


def test_the_gate_sees_growth_and_new_cases(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"compiler": "1", "level": "avx2", "spmm": "1000", "gat": "1000"}
    assert instructions.compare({**record, "spmm": "1050", "gat": "10"}, record) == []
    grown = instructions.compare({**record, "spmm": "1051"}, record)
    assert grown == ["spmm: 1.05 times as many instructions as on record"]
    assert instructions.compare({**record, "sddmm": "5"}, record) == ["sddmm: not on record"]
    assert "1,051 of     1,000" in capsys.readouterr().out
