# SPDX-License-Identifier: BSD-3-Clause
"""What reads files in Python: it gives what it should or raises ValueError, within the memory that a file may take."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse
import torch

import gossamer as gs
from gossamer.__main__ import main
from mutation import mutated

CODES = [b"\x80\x02", b"}", b"]", b"(", b")", b"t", b"R", b"b", b"u", b"e", b"q\x00", b"h\x00", b"2", b"0", b"."]
CODES += [b"c__builtin__\nlist\n", b"c_codecs\nencode\n", b"cnumpy\ndtype\n", b"cnumpy.core.multiarray\n_reconstruct\n"]
CODES += [b"ccollections\ndefaultdict\n", b"X\x03\x00\x00\x00abc", b"K\x01", b"I5\n", b"N", b"\x88", b"\x85", b"\x86"]
CODES += [b"\x96" + (2**33).to_bytes(8, "little"), b"\x8b\xff\xff\xff\x7f", b"\x8e" + (2**33).to_bytes(8, "little")]
WORDS = [b"\n", b" ", b"%", b"1 1 1\n", b"array", b"symmetric", b"{", b"}", b'"nodes": 1', b"-1\n", b"0\n", b"[" * 50]
ZIPPED = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY", b"'shape': (", b"'<f8'", b"'>i4'", b"'|O'", b"()"]
ARGUMENTS = ["train", "info", "export-golden", "demo", "bench", "--data", "synthetic", "--model", "gcn", "gat", "gatv2"]
ARGUMENTS += [
    "--runs",
    "--seed",
    "--heads",
    "--hidden",
    "--lr",
    "--dropout",
    "--weight-decay",
    "--output-heads",
    "--out",
]
ARGUMENTS += ["--pubmed", "0", "1", "2", "-1", "1.5", "nan", "1e400", str(2**63), "x", "", "--", "--no-such", "é\ud800"]
ARGUMENTS += [
    "--dtype",
    "float32",
    "--no-self-loops",
    "--help",
    "--version",
    "/",
    "/dev/null",
    "--resume",
    "--checkpoint",
]


@cache
def folder() -> Path:
    """Where the inputs lie while they are read."""
    return Path(tempfile.mkdtemp(prefix="gossamer-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


@cache
def planetoid_parts() -> dict[str, bytes]:
    """The files of a graph of eight nodes, in its usual pickles and in those of Python 3."""
    allx = scipy.sparse.csr_matrix(np.arange(12, dtype=np.float32).reshape(4, 3) % 5)
    ally = np.eye(2, dtype=np.int32)[[0, 1, 1, 0]]
    values: dict[str, Any] = {"x": allx[:2], "y": ally[:2], "allx": allx, "ally": ally}
    values["graph"] = defaultdict(list, {0: [1, 1, 0], 1: [0, 7], 5: [4], 6: []})
    values |= {"tx": scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)), "ty": np.eye(2, dtype=np.int32)[[1, 0, 1]]}
    parts = {part: pickle.dumps(value, protocol=2) for part, value in values.items()}
    parts["test.index"] = b"5\n7\n4\n"
    for part, data in parts.items():
        (folder() / f"ind.cora.{part}").write_bytes(data)
    return parts


def planetoid(random: Random) -> bool:
    """The pickles of a graph."""
    part, good = random.choice(sorted(planetoid_parts().items()))
    path = folder() / f"ind.cora.{part}"
    path.write_bytes(mutated(random, good, CODES))
    try:
        return _read(lambda: gs.datasets.planetoid("cora", folder()))
    finally:
        path.write_bytes(good)


@cache
def graph_files() -> dict[str, bytes]:
    """The files of a folder that is a graph."""
    place = folder() / "graph"
    place.mkdir()
    head = b"%%MatrixMarket matrix coordinate real general\n"
    files = {"adjacency.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 1\n"}
    files |= {"features.mtx": head + b"3 2 3\n1 1 1\n2 2 .5\n3 1 2\n", "labels.txt": b"0\n1\n-1\n", "train.txt": b"0\n"}
    files |= {"val.txt": b"1\n", "test.txt": b"", "meta.json": json.dumps({"nodes": 3, "classes": 2}).encode()}
    for name, data in files.items():
        (place / name).write_bytes(data)
    return files


def graph_folder(random: Random) -> bool:
    """A folder of text files."""
    name, good = random.choice(sorted(graph_files().items()))
    path = folder() / "graph" / name
    path.write_bytes(mutated(random, good, WORDS))
    try:
        return _read(lambda: gs.datasets.load(folder() / "graph"))
    finally:
        path.write_bytes(good)


@cache
def zip_files() -> list[bytes]:
    """A matrix in SciPy's formats, compressed and not."""
    found = []
    for k, format in enumerate(["csr", "csc", "coo"]):
        file = io.BytesIO()
        S = scipy.sparse.csr_array(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])).asformat(format)
        scipy.sparse.save_npz(file, S, compressed=k == 1)
        found.append(file.getvalue())
    return found


def npz(random: Random) -> bool:
    """A sparse matrix of SciPy's."""
    path = folder() / "a.npz"
    path.write_bytes(mutated(random, random.choice(zip_files()), ZIPPED))
    return _read(lambda: gs.Pattern(*(A := gs.load_npz(path, max_bytes=1 << 24)).pattern.tensors()[:2], A.shape))


def matrix_state(random: Random) -> bool:
    """What a pickle of a matrix is made of, changed: it is refused, or a product with it is harmless."""
    from mutation import other_number, other_tensor

    A = gs.poisson(6)
    state = A.pattern.__getstate__()
    name = random.choice(["indptr", "indices", "shape", "simple", "values"])
    values = other_tensor(random, A.values, True) if name == "values" else A.values
    if name in ("indptr", "indices"):
        state[name] = other_tensor(random, state[name], True)
    elif name != "values":
        state[name] = random.choice(
            [None, (), (6,), (5, 6), (6, 5), (7, 6), (6, 7), (-1, 6), other_number(random, True)]
        )
    pattern, B = gs.Pattern.__new__(gs.Pattern), gs.SparseMatrix.__new__(gs.SparseMatrix)
    refusals = (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, AttributeError)
    with contextlib.suppress(*refusals):
        pattern.__setstate__(state)
        B.__dict__.update(pattern=pattern, _values=values)
        (B @ torch.ones(B.shape[1], 2, dtype=torch.float32)).sum().item()
        (B.T @ torch.ones(B.shape[0], dtype=torch.float32)).sum().item()
        return True
    return False


def command_line(random: Random) -> bool:
    """Arguments of the command: an exit code, and no traceback. What is long by its nature is not begun."""
    graph_files()
    words = [random.choice(ARGUMENTS) for _ in range(random.randint(0, 6))]
    if random.random() < 0.7:
        words = [
            random.choice(["train", "export-golden"]),
            "--data",
            random.choice(["synthetic", str(folder() / "graph")]),
            *words,
        ]
    if words[:1] in (["demo"], ["bench"]):
        words.append(random.choice(["--help", "--no-such"]))
    if words[:1] == ["train"]:
        words += ["--epochs", "1", "--runs", "1"]
    if words[:1] == ["export-golden"]:
        words += ["--out", str(folder() / "golden.npz")]
    nowhere = io.StringIO()  # files are named by what stands in the arguments: not here
    with contextlib.chdir(folder()), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    assert code in (0, 1, 2), f"{words}: exit code {code}"
    return code == 0


def _read(reader: Callable[[], Any]) -> bool:
    try:
        reader()
    except (ValueError, IsADirectoryError, FileNotFoundError):
        return False
    return True
