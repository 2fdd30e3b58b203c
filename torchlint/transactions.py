"""Fixes that change several files: all of their edits are made, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from torchlint.checker import breaks
from torchlint.diagnostics import Diagnostic
from torchlint.fixer import Course

Hindrance = Callable[[Path], str | None]
"""Why a file cannot be changed in this run; None if it can."""


def marked(diagnostic: Diagnostic, hindrance: Hindrance) -> Diagnostic:
    """Return the finding; if its fix changes a file that cannot be changed, with a fix that says so."""
    fix = diagnostic.fix
    if fix is None or not fix.elsewhere:
        return diagnostic
    files = (*fix.elsewhere, diagnostic.path)
    reasons = [reason for path in files if (reason := hindrance(path)) is not None]
    return replace(diagnostic, fix=replace(fix, withheld=reasons[0])) if reasons else diagnostic


def made(path: Path, item: Diagnostic, courses: Mapping[Path, Course]) -> dict[Path, Course]:
    """Return the files of a fix once it is made: all of them, or where that cannot be the one of the finding.

    Its rule is then barred from that file.
    """
    assert item.fix is not None
    after: dict[Path, Course] = {}
    try:
        for file, edits in {path: item.fix.own, **item.fix.elsewhere}.items():
            after[file] = courses[file].edited(edits, [item] if file == path else [])
            if breaks(after[file].source) and not breaks(courses[file].source):
                raise ValueError("the result is not valid Python")
    except ValueError as error:
        return {path: courses[path].without(item.code, str(error))}
    return after
