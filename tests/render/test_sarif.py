"""SARIF: valid by the standard's schema, with regions, names and limits as its readers take them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fastjsonschema
import pytest

from torchlint import links
from torchlint.diagnostics import Diagnostic, Position, Severity
from torchlint.fingerprints import fingerprints
from torchlint.registry import catalogue
from torchlint.render import sarif
from torchlint.render.report import STDIN, Report

ROOT = Path("/repo")
TEXT = "a = x.item()\nb = y.cpu()\n"


@cache
def _validator() -> Callable[[Any], Any]:
    schema = Path(__file__).parent / "schemas" / "sarif-2.1.0.json"
    text = schema.read_text(encoding="utf-8")
    validate: Callable[[Any], Any] = fastjsonschema.compile(json.loads(text), use_default=False)
    return validate


def run_of(report: Report) -> Any:
    """The only run of the log, which is valid."""
    log = json.loads(sarif.render(report))
    _validator()(log)
    (run,) = log["runs"]
    return run


def texts(region: Mapping[str, int], text: str) -> str:
    """What a region covers, as a reader that counts in UTF-16 finds it."""
    units = text.encode("utf-16-le")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode("utf-16-le")) // 2)
    start = starts[region["startLine"] - 1] + region["startColumn"] - 1
    end = starts[region["endLine"] - 1] + region["endColumn"] - 1
    return units[2 * start : 2 * end].decode("utf-16-le")


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        _validator()({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{}]}]})


def test_every_kind_of_finding_is_valid(every: Report) -> None:
    assert len(run_of(every)["results"]) == len(every.diagnostics) - 1


def test_the_whole_catalogue_is_valid_and_within_limits(desk: Any) -> None:
    report = desk.report(rules=catalogue(), enabled=frozenset(catalogue()))
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(catalogue())
    assert run["results"] == []
    for rule in rules:
        assert 0 < len(rule["name"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= len(rule["fullDescription"]["text"]) <= 1024
        assert "\n" not in rule["fullDescription"]["text"]
        assert "## Why is this bad?" in rule["help"]["text"]
        assert rule["help"]["markdown"].startswith(f"# {rule['name']} ({rule['id']})\n\n## What it does")
        assert rule["properties"]["problem.severity"] in ("recommendation", "warning", "error")
        assert 1 < len(rule["properties"]["tags"]) <= 20
    by_code = {rule["id"]: rule for rule in rules}
    assert by_code["TL202"]["properties"]["tags"] == ["pytorch", "performance", "host-device"]
    assert by_code["TL001"]["properties"]["tags"] == ["pytorch", "linter"]
    assert "## Measured" in by_code["TL202"]["help"]["markdown"]


def test_the_precision_is_what_the_catalogue_says(desk: Any) -> None:
    rules = catalogue()
    described = run_of(desk.report(rules=rules, enabled=frozenset(rules)))["tool"]["driver"]["rules"]
    precisions = {rule["id"]: rule["properties"]["precision"] for rule in described}
    # An error, a warning and a note.
    assert [precisions[code] for code in ("TL305", "TL202", "TL414")] == ["high", "high", "medium"]
    assert {precisions[rule.code] for rule in rules.values() if rule.opt_in} == {"low"}


def test_a_long_description_ends_at_a_word() -> None:
    cut = sarif._cut("word " * 500)
    assert 1000 < len(cut) <= 1024 and cut.endswith(" word…")


def test_rules_are_those_enabled_and_those_that_fired(every: Report) -> None:
    run = run_of(every)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["TL001", "ZZ101", "ZZ102", "ZZ103"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]


def test_regions_and_fixes_count_in_utf16(every: Report) -> None:
    run = run_of(every)
    assert run["columnKind"] == "utf16CodeUnits"
    (result,) = [item for item in run["results"] if "name.py" in json.dumps(item["locations"])]
    (diagnostic,) = [item for item in every.diagnostics if item.path.name == "wïde name.py"]
    text = every.text(diagnostic.path)
    assert text is not None
    assert texts(result["locations"][0]["physicalLocation"]["region"], text) == "bad(x[0](1))"
    (change,) = result["fixes"][0]["artifactChanges"]
    replaced = [texts(item["deletedRegion"], text) for item in change["replacements"]]
    assert replaced == ["bad(x", "end()"]
    assert [item["insertedContent"]["text"] for item in change["replacements"]] == ["good(x", "done(😀)"]
    assert result["fixes"][0]["properties"] == {"applicability": "safe"}


def test_paths_are_relative_to_the_project_and_encoded(every: Report) -> None:
    report = replace(every, root=ROOT / "src", project=ROOT)
    run = run_of(report)
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///repo/"}}
    assert run["invocations"][0]["workingDirectory"] == {"uri": "file:///repo/src/"}
    places = [item["locations"][0]["physicalLocation"]["artifactLocation"] for item in run["results"]]
    assert {"uri": "src/w%C3%AFde%20name.py", "uriBaseId": "%SRCROOT%"} in places
    assert {"uri": "file:///else%20where/d.py"} in places
    inside = {unquote(place["uri"]) for place in places if "uriBaseId" in place}
    assert "a\x1b[31m]\n;%<&>.py" in inside


def test_standard_input_has_no_place_in_the_project(desk: Any) -> None:
    run = run_of(desk.report(desk.finding(TEXT, "a", path=STDIN)))
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "stdin"}


def test_fingerprints_are_those_of_every_tracker(every: Report) -> None:
    expected = fingerprints(every.diagnostics, every.text, ROOT)
    names = [item["partialFingerprints"] for item in run_of(every)["results"]]
    assert names == [
        {"torchlint/v2": name}
        for name, item in zip(expected, every.diagnostics, strict=True)
        if item.code != "TL000"
    ]


def test_a_message_links_to_what_explains_it_and_to_nothing_else(every: Report) -> None:
    (result,) = [item for item in run_of(every)["results"] if item["ruleId"] == "ZZ102"]
    told = result["message"]["text"]
    assert told.startswith("`f\\[0\\](1)` is worse; see [it]\r\n")
    assert told.endswith(" ([this \\[hot\\] loop](1)). Use the other thing.")
    (related,) = result["relatedLocations"]
    assert (related["id"], related["message"]["text"]) == (1, "this [hot] loop")
    assert related["physicalLocation"]["region"]["startLine"] == 1


def test_a_crash_is_a_notification_and_the_run_no_success(every: Report) -> None:
    run = run_of(every)
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    syntax, crash = invocation["toolExecutionNotifications"]
    assert crash["descriptor"] == {"id": "TL000", "index": 0}
    assert run["tool"]["driver"]["notifications"][0]["id"] == "TL000"
    assert syntax["associatedRule"] == {"id": "TL001", "index": 0}
    assert "TL000" not in {item["ruleId"] for item in run["results"]}
    whole = replace(every, diagnostics=tuple(item for item in every.diagnostics if item.code != "TL000"))
    assert run_of(whole)["invocations"][0]["executionSuccessful"] is True


def _many(desk: Any, count: int) -> tuple[Diagnostic, ...]:
    one = desk.finding(TEXT, "a", severity=Severity.NOTE)
    return tuple(
        replace(one, start=Position(row, 1), severity=Severity.ERROR if row % 10 == 0 else Severity.NOTE)
        for row in range(1, count + 1)
    )


def test_too_many_results_leave_out_the_least_severe(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 12)
    run = run_of(desk.report(*_many(desk, 50)))
    rows = [item["locations"][0]["physicalLocation"]["region"]["startLine"] for item in run["results"]]
    assert rows == [1, 2, 3, 4, 5, 6, 7, 10, 20, 30, 40, 50]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["level"] == "warning"
    assert told["message"]["text"].startswith("38 findings of the lowest severity are omitted")


def test_a_log_fits_into_an_upload(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2_000
    monkeypatch.setattr(sarif, "MOST_BYTES", most)
    report = desk.report(*_many(desk, 50))
    text = sarif.render(report)
    assert sarif._compressed(text) <= most < len(text)
    results = run_of(report)["results"]
    assert 5 <= len(results) < 50
    assert sum(item["level"] == "error" for item in results) == 5
    (told,) = run_of(report)["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith(f"{50 - len(results)} findings")


def test_links_are_given_once_there_is_an_address(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = desk.report(rules=catalogue(), enabled=frozenset({"TL202"}))
    monkeypatch.setattr(links, "declared", dict)
    driver = run_of(report)["tool"]["driver"]
    assert "informationUri" not in driver and "helpUri" not in driver["rules"][0]
    urls = {"homepage": "https://example.org/", "documentation": "https://example.org/docs/"}
    monkeypatch.setattr(links, "declared", lambda: urls)
    driver = run_of(report)["tool"]["driver"]
    assert driver["informationUri"] == "https://example.org/"
    assert driver["rules"][0]["helpUri"] == "https://example.org/docs/rules/TL202/"
    assert "(https://example.org/docs/rules/TL202/)" in driver["rules"][0]["help"]["markdown"]
