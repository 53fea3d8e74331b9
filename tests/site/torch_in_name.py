# SPDX-License-Identifier: BSD-3-Clause
"""A torch that CMake finds, of any version, in which there is nothing."""

from __future__ import annotations

from pathlib import Path


def torch_named(version: str, folder: Path) -> Path:
    """A folder in which CMake finds a torch of this version, without anything."""
    folder.mkdir()
    (folder / "TorchConfig.cmake").write_text("add_library(torch INTERFACE IMPORTED)\n")
    (folder / "TorchConfigVersion.cmake").write_text(
        f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
    )
    return folder


def sentence(text: str) -> str:
    """CMake breaks the lines of a message."""
    return " ".join(text.split())
