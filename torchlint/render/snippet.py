"""A piece of source with a place underlined."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate

from torchlint.diagnostics import Position
from torchlint.render.report import Color, Report, visible

_CONTEXT = 2
_LONGEST = 12
_TAB = 4
# Lines are cut this many widths of the output away from the place that is shown.
_FAR = 20
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """Return the physical lines of a program with their ends; unlike `str.splitlines` only at CR and LF."""
    return _LINE.findall(text)


@lru_cache(maxsize=2)
def layout(text: str) -> tuple[list[str], list[int]]:
    """Return the lines of a whole file and the offsets at which they begin, and the last one ends.

    The findings of a file come one after the other, so that its lines are worth keeping.
    """
    lines = split_lines(text)
    return lines, [0, *accumulate(map(len, lines))]


def expand(line: str) -> str:
    """Return a source line as it is printed: no line end, tabs as spaces, control characters visible."""
    return visible(line.rstrip("\r\n").expandtabs(_TAB))


def cells(text: str) -> int:
    """Return the number of terminal columns that ``text`` takes."""
    return len(text) if text.isascii() else sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def extent(lines: list[str], start: Position, end: Position) -> tuple[int, int]:
    """Return the first and the last row that `render` shows; zeros if the text has no such line."""
    if not 1 <= start.row <= len(lines):
        return 0, 0
    last = min(max(end.row, start.row), len(lines))
    first_shown, last_shown = max(1, start.row - _CONTEXT), min(len(lines), last + _CONTEXT)
    while first_shown < start.row and not lines[first_shown - 1].strip():
        first_shown += 1
    while last_shown > last and not lines[last_shown - 1].strip():
        last_shown -= 1
    return first_shown, last_shown


def render(report: Report, text: str, start: Position, end: Position, color: Color, gutter: int) -> str:
    """Return the lines around ``start`` to ``end`` with the place underlined;
    empty if the text has no such line.

    ``gutter`` is the width of the column of line numbers.
    """
    lines, _ = layout(text)
    lines, start, end = _near(lines, start, end, report.width)
    first_shown, last_shown = extent(lines, start, end)
    if not last_shown:
        return ""
    last = min(max(end.row, start.row), len(lines))

    def column(row: int, at: int) -> int:
        before = lines[row - 1].rstrip("\r\n")[: at - 1]
        return cells(visible(before.expandtabs(_TAB)))

    left, right = column(start.row, start.column), column(last, end.column if last == end.row else 10**9)
    one_line = last == start.row
    right = max(right, left + 1) if one_line else right
    # Two columns are kept for the dots of a line that is cut.
    room = max(20, report.width - gutter - (5 if one_line else 7))
    window = _window(left, right, room, cells(expand(lines[start.row - 1]))) if one_line else (0, room)
    edge = report.paint("|", "blue", bold=True)
    blank = f"{' ' * gutter} {edge}"
    # A place that begins its line opens its bracket in the margin, any other on a line of its own.
    opens_margin = not lines[start.row - 1][: start.column - 1].strip()

    out = [blank]
    for row in range(first_shown, last_shown + 1):
        if not one_line and last - start.row > _LONGEST and start.row + 5 <= row <= last - 4:
            if row == start.row + 5:
                out.append(
                    f"{report.paint('.' * max(gutter, 3), 'blue', bold=True):<{gutter}} {edge}".rstrip()
                )
            continue
        code = _cut(expand(lines[row - 1]), *window)
        number = report.paint(f"{row:>{gutter}}", "blue", bold=True)
        if one_line:
            out.append(f"{number} {edge} {code}".rstrip())
            if row == start.row:
                marks = report.paint("^" * (min(right, window[1]) - left), color, bold=True)
                out.append(f"{blank} {' ' * (left - window[0] + (window[0] > 0))}{marks}")
            continue
        inside = start.row < row <= last
        margin = "|" if inside else "/" if row == start.row and opens_margin else " "
        out.append(f"{number} {edge} {report.paint(margin, color, bold=True)} {code}".rstrip())
        if row == start.row and not opens_margin:
            out.append(f"{blank} {report.paint(' ' + '_' * (left + 1) + '^', color, bold=True)}")
        if row == last:
            out.append(f"{blank} {report.paint('|' + '_' * max(right, 1) + '^', color, bold=True)}")
    out.append(blank)
    return "\n".join(out)


def _near(
    lines: list[str], start: Position, end: Position, width: int
) -> tuple[list[str], Position, Position]:
    """Return the same place in lines that are cut far away from it,
    where they are so long that it takes time.
    """
    near = range(max(0, start.row - 1 - _CONTEXT), min(len(lines), end.row + _CONTEXT))
    most = _FAR * width
    if not any(len(lines[index]) > 3 * most for index in near):
        return lines, start, end
    shift = max(0, start.column - most) if end.row == start.row else 0
    lines = lines.copy()
    for index in near:
        line = lines[index]
        lines[index] = ("…" + line[shift + 1 :] if shift else line)[: 2 * most]
    column = min(end.column - shift, 2 * most) if end.row == start.row else min(end.column, most)
    return lines, Position(start.row, start.column - shift), Position(end.row, max(column, 1))


def _window(left: int, right: int, room: int, length: int) -> tuple[int, int]:
    """Return the columns ``[from, to)`` to show of a line that may be longer than the room for it."""
    if length <= room or right <= room:
        return 0, room
    begin = max(0, min(left - room // 4, right - room))
    begin = max(begin, left - room // 4) if right - left > room else begin
    return begin, begin + room


def _cut(line: str, begin: int, end: int) -> str:
    """Return the columns ``[begin, end)`` of a line, with ``…`` where something is left out."""
    if begin == 0 and cells(line) <= end:
        return line
    kept, at = [], 0
    for char in line:
        width = _cells(char)
        if begin <= at and at + width <= end:
            kept.append(char)
        at += width
    return ("…" if begin else "") + "".join(kept) + ("…" if at > end else "")
