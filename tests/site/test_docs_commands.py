# SPDX-License-Identifier: BSD-3-Clause
"""What the pages tell the reader to type or to open exists: targets of make, commands and their options, files."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

import bench.__main__
import gossamer.__main__

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
FOLDERS = "bench|cases|cmake|docs|examples|include|python|report|scripts|src|tests"


def code(page: str) -> list[str]:
    """Lines of shell blocks, and code in the text."""
    text = (ROOT / page).read_text()
    fenced = re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for language, block in fenced if language in ("", "sh") for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [*lines, *re.findall(r"`([^`\n]+)`", prose)]


def commands(page: str, start: str) -> list[list[str]]:
    """The words after `start`, up to a comment or the end of the command."""
    found = (re.search(rf"(?:^|&& ){start}(?= |$)(.*?)(?:&&|$)", line) for line in code(page))
    return [shlex.split(match[1], comments=True) for match in found if match]


def options(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def test_commands_are_found() -> None:
    assert ["demo"] in commands("docs/install.md", "make")
    assert ["bench", "ARGS=--quick"] in commands("docs/performance.md", "make")
    assert ["train", "--model", "gat", "--data", "synthetic", "--runs", "3"] in commands(
        "docs/for_pyg_users.md", "gossamer"
    )
    assert ["FOLDER"] in commands("docs/for_pyg_users.md", r"python -m bench\.epochs")


@pytest.mark.parametrize("page", PAGES)
def test_make_targets(page: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(page, "make"):
        assert {word for word in words if "=" not in word} <= targets
        for word in words:
            if word.startswith("ARGS="):
                bench.__main__.parse(shlex.split(word.removeprefix("ARGS=")))


@pytest.mark.parametrize("page", PAGES)
def test_gossamer_commands(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, *words in filter(None, commands(page, "(?:python -m )?gossamer")):
        with pytest.raises(SystemExit) as done:
            gossamer.__main__.main([command] if command == "--version" else [command, "--help"])
        assert done.value.code == 0, f"no gossamer {command}"
        assert options(words) <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))


@pytest.mark.parametrize("page", PAGES)
def test_benchmarks(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands(page, "python -m bench"):
        bench.__main__.parse(words)
    for module in re.findall(r"python -m (bench(?:\.\w+)+)", "\n".join(code(page))):
        with pytest.raises(SystemExit):
            importlib.import_module(module).main(["--help"])
        known = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
        for words in commands(page, f"python -m {module}"):
            assert options(words) <= known


@pytest.mark.parametrize("page", PAGES)
def test_files(page: str) -> None:
    for line in code(page):
        for path in re.findall(rf"(?:^|\s)((?:{FOLDERS})/[\w./*-]*)", line):
            if Path(path).stem != "x":  # the op that CONTRIBUTING.md adds
                assert list(ROOT.glob(path)), f"{page} names {path}"
