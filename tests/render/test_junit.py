"""JUnit: read back by a reader of such files."""

from __future__ import annotations

from dataclasses import replace

import junitparser

from torchlint.diagnostics import Severity
from torchlint.render import junit
from torchlint.render.report import Report


def read(report: Report) -> junitparser.JUnitXml:
    parsed = junitparser.JUnitXml.fromstring(junit.render(report).encode("ascii"))
    assert isinstance(parsed, junitparser.JUnitXml)
    return parsed


def outcomes(report: Report) -> dict[str, list[str]]:
    """The kinds of results by the names of the suites."""
    return {
        suite.name: [type(result).__name__ for case in suite for result in case.result]
        for suite in read(report)
    }


def test_findings_are_failures_and_notes_are_skipped(every: Report) -> None:
    assert outcomes(every) == {
        "/else where/d.py": ["Failure"],
        "a␛[31m]␊;%<&>.py": ["Skipped"],
        "b.py": ["Error"],
        "c.py": ["Error"],
        "n.ipynb": ["Failure"],
        "src/wïde name.py": ["Failure"],
        "train.py": ["Failure"],
    }
    assert outcomes(replace(every, fail_on=Severity.NOTE))["a␛[31m]␊;%<&>.py"] == ["Failure"]
    assert outcomes(replace(every, fail_on=Severity.ERROR))["n.ipynb"] == ["Skipped"]


def test_the_counts_are_those_of_the_cases(every: Report) -> None:
    suites = read(every)
    told = (suites.tests, suites.failures, suites.errors)
    assert told == (7, 4, 2)
    for suite in suites:
        kinds = [type(result).__name__ for case in suite for result in case.result]
        expected = [len(list(suite)), *(kinds.count(kind) for kind in ("Failure", "Error", "Skipped"))]
        assert [suite.tests, suite.failures, suite.errors, suite.skipped] == expected


def test_a_case_says_where_and_what_to_do(every: Report) -> None:
    (case,) = [case for suite in read(every) if suite.name == "src/wïde name.py" for case in suite]
    assert (case.name, case.classname) == ("org.torchlint.ZZ101", "src/wïde name")
    (failure,) = case.result
    assert failure.message == "`.item()` waits for the device"
    assert failure.type == "bad-called"
    assert failure.text == "line 2, col 11, `.item()` waits for the device\nhelp: Use the other thing"


def test_a_run_without_findings_is_one_test_that_passes(every: Report) -> None:
    (suite,) = read(replace(every, diagnostics=()))
    (case,) = suite
    assert (case.name, case.is_passed, suite.tests) == ("No errors found", True, 1)
