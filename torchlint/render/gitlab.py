"""A code quality report for GitLab: a subset of Code Climate's format."""

from __future__ import annotations

from typing import Any

from torchlint.diagnostics import Diagnostic, Impact, Position, Severity
from torchlint.fingerprints import fingerprints
from torchlint.render.json import dumps
from torchlint.render.report import Report

_WARNINGS = {Impact.LOW: "info", Impact.MEDIUM: "minor", Impact.HIGH: "major"}
"""The severities of warnings. Notes are `info`, errors `critical`."""


def render(report: Report) -> str:
    """Return an array of objects, indented."""
    names = fingerprints(report.diagnostics, report.text, report.project or report.root)
    found = [
        _issue(report, report.in_file(diagnostic), name)
        for diagnostic, name in zip(report.diagnostics, names, strict=True)
    ]
    return dumps(found, indent=2, sort_keys=False) + "\n"


def _issue(report: Report, diagnostic: Diagnostic, fingerprint: str) -> dict[str, Any]:
    return {
        "check_name": diagnostic.code,
        # GitLab shows the description only.
        "description": f"{diagnostic.code}: {diagnostic.message}",
        "severity": _severity(diagnostic),
        "fingerprint": fingerprint,
        "location": {
            "path": report.tracked(diagnostic.path),
            "positions": {"begin": _place(diagnostic.start), "end": _place(diagnostic.end)},
        },
    }


def _severity(diagnostic: Diagnostic) -> str:
    if diagnostic.severity is Severity.WARNING:
        return _WARNINGS[diagnostic.impact]
    return "critical" if diagnostic.severity is Severity.ERROR else "info"


def _place(position: Position) -> dict[str, int]:
    return {"line": position.row, "column": position.column}
