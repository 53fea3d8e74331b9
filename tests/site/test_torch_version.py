# SPDX-License-Identifier: BSD-3-Clause
"""Another torch than the library's is refused in a sentence, at import and when Gossamer is configured; what
find_package says is in test_install. The other torch is one in name only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch_in_name import sentence, torch_named

ROOT = Path(__file__).parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["2.12.1", "2.14.0+cpu", "3.13.0"])
def test_import(version: str) -> None:
    done = run(sys.executable, "-c", f"import torch; torch.__version__ = {version!r}; import gossamer")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: gossamer was built with torch 2.13, and torch {version} is installed: "
        "pip install 'torch==2.13.*', or build gossamer again with this one"
    )


def test_import_with_another_patch() -> None:
    """torch keeps its C++ interface within 2.13."""
    done = run(sys.executable, "-c", "import torch; torch.__version__ = '2.13.7+cu130'; import gossamer")
    assert done.returncode == 0, done.stderr


def test_configure(tmp_path: Path) -> None:
    torch = torch_named("2.12.1", tmp_path / "torch")
    done = run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", f"-DTorch_DIR={torch}")
    assert done.returncode != 0
    assert f"Gossamer builds with torch 2.13, and the one in {torch} is 2.12.1: pip install torch==2.13.0." in sentence(
        done.stderr
    )
    assert not (tmp_path / "build" / "lib" / "torch_version").exists()
