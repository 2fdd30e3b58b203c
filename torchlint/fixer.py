"""Applies fixes to the text of one file until nothing is left to fix, and never breaks it.

Each round checks the text anew and applies the fixes whose edits do not touch each other; the others wait
for the next round. No fix becomes safer by another one. A fix that changes other files as well is not applied
here, but by `torchlint.transactions`. Nothing is written here.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torchlint import imports, registry
from torchlint.checker import breaks, check, crash
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Risks
from torchlint.options import LintSettings
from torchlint.origins import Moves, Record
from torchlint.scope import Scope
from torchlint.source import Source, line_start
from torchlint.source import apply as apply

if TYPE_CHECKING:
    from torchlint.project.project import Project

# Nested fixes need one round a level; a file that needs more rounds, or grows by more characters than its
# own and these, does not come to rest.
MAX_ROUNDS = 30
MAX_GROWTH = 10_000
_LINE_END = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class Fixed:
    """A fixed file, how often each rule was applied, and what is left to report of it.

    ``found`` is all that is left, whether or not it is to be reported; ``known`` are the fingerprints of what
    of it the baseline holds, and ``hidden`` counts what is of too little impact. Of what is ``applied`` other
    fixes have brought up those ``later``; what they made needless is ``settled``. A check announces what is
    ``applied`` but for those ``later``, and what is ``settled``. ``risks`` say why fixes of what is
    ``applied`` are unsafe.
    """

    source: Source
    applied: Counter[str]
    diagnostics: list[Diagnostic]
    known: frozenset[str] = frozenset()
    later: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    found: tuple[Diagnostic, ...] = ()
    risks: Risks = field(default_factory=Counter)

    @property
    def text(self) -> str:
        """The fixed text."""
        return self.source.text


@dataclass(frozen=True)
class Course:
    """How far a file has been fixed, so that this can go on once another file has changed.

    ``first`` is the file as it was, and ``record`` what was found in it then; ``moves`` say where its parts
    are by now. Rules in ``barred`` have failed on the file, for the reasons in ``failures``.
    """

    first: Source
    source: Source
    scope: Scope
    moves: Moves
    record: Record | None = None
    applied: Counter[str] = field(default_factory=Counter)
    barred: frozenset[str] = frozenset()
    failures: tuple[str, ...] = ()

    @staticmethod
    def begin(source: Source, scope: Scope | None = None) -> Course:
        """Return the course of a file in which nothing has been fixed yet."""
        return Course(source, source, scope or Scope(), Moves.none(len(source.text)))

    def known(self, found: Sequence[Diagnostic]) -> Course:
        """Return the same, told what there is to find in the file as it was,
        of which nothing is to be fixed.
        """
        return replace(self, record=Record(found, ()))

    def edited(self, edits: Sequence[Edit], made: Sequence[Diagnostic]) -> Course:
        """Return the same with these edits made: of fixes of findings elsewhere,
        and of the file's own ``made``.

        Raises:
            ValueError: they cannot be made.
        """
        assert self.record is not None
        record = self.record.copy()
        record.fixed(made, self.moves)
        return replace(
            self,
            source=self.source.with_text(apply(self.source.text, edits), edits),
            scope=self.scope.moved(self.source, edits),
            moves=self.moves.edited(edits),
            record=record,
            applied=self.applied + Counter(item.code for item in made),
        )

    def without(self, code: str, reason: str) -> Course:
        """Return the same without further fixes of a rule,
        since one of them cannot be made for this reason.
        """
        return self.barring({code}, f"the fixes of {code} were not applied: {reason}")

    def barring(self, codes: AbstractSet[str], reason: str) -> Course:
        """Return the same without further fixes of some rules, for a reason that is reported."""
        return replace(self, failures=(*self.failures, reason), barred=self.barred | codes)


@dataclass(frozen=True)
class _Failure:
    """Rules whose fixes must not be used on this file, and why."""

    codes: frozenset[str]
    reason: str


def fix(
    source: Source, settings: LintSettings, scope: Scope | None = None, project: Project | None = None
) -> Fixed:
    """Apply the fixes that the settings allow, to a fixpoint; those of findings in ``scope`` only.

    If a fix yields a text that is no program, or the fixes of a rule come to no end, the file is fixed
    without the rules to blame, and a diagnostic names them. To the ``project`` the file is in the end what it
    was before: its other files are judged by that, whatever the order in which files are fixed.
    """
    return resume(Course.begin(source, scope), settings, project)[0]


def resume(
    course: Course,
    settings: LintSettings,
    project: Project | None = None,
    elsewhere: AbstractSet[str] = frozenset(),
) -> tuple[Fixed, Course]:
    """Fix a file from where it was left; ``elsewhere`` are the codes of the fixes that other files got."""
    try:
        while True:
            outcome = _attempt(course, settings, project, elsewhere)
            if not isinstance(outcome, _Failure):
                break
            course = course.barring(outcome.codes, outcome.reason)
    finally:
        if project is not None:
            project.holds(course.source)
    fixed, done = outcome
    crashes = [crash(done.source, reason) for reason in done.failures]
    told, found = [*crashes, *fixed.diagnostics], (*crashes, *fixed.found)
    return replace(fixed, diagnostics=told, found=found), done


def applicable(diagnostic: Diagnostic, settings: LintSettings) -> bool:
    """Return whether the settings allow to apply the fix of ``diagnostic``; False if it has none.

    One that changes other files as well is not for who fixes a single one.
    """
    return allowed(diagnostic, settings) and not (diagnostic.fix and diagnostic.fix.elsewhere)


def allowed(diagnostic: Diagnostic, settings: LintSettings) -> bool:
    """Return whether the settings allow to apply the fix of ``diagnostic``, in whichever files."""
    least = Applicability.UNSAFE if settings.unsafe_fixes else Applicability.SAFE
    offered = diagnostic.fix
    return (
        offered is not None
        and bool(offered.edits)
        and offered.applicability >= least
        and diagnostic.code in settings.fixable
    )


def choose(diagnostics: Iterable[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the diagnostics, in order of place, whose fixes do not touch each other in ``text``.

    Edits that touch without overlapping wait too: which of two insertions at one place comes first is
    not for chance to decide. So does a fix that puts lines in where another one changes the indentation,
    of which they would know nothing. An edit that two fixes share, such as an added import, is made once.
    """
    taken: list[Edit] = []
    shifted: set[int] = set()
    split: set[int] = set()
    chosen: list[Diagnostic] = []
    for diagnostic in sorted(diagnostics, key=_place):
        assert diagnostic.fix is not None
        new = [edit for edit in diagnostic.fix.own if not _contains(taken, edit)]
        shifts = {line_start(text, edit.span.start) for edit in new if _is_indentation(text, edit)}
        splits = {line_start(text, edit.span.start) for edit in new if _LINE_END.search(edit.content)}
        if any(_touches(taken, edit) for edit in new) or shifts & split or splits & shifted:
            continue
        shifted |= shifts
        split |= splits
        chosen.append(diagnostic)
        for edit in new:
            insort(taken, edit)
    return _importing_what_is_written(chosen, text)


