# SPDX-License-Identifier: BSD-3-Clause
"""Tests and times Gossamer on this machine's GPU, and writes a report to attach to an issue: see docs/gpu.md.

`make gpu-report` builds everything and runs this. It runs the table of ops on the device (tests/table), then the
benchmark's rows beside cuSPARSE, CuPy and PyG, and leaves out/gpu_report.md with the circumstances, the failures and
the times. The numbers of every call are in out/bench.json.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests")]

from skipped import skipped  # noqa: E402

LOAD_STANDIN = "import cuda_standin; cuda_standin.load({library!r})"
LONGEST = 40  # lines of a failure


def python(code: str, standin: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process of its own: what the stand-in changes must be there before torch is."""
    load = LOAD_STANDIN.format(library=str(standin)) if standin else ""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", f"{load}\n{code}", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, cwd=ROOT)


ENVIRONMENT = """
import platform, torch, gossamer
gossamer.show_config()
print(f"torch: {torch.__version__}, built with CUDA {torch.version.cuda}")
for k in range(torch.cuda.device_count()):
    if torch.cuda.is_available():
        p = torch.cuda.get_device_properties(k)
        print(f"cuda:{k}: {p.name}, sm_{p.major}{p.minor}, {p.multi_processor_count} multiprocessors, {p.total_memory / 1e9:.1f} GB")
print(f"python: {platform.python_version()}, {platform.platform()}")
if not torch.cuda.device_count():
    raise SystemExit("torch finds no CUDA device")
"""  # noqa: E501


def output_of(*command: str) -> str:
    """Of a program that may be missing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except OSError:
        return f"no {command[0]}"


def test(folder: Path, standin: Path | None, only: str) -> tuple[bool, list[str]]:
    """The table of ops on the device: whether all passed, and what to tell."""
    results = folder / "gpu_tests.xml"
    results.unlink(missing_ok=True)
    wanted = f"cuda and ({only})" if only else "cuda"
    environment = dict(os.environ) | ({} if standin else {"GOSSAMER_STANDIN": "off"})
    command = [sys.executable, "-m", "pytest", "tests/table", "-k", wanted, f"--junitxml={results}"]
    log = subprocess.run(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if not results.exists():
        return False, ["pytest did not run:", "```", *log.stdout.splitlines()[-LONGEST:], "```"]
    cases = list(ElementTree.parse(results).iter("testcase"))
    bad = [(case, mark) for case in cases for mark in (case.find("failure"), case.find("error")) if mark is not None]
    why = Counter(skipped(results))
    passed = len(cases) - len(bad) - why.total()
    told = [f"{passed} passed, {len(bad)} failed, {why.total()} skipped."]
    told += [f"- skipped {times} ×: {reason}" for reason, times in why.most_common()]
    for case, mark in bad:
        told += ["", f"### {case.get('name')}", "```", *(mark.text or "").splitlines()[-LONGEST:], "```"]
    return passed > 0 and not bad, told


def bench(folder: Path, standin: Path | None, arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """The benchmark's rows on the device."""
    code = "import sys; from bench.__main__ import main; sys.exit(main(sys.argv[1:]))"
    done = python(code, standin, "--device", "cuda", "--out", str(folder), *arguments)
    text = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    return done.returncode == 0, ["```", *text.rstrip().splitlines(), "```"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out", help="where the report goes")
    parser.add_argument("--only", default="", help="tests whose name has this, as pytest's -k")
    parser.add_argument("--bench", default="--dtype float32,float64", help="arguments of the benchmark; none: no times")
    parser.add_argument("--standin", type=Path, help="a library to play the GPU, for tests of this program")
    options = parser.parse_args(arguments)
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    about = python(ENVIRONMENT, options.standin)
    lines = [
        "# Gossamer on a GPU", "",
        "Emulated: no GPU took part, and no time means anything." if options.standin else "",
        "```", *about.stdout.splitlines(), *about.stderr.splitlines()[-1:],
        f"commit: {output_of('git', 'describe', '--always', '--dirty')}",
        output_of("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"), "```",
    ]  # fmt: skip
    good = about.returncode == 0
    stages = [("Tests", lambda: test(folder, options.standin, options.only))]
    if options.bench != "none":
        stages.append(("Times", lambda: bench(folder, options.standin, shlex.split(options.bench))))
    for title, stage in stages if good else ():
        print(f"{title} …", flush=True)
        start = time.time()
        passed, told = stage()
        good &= passed
        lines += ["", f"## {title}, {time.time() - start:.0f} s", "", *told]
    report = folder / "gpu_report.md"
    report.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"\n{'All is well' if good else 'Something failed'}: please attach {report} to an issue.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
