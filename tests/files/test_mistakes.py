# SPDX-License-Identifier: BSD-3-Clause
"""Files of either kind that cannot be opened or written: an error that names what is wrong, and the old file stays."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from comparison import same_matrix

import gossamer as gs


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    A = gs.eye(2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError, match=r"none.mtx"):
        gs.read_mtx(tmp_path / "none.mtx")
    with pytest.raises(IsADirectoryError):
        gs.read_mtx(tmp_path)
    with pytest.raises(ValueError, match=r"pipe: is not a regular file"):
        gs.read_mtx(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        gs.write_mtx(tmp_path / "none" / "a.mtx", A)
    with pytest.raises(IsADirectoryError):
        gs.write_mtx(tmp_path, A)
    with pytest.raises(FileNotFoundError):
        gs.load_npz(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        gs.save_npz(tmp_path / "none" / "a.npz", A)


def test_bad_arguments(tmp_path: Path) -> None:
    path, A = tmp_path / "a.mtx", gs.eye(2)
    tall = gs.eye(3, 2)
    mistakes = [
        (
            lambda: gs.write_mtx(path, [[1]]),
            TypeError,
            "A must be a SparseMatrix, a Pattern or a torch.Tensor, not list",
        ),
        (lambda: gs.write_mtx(path, torch.ones(3)), ValueError, "wants a matrix, not 1 dimensions"),
        (lambda: gs.write_mtx(path, A, symmetry="odd"), ValueError, "symmetry must be general, symmetric, skew"),
        (lambda: gs.write_mtx(path, tall, symmetry="symmetric"), ValueError, "A is 3 x 2, so it cannot be symmetric"),
        (lambda: gs.write_mtx(path, A, symmetry="skew-symmetric"), ValueError, "A is not skew-symmetric"),
        (lambda: gs.write_mtx(path, A, symmetry="hermitian"), ValueError, "hermitian is for complex values"),
        (lambda: gs.write_mtx(path, A.pattern, symmetry="skew-symmetric"), ValueError, "a pattern has no values"),
        (lambda: gs.write_mtx(path, torch.ones(2, 3).triu(), symmetry="symmetric"), ValueError, "A is 2 x 3"),
        (lambda: gs.write_mtx(path, torch.ones(2, 2).triu(), symmetry="symmetric"), ValueError, "A is not symmetric"),
        (lambda: gs.write_mtx(path, A.with_values(torch.ones(2, 3))), ValueError, "values has shape (2, 3)"),
        (lambda: gs.save_npz(path, torch.ones(2, 2)), TypeError, "save_npz: A must be a SparseMatrix, not Tensor"),
        (lambda: gs.save_npz(path, A.with_values(torch.ones(2, 3))), ValueError, "values has shape (2, 3)"),
        (lambda: gs.save_npz(path, A.to(torch.bfloat16)), TypeError, "save_npz: NumPy has no bfloat16"),
    ]
    for mistake, kind, message in mistakes:
        with pytest.raises(kind) as caught:
            mistake()
        assert message in str(caught.value)
    assert not list(tmp_path.iterdir())
    gs.write_mtx(path, A.to(torch.complex64))
    with pytest.raises(TypeError, match=r"is complex, which does not fit Float"):
        gs.read_mtx(path, dtype=torch.float32)


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
def test_writing_is_atomic(tmp_path: Path, name: str) -> None:
    """A full disk (here: a limit on the size of files) leaves the old file, and nothing else."""
    path = tmp_path / name
    write = gs.save_npz if name.endswith("npz") else gs.write_mtx
    write(path, gs.eye(3))
    path.chmod(0o640)
    old = path.read_bytes()
    script = f"""
        import errno, resource, torch, gossamer as gs
        A = gs.random(500, 500, 0.5)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        try:
            gs.{write.__name__}({str(path)!r}, A)
        except OSError as error:
            assert error.errno == errno.EFBIG, error
        else:
            raise SystemExit("it was written")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == old
    write(path, gs.eye(4))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link.npz").symlink_to(path)
    if name == "a.npz":
        write(tmp_path / "link.npz", gs.eye(5))
        assert (tmp_path / "link.npz").is_symlink()
        assert gs.load_npz(path).shape == (5, 5)


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    gs.write_mtx(path, gs.eye(3))
    script = f"""
        import resource, signal, gossamer as gs
        A = gs.random(500, 500, 0.5)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        gs.write_mtx({str(path)!r}, A)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)]).returncode < 0
    same_matrix(gs.eye(3, dtype=torch.float64), gs.read_mtx(path))
