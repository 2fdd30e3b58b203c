"""Findings to render: a text in memory stands for each file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Severity, Span
from torchlint.render.report import Report
from torchlint.source import Part

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
        )

    def fix(self, text: str, *changes: tuple[str, str], grade: Applicability = Applicability.SAFE) -> Fix:
        """A fix that replaces the first occurrence of each old text by the new one."""
        edits = tuple(Edit(Span(text.index(old), text.index(old) + len(old)), new) for old, new in changes)
        return Fix("Use the other thing", edits, grade)

    def report(self, *diagnostics: Diagnostic, **how: object) -> Report:
        """A report of the findings."""
        return Report(
            diagnostics=tuple(sorted(diagnostics, key=lambda item: item.sort_key)),
            source=lambda path: Memory(self.texts[path]) if path in self.texts else None,
            root=ROOT,
            **how,  # type: ignore[arg-type]
        )


@pytest.fixture
def desk() -> Desk:
    return Desk({})


Make = Callable[..., Diagnostic]
