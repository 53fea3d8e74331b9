# SPDX-License-Identifier: BSD-3-Clause
"""The tests that should notice a change of a file, quick ones first, and who of them does."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.sparse.linalg  # noqa: F401  these two for the children that test: they need not load them again
import torch  # noqa: F401

ROOT = Path(__file__).parents[2]
QUICK = "not cuda and not compiles and not opcheck"
ROWS = ("ops", "patterns", "bad_input", "complex", "front_ends", "structure_mistakes")
OPS = [f"tests/table/test_{name}.py" for name in ROWS]
ALL = [["tests/mutation", *OPS, "-k", QUICK], ["tests/table/test_raw_ops.py", "-k", QUICK], ["tests/site/test_docs.py"]]
RANKS = [
    ["tests/distributed/test_partition.py", "tests/distributed/test_files.py"],
    ["tests/distributed/test_on_ranks.py", "-k", "[2- or [3-"],
]
WITHOUT = ["--ignore=tests/matrix/test_pages.py", "-k", "not real_matrices"]  # slow ones
FAMILIES = {  # of files, and the tests that are theirs, quick ones first
    r"_interrupt|signals": [["tests/faults/test_signals.py"]],
    r"_transforms": [["tests/jacobian/test_transforms.py"], ["tests/krylov"]],
    r"_checkpoint": [["tests/faults/test_resume.py"], ["tests/graphs"]],
    r"_library": [["tests/site/test_torch_version.py"]],
    r"distributed|_two_level|partition": RANKS,
    r"__main__|equations": [["tests/programs/test_command_line.py", "tests/graphs/test_golden.py"]],
    r"_construct|/coo|triplets": [["tests/files/test_npz.py", "tests/matrix/test_construct.py"]],
    r"files|matrix_market|npz|mtx|inflate|file\.h": [["tests/files"]],
    r"attention|/_?gat|online_softmax|/softmax|dropout|graphs|nn/|edges|datasets|synthetic|heads": [["tests/graphs"]],
    r"krylov|linear_operator|convergence|dot_exact|exact_sum": [["tests/krylov"]],
    r"precondition|incomplete|aggregate|cycle|amg": [["tests/precondition"]],
    r"spectral|basis|deflate|lanczos|border": [["tests/spectral"]],
    r"jacobian|colour|probe|_root": [["tests/jacobian"]],
    r"least_squares|expm|cholesky": [["tests/factor"]],
    r"solve|factor|front|triang|inverse|multifrontal|levels|assembly": [["tests/solve", "tests/factor"]],
    r"": [["tests/matrix", *WITHOUT], ["tests/solve/test_linalg.py"]],
}
NAMES = {  # of ops and functions, which rows of the table and tests are called after
    ".py": r"^ *def ([a-z]\w+)",
    ".h": r"\bvoid (\w+)\(",
    ".cpp": r'(?:schema = |def\()"(\w+)\(|^(?:SparseMatrix|Tensor) (?:SparseMatrix::)?(\w+)\(',
}
ALSO = {r"structure|submatrix|entries|band": ["slice", "index", "-row", "column", "entry", "mask", "stack", "diag"]}
# No name of a function tells rows apart that stands in the names of tests, or of kinds of matrices such as "one row".
IN_ALL = re.compile("forward|autograd|batched|main|check|run|not|and|equals|grad(ient)?|row|rows|entries|make|find")
Command = list[str]


def judges(file: str, programs: list[Path], thorough: bool) -> Iterator[Command]:
    """Programs of C++, then what pytest is given: the rows named as the file and what is in it, its family, all."""
    for program in programs:
        if program.exists():
            yield [str(program), "--gtest_brief=1", "--gtest_fail_fast"]
    front_ends = QUICK if file.endswith((".h", ".cpp")) else f"{QUICK} and not cpp"
    family = next(tests for names, tests in FAMILIES.items() if re.search(names, file))
    if family is not RANKS:
        yield [*OPS, "-k", f"({' or '.join(words(file))}) and {front_ends}"]
    yield from family
    if family is not RANKS and "Distributed" in (ROOT / file).read_text():
        yield RANKS[1]  # a branch of it is for matrices on many processes
    if not thorough:
        yield ["tests/mutation", "-k", QUICK]  # of what once survived: seconds
    elif family is not RANKS:
        yield from ALL


def words(file: str) -> list[str]:
    """The file's name and the names of its ops and functions; of a kernel those of the ops that include it."""
    path = ROOT / file
    including = [path]
    if "/kernels/" in file:
        including += [op for op in ROOT.glob("src/torch/**/*.cpp") if f"kernels/{path.name}" in op.read_text()]
    found = {path.stem.strip("_")}.union(*(more for names, more in ALSO.items() if re.search(names, file)))
    for one in including:
        hits = re.findall(NAMES[one.suffix], one.read_text(), re.MULTILINE)
        found |= {name for hit in hits for name in ([hit] if isinstance(hit, str) else hit)}
    return sorted(word for word in found if len(word) > 2 and not IN_ALL.fullmatch(word))


