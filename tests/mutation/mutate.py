# SPDX-License-Identifier: BSD-3-Clause
"""Changes one operator, bound or constant at a time and looks whether the tests notice.

    python tests/mutation/mutate.py --cpp 60 --python 60 --files 12 --seed 1

C++ is built once: every change of the sample is in it, and GOSSAMER_MUTANT says which one is made (gates.py). Python is
copied and changed file by file. The tests run without the stand-in for cuda: what only a device does stays as it is.
Verdicts are added to a log; what was noticed there is not judged again, so the same command after a new test judges the
survivors. Those that were answered stand in answered.txt, each with its reason, and are counted apart.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gates import BUILD, KERNEL_TESTS, LIBRARY, ROOT, Numbered, build, units
from judges import Court, judges
from sites import Site, cpp_sites, listed_sites, python_sites

HERE = Path(__file__).parent
NOT_CHANGED = re.compile(r"device|equations/|golden|/_commands/|_programs|config|memory/|prefetch|_fakes|_compile")
TREES = {
    "cpp": ["include/gossamer/kernels/*.h", "src/torch/**/*.h", "src/torch/**/*.cpp"],
    "python": ["python/gossamer/**/*.py"],
}
FIND = {"cpp": cpp_sites, "python": python_sites}


def sample(kind: str, given: argparse.Namespace) -> list[Site]:
    """Some of all changes, from some files: a build compiles what includes them."""
    draw = random.Random(given.seed)
    names = sorted({str(path.relative_to(ROOT)) for tree in TREES[kind] for path in ROOT.glob(tree)})
    sites = {
        name: list(FIND[kind](ROOT / name, name))
        for name in names
        if not NOT_CHANGED.search(name) and re.search(given.only, name)
    }
    if kind == "cpp":
        sites = {name: found for name, found in sites.items() if units(name) <= given.units}
    drawn = draw.sample(sorted(sites), min(given.files or len(sites), len(sites)))
    total = [site for name in sorted(drawn) for site in sites[name]]
    print(f"{kind}: {len(total)} changes in {len(drawn)} of {len(names)} files", flush=True)
    chosen = draw.sample(total, min(getattr(given, kind), len(total)))
    return sorted(chosen, key=lambda site: (site.file, site.line))  # as they are numbered and compiled


def planted(kind: str, only: str) -> list[Site]:
    """The changes that once survived, as planted.txt has them."""
    sites = listed_sites(HERE / "planted.txt", ROOT)
    return [site for site in sites if (kind == "python") == site.file.endswith(".py") and re.search(only, site.file)]


def without_line(text: str) -> str:
    """As answered.txt names a change: lines move."""
    return re.sub(r":\d+:", ":", text, count=1).strip()


def answered() -> set[str]:
    lines = (HERE / "answered.txt").read_text().splitlines()
    return {line.split("  # ")[0].strip() for line in lines if not line.startswith("#")}


def noticed_before(log: Path) -> dict[str, str]:
    """The changes that the log says were killed, without their lines, and by whom."""
    lines = log.read_text().splitlines() if log.exists() else []
    parts = [line.split("  by ") for line in lines if line.startswith("killed")]
    return {without_line(before.removeprefix("killed").strip()): by for before, by in parts}


def environments(kind: str, number: int, site: Site, scratch: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Of the tests with the change, and without any."""
    sane = {**os.environ, "GOSSAMER_STANDIN": "off", "PYTHONPATH": str(ROOT / "python")}
    if kind == "python":
        # Copies both: a command that looks for the project beside the package finds it in neither.
        places = changed_copy(site, scratch), changed_copy(None, scratch / "sane")
        changed, sane = ({**sane, "PYTHONPATH": str(place)} for place in places)
        return changed, sane
    library = scratch / LIBRARY
    sane |= {"GOSSAMER_LIBRARY": str(library), "LD_LIBRARY_PATH": str(library.parent)}
    sane |= {"ASAN_OPTIONS": "hard_rss_limit_mb=8192"}  # of the kernels' tests, which are linked with AddressSanitizer
    return {**sane, "GOSSAMER_MUTANT": str(number)}, {**sane, "GOSSAMER_MUTANT": "0"}


