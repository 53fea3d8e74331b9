# SPDX-License-Identifier: BSD-3-Clause
"""Nested dissection by METIS alone: PARDISO, which is asked first, is hidden from the process. Its library may also be
one that fails, or one of 64 bits: then the order is that of minimum degree, as without it."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CC = os.environ.get("CC") or shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler, which hides libraries from a process")

# Loaded before all else, it answers for dlopen: a library that is named in HIDDEN is not there.
HIDE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
  static void *(*others)(const char *, int);
  if (!others) others = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  char hidden[200];
  strncpy(hidden, getenv("HIDDEN") ? getenv("HIDDEN") : "", sizeof hidden - 1);
  hidden[sizeof hidden - 1] = 0;
  for (char *word = strtok(hidden, ","); name && word; word = strtok(0, ","))
    if (strstr(name, word)) return 0;
  return others(name, flags);
}
"""

# A METIS of another width, or one that fails.
STANDIN = r"""
#include <stdint.h>
int METIS_SetDefaultOptions(INTEGER *options) {
  for (int k = 0; k < 40; ++k) options[k] = -1;
  return 1;
}
int METIS_NodeND(INTEGER *n, INTEGER *ptr, INTEGER *to, INTEGER *weights, INTEGER *options, INTEGER *row, INTEGER *at) {
  if (sizeof(INTEGER) == 8) __builtin_trap();  /* must not be called */
  for (INTEGER k = 0; k < *n; ++k) row[k] = -7;
  return -2;  /* METIS_ERROR_INPUT */
}
"""

# The entries of the factor of a grid of 20³ with 27 neighbours, after a check of the factor itself.
PROGRAM = """
import scipy.sparse as sp, torch, gossamer as gs
assert "pardiso " not in torch.ops.gossamer.show_config(), torch.ops.gossamer.show_config()
line = sp.diags_array([-1.0, 3.0, -1.0], offsets=[-1, 0, 1], shape=(20, 20))
A = gs.from_scipy((sp.kron(sp.kron(line, line), line) + 20 * sp.eye_array(20**3)).tocsr())
L, perm = gs.linalg.cholesky(A)
assert sorted(perm.tolist()) == list(range(20**3))
x = torch.linspace(0, 1, 20**3, dtype=torch.float64)
torch.testing.assert_close(L @ (L.T @ x[perm]), (A @ x)[perm])
print(L.nnz, hash(tuple(perm.tolist())))
"""


def built(folder: Path, name: str, source: str, *flags: str) -> Path:
    file = folder / f"{name}.c"
    file.write_text(source)
    assert CC is not None
    subprocess.run([CC, "-shared", "-fPIC", "-O1", *flags, "-o", folder / name, file, "-ldl"], check=True)
    return folder / name


def factor(folder: Path, hidden: str, libraries: Path | None = None) -> tuple[int, int]:
    """Entries of the factor and a number of its order, in a process of its own."""
    env = os.environ | {"LD_PRELOAD": str(built(folder, "hide.so", HIDE)), "HIDDEN": hidden}
    if libraries is not None:
        env["LD_LIBRARY_PATH"] = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    out = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr[-2000:]
    entries, order = out.stdout.split()
    return int(entries), int(order)


@pytest.fixture(scope="module")
def minimum_degree(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, int]:
    """Without any library that dissects."""
    return factor(tmp_path_factory.mktemp("none"), "mkl_rt,libmetis")


@pytest.mark.skipif(not ctypes.util.find_library("metis"), reason="no libmetis (Debian: libmetis5)")
def test_metis_dissects(tmp_path: Path, minimum_degree: tuple[int, int]) -> None:
    assert factor(tmp_path, "mkl_rt")[0] < 0.9 * minimum_degree[0]


@pytest.mark.parametrize("integer", ["int32_t", "int64_t"], ids=["it fails", "64 bits"])
def test_another_metis_is_none(tmp_path: Path, integer: str, minimum_degree: tuple[int, int]) -> None:
    built(tmp_path, "libmetis.so.5", STANDIN, f"-DINTEGER={integer}")
    assert factor(tmp_path, "mkl_rt", tmp_path) == minimum_degree
