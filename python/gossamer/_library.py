# SPDX-License-Identifier: BSD-3-Clause
"""Loads libgossamer.so, which registers every op as torch.ops.gossamer.*."""

import os
from pathlib import Path

import torch

_here = Path(__file__).parent
# GOSSAMER_LIBRARY names another build, such as one under a sanitizer.
torch.ops.load_library(os.environ.get("GOSSAMER_LIBRARY", str(_here / "lib" / "libgossamer.so")))

cmake_prefix_path = str(_here)
"""Where CMake's find_package(Gossamer) looks: pass it as -DCMAKE_PREFIX_PATH."""


def show_config() -> None:
    """Print what this build is and what it found: vector code, threads, torch, CUDA, solver engines."""
    print(torch.ops.gossamer.show_config())
