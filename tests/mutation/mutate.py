# SPDX-License-Identifier: BSD-3-Clause
"""Changes one operator, bound or constant at a time and looks whether the tests notice.

    python tests/mutation/mutate.py --cpp 60 --python 60 --seed 1

C++ is built once: every change of the sample is in it, and GOSSAMER_MUTANT says which one is made. Python is copied and
changed file by file. The tests of a family run without the stand-in for cuda: what only a device does stays as it is.
Survivors that were answered stand in answered.txt, each with its reason, and are drawn no more.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch  # noqa: F401  for the children that test
from sites import Site, cpp_sites, gated, python_sites

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = "build/release"  # as deep as that of the preset: the compiler cache knows what is not changed
COPIED = ["CMakeLists.txt", "cmake", "include", "src", "tests/kernels", "tests/cuda"]
NOT_CHANGED = re.compile(r"device|equations/|golden|/_commands/|_programs|config|memory/|prefetch|_fakes|_compile")
QUICK = "not cuda and not cpp and not compiles and not opcheck"
TABLE = [["tests/table/test_ops.py", "tests/table/test_bad_input.py", "tests/mutation", "-k", QUICK]]
RAW = [["tests/table/test_raw_ops.py", "-k", QUICK]]
FAMILIES = {  # of files, and the tests that are theirs, quick ones first
    r"attention|gat|softmax|dropout|graphs|nn/|edges|datasets|synthetic": [["tests/graphs"], *TABLE, *RAW],
    r"files|matrix_market|npz|mtx|inflate|/file\.h": [["tests/files"]],
    r"krylov|linear_operator|convergence": [["tests/krylov"], *TABLE, *RAW],
    r"precondition|incomplete|aggregate|cycle|amg": [["tests/precondition"], *TABLE, *RAW],
    r"spectral|basis|deflate|lanczos": [["tests/spectral"], *TABLE, *RAW],
    r"jacobian|colour|probe|_root": [["tests/jacobian"], *TABLE, *RAW],
    r"least_squares|expm|cholesky": [["tests/factor"], *TABLE, *RAW],
    r"solve|factor|front|triang|inverse|multifrontal|levels|assembly": [["tests/solve", "tests/factor"], *TABLE, *RAW],
    r"": [
        ["tests/matrix", "--ignore=tests/matrix/test_pages.py"],
        *TABLE,
        *RAW,
        ["tests/solve/test_linalg.py", "tests/site/test_docs.py"],
    ],
}
INCLUDED = """#pragma once
#include <cstdlib>
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wtautological-compare"
inline int gossamer_mutant = std::getenv("GOSSAMER_MUTANT") ? std::atoi(std::getenv("GOSSAMER_MUTANT")) : 0;
"""


def sample(kind: str, count: int, draw: random.Random, only: str) -> list[Site]:
    """Some of all changes that were not answered."""
    answered = {line.split("  # ")[0].strip() for line in (HERE / "answered.txt").read_text().splitlines()}
    trees = {
        "cpp": [*ROOT.glob("include/gossamer/kernels/*.h"), *ROOT.glob("src/torch/**/*.[hc]*")],
        "python": [*ROOT.glob("python/gossamer/**/*.py")],
    }
    find = {"cpp": cpp_sites, "python": python_sites}[kind]
    files = [(path, str(path.relative_to(ROOT))) for path in sorted(trees[kind])]
    sites = [
        site
        for path, name in files
        if not NOT_CHANGED.search(name) and re.search(only, name)
        for site in find(path, name)
        if without_line(site) not in answered
    ]
    print(f"{kind}: {len(sites)} changes in {len(files)} files", flush=True)
    return draw.sample(sites, min(count, len(sites)))


def without_line(site: Site) -> str:
    """As answered.txt names it: lines move."""
    return re.sub(r":\d+:", ":", str(site), count=1)


def build(sites: list[Site], scratch: Path, jobs: int, kernels: bool) -> list[Site]:
    """The library, perhaps the tests of kernels, with all changes in them; the changes that compile."""
    numbered = list(enumerate(sites, 1))
    folder = scratch / BUILD
    while True:
        write_sources(numbered, scratch)
        if not (folder / "build.ninja").exists():
            options = [
                "-DCMAKE_BUILD_TYPE=Release",
                "-DGOSSAMER_TESTS=kernels",
                f"-DPython_EXECUTABLE={sys.executable}",
            ]
            subprocess.run(["cmake", "-G", "Ninja", "-S", scratch, "-B", folder, *options], check=True)
        targets = ["gossamer", *["kernel_tests"] * kernels]
        command = ["ninja", "-C", folder, f"-j{jobs}", "-k0", *targets]
        environment = {**os.environ, "CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        (scratch / "build.log").write_text(done.stdout + done.stderr)
        if done.returncode == 0:
            return [site for _, site in numbered]
        wrong = set(re.findall(r"((?:include|src)/[\w/.]+):(\d+):\d+: error", done.stdout))
        kept = [(k, site) for k, site in numbered if (site.file, str(site.line)) not in wrong]
        if len(kept) == len(numbered):
            raise SystemExit(f"the build failed for another reason than a change: {scratch / 'build.log'}")
        print(f"{len(numbered) - len(kept)} changes do not compile", flush=True)
        numbered = list(enumerate((site for _, site in kept), 1))


def write_sources(numbered: list[tuple[int, Site]], scratch: Path) -> None:
    """A copy of the sources with all changes; only files that differ are written, so that a build is incremental."""
    listed = subprocess.run(["git", "ls-files", *COPIED], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.splitlines()}
    for name in {site.file for _, site in numbered}:
        lines = texts[name].split("\n")
        lines[0] = "#include <gossamer_mutant.h>"  # in the place of the licence, so that lines keep their numbers
        for line in {site.line for _, site in numbered if site.file == name}:
            here = [(k, site) for k, site in numbered if (site.file, site.line) == (name, line)]
            first = [(k, site) for k, site in here if site.begin == here[0][1].begin]  # one expression a line
            lines[line - 1] = gated(lines[line - 1], first)
        texts[name] = "\n".join(lines)
    texts["include/gossamer_mutant.h"] = INCLUDED
    for name, text in texts.items():
        path = scratch / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def stages(site: Site) -> list[list[str]]:
    return next(tests for family, tests in FAMILIES.items() if re.search(family, site.file))


def killed_by(site: Site, environment: dict[str, str], kernels: Path | None, limit: int) -> str:
    """The first test that fails; "" if none does. What takes too long or crashes is noticed, too."""
    if kernels is not None:
        command = [str(kernels), "--gtest_brief=1", "--gtest_fail_fast"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=lambda: bound(limit))
        if done.returncode != 0:
            hit = re.search(r"FAILED  \] (\S+)", done.stdout)
            return f"kernel_tests {hit[1] if hit else done.returncode}"
    for arguments in stages(site):
        if name := failing(arguments, environment, limit):
            return name
    return ""


def failing(arguments: list[str], environment: dict[str, str], limit: int) -> str:
    """pytest in a child of this process, which has torch already; the test that failed, or what ended it."""
    log = Path(environment["GOSSAMER_MUTATION_LOG"])
    child = os.fork()
    if child == 0:
        bound(limit)
        os.chdir(ROOT)
        os.environ.update(environment)
        sys.path.insert(0, environment["PYTHONPATH"])
        with log.open("w") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-rf", *arguments])))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (0, 5):
        return ""
    hit = re.search(r"^(?:FAILED|ERROR) (\S+)", log.read_text(), re.MULTILINE)
    return hit[1] if hit else f"{arguments[0]} (exit {code})"


def bound(seconds: int) -> None:
    """The processor's seconds that this process may take: a loop without end is ended, on a busy machine, too."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def python_copy(scratch: Path) -> Path:
    """The package beside its library, to be changed."""
    package = scratch / "python/gossamer"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python/gossamer", package, ignore=shutil.ignore_patterns("lib", "__pycache__"))
    (package / "lib").symlink_to(ROOT / "python/gossamer/lib")
    return scratch / "python"


