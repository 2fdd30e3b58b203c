"""Columns in code units and bytes."""

from torchlint.diagnostics import Position
from torchlint.render.columns import in_utf8, in_utf16

TEXT = "a = 1\r\n'é😀' + b\rlast"


def test_columns_are_counted_from_the_start_of_their_line() -> None:
    before_b = Position(2, 8)
    assert TEXT.split("\r\n")[1][before_b.column - 1] == "b"
    assert in_utf16(TEXT, before_b) == Position(2, 9)
    assert in_utf8(TEXT, before_b) == Position(2, 12)
    assert in_utf16(TEXT, Position(3, 5)) == in_utf8(TEXT, Position(3, 5)) == Position(3, 5)


def test_places_beyond_the_text_stay() -> None:
    assert in_utf16(TEXT, Position(9, 4)) == Position(9, 4)
    assert in_utf8("é", Position(1, 4)) == Position(1, 5)
