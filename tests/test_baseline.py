"""The file of findings that a project lives with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchlint.baseline import Baseline, BaselineError, Entry, entries
from torchlint.diagnostics import Diagnostic, Position, Severity, Span
from torchlint.source import Source


def entry(path: str, code: str = "TL202", line: str = "x.item()", fingerprint: str = "f") -> Entry:
    return Entry(path, code, line, fingerprint)


def test_one_line_a_finding_and_sorted(tmp_path: Path) -> None:
    found = {entry("b.py"), entry("a.py", line="größe = 1"), entry("a.py", "TL101"), entry("c\udcff.py")}
    baseline = Baseline(tmp_path / "baseline.json", frozenset(found))

    assert baseline.write() is True
    assert baseline.path.read_bytes().decode() == (
        "{\n"
        '  "version": 2,\n'
        '  "findings": [\n'
        '    {"code": "TL101", "path": "a.py", "line": "x.item()", "fingerprint": "f"},\n'
        '    {"code": "TL202", "path": "a.py", "line": "größe = 1", "fingerprint": "f"},\n'
        '    {"code": "TL202", "path": "b.py", "line": "x.item()", "fingerprint": "f"},\n'
        '    {"code": "TL202", "path": "c\\udcff.py", "line": "x.item()", "fingerprint": "f"}\n'
        "  ]\n"
        "}\n"
    )
    assert Baseline.read(baseline.path) == baseline
    assert baseline.write() is False


def test_an_empty_one(tmp_path: Path) -> None:
    baseline = Baseline(tmp_path / "baseline.json")
    baseline.write()

    assert json.loads(baseline.path.read_text()) == {"version": 2, "findings": []}
    assert Baseline.read(baseline.path).entries == frozenset()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not valid JSON: .*line 1"),
        (b"[", "not valid JSON: .*line 1"),
        (b'{"version": 2,\n<<<<<<< ours\n', "merge conflict.*--update-baseline"),
        (b"[]", "version should be 2, not null"),
        (b'{"version": 1, "findings": []}', "version should be 2, not 1; delete it"),
        (b'{"version": 2}', "`findings` should be a list"),
        (b'{"version": 2, "findings": ["a.py"]}', "finding 1 should be an object"),
        (b'{"version": 2, "findings": [{"code": "TL202", "path": 3}]}', "finding 1 .* string `path`"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_baseline_is_told_with_its_name(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(text)

    with pytest.raises(BaselineError, match=f"baseline .*baseline.json: .*{reason}"):
        Baseline.read(path)


def test_there_may_be_none(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no such file"):
        Baseline.read(tmp_path / "baseline.json")
    with pytest.raises(BaselineError, match="cannot write the baseline"):
        Baseline(tmp_path / "nowhere" / "baseline.json").write()


def test_an_update_judges_only_what_was_looked_at(tmp_path: Path) -> None:
    for name in ("looked.py", "other.py"):
        (tmp_path / name).touch()
    fixed, kept, other = entry("looked.py"), entry("looked.py", "TL301"), entry("other.py")
    old = Baseline(tmp_path / "baseline.json", frozenset({fixed, kept, other, entry("deleted.py")}))
    new = entry("looked.py", fingerprint="new")

    updated = old.updated({tmp_path / "looked.py": ("TL202", "TL101")}, [new])
    assert updated.entries == {kept, other, new}


def test_entries_are_relative_and_short(tmp_path: Path) -> None:
    text = "\tx  =  y.item()\n" + "z" * 300 + "\n"
    source = Source(tmp_path / "src" / "a.py", text)
    place = Position(1, 1)
    findings = [
        Diagnostic(code, "a-name", "a message", Severity.WARNING, source.path, span, start, start)
        for code, span, start in (
            ("TL202", Span(1, 2), place),
            ("TL001", Span(1, 2), place),
            ("TL301", Span(20, 21), Position(2, 1)),
        )
    ]

    first, second = entries(source, findings, tmp_path)
    assert (first.path, first.code, first.line) == ("src/a.py", "TL202", "x = y.item()")
    assert (second.code, len(second.line), second.line[-1]) == ("TL301", 100, "…")
    assert Baseline(tmp_path / "baseline.json", frozenset({first, second})).known(source.path) == {
        first.fingerprint,
        second.fingerprint,
    }
