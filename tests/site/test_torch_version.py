# SPDX-License-Identifier: BSD-3-Clause
"""Another torch than the library's is refused in a sentence: at import, when Gossamer is configured, and when a program
that uses it is. The other torch is one in name only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def torch_named(version: str, folder: Path) -> Path:
    """A folder in which CMake finds a torch of this version, without anything."""
    folder.mkdir()
    (folder / "TorchConfig.cmake").write_text("add_library(torch INTERFACE IMPORTED)\n")
    (folder / "TorchConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
    )
    return folder


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


def sentence(text: str) -> str:
    """CMake breaks the lines of a message."""
    return " ".join(text.split())


def test_configure(tmp_path: Path) -> None:
    torch = torch_named("2.12.1", tmp_path / "torch")
    done = run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", f"-DTorch_DIR={torch}")
    assert done.returncode != 0
    assert f"Gossamer builds with torch 2.13, and the one in {torch} is 2.12.1: pip install torch==2.13.0." in sentence(
        done.stderr
    )
    assert not (tmp_path / "build" / "lib" / "torch_version").exists()


def test_configure_a_program(tmp_path: Path, build: Path) -> None:
    """What a C++ user sees, whose CMakeLists.txt says find_package(Gossamer)."""
    torch = torch_named("2.14.0", tmp_path / "torch")
    assert run("cmake", "--install", build, "--prefix", tmp_path / "prefix").returncode == 0
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(P LANGUAGES CXX)\nfind_package(Gossamer REQUIRED)\n"
    )
    paths = f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}", f"-DTorch_DIR={torch}"
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", *paths)
    assert done.returncode != 0
    assert f"This Gossamer was built with torch 2.13, and the one in {torch} is 2.14.0:" in sentence(done.stderr)
