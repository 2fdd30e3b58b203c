"""GitLab's code quality report: the keys it reads, and fingerprints that no two findings share."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlint.diagnostics import Impact, Severity
from torchlint.render import gitlab
from torchlint.render.report import Report


@pytest.mark.parametrize(
    ("severity", "impact", "word"),
    [
        (Severity.NOTE, Impact.MEDIUM, "info"),
        (Severity.WARNING, Impact.LOW, "info"),
        (Severity.WARNING, Impact.MEDIUM, "minor"),
        (Severity.WARNING, Impact.HIGH, "major"),
        (Severity.ERROR, Impact.HIGH, "critical"),
    ],
)
def test_an_issue(desk: Any, severity: Severity, impact: Impact, word: str) -> None:
    text = "a = x.item()\n"
    found = replace(desk.finding(text, "x.item()", severity=severity), impact=impact)
    (issue,) = json.loads(gitlab.render(desk.report(found)))
    assert len(issue.pop("fingerprint")) == 64
    assert issue == {
        "check_name": "TL202",
        "description": "TL202: `.item()` waits for the device",
        "severity": word,
        "location": {
            "path": "train.py",
            "positions": {"begin": {"line": 1, "column": 5}, "end": {"line": 1, "column": 13}},
        },
    }


def test_fingerprints_differ_and_paths_are_of_the_project(every: Report) -> None:
    twice = replace(every, diagnostics=(*every.diagnostics, *every.diagnostics))
    found = json.loads(gitlab.render(twice))
    assert len({issue["fingerprint"] for issue in found}) == len(found) == 2 * len(every.diagnostics)
    below = json.loads(gitlab.render(replace(every, root=Path("/repo/src"), project=Path("/repo"))))
    assert [issue["location"] for issue in below] == [issue["location"] for issue in found[: len(below)]]
    assert [issue["fingerprint"] for issue in below] == [
        issue["fingerprint"] for issue in found[: len(below)]
    ]
