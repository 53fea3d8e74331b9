# SPDX-License-Identifier: BSD-3-Clause
"""Where the sources can be changed by one operator, bound or constant, and what they would say then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWAPS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " / ": " * ",
    " % ": " * ",
    " && ": " || ",
    " || ": " && ",
    " and ": " or ",
    " or ": " and ",
    " is not ": " is ",
    " is ": " is not ",
    " not in ": " in ",
    "std::min": "std::max",
    "std::max": "std::min",
}
TOKENS = re.compile(
    "|".join(re.escape(token) for token in sorted(SWAPS, key=len, reverse=True))
    + r"|\b(?:true|false|True|False)\b|(?<![\w.<])\d+(?![\w.>])|\bnot (?!in )"
)


@dataclass(frozen=True)
class Site:
    """One change of one expression: the text from `begin` to `end` of line `line` (counted from 1) becomes `text`."""

    file: str
    line: int
    begin: int
    end: int
    row: str
    text: str

    @property
    def changed(self) -> str:
        return self.row[: self.begin] + self.text + self.row[self.end :]

    def __str__(self) -> str:
        """With the whole line without its comment: a change of 1 to 2 would be called as every other in the file."""
        before, after = (re.split("  (?:#|//) ", row)[0].strip() for row in (self.row, self.changed))
        return f"{self.file}:{self.line}: {before}  ->  {after}"


def variants(expression: str) -> Iterator[str]:
    """The expression with one token changed, once for each token that can be."""
    for hit in TOKENS.finditer(expression):
        token = hit[0]
        if token.isdigit():
            other = str(int(token) + 1)
        elif token == "not ":
            other = ""
        elif token.lower() in ("true", "false"):
            other = {"true": "false", "false": "true", "True": "False", "False": "True"}[token]
        else:
            other = SWAPS[token]
        yield expression[: hit.start()] + other + expression[hit.end() :]


# C++, where a change is chosen when the program runs. An expression e of one line becomes (chosen ? changed : e), so it
# must be one whose two forms have one type: a condition, what is returned or assigned, what is checked.

SKIPPED = re.compile(
    r"^\s*(?://|#|template|static_assert|using|case|typedef)|constexpr|\\$|operator|noexcept|requires|static "
)


def closing(text: str, at: int) -> int:
    """Where the bracket that opens at `at` is closed; -1 if that is on another line."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in "([{") - (text[k] in ")]}")
        if depth == 0:
            return k
    return -1


def at_top(text: str, wanted: str, begin: int, end: int) -> list[int]:
    """Where `wanted` stands outside of all brackets."""
    depth, places = 0, []
    for k in range(begin, end):
        depth += (text[k] in "([{") - (text[k] in ")]}")
        if depth == 0 and text.startswith(wanted, k):
            places.append(k)
    return places


def expressions(line: str) -> Iterator[tuple[int, int, bool]]:
    """Begin and end of what can be changed in a line of C++, and whether it is the condition of an `if`."""
    code = line.split("//")[0].rstrip()
    if SKIPPED.search(code):
        return
    if hit := re.match(r"\s*(?:TORCH_CHECK\w*|check)\(", code):
        commas = at_top(code, ",", hit.end(), len(code))
        if commas:
            yield hit.end(), commas[0], False
        return
    if '"' in code or "'" in code:
        return
    if hit := re.match(r"\s*(?:\} else )?(if|while|for) \(", code):
        end = closing(code, hit.end() - 1)
        parts = at_top(code, ";", hit.end(), end) if end > 0 else []
        if hit[1] == "for" and len(parts) == 2:
            yield parts[0] + 2, parts[1], False
        elif hit[1] != "for" and end > 0 and not parts:
            yield hit.end(), end, hit[1] == "if"
        return
    if not code.endswith(";"):
        return
    end = len(code) - 1
    if (hit := re.match(r"\s*return ", code)) or (hit := re.match(r"[^=&(]*? [-+*|]?= ", code)):
        begin = hit.end()
    else:
        return
    if at_top(code, ",", begin, end) or any(sign in code[begin:end] for sign in "{}?"):
        return
    yield begin, end, False


def cpp_sites(path: Path, name: str) -> Iterator[Site]:
    """All changes of a C++ file. Lines inside macros end with a backslash and stay as they are."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for begin, end, is_if in expressions(line):
            expression = line[begin:end]
            if not expression.strip():
                continue
            for changed in variants(expression):
                yield Site(name, number, begin, end, line, changed)
            if is_if:
                yield Site(name, number, begin, end, line, "true")


def gated(line: str, sites: list[tuple[int, Site]]) -> str:
    """A line in which each of these changes is made if its number is that of the mutant that runs."""
    for begin, end in sorted({(site.begin, site.end) for _, site in sites}, reverse=True):
        text = f"({line[begin:end]})"
        for number, site in sites:
            if (site.begin, site.end) == (begin, end):
                text = f"(gossamer_mutant == {number} ? ({site.text}) : {text})"
        line = line[:begin] + text + line[end:]
    return line


# Python, where a file is written anew. Annotations, docstrings and the words of errors are not changed.


NODES = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Constant)
SILENT = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)


def python_sites(path: Path, name: str) -> Iterator[Site]:
    source = path.read_text()
    lines = source.splitlines()
    tree = ast.parse(source)
    seen: set[tuple[int, int, int]] = set()
    for node in code_of(tree):
        if not isinstance(node, NODES) or node.lineno != node.end_lineno:
            continue
        # ast counts bytes: the letters of a line that are not ASCII come before.
        row = lines[node.lineno - 1].encode()
        begin, end = (len(row[:at].decode()) for at in (node.col_offset, node.end_col_offset or 0))
        if (node.lineno, begin, end) in seen or '"' in lines[node.lineno - 1][begin:end]:
            continue
        seen.add((node.lineno, begin, end))
        expression = lines[node.lineno - 1][begin:end]
        for changed in own_variants(node, expression):
            yield Site(name, node.lineno, begin, end, lines[node.lineno - 1], changed)


def own_variants(node: ast.expr, expression: str) -> Iterator[str]:
    """Changes of this node alone: what is inside of it has its turn as a node of its own."""
    inner = [other for other in ast.walk(node) if other is not node and isinstance(other, NODES)]
    spans = [(other.col_offset - node.col_offset, (other.end_col_offset or 0) - node.col_offset) for other in inner]
    for hit, changed in zip(TOKENS.finditer(expression), variants(expression), strict=True):
        if not any(begin <= hit.start() and hit.end() <= end for begin, end in spans):
            yield changed


def code_of(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of annotations, errors, imports and formatted strings."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, SILENT):
                yield node
                yield from code_of(node)


def listed_sites(listed: Path, root: Path) -> Iterator[Site]:
    """The changes of planted.txt: "file: text  ->  other text", where the text stands in one line of the file."""
    for line in listed.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, rest = line.split(": ", 1)
        before, after = rest.split("  ->  ")
        lines = (root / name).read_text().splitlines()
        places = [k for k, text in enumerate(lines) if before in text and not text.lstrip().startswith("//")]
        if len(places) != 1:
            raise SystemExit(f"{listed.name}: in {name}, {before} stands in {len(places)} lines instead of one")
        begin = lines[places[0]].index(before)
        yield Site(name, places[0] + 1, begin, begin + len(before), lines[places[0]], after)
