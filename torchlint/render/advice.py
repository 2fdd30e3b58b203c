"""Advice about programs: one block a file behind the findings, what gains most first, with how to try it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from torchlint.diagnostics import Applicability, Diagnostic
from torchlint.impact import gain
from torchlint.render import full
from torchlint.render.report import Report, spot, visible


def render(report: Report, *, detailed: bool = False) -> str:
    """Return a heading a file, a line for each rule that has advice, and commands to try it.

    ``detailed``: instead of the lines, all places in full, with what the fixes change.
    """
    out = []
    for path, group in groupby(report.advice, key=lambda item: item.path):
        found = sorted(group, key=lambda item: (-gain(item.code).best, item.code, item.sort_key))
        out.append(report.paint(f"Advice for {report.shown(path)}:", bold=True) + "\n")
        if detailed:
            out.append("\n" + full.render(replace(report, diagnostics=tuple(found))))
        else:
            out += (_line(report, list(places)) for _, places in groupby(found, key=lambda item: item.code))
        out += (f"  {line}\n" for line in _commands(report, path, found))
        out.append("\n")
    return "".join(out)


def _line(report: Report, found: list[Diagnostic]) -> str:
    """Return what one rule advises in a file, at its first place."""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    gained = gain(first.code).told
    measured = f" ({gained} in the rule's benchmark)" if gained else ""
    return f"  {spot(first)} {report.code(first)} {visible(first.message)}{more}{measured}\n"


def _commands(report: Report, path: Path, found: list[Diagnostic]) -> Iterator[str]:
    """Yield the commands that measure, show and apply what is advised."""
    name = shlex.quote(report.shown(path))
    offered = {item.code: item.fix.applicability for item in found if item.fix and item.fix.edits}
    fixes = {code: grade for code, grade in offered.items() if grade is not Applicability.DISPLAY}
    unsafe = " --unsafe-fixes" if Applicability.UNSAFE in fixes.values() else ""
    if fixes and path.suffix == ".py":
        select = ",".join(fixes)
        yield f"`torchlint verify --select {select}{unsafe} {name}` measures the fixes on this machine"
    if not report.alone:
        yield f"`torchlint advise {name}` shows what to change"
    elif fixes:
        yield f"`torchlint advise --fix{unsafe} {name}` applies the fixes"
