"""SARIF 2.1.0, as GitHub code scanning and other collectors of findings read it.

Regions are in UTF-16 code units, which the log says of itself. Paths are relative to the project, whose
place is ``%SRCROOT%``. Findings are recognised again by a fingerprint that survives moved lines.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from torchlint import __version__, effects
from torchlint.checker import CRASH, SYNTAX_ERROR
from torchlint.diagnostics import UNTREATED, Diagnostic, Edit, Fix, Impact, Position, Severity
from torchlint.fingerprints import fingerprints
from torchlint.links import home, page
from torchlint.render.columns import in_utf16, position
from torchlint.render.json import dumps
from torchlint.render.report import STDIN, Report, reason
from torchlint.rule import Rule

MOST_RESULTS = 25_000
"""GitHub takes no more results of a run."""
MOST_BYTES = 10_000_000
"""GitHub takes no larger file, compressed by gzip."""
FINGERPRINT = "torchlint/v2"
"""The key of our fingerprints; the version changes if they are ever made in another way."""

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BASE = "%SRCROOT%"
_FAILED = "A rule of torchlint, or torchlint itself, failed on a file."
_LONGEST_NAME = 255
_LONGEST_DESCRIPTION = 1024
_PROBLEMS = {Severity.NOTE: "recommendation", Severity.WARNING: "warning", Severity.ERROR: "error"}

_RANKS = {Impact.LOW: 10.0, Impact.MEDIUM: 50.0, Impact.HIGH: 90.0}
"""The priority by impact, from 0 to 100."""

_Named = tuple[Diagnostic, str]


def render(report: Report) -> str:
    """Return the log of one run, indented. What is too much for GitHub is left out,
    the least severe first.
    """
    names = fingerprints(report.diagnostics, report.text, report.project or report.root)
    found = [
        (diagnostic, name)
        for diagnostic, name in zip(report.diagnostics, names, strict=True)
        if diagnostic.code != CRASH
    ]
    kept = _most_severe(found, MOST_RESULTS)
    text = _log(report, kept, len(found) - len(kept))
    while kept and (size := _compressed(text)) > MOST_BYTES:
        kept = _most_severe(kept, min(len(kept) - 1, len(kept) * MOST_BYTES // size))
        text = _log(report, kept, len(found) - len(kept))
    return text


def _most_severe(found: Sequence[_Named], count: int) -> Sequence[_Named]:
    """Return the ``count`` most severe findings, of equals those of most impact, in their old order."""
    if len(found) <= count:
        return found
    ranked = sorted(range(len(found)), key=lambda at: (-found[at][0].severity.rank, -found[at][0].impact))
    return [found[at] for at in sorted(ranked[:count])]


def _compressed(text: str) -> int:
    """Return the size after gzip, or before it where that settles the question."""
    return len(text) if len(text) <= MOST_BYTES else len(zlib.compress(text.encode("ascii")))


def _log(report: Report, found: Sequence[_Named], left_out: int) -> str:
    codes = report.enabled | {diagnostic.code for diagnostic, _ in found}
    rules = [rule for code, rule in sorted(report.rules.items()) if code in codes]
    indices = {rule.code: index for index, rule in enumerate(rules)}
    address = home()
    driver = {
        "name": "torchlint",
        **({"informationUri": address} if address else {}),
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in rules],
        "notifications": [
            {
                "id": CRASH,
                "name": "internal-error",
                "shortDescription": {"text": _FAILED},
                "fullDescription": {"text": _FAILED},
                "help": {"text": "The other files and rules are not affected. Please report it."},
                "defaultConfiguration": {"level": "error"},
            }
        ],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, indices, left_out)],
        "originalUriBaseIds": {_BASE: {"uri": _directory(report.project or report.root)}},
        "columnKind": "utf16CodeUnits",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "results": [_result(report, report.in_file(diagnostic), indices, name) for diagnostic, name in found],
    }
    return dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, sort_keys=False) + "\n"


# --- the tool and the run --------------------------------------------------------------------------------


def _rule(rule: Rule) -> dict[str, Any]:
    address, text = page(rule), f"{rule.page}\n{effects.section(rule.code, effects.of(rule.code))}"
    # GitHub shows no link but those in the help.
    link = f"\n[{rule.code} in the documentation]({address})\n" if address else ""
    return {
        "id": rule.code,
        "name": rule.name[:_LONGEST_NAME],
        "shortDescription": {"text": _cut(rule.summary)},
        "fullDescription": {"text": _cut(rule.sections.get("What it does") or rule.summary)},
        "help": {"text": text, "markdown": f"# {rule.name} ({rule.code})\n\n{text}{link}"},
        **({"helpUri": address} if address else {}),
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "tags": _tags(rule),
            "precision": _precision(rule),
            "problem.severity": _PROBLEMS[rule.severity],
        },
    }


def _precision(rule: Rule) -> str:
    """Return how many readers of a finding would act on it, as far as the catalogue says;
    nobody counted them.

    What is opt-in is so because most programs have a reason for it, and a note is advice that depends on
    the program. Nothing is `very-high`, which a count would have to show.
    """
    if rule.opt_in:
        return "low"
    return "medium" if rule.severity is Severity.NOTE else "high"


def _tags(rule: Rule) -> list[str]:
    """Return what the rule is about: its family, and whether that is performance."""
    family = rule.family.replace("_", "-")
    subject = [] if family == "linter" else ["performance"]
    return ["pytorch", *subject, *filter(None, [family])]


def _cut(text: str) -> str:
    """Return a text of one paragraph that is no longer than a description may be."""
    text = " ".join(text.split())
    if len(text) <= _LONGEST_DESCRIPTION:
        return text
    return text[: _LONGEST_DESCRIPTION - 1].rsplit(" ", 1)[0] + "…"


def _invocation(report: Report, indices: dict[str, int], left_out: int) -> dict[str, Any]:
    told = [
        _notification(report, diagnostic, indices)
        for diagnostic in report.diagnostics
        if diagnostic.code in UNTREATED
    ]
    if left_out:
        told.append(
            {
                "level": "warning",
                "message": {
                    "text": f"{left_out} findings of the lowest severity are omitted, because of the limit "
                    "on results per file."
                },
            }
        )
    return {
        "executionSuccessful": all(diagnostic.code != CRASH for diagnostic in report.diagnostics),
        "workingDirectory": {"uri": _directory(report.root)},
        "toolExecutionNotifications": told,
    }


def _notification(report: Report, diagnostic: Diagnostic, indices: dict[str, int]) -> dict[str, Any]:
    shown = report.in_file(diagnostic)
    return {
        "level": "error",
        "message": {"text": _sentence(shown.message)},
        "locations": [_location(report, shown.path, shown.start, shown.end)],
        **({"descriptor": {"id": CRASH, "index": 0}} if diagnostic.code == CRASH else {}),
        **(
            {"associatedRule": {"id": SYNTAX_ERROR, "index": indices[SYNTAX_ERROR]}}
            if diagnostic.code == SYNTAX_ERROR and SYNTAX_ERROR in indices
            else {}
        ),
    }


# --- a finding -------------------------------------------------------------------------------------------


def _result(report: Report, diagnostic: Diagnostic, indices: dict[str, int], name: str) -> dict[str, Any]:
    path, fix, source = diagnostic.path, diagnostic.fix, report.source(diagnostic.path)
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        **({"ruleIndex": indices[diagnostic.code]} if diagnostic.code in indices else {}),
        "level": diagnostic.severity.value,
        "message": {"text": _message(diagnostic)},
        "locations": [_location(report, path, diagnostic.start, diagnostic.end)],
        "partialFingerprints": {FINGERPRINT: name},
        "rank": _RANKS[diagnostic.impact],
        "properties": _properties(diagnostic),
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, **_remark(report, place.path or path, place, remark)}
            for number, (place, remark) in enumerate(diagnostic.related, start=1)
        ]
    if fix is not None and source is not None and source.edits_in_file(fix.own):
        result["fixes"] = [_fix(report, path, fix)]
    return result


def _properties(diagnostic: Diagnostic) -> dict[str, Any]:
    often = diagnostic.frequency
    return {
        "impact": diagnostic.impact.label,
        **({"frequency": often.label} if often is not None else {}),
        **({"impactReason": diagnostic.slight} if diagnostic.slight is not None else {}),
        **({"advice": True} if diagnostic.advice else {}),
    }


def _remark(report: Report, path: Path, place: Position, remark: str) -> dict[str, Any]:
    """Return a related place and what is said of it."""
    return {**_location(report, path, place, place), "message": {"text": _literal(remark)}}


def _message(diagnostic: Diagnostic) -> str:
    """Return what is wrong, with links to what explains it; then what to do,
    which is no part of GitHub's titles.
    """
    links = ", ".join(
        f"[{remark.translate(_NO_BRACKETS)}]({number})"
        for number, (_, remark) in enumerate(diagnostic.related, start=1)
    )
    told = _sentence(_literal(reason(diagnostic)) + (f" ({links})" if links else ""))
    advice = diagnostic.help
    return f"{told} {_sentence(_literal(advice))}" if advice else told


_NO_BRACKETS = str.maketrans({"[": "\\[", "]": "\\]"})
_LINK = re.compile(r"\[([^\[\]]*)\](?=\()")


def _literal(text: str) -> str:
    """Return ``text`` with the code in it that readers would take for a link,
    such as ``f[0](1)``, escaped.
    """
    return _LINK.sub(r"\\[\1\\]", text)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _fix(report: Report, path: Path, fix: Fix) -> dict[str, Any]:
    changes = [_change(report, file, edits) for file, edits in {path: fix.own, **fix.elsewhere}.items()]
    withheld = {"withheld": _sentence(fix.withheld)} if fix.withheld else {}
    risk = {"unsafeReason": fix.risk} if fix.risk else {}
    told = f"{fix.message} (unsafe: {fix.risk})" if fix.risk else fix.message
    return {
        "description": {"text": _sentence(_literal(told))},
        "artifactChanges": changes,
        "properties": {"applicability": fix.applicability.label, **risk, **withheld},
    }


def _change(report: Report, path: Path, edits: Sequence[Edit]) -> dict[str, Any]:
    source = report.source(path)
    replacements: list[dict[str, Any]] = []
    for edit in source.edits_in_file(edits) if source is not None else ():
        assert source is not None
        text = source.stored
        start, end = position(text, edit.span.start), position(text, edit.span.end)
        replacement: dict[str, Any] = {"deletedRegion": _region(text, start, end)}
        if edit.content:
            replacement["insertedContent"] = {"text": edit.content}
        replacements.append(replacement)
    return {"artifactLocation": _artifact(report, path), "replacements": replacements}


def _location(report: Report, path: Path, start: Position, end: Position) -> dict[str, Any]:
    text = report.stored(path)
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(report, path),
            "region": _region(text, start, end),
        }
    }


def _region(text: str | None, start: Position, end: Position) -> dict[str, int]:
    if text is not None:
        start, end = in_utf16(text, start), in_utf16(text, end)
    return {
        "startLine": start.row,
        "startColumn": start.column,
        "endLine": end.row,
        "endColumn": end.column,
    }


# --- addresses -------------------------------------------------------------------------------------------


def _artifact(report: Report, path: Path) -> dict[str, str]:
    base = report.project or report.root
    if path == STDIN:
        return {"uri": "stdin"}
    absolute = report.root / path
    if absolute.is_relative_to(base):
        relative = absolute.relative_to(base).as_posix()
        return {"uri": quote_from_bytes(os.fsencode(relative)), "uriBaseId": _BASE}
    return {"uri": absolute.as_uri()}


def _directory(path: Path) -> str:
    """Return the address of a folder, which ends with a slash."""
    return path.absolute().as_uri().rstrip("/") + "/"
