# SPDX-License-Identifier: BSD-3-Clause
"""A model of the time that the CUDA kernels would take, in place of a GPU: no number here was measured on one.

The emulator of tests/cuda runs the kernels' source and counts (tests/cuda/cost): bytes, sectors, lanes, shuffles, and
the traffic behind models of the caches. The time is the roofline of what was counted,

    launches · 4 µs + max(memory bytes / bandwidth, L2 bytes / its bandwidth, flops / peak,
                          requests and shuffles / their rate, chain · latency)

where a chain is the rows of a triangular solve that wait for one another. `python -m bench.studies.cuda_model` counts
every cell, in minutes, and writes Markdown to the screen and the counts to out/cuda_model.json; --from reads them back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bench import matrices
from bench.tables import duration

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "build" / "dev" / "tests" / "cuda" / "cuda_cost"

Counted = dict[str, Any]
"""A cell, as cuda_cost and count() tell of it: matrix, dtype, op, width, heads, scale, flops, chain, counts."""


@dataclass(frozen=True)
class Gpu:
    """Bytes a second from memory and from L2, flops a second, requests and shuffles a second, seconds of a step of a
    chain."""

    name: str
    memory: float
    l2: float
    peak: dict[str, float]
    issue: float
    step: float


# NVIDIA's data sheets; L2 is 5120 bytes a clock (A100 white paper), and the same is taken for the H100, whose is not
# published. A multiprocessor takes a request or a shuffle of a warp a clock: 32 lanes, in the table of throughputs of
# the CUDA programming guide. A step of a chain: three trips to L2 of 260 cycles, ten shuffles of 23, a division. Clocks
# are 1.41 and 1.755 GHz.
GPUS = (  # SXM both, the A100 with 40 GB: that of the paper
    Gpu("A100", 1555e9, 7.2e12, {"double": 9.7e12, "float": 19.5e12}, 108 * 1.41e9, 0.75e-6),
    Gpu("H100", 3350e9, 9.0e12, {"double": 34e12, "float": 67e12}, 132 * 1.755e9, 0.60e-6),
)
LAUNCH = 4e-6
WORTH_A_WORD = 1.5  # times the compulsory bytes; in bold


# "/8" is a part of the matrix, in which a warp meets what it meets in the whole: fewer rows, fewer lines of the grid.
MATRICES: dict[str, Callable[[], csr_array]] = {
    "tridiagonal 32768": lambda: matrices.tridiagonal(32768),
    "tridiagonal 32768 /8": lambda: matrices.tridiagonal(4096),
    "tridiagonal 16384": lambda: matrices.tridiagonal(16384),
    "R-MAT 2¹⁸": lambda: matrices.load("powerlaw"),
    "R-MAT 2¹³": lambda: matrices.powerlaw(13, 2**16),
    "R-MAT 2¹⁶": lambda: matrices.powerlaw(16, 2**19),
    "Poisson 1000²": lambda: matrices.load("poisson2d"),
    "Poisson 1000² /10": lambda: matrices.poisson2d(1000, lines=100),
    "Poisson 1000² /40": lambda: matrices.poisson2d(1000, lines=25),
    "tiny": lambda: matrices.tridiagonal(64),
}

ROWS = ("row_softmax", "argmax", "solve_triangular")
SPGEMM = ("spgemm_nn", "spgemm_nt", "spgemm_tn")


def products(*widths: int) -> tuple[str, ...]:
    return tuple(f"{op}:{width}" for op in ("spmm", "spmm_transposed", "sddmm") for width in widths)


def attention(heads: int, width: int) -> tuple[str, ...]:
    return tuple(f"{op}:{width}:{heads}" for op in ("gat", "gat_backward", "gatv2", "gatv2_backward"))


@dataclass(frozen=True)
class Cell:
    """Ops on a matrix. Counts are multiplied by the scale; a chain that a part of the matrix does not have is given."""

    matrix: str
    dtype: str
    ops: tuple[str, ...]
    scale: int = 1
    chain: int | None = None


# Table 2 is in float64, with 16384 columns in SpDMM, of which 1024 are counted.
CELLS = (
    Cell("tridiagonal 32768", "double", (*products(1), *ROWS, "solve_triangular_transposed")),
    Cell("tridiagonal 16384", "double", SPGEMM),
    Cell("tridiagonal 16384", "double", products(1024), scale=16),
    Cell("tridiagonal 32768 /8", "float", attention(8, 16), scale=8),
    Cell("R-MAT 2¹⁸", "float", (*products(1, 64), *ROWS)),
    Cell("R-MAT 2¹³", "float", SPGEMM),
    Cell("R-MAT 2¹⁶", "float", attention(1, 128)),
    Cell("Poisson 1000²", "float", (*products(1), "argmax")),
    Cell("Poisson 1000² /10", "float", products(32, 64), scale=10),
    Cell("Poisson 1000² /40", "float", (*SPGEMM, "row_softmax", *attention(1, 128)), scale=40),
    Cell("Poisson 1000² /40", "float", ("solve_triangular",), scale=40, chain=1999),
)
QUICK = (Cell("tiny", "double", (*products(1, 33), *SPGEMM, *ROWS, *attention(8, 16))),)

# The rows of Table 2 as kernels, and seconds a call on the paper's A100: the authors', CuPy's.
TABLE2: tuple[tuple[str, tuple[str, ...], float, float | None], ...] = (
    ("SpMV Forward", ("spmm:1",), 45e-6, 49e-6),
    ("SpMV Backward", ("sddmm:1", "spmm_transposed:1"), 198e-6, None),
    ("SpSpMM Forward", ("spgemm_nn:1",), 480e-6, 320e-6),
    ("SpSpMM Backward", ("spgemm_nt:1", "spgemm_tn:1"), 2.93e-3, None),
    ("SpDMM Forward", ("spmm:1024",), 11.0e-3, 5.69e-3),
    ("SpDMM Backward", ("sddmm:1024", "spmm_transposed:1024"), 49.23e-3, None),
    ("SpTRSV Forward", ("solve_triangular:1",), 47.1e-3, 7.67e-3),
    ("SpTRSV Backward", ("solve_triangular_transposed:1", "sddmm:1"), 109.97e-3, None),
)


def write_pattern(path: Path, A: csr_array) -> None:
    """The form that cuda_cost reads: rows, cols, nnz; indptr, indices."""
    A.sort_indices()
    sizes = np.array([*A.shape, A.nnz], np.int64)
    path.write_bytes(b"".join(part.tobytes() for part in (sizes, *(x.astype(np.int32) for x in (A.indptr, A.indices)))))


def count(cells: Sequence[Cell], program: Path, tell: Callable[[str], None]) -> Iterator[Counted]:
    """Runs the program on every cell; a matrix is made once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pattern")
        for matrix, of_matrix in groupby(cells, key=lambda cell: cell.matrix):
            write_pattern(path, MATRICES[matrix]())
            for cell in of_matrix:
                tell(f"{matrix}, {cell.dtype}: {', '.join(cell.ops)}")
                command = [str(program), str(path), cell.dtype, *cell.ops]
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                    for line in running.stdout or ():
                        told = json.loads(line)
                        if cell.chain is not None:
                            told["chain"] = cell.chain
                        whole = matrix.partition(" /")[0]
                        yield {"matrix": whole, "dtype": cell.dtype, "scale": cell.scale, **told}
                if running.returncode:
                    raise RuntimeError(f"{program.name} failed on {matrix}")


