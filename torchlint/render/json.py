"""Findings as JSON with the keys of ruff, so that its tools read them: one array, or one object a line."""

from __future__ import annotations

import json
from typing import Any

from torchlint.diagnostics import Diagnostic, Position
from torchlint.render.report import Report, Text


def render(report: Report) -> str:
    """An array of objects, indented, keys sorted."""
    found = [_object(report, diagnostic) for diagnostic in report.diagnostics]
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def render_lines(report: Report) -> str:
    """One object a line."""
    return "".join(
        json.dumps(_object(report, diagnostic), sort_keys=True, ensure_ascii=False) + "\n"
        for diagnostic in report.diagnostics
    )


def _object(report: Report, diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "cell": diagnostic.cell,
        "code": diagnostic.code,
        "end_location": _place(diagnostic.end),
        "filename": report.absolute(diagnostic.path),
        "fix": _fix(report, diagnostic),
        "location": _place(diagnostic.start),
        "message": diagnostic.message,
        "name": diagnostic.name,
        "noqa_row": diagnostic.noqa_row or diagnostic.start.row,
        "severity": diagnostic.severity.value,
        "url": diagnostic.url,
    }


def _fix(report: Report, diagnostic: Diagnostic) -> dict[str, Any] | None:
    fix, source = diagnostic.fix, report.source(diagnostic.path)
    if fix is None or source is None:
        return None
    return {
        "applicability": fix.applicability.label,
        "edits": [
            {
                "content": edit.content,
                "end_location": _offset(source, edit.span.end),
                "location": _offset(source, edit.span.start),
                **_cell(source, edit.span.start),
            }
            for edit in fix.edits
        ],
        "message": fix.message,
    }


def _offset(source: Text, offset: int) -> dict[str, int]:
    return _place(source.locate(offset))


def _cell(source: Text, offset: int) -> dict[str, int]:
    """The cell of an edit; a fix may change several of a notebook."""
    cell = source.locate(offset).cell
    return {} if cell is None else {"cell": cell}


def _place(position: Position) -> dict[str, int]:
    return {"column": position.column, "row": position.row}
