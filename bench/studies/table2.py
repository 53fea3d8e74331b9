# SPDX-License-Identifier: BSD-3-Clause
"""Table 2 of Nytko et al., §5: sparse ops forward and backward, their dense twins and the peers, on this machine.

The matrix is the paper's, A = tridiag(−1, 2, −1) (Eq. 15), N x N, float64:

    SpMV    A x          DMV    the same with A stored densely
    SpSpMM  A B          –      (B = Aᵀ, on a pattern of its own)
    SpDMM   A X          DDMM   X dense, N x N
    Sp + Sp A + B        D + D  (B = the same numbers on the diagonals −2, 0, 2)
    SpTRSV  L⁻¹ b        DTRSV  L = the lower triangle of A

Forward is the op without a graph. Backward is the backward pass alone, with the gradients of all operands: the graph
is built once and kept, and torch.autograd.grad walks it again in each call. A time is the best of many calls. The peers
run on one thread, as everything in the paper does; the results are compared with ours before anything is timed.

The paper gives totals over a number of iterations, measured on an AMD Milan 7413; beside our times stands that total
divided by the iterations. The dense rows are as large as the budget and the free memory allow; their N is printed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from bench import machine
from bench.race import race
from bench.row import OURS
from bench.rows import products
from bench.studies import paper
from bench.studies.paper import COLD, DENSE, MKL, SCIPY, TORCH, Contest
from report.papers import NYTKO
from report.section import run_from_command_line

TITLE = "Table 2: time of a call beside the peers"
SOURCE = f"{NYTKO}, §5, Table 2"

QUICK: dict[str, Any] = {"sparse": 256, "dense": 64, "multiply": 64, "seconds": 0.001}
DEFAULT: dict[str, Any] = {"sparse": 32768, "dense": 4096, "multiply": 2048, "seconds": 0.25}
FULL: dict[str, Any] = {"sparse": 32768, "dense": 32768, "multiply": 16384, "seconds": 5.0}

ALL = "gossamer, all cores"
PEERS = (SCIPY, MKL, TORCH, DENSE)
SHARE = 0.8  # of the free memory


@dataclass(frozen=True)
class Row:
    """One op of the table and what the paper says: N, iterations, total seconds forward, SciPy's, backward."""

    name: str
    n: int
    iterations: int
    forward: float
    scipy: float
    backward: float
    make: Callable[[int], Contest]
    kind: str = "sparse"
    squares: int = 0
    """Dense N x N matrices alive at once, as measured: operands, results, gradients, what the contenders need."""


ROWS = (
    Row("SpMV", 32768, 1000, 0.141, 0.092, 0.595, lambda n: paper.product(n, 1)),
    Row("DMV", 32768, 1000, 143.441, 143.614, 1509.088, lambda n: paper.dense_product(n, 1), "dense", 2),
    Row("SpSpMM", 16384, 100, 0.184, 0.065, 2.150, paper.sparse_product),
    Row("SpDMM", 16384, 100, 145.156, 100.840, 303.903, lambda n: paper.product(n, n), "dense", 9),
    Row("DDMM", 16384, 2, 190.113, 202.030, 597.621, lambda n: paper.dense_product(n, n), "multiply", 12),
    Row("Sp + Sp", 32768, 100, 0.073, 0.034, 0.133, paper.sparse_sum),
    Row("D + D", 32768, 100, 60.978, 61.553, 123.519, paper.dense_sum, "dense", 6),
    Row("SpTRSV", 32768, 100, 0.030, 32.746, 13.462, paper.triangular),
    Row("DTRSV", 32768, 100, 35.092, 65.834, 863.779, paper.dense_triangular, "dense", 11),
)


@dataclass
class Result:
    rows: list[dict[str, Any]]
    """name, mode, n, paper_n, paper and paper_scipy (seconds a call; 0: none), best (seconds a call, by contender)."""
    threads: int
    about: str
    notes: list[str] = field(default_factory=list)


