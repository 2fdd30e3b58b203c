"""Whether what torchlint leaves out to be quick changes what it finds: the screen and the outline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.corpus.packages import Package
from torchlint import checker, parsing, reading, registry
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.rule import vocabulary
from torchlint.source import Source, SourceError
from torchlint.vocabulary import Words

LONG_WAYS: Mapping[str, Callable[[Source, LintSettings], list[Diagnostic]]] = MappingProxyType(
    {
        "the screen": partial(checker.check, screen=False),
        "the outline": partial(checker.check, outline=False),
    }
)
"""Checks that do without something. The one without the screen has no outline either."""


@dataclass(slots=True)
class Outcome:
    """What a check of the files of a package that mention torch found, by the short way and by the long ones.

    ``spared`` counts how often the screen kept a rule from a file.
    """

    package: str
    version: str
    files: int = 0
    size: int = 0
    spared: int = 0
    diagnostics: int = 0
    differences: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it for the report."""
        return asdict(self)


def everything() -> LintSettings:
    """Return all rules, with all of their fixes."""
    rules = registry.rules()
    return LintSettings(rules=tuple(sorted(rules)), fixable=frozenset(rules), unsafe_fixes=True)


def differences(source: Source, settings: LintSettings) -> Iterator[str]:
    """Yield what a check finds otherwise without the screen, and without the outline; a sentence each.

    A text that LibCST cannot read, though the interpreter can, is no difference where the screen spares it.
    """
    short = checker.check(source, settings)
    for name, check_at_length in LONG_WAYS.items():
        long = check_at_length(source, settings)
        if long != short and not _only_read_by_the_interpreter(source, short, long):
            yield f"without {name}: {_told(short, long)}"


def mentioning(folder: Path) -> list[Path]:
    """Return the Python files below a folder that mention torch, in order."""
    return [path for path in sorted(folder.rglob("*.py")) if b"torch" in path.read_bytes()]


def check(
    package: Package, paths: Sequence[Path], settings: LintSettings, report: Callable[[str], None]
) -> Outcome:
    """Check these files of a package by every way; ``report`` is told of each difference."""
    rules = [rule for code, rule in registry.rules().items() if code not in checker.OWN_CODES]
    outcome = Outcome(package.name, package.version)
    for path in paths:
        try:
            source = reading.read(path)
        except SourceError:
            continue
        outcome.files += 1
        outcome.size += len(source.text)
        words = Words(source.text, vocabulary(rules))
        outcome.spared += sum(not rule.may_fire(words) for rule in rules)
        outcome.diagnostics += len(checker.check(source, settings))
        for text in differences(source, settings):
            outcome.differences.append(f"{path.relative_to(package.folder).as_posix()}: {text}")
            report(outcome.differences[-1])
    return outcome


def _only_read_by_the_interpreter(
    source: Source, short: Sequence[Diagnostic], long: Sequence[Diagnostic]
) -> bool:
    unread = [item for item in long if item.code == checker.SYNTAX_ERROR]
    return not short and unread == list(long) and parsing.breaks(source.text) is False


def _told(short: Sequence[Diagnostic], long: Sequence[Diagnostic]) -> str:
    lost = [f"{item.code} at {item.start.row}" for item in long if item not in short]
    more = [f"{item.code} at {item.start.row}" for item in short if item not in long]
    return f"{', '.join(lost) or 'nothing'} in place of {', '.join(more) or 'nothing'}"
