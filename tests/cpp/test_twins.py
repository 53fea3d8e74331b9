# SPDX-License-Identifier: BSD-3-Clause
"""Every public name of Python stands in the table of docs/api/cpp.md, with a twin that a header declares or a reason
why there is none; and there is one version."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

import gossamer as gs

ROOT = Path(__file__).parent.parent.parent
HEADERS = sorted((ROOT / "include/gossamer").glob("*.h"))

# Operators as the table spells them.
OPERATORS = {
    **{"__add__": "A + B", "__sub__": "A - B", "__neg__": "-A", "__mul__": "A * s", "__rmul__": "s * A"},
    **{"__truediv__": "A / s", "__pow__": "A ** p", "__abs__": "abs(A)", "__matmul__": "A @ X", "__rmatmul__": "X @ A"},
    **{"__getitem__": "A[rows, cols]", "__eq__": "P == Q"},
    **{"__ne__": "A != B", "__lt__": "A < B", "__gt__": "A > B", "__le__": "A <= B", "__ge__": "A >= B"},
}


class Row(NamedTuple):
    where: str
    names: list[str]
    twin: str


def rows() -> list[Row]:
    """The table, one row a line: where, Python's names, C++."""
    text = (ROOT / "docs/api/cpp.md").read_text()
    table = text[text.index("| where | Python | C++ |") :].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return [Row(where.strip("| `"), re.findall(r"`([^`]+)`", names), twin) for where, names, twin in cells]


def modules() -> Iterator[tuple[str, ModuleType]]:
    yield "gs", gs
    for name in ("linalg", "nn", "datasets", "equations", "distributed"):
        yield f"gs.{name}", getattr(gs, name)


def public(module: ModuleType) -> list[str]:
    """What a module exports, or defines where it does not say."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [n for n, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__ or n.isupper()]
    return [n for n in own if not n.startswith("_")]


def attributes(kind: type) -> list[str]:
    """The public attributes of a class that we wrote, operators as the table spells them."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("gossamer")]
    names = {name for base in ours for name in (*vars(base), *getattr(base, "__annotations__", {}))}
    if issubclass(kind, torch.nn.Module):
        names -= {"extra_repr", "training"} | set(getattr(kind, "__annotations__", {}))
    elif "__repr__" in {name for base in ours for name in vars(base)} and not issubclass(kind, tuple):
        names.add(f"repr({'A' if kind is gs.SparseMatrix else kind.__name__[0]})")
    written = {OPERATORS[name] for name in names if name in OPERATORS and not issubclass(kind, tuple)}
    if kind is gs.SparseMatrix:
        written = {"A == B" if name == "P == Q" else name for name in written}
    if kind is gs.datasets.Graph:
        written.discard("P == Q")
    return sorted({name for name in names if not name.startswith("_")} | written)


def python_names() -> Iterator[tuple[str, str]]:
    for where, module in modules():
        for name in public(module):
            yield where, name
            thing = getattr(module, name)
            if inspect.isclass(thing) and thing.__module__.startswith("gossamer"):
                yield from ((f"{where}.{name}", attribute) for attribute in attributes(thing))
    yield "gs", "__version__"
    yield from (("gs.Pattern", name) for name in ("indptr", "indices", "shape"))  # of objects alone
    yield from ((where, "pattern") for where in ("gs.SparseMatrix", "gs.distributed.DistributedMatrix"))


def declared() -> set[str]:
    """The qualified names that the public headers declare: functions, classes, fields, macros."""
    found = set()
    token = re.compile(r"operator\s*(?:\[\]|\(\)|[-+*/=<>!]+)|[A-Za-z_][\w]*(?:::[A-Za-z_]\w*)*|[^\s\w]")
    for header in HEADERS:
        text = re.sub(r"//.*", "", header.read_text())
        found |= set(re.findall(r"#define (\w+)", text))
        text = re.sub(r"^#.*(?:\\\n.*)*", "", text, flags=re.MULTILINE)
        scopes: list[str | None] = []
        depth, before, opened = 0, "", ""
        for word in token.findall(text):
            if word in "()":
                depth += 1 if word == "(" else -1
            elif word == "{":
                scopes.append(opened or None)
                opened = ""
            elif word == "}":
                scopes.pop()
            elif word == ";":
                opened = ""
            elif before in ("namespace", "class", "struct") and depth == 0:
                opened = word
            if depth == 0 and re.match(r"\w", word) and None not in scopes and "ops" not in scopes:
                found.add("::".join([*(s for s in scopes if s), word.replace(" ", "")]))
            before = word
    return found


DECLARED = declared()


def is_declared(where: str, name: str) -> bool:
    """In the scope that stands for `where`, or in the namespace around it."""
    scope = where.replace("gs", "gossamer", 1).replace(".", "::")
    name = name.removeprefix("gossamer::")
    outer = scope.rpartition("::")[0] or scope
    flat = scope.replace("::distributed", "")  # whose matrix stands beside SparseMatrix
    scopes = (scope, f"{scope}Impl", outer, flat, "gossamer")  # a module of torch's is declared as NameImpl
    return any(f"{s}::{n}" in DECLARED for s in scopes for n in (name, f"{name}Impl")) or name in DECLARED


def test_every_name_stands_in_the_table() -> None:
    listed = {(row.where, name) for row in rows() for name in row.names}
    wanted = set(python_names())
    assert not sorted(wanted - listed), "public names of Python without a row in docs/api/cpp.md"
    assert not sorted(listed - wanted), "rows of docs/api/cpp.md that name nothing of Python's"


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.where}:{row.names[0]}")
def test_twins_are_declared(row: Row) -> None:
    if row.twin.startswith("–"):
        assert len(row.twin.split()) > 4, "a reason is a sentence"
        return
    spans = [span for span in re.findall(r"`([^`]+)`", row.twin) if not span.startswith("A")]
    if row.twin.startswith("the same"):
        spans = [name for name in row.names if name not in ("nn", "linalg", "datasets", "equations", "distributed")]
    assert spans
    missing = [span for span in spans if not is_declared(row.where, span)]
    assert not missing, f"no header declares {missing} for {row.where}"


def test_what_is_not_declared_is_found_missing() -> None:
    for where, name in [("gs", "spmmm"), ("gs.SparseMatrix", "to_scipy"), ("gs", "row_argmax"), ("gs.linalg", "eye_")]:
        assert not is_declared(where, name)


def test_one_version() -> None:
    """The header's, which CMake reads, the package's and the wheel's."""
    macros: dict[str, Any] = dict(
        re.findall(r"#define (GOSSAMER_VERSION\w*) (.*)", (ROOT / "include/gossamer/version.h").read_text())
    )
    parts = [macros[f"GOSSAMER_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")]
    assert macros["GOSSAMER_VERSION"] == f'"{".".join(parts)}"' == f'"{gs.__version__}"'
    assert f'version = "{gs.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert torch.ops.gossamer.show_config().startswith(f"gossamer: {gs.__version__}\n")
