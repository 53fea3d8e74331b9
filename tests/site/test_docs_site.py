# SPDX-License-Identifier: BSD-3-Clause
"""The site builds without a warning, its links lead somewhere, it needs no network, and it documents what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

import gossamer as gs

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if name := given.get("id"):
            self.anchors.add(name)
        if target := given.get("href") or given.get("src"):
            (self.links if tag == "a" else self.loads).append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built as `make docs` does it. A page that no table of contents names is a warning."""
    out = tmp_path_factory.mktemp("site")
    command = re.search(r"python (-m sphinx .*) docs build/docs", (ROOT / "Makefile").read_text())
    assert command is not None
    words = [*command[1].split(), "-q", "-d", str(out / ".doctrees"), "docs", str(out)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_links_lead_somewhere(pages: dict[Path, Page]) -> None:
    assert len(pages) > 20
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_a_network(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert [load for load in page.loads if urlsplit(load).netloc] == [], path.name


def test_links_of_the_pages_work_without_the_site() -> None:
    """The same Markdown is read on a forge: what it links to is beside it."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            assert urlsplit(target).scheme or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_everything_public_is_documented(site: Path) -> None:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    names = {item for kind in inventory.data.values() for item in kind}
    modules = {name: getattr(gs, name) for name in ("datasets", "equations", "linalg", "nn")}
    wanted = {f"gossamer.{name}" for name in gs.__all__ if name != "SingularMatrixError"}
    for name, module in modules.items():
        own = (thing for thing in vars(module).values() if getattr(thing, "__module__", "").startswith(module.__name__))
        wanted |= {f"gossamer.{name}.{thing.__name__}" for thing in own if not thing.__name__.startswith("_")}
    assert sorted(wanted - names) == []


def test_only_public_names_show() -> None:
    """Modules of the implementation have a leading underscore."""
    for place in (gs, gs.nn, gs.datasets):
        public = {name for name in dir(place) if not name.startswith("_")}
        assert public - {"node_classifier"} == set(place.__all__), place.__name__


def test_every_header_is_listed(site: Path) -> None:
    """docs/conf.py lists them by a glob: on the built page each has a heading."""
    listed = re.findall(r"<h3>([\w/]+\.h)<", (site / "api/cpp.html").read_text())
    folder = ROOT / "include/gossamer"
    assert sorted(listed) == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h"))
