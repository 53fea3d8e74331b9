# SPDX-License-Identifier: BSD-3-Clause
"""`pip install .` as a user does it, into a place of its own; then Python imports it, CMake finds it, its commands run.

It builds where `make` has built, with the same compiler, so that nothing is compiled a second time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import gossamer as gs, pathlib, torch
assert pathlib.Path(gs.__file__).is_relative_to({place!r}), gs.__file__
A = gs.poisson(4).requires_grad_()
(A @ torch.ones(4)).sum().backward()
assert A.grad.nnz == 10
prefix = pathlib.Path(gs.cmake_prefix_path)
assert (prefix / "lib/cmake/Gossamer/GossamerConfig.cmake").exists()
assert (prefix / "include/gossamer/gossamer.h").exists()
assert (prefix / "include/gossamer/kernels/spmm.h").exists()
from gossamer import _programs
from gossamer.__main__ import main
place = pathlib.Path(gs.__file__).parent / "programs"
assert _programs.folder() == place
for name in ("report.demo", "bench.__main__", "cases", "examples.learned_jacobi"):
    module = _programs.load(name)
    assert pathlib.Path(module.__file__).is_relative_to(place), module.__file__
assert all((place / "report" / f"page.{{kind}}").exists() for kind in ("html", "css", "js"))
assert main(["info"]) == 0
assert main(["demo", "--only", "nothing"]) == 2
"""


def test_pip_install(tmp_path: Path) -> None:
    place = tmp_path / "site"
    cache = (ROOT / "build/release/CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    assert compiler is not None
    environment = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count()), "CXX": compiler[1]}
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    options = [
        "--disable-pip-version-check",
        "--target",
        str(place),
        f"--config-settings=build-dir={ROOT}/build/release",
    ]
    done = subprocess.run([*command, *options, str(ROOT)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    program = [sys.executable, "-c", PROGRAM.format(place=str(place))]
    ran = subprocess.run(
        program, env={**os.environ, "PYTHONPATH": str(place)}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_fast_math_is_refused(tmp_path: Path) -> None:
    """It would break exp and the rules of NaN in kernels that a program compiles itself."""
    program = tmp_path / "program.cpp"
    program.write_text("#include <gossamer/kernels/softmax.h>\n")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT / 'include'}", "-fsyntax-only", str(program)]
    subprocess.run(command, check=True)
    refused = subprocess.run([*command, "-ffast-math"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "compile without -ffast-math" in refused.stderr