def judged(sites: list[Site], kind: str, scratch: Path, limit: int) -> Iterator[tuple[Site, str]]:
    """Each change and the test that noticed it."""
    common = {**os.environ, "GOSSAMER_STANDIN": "off", "GOSSAMER_MUTATION_LOG": str(scratch / f"{kind}.log")}
    common["PYTHONPATH"] = str(ROOT / "python")
    for number, site in enumerate(sites, 1):
        if kind == "python":
            copy = python_copy(scratch)
            path = copy / Path(site.file).relative_to("python")
            lines = path.read_text().split("\n")
            line = lines[site.line - 1]
            lines[site.line - 1] = line[: site.begin] + site.text + line[site.end :]
            path.write_text("\n".join(lines))
            yield site, killed_by(site, {**common, "PYTHONPATH": str(copy)}, None, limit)
        else:
            library = scratch / BUILD / "lib/libgossamer.so"
            environment = {**common, "GOSSAMER_LIBRARY": str(library), "GOSSAMER_MUTANT": str(number)}
            kernels = scratch / BUILD / "tests/kernels/kernel_tests"
            quick = kernels if "/kernels/" in site.file and kernels.exists() else None
            yield site, killed_by(site, environment, quick, limit)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpp", type=int, default=0, help="how many changes of C++")
    parser.add_argument("--python", type=int, default=0, help="how many changes of Python")
    parser.add_argument("--only", default="", help="files whose names have this (a regular expression)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", action="store_true", help="build and run the C++ tests of kernels, too")
    parser.add_argument("--jobs", type=int, default=1, help="of the build")
    parser.add_argument("--limit", type=int, default=300, help="processor seconds of a stage of tests; more is noticed")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build/mutation")
    given = parser.parse_args(arguments)
    draw = random.Random(given.seed)
    given.scratch.mkdir(parents=True, exist_ok=True)
    killed = total = 0
    for kind in ("python", "cpp"):
        sites = sample(kind, getattr(given, kind), draw, given.only) if getattr(given, kind) else []
        if kind == "cpp" and sites:
            sites = build(sites, given.scratch, given.jobs, given.kernels)
        for site, by in judged(sites, kind, given.scratch, given.limit):
            total, killed = total + 1, killed + bool(by)
            print(f"{'killed' if by else 'SURVIVED'}  {site}  {'by ' + by if by else ''}", flush=True)
    print(f"{killed} of {total} changes were noticed ({100 * killed / max(total, 1):.0f} %), seed {given.seed}")


if __name__ == "__main__":
    main()
