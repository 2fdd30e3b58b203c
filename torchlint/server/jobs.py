"""What the server has done in the process in which files are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from torchlint import checker, fixer
from torchlint.diagnostics import Diagnostic, Edit, Span
from torchlint.options import LintSettings
from torchlint.scope import Scope
from torchlint.server.surroundings import OpenProjects, Surroundings
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.project.project import Project
    from torchlint.reparsing import Reparser

Pulse = Callable[[], None]


# The last versions of the texts with findings, by URI, the one checked last at the end.
_typed: dict[str, Reparser] = {}
_MOST_TYPED = 8
_projects = OpenProjects()
# The settings of the last texts, each as one object: a model is that of one object of settings.
_settings: list[LintSettings] = []
_MOST_SETTINGS = 8


def check(
    source: Source,
    settings: LintSettings,
    around: Surroundings | None,
    uri: str,
    expected: bool,
    pulse: Pulse,
) -> tuple[Diagnostic, ...]:
    """Return the findings in a text, judged alone or with what is ``around`` it.

    ``uri`` and whether there were some before are for speed only.
    """
    settings = _shared(settings)
    if around is None:
        return _found(source, settings, None, uri, expected, pulse)
    kept = _projects.of(around, source)
    found = kept.known(source, settings)
    if found is None:
        found = _found(source, settings, kept.project, uri, expected, pulse)
        kept.keep(source, settings, found)
    return found


def _shared(settings: LintSettings) -> LintSettings:
    """Return the same settings as the object that stands for them."""
    for known in _settings:
        if known == settings:
            return known
    _settings.append(settings)
    del _settings[:-_MOST_SETTINGS]
    return settings


def _found(
    source: Source, settings: LintSettings, project: Project | None, uri: str, expected: bool, pulse: Pulse
) -> tuple[Diagnostic, ...]:
    if not expected:
        _typed.pop(uri, None)
        return tuple(checker.check(source, settings, pulse=pulse, project=project))
    from torchlint.reparsing import Reparser

    reparser = _typed.pop(uri) if uri in _typed else Reparser()
    _typed[uri] = reparser
    if len(_typed) > _MOST_TYPED:
        del _typed[next(iter(_typed))]
    return tuple(
        checker.check(source, settings, outline=False, parse=reparser.parse, pulse=pulse, project=project)
    )


def fix(
    source: Source, settings: LintSettings, around: Surroundings | None, scope: Scope, pulse: Pulse
) -> tuple[Edit, ...]:
    """Return the edits that make all safe fixes of what is in ``scope``,
    and those that become possible by them.
    """
    pulse()
    project = None if around is None else _projects.of(around, source).project
    fixed = fixer.fix(source, _shared(replace(settings, unsafe_fixes=False)), scope, project).source
    return tuple(
        Edit(Span(old.start + edit.span.start, old.start + edit.span.end), edit.content)
        for old, new in zip(source.parts, fixed.parts, strict=True)
        for edit in difference(old.text, new.text)
    )


def difference(before: str, after: str) -> Iterator[Edit]:
    """Yield edits of whole lines, and of nothing that both texts share, that make one text of the other."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = _starts(old)
    for tag, first, last, other_first, other_last in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            continue
        span = Span(starts[first], starts[last])
        yield _trimmed(before[span.start : span.end], "".join(new[other_first:other_last]), span.start)


def _starts(lines: Sequence[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _trimmed(old: str, new: str, at: int) -> Edit:
    """Return the replacement of ``old`` at an offset by ``new``, without what both begin and end with."""
    shorter = min(len(old), len(new))
    head = next((number for number in range(shorter) if old[number] != new[number]), shorter)
    rest = shorter - head
    tail = next((number for number in range(rest) if old[-1 - number] != new[-1 - number]), rest)
    # No edit begins or ends within a CR LF, which is one end of a line to the editor.
    if _within_newline(old, head) or _within_newline(new, head):
        head -= 1
    if _within_newline(old, len(old) - tail) or _within_newline(new, len(new) - tail):
        tail -= 1
    return Edit(Span(at + head, at + len(old) - tail), new[head : len(new) - tail])


def _within_newline(text: str, at: int) -> bool:
    return at > 0 and text[at - 1 : at + 1] == "\r\n"
