"""Findings as JSON with the keys of ruff, so that its tools read them: one array, or one object a line."""

from __future__ import annotations

import json
import re
from typing import Any

from torchlint.diagnostics import Diagnostic, Position
from torchlint.render.report import Report, Text


def render(report: Report) -> str:
    """Return an array of objects, indented, keys sorted."""
    found = [_object(report, diagnostic) for diagnostic in report.diagnostics]
    return dumps(found, indent=2) + "\n"


def render_lines(report: Report) -> str:
    """Return one object a line."""
    return "".join(dumps(_object(report, diagnostic)) + "\n" for diagnostic in report.diagnostics)


def dumps(value: Any, *, indent: int | None = None, sort_keys: bool = True) -> str:
    """Return JSON in ASCII: no character of a program drives the terminal, and every encoding can hold it.

    Nor does a build server that reads the log find a command in it, such as ``##vso[…]``.

    Half a surrogate pair, as names that are no text have them, becomes U+FFFD: strict readers refuse it.
    """
    text = json.dumps(value, indent=indent, sort_keys=sort_keys).replace("\x7f", "\\u007f")
    text = _LOGGING_COMMAND.sub(r"\1\\u005b", text)
    return _ESCAPE.sub(lambda escape: "\\ufffd" if escape["lone"] else escape[0], text)


_LOGGING_COMMAND = re.compile(r"(##(?:vso)?)\[", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u(?:d[89ab]..\\ud[c-f]..|(?P<lone>d[89a-f]..))|.)")


def _object(report: Report, diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "advice": diagnostic.advice,
        "cell": diagnostic.cell,
        "code": diagnostic.code,
        "end_location": _place(diagnostic.end),
        "filename": report.absolute(diagnostic.path),
        "fix": _fix(report, diagnostic),
        "frequency": None if diagnostic.frequency is None else diagnostic.frequency.label,
        "help": diagnostic.help,
        "impact": diagnostic.impact.label,
        "impact_reason": diagnostic.slight,
        "location": _place(diagnostic.start),
        "message": diagnostic.message,
        "name": diagnostic.name,
        "noqa_row": diagnostic.noqa_row or diagnostic.start.row,
        "related": [
            {
                "cell": place.cell,
                "filename": report.absolute(place.path or diagnostic.path),
                "location": _place(place),
                "message": remark,
            }
            for place, remark in diagnostic.related
        ],
        "severity": diagnostic.severity.value,
        "url": report.url(diagnostic),
    }


def _fix(report: Report, diagnostic: Diagnostic) -> dict[str, Any] | None:
    fix = diagnostic.fix
    if fix is None:
        return None
    edits: list[dict[str, Any]] = []
    for path, own in {diagnostic.path: fix.own, **fix.elsewhere}.items():
        source = report.source(path)
        if source is None:
            return None
        file = {} if path == diagnostic.path else {"filename": report.absolute(path)}
        edits += [
            {
                "content": edit.content,
                "end_location": _offset(source, edit.span.end),
                "location": _offset(source, edit.span.start),
                **_cell(source, edit.span.start),
                **file,
            }
            for edit in own
        ]
    return {
        "applicability": fix.applicability.label,
        "edits": edits,
        "message": fix.message,
        **({"unsafe_reason": fix.risk} if fix.risk else {}),
        **({"withheld": fix.withheld} if fix.withheld else {}),
    }


def _offset(source: Text, offset: int) -> dict[str, int]:
    return _place(source.locate(offset))


def _cell(source: Text, offset: int) -> dict[str, int]:
    """Return the cell of an edit; a fix may change several of a notebook."""
    cell = source.locate(offset).cell
    return {} if cell is None else {"cell": cell}


def _place(position: Position) -> dict[str, int]:
    return {"column": position.column, "row": position.row}
