"""Findings to render: a text in memory stands for each file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Impact, Position, Severity, Span
from torchlint.notebook import Notebook
from torchlint.render.report import Report, Text
from torchlint.rule import Rule
from torchlint.source import Part

RISK = "results change"
ROOT = Path("/repo")


@dataclass(frozen=True)
class Memory:
    """A source that was never on disk."""

    text: str

    def position(self, offset: int) -> Position:
        before = re.split(r"\r\n|\r|\n", self.text[:offset])
        return Position(len(before), len(before[-1]) + 1)

    def locate(self, offset: int) -> Position:
        return self.position(offset)

    def part(self, cell: int | None) -> Part:
        return Part(cell, 0, self.text, self.text)

    @property
    def stored(self) -> str:
        return self.text

    def in_file(self, offset: int) -> Position:
        return self.position(offset)

    def edits_in_file(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        return edits


def _notebook(text: str) -> Notebook:
    """A notebook whose third cell is the only one with code."""
    prose = {"cell_type": "markdown", "metadata": {}, "source": ["Some wörds"]}
    code: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
    book = {"cells": [prose, prose, code], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return Notebook.from_bytes(json.dumps(book, indent=1).encode(), ROOT / "n.ipynb")


@dataclass
class Desk:
    """Makes findings in texts, and reports of them."""

    texts: dict[Path, str]

    def finding(
        self,
        text: str,
        place: str,
        *,
        path: Path = ROOT / "train.py",
        code: str = "TL202",
        name: str = "item-in-hot-loop",
        message: str = "`.item()` waits for the device",
        severity: Severity = Severity.WARNING,
        fix: Fix | None = None,
        related: tuple[tuple[Position, str], ...] = (),
        remedy: str | None = None,
    ) -> Diagnostic:
        """A finding that underlines the first ``place`` of ``text``."""
        self.texts[path] = text
        start = text.index(place)
        memory = Memory(text)
        return Diagnostic(
            code=code,
            name=name,
            message=message,
            severity=severity,
            path=path,
            span=Span(start, start + len(place)),
            start=memory.position(start),
            end=memory.position(start + len(place)),
            fix=fix,
            url="https://example.org/" + code,
            noqa_row=memory.position(start + len(place)).row,
            related=related,
            remedy=remedy,
        )

    def fix(self, text: str, *changes: tuple[str, str], grade: Applicability = Applicability.SAFE) -> Fix:
        """A fix that replaces the first occurrence of each old text by the new one."""
        edits = tuple(Edit(Span(text.index(old), text.index(old) + len(old)), new) for old, new in changes)
        risk = RISK if grade is Applicability.UNSAFE else None
        return Fix("Use the other thing", edits, grade, risk=risk)

    def report(self, *diagnostics: Diagnostic, **how: object) -> Report:
        """A report of the findings."""
        return Report(
            diagnostics=tuple(sorted(diagnostics, key=lambda item: item.sort_key)),
            source=self._source,
            root=ROOT,
            **how,  # type: ignore[arg-type]
        )

    def _source(self, path: Path) -> Text | None:
        if path not in self.texts:
            return None
        text = self.texts[path]
        return _notebook(text) if path.suffix == ".ipynb" else Memory(text)


@pytest.fixture
def desk() -> Desk:
    return Desk({})


def _check(node: object, module: object) -> Iterator[object]:
    """## What it does

    Finds `bad()`. It is
    no good.

    ## Why is this bad?

    It waits.

    ## Example

    ```python
    bad()
    ```

    ## Use instead

    ```python
    good()
    ```

    ## Fix safety

    The fix is safe.

    ## References

    - [A page](https://example.org/page)
    """
    yield from ()


_check.__module__ = "zz_pack.some_family.bad_called"


def make_rule(code: str, name: str, severity: Severity = Severity.WARNING) -> Rule:
    """A rule with a page."""
    return Rule(code, name, severity, "safe", (), (), False, _check)  # type: ignore[arg-type]


RULES = {
    rule.code: rule
    for rule in (
        make_rule("TL001", "syntax-error", Severity.ERROR),
        make_rule("ZZ101", "bad-called"),
        make_rule("ZZ102", "worse-called", Severity.ERROR),
        make_rule("ZZ103", "never-found", Severity.NOTE),
        make_rule("ZZ900", "not-enabled"),
    )
}

WIDE = "total = 0\n\U0001f600 = '\u00e9\U0001f600'; bad(x[0](1))\r\nend()\r"


@pytest.fixture
def every(desk: Desk) -> Report:
    """One of each kind of finding, at places and with texts that are hard to write down."""
    text = "for x in y:\n    bad(x)\n    worse(x)\n"
    wide = ROOT / "src" / "w\u00efde name.py"
    error = Severity.ERROR
    hostile = ROOT / "a\x1b[31m]\n;%<&>.py"
    fix = desk.fix(WIDE, ("bad(x", "good(x"), ("end()", "done(\U0001f600)"))
    cell = desk.finding(text, "bad(x)", path=ROOT / "n.ipynb", code="ZZ101", name="bad-called")
    shown = desk.fix(text, ("worse(x)", ""), grade=Applicability.UNSAFE)
    found = [
        desk.finding(WIDE, "bad(x[0](1))", path=wide, code="ZZ101", name="bad-called", fix=fix),
        desk.finding(
            text,
            "worse(x)",
            code="ZZ102",
            name="worse-called",
            message="`f[0](1)` is worse; see [it]\r\n::error::]% \x1b[31m\x9b<&>\ud800\uffff\u202e",
            severity=error,
            fix=shown,
            related=((Position(1, 1), "this [hot] loop"),),
        ),
        desk.finding(text, "bad(x)", path=hostile, code="ZZ101", name="bad-called", severity=Severity.NOTE),
        desk.finding("", "", path=ROOT / "b.py", code="TL001", name="syntax-error", severity=Severity.ERROR),
        desk.finding(
            "", "", path=ROOT / "c.py", code="TL000", name="internal-error", severity=Severity.ERROR
        ),
        desk.finding(text, "bad(x)", path=Path("/else where/d.py"), code="ZZ101", name="bad-called"),
        replace(cell, cell=3, fix=desk.fix(text, ("bad(x)", "good(x)"))),
    ]
    found[2] = replace(found[2], impact=Impact.LOW, slight="runs [once](1) |\x1b<&>")
    return desk.report(
        *(replace(item, url=None) for item in found), rules=RULES, enabled=frozenset({"TL001", "ZZ103"})
    )


Make = Callable[..., Diagnostic]