def _importing_what_is_written(chosen: list[Diagnostic], text: str) -> list[Diagnostic]:
    """Leave out those that remove the import of a name that another of them writes: they wait."""
    removed = imports.removed_by(text, [_edits([item]) for item in chosen])
    if not any(removed):
        return chosen
    kept = [number for number, names in enumerate(removed) if not names]
    for number, names in enumerate(removed):
        if names:
            written = imports.written(_edits(chosen[other] for other in kept))
            gone = set().union(*(removed[other] for other in kept))
            if not names & written and not gone & imports.written(_edits([chosen[number]])):
                kept.append(number)
    return [chosen[number] for number in sorted(kept)]


def _without_last_uses(chosen: list[Diagnostic], text: str) -> list[Diagnostic]:
    """Leave out those that wait for the next round so that an import goes with the last use of its name."""
    later = imports.last_uses(text, [_edits([item]) for item in chosen])
    return [item for number, item in enumerate(chosen) if number not in later]


def _attempt(
    course: Course, settings: LintSettings, project: Project | None, elsewhere: AbstractSet[str]
) -> tuple[Fixed, Course] | _Failure:
    """Fix without the barred rules; what went wrong if that does not end well."""
    source, scope, moves = course.source, course.scope, course.moves
    record = None if course.record is None else course.record.copy()
    applied = Counter(course.applied)
    longest = 2 * len(course.first.text) + MAX_GROWTH
    sound: bool | None = None
    codes: frozenset[str] = frozenset()
    rules = registry.catalogue()
    for _ in range(MAX_ROUNDS):
        checked = check(source, settings, project=project)
        if record is not None:
            made = applied.keys() | elsewhere
            checked = [
                record.judged(item, moves, rules[item.code].follows, made) if item.fix is not None else item
                for item in checked
            ]
        found = scope.sort_out(source, checked)
        diagnostics = found.shown
        if record is None:
            announced = [item for item in diagnostics if allowed(item, settings)]
            record = Record(checked, [item for item in announced if item.code not in course.barred])
        wanted = [
            item for item in diagnostics if item.code not in course.barred and applicable(item, settings)
        ]
        chosen = _without_last_uses(choose(wanted, source.text), source.text)
        if not chosen:
            settled = record.settled(diagnostics, moves)
            fixed = Fixed(
                *(source, applied, found.told, found.known, record.later, settled, found.hidden),
                found=tuple(checked),
                risks=record.risks,
            )
            done = replace(course, source=source, scope=scope, moves=moves, record=record, applied=applied)
            return fixed, done
        if sound is None:
            sound = not breaks(source)
        codes = frozenset(item.code for item in chosen)
        try:
            changed = _changed(source, chosen)
        except ValueError as error:
            return _blame(source, chosen, sound, str(error))
        if changed.text == source.text:
            return _Failure(codes, f"the fixes of {_names(codes)} have no effect, so none was applied")
        if sound and breaks(changed):
            return _blame(source, chosen, sound, "the result is not valid Python")
        if len(changed.text) > longest:
            break
        scope = scope.moved(source, _edits(chosen))
        record.fixed(chosen, moves)
        moves = moves.edited(_edits(chosen))
        source = changed
        applied.update(item.code for item in chosen)
    return _Failure(codes, f"the fixes of {_names(codes)} do not converge, so none was applied")


