# SPDX-License-Identifier: BSD-3-Clause
"""python -m bench.instructions PROGRAM: counts the instructions of small cases and compares them with those on record.

A number that has grown by more than 5 % fails: the change is a mistake, or --record it and say why in the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

RECORD = Path(__file__).with_name("counts.json")
ALLOWED = 1.05
ABOUT = ("compiler", "level")
NOT_HERE = 77  # the program's status where the system lets nobody count


def counted(program: str) -> dict[str, str]:
    """What the program prints, by name. AVX2: most machines have it, and those with more count the same."""
    environment = {**os.environ, "GOSSAMER_SIMD": "avx2"}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode == NOT_HERE:
        print(f"bench-check: skipped, {done.stderr.strip()}")
        raise SystemExit(0)
    if done.returncode:
        raise SystemExit(f"bench-check: nothing was counted: {done.stderr.strip()}")
    return dict(line.split("\t") for line in done.stdout.splitlines())


def compare(now: dict[str, str], record: dict[str, str]) -> list[str]:
    """Prints every case; returns those that have grown too much, and those that nobody has recorded."""
    failed = []
    for name in [name for name in now if name not in ABOUT]:
        if name not in record:
            failed.append(f"{name}: not on record")
            continue
        ratio = int(now[name]) / int(record[name])
        print(f"{name:40} {int(now[name]):9,} of {int(record[name]):9,} on record   {ratio:.3f}")
        if ratio > ALLOWED:
            failed.append(f"{name}: {ratio:.2f} times as many instructions as on record")
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("program", help="count_instructions, which the release preset builds")
    parser.add_argument("--record", action="store_true", help="write what is counted, in place of comparing it")
    options = parser.parse_args(arguments)
    now = counted(options.program)
    if options.record:
        RECORD.write_text(json.dumps(now, indent=2, ensure_ascii=False) + "\n")
        return 0
    record = json.loads(RECORD.read_text())
    if different := [about for about in ABOUT if now[about] != record[about]]:
        for about in different:
            print(f"bench-check: skipped, the {about} is {now[about]}, and that on record is {record[about]}")
        return 0
    failed = compare(now, record)
    for line in failed:
        print(f"bench-check: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
