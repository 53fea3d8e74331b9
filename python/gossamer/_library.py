# SPDX-License-Identifier: BSD-3-Clause
"""Loads libgossamer.so, which registers every op as torch.ops.gossamer.*."""

import os
from pathlib import Path

import torch

_here = Path(__file__).parent


def _load(library: Path) -> None:
    """Load the library, unless it was built with another torch, of which the loader would only name a symbol."""
    written = library.with_name("torch_version")  # by cmake/torch.cmake
    built_with = written.read_text().strip() if written.exists() else ""
    found = ".".join(torch.__version__.split(".")[:2])
    if built_with and built_with != found:
        raise ImportError(
            f"gossamer was built with torch {built_with}, and torch {torch.__version__} is installed: "
            f"pip install 'torch=={built_with}.*', or build gossamer again with this one"
        )
    torch.ops.load_library(str(library))


# GOSSAMER_LIBRARY names another build, such as one under a sanitizer.
_load(Path(os.environ.get("GOSSAMER_LIBRARY", _here / "lib" / "libgossamer.so")))

cmake_prefix_path = str(_here)
"""Where CMake's find_package(Gossamer) looks: pass it as -DCMAKE_PREFIX_PATH."""


def show_config() -> None:
    """Print what this build is and what it found: vector code, threads, torch, CUDA, solver engines."""
    print(torch.ops.gossamer.show_config())
