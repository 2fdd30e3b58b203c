"""Columns as other programs count them: torchlint counts characters, they count code units or bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache

from torchlint.diagnostics import Position
from torchlint.render.snippet import layout
from torchlint.source import line_starts


def position(text: str, offset: int) -> Position:
    """Return the row and column of a character offset in ``text``."""
    starts = _rows(text)
    row = bisect_right(starts, offset)
    return Position(row, offset - starts[row - 1] + 1)


# The findings of a file come one after the other.
@lru_cache(maxsize=2)
def _rows(text: str) -> Sequence[int]:
    return line_starts(text)


def in_utf16(text: str, position: Position) -> Position:
    """Return ``position`` with its column in UTF-16 code units, as editors and JavaScript count."""
    return _recounted(text, position, lambda before: len(before.encode("utf-16-le", "surrogatepass")) // 2)


def in_utf8(text: str, position: Position) -> Position:
    """Return ``position`` with its column in bytes of UTF-8, as Go counts."""
    return _recounted(text, position, lambda before: len(before.encode("utf-8", "surrogatepass")))


def _recounted(text: str, position: Position, width: Callable[[str], int]) -> Position:
    lines, _ = layout(text)
    if position.row > len(lines):
        return position
    line = lines[position.row - 1]
    before = line[: position.column - 1]
    # A column beyond the line, as that of an end of file, stays as far beyond it.
    beyond = position.column - 1 - len(before)
    return Position(position.row, width(before) + beyond + 1)
