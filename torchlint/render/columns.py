"""Columns as other programs count them: torchlint counts characters, they count code units or bytes."""

from __future__ import annotations

from collections.abc import Callable

from torchlint.diagnostics import Position
from torchlint.render.snippet import layout


def in_utf16(text: str, position: Position) -> Position:
    """``position`` with its column in UTF-16 code units, as editors and JavaScript count."""
    return _recounted(text, position, lambda before: len(before.encode("utf-16-le", "surrogatepass")) // 2)


def in_utf8(text: str, position: Position) -> Position:
    """``position`` with its column in bytes of UTF-8, as Go counts."""
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