def _blame(source: Source, chosen: Sequence[Diagnostic], sound: bool, reason: str) -> _Failure:
    """Return the rules whose fixes break the text, on their own or on top of the fixes before them."""
    kept: list[Diagnostic] = []
    guilty = set()
    for item in chosen:
        if _breaks(source, [*kept, item], sound):
            guilty.add(item.code)
        else:
            kept.append(item)
    return _Failure(frozenset(guilty), f"the fixes of {_names(guilty)} were not applied: {reason}")


def _breaks(source: Source, chosen: Iterable[Diagnostic], sound: bool) -> bool:
    try:
        changed = _changed(source, chosen)
    except ValueError:
        return True
    return sound and breaks(changed)


def _changed(source: Source, chosen: Iterable[Diagnostic]) -> Source:
    """Return ``source`` with the fixes made.

    Raises:
        ValueError: their edits cannot be made.
    """
    edits = _edits(chosen)
    return source.with_text(apply(source.text, edits), edits)


def _edits(chosen: Iterable[Diagnostic]) -> list[Edit]:
    return [edit for item in chosen if item.fix is not None for edit in item.fix.own]


def _names(codes: Iterable[str]) -> str:
    return ", ".join(sorted(codes))


def _place(diagnostic: Diagnostic) -> tuple[Edit, str]:
    assert diagnostic.fix is not None
    return diagnostic.fix.edits[0], diagnostic.code


def _is_indentation(text: str, edit: Edit) -> bool:
    """Return whether an edit moves its line to the left or to the right, and does nothing else."""
    before = text[line_start(text, edit.span.start) : edit.span.end]
    return not _LINE_END.search(before + edit.content) and not (before + edit.content).strip()


def _contains(edits: Sequence[Edit], edit: Edit) -> bool:
    at = bisect_left(edits, edit)
    return at < len(edits) and edits[at] == edit


def _touches(edits: Sequence[Edit], edit: Edit) -> bool:
    """Return whether ``edit`` shares a character or a border with one of the sorted, disjoint ``edits``."""
    at = bisect_left(edits, edit)
    neighbours = edits[max(at - 1, 0) : at + 1]
    return any(
        other.span.start <= edit.span.end and edit.span.start <= other.span.end for other in neighbours
    )
