"""How findings look in an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from torchlint import links
from torchlint.diagnostics import Diagnostic, Impact, Position, Severity, Span
from torchlint.server.documents import Places, Program, Text
from torchlint.server.reports import report
from torchlint.source import Source

URI = "file:///a.py"


@pytest.mark.parametrize(
    ("severity", "impact", "shown"),
    [
        (Severity.NOTE, Impact.LOW, "Hint"),
        (Severity.WARNING, Impact.LOW, "Hint"),
        (Severity.NOTE, Impact.MEDIUM, "Information"),
        (Severity.WARNING, Impact.MEDIUM, "Warning"),
        (Severity.WARNING, Impact.HIGH, "Warning"),
        (Severity.ERROR, Impact.HIGH, "Error"),
    ],
)
def test_findings_of_low_impact_are_hints(severity: Severity, impact: Impact, shown: str) -> None:
    source = Source(Path("/a.py"), "x = 1\n")
    place = Position(1, 1)
    found = Diagnostic("TL1", "a", "b", severity, source.path, Span(0, 1), place, place, impact=impact)
    program = Program(URI, source, {None: Text(URI, None)}, source.path)
    _, told = report(found, Places(program, PositionCodec()))
    assert told.severity is types.DiagnosticSeverity[shown]
    assert told.data is not None
    assert told.data["impact"] == impact.label


def test_a_code_leads_to_the_page_of_its_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(Path("/a.py"), "x = 1\n")
    place = Position(1, 1)
    found = Diagnostic("TL202", "a", "b", Severity.WARNING, source.path, Span(0, 1), place, place)
    program = Program(URI, source, {None: Text(URI, None)}, source.path)
    monkeypatch.setattr(links, "declared", lambda: {"documentation": "https://example.org/docs"})
    _, told = report(found, Places(program, PositionCodec()))
    assert told.code_description == types.CodeDescription("https://example.org/docs/rules/TL202/")
    monkeypatch.setattr(links, "declared", dict)
    _, told = report(found, Places(program, PositionCodec()))
    assert told.code_description is None
