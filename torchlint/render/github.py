"""Workflow commands that GitHub Actions shows as annotations on the changed lines."""

from __future__ import annotations

from torchlint.diagnostics import Diagnostic, Severity
from torchlint.render.report import Report, reason, spot, visible

_COMMANDS = {Severity.NOTE: "notice", Severity.WARNING: "warning", Severity.ERROR: "error"}


def render(report: Report) -> str:
    """Return one ``::warning …::…`` line a finding."""
    return "".join(_command(report, diagnostic) for diagnostic in report.diagnostics)


def _command(report: Report, diagnostic: Diagnostic) -> str:
    # GitHub knows no cells; whoever reads the text does.
    marked = report.in_file(diagnostic)
    start, end = marked.start, marked.end
    properties = {"title": f"torchlint ({diagnostic.code})", "file": report.absolute(diagnostic.path)}
    properties["line"] = str(start.row)
    # GitHub refuses columns of an annotation over several lines.
    if start.row == end.row:
        properties |= {"col": str(start.column), "endLine": str(end.row), "endColumn": str(end.column)}
    else:
        properties["endLine"] = str(end.row)
    told = f"{report.shown(diagnostic.path)}:{spot(diagnostic)}: {diagnostic.code} {reason(diagnostic)}"
    if diagnostic.help is not None:
        told += f"\n  help: {diagnostic.help}"
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_data(told)}\n"


def _data(text: str) -> str:
    # What is escaped is data; other control characters would reach the terminal of whoever reads the log.
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
