"""Findings with the source line, the place underlined and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from torchlint.diagnostics import UNTREATED, Applicability, Diagnostic, Edit, Fix, Span
from torchlint.impact import gain
from torchlint.render import patch, snippet
from torchlint.render.report import Report, headline, reason, severity_color, spot, visible
from torchlint.source import Part


def render(report: Report) -> str:
    """Return one block a finding, each followed by an empty line."""
    return "".join(_block(report, diagnostic) for diagnostic in report.diagnostics)


def _block(report: Report, diagnostic: Diagnostic) -> str:
    source = report.source(diagnostic.path)
    part = source.part(diagnostic.cell) if source is not None else None
    text = part.text if part is not None else ""
    fix = diagnostic.fix if text else None
    changes = list(_by_part(report, diagnostic.path, fix)) if fix is not None else []
    rows = [snippet.extent(snippet.layout(text)[0], diagnostic.start, diagnostic.end)[1]]
    rows += [patch.last_row(changed.text, change) for _, changed, change in changes]
    gutter = len(str(max(rows)))
    where = f"{report.shown(diagnostic.path)}:{spot(diagnostic)}"
    out = [
        headline(report, diagnostic, reason(diagnostic)),
        f"{' ' * gutter}{report.paint('-->', 'blue', bold=True)} {where}",
    ]
    color = severity_color(diagnostic.severity)
    shown = snippet.render(report, text, diagnostic.start, diagnostic.end, color, gutter)
    out += [shown] if shown else []
    if diagnostic.code not in UNTREATED:
        out.append(f"{report.paint('impact', bold=True)}: {_impact(diagnostic)}")
    note = report.paint("note", bold=True)
    for position, remark in diagnostic.related:
        file = report.shown(position.path or diagnostic.path)
        at = f"{file}:{spot(replace(diagnostic, start=position, cell=position.cell))}"
        out.append(f"{note}: {at}: {visible(remark)}")
    if diagnostic.help is not None:
        out.append(f"{report.paint('help', 'cyan', bold=True)}: {visible(diagnostic.help)}")
    if fix is not None:
        for path, changed, change in changes:
            if changed.cell is not None or path != diagnostic.path:
                place = report.shown(path) if changed.cell is None else f"cell {changed.cell}"
                out.append(f"{' ' * gutter}{report.paint(':::', 'blue', bold=True)} {place}")
            out.append(patch.render(report, changed.text, change, gutter))
        if fix.withheld is not None:
            out.append(f"{note}: This fix changes several files and was not applied: {fix.withheld}")
        elif fix.applicability is Applicability.UNSAFE:
            out.append(f"{report.paint('unsafe', 'yellow', bold=True)}: {visible(_risk(fix))}")
        elif fix.applicability is Applicability.DISPLAY:
            out.append(f"{note}: This change is a suggestion and is never applied")
    return "\n".join(out) + "\n\n"


def _risk(fix: Fix) -> str:
    return fix.risk or "this fix may change runtime behavior"


def _impact(diagnostic: Diagnostic) -> str:
    """Return how much is at stake, and why: how often the place runs, or what makes little of it,
    and what was gained in the benchmark.
    """
    often = diagnostic.frequency.told if diagnostic.frequency is not None else None
    gained = gain(diagnostic.code).told
    why = often if diagnostic.slight is None else visible(diagnostic.slight)
    told = diagnostic.impact.label + (f", {why}" if why else "")
    return told + (f" ({gained} in the rule's benchmark)" if gained else "")


def _by_part(report: Report, path: Path, fix: Fix) -> Iterator[tuple[Path, Part, Fix]]:
    """Yield what a fix changes in each file, or in each cell of a notebook, with offsets into that."""
    for file, changes in {path: fix.own, **fix.elsewhere}.items():
        source = report.source(file)
        if source is None:
            continue
        if not fix.edits and (whole := source.part(None)):
            yield file, whole, fix
        for cell, edits in groupby(changes, key=lambda edit: source.locate(edit.span.start).cell):
            part = source.part(cell)
            if part is not None:
                moved = (
                    Edit(Span(edit.span.start - part.start, edit.span.end - part.start), edit.content)
                    for edit in edits
                )
                yield file, part, replace(fix, edits=tuple(moved))
