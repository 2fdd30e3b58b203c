"""The comparison of two versions, for people as Markdown and for programs as JSON.

Messages quote a name or two of the code that they speak of. More of other people's code is shown on request
only, for reading on one's own machine: it has no place in a repository.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.corpus.comparison import Comparison, Fixed
from benchmarks.corpus.differences import ASPECTS, Change, Finding
from benchmarks.corpus.versions import Version

_DIFF_LINES = 40
"""Lines of a diff that are shown."""


def markdown(
    before: Version,
    after: Version,
    comparisons: Sequence[Comparison],
    broken: Sequence[str],
    examples: int,
    code: bool = False,
) -> str:
    """Return the report: totals, a table of the rules, ``examples`` of each kind, the packages.

    ``broken`` says where a version failed; ``code`` shows how fixed files differ.
    """
    parts = [f"# From {before.name} to {after.name}", _totals(comparisons)]
    if broken:
        parts.append("## Failures\n\n" + "\n".join(f"- {_inline(text)}" for text in broken))
    codes = _codes(comparisons)
    if codes:
        parts.append(_rules(comparisons, codes))
    parts += [part for name in codes if (part := _examples(comparisons, name, examples))]
    fixed = [item for comparison in comparisons for item in comparison.fixed]
    if fixed:
        parts.append(_fixed(fixed, code))
    parts.append(_packages(comparisons))
    return "\n\n".join(parts) + "\n"


def as_json(
    before: Version, after: Version, comparisons: Sequence[Comparison], broken: Sequence[str]
) -> dict[str, Any]:
    """Return all of it, but for what did not change and the texts of files."""
    return {
        "before": before.name,
        "after": after.name,
        "broken": list(broken),
        "packages": [
            {
                "package": item.package.name,
                "version": item.package.version,
                "files": item.files,
                "findings_before": item.before,
                "findings_after": item.after,
                "unchanged": item.differences.unchanged,
                "added": [asdict(found) for found in item.differences.added],
                "removed": [asdict(found) for found in item.differences.removed],
                "changed": [asdict(change) for change in item.differences.changed],
                "fixed_otherwise": [fixed.path for fixed in item.fixed],
            }
            for item in comparisons
        ],
    }


def _totals(comparisons: Sequence[Comparison]) -> str:
    files = sum(item.files for item in comparisons)
    counts = [sum(sum(side.values()) for side in sides) for sides in _sides(comparisons)]
    differences = [item.differences for item in comparisons]
    unchanged = sum(item.unchanged for item in differences)
    fixed = sum(len(item.fixed) for item in comparisons)
    return (
        f"{_number(len(comparisons), 'package')}, {_number(files, 'file')}. {counts[0]} findings before, "
        f"{counts[1]} after: {sum(len(item.added) for item in differences)} added, "
        f"{sum(len(item.removed) for item in differences)} removed, "
        f"{sum(len(item.changed) for item in differences)} changed, {unchanged} the same. "
        f"Safe and unsafe fixes make another text of {_number(fixed, 'file')}."
    )


def _sides(comparisons: Sequence[Comparison]) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    return [item.before for item in comparisons], [item.after for item in comparisons]


def _codes(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the rules of which anything differs."""
    found = set()
    for item in comparisons:
        found |= {finding.code for finding in (*item.differences.added, *item.differences.removed)}
        found |= {change.after.code for change in item.differences.changed}
    return sorted(found)


def _rules(comparisons: Sequence[Comparison], codes: Iterable[str]) -> str:
    rows = []
    for code in codes:
        added, removed, changed = _of(comparisons, code)
        aspects = Counter(aspect for change in changed for aspect in change.aspects)
        told = ", ".join(f"{aspect} {aspects[aspect]}" for aspect in ASPECTS if aspects[aspect])
        numbers = [sum(side.get(code, 0) for side in sides) for sides in _sides(comparisons)]
        cells = (*numbers, len(added), len(removed), len(changed), told)
        rows.append(f"| {code} | " + " | ".join(str(cell) for cell in cells) + " |")
    return (
        "## Rules\n\n| code | before | after | added | removed | changed | of these |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(rows)
    )


def _of(comparisons: Sequence[Comparison], code: str) -> tuple[list[Finding], list[Finding], list[Change]]:
    differences = [item.differences for item in comparisons]
    return (
        [found for item in differences for found in item.added if found.code == code],
        [found for item in differences for found in item.removed if found.code == code],
        [change for item in differences for change in item.changed if change.after.code == code],
    )


def _examples(comparisons: Sequence[Comparison], code: str, count: int) -> str:
    added, removed, changed = _of(comparisons, code)
    lines = [*_some("added", [_told(item) for item in added], count)]
    lines += _some("removed", [_told(item) for item in removed], count)
    for aspects in dict.fromkeys(change.aspects for change in changed):
        alike = [_told_change(change) for change in changed if change.aspects == aspects]
        lines += _some(f"changed ({', '.join(aspects)})", alike, count)
    return f"### {code}\n\n" + "\n".join(lines) if lines and count else ""


def _some(kind: str, told: Sequence[str], count: int) -> Iterator[str]:
    for text in told[:count]:
        yield f"- {kind}: {text}"
    if len(told) > count:
        yield f"- {kind}: {len(told) - count} more"


def _told(item: Finding) -> str:
    grade = f" ({item.grade} fix)" if item.grade != "none" else ""
    return f"{_where(item)} {_inline(item.message)}{grade}"


def _told_change(change: Change) -> str:
    before, after = change.before, change.after
    pairs = {
        "place": (_span(before), _span(after)),
        "severity": (before.severity, after.severity),
        "message": (before.message, after.message),
        "help": (before.help or "none", after.help or "none"),
        "grade": (before.grade, after.grade),
    }
    told = [
        f"{_inline(pairs[name][0])} → {_inline(pairs[name][1])}" for name in change.aspects if name in pairs
    ]
    return f"{_where(after)} " + ("; ".join(told) or _inline(after.message))


def _where(item: Finding) -> str:
    return f"`{item.package}` {item.path}:{item.start[0]}:{item.start[1]}"


def _span(item: Finding) -> str:
    return f"{item.start[0]}:{item.start[1]} to {item.end[0]}:{item.end[1]}"


def _fixed(fixed: Sequence[Fixed], code: bool) -> str:
    lines = []
    for item in fixed:
        diff = _diff(item)
        added = sum(line.startswith("+") for line in diff[2:])
        removed = sum(line.startswith("-") for line in diff[2:])
        lines.append(f"- `{item.package}` {item.path}: {_number(removed, 'line')} less, {added} more")
        if code:
            more = [f"… {len(diff) - _DIFF_LINES} more lines"] if len(diff) > _DIFF_LINES else []
            lines += ["", "  ```diff", *(f"  {line}" for line in (*diff[:_DIFF_LINES], *more)), "  ```", ""]
    return "## Files that are fixed otherwise\n\n" + "\n".join(lines)


def _diff(item: Fixed) -> list[str]:
    """Return the two fixed texts, as lines of a unified diff."""
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (item.before, item.after))
    return list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=1))


def _packages(comparisons: Sequence[Comparison]) -> str:
    rows = [
        f"| {item.package.name} {item.package.version} | {item.files} | {sum(item.before.values())} | "
        f"{sum(item.after.values())} | {len(item.differences.added)} | {len(item.differences.removed)} | "
        f"{len(item.differences.changed)} | {len(item.fixed)} |"
        for item in comparisons
    ]
    return (
        "## Packages\n\n| package | files | before | after | added | removed | changed | fixed otherwise |\n"
        "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows)
    )


def _inline(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
