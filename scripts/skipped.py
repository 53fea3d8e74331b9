# SPDX-License-Identifier: BSD-3-Clause
"""Lists what was skipped and why, from the results that ctest and pytest wrote as JUnit files: the end of `make test`.

python scripts/skipped.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

# A test of GoogleTest within a test of ctest: the place, the reason, the name.
WITHIN = re.compile(r"^\S+: Skipped\n(.*)\n(?:\n)?\[  SKIPPED \] (\S+)", re.MULTILINE)


def skipped(results: Path) -> Iterator[str]:
    """The reason of each skipped test in a file. ctest knows that a test was skipped; why, its last line says."""
    for case in ElementTree.parse(results).iter("testcase"):
        printed = case.findtext("system-out") or ""
        yield from (f"{name}: {why}" for why, name in WITHIN.findall(printed))
        mark = case.find("skipped")
        if mark is None:
            continue
        why = mark.get("message") or ""
        if why.startswith("SKIP_RETURN_CODE"):
            why = f"{case.get('name')}: {(printed.strip() or 'it does not say why').splitlines()[-1]}"
        yield re.sub(r"\s+", " ", why)


def lines(folder: Path) -> Iterator[str]:
    """One line a stage of the tests, and one a reason below it."""
    for results in sorted(folder.glob("*.xml")):
        reasons = Counter(skipped(results))
        count = sum(1 for _ in ElementTree.parse(results).iter("testcase"))
        yield f"{results.stem}: {count} tests, {reasons.total()} skipped"
        yield from (f"  {times} × {why}" for why, times in reasons.most_common())


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]))))
