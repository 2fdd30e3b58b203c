"""Findings in the diagnostic format of reviewdog, which posts them as comments with suggestions."""

from __future__ import annotations

from typing import Any

from torchlint.diagnostics import Diagnostic, Position, Severity
from torchlint.fingerprints import relative
from torchlint.links import home
from torchlint.render.columns import in_utf8, position
from torchlint.render.json import dumps
from torchlint.render.report import Report, Text, reason

_SEVERITIES = {Severity.NOTE: "INFO", Severity.WARNING: "WARNING", Severity.ERROR: "ERROR"}
_LONGEST = 30
"""Over how many lines a suggestion may reach: a comment shows all of them."""


def render(report: Report) -> str:
    """Return one object, indented. Columns count bytes of UTF-8."""
    address = home()
    document = {
        "source": {"name": "torchlint", **({"url": address} if address else {})},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(report, report.in_file(diagnostic)) for diagnostic in report.diagnostics],
    }
    return dumps(document, indent=2, sort_keys=False) + "\n"


def _diagnostic(report: Report, diagnostic: Diagnostic) -> dict[str, Any]:
    source, advice, url = report.source(diagnostic.path), diagnostic.help, report.url(diagnostic)
    text = source.stored if source is not None else None
    risk = diagnostic.fix.risk if diagnostic.fix is not None else None
    told: dict[str, Any] = {
        "message": "\n".join(
            [
                reason(diagnostic),
                *([f"help: {advice}"] if advice else []),
                *([f"unsafe: {risk}"] if risk else []),
            ]
        ),
        "location": {
            "path": relative(diagnostic.path, report.root),
            "range": _range(text, diagnostic.start, diagnostic.end),
        },
        "severity": _SEVERITIES[diagnostic.severity],
        "code": {"value": diagnostic.code, **({"url": url} if url else {})},
    }
    suggestion = _suggestion(diagnostic, source) if source is not None else None
    return told | ({"suggestions": [suggestion]} if suggestion else {})


def _suggestion(diagnostic: Diagnostic, source: Text) -> dict[str, Any] | None:
    """Return the fix as one replacement: several suggestions would be applied apart from each other."""
    if diagnostic.fix is None or diagnostic.fix.elsewhere:
        return None
    edits, text = source.edits_in_file(diagnostic.fix.edits), source.stored
    if not edits:
        return None
    first, last = edits[0].span.start, max(edit.span.end for edit in edits)
    start, end = position(text, first), position(text, last)
    if end.row - start.row >= _LONGEST:
        return None
    parts, at = [], first
    for edit in edits:
        parts += [text[at : edit.span.start], edit.content]
        at = edit.span.end
    return {"range": _range(text, start, end), "text": "".join(parts)}


def _range(text: str | None, start: Position, end: Position) -> dict[str, Any]:
    return {"start": _place(text, start), "end": _place(text, end)}


def _place(text: str | None, position: Position) -> dict[str, int]:
    position = in_utf8(text, position) if text is not None else position
    return {"line": position.row, "column": position.column}
