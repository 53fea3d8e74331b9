# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.files: reading and writing MatrixMarket files beside scipy.io, with as many threads each.

A random square matrix, eight entries a row on average. Reading is timed with the entries by rows, by columns, as the
large collections have them, and shuffled. read_mtx gives CSR; mmread gives the triplets as they come, so it is timed
with the conversion to CSR, too. Before anything is timed, all must give the same matrix to the last bit. Files lie in
the system's cache: what is timed is text and numbers, not the disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
import torch
from scipy.sparse import coo_array, csr_array
from threadpoolctl import threadpool_limits

import gossamer as gs
from bench.race import check, race
from bench.row import OURS
from bench.tables import three_digits

MMREAD, MMREAD_CSR, MMWRITE = "mmread", "mmread + CSR", "mmwrite"


def random_matrix(entries: int) -> csr_array:
    """Values of all digits."""
    rng, n = np.random.default_rng(0), max(entries // 8, 1)
    rows, cols = rng.integers(0, n, (2, entries), dtype=np.int32)
    A = csr_array(coo_array((rng.standard_normal(entries), (rows, cols)), shape=(n, n)))
    A.sum_duplicates()
    return A


def orders(A: csr_array) -> Iterator[tuple[str, coo_array]]:
    """The same matrix with its entries one after the other in three ways."""
    yield "by rows", A.tocoo()
    yield "by columns", A.tocsc().tocoo()
    by_rows, order = A.tocoo(), np.random.default_rng(1).permutation(A.nnz)
    rows, cols = by_rows.coords
    yield "shuffled", coo_array((by_rows.data[order], (rows[order], cols[order])), shape=A.shape)


def reading(path: Path) -> dict[str, Callable[[], Any]]:
    return {
        OURS: lambda: gs.read_mtx(path),
        MMREAD: lambda: scipy.io.mmread(path, spmatrix=False),
        MMREAD_CSR: lambda: csr_array(scipy.io.mmread(path, spmatrix=False)),
    }


def writing(folder: Path, A: csr_array) -> dict[str, Callable[[], Any]]:
    ours = gs.from_scipy(A)
    return {
        OURS: lambda: gs.write_mtx(folder / "ours.mtx", ours),
        MMWRITE: lambda: scipy.io.mmwrite(folder / "theirs.mtx", A),
    }


def written(folder: Path, runs: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """What SciPy reads back from each writer's file."""

    def back(run: Callable[[], Any], name: str) -> Any:
        run()
        return scipy.io.mmread(folder / name, spmatrix=False)

    names = {OURS: "ours.mtx", MMWRITE: "theirs.mtx"}
    return {who: lambda run=run, name=names[who]: back(run, name) for who, run in runs.items()}


def parts(A: Any) -> tuple[Any, ...]:
    """Where the entries are, and their values: all of it must agree."""
    csr = csr_array(A.to_scipy() if isinstance(A, gs.SparseMatrix) else A).sorted_indices()
    return csr.indptr.astype(float), csr.indices.astype(float), csr.data


def agree(title: str, A: csr_array, runs: dict[str, Callable[[], Any]]) -> None:
    """Raise unless every run gives A."""
    check(title, {"the matrix": lambda: parts(A)} | {who: lambda run=run: parts(run()) for who, run in runs.items()}, 0)


def tell(title: str, runs: dict[str, Callable[[], Any]], seconds: float, size: int) -> None:
    """The best of each and how many times the time of ours it is."""
    best = {who: min(times) for who, times in race(runs, seconds).items()}
    ours = best.pop(OURS)
    others = "   ".join(f"{who} {1e3 * t:5.0f} ms, {three_digits(t / ours)}×" for who, t in best.items())
    print(f"{title:17} gossamer {1e3 * ours:5.0f} ms ({size / ours / 1e6:4.0f} MB/s)   {others}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.files", description=__doc__)
    parser.add_argument("--entries", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each contender")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    threads = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    A = random_matrix(options.entries)
    print(f"{A.nnz} entries, {options.threads} thread{'s' * (options.threads > 1)}; × = their time / ours")
    try:
        with tempfile.TemporaryDirectory() as name, threadpool_limits(options.threads):
            folder, path = Path(name), Path(name, "read.mtx")
            for order, triplets in orders(A):
                scipy.io.mmwrite(path, triplets)
                runs = reading(path)
                agree(f"reading {order}", A, runs)
                tell(f"read {order}", runs, options.seconds, path.stat().st_size)
            runs = writing(folder, A)
            agree("writing", A, written(folder, runs))
            tell("write", runs, options.seconds, (folder / "ours.mtx").stat().st_size)
    finally:
        torch.set_num_threads(threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