class Court:
    """Runs judges in children with bounded time and memory, and knows who fails without any change, too."""

    def __init__(self, log: Path, seconds: int) -> None:
        self.log = log
        self.seconds = seconds
        self.sound: dict[str, bool] = {}

    def verdict(self, commands: Iterator[Command], environment: dict[str, str], sane: dict[str, str]) -> str:
        """The first test that fails; "" if none does. It must pass in `sane`, where nothing is changed."""
        for first in commands:
            command = first
            while by := self.failing(command, environment):
                program = first[:-1] if first[0] == sys.executable else []  # pytest in a process of its own
                test = [*program, by] if "::" in by else first
                key = " ".join(test)
                if key not in self.sound:
                    self.sound[key] = not self.failing(test, sane)
                if self.sound[key]:
                    return by
                print(f"fails without any change, too, and judges no more: {key}", flush=True)
                if "::" not in by:
                    break
                command = [*command, "--deselect", by]
        return ""

    def failing(self, command: Command, environment: dict[str, str]) -> str:
        """The test that failed, or what ended the child."""
        child = os.fork()
        if child == 0:
            self.child(command, environment)
        code = self.waited(child)
        if code == 0 or (code == 5 and not command[0].startswith("/")):  # pytest: no test of that name
            return ""
        text = self.log.read_text(errors="replace")
        # The parameters of a test may have blanks in their names; " - " begins what it said.
        named = re.search(r"^(?:FAILED|ERROR) (\S+::\w+\[.*?\](?= - |$)|\S+)", text, re.MULTILINE)
        hit = named or re.search(r"FAILED  \] (\w+\S+)", text)
        ended = signal.Signals(-code).name if code < 0 else f"exit {code}"
        if not hit:
            return f"{Path(command[0]).name} ({ended})"
        return hit[1] if "::" in hit[1] else f"{Path(command[0]).name} {hit[1]}"

    def child(self, command: Command, environment: dict[str, str]) -> None:
        """pytest in a copy of this process, which has torch already; or another program."""
        try:
            os.setsid()
            # Processor time, so that a loop without end is ended on a busy machine, too; and memory, which others need.
            resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds))
            if Path(command[0]).name != "kernel_tests":  # AddressSanitizer reserves more than it takes
                resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(ROOT)
            with self.log.open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            if command[0].startswith("/"):
                os.execve(command[0], command, environment)
            os.environ.clear()
            os.environ.update(environment)
            sys.path.insert(0, environment["PYTHONPATH"])
            sys.dont_write_bytecode = False  # pytest rewrites hypothesis and the tests: once, not for each change
            options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-rfE"]
            code = int(pytest.main([*options, *command]))
            sys.stdout.flush()
            os._exit(code)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(99)

    def waited(self, child: int) -> int:
        """The child's exit code. One that waits for ever takes no processor time: it is ended by the clock."""
        deadline = time.monotonic() + 10 * self.seconds
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it left behind
        return os.waitstatus_to_exitcode(status)
