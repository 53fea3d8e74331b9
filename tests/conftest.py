# SPDX-License-Identifier: BSD-3-Clause
"""Gives the tests a stand-in `cuda:0` (host memory, emulated kernels) before torch is imported: see cuda_standin.py."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import cuda_standin

# OpenMP's threads spin while they wait, and beside other processes they spin in their way. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # bench, cases, examples and report are packages there

# Another folder than the release preset's is for a build on the side.
BUILD = Path(os.environ.get("GOSSAMER_BUILD", ROOT / "build" / "release"))
STANDIN = BUILD / "libgossamer_standin.so"
WITH_STANDIN = os.environ.get("GOSSAMER_STANDIN") != "off"
if STANDIN.exists() and WITH_STANDIN:
    cuda_standin.load(str(STANDIN))

import torch  # noqa: E402

# Without the stand-in, "cuda" is the GPU, where there is one: scripts/gpu_report.py.
DEVICES = ["cpu", "cuda"] if WITH_STANDIN or torch.cuda.is_available() else ["cpu"]

DATA = Path(os.environ.get("GOSSAMER_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    if request.param == "cuda" and torch.cuda.device_count() == 0:
        pytest.skip("no stand-in for cuda: GOSSAMER_STANDIN is off, or it is not built")
    return torch.device(request.param, 0) if request.param == "cuda" else torch.device("cpu")


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder with the libraries that tests load."""
    return BUILD


@pytest.fixture
def data() -> Path:
    """Real graphs and matrices that do not belong to the project."""
    if not DATA.exists():
        pytest.skip(f"no data at {DATA}: set GOSSAMER_DATA")
    return DATA


@pytest.fixture(scope="session")
def example() -> Callable[[str], ModuleType]:
    """Imports a program of examples/ by its name."""

    return lambda name: importlib.import_module(f"examples.{name}")


@pytest.fixture(autouse=True)
def same_threads_after():
    """A test that sets the number of threads leaves it as it was."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