def requests_of(counts: dict[str, int]) -> int:
    return counts["loads"] + counts["stores"] + counts["atomics"]


def seconds(cell: Counted, gpu: Gpu) -> tuple[float, str]:
    """The model's time on a GPU, and what bounds it."""
    counts, scale = cell["counts"], cell["scale"]
    bounds = {
        "memory": scale * counts[f"{gpu.name}_dram"] / gpu.memory,
        "L2": scale * counts[f"{gpu.name}_l2"] / gpu.l2,
        "flops": scale * cell["flops"] / gpu.peak[cell["dtype"]],
        "issue": scale * (requests_of(counts) + counts["shuffles"]) / gpu.issue,
        "chain": cell["chain"] * gpu.step,
        "launch": LAUNCH * counts["launches"],
    }
    most = max(bounds, key=lambda name: bounds[name])
    return bounds.pop("launch") + max(bounds.values()), most


def si(number: float, unit: str) -> str:
    """Three digits."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"


def times(bytes_moved: float, compulsory: float) -> str:
    ratio = bytes_moved / compulsory
    return f"**{ratio:.2f}**" if ratio > WORTH_A_WORD else f"{ratio:.2f}"


def name_of(cell: Counted) -> str:
    heads = f"{cell['heads']} × " if cell["heads"] > 1 else ""
    width = f" {heads}{cell['width']}" if cell["width"] > 1 or heads else ""
    return f"`{cell['op']}`{width}"


HEADER = (
    "matrix, kernel", "compulsory", "memory", "×", "L2", "×", "sectors a request", "lanes", "shuffles", "flops",
    "A100", "H100", "bound by",
)  # fmt: skip


def line(cell: Counted) -> list[str]:
    """A cell as a line of the table; memory and L2 are the A100's."""
    counts, scale = cell["counts"], cell["scale"]
    requests = requests_of(counts)
    least = counts["compulsory"]
    models = [seconds(cell, gpu) for gpu in GPUS]
    return [
        name_of(cell),
        si(scale * least, "B"),
        si(scale * counts["A100_dram"], "B"),
        times(counts["A100_dram"], least),
        si(scale * counts["A100_l2"], "B"),
        times(counts["A100_l2"], least),
        f"{counts['sectors'] / requests:.1f}",
        f"{counts['lanes'] / requests / 32:.0%}",
        si(scale * counts["shuffles"], ""),
        si(scale * cell["flops"], ""),
        *(duration(time) for time, _ in models),
        models[0][1],
    ]


