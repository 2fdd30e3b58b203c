"""Findings under the name of their file."""

from __future__ import annotations

from itertools import groupby

from torchlint.render.report import Report, headline, spot


def render(report: Report) -> str:
    """Return a heading a file, an indented line a finding, an empty line after each file."""
    out = []
    for path, group in groupby(report.diagnostics, key=lambda item: item.path):
        out.append(f"{report.paint(report.shown(path), bold=True)}:\n")
        items = list(group)
        places = list(map(spot, items))
        width = max(map(len, places))
        out += [
            f"  {place:<{width}} {headline(report, item)}\n"
            for place, item in zip(places, items, strict=True)
        ]
        out.append("\n")
    return "".join(out)
