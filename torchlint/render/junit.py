"""Findings as the results of tests, for whatever shows those."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path, PurePath
from xml.etree import ElementTree as ET

from torchlint.diagnostics import UNTREATED, Diagnostic
from torchlint.render.report import Report, reason, visible

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_OUTCOMES = ("failure", "error", "skipped")


def render(report: Report) -> str:
    """Return a suite a file and a test a finding; a run without findings is one test that passes.

    A finding that fails the run is a failure, one that does not, such as a note, a skipped test, and a
    file that could not be treated an error.
    """
    root = ET.Element("testsuites", name="torchlint")
    for path, group in groupby(report.diagnostics, key=lambda item: item.path):
        suite = ET.SubElement(root, "testsuite", name=report.shown(path), package="org.torchlint")
        for diagnostic in group:
            _test(report, suite, diagnostic)
    if not report.diagnostics:
        suite = ET.SubElement(root, "testsuite", name="torchlint", package="org.torchlint")
        ET.SubElement(suite, "testcase", name="No errors found", classname="torchlint")
    for element in (root, *root):
        _count(element)
    ET.indent(root)
    # In ASCII, since standard output may have another encoding than the declared one.
    return f"{_DECLARATION}{ET.tostring(root, encoding='us-ascii', xml_declaration=False).decode('ascii')}\n"


def _test(report: Report, suite: ET.Element, diagnostic: Diagnostic) -> None:
    marked, place = report.in_file(diagnostic), diagnostic.start
    case = ET.SubElement(
        suite,
        "testcase",
        name=f"org.torchlint.{visible(diagnostic.code)}",
        classname=_class(report, diagnostic.path),
        line=str(marked.start.row),
        column=str(marked.start.column),
    )
    # XML has no way to write most control characters, and `visible` leaves none.
    message = visible(marked.message)
    outcome = ET.SubElement(
        case, _outcome(report, diagnostic), type=visible(diagnostic.name), message=message
    )
    cell = "" if diagnostic.cell is None else f"cell {diagnostic.cell}, "
    outcome.text = f"{cell}line {place.row}, col {place.column}, {visible(reason(diagnostic))}"
    if diagnostic.help is not None:
        outcome.text += f"\nhelp: {visible(diagnostic.help)}"


def _outcome(report: Report, diagnostic: Diagnostic) -> str:
    if diagnostic.code in UNTREATED:
        return "error"
    return "failure" if diagnostic.severity.rank >= report.fail_on.rank else "skipped"


def _class(report: Report, path: Path) -> str:
    shown = PurePath(report.shown(path))
    return str(shown.parent / shown.stem)


def _count(element: ET.Element) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for kind, attribute in zip(_OUTCOMES, ("failures", "errors", "skipped"), strict=True):
        if element.tag == "testsuite" or kind != "skipped":
            element.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
