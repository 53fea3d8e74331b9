# SPDX-License-Identifier: BSD-3-Clause
"""Every program of examples/ has the shape that the report relies on; what each finds is tested beside, by its name."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from matplotlib import style
from matplotlib.figure import Figure

NAMES = sorted(path.stem for path in (Path(__file__).parents[2] / "examples").glob("[a-z]*.py"))


@pytest.fixture(scope="module", params=NAMES)
def program(request: pytest.FixtureRequest, example: Callable[[str], ModuleType]) -> ModuleType:
    return example(request.param)


@pytest.fixture(scope="module")
def progress() -> list[float]:
    return []


@pytest.fixture(scope="module")
def result(program: ModuleType, progress: list[float]) -> Any:
    progress.clear()
    return program.compute(**program.QUICK, tick=progress.append)


def test_names_and_budgets(program: ModuleType) -> None:
    assert isinstance(program.TITLE, str)
    assert isinstance(program.SOURCE, str)
    parameters = inspect.signature(program.compute).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    required = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    for budget in program.QUICK, program.DEFAULT, program.FULL:
        assert required <= set(budget) <= set(parameters) - {"seed", "tick"}
    assert parameters["seed"].default == 0


def test_progress_goes_from_nothing_to_all(result: Any, progress: list[float]) -> None:
    assert progress == sorted(progress)
    assert progress[0] >= 0
    assert progress[-1] == pytest.approx(1)


def test_results_can_be_kept(program: ModuleType, result: Any) -> None:
    file = io.BytesIO()
    torch.save(vars(result), file)
    file.seek(0)
    kept = program.Result(**torch.load(file, weights_only=True))
    assert program.summary(kept) == program.summary(result)
    for name, value in vars(result).items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, getattr(kept, name)) or value.isnan().any()


def test_summary_is_sentences(program: ModuleType, result: Any) -> None:
    sentences = program.summary(result)
    assert sentences
    assert all(sentence.rstrip(")").endswith(".") for sentence in sentences)
    assert any(map(str.isdigit, "".join(sentences)))


def test_figures_are_complete_on_a_dark_page(program: ModuleType, result: Any) -> None:
    with style.context("dark_background"):
        figures = program.figures(result)
        assert list(figures) == list(program.captions())
        for figure in figures.values():
            assert isinstance(figure, Figure)
            assert any(axes.get_title() for axes in figure.axes)
            assert any(axes.get_xlabel() for axes in figure.axes)
            assert any(axes.get_ylabel() for axes in figure.axes)
            figure.savefig(io.BytesIO(), dpi=30)  # a missing glyph warns, and a warning is an error


def test_main_prints_and_draws(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "DEFAULT", program.QUICK)
    program.main(["--out", str(tmp_path / "new" / "folder"), "--seed", "3"])
    printed = capsys.readouterr().out
    for name in program.captions():
        path = tmp_path / "new" / "folder" / f"{name}.png"
        assert path.read_bytes().startswith(b"\x89PNG")
        assert str(path) in printed.replace("\n", "")
