"""A table in Markdown, as the summary of a job on GitHub shows it."""

from __future__ import annotations

import re

from torchlint.diagnostics import UNTREATED, Diagnostic
from torchlint.render import summary
from torchlint.render.report import Report, plural, spot, visible

# GitHub takes no more than 1 MiB of a summary, and nobody reads that much.
_MAX_ROWS = 500
_MAX_CHARACTERS = 200_000
_CODE = re.compile(r"`([^`]+)`")
_HEAD = "| Severity | Impact | Rule | Place | Finding |\n| --- | --- | --- | --- | --- |\n"
# What has a meaning in Markdown, in a table, or in the HTML in it.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#~$|&@:!\"']")


def render(report: Report) -> str:
    """Return a heading, the totals, and a row a finding, what matters most first; of very many,
    those that fit.
    """
    totals = summary.render(report).rstrip("\n").replace("\n", "  \n")
    rows: list[str] = []
    size = 0
    for diagnostic in sorted(report.diagnostics, key=_order)[:_MAX_ROWS]:
        row = _row(report, diagnostic)
        size += len(row)
        if size > _MAX_CHARACTERS:
            break
        rows.append(row)
    left = len(report.diagnostics) - len(rows)
    more = f"\n… and {plural(left, 'finding')} more.\n" if left else ""
    table = f"\n{_HEAD}{''.join(rows)}{more}" if rows else ""
    return f"### torchlint\n\n{totals}\n{table}"


def _order(diagnostic: Diagnostic) -> tuple[object, ...]:
    return (-diagnostic.severity.rank, -diagnostic.impact, diagnostic.sort_key)


def _row(report: Report, diagnostic: Diagnostic) -> str:
    place = f"{report.shown(diagnostic.path)}:{spot(diagnostic)}"
    rule = _code(diagnostic.code)
    url = report.url(diagnostic)
    if url is not None:
        rule = f'<a href="{_text(url)}">{rule}</a>'
    impact = "–" if diagnostic.code in UNTREATED else diagnostic.impact.label
    impact += f", {_text(diagnostic.slight)}" if diagnostic.slight is not None else ""
    cells = (
        diagnostic.severity.value,
        impact,
        f"{rule} {_text(diagnostic.name)}",
        _code(place),
        _message(diagnostic.message),
    )
    return f"| {' | '.join(cells)} |\n"


def _message(message: str) -> str:
    """Return prose in which what stands in backticks is code."""
    parts = _CODE.split(message)
    return "".join(_code(part) if number % 2 else _text(part) for number, part in enumerate(parts))


def _code(text: str) -> str:
    # Backticks could be closed by the text itself, and a bar would end the cell even between them.
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", visible(text))
