# SPDX-License-Identifier: BSD-3-Clause
"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when it is whole and on the disk; until then an old one stays."""
    target = path.resolve()
    umask = os.umask(0)
    os.umask(umask)
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask
    file = tempfile.NamedTemporaryFile(dir=target.parent, prefix=".gossamer-", suffix=".tmp", delete=False)  # noqa: SIM115
    try:
        with file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(file.name).replace(target)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
