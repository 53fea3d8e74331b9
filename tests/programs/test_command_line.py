# SPDX-License-Identifier: BSD-3-Clause
"""The command line: help, exit codes, and one line instead of a traceback for a user's mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gossamer
from gossamer import _programs
from gossamer.__main__ import main
from gossamer._commands import train
from report import sections

ROOT = Path(__file__).parents[2]
COMMANDS = ["info", "demo", "train", "bench", "export-golden"]


def gossamer_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}  # not the root: the command finds the programs
    command = [sys.executable, "-W", "error", "-m", "gossamer", *arguments]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)


def help_of(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.fixture
def no_mkl(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """MKL is not loaded beside the stand-in; the list tells how often it would have been."""
    loaded: list[str] = []
    monkeypatch.setattr(_programs.load("bench.rows.products"), "load_mkl", lambda: loaded.append("mkl"))
    return loaded


def test_help(no_mkl: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = help_of(capsys=capsys)
    assert all(f"\n    {command}" in told for command in COMMANDS)
    told = help_of("demo", capsys=capsys)
    assert all(option in told for option in ("--out", "--full", "--data", "--only", "--seed", "--fresh"))
    assert "--rows" in help_of("bench", capsys=capsys)
    assert not no_mkl


@pytest.mark.parametrize("arguments", [[], ["sew"], ["demo", "--colour"], ["demo", "--seed", "one"], ["info", "all"]])
def test_calls_that_cannot_be_read(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("usage: gossamer")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """What a user may give by mistake."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    graph = tmp_path / "corrupt" / "citeseer"
    graph.mkdir(parents=True)
    (graph / "adjacency.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n9 9\n")
    (tmp_path / "out" / "cache").mkdir(parents=True)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "cache").write_text("a file")
    return {path.name: str(path) for path in tmp_path.iterdir()} | {"nowhere": str(tmp_path / "nowhere")}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("demo --out {file}", "--out: {file} is a file"),
        ("demo --out {file}/below", "{file}/below"),
        ("demo --out {taken}", "{taken}/cache"),
        ("demo --out {out} --data {nowhere}", "--data: {nowhere} has none of cora, citeseer, pubmed"),
        ("demo --out {out} --data {empty}", "--data: {empty} has none of"),
        ("demo --out {out} --data {corrupt}", "{corrupt}/citeseer/adjacency.mtx"),
        ("demo --out {out} --only heavyball,knitting", "no section knitting; there are learned_jacobi, heavyball"),
        ("demo --out {out} --only ,", "no section given"),
        ("train --data {nowhere}", "{nowhere}"),
        ("train --data {corrupt}/citeseer", "{corrupt}/citeseer/adjacency.mtx"),
        ("train --data synthetic --runs -2", "--runs must be in 1 … 2147483647, not -2"),
        ("train --data synthetic --seed 99999999999999999999", "--seed must be in 0 … 2^63 - runs"),
        ("train --data synthetic --seed -1", "--seed must be in 0 … 2^63 - runs"),
        ("train --data synthetic --hidden 99999999999999999999", "--hidden must be in 1 … 2147483647"),
        ("train --data synthetic --dropout 2", "dropout"),
        ("export-golden --data {nowhere} --out {out}/golden.npz", "{nowhere}"),
        ("export-golden --data synthetic --out {nowhere}/golden.npz", "{nowhere}"),
        ("export-golden --data synthetic --heads 0 --out {out}/golden.npz", "heads"),
    ],
)
def test_mistakes_end_with_one_line(
    call: str, told: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [word.format(**places) for word in call.split()]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"gossamer {arguments[0]}: ")
    assert told.format(**places) in error
    assert error.count("\n") == 1


def test_a_folder_that_may_not_be_written(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert main(["demo", "--out", places["out"]]) == 2
    assert capsys.readouterr().err == f"gossamer demo: --out: {places['out']} cannot be written\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "report"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "gossamer demo: needs jinja2; pip install 'gossamer-sparse[demo]'\n"


def test_a_bug_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["gossamer"], "show_config", lambda: {}["bug"])
    with pytest.raises(KeyError):
        main(["info"])


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:  # not the signal, which a job in the background ignores
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "train", interrupt)
    assert main(["train", "--data", "synthetic"]) == 130
    assert capsys.readouterr().err.endswith("gossamer train: interrupted\n")


def test_info() -> None:
    done = gossamer_process("info")
    assert done.returncode == 0, done.stderr
    for line in ("vector code: ", "threads: ", "solver engines: gossamer", "devices: cpu", "packages: numpy "):
        assert line in done.stdout
    assert f"gossamer: {gossamer.__version__}" in done.stdout
    assert f"programs: {ROOT}" in done.stdout


def test_the_sections_of_help_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """The help names sections without importing matplotlib: they are still the right ones."""
    named = help_of("demo", capsys=capsys).split("such as ")[1].split()[0]
    assert set(named.split(",")) <= sections.SECTIONS.keys()


def test_programs_are_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some package leaves a folder of cases or of examples among the installed ones."""
    for plain in ("examples", "cases"):
        (tmp_path / plain).mkdir()
        (tmp_path / plain / "__init__.py").touch()
        for name in [name for name in sys.modules if name.partition(".")[0] == plain]:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert _programs.load("cases.row").__file__ == str(ROOT / "cases" / "row.py")
    assert _programs.load("examples.learned_jacobi").__file__ == str(ROOT / "examples" / "learned_jacobi.py")


def test_bench_is_the_benchmark(no_mkl: list[str], tmp_path: Path) -> None:
    matrix = tmp_path / "small.mtx"
    gossamer.write_mtx(matrix, gossamer.poisson(5))
    words = f"--quick --rows spmm --columns 1 --seconds 0.001 --threads 1 --malloc default --matrices {matrix}"
    assert main(["bench", *words.split(), "--out", str(tmp_path)]) == 0
    assert [cell["matrix"] for cell in json.loads((tmp_path / "bench.json").read_text())["cells"]] == [str(matrix)] * 2
    assert no_mkl == ["mkl"]


def test_bench_passes_its_arguments_on(
    no_mkl: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--rows", "knitting"])
    assert stop.value.code == 2
    assert "no knitting: choose from" in capsys.readouterr().err
    given: list[str] = []
    monkeypatch.setattr(_programs.load("bench.__main__"), "main", lambda rest: given.extend(rest) or 3)
    assert main(["bench", "--scaling", "--seed", "3", "word", "--out", "there"]) == 3
    assert given == ["--scaling", "--seed", "3", "word", "--out", "there"]
    assert no_mkl == ["mkl", "mkl"]


def test_a_network_that_does_not_fit_memory_ends_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--data", "synthetic", "--hidden", "2147483647", "--heads", "2147483647"]) == 1
    assert capsys.readouterr().err.startswith("gossamer train: not enough memory")


def test_a_terminal_without_the_characters_still_gets_the_text() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "gossamer", "train", "--data", "synthetic", "--runs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert done.stderr == "gossamer train: --runs must be in 1 ? 2147483647, not 0\n"
