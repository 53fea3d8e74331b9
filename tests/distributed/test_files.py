# SPDX-License-Identifier: BSD-3-Clause
"""A matrix in a folder, by one process: what the files hold, disks that refuse, damage; C++ beside Python."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import gossamer as gs

save, load = gs.distributed.save, gs.distributed.load


def matrix(rows: int = 30, cols: int = 30) -> gs.SparseMatrix:
    return gs.random(rows, cols, density=0.2, dtype=torch.float64, generator=torch.Generator().manual_seed(rows))


def parts(n: int, count: int) -> torch.Tensor:
    part = torch.randint(count, (n,), generator=torch.Generator().manual_seed(n))
    part[0] = count - 1
    return part


def test_one_process(tmp_path: Path) -> None:
    A, x = matrix().requires_grad_(), torch.randn(30, 2)
    save(A, tmp_path / "made" / "folder", 1, x=x)
    D, rows = load(tmp_path / "made" / "folder")
    assert D.shape == A.shape
    assert D.group == ""
    assert torch.equal(D.values, A.values)
    assert not D.requires_grad
    assert torch.equal(rows["x"], x)
    X = torch.randn(30, 3, dtype=torch.float64)
    assert torch.equal(D @ X, A @ X)


@pytest.mark.parametrize("shape", [(30, 30), (30, 17), (8, 40)])
def test_files_together_are_the_matrix(tmp_path: Path, shape: tuple[int, int]) -> None:
    """By SciPy: the parts one below the other, in the order of their keys, are A with its columns renumbered."""
    A, part = matrix(*shape), parts(shape[0], 3)
    save(A, tmp_path, part)
    plan = json.loads((tmp_path / "plan.json").read_text())
    files = [np.load(tmp_path / f"part-{r}.npz") for r in range(3)]
    keys, columns = (np.concatenate([file[name] for file in files]) for name in ("row_keys", "column_keys"))
    whole = scipy.sparse.vstack([scipy.sparse.load_npz(tmp_path / f"part-{r}.npz") for r in range(3)]).toarray()
    found = np.empty_like(whole)
    found[np.ix_(keys, columns)] = whole
    np.testing.assert_array_equal(found, A.to_dense().numpy())
    assert plan["shape"] == list(shape)
    assert plan["row_offsets"] == [0, *np.cumsum([len(file["row_keys"]) for file in files])]
    assert plan["entries"] == [len(file["data"]) for file in files]
    for r, file in enumerate(files):
        np.testing.assert_array_equal(file["row_keys"], (part == r).nonzero().flatten())
        order = columns[file["indices"]]  # original columns, which ascend in A's rows
        for begin, end in zip(file["indptr"][:-1], file["indptr"][1:], strict=True):
            assert (np.diff(order[begin:end]) > 0).all()


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_index_width_is_kept(tmp_path: Path, index: torch.dtype) -> None:
    A = matrix()
    save(gs.SparseMatrix(gs.Pattern(A.indptr.to(index), A.indices.to(index), A.shape), A.values), tmp_path, 1)
    assert load(tmp_path)[0].pattern.indices.dtype is index


def test_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files: OSError, the old plan stays, nothing else is left, and old and new do not mix."""
    save(matrix(6, 6), tmp_path, 2)
    plan = (tmp_path / "plan.json").read_bytes()
    script = f"""
        import errno, resource, torch, gossamer as gs
        A = gs.random(500, 500, 0.5)
        parts = torch.ones(500, dtype=torch.int64)
        parts[:1] = 0  # a small part that fits, then a large one
        resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
        try:
            gs.distributed.save(A, {str(tmp_path)!r}, parts)
        except OSError as error:
            assert error.errno == errno.EFBIG, error
        else:
            raise SystemExit("it was written")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-0.npz", "part-1.npz", "plan.json"]
    assert (tmp_path / "plan.json").read_bytes() == plan
    known = json.loads(plan)
    known |= {"entries": known["entries"][:1], "row_offsets": [0, 6], "column_offsets": [0, 6]}
    (tmp_path / "plan.json").write_text(json.dumps(known))
    with pytest.raises(ValueError, match=r"part-0\.npz: it is of another save than plan\.json"):
        load(tmp_path)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file") as error:
        save(matrix(), tmp_path / "file", 2)
    assert error.value.errno in (errno.ENOTDIR, errno.EEXIST)


SPOILED: list[tuple[str, Any]] = [
    ("indptr", lambda t: t[::-1]),
    ("indptr", lambda t: np.maximum(t, 1)),  # ascends to the end, but not from 0
    ("indptr", lambda t: np.minimum(t, t[-1] - 1)),  # from 0, but not to the end
    ("indptr", lambda t: np.concatenate([t[:1], t[-1:], t[2:]])),  # from 0 to the end, but down again
    ("indices", lambda t: t + 30),
    ("row_keys", lambda t: t - 1),
    ("column_keys", lambda t: t.astype(np.float64)),
    ("data", lambda t: t[:-1]),
    ("rows.x", lambda t: t[1:]),
    ("id", lambda t: t + 1),
]


@pytest.mark.parametrize(("name", "spoiled"), SPOILED)
def test_spoiled_arrays(tmp_path: Path, name: str, spoiled: Any, front_ends: Any) -> None:
    save(matrix(), tmp_path, 1, x=torch.ones(30))
    with np.load(tmp_path / "part-0.npz") as file:
        arrays = {key: file[key] for key in file.files}
    arrays[name] = spoiled(arrays[name])
    np.savez(tmp_path / "part-0.npz", **arrays)
    for reader in front_ends:
        with pytest.raises(ValueError, match=r"part-0\.npz: it"):
            reader(tmp_path)
    del arrays[name]
    np.savez(tmp_path / "part-0.npz", **arrays)
    for reader in front_ends:
        with pytest.raises(ValueError, match=r"part-0\.npz: "):
            reader(tmp_path)


def cpp_load(folder: Path) -> tuple[list[torch.Tensor], list[str]]:
    return torch.ops.gossamer_cpp.distributed_load(str(folder), "")


@pytest.fixture(scope="module")
def cpp(build: Path) -> Any:
    library = build / "libgossamer_cpp_front_end.so"
    if not library.exists():
        pytest.skip("no C++ front end: build the release preset with GOSSAMER_TESTS=torch")
    torch.ops.load_library(library)
    return torch.ops.gossamer_cpp


@pytest.fixture(scope="module")
def front_ends(build: Path) -> list[Any]:
    """Those that are there."""
    library = build / "libgossamer_cpp_front_end.so"
    if not library.exists():
        return [load]
    torch.ops.load_library(library)
    return [load, cpp_load]


def on_the_wire(A: gs.SparseMatrix) -> list[torch.Tensor]:
    return [A.values, torch.tensor(A.shape), A.indptr, A.indices]


@pytest.mark.parametrize("shape", [(30, 30), (30, 17)])
def test_either_front_end_writes_the_same(tmp_path: Path, cpp: Any, shape: tuple[int, int]) -> None:
    A, part, x = matrix(*shape), parts(shape[0], 3), torch.randn(shape[0], 2)
    column_parts = parts(shape[1], 3) if shape[0] != shape[1] else None
    save(A, tmp_path / "py", part, column_parts=column_parts, x=x, été=part)
    cpp.distributed_save(on_the_wire(A), str(tmp_path / "cpp"), part, ["x", "été"], [x, part], column_parts)
    plans = [json.loads((tmp_path / where / "plan.json").read_text()) for where in ("py", "cpp")]
    for plan in plans:
        plan.pop("id")
    assert plans[0] == plans[1]
    for r in range(3):
        ours, theirs = (np.load(tmp_path / where / f"part-{r}.npz") for where in ("py", "cpp"))
        assert {*ours.files} == {*theirs.files}
        for name in {*ours.files} - {"id"}:
            assert ours[name].dtype == theirs[name].dtype, name
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_cpp_reads_what_python_wrote(tmp_path: Path, cpp: Any) -> None:
    A, x = matrix(20, 9), torch.arange(20)
    save(A, tmp_path, 1, x=x)
    (shape, indptr, indices, values, offsets, column_offsets, keys, column_keys, *rows), names = cpp_load(tmp_path)
    assert shape.tolist() == [20, 9]
    assert torch.equal(gs.SparseMatrix(indptr, indices, values, (20, 9)).to_dense(), A.to_dense())
    assert (offsets.tolist(), column_offsets.tolist()) == ([0, 20], [0, 9])
    assert (keys.tolist(), column_keys.tolist()) == ([*range(20)], [*range(9)])
    assert names == ["x"]
    assert torch.equal(rows[0], x)


PLANS: list[Any] = [
    "",
    "[]",
    "{",
    "nonsense",
    lambda known: {**known, "version": 2},
    lambda known: {**known, "shape": [30]},
    lambda known: {**known, "shape": 30},
    lambda known: {**known, "entries": [-1]},
    lambda known: {**known, "row_offsets": [0, 31]},
    lambda known: {**known, "column_offsets": []},
    lambda known: {**known, "id": "one"},
    lambda known: {key: value for key, value in known.items() if key != "rows"},
]


@pytest.mark.parametrize("spoiled", PLANS)
def test_spoiled_plan(tmp_path: Path, spoiled: Any, front_ends: Any) -> None:
    save(matrix(), tmp_path, 1)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(spoiled(json.loads(plan.read_text()))) if callable(spoiled) else spoiled)
    for reader in front_ends:
        with pytest.raises(ValueError, match=r"plan\.json: "):
            reader(tmp_path)


def test_missing_files(tmp_path: Path, front_ends: Any) -> None:
    for reader in front_ends:
        with pytest.raises((FileNotFoundError, RuntimeError), match=r"plan\.json"):
            reader(tmp_path)
    save(matrix(), tmp_path, 1)
    (tmp_path / "part-0.npz").unlink()
    for reader in front_ends:
        with pytest.raises((FileNotFoundError, RuntimeError), match=r"part-0\.npz"):
            reader(tmp_path)


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        (lambda f: save(torch.eye(3), f, 2), TypeError, "A must be a SparseMatrix or a DistributedMatrix"),
        (lambda f: save(matrix(), f), TypeError, "parts says which process"),
        (
            lambda f: save(matrix(), f, torch.zeros(29).long()),
            ValueError,
            r"parts has shape \(29,\), but A has 30 rows",
        ),
        (lambda f: save(matrix(), f, torch.zeros(30)), TypeError, "parts must be a tensor of integers"),
        (lambda f: save(matrix(), f, torch.full((30,), -1)), ValueError, "a vector of processes, from 0"),
        (lambda f: save(matrix(), f, 0), ValueError, "parts must be at least 1, not 0"),
        (lambda f: save(matrix(), f, 2, x=torch.ones(3)), ValueError, r"x has shape \(3,\), but A has 30 rows"),
        (lambda f: save(matrix(), f, 2, x=torch.ones(30).bfloat16()), TypeError, "NumPy has no bfloat16"),
        (lambda f: save(matrix().to(torch.bfloat16), f, 2), TypeError, "NumPy has no bfloat16"),
        (
            lambda f: save(matrix(30, 9), f, 2, column_parts=torch.full((9,), 5)),
            ValueError,
            "column_parts names process 5, but parts has 2",
        ),
        (
            lambda f: save(gs.distributed.scatter(matrix()), f, 2),
            ValueError,
            "a DistributedMatrix has its parts",
        ),
    ],
)
def test_mistakes(tmp_path: Path, mistake: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        mistake(tmp_path / "folder")
    assert not (tmp_path / "folder" / "plan.json").exists()
