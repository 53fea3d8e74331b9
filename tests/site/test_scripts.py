# SPDX-License-Identifier: BSD-3-Clause
"""scripts/index_readme.py, which writes the page of an index, and scripts/skipped.py, which ends `make test`."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = """Words [of a page](docs/page.md#part), [of another](https://example.org), [below](#below).

![A picture](docs/picture.png)

*Its caption, with* `code`, *on
two lines.*

*Slanted* words.

```
[code](stays)
```

| [a](a.md) | [b](b.md) |
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")


@pytest.mark.usefixtures("scripts")
def test_readme_of_an_index() -> None:
    page = importlib.import_module("index_readme").index_readme(PAGE)
    assert page == (
        "Words of a page, [of another](https://example.org), [below](#below).\n\n*Slanted* words.\n\n"
        "```\n[code](stays)\n```\n\n| a | b |\n"
    )


@pytest.mark.usefixtures("scripts")
def test_readme_of_an_index_with_an_address() -> None:
    module = importlib.import_module("index_readme")
    field = module.dynamic_metadata({}, {"urls": {"Source": "https://example.org/gossamer/"}})["readme"]
    assert field["content-type"] == "text/markdown"
    assert "](https://example.org/gossamer/raw/main/docs/diffusion_coefficient.png)" in field["text"]
    assert "[docs/install.md](https://example.org/gossamer/blob/main/docs/install.md)" in field["text"]
    assert "](docs/" not in field["text"]


PYTEST = """<testsuites><testsuite><testcase name="a"/>
<testcase name="b"><skipped type="pytest.skip" message="no data:&#10;set it">x.py:1</skipped></testcase>
<testcase name="c"><skipped type="pytest.skip" message="no data: set it">x.py:1</skipped></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite><testcase name="whole" status="run"><system-out>[ RUN      ] Simd.A
simd.cpp:110: Skipped
no AVX2 here

[  SKIPPED ] Simd.A (0 ms)
</system-out></testcase>
<testcase name="nvcc" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: no nvcc
</system-out></testcase></testsuite>"""


def test_skipped_tests_are_listed(tmp_path: Path) -> None:
    (tmp_path / "1_kernels.xml").write_text(CTEST)
    (tmp_path / "2_python.xml").write_text(PYTEST)
    command = [sys.executable, str(ROOT / "scripts" / "skipped.py"), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines() == [
        "1_kernels: 2 tests, 2 skipped",
        "  1 × Simd.A: no AVX2 here",
        "  1 × nvcc: skipped: no nvcc",
        "2_python: 3 tests, 2 skipped",
        "  2 × no data: set it",
    ]


def test_hashed_requirements_are_the_pinned_ones() -> None:
    """What has no hash pip refuses; what requirements-dev.txt pins must be there, in the same version."""
    pins, hashed = (
        [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
        for name in ("requirements-dev.txt", "requirements-hashed.txt")
    )
    versions = {}
    for line in hashed:
        name, version, digest = re.fullmatch(r"([\w.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})", line).groups()
        assert len(set(digest)) > 4
        versions[re.sub("[-_.]+", "-", name).lower()] = version
    for line in pins:
        name, version = line.split("==")
        found = versions[re.sub("[-_.]+", "-", name).lower()]
        assert found.split("+")[0] == version, f"run scripts/hash_requirements.py: {name} is {found} there"
    assert versions["torch"] == "2.13.0+cpu"


def test_hashes_are_written_without_their_source() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    module = importlib.import_module("hash_requirements")
    archive = {"archive_info": {"hashes": {"sha256": "ab" * 32}}, "url": "https://somewhere.example/b.whl"}
    install = [{"metadata": {"name": name, "version": "1"}, "download_info": archive} for name in ("b", "A")]
    here = {"python_version": "3.11", "platform_machine": "x86_64", "platform_system": "Linux"}
    written = module.hashed({"install": install, "environment": here})
    assert [line.split()[0] for line in written.splitlines() if line[0] != "#"] == ["A==1", "b==1"]
    assert "example" not in written
