"""How often each rule fired."""

from __future__ import annotations

import json
from collections import defaultdict

from torchlint.diagnostics import Diagnostic, Impact
from torchlint.render.json import dumps
from torchlint.render.report import Report, severity_color, visible


def _by_rule(report: Report) -> list[list[Diagnostic]]:
    groups: defaultdict[str, list[Diagnostic]] = defaultdict(list)
    for diagnostic in report.diagnostics:
        groups[diagnostic.code].append(diagnostic)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].code))


def render(report: Report) -> str:
    """Return ``count  code  [*] name`` lines, most frequent first; ``[-]`` where only some can be fixed."""
    groups = _by_rule(report)
    width = max((len(str(len(group))) for group in groups), default=0)
    out = []
    for group in groups:
        fixable = sum(map(report.fixable, group))
        mark = " " if not fixable else report.paint("*" if fixable == len(group) else "-", "cyan")
        code = report.paint(visible(group[0].code), severity_color(group[0].severity), bold=True)
        count = report.paint(f"{len(group):>{width}}", bold=True)
        out.append(f"{count}\t{code}\t[{mark}] {visible(group[0].name)}\n")
    return "".join(out)


def render_json(report: Report) -> str:
    """Return the same as an array of objects."""
    found = [
        {
            "code": group[0].code,
            "name": group[0].name,
            "severity": group[0].severity.value,
            "count": len(group),
            "impact": {
                impact.label: sum(item.impact is impact for item in group) for impact in reversed(Impact)
            },
            "fixable": all(map(report.fixable, group)),
            "fixable_count": sum(map(report.fixable, group)),
        }
        for group in _by_rule(report)
    ]
    return dumps(found, indent=2, sort_keys=False) + "\n"


def render_json_lines(report: Report) -> str:
    """Return the same, one object a line."""
    return "".join(dumps(item, sort_keys=False) + "\n" for item in json.loads(render_json(report)))
