# SPDX-License-Identifier: BSD-3-Clause
"""Disks that are full or cannot be written: every writer raises OSError, the old file stays, nothing is beside it.

A full disk is a limit of the process on the size of a file (RLIMIT_FSIZE), met at every length; one that cannot be
written is a folder of /proc, where nobody, not even root, may make a file.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

import gossamer as gs
from gossamer._npz import write_npz
from gossamer.nn._checkpoint import Checkpoint
from gossamer.nn.node_classifier import RECIPES

A = gs.poisson((20, 20), dtype=torch.float64)
GRAPH = gs.datasets.stochastic_block_model((60, 60), seed=0)
DENSE = torch.arange(600, dtype=torch.float64).reshape(200, 3)

WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.mtx": lambda path: gs.write_mtx(path, A),
    "pattern.mtx": lambda path: gs.write_mtx(path, A.pattern),
    "dense.mtx": lambda path: gs.write_mtx(path, DENSE),
    "a.mtx.gz": lambda path: gs.write_mtx(path, A),
    "a.npz": lambda path: gs.save_npz(path, A, compressed=False),
    "packed.npz": lambda path: gs.save_npz(path, A),
    "named.npz": lambda path: write_npz(path, {"dense": DENSE}),
    "state.pt": lambda path: save_state(path),
}


def save_state(path: Path) -> None:
    """What a training with --resume writes after an epoch."""
    checkpoint = Checkpoint(path.with_name("none"), RECIPES["gcn"], 0, GRAPH)
    checkpoint.path = path
    checkpoint.save({"net": {"weight": DENSE}, "losses": [1.0] * 100})


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may become larger; what would be a signal is an error."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk(tmp_path: Path, name: str) -> None:
    write, path = WRITERS[name], tmp_path / name
    write(path)
    good = path.read_bytes()
    for size in [0, 1, len(good) // 2, len(good) - 1]:
        path.write_bytes(b"old")
        with room_for(size), pytest.raises(OSError):  # noqa: PT011
            write(path)
        assert path.read_bytes() == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == [name]
    write(path)
    assert len(path.read_bytes()) == len(good)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("place", ["/proc/self/fdinfo", "/no/such/folder"])
def test_a_folder_that_takes_no_file(name: str, place: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011
        WRITERS[name](Path(place) / name)


@pytest.mark.parametrize("name", WRITERS)
def test_a_device_is_no_file(name: str) -> None:
    """/dev/full says that it is full only when it is written to; it stays a device."""
    if name.endswith((".npz", ".pt")):
        pytest.skip("the name of an archive is its own")
    with pytest.raises((OSError, ValueError)):
        WRITERS[name](Path("/dev/full"))
    assert Path("/dev/full").is_char_device()
