#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes requirements-hashed.txt: all that pip would install for requirements-dev.txt here, each with its sha256.

    python scripts/hash_requirements.py [REPORT]

Run it after a change of requirements-dev.txt. REPORT: that of `pip install --dry-run --ignore-installed --report`, if
there is one; without, pip is asked, installs nothing, and takes a few minutes. `make HASHED=1` installs from the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HEAD = """\
# Everything make installs from PyPI and what that needs, by its contents: `make HASHED=1` takes nothing else.
# Written by scripts/hash_requirements.py, for Python {python} on {machine} {system} and the CPU build of torch alone;
# elsewhere pip refuses, and the file has to be written anew, or `make` without HASHED takes requirements-dev.txt.
"""


def report() -> Any:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*command, "--report", file.name, "-r", str(ROOT / "requirements-dev.txt")], check=True)
        return json.load(file)


def hashed(found: Any) -> str:
    """The file's contents; where a wheel came from is not among them."""
    lines = []
    for each in found["install"]:
        about, archive = each["metadata"], each["download_info"]["archive_info"]
        lines.append(f"{about['name']}=={about['version']} --hash=sha256:{archive['hashes']['sha256']}\n")
    here = found["environment"]
    head = HEAD.format(python=here["python_version"], machine=here["platform_machine"], system=here["platform_system"])
    return head + "".join(sorted(lines, key=str.lower))


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else report()
    (ROOT / "requirements-hashed.txt").write_text(hashed(given))
