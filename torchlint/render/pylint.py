"""One line a finding as pylint's parseable format has it; many tools read that."""

from __future__ import annotations

from torchlint.render.report import Report, visible


def render(report: Report) -> str:
    """Return ``path:row: [CODE] message`` lines."""
    return "".join(
        f"{report.shown(item.path)}:{item.start.row}: [{visible(item.code)}] {visible(item.message)}\n"
        for item in map(report.in_file, report.diagnostics)
    )
