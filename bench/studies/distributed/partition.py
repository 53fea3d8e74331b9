# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of rows: how many entries are cut, and how many rows processes need of each other, which is what is sent.

    python -m bench.studies.distributed.partition [--data FOLDER] [--parts 4 16] [--quick]

A column of X that a process needs and does not own is a row of its halo. One product sends the sum of all halos, times
the width of X; the cut is shown because partitioners minimise it, not because it is what is sent. FOLDER holds
NotreDame_www.mtx.gz of the SuiteSparse collection; without it that graph is left out, and said to be.
Seconds are CPU time of this process, once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import gossamer as gs
from bench import matrices

NOTRE_DAME = "NotreDame_www.mtx.gz"


class Quality(NamedTuple):
    """Of a partition: entries between processes, rows of halos (of the largest, of all), entries of the fullest."""

    cut: float  # of all entries
    halo_max: int
    halo_sum: float  # Σ halo rows / rows: what a product sends, in units of X
    imbalance: float  # entries of the fullest process / the mean


def quality(A: gs.SparseMatrix, part: Tensor, parts: int) -> Quality:
    owner = part[A.pattern.row_indices.long()]
    cols = A.indices.long()
    foreign = owner != part[cols]
    halo = torch.unique(owner[foreign] * A.shape[1] + cols[foreign])  # (process, column) once
    halos = torch.bincount(halo // A.shape[1], minlength=parts)
    entries = torch.bincount(owner, minlength=parts)
    return Quality(
        cut=foreign.double().mean().item(),
        halo_max=int(halos.max()),
        halo_sum=len(halo) / A.shape[0],
        imbalance=(entries.max() / entries.double().mean()).item(),
    )


def random_parts(A: gs.SparseMatrix, parts: int) -> Tensor:
    return torch.randint(parts, (A.shape[0],), generator=torch.Generator().manual_seed(0))


METHODS: dict[str, Callable[[gs.SparseMatrix, int], Tensor]] = {
    "contiguous": lambda A, parts: gs.distributed.partition(A, parts, method="contiguous"),
    "METIS": lambda A, parts: gs.distributed.partition(A, parts, method="metis"),
    "random": random_parts,
}


def symmetric(A: gs.SparseMatrix) -> gs.SparseMatrix:
    """Both directions of every edge, as a graph network has them."""
    return A + A.T


def graphs(data: Path, quick: bool) -> Iterator[tuple[str, gs.SparseMatrix]]:
    if quick:
        yield "Poisson 30²", gs.poisson((30, 30))
        yield "R-MAT 2⁹", symmetric(gs.from_scipy(matrices.powerlaw(9, 2**12)))
        return
    yield "Poisson 1000²", gs.poisson((1000, 1000))
    if (data / NOTRE_DAME).exists():
        yield "NotreDame", gs.read_mtx(data / NOTRE_DAME)
    else:
        print(f"NotreDame is left out: there is no {NOTRE_DAME} in {data}")
    yield "R-MAT 2¹⁸", symmetric(gs.from_scipy(matrices.load("powerlaw")))


def table(graphs: Iterator[tuple[str, gs.SparseMatrix]], counts: Sequence[int]) -> Iterator[str]:
    yield "| graph | parts | method | cut | largest halo | Σ halo / rows | entries, fullest / mean | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, A in graphs:
        for parts in counts:
            for method, cut_up in METHODS.items():
                start = time.process_time()
                part = cut_up(A, parts)
                seconds = time.process_time() - start
                q = quality(A, part, parts)
                yield (
                    f"| {name}, {A.shape[0]} / {A.nnz} | {parts} | {method} | {q.cut:.2%} | {q.halo_max} | "
                    f"{q.halo_sum:.3f} | {q.imbalance:.2f} | {seconds:.2f} |"
                )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.distributed.partition", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/matrices"), help="where the .mtx.gz is")
    parser.add_argument("--parts", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--quick", action="store_true", help="small graphs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for line in table(graphs(options.data, options.quick), options.parts):
        print(line, flush=True)


if __name__ == "__main__":
    main()
