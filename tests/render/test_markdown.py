"""The table of a job's summary: whatever stands in names and messages stays text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchlint.diagnostics import Diagnostic, Impact, Position, Severity, Span
from torchlint.render import markdown
from torchlint.render.report import Report

ROOT = Path("/project")


def finding(message: str = "`.item()` waits", path: str = "train.py") -> Diagnostic:
    place = Position(14, 18)
    return Diagnostic(
        "TL202", "item-in-hot-loop", message, Severity.WARNING, ROOT / path, Span(0, 1), place, place
    )


def table(*diagnostics: Diagnostic) -> list[str]:
    """The lines of the page."""
    return markdown.render(Report(diagnostics, lambda _: None, root=ROOT)).splitlines()


def test_a_row_a_finding_under_the_totals() -> None:
    *head, row = table(finding())

    assert head == [
        "### torchlint",
        "",
        "Found 1 warning.  ",
        "For more information about a rule, run `torchlint rule TL202`.",
        "",
        "| Severity | Impact | Rule | Place | Finding |",
        "| --- | --- | --- | --- | --- |",
    ]
    assert row == (
        "| warning | medium | <code>TL202</code> item-in-hot-loop | <code>train.py&#58;14&#58;18</code> "
        "| <code>.item&#40;&#41;</code> waits |"
    )


def test_what_matters_most_is_first() -> None:
    low, high = (replace(finding(), impact=impact) for impact in (Impact.LOW, Impact.HIGH))
    error = replace(finding(), severity=Severity.ERROR, code="TL001", name="syntax-error")

    rows = table(low, high, error)[-3:]

    assert [row.split(" | ")[:2] for row in rows] == [
        ["| error", "–"],
        ["| warning", "high"],
        ["| warning", "low"],
    ]


def test_without_findings_there_is_no_table() -> None:
    assert table() == ["### torchlint", "", "All checks passed!"]


def test_the_code_links_to_its_page() -> None:
    row = table(replace(finding(), url='https://example.org/a"b'))[-1]

    assert row.startswith(
        '| warning | medium | <a href="https&#58;//example.org/a&#34;b"><code>TL202</code></a> item'
    )


def test_a_place_in_a_notebook_names_the_cell() -> None:
    row = table(replace(finding(path="n.ipynb"), cell=3))[-1]

    assert "<code>n.ipynb&#58;cell 3&#58;14&#58;18</code>" in row


def test_nothing_in_names_and_messages_is_markup() -> None:
    evil = "a|b`c<img src=x>[x](y)\n| ::error::*@you*"
    row = table(finding(f"odd ` {evil} `x|y`", f"{evil}.py"))[-1]

    assert row.count("|") == 6
    assert not set("`*[]()@\\\n") & set(row)
    assert row.replace("<code>", "").replace("</code>", "").count("<") == 0
    assert "a&#124;b&#96;c&#60;img" in row


def test_of_very_many_only_the_first_are_listed() -> None:
    many = table(*[finding()] * 501)
    long = table(*[finding("x" * 150_000)] * 3)

    assert (len(many), many[-1]) == (7 + 500 + 2, "… and 1 finding more.")
    assert (len(long), long[-1]) == (7 + 1 + 2, "… and 2 findings more.")
