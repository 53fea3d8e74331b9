# SPDX-License-Identifier: BSD-3-Clause
"""Builds the library once with all changes of a sample in it, and the tests of the kernels likewise, where the dev
build is there: GOSSAMER_MUTANT says which change is made.

Only the sources that the changes touch are compiled, by the commands of these builds; what they have made of the others
is linked as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sites import Site, gated

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/release"
DEV = ROOT / "build/dev"
LIBRARY = "lib/libgossamer.so"
KERNEL_TESTS = "kernel_tests"
INCLUDED = """#pragma once
#include <cstdlib>
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wtautological-compare"
inline int gossamer_mutant = std::getenv("GOSSAMER_MUTANT") ? std::atoi(std::getenv("GOSSAMER_MUTANT")) : 0;
"""

COPIED = ("include", "src", "tests/kernels")
Numbered = dict[int, Site]


def build(sites: list[Site], scratch: Path, jobs: int) -> Numbered:
    """The library with all changes in it, at LIBRARY; the changes that compile, by number."""
    numbered = dict(enumerate(sites, 1))
    commands = {**commands_of(BUILD, "src/"), **commands_of(DEV, "tests/kernels/")}
    while True:
        write_sources(numbered, scratch)
        changed = {site.file for site in numbered.values()}
        units = [name for name in (*sources(), *tests()) if name in commands and changed & all_included(name)]
        print(f"{len(numbered)} changes in {len(units)} sources to compile", flush=True)
        with ThreadPoolExecutor(jobs) as workers:
            said = "".join(workers.map(lambda name: compiled(name, commands[name], scratch), units))
        if not said:
            link(units, scratch)
            return numbered
        wrong = set(re.findall(r"((?:include|src)/[\w/.]+):(\d+):\d+: error", said))
        kept = {k: site for k, site in numbered.items() if (site.file, str(site.line)) not in wrong}
        (scratch / "build.log").write_text(said)
        if len(kept) == len(numbered):
            raise SystemExit(f"the build failed for another reason than a change: {scratch / 'build.log'}")
        print(f"{len(numbered) - len(kept)} changes do not compile", flush=True)
        numbered = kept  # the others keep their numbers, so that only what has these lines is compiled again


def commands_of(build: Path, folder: str) -> dict[str, tuple[str, str]]:
    """Of a build, if it is there: by source, where the compiler runs, and how."""
    listed = build / "compile_commands.json"
    given = json.loads(listed.read_text()) if listed.exists() else []
    own = [one for one in given if one["file"].startswith(f"{ROOT}/{folder}")]
    return {Path(one["file"]).relative_to(ROOT).as_posix(): (one["directory"], one["command"]) for one in own}


def compiled(name: str, given: tuple[str, str], scratch: Path) -> str:
    """One source as its build compiles it, but with the changes; "" or what the compiler said."""
    folder, command = given
    target = object_of(name, scratch)
    text = "".join((scratch / path).read_text() for path in sorted(all_included(name)))
    key = hashlib.sha256((command + text).encode()).hexdigest()
    stamp = target.with_suffix(".key")
    if stamp.exists() and stamp.read_text() == key:
        return ""
    target.parent.mkdir(parents=True, exist_ok=True)
    for copied in COPIED:
        command = command.replace(f"{ROOT}/{copied}", f"{scratch}/{copied}")
    words = [word for word in shlex.split(command) if not word.endswith("ccache")]
    words[words.index("-o") + 1] = str(target)
    # A change is as wrong without much optimisation, and compiled in half the time.
    words += ["-O1", "-fdiagnostics-color=never", f"-I{scratch}/include"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        stamp.write_text(key)
        return ""
    return done.stderr or f"{name}: exit {done.returncode}"


def object_of(name: str, scratch: Path) -> Path:
    return scratch / "objects" / f"{name}.o"


def link(units: list[str], scratch: Path) -> None:
    """The builds' own commands, with other objects."""
    targets = [(BUILD, "gossamer", LIBRARY), (DEV, "kernel_tests", KERNEL_TESTS)]
    for build, target, made in targets if (DEV / "build.ninja").exists() else targets[:1]:
        ask = ["ninja", "-t", "commands", target]
        asked = subprocess.run(ask, cwd=build, capture_output=True, text=True, check=True)
        command = asked.stdout.splitlines()[-1]
        for name in units:
            within = re.escape(name.removeprefix("tests/kernels/"))
            objects = rf"(?:tests/kernels/)?CMakeFiles/\w+\.dir/{within}\.o"
            command = re.sub(objects, str(object_of(name, scratch)), command)
        (scratch / made).parent.mkdir(parents=True, exist_ok=True)
        command = re.sub(rf"-o \S+{Path(made).name}", f"-o {scratch / made}", command)
        subprocess.run(["/bin/sh", "-c", command], cwd=build, check=True)


def write_sources(numbered: Numbered, scratch: Path) -> None:
    """A copy of the sources with all changes."""
    listed = subprocess.run(["git", "ls-files", *COPIED], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.splitlines()}
    for name in {site.file for site in numbered.values()}:
        lines = texts[name].split("\n")
        lines[0] = "#include <gossamer_mutant.h>"  # in the place of the licence, so that lines keep their numbers
        for line in {site.line for site in numbered.values() if site.file == name}:
            here = [(k, site) for k, site in numbered.items() if (site.file, site.line) == (name, line)]
            lines[line - 1] = gated(lines[line - 1], here)
        texts[name] = "\n".join(lines)
    texts["include/gossamer_mutant.h"] = INCLUDED
    for name, text in texts.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def units(name: str) -> int:
    """How many sources of the library a change of this file compiles again."""
    return sum(name in all_included(path) for path in sources())


def sources() -> Iterator[str]:
    for folder in ("src/cpu", "src/torch"):
        for path in sorted(ROOT.glob(f"{folder}/**/*.cpp")):
            yield str(path.relative_to(ROOT))


def tests() -> Iterator[str]:
    for path in sorted((ROOT / "tests/kernels").glob("*.cpp")):
        yield str(path.relative_to(ROOT))


_INCLUDED: dict[str, set[str]] = {}


def all_included(name: str) -> set[str]:
    """A source and every file of ours that it includes, directly or not."""
    if name not in _INCLUDED:
        _INCLUDED[name] = {name}
        path = ROOT / name
        for given in re.findall(r'^#include [<"]([\w/.]+)[>"]', path.read_text(), re.MULTILINE):
            for folder in (path.parent, ROOT / "include", ROOT / "src/torch"):
                found = (folder / given).resolve()
                if found.is_file() and found.is_relative_to(ROOT):
                    _INCLUDED[name] |= all_included(str(found.relative_to(ROOT)))
                    break
    return _INCLUDED[name]