def fitting(row: Row, n: int, free: float) -> int:
    """n, halved until the row's dense matrices fit."""
    while 8 * row.squares * n * n > SHARE * free:
        n //= 2
    return n


def measure(row: Row, n: int, seconds: float, threads: int) -> list[dict[str, Any]]:
    """Both modes of a row: everybody on one thread, then ours on all cores."""
    told = []
    torch.set_num_threads(1)
    contest = row.make(n)
    contest.judge(f"{row.name}, N = {n}")
    for mode, runs in (("Forward", contest.forward), ("Backward", contest.backward)):
        if row.name.startswith("D"):  # ours was the judge
            runs = {name: run for name, run in runs.items() if name != OURS}
        with torch.no_grad():
            torch.set_num_threads(1)
            best = {name: min(times) for name, times in race(runs, seconds).items()}
            if OURS in runs:
                torch.set_num_threads(threads)
                best[ALL] = min(race({OURS: runs[OURS]}, seconds)[OURS])
        total = row.forward if mode == "Forward" else row.backward
        their_scipy = row.scipy / row.iterations if mode == "Forward" else 0.0
        of_paper = {"paper_n": row.n, "paper": total / row.iterations, "paper_scipy": their_scipy}
        told.append({"name": row.name, "mode": mode, "n": n, **of_paper, "best": best})
    return told


def compute(
    *,
    sparse: int,
    dense: int,
    multiply: int,
    seconds: float,
    seed: int = 0,
    tick: Callable[[float], None] = lambda done: None,
) -> Result:
    """All rows, none larger than the paper's. ``sparse``, ``dense``, ``multiply``: the largest N of rows with sparse
    matrices only, with dense ones, and of DDMM; ``seconds``: for each contender. MKL is a peer if
    products.load_mkl was called before. The inputs are the same for every seed: no time depends on them."""
    largest, threads = {"sparse": sparse, "dense": dense, "multiply": multiply}, torch.get_num_threads()
    result = Result([], os.cpu_count() or 1, machine.processor())
    try:
        with threadpool_limits(1, user_api="blas"):  # NumPy's and SciPy's; torch has its own
            for done, row in enumerate(ROWS):
                gc.collect()
                wanted, free = min(row.n, largest[row.kind]), machine.available_memory()
                n = fitting(row, wanted, free)
                if n < wanted:
                    need = 8 * row.squares * wanted**2 / 1e9
                    result.notes.append(
                        f"{row.name} at N = {n}: N = {wanted} would need {need:.1f} GB and {free / 1e9:.1f} are free."
                    )
                with machine.freed_memory_kept():  # by one row, not from the next
                    result.rows += measure(row, n, seconds, result.threads)
                tick((done + 1) / len(ROWS))
    finally:
        torch.set_num_threads(threads)
    result.notes += [] if products.MKL else ["MKL was not loaded into this process: run gossamer bench --table2."]
    return result


def ratio(row: dict[str, Any]) -> tuple[float, str] | None:
    """How many times the time of ours the fastest peer takes, on one thread; and who it is."""
    others = {name: row["best"][name] for name in PEERS if name in row["best"]}
    if OURS not in row["best"] or not others:
        return None
    name = min(others, key=lambda name: others[name])
    return others[name] / row["best"][OURS], name


def milliseconds(seconds: float | None) -> str:
    """Three digits."""
    if not seconds:
        return "–"
    ms = 1e3 * seconds
    return f"{ms:,.0f}" if ms >= 99.95 else f"{ms:.3g}" if ms < 1e-3 else f"{ms:#.3g}"


