"""Findings with the source line, the place underlined and the fix as a small diff."""

from __future__ import annotations

from torchlint.diagnostics import Applicability, Diagnostic
from torchlint.render import patch, snippet
from torchlint.render.report import Report, headline, severity_color, visible


def render(report: Report) -> str:
    """One block a finding, each followed by an empty line."""
    return "".join(_block(report, diagnostic) for diagnostic in report.diagnostics)


def _block(report: Report, diagnostic: Diagnostic) -> str:
    source = report.source(diagnostic.path)
    text = source.text if source is not None else ""
    fix = diagnostic.fix if text else None
    rows = [snippet.extent(snippet.layout(text)[0], diagnostic.start, diagnostic.end)[1]]
    rows += [patch.last_row(text, fix)] if fix is not None else []
    gutter = len(str(max(rows)))
    where = f"{report.shown(diagnostic.path)}:{diagnostic.start.row}:{diagnostic.start.column}"
    out = [
        headline(report, diagnostic),
        f"{' ' * gutter}{report.paint('-->', 'blue', bold=True)} {where}",
    ]
    color = severity_color(diagnostic.severity)
    shown = snippet.render(report, text, diagnostic.start, diagnostic.end, color, gutter)
    out += [shown] if shown else []
    note = report.paint("note", bold=True)
    for position, remark in diagnostic.related:
        at = f"{report.shown(diagnostic.path)}:{position.row}:{position.column}"
        out.append(f"{note}: {at}: {visible(remark)}")
    if diagnostic.help is not None:
        out.append(f"{report.paint('help', 'cyan', bold=True)}: {visible(diagnostic.help)}")
    if fix is not None:
        out.append(patch.render(report, text, fix, gutter))
        if fix.applicability is Applicability.UNSAFE:
            out.append(f"{note}: This is an unsafe fix and may change runtime behavior")
        elif fix.applicability is Applicability.DISPLAY:
            out.append(f"{note}: This change is shown for your judgment and never applied")
    return "\n".join(out) + "\n\n"
