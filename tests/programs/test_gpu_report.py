# SPDX-License-Identifier: BSD-3-Clause
"""scripts/gpu_report.py, with the stand-in in the place of a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def report(out: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "scripts" / "gpu_report.py"), "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    text = (out / "gpu_report.md").read_text()
    assert text in done.stdout, done.stderr
    return done.returncode, text


@pytest.fixture
def standin(build: Path) -> str:
    library = build / "libgossamer_standin.so"
    if not library.exists():
        pytest.skip("no stand-in for cuda: it is not built")
    return str(library)


QUICK = "--quick --seconds 0.001 --malloc default --rows 'call overhead'"


def test_the_report_tells_environment_tests_and_times(tmp_path: Path, standin: str) -> None:
    only = "test_equals_dense and spmm"
    code, text = report(tmp_path, "--standin", standin, "--only", only, "--bench", QUICK)
    assert code == 0, text
    assert "Emulated: no GPU took part" in text
    assert "cuda kernels: emulated; 1 device" in text
    assert " 0 failed, 0 skipped." in text
    assert "call overhead" in text.partition("## Times")[2]
    assert {cell["device"] for cell in json.loads((tmp_path / "bench.json").read_text())["cells"]} == {"cuda"}


def test_no_test_is_no_success(tmp_path: Path, standin: str) -> None:
    code, text = report(tmp_path, "--standin", standin, "--only", "no_such_test", "--bench", "none")
    assert code == 1
    assert "0 passed" in text


def test_without_a_device_it_says_so(tmp_path: Path) -> None:
    code, text = report(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert code == 1
    assert "torch finds no CUDA device" in text
    assert "## Tests" not in text
