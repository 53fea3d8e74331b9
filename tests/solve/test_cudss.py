# SPDX-License-Identifier: BSD-3-Clause
"""The engine cuDSS: solves by a stand-in for it, and our declarations beside its header, where that is installed
(`pip install nvidia-cudss-cu13`, or the folder GOSSAMER_CUDSS names, in which are include and lib)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import cuda_standin

ROOT = Path(__file__).parents[2]
CXX = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT / 'src' / 'torch'}"]
CUDSS = Path(os.environ.get("GOSSAMER_CUDSS", Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"))
NVCC = shutil.which("nvcc")

# Ours, and the words of cudss.h for it.
CONSTANTS = """version VERSION_MAJOR, success STATUS_SUCCESS, not_supported STATUS_NOT_SUPPORTED,
    analysis PHASE_ANALYSIS, factorization PHASE_FACTORIZATION, solve PHASE_SOLVE, general MTYPE_GENERAL,
    positive_definite MTYPE_SPD, full MVIEW_FULL, lower MVIEW_LOWER, zero BASE_ZERO, by_columns LAYOUT_COL_MAJOR,
    solve_mode CONFIG_SOLVE_MODE, normal SOLVE_MODE_NORMAL, transposed SOLVE_MODE_TRANSPOSE, info DATA_INFO,
    replaced_pivots DATA_NPIVOTS"""
FUNCTIONS = dict(re.findall(r'find\("(cudss\w+)", (\w+)\)', (ROOT / "src/torch/solve/device/cudss.cpp").read_text()))


def program() -> str:
    """Compiles if every constant has its number, and every function arguments of the same kinds and sizes."""
    lines = [
        '#include "solve/device/cudss_declarations.h"',
        "#include <cudss.h>",
        "#include <type_traits>",
        "namespace abi = gossamer::cudss_abi;",
        "template <class A, class B> constexpr bool like = sizeof(A) == sizeof(B) &&",
        "    std::is_pointer_v<A> == std::is_pointer_v<B>;",
        "template <class R, class... A, class S, class... B>",
        "constexpr bool alike(R (*)(A...), S (*)(B...)) {",
        "  if constexpr (sizeof...(A) != sizeof...(B)) return false;",
        "  else return like<R, S> && (like<A, B> && ...);",
        "}",
    ]
    for pair in CONSTANTS.split(","):
        our, their = pair.split()
        lines.append(f"static_assert(static_cast<int>(abi::{our}) == static_cast<int>(CUDSS_{their}));")
    lines.append("static_assert(abi::float64 == CUDA_R_64F && abi::int32 == CUDA_R_32I);")
    lines.append(
        "static_assert(abi::major == MAJOR_VERSION && abi::minor == MINOR_VERSION && abi::patch == PATCH_LEVEL);"
    )
    for theirs, ours in FUNCTIONS.items():
        lines.append(f"static_assert(alike(decltype(abi::Functions::{ours}){{}}, decltype(&{theirs}){{}}));")
    return "\n".join([*lines, ""])


def test_all_functions_are_found_by_name() -> None:
    assert len(FUNCTIONS) == 14


@pytest.mark.skipif(not (CUDSS / "include" / "cudss.h").exists() or NVCC is None, reason="no cudss.h, or no CUDA")
def test_declarations_are_those_of_the_header(tmp_path: Path) -> None:
    assert NVCC is not None
    source = tmp_path / "declarations.cpp"
    source.write_text(program())
    # nvcc hands a .cpp to the host's compiler, and knows where CUDA's own headers are.
    command = [NVCC, "-std=c++20", f"-I{ROOT / 'src' / 'torch'}", f"-I{CUDSS / 'include'}", "-c", str(source)]
    done = subprocess.run([*command, "-o", str(tmp_path / "object.o")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not (CUDSS / "lib" / "libcudss.so.1").exists(), reason="no libcudss.so.1")
def test_the_library_has_the_functions() -> None:
    listed = subprocess.run(["nm", "-D", CUDSS / "lib" / "libcudss.so.1"], capture_output=True, text=True, check=True)
    defined = set(re.findall(r" T (cudss\w+)", listed.stdout))
    assert set(FUNCTIONS) <= defined


@pytest.mark.skipif(cuda_standin.library is None, reason="no stand-in for cuda")
def test_solves_by_a_stand_in(tmp_path: Path, build: Path) -> None:
    library = tmp_path / "libcudss.so.1"
    source = Path(__file__).parent / "cudss_standin.cpp"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libcudss.so.1"]
    subprocess.run([*CXX, *flags, str(source), "-o", str(library)], check=True)
    checks = [sys.executable, Path(__file__).parent / "cudss_checks.py", build / "libgossamer_standin.so", library]
    done = subprocess.run(checks, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "transposes refused ok"
