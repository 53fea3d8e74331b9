# SPDX-License-Identifier: BSD-3-Clause
"""Every allocation of every row of the table is failed once: see fail_every_allocation.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("allocator") / "liballocations.so"
    compiler = os.environ.get("CXX", "c++")
    options = ["-std=c++20", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra"]
    subprocess.run([compiler, *options, HERE / "allocations.cpp", "-o", library, "-ldl"], check=True)
    return library


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is preloaded into glibc's programs")
def test_no_allocation_is_fatal(allocator: Path) -> None:
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer has an allocator of its own")
    environment = {**os.environ, "LD_PRELOAD": str(allocator), "OMP_NUM_THREADS": "1", "GOSSAMER_STANDIN": "off"}
    command = [sys.executable, "-W", "ignore", HERE / "fail_every_allocation.py", allocator]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
    told = done.stdout.splitlines()[-1].split()
    assert int(told[0]) > 3000  # an allocator that is not there fails nothing
