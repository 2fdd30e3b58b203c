"""Logging commands that Azure Pipelines shows as issues of a run."""

from __future__ import annotations

from torchlint.diagnostics import Diagnostic, Severity
from torchlint.render.report import Report, visible


def render(report: Report) -> str:
    """Return one ``##vso[task.logissue …]…`` line a finding."""
    return "".join(_command(report, report.in_file(diagnostic)) for diagnostic in report.diagnostics)


def _command(report: Report, diagnostic: Diagnostic) -> str:
    # There is nothing below a warning.
    properties = {
        "type": "error" if diagnostic.severity is Severity.ERROR else "warning",
        "sourcepath": report.absolute(diagnostic.path),
        "linenumber": str(diagnostic.start.row),
        "columnnumber": str(diagnostic.start.column),
        "code": diagnostic.code,
    }
    listed = "".join(f"{key}={_property(value)};" for key, value in properties.items())
    return f"##vso[task.logissue {listed}]{_data(diagnostic.message)}\n"


def _data(text: str) -> str:
    return visible(text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
