"""reviewdog's format: columns are bytes, and a suggestion is the whole fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchlint import links
from torchlint.render import rdjson
from torchlint.render.report import Report


def applied(suggestion: Any, text: str) -> str:
    """What reviewdog makes of a suggestion: positions are lines and bytes in them, the end exclusive."""
    data = text.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    start, end = (
        starts[place["line"] - 1] + place["column"] - 1
        for place in (suggestion["range"]["start"], suggestion["range"]["end"])
    )
    inserted: str = suggestion["text"]
    return (data[:start] + inserted.encode() + data[end:]).decode()


def test_a_suggestion_does_what_the_fix_does(every: Report) -> None:
    found = json.loads(rdjson.render(every))["diagnostics"]
    (shown,) = [item for item in found if "name.py" in item["location"]["path"]]
    (diagnostic,) = [item for item in every.diagnostics if item.path.name == "wïde name.py"]
    text = every.text(diagnostic.path)
    assert text is not None and diagnostic.fix is not None
    fixed = text
    for edit in reversed(diagnostic.fix.edits):
        fixed = fixed[: edit.span.start] + edit.content + fixed[edit.span.end :]
    (suggestion,) = shown["suggestions"]
    assert applied(suggestion, text) == fixed != text


def test_edits_far_apart_are_no_suggestion(desk: Any) -> None:
    text = "a()\n" + "\n" * rdjson._LONGEST + "b()\n"
    finding = desk.finding(text, "b()", fix=desk.fix(text, ("a()", "c()"), ("b()", "d()")))
    (shown,) = json.loads(rdjson.render(desk.report(finding)))["diagnostics"]
    assert "suggestions" not in shown
    assert shown["message"].endswith("\nhelp: Use the other thing")


def test_a_notebook_has_places_and_suggestions_in_its_json(every: Report) -> None:
    found = json.loads(rdjson.render(every))["diagnostics"]
    (shown,) = [item for item in found if item["location"]["path"] == "n.ipynb"]
    stored = every.stored(Path("/repo/n.ipynb"))
    assert stored is not None
    (row,) = (row for row, line in enumerate(stored.split("\n"), 1) if "bad(x)" in line)
    line = stored.split("\n")[row - 1]
    at = line.index("bad(x)") + 1
    assert shown["location"]["range"]["start"] == {"line": row, "column": at}
    assert shown["location"]["range"]["end"] == {"line": row, "column": at + len("bad(x)")}
    (suggestion,) = shown["suggestions"]
    start, end = suggestion["range"]["start"], suggestion["range"]["end"]
    assert start["line"] == end["line"] == row
    fixed = line[: start["column"] - 1] + suggestion["text"] + line[end["column"] - 1 :]
    assert fixed == line.replace("bad(x)", "good(x)")
    assert shown["message"].startswith("cell 3, line 2: ")


def test_links_are_given_once_there_is_an_address(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = desk.report(desk.finding("a()\n", "a"))
    monkeypatch.setattr(links, "declared", lambda: {"repository": "https://example.org"})
    told = json.loads(rdjson.render(report))
    assert told["source"] == {"name": "torchlint", "url": "https://example.org"}
    assert told["diagnostics"][0]["code"] == {"value": "TL202", "url": "https://example.org/TL202"}
