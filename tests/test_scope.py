"""Which findings of a file count, and where its changed lines are after fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.changes import Rows
from torchlint.diagnostics import Diagnostic, Edit, Severity, Span
from torchlint.fingerprints import fingerprints
from torchlint.fixer import apply
from torchlint.scope import Scope
from torchlint.source import Source

PATH = Path("/project/a.py")
TEXT = "one()\ntwo(\n    2,\n)\nthree()\n"


def finding(source: Source, word: str, code: str = "TL202") -> Diagnostic:
    """A finding on the call of ``word``."""
    start = source.text.index(word)
    span = Span(start, source.text.index(")", start) + 1)
    place = source.position(start)
    return Diagnostic(
        code, "a-name", "a message", Severity.WARNING, PATH, span, place, source.position(span.end)
    )


def shown(scope: Scope, text: str = TEXT) -> list[str]:
    """The words whose finding counts."""
    source = Source(PATH, text)
    words = ("one", "two", "three")
    found = scope.sort_out(source, [finding(source, word) for word in words]).shown
    return [word for word in words if finding(source, word) in found]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (None, ["one", "two", "three"]),
        ((), []),
        (((1, 1),), ["one"]),
        (((3, 3),), ["two"]),
        (((4, 5),), ["two", "three"]),
        (((6, 9),), []),
    ],
)
def test_a_finding_counts_if_one_of_its_lines_changed(rows: Rows | None, expected: list[str]) -> None:
    assert shown(Scope(rows)) == expected


def test_lines_are_counted_as_git_does() -> None:
    text = TEXT.replace("one()\n", "\rone()\r\r\n")

    assert shown(Scope(((1, 1),)), text) == ["one"]
    assert shown(Scope(((5, 5),)), text) == ["three"]


def test_what_the_baseline_knows_is_left_out_and_told() -> None:
    source = Source(PATH, TEXT)
    found = [finding(source, word) for word in ("one", "two", "three")]
    names = fingerprints(found, lambda _: TEXT, PATH.parent)
    scope = Scope(((1, 4),), frozenset({names[0], names[2], "gone"}), PATH.parent)

    told = scope.sort_out(source, found)
    assert told.shown == [found[1]]
    assert told.known == {names[0], names[2]}


def test_failures_always_count() -> None:
    source = Source(PATH, TEXT)
    found = [finding(source, "one", "TL000"), finding(source, "three", "TL001")]
    known = frozenset(fingerprints(found, lambda _: TEXT, PATH.parent))

    assert Scope((), known, PATH.parent).sort_out(source, found).shown == found


@pytest.mark.parametrize(
    ("edits", "rows", "expected"),
    [
        ([("one", "one", "1")], ((4, 5),), ((1, 1), (4, 5))),
        ([("one", "", "import one\n")], ((1, 1),), ((1, 1), (1, 2))),
        ([("two", "", "import one\n")], ((5, 5),), ((2, 2), (6, 6))),
        ([("one()", "one()", "a\nb\nc")], ((2, 4), (5, 5)), ((1, 3), (4, 6), (7, 7))),
        ([("one()\n", "one()\n", ""), ("three", "three", "3\n3")], ((5, 5),), ((4, 5),)),
        ([("two(\n    2,\n)", "two(\n    2,\n)", "two(2)")], ((3, 3), (5, 5)), ((1, 1), (2, 2), (3, 3))),
    ],
)
def test_changed_lines_move_with_fixes(edits: list[tuple[str, str, str]], rows: Rows, expected: Rows) -> None:
    made = [Edit(Span(TEXT.index(at), TEXT.index(at) + len(replaced)), text) for at, replaced, text in edits]

    moved = Scope(rows).moved(Source(PATH, TEXT), made)
    assert moved.rows == expected
    assert all(first <= len(apply(TEXT, made).split("\n")) for first, _ in expected)