def changed_copy(site: Site | None, scratch: Path) -> Path:
    """The package beside its library, with the change, if any."""
    package = scratch / "python/gossamer"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python/gossamer", package, ignore=shutil.ignore_patterns("lib", "__pycache__"))
    (package / "lib").symlink_to(ROOT / "python/gossamer/lib")
    if site is None:
        return scratch / "python"
    path = scratch / site.file
    lines = path.read_text().split("\n")
    lines[site.line - 1] = site.changed
    path.write_text("\n".join(lines))
    return scratch / "python"


def programs(site: Site, scratch: Path) -> list[Path]:
    """The tests of the C++ front end, which load the changed library, and of a kernel's header those of the kernels."""
    if not site.file.endswith((".h", ".cpp")):
        return []
    front_end = BUILD / "tests/cpp" / ("distributed_tests" if "/distributed" in site.file else "front_end_tests")
    return [front_end, scratch / KERNEL_TESTS] if "/kernels/" in site.file else [front_end]


def judges_of(site: Site, given: argparse.Namespace) -> Iterator[list[str]]:
    """Those of its file; of one that once survived only the tests that were written for it, with the stand-in."""
    if site not in given.once:
        return judges(site.file, programs(site, given.scratch), not given.quick)
    options = ["-x", "-rfE", "--tb=line", "-p", "no:cacheprovider"]
    return iter([[sys.executable, "-m", "pytest", *options, "tests/mutation"]])


def judge(kind: str, numbered: Numbered, given: argparse.Namespace) -> Counter[str]:
    """Tells each change's fate; how many of each."""
    court = Court(given.scratch / f"{kind}.log", given.limit)
    reasons, before = answered(), noticed_before(given.log)
    fates: Counter[str] = Counter()
    # In any order, so that what is judged when time is over is a fair sample; those that once survived come first.
    order = random.Random(given.seed).sample(sorted(numbered.items()), len(numbered))
    for number, site in sorted(order, key=lambda one: one[1] not in given.once):
        name = without_line(str(site))
        if name in reasons or name in before:
            fates["answered" if name in reasons else "killed"] += 1
            continue
        started = time.perf_counter()
        changed, sane = environments(kind, number, site, given.scratch)
        if site in given.once:
            changed, sane = ({**where, "GOSSAMER_STANDIN": "on"} for where in (changed, sane))
        by = court.verdict(judges_of(site, given), changed, sane)
        fates["killed" if by else "SURVIVED"] += 1
        line = f"killed  {site}  by {by}" if by else f"SURVIVED  {site}"
        print(f"{line}  ({time.perf_counter() - started:.0f} s)", flush=True)
        with given.log.open("a") as log:
            log.write(line + "\n")
    return fates


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpp", type=int, default=0, help="how many changes of C++")
    parser.add_argument("--python", type=int, default=0, help="how many changes of Python")
    parser.add_argument("--planted", default="", help="the changes that once survived (planted.txt): cpp, python, both")
    parser.add_argument("--quick", action="store_true", help="only the tests of a file's own family")
    parser.add_argument("--files", type=int, default=0, help="from so many files, which are drawn first; 0: all")
    parser.add_argument("--only", default="", help="files whose names have this (a regular expression)")
    parser.add_argument("--units", type=int, default=9, help="no header that more sources include: builds stay short")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="of the build")
    parser.add_argument("--limit", type=int, default=300, help="processor seconds of a judge; more is noticed")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build/mutation")
    parser.add_argument("--log", type=Path, default=ROOT / "build/mutation/verdicts.txt")
    given = parser.parse_args(arguments)
    given.scratch = given.scratch.resolve()
    given.scratch.mkdir(parents=True, exist_ok=True)
    for kind in ("python", "cpp"):
        given.once = planted(kind, given.only) if given.planted in (kind, "both") else []
        if not getattr(given, kind) and not given.once:
            continue
        taken = {(site.file, site.line) for site in given.once}
        drawn = sample(kind, given) if getattr(given, kind) else []
        sites = [*(site for site in drawn if (site.file, site.line) not in taken), *given.once]
        numbered = build(sites, given.scratch, given.jobs) if kind == "cpp" else dict(enumerate(sites))
        fates = judge(kind, numbered, given)
        counted = fates["killed"] + fates["SURVIVED"]
        share = 100 * fates["killed"] / max(counted, 1)
        print(
            f"{kind}, seed {given.seed}: {fates['killed']} of {counted} changes noticed ({share:.0f} %), "
            f"{fates['answered']} more are answered",
            flush=True,
        )


if __name__ == "__main__":
    main()
