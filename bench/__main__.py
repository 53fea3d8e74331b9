# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench: times every row beside its peers. All contenders share one process, allocator and memory."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import cells, machine, matrices, plot, tables
from bench.row import CPU
from bench.rows import ROWS, products
from bench.studies import scaling, table2

STUDIES: dict[str, Any] = {"--table2": table2, "--scaling": scaling}
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small matrices, seconds instead of minutes")
    parser.add_argument("--rows", type=names, default=list(ROWS), help=f"of {', '.join(ROWS)}")
    named = ",".join(matrices.DEFAULT)
    parser.add_argument(
        "--matrices", type=names, default=list(matrices.DEFAULT), help=f"{named} or paths to .mtx files"
    )
    parser.add_argument(
        "--columns", type=numbers, help="widths of the dense operands, 1 is a vector (each row its own)"
    )
    parser.add_argument("--dtype", type=names, default=["float32"], help="float32,float64")
    cores = os.cpu_count() or 1
    parser.add_argument("--threads", type=numbers, default=[1, 2] if cores > 1 else [1], help="such as 1,2")
    parser.add_argument("--device", type=names, default=devices(), help="cpu,cuda (cuda too, where there is one)")
    parser.add_argument("--seconds", type=float, help="budget of each contender in a cell")
    parser.add_argument("--malloc", choices=["default", "keep"], default="default", help="keep: free nothing")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where bench.json and bench.png go")
    for option, study in STUDIES.items():  # main hands over to them: here they are for the help
        parser.add_argument(option, action="store_true", help=f"{study.TITLE}; see {option} --help")
    options = parser.parse_args(arguments)
    for given, known in ((options.rows, ROWS), (options.dtype, DTYPES), (options.device, ("cpu", "cuda"))):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"no {', '.join(unknown)}: choose from {', '.join(known)}")
    for name in options.matrices:
        if name not in matrices.DEFAULT and not Path(name).is_file():
            parser.error(f"no matrix {name}: choose from {named} or give the path of a .mtx file")
    if "cuda" in options.device and torch.cuda.device_count() == 0:
        parser.error("no cuda: torch finds no device")
    return options


def devices() -> list[str]:
    """What is timed unless told: the GPU, too, where there is one."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def measure_bandwidth(options: argparse.Namespace, console: Console) -> dict[str, float]:
    """By number of threads, and of the device."""
    places = [(str(threads), threads, CPU) for threads in options.threads if "cpu" in options.device]
    places += [("cuda", 0, torch.device("cuda"))] * ("cuda" in options.device)
    bandwidth = {}
    for name, threads, device in places:
        rate = bandwidth[name] = machine.bandwidth(threads, options.quick, device)
        place = f"{threads} thread{'s' * (threads > 1)}" if threads else name
        console.print(f"memory bandwidth, {place}: {rate / 1e9:.1f} GB/s", highlight=False)
    return bandwidth


def run(options: argparse.Namespace, console: Console) -> tuple[list[cells.Cell], dict[str, float]]:
    """Bandwidth, then every cell. Ctrl-C ends it early, with what was measured until then."""
    bandwidth = measure_bandwidth(options, console)
    wanted = cells.Options(
        rows=options.rows,
        matrices=options.matrices,
        columns=options.columns,
        dtypes=[DTYPES[name] for name in options.dtype],
        threads=options.threads,
        devices=[torch.device(name) for name in options.device],
        quick=options.quick,
        budget=options.seconds or (0.02 if options.quick else 0.5),
    )
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:  # no thread beside us
        task, start = progress.add_task(""), time.time()

        def tell(text: str) -> None:
            progress.update(task, description=text, refresh=True)
            if not console.is_terminal:  # a log has no line that changes
                console.print(f"{time.time() - start:6.0f} s  {text}", highlight=False)

        measured = []
        try:
            for cell in cells.run(ROWS, wanted, tell):
                measured.append(cell)
        except KeyboardInterrupt:
            console.print("Ended early: what follows is not all.", style="yellow")
        return measured, bandwidth


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option, study in STUDIES.items():
        if option in given:
            given.remove(option)
            return int(study.main(given))
    options = parse(given)
    start = time.time()
    allocator = machine.use_malloc(options.malloc)
    about = {
        **machine.describe(),
        "allocator": allocator,
        "arguments": given,
    }
    console = Console()
    if not console.is_terminal:
        console.width = 150
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    console.print(f"{about['machine']['processor']}; {versions}; malloc: {allocator}", highlight=False)
    if about["machine"]["load_at_start"] > 0.5:
        load = about["machine"]["load_at_start"]
        console.print(f"Load {load:.1f}: others use this machine, the numbers will be theirs, too.", style="yellow")
    threads = torch.get_num_threads()
    try:
        measured, bandwidth = run(options, console)
    finally:
        torch.set_num_threads(threads)
    console.print(tables.table(measured, bandwidth))
    tables.print_skipped(console, measured)
    options.out.mkdir(parents=True, exist_ok=True)
    tables.write_json(options.out / "bench.json", measured, bandwidth, about)
    plot.write_plot(options.out / "bench.png", measured, f"{about['machine']['processor']}; {versions}")
    seconds = time.time() - start
    console.print(
        f"{len(measured)} cells in {seconds:.0f} s; see {options.out}/bench.json and bench.png", highlight=False
    )
    return 0


if __name__ == "__main__":
    products.load_mkl()
    sys.exit(main())
