"""A fix as a small diff with line numbers, and the diff of a whole file in colour."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator

from torchlint.diagnostics import Edit, Fix
from torchlint.render.report import Report
from torchlint.render.snippet import expand, layout, split_lines
from torchlint.source import NEWLINE

_CONTEXT = 1
_APART = 3
_LONGEST = 500


def render(report: Report, text: str, fix: Fix, gutter: int) -> str:
    """Return what ``fix`` changes in ``text``; places far apart are separated by dots."""
    lines, starts = layout(text)
    edge = report.paint("|", "blue", bold=True)
    blank = f"{' ' * gutter} {edge}"
    out = [blank]
    shift = 0
    for number, edits in enumerate(_clusters(fix.edits, starts)):
        if number:
            out.append(f"{report.paint('...', 'blue', bold=True)}")
        first = _row(starts, edits[0].span.start)
        # What replaces the end of a line pulls the next one into the cluster.
        stop = min(len(lines), _row(starts, edits[-1].span.end) + 1)
        above, below = max(0, first - _CONTEXT), min(len(lines), stop + _CONTEXT)
        old = lines[above:below]
        new = split_lines(_apply(text, edits, starts[above], starts[below]))
        out += _changes(report, old, new, above + shift, gutter, edge)
        shift += len(new) - len(old)
    out.append(blank)
    return "\n".join(out)


def _row(starts: list[int], offset: int) -> int:
    """Return the index of the line that holds ``offset``."""
    return max(0, min(bisect_right(starts, offset) - 1, len(starts) - 2))


def _clusters(edits: tuple[Edit, ...], starts: list[int]) -> Iterator[tuple[Edit, ...]]:
    group: list[Edit] = []
    for edit in edits:
        if group and _row(starts, edit.span.start) - _row(starts, group[-1].span.end) > _APART:
            yield tuple(group)
            group = []
        group.append(edit)
    if group:
        yield tuple(group)


def _apply(text: str, edits: tuple[Edit, ...], start: int, end: int) -> str:
    parts, at = [], start
    for edit in edits:
        parts += [text[at : edit.span.start], edit.content]
        at = edit.span.end
    return "".join([*parts, text[at:end]])


def _changes(
    report: Report, old: list[str], new: list[str], shift: int, gutter: int, edge: str
) -> Iterator[str]:
    """Yield the lines of one place; numbers are those of the fixed text,
    ``shift`` the index of its first line.
    """
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            # Only the lines next to a change are context.
            rows = range(j1, j2)
            kept = [
                row
                for row in rows
                if (j1 > 0 and row < j1 + _CONTEXT) or (j2 < len(new) and row >= j2 - _CONTEXT)
            ]
            for row in kept:
                number = report.paint(f"{row + shift + 1:>{gutter}}", "blue", bold=True)
                yield f"{number} {edge} {_line(new[row])}".rstrip()
            continue
        for line in old[i1:i2]:
            yield f"{' ' * gutter} {report.paint(f'- {_line(line)}'.rstrip(), 'red')}"
        for row in range(j1, j2):
            number = report.paint(f"{row + shift + 1:>{gutter}}", "blue", bold=True)
            yield f"{number} {report.paint(f'+ {_line(new[row])}'.rstrip(), 'green')}"


def _line(line: str) -> str:
    shown = expand(line)
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def last_row(text: str, fix: Fix) -> int:
    """Return the highest line number that `render` shows, to make room for it."""
    lines, starts = layout(text)
    if not fix.edits:
        return 1
    grown = sum(
        len(NEWLINE.findall(edit.content)) - len(NEWLINE.findall(text[edit.span.start : edit.span.end]))
        for edit in fix.edits
    )
    return min(len(lines), _row(starts, fix.edits[-1].span.end) + 1 + _CONTEXT) + grown


def paint_diff(report: Report, diff: str) -> str:
    """Return a unified diff with its lines coloured; the text itself is not touched."""
    if not report.color:
        return diff
    painted = []
    for line in diff.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if body.startswith(("---", "+++")):
            painted.append(report.paint(body, bold=True) + end)
        elif body.startswith("@@"):
            painted.append(report.paint(body, "cyan") + end)
        elif body.startswith("-"):
            painted.append(report.paint(body, "red") + end)
        elif body.startswith("+"):
            painted.append(report.paint(body, "green") + end)
        else:
            painted.append(line)
    return "".join(painted)