def table(cells: Sequence[Counted]) -> Iterator[str]:
    """Every cell, in Markdown, by matrix."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for (matrix, dtype), of_matrix in groupby(cells, key=lambda cell: (cell["matrix"], cell["dtype"])):
        yield f"| **{matrix}**, {'float64' if dtype == 'double' else 'float32'} |" + " |" * (len(HEADER) - 1)
        yield from ("| " + " | ".join(line(cell)) + " |" for cell in of_matrix)


def beside_table2(cells: Sequence[Counted]) -> Iterator[str]:
    """The rows of Table 2: the model's sum over their kernels, and what the paper measured."""
    yield "| Table 2, a call | model, A100 | model, H100 | the paper's A100, measured: the authors | CuPy |"
    yield "|---|---|---|---|---|"
    found = {
        f"{cell['op']}:{cell['width']}": cell
        for cell in cells
        if cell["matrix"].startswith("tridiagonal") and cell["dtype"] == "double"
    }
    for name, ops, authors, cupy in TABLE2:
        parts = [found[op] for op in ops if op in found]
        if len(parts) < len(ops):
            continue
        models = [duration(sum(seconds(part, gpu)[0] for part in parts)) for gpu in GPUS]
        yield f"| {name} | {' | '.join(models)} | {duration(authors)} | {duration(cupy) if cupy else '–'} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.cuda_model", description=__doc__)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="cuda_cost, which the dev preset builds")
    parser.add_argument("--quick", action="store_true", help="a tiny matrix, seconds")
    parser.add_argument("--matrix", default="", help="only matrices whose name has this")
    parser.add_argument("--from", dest="counted", type=Path, nargs="+", default=[], help="counts of earlier runs")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where cuda_model.json goes")
    options = parser.parse_args(arguments)
    cells: list[Counted] = [cell for path in options.counted for cell in json.loads(path.read_text())]
    if not cells:
        if not options.program.exists():
            parser.error(f"no {options.program}: make dev, or cmake --build --preset dev --target cuda_cost")
        wanted = [cell for cell in (QUICK if options.quick else CELLS) if options.matrix in cell.matrix]
        options.out.mkdir(parents=True, exist_ok=True)
        for counted in count(wanted, options.program, lambda text: print(text, file=sys.stderr)):
            cells.append(counted)  # written at once: the next one may take minutes
            (options.out / "cuda_model.json").write_text(json.dumps(cells, indent=1) + "\n")
    print("A model, not a measurement: no GPU has run these kernels.\n")
    print("\n".join(table(cells)))
    print("\n" + "\n".join(beside_table2(cells)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