def table(result: Result) -> tuple[list[str], list[list[str]]]:
    """Milliseconds a call; contenders that never ran have no column."""
    names = {OURS: "Gossamer, 1 thread", ALL: f"Gossamer, {result.threads} threads", COLD: "Gossamer, new pattern"}
    names |= {name: name for name in PEERS}
    shown = [name for name in names if any(name in row["best"] for row in result.rows)]
    header = ["ms a call", "N", *(names[name] for name in shown), "fastest peer", "its time / ours"]
    header += ["paper’s N", "paper’s machine: the authors’", "paper’s machine: SciPy"]
    lines = []
    for row in result.rows:
        found = ratio(row)
        lines.append(
            [f"{row['name']} {row['mode']}", str(row["n"])]
            + [milliseconds(row["best"].get(name)) for name in shown]
            + ([found[1], f"{found[0]:.2f}×"] if found else ["–", "–"])
            + [str(row["paper_n"]), milliseconds(row["paper"]), milliseconds(row["paper_scipy"])]
        )
    return header, lines


MARKS = {
    OURS: ("o", "tab:blue", "Gossamer, 1 thread"),
    ALL: ("D", "tab:cyan", "Gossamer, all cores"),
    COLD: ("P", "tab:green", "Gossamer, new pattern"),
    SCIPY: ("s", "tab:gray", "SciPy, NumPy"),
    MKL: ("v", "tab:orange", "MKL"),
    TORCH: ("^", "tab:red", "torch.sparse"),
    DENSE: ("h", "tab:purple", "torch dense"),
}


def figures(result: Result) -> dict[str, Figure]:
    figure = Figure(figsize=(9.5, 7), dpi=130, layout="constrained")
    axes = figure.subplots()
    labels = [f"{row['name']} {row['mode']}, N = {row['n']}" for row in result.rows]
    for name, (marker, colour, text) in MARKS.items():
        points = [(1e3 * row["best"][name], y) for y, row in enumerate(result.rows) if name in row["best"]]
        if points:
            fill = "none" if name == ALL else "full"
            order = 3 if name == OURS else 2  # ours in front
            axes.plot(*zip(*points, strict=True), marker, color=colour, fillstyle=fill, zorder=order, label=text)
    same = [(1e3 * row["paper"], y) for y, row in enumerate(result.rows) if row["n"] == row["paper_n"]]
    if same:
        text = "the authors, on their machine (where N is theirs)"
        axes.plot(*zip(*same, strict=True), "x", color="tab:pink", markersize=8, label=text)
    axes.set_xscale("log")
    axes.set_yticks(range(len(labels)), labels, fontsize=8.5)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds a call (log scale; left is faster)", title="Table 2: time of a call")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8.5, frameon=False)
    return {"table2": figure}


def captions() -> dict[str, str]:
    return {
        "table2": "Each line is a row of the paper's Table 2, each mark the best time of a call of one contender. "
        "Peers run on one thread. Dense rows are at the N shown, which may be smaller than the paper's."
    }


def summary(result: Result) -> list[str]:
    compared = [(row, found) for row in result.rows if (found := ratio(row))]
    told = [f"{row['name']} {row['mode']} {found[0]:.2f}× ({found[1]})" for row, found in compared]
    return [
        f"Times of a call on {result.about}, best of many, tridiag(−1, 2, −1) in float64; peers on one thread; malloc "
        "keeps freed memory, so that nobody pays for fresh pages.",
        f"The fastest peer takes this many times Gossamer's time, one thread each: {', '.join(told)}.",
        "Backward is the backward pass alone. torch's backward of a sum, sparse or dense, computes nothing: it hands "
        "on the gradient, entries outside the operand's pattern included. Ours picks those of the pattern.",
        "New pattern: the symbolic work, otherwise kept with the pattern, is in the time, as it is in the peers'.",
        *result.notes,
    ]


def main(arguments: list[str] | None = None) -> int:
    full = "the paper's N, where memory allows it: more than an hour"
    return run_from_command_line(sys.modules[__name__], arguments, program="python -m bench --table2", full=full)


if __name__ == "__main__":
    products.load_mkl()
    raise SystemExit(main())
