# SPDX-License-Identifier: BSD-3-Clause
"""The report: what stands on the page, what is kept, and what happens when a section fails or the user stops it."""

from __future__ import annotations

import base64
import importlib.util
import io
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import torch
from PIL import Image

import gossamer
from gossamer import _programs
from gossamer.__main__ import main
from report import cache, figures, page, palette, sections
from report.section import Section, Tabular

SECRET = "the answer to everything"


def fake(name: str) -> ModuleType:
    """A copy of fake_section.py with its own state."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("fake_section.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[ModuleType]:
    """Three sections in place of the real ones."""
    names = {"first": "examples.first", "second": "examples.second", "third": "bench.third"}
    for name in names.values():
        monkeypatch.setitem(sys.modules, name, None)  # removed again afterwards
    monkeypatch.setattr(sections, "SECTIONS", names)
    return [fake(name) for name in names.values()]


@pytest.fixture
def bare(fakes: list[ModuleType]) -> list[ModuleType]:
    """The same without figures, for tests that draw too often."""
    for module in fakes:
        module.figures = lambda result: {}
    return fakes


def demo(out: Path, *options: str) -> int:
    return main(["demo", "--out", str(out), *options])


class Reader(HTMLParser):
    """All text, tags and attributes of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text, self.tags = "", list[tuple[str, dict[str, str | None]]]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_page_shows_everything_and_needs_no_other_file(
    fakes: list[ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo(tmp_path, "--seed", "3") == 0
    assert capsys.readouterr().out.rstrip().endswith(str(tmp_path / "index.html"))
    read = Reader(tmp_path / "index.html")
    result = fakes[0].compute(**fakes[0].DEFAULT, seed=3)
    for wanted in (
        *fakes[0].summary(result),
        *fakes[0].captions().values(),
        *fakes[0].table(result)[0],
        fakes[0].TITLE,
        fakes[0].SOURCE,
        "12.5 ms",
        "python -m examples.second --seed 3",
        "python -m bench --third --seed 3",
        "gossamer demo --only third --seed 3",
        "compute(points=8, seed=3)",
        torch.__version__,
        "Solver engines",
        "Threads that wait",
        "synthetic",
    ):
        assert wanted in read.text, wanted
    assert {attributes["id"] for attributes in read.all("section")} == {"first", "second", "third"}
    assert {a["href"] for a in read.all("a")} >= {"#first", "#second", "#third"}
    images = read.all("img")
    assert len(images) == 3 * 2 * 2
    assert all(image["alt"] and image["src"] for image in images)
    for tag, attributes in read.tags:
        for name in ("src", "href", "srcset", "action"):
            assert (attributes.get(name) or "#").startswith(("data:", "#")), (tag, attributes)
    assert "url(" not in page.HERE.joinpath("page.css").read_text()


def test_figures_are_drawn_for_light_and_for_dark(fakes: list[ModuleType]) -> None:
    plates = figures.plates(fakes[0], fakes[0].compute(points=5))
    assert [(plate.name, plate.width, plate.height) for plate in plates] == [("lines", 672, 384), ("cloud", 576, 384)]
    for plate in plates:
        kind = "svg+xml" if plate.name == "lines" else "png"  # thousands of marks
        for scheme in ("light", "dark"):
            start, _, data = getattr(plate, scheme).partition(",")
            assert start == f"data:image/{kind};base64"
            content = base64.b64decode(data)
            if kind == "png":
                picture = Image.open(io.BytesIO(content))
                assert picture.size == (plate.width * 180 / 96, plate.height * 180 / 96)
                red, green, blue = (int(palette.SCHEMES[scheme]["card"][k : k + 2], 16) for k in (1, 3, 5))
                assert picture.convert("RGB").getpixel((0, 0)) == pytest.approx((red, green, blue), abs=2)
                continue
            colours = {colour.lower() for colour in re.findall(r"#[0-9a-fA-F]{6}", content.decode())}
            assert palette.SCHEMES[scheme]["card"] in colours
            assert palette.CYCLES[scheme][0] in colours
            assert palette.CYCLES["dark" if scheme == "light" else "light"][0] not in colours


def luminance(colour: str) -> float:
    """Relative luminance of sRGB, as WCAG 2 defines it."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", palette.SCHEMES)
def test_text_and_lines_can_be_read(scheme: str) -> None:
    colours = palette.SCHEMES[scheme]

    def contrast(a: str, b: str) -> float:
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ground in ("page", "card"):
        for text in ("ink", "soft", "accent", "wrong"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in palette.CYCLES[scheme]:
        assert contrast(line, colours["card"]) >= 3, line


def test_results_are_kept_until_something_they_depend_on_changes(
    bare: list[ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = bare[0]

    def computed(*options: str) -> int:
        """How often compute was called for this demo."""
        module.calls.clear()
        assert demo(tmp_path, "--only", "first", *options) == 0
        return len(module.calls)

    assert computed() == 1
    assert computed() == 0
    assert "first: 0.0 s, kept from before" in capsys.readouterr().out
    assert computed("--fresh") == 1
    assert computed("--seed", "1") == 1
    assert computed("--full", "--seed", "1") == 1
    assert computed("--full", "--seed", "1") == 0
    monkeypatch.setattr(gossamer, "__version__", "99.0")
    assert computed("--full", "--seed", "1") == 1
    source = tmp_path / "changed.py"
    source.write_text("# the module as it is now")
    monkeypatch.setattr(module, "__file__", str(source))
    assert computed("--full", "--seed", "1") == 1
    assert list((tmp_path / "cache").iterdir()) == [tmp_path / "cache" / "first.pt"]  # no part of a file is left


@pytest.mark.parametrize("broken", [b"", b"no archive", None])
def test_a_broken_file_is_computed_again(bare: list[ModuleType], tmp_path: Path, broken: bytes | None) -> None:
    assert demo(tmp_path, "--only", "first") == 0
    file = tmp_path / "cache" / "first.pt"
    file.write_bytes(file.read_bytes()[:-200] if broken is None else broken)
    assert demo(tmp_path, "--only", "first") == 0
    assert len(bare[0].calls) == 2
    assert demo(tmp_path, "--only", "first") == 0
    assert len(bare[0].calls) == 2


def test_what_is_kept_is_what_was_computed(fakes: list[ModuleType], tmp_path: Path) -> None:
    module, path = fakes[0], tmp_path / "deep" / "first.pt"
    result = module.compute(points=5, seed=2)
    key = cache.key(module, {"points": 5, "seed": 2})
    cache.write(path, key, cache.Kept(result, 1.5))
    kept = cache.read(path, key, module)
    assert kept is not None
    assert kept.seconds == 1.5
    assert torch.equal(kept.result.x, result.x)
    assert torch.equal(kept.result.powers["cube"], result.powers["cube"])
    assert kept.result.names == result.names
    assert cache.read(path, cache.key(module, {"points": 5, "seed": 3}), module) is None
    assert cache.read(path, key, fakes[1]) is not None  # the key is the caller's to make


def test_interrupted_demo_goes_on_where_it_stopped(
    bare: list[ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:  # Ctrl-C; not the signal, which a job in the background ignores
        raise KeyboardInterrupt

    bare[1].before.append(interrupt)
    assert demo(tmp_path) == 130
    told = capsys.readouterr().err
    assert "interrupted" in told
    assert str(tmp_path / "cache") in told
    assert not (tmp_path / "index.html").exists()
    bare[1].before.clear()
    assert demo(tmp_path) == 0
    assert [len(module.calls) for module in bare] == [1, 2, 1]


def test_a_failed_section_does_not_lose_the_others(
    fakes: list[ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        torch.set_num_threads(threads + 1)
        raise RuntimeError(f"{SECRET} is [red]42[/]")

    threads = torch.get_num_threads()
    fakes[1].before.append(fail)
    sections.SECTIONS["missing"] = "examples.nowhere"
    assert demo(tmp_path) == 1
    out = capsys.readouterr().out
    assert "second, missing" in out
    assert "is [red]42[/]" in out
    assert torch.get_num_threads() == threads
    read = Reader(tmp_path / "index.html")
    assert f"RuntimeError: {SECRET}" in read.text
    assert "No module named 'examples.nowhere'" in read.text
    assert len(read.all("img")) == 2 * 2 * 2
    assert [len(module.calls) for module in fakes] == [1, 1, 1]


def test_folders_of_data_reach_the_sections(
    bare: list[ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setattr(sections, "DATA", {"first": "citeseer", "second": ".", "third": "nowhere"})
    planetoid = data / "planetoid"
    assert demo(tmp_path, "--data", str(planetoid)) == 0
    given = [module.calls[0]["data"] for module in bare]
    assert given == [str(planetoid / "citeseer"), str(planetoid), None]
    text = Reader(tmp_path / "index.html").text
    assert f"python -m examples.first --data {planetoid / 'citeseer'}" in text
    assert f"gossamer demo --only second --data {planetoid}" in text
    assert "synthetic" not in text


def test_the_command_that_makes_the_page() -> None:
    assert page.Request(full=False, data=None, seed=0).command() == "gossamer demo"
    request = page.Request(full=True, data=Path("my data"), seed=3, only="first")
    assert request.command() == "gossamer demo --full --only first --seed 3 --data 'my data'"


def test_durations() -> None:
    assert [page.duration(s) for s in (0.042, 3.14, 59.4, 61, 3725)] == [
        "0.042 s",
        "3.1 s",
        "59 s",
        "1 min 1 s",
        "62 min 5 s",
    ]


@pytest.mark.parametrize("name", sections.SECTIONS)
def test_every_section_has_what_a_section_must_have(name: str) -> None:
    """What is in it is tested with the examples and the benchmark."""
    module = _programs.load(sections.SECTIONS[name])
    assert isinstance(module, Section)
    assert isinstance(module, Tabular) == name.startswith(("table2", "scaling", "distributed"))
    assert "seed" not in module.SOURCE


def test_a_real_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = _programs.load("examples.learned_jacobi")
    monkeypatch.setattr(module, "DEFAULT", module.QUICK)
    assert demo(tmp_path, "--only", "learned_jacobi") == 0
    read = Reader(tmp_path / "index.html")
    assert module.TITLE in read.text
    assert len(read.all("img")) == 2 * len(module.captions())
