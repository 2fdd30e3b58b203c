"""Fingerprints stay while a file is edited around a finding, and change where the finding does."""

from dataclasses import replace
from pathlib import Path

from torchlint.diagnostics import Diagnostic, Position, Severity, Span
from torchlint.fingerprints import fingerprints

ROOT = Path("/project")
TEXT = "a = 1\nx.item()\nb = 2\nx.item()\n"


def _finding(text: str, nth: int = 0, code: str = "TL202", path: Path = ROOT / "src" / "a.py") -> Diagnostic:
    at = -1
    for _ in range(nth + 1):
        at = text.index("x.item()", at + 1)
    place = Position(1, 1)
    return Diagnostic(code, "a-name", "a message", Severity.WARNING, path, Span(at, at + 8), place, place)


def _names(text: str, *findings: Diagnostic, root: Path = ROOT) -> list[str]:
    return fingerprints(findings, lambda _: text, root)


def test_equal_findings_are_told_apart_by_their_number() -> None:
    first, second = _names(TEXT, _finding(TEXT), _finding(TEXT, 1))

    assert first != second
    assert len(first) == len(second) == 64


def test_moved_and_reindented_findings_keep_their_fingerprint() -> None:
    moved = "import torch\r\n\r\nif True:\r\n\t x.item()\r\n"

    assert _names(moved, _finding(moved)) == _names(TEXT, _finding(TEXT))


def test_the_one_that_is_left_has_the_lower_number() -> None:
    fixed = TEXT.replace("x.item()", "pass", 1)

    assert _names(fixed, _finding(fixed)) == _names(TEXT, _finding(TEXT), _finding(TEXT, 1))[:1]


def test_rule_file_and_line_each_count() -> None:
    edited = TEXT.replace("x.item()", "y = x.item()")
    usual = _names(TEXT, _finding(TEXT))

    assert _names(TEXT, _finding(TEXT, code="TL203")) != usual
    assert _names(TEXT, _finding(TEXT, path=ROOT / "b.py")) != usual
    assert _names(edited, _finding(edited)) != usual


def test_the_place_of_the_project_does_not_count() -> None:
    elsewhere = Path("/elsewhere")
    moved = replace(_finding(TEXT), path=elsewhere / "src" / "a.py")

    assert _names(TEXT, moved, root=elsewhere) == _names(TEXT, _finding(TEXT))


def test_a_file_that_cannot_be_read_any_more_still_has_one() -> None:
    assert len(fingerprints([_finding(TEXT)], lambda _: None, ROOT)[0]) == 64
