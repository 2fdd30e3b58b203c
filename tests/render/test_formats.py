"""The other formats: concise, grouped, json, github, statistics and the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from torchlint import options
from torchlint.diagnostics import Applicability, Position, Severity
from torchlint.render import concise, github, grouped, patch, statistics, summary
from torchlint.render import json as as_json
from torchlint.render.report import STDIN
from torchlint.rule import Rule

ROOT = Path("/repo")
WHY = "  TL202 unsafe: results change"
TEXT = "a = x.item()\nb = y.cpu()\n"


def _check(node: object, module: object) -> Iterator[object]:
    yield from ()


def test_concise_is_one_line_a_finding(desk: Any) -> None:
    fixed = desk.finding(TEXT, "x.item()", fix=desk.fix(TEXT, ("x.item()", "x")))
    other = desk.finding(TEXT, "y.cpu()", code="TL203", message="copied", path=Path("/elsewhere/b.py"))
    assert concise.render(desk.report(fixed, other)) == (
        "/elsewhere/b.py:2:5: TL203 copied\ntrain.py:1:5: TL202 [*] `.item()` waits for the device\n"
    )


def test_grouped_lists_findings_under_their_file(desk: Any) -> None:
    text = "\n" * 11 + TEXT
    found = [
        desk.finding(text, "x.item()", fix=desk.fix(text, ("x.item()", "x"))),
        desk.finding(TEXT, "y.cpu()", code="TL203", message="copied", path=ROOT / "b.py"),
        desk.finding(TEXT, "a", code="TL001", message="bad", path=ROOT / "train.py"),
    ]
    assert grouped.render(desk.report(*found)) == (
        "b.py:\n  2:5 TL203 copied\n\n"
        "train.py:\n  1:1  TL001 bad\n  12:5 TL202 [*] `.item()` waits for the device\n\n"
    )


def test_json_has_the_keys_of_ruff(desk: Any) -> None:
    fix = desk.fix(TEXT, ("x.item()", "x"), grade=Applicability.UNSAFE)
    found = desk.finding(TEXT, "x.item()", fix=fix)
    assert json.loads(as_json.render(desk.report(found))) == [
        {
            "cell": None,
            "code": "TL202",
            "name": "item-in-hot-loop",
            "message": "`.item()` waits for the device",
            "severity": "warning",
            "filename": "/repo/train.py",
            "location": {"row": 1, "column": 5},
            "end_location": {"row": 1, "column": 13},
            "noqa_row": 1,
            "url": "https://example.org/TL202",
            "fix": {
                "applicability": "unsafe",
                "unsafe_reason": "results change",
                "message": "Use the other thing",
                "edits": [
                    {
                        "content": "x",
                        "location": {"row": 1, "column": 5},
                        "end_location": {"row": 1, "column": 13},
                    }
                ],
            },
            "help": "Use the other thing",
            "related": [],
            "impact": "medium",
            "impact_reason": None,
            "frequency": None,
            "advice": False,
        }
    ]


def test_json_names_the_files_of_further_places(desk: Any) -> None:
    related = ((Position(3, 5), "the loop"), (Position(1, 2, path=Path("/repo/other.py")), "called"))
    (shown,) = json.loads(as_json.render(desk.report(desk.finding(TEXT, "x.item()", related=related))))
    assert [
        (place["filename"], place["location"]["row"], place["message"]) for place in shown["related"]
    ] == [
        ("/repo/train.py", 3, "the loop"),
        ("/repo/other.py", 1, "called"),
    ]


def test_json_of_nothing_is_an_empty_array(desk: Any) -> None:
    assert as_json.render(desk.report()) == "[]\n"
    assert as_json.render_lines(desk.report()) == ""


def test_json_lines_is_one_object_a_line(desk: Any) -> None:
    report = desk.report(desk.finding(TEXT, "x.item()"), desk.finding(TEXT, "y.cpu()", code="TL203"))
    lines = as_json.render_lines(report).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(as_json.render(report))
    assert json.loads(lines[0])["fix"] is json.loads(lines[0])["help"] is None


def test_a_remedy_is_told_like_a_fix(desk: Any) -> None:
    report = desk.report(desk.finding(TEXT, "x.item()", remedy="Read it after the loop"))
    (told,) = json.loads(as_json.render(report))
    assert (told["fix"], told["help"]) == (None, "Read it after the loop")
    assert github.render(report).endswith("waits for the device%0A  help: Read it after the loop\n")


def test_standard_input_without_a_name_has_no_path(desk: Any) -> None:
    report = desk.report(desk.finding(TEXT, "x.item()", path=STDIN))
    assert json.loads(as_json.render(report))[0]["filename"] == "-"
    assert concise.render(report).startswith("-:1:5: ")


def test_github_shows_annotations(desk: Any) -> None:
    found = desk.finding(TEXT, "x.item()", fix=desk.fix(TEXT, ("x.item()", "x")))
    assert github.render(desk.report(found)) == (
        "::warning title=torchlint (TL202),file=/repo/train.py,line=1,col=5,endLine=1,endColumn=13"
        "::train.py:1:5: TL202 `.item()` waits for the device%0A  help: Use the other thing\n"
    )


def test_github_refuses_columns_over_several_lines(desk: Any) -> None:
    told = github.render(desk.report(desk.finding(TEXT, TEXT[4:-1])))
    assert ",line=1,endLine=2::" in told
    assert "col=" not in told


@pytest.mark.parametrize(
    ("severity", "word"),
    [(Severity.NOTE, "notice"), (Severity.WARNING, "warning"), (Severity.ERROR, "error")],
)
def test_github_has_words_of_its_own(desk: Any, severity: Severity, word: str) -> None:
    assert github.render(desk.report(desk.finding(TEXT, "a", severity=severity))).startswith(f"::{word} ")


def test_github_escapes_what_would_end_a_command(desk: Any) -> None:
    found = desk.finding(TEXT, "a", message="100%\r\n::set-output", path=ROOT / "a,b:c%.py")
    told = github.render(desk.report(found))
    assert "file=/repo/a%2Cb%3Ac%25.py," in told
    assert told.endswith("TL202 100%25%0D%0A::set-output\n")
    assert told.count("\n") == 1


def test_statistics_count_by_rule_most_frequent_first(desk: Any) -> None:
    text = "".join(f"v{n} = {n}\n" for n in range(10, 22))
    fix = desk.fix(text, ("v10", "w"))
    found = [desk.finding(text, f"v{n}", fix=fix) for n in range(10, 20)]
    found += [desk.finding(text, "v20", code="TL101", name="no-workers")]
    found += [
        desk.finding(text, f"v{n}", code="TL301", name="grad-on", fix=fix if n == 20 else None)
        for n in (20, 21)
    ]
    report = desk.report(*found)
    assert statistics.render(report) == (
        "10\tTL202\t[*] item-in-hot-loop\n 2\tTL301\t[-] grad-on\n 1\tTL101\t[ ] no-workers\n"
    )
    assert json.loads(statistics.render_json(report))[1] == {
        "code": "TL301",
        "name": "grad-on",
        "severity": "warning",
        "count": 2,
        "impact": {"high": 0, "medium": 2, "low": 0},
        "fixable": False,
        "fixable_count": 1,
    }
    assert [json.loads(line) for line in statistics.render_json_lines(report).splitlines()] == json.loads(
        statistics.render_json(report)
    )


@pytest.mark.parametrize(
    ("grades", "asked", "fixed", "told"),
    [
        ((), False, 0, "All checks passed!\n"),
        ((None,), False, 0, "Found 1 warning.\n"),
        ((Applicability.SAFE, None), False, 0, "Found 2 warnings.\n[*] 1 fixable with `--fix`.\n"),
        (
            (Applicability.SAFE, Applicability.UNSAFE),
            False,
            0,
            (
                "Found 2 warnings.\n"
                "[*] 1 fixable with `--fix` (1 unsafe fix available with `--fix --unsafe-fixes`).\n"
            ),
        ),
        (
            (Applicability.UNSAFE, Applicability.UNSAFE),
            False,
            0,
            "Found 2 warnings.\n2 unsafe fixes available with `--fix --unsafe-fixes`.\n",
        ),
        ((Applicability.UNSAFE,), True, 0, "Found 1 warning.\n[*] 1 fixable with `--fix`.\n"),
        ((Applicability.DISPLAY,), True, 0, "Found 1 warning.\n"),
        ((), False, 2, "Found 2 problems (2 fixed, 0 remaining).\n"),
        ((None,), False, 2, "Found 3 problems (2 fixed, 1 remaining).\n"),
    ],
)
def test_the_summary_counts(desk: Any, grades: tuple[Any, ...], asked: bool, fixed: int, told: str) -> None:
    fixes = [desk.fix(TEXT, ("x", "z"), grade=grade) if grade is not None else None for grade in grades]
    found = [desk.finding(TEXT, "x", fix=fix) for fix in fixes]
    applied = {ROOT / "a.py": Counter({"TL101": fixed})} if fixed else {}
    assert summary.render(desk.report(*found, unsafe_fixes=asked, applied=applied)) == told


def test_the_summary_tells_what_fixes_did_to_each_other(desk: Any) -> None:
    applied = {ROOT / "a.py": Counter({"TL102": 1, "TL103": 2})}
    report = desk.report(desk.finding(TEXT, "x"), applied=applied, later=2, settled=1)
    told = "3 fixed, 2 of them only after other fixes, 1 more resolved by other fixes"
    assert summary.render(report) == f"Found 5 problems ({told}, 1 remaining).\n"
    told = "2 of them only after other fixes, 1 more resolved by other fixes"
    assert summary.render_fix_only(report, written=True) == f"Fixed 3 problems ({told}).\n"


def test_the_summary_counts_by_severity(desk: Any) -> None:
    severities = [Severity.NOTE, Severity.NOTE, Severity.ERROR, Severity.WARNING]
    found = [desk.finding(TEXT, "x", severity=severity) for severity in severities]
    assert summary.render(desk.report(*found)) == "Found 1 error, 1 warning, 2 notes.\n"


@pytest.mark.parametrize(
    ("fixed", "unsafe", "written", "told"),
    [
        (0, 0, False, ""),
        (2, 0, False, "Would fix 2 problems.\n"),
        (1, 0, True, "Fixed 1 problem.\n"),
        (1, 1, False, f"Would fix 1 problem (1 additional fix available with `--unsafe-fixes`).\n{WHY}\n"),
        (
            *(1, 2, True),
            f"Fixed 1 problem (2 additional fixes available with `--unsafe-fixes`).\n{WHY} (2 times)\n",
        ),
        (0, 1, False, f"No problems would be fixed (1 fix available with `--unsafe-fixes`).\n{WHY}\n"),
    ],
)
def test_the_summary_of_fixes(desk: Any, fixed: int, unsafe: int, written: bool, told: str) -> None:
    fix = desk.fix(TEXT, ("x", "z"), grade=Applicability.UNSAFE)
    applied = {ROOT / "a.py": Counter({"TL101": fixed})} if fixed else {}
    report = desk.report(*[desk.finding(TEXT, "x", fix=fix)] * unsafe, applied=applied)
    assert summary.render_fix_only(report, written=written) == told


def test_the_summary_of_fixes_tells_why_those_made_are_unsafe(desk: Any) -> None:
    applied = {ROOT / "a.py": Counter({"TL202": 1, "TL101": 2})}
    risks = Counter({("TL202", "results\x1bchange"): 1, ("TL101", "the order changes"): 2})
    told = summary.render_fix_only(desk.report(applied=applied, risks=risks), written=False)
    assert told == (
        "Would fix 3 problems.\n  TL101 unsafe: the order changes (2 times)\n  TL202 unsafe: results␛change\n"
    )


def test_applied_fixes_are_listed_by_file(desk: Any) -> None:
    rule = Rule("TL101", "loader-without-workers", Severity.WARNING, "safe", (), (), False, _check)  # type: ignore[arg-type]
    applied = {
        ROOT / "b.py": Counter({"TL202": 1, "TL101": 10}),
        ROOT / "a.py": Counter({"TL101": 2}),
        ROOT / "c.py": Counter[str](),
    }
    report = desk.report(applied=applied, rules={"TL101": rule})
    assert summary.render_fixes(report, written=True) == (
        "Fixed 13 problems:\n"
        "- a.py:\n     2 × TL101 (loader-without-workers)\n"
        "- b.py:\n    10 × TL101 (loader-without-workers)\n     1 × TL202\n"
    )
    assert summary.render_fixes(desk.report(), written=True) == ""


def test_a_diff_is_coloured_and_not_changed(desk: Any) -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-a\r\n+b\r\n c\x0cd\n"
    assert patch.paint_diff(desk.report(), diff) == diff
    assert patch.paint_diff(desk.report(color=True), diff) == (
        "\x1b[1m--- a.py\x1b[0m\n\x1b[1m+++ a.py\x1b[0m\n\x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n"
        "\x1b[31m-a\x1b[0m\r\n\x1b[32m+b\x1b[0m\r\n c\x0cd\n"
    )


def test_a_path_cannot_drive_the_terminal(desk: Any) -> None:
    report = desk.report(desk.finding(TEXT, "a", path=ROOT / "a\x1b[31m\n.py"))
    assert concise.render(report).startswith("a␛[31m␊.py:1:1: ")


HOSTILE = "a\x1b[31m\x9b\x07\u202e\r\n::error::##vso[x]##[y] b"


@pytest.mark.parametrize("name", [*options.FORMATS, "statistics"])
def test_nothing_of_a_finding_drives_the_terminal(desk: Any, name: str) -> None:
    found = desk.finding(TEXT, "x.item()", path=ROOT / HOSTILE, fix=desk.fix(TEXT, ("x", HOSTILE)))
    found = replace(found, code=HOSTILE, name=HOSTILE, message=HOSTILE, url=HOSTILE, remedy=HOSTILE)
    found = replace(found, related=((found.start, HOSTILE),), fix=replace(found.fix, message=HOSTILE))
    module = import_module("torchlint.render." + name.replace("json-lines", "json"))
    for item in (found, replace(found, fix=None)):
        report = desk.report(item, rules={})
        text = (module.render_lines if name == "json-lines" else module.render)(report)
        lines = text.split("\n")
        assert not [char for char in text if not (char.isprintable() or char in "\n\t")]
        assert name == "github" or not [line for line in lines if line.lstrip().startswith("::")]
        own = "##vso[task.logissue" if name == "azure" else "##vso[never"
        assert not [line for line in lines if "##[" in line or "##vso[" in line.removeprefix(own)]
        if name in ("github", "azure"):
            assert text.count("\n") == 1
