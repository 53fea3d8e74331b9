# SPDX-License-Identifier: BSD-3-Clause
"""The report in a real browser: every figure loads, nothing scrolls sideways, both schemes, no word to the network."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_report

from report import sections

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}
SHOWN = "[...document.images].filter(image => image.offsetParent !== null)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a good section, one that fails, a long command and a table wider than a phone."""
    out = tmp_path_factory.mktemp("a folder whose name is long enough to be wider than a telephone, and has spaces")
    with pytest.MonkeyPatch.context() as patch:
        names = {"good": "examples.good", "failing": "examples.failing"}
        patch.setattr(sections, "SECTIONS", names)
        for name in names.values():
            patch.setitem(sys.modules, name, None)
        modules = [test_report.fake(name) for name in names.values()]
        modules[1].before.append(lambda: 1 // 0)
        assert test_report.demo(out) == 1
    return out / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


class Visit:
    """A page opened, with all it complained of and asked for."""

    def __init__(self, browser: Any, path: Path, scheme: str, viewport: dict[str, int]) -> None:
        self.context = browser.new_context(color_scheme=scheme, viewport=viewport)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def images(self) -> list[str]:
        """The classes of the images on show, all of which have loaded."""
        widths = self.page.evaluate(f"{SHOWN}.map(image => [image.complete, image.naturalWidth, image.clientWidth])")
        assert all(complete and natural > 0 and client > 100 for complete, natural, client in widths)
        return self.page.evaluate(f"{SHOWN}.map(image => image.className)")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page(browser: Any, report: Path, scheme: str, viewport: dict[str, int]) -> None:
    with Visit(browser, report, scheme, viewport) as visit:
        assert visit.images() == [scheme, scheme]
        sizes = "[document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
        page_width, body_width, window = visit.page.evaluate(sizes)
        assert max(page_width, body_width) <= window == viewport["width"]
        table = visit.page.locator(".table").first
        if viewport is PHONE:
            assert table.evaluate("box => box.scrollWidth > box.clientWidth")  # in its own box
        assert visit.page.locator("#failing .failure").is_visible()
        assert "ZeroDivisionError" in visit.page.locator("#failing .failure").inner_text()
        assert not visit.complaints
        assert [url for url in visit.requests if not url.startswith("data:")] == [report.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_toggle(browser: Any, report: Path, scheme: str) -> None:
    other = "dark" if scheme == "light" else "light"
    ground = "getComputedStyle(document.body).backgroundColor"
    with Visit(browser, report, scheme, DESKTOP) as visit:
        before = visit.page.evaluate(ground)
        visit.page.get_by_role("button", name=f"Show the page in {other} colours").click()
        assert visit.images() == [other, other]
        assert visit.page.evaluate(ground) != before
        visit.page.reload()
        assert visit.images() == [other, other]  # the choice is remembered
        visit.page.get_by_role("button", name=f"Show the page in {scheme} colours").click()
        assert visit.images() == [scheme, scheme]
        assert visit.page.evaluate(ground) == before
        assert not visit.complaints


def test_a_figure_can_be_enlarged(browser: Any, report: Path) -> None:
    with Visit(browser, report, "dark", PHONE) as visit:
        small = visit.page.locator("#good .plate img.dark").first.bounding_box()
        visit.page.locator("#good .plate").first.click()
        large = visit.page.locator("dialog img.dark")
        assert large.bounding_box()["width"] > 1.5 * small["width"]
        assert large.evaluate("image => image.naturalWidth") > 0
        visit.page.keyboard.press("Escape")
        assert not large.is_visible()
        assert not visit.complaints


def test_contents_lead_to_the_sections(browser: Any, report: Path) -> None:
    with Visit(browser, report, "light", PHONE) as visit:
        visit.page.emulate_media(reduced_motion="reduce")
        visit.page.locator("nav a[href='#failing']").click()
        assert visit.page.evaluate("document.querySelector(':target').id") == "failing"
        assert visit.page.evaluate("document.querySelector(':target').getBoundingClientRect().top") < PHONE["height"]


def test_without_scripts_the_scheme_is_the_systems(browser: Any, report: Path) -> None:
    context = browser.new_context(color_scheme="dark", java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("img.dark").first.is_visible()
    assert not page.locator("img.light").first.is_visible()
    assert not page.locator("#toggle").is_visible()
    context.close()
