"""Fingerprints stay while a file is edited around a finding, and change where the finding does."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint import reading
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic, Position, Severity, Span
from torchlint.fingerprints import code, fingerprints
from torchlint.options import LintSettings
from torchlint.registry import rules

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


FORMATTED = [
    ("total += f(x.item(), 'a', 0XFF)  # sum\n", 'total += f(\n    x.item(),\n    "a",\n    0xff,\n)\n'),
    ("y = (x.item())\n", "y = x.item()\n"),
    ("for a in (x.item(), 1):\n    b\n", "for a in x.item(), 1:\n    c\n"),
    ("y = a + \\\n  x.item()\n", "y = (\n    a  # first\n    + x.item()\n)\n"),
    ("y = {'it\\'s': x.item()}\n", 'y = {"it\'s": x.item()}\n'),
    ("y = [a,x.item()]\n", "y = [\n    a,\n    x.item(),\n]\n"),
    ("f(u'a', x.item())\n", 'f("a", x.item())\n'),
    ("y = F'{a}' + x.item()\n", 'y = f"{a}" + x.item()\n'),
]


@pytest.mark.parametrize(("before", "after"), FORMATTED)
def test_formatting_keeps_the_fingerprint(before: str, after: str) -> None:
    assert _names(before, _finding(before)) == _names(after, _finding(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = [x.item(), 1]\n", "y = {x.item(), 1}\n"),
        ("f(x.item(), 'a')\n", "f(x.item(), 'b')\n"),
        ("f(x.item(), 'a')\n", "f(x.item(), b'a')\n"),
        ("f(a, x.item())\n", "f(a * x.item())\n"),
        ("if a:\n    x.item()\n", "if a: x.item() + 1\n"),
    ],
)
def test_other_code_has_another_fingerprint(before: str, after: str) -> None:
    assert _names(before, _finding(before)) != _names(after, _finding(after))


def test_the_lines_around_a_statement_do_not_count() -> None:
    text = 'with torch.no_grad(\n):\n    a = """\nx = (\n"""\n    y = x.item()\nz = 1\n'
    assert code(text, text.index("x.item"), Path("a.py")) == "y = x . item"
    assert code("a:  1\n", 4, Path("a.yaml")) == "a: 1"


def test_a_formatter_changes_no_fingerprint(tmp_path: Path) -> None:
    """A real one, on the example programs: what is found afterwards are the same findings."""
    programs = sorted((Path(__file__).resolve().parents[1] / "fixtures" / "programs").glob("*.py"))[:4]
    names: list[list[str]] = []
    for formatted in (False, True):
        for program in programs:
            shutil.copy(program, tmp_path / program.name)
        if formatted:
            options = ("--isolated", "--line-length", "60", "--config", "format.quote-style='single'")
            command = [sys.executable, "-m", "ruff", "format", *options, str(tmp_path)]
            subprocess.run(command, check=True, capture_output=True)
            assert any(path.read_bytes() != (tmp_path / path.name).read_bytes() for path in programs)
        names.append([name for program in programs for name in _found_in(tmp_path / program.name)])
    assert names[0] and sorted(names[0]) == sorted(names[1])


def _found_in(path: Path) -> list[str]:
    source = reading.read(path)
    found = check(source, LintSettings(rules=tuple(rules())))
    return fingerprints([item for item in found if not item.advice], lambda _: source.text, path.parent)
