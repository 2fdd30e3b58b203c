"""Checks and fixes many files: in this process, or in a pool of worker processes if there are enough.

Workers only read and think; the results come back in the order of the files, and this process does all
writing, so that no two writes can race and an interrupted run leaves every file whole.

What is found in a file may depend on other files of its project. Fixes are therefore made in turns: in each,
every file is fixed by the texts of the others as they were when the turn began, in whatever order and by
however many processes. A later turn is about the files that depend on what the one before has changed; once
there are none, fixes are made that change several files. Nothing is written before all files are at rest.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import cache, reading, stopwatch
from torchlint.cache import Cache
from torchlint.diagnostics import UNTREATED, Diagnostic, Impact, Position, Risks, Span
from torchlint.documents import is_document
from torchlint.options import LintSettings
from torchlint.project.surroundings import Surroundings
from torchlint.project.traces import Contents, Rests, Trace
from torchlint.registry import RegistryError
from torchlint.scope import Advice, Scope
from torchlint.source import (
    Change,
    Source,
    SourceError,
    StaleSourceError,
    TogetherError,
    check_writable,
    is_file,
    is_notebook,
    most_bytes,
    read_bytes,
    too_large,
    write_together,
)
from torchlint.stopwatch import Seconds

# A run that finds every file known, and most do, needs neither what checks nor what starts processes.
if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from torchlint.fixer import Course
    from torchlint.project.layout import Layout
    from torchlint.project.project import Project
    from torchlint.project.records import Records


class PoolError(Exception):
    """The processes that check files cannot be started; the message is for people."""


Progress = Callable[[int, int], None]
SettingsFor = Mapping[Path, LintSettings] | Callable[[Path], LintSettings]
LayoutFor = Callable[[Path], "Layout | None"]

# Below this many bytes of source a pool costs more than it saves: a worker takes a third of a second to
# start, and a second of checking is about this much source.
_WORTH_A_POOL = 300_000
# Windows waits for no more than 61 handles at once.
_MOST_JOBS = 60
_CHUNK_BYTES = 200_000
_SWEEP_BYTES = 500_000
_MOST_TURNS = 30
"""Files that do not come to rest after so many turns stay as they are by then."""
_SAFE_PATH = "PYTHONSAFEPATH"


@dataclass(frozen=True)
class Mode:
    """What to do with the findings.

    Fixes are applied and written (``fix``), or shown as a diff, or neither. With ``noqa`` findings are
    silenced by comments instead, each with that reason, which may be empty. ``scopes`` are those of the
    files of which not everything counts. With ``timing`` it is measured where the time goes. Findings of less
    than ``impact`` are left out.
    """

    fix: bool = False
    diff: bool = False
    noqa: str | None = None
    scopes: Mapping[Path, Scope] = field(default_factory=dict)
    timing: bool = False
    impact: Impact = Impact.LOW
    advice: Advice = Advice.COUNTED

    def scope(self, path: Path) -> Scope:
        """Return what counts of the file at ``path``."""
        return replace(self.scopes.get(path) or Scope(), impact=self.impact, advice=self.advice)

    def only(self, paths: Iterable[Path]) -> Mode:
        """Return the same for these files alone, so that no process is told of the others."""
        return replace(self, scopes={path: self.scopes[path] for path in paths if path in self.scopes})

    @property
    def fixes(self) -> bool:
        """Whether fixes are applied, or shown as a diff."""
        return (self.fix or self.diff) and self.noqa is None

    @property
    def only_looks(self) -> bool:
        """Whether the texts of the files stay as they are."""
        return not (self.fix or self.diff or self.noqa is not None)

    @property
    def writes(self) -> bool:
        """Whether files may be changed on disk."""
        return not (self.only_looks or self.diff)

    @property
    def contents(self) -> Mapping[Path, bytes]:
        """The files that are checked as something else than the disk has."""
        return {path: scope.content for path, scope in self.scopes.items() if scope.content is not None}

    @property
    def looking(self) -> Mode:
        """The same without changing anything."""
        return Mode(scopes=self.scopes, impact=self.impact, advice=self.advice)


@dataclass(frozen=True)
class Result:
    """What came of one file.

    ``diagnostics`` are those left; ``applied`` counts the fixes by code, made or, for a diff, shown;
    ``later`` are those of them that other fixes brought up, and ``settled`` what they made needless;
    ``diff`` is a unified diff or None; ``written`` says whether the file was changed on disk. ``known`` are
    the fingerprints of findings that the baseline holds, ``silenced`` counts the findings that got a
    comment, ``hidden`` those of too little impact. ``risks`` say why fixes that were made are unsafe.
    ``seconds`` is empty unless the time was measured.
    """

    path: Path
    diagnostics: tuple[Diagnostic, ...] = ()
    applied: Counter[str] = field(default_factory=Counter)
    diff: str | None = None
    written: bool = False
    known: frozenset[str] = frozenset()
    silenced: int = 0
    seconds: Seconds = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    risks: Risks = field(default_factory=Counter)


@dataclass(frozen=True)
class _Item:
    """A file to treat.

    ``salt`` is what its key in the cache begins with, empty if there is no cache; ``root`` that of the
    project that it is part of, None if it is judged alone. After the first turn there is a ``course``, and
    ``elsewhere`` are the codes of all fixes so far.
    """

    path: Path
    settings: LintSettings
    salt: bytes = b""
    root: Path | None = None
    course: Course | None = None
    elsewhere: frozenset[str] = frozenset()


_Work = list[_Item]


@dataclass(frozen=True)
class _Outcome:
    """A result on its way to this process, with the bytes ``before`` and the text ``after`` a change.

    ``key`` is that of the bytes that were checked, and ``found`` all that is left to find in them; without a
    key the result is not theirs. It ``rests`` on some of the project. What was fixed can be taken up again
    from its ``course``.
    """

    result: Result
    before: bytes = b""
    after: Source | None = None
    key: str = ""
    found: tuple[Diagnostic, ...] = ()
    rests: Rests = field(default_factory=Rests)
    course: Course | None = None

    @property
    def consulted(self) -> frozenset[Path]:
        """The files of the project that the result depends on."""
        return self.rests.files


def run(
    paths: Sequence[Path],
    settings_for: SettingsFor,
    mode: Mode,
    jobs: int = 0,
    progress: Progress | None = None,
    known: Cache | None = None,
    layout_for: LayoutFor | None = None,
) -> Iterator[Result]:
    """Check, and if asked fix, the files at ``paths``; one result each, in that order.

    ``jobs`` is the number of processes, 0 for one a processor; few files are checked in this process
    whatever it says. ``progress`` is called with the number of files done and of all. What is ``known``
    already is not checked again, and what is found is added to it. ``layout_for`` gives the project that a
    file is part of; without it each file is judged alone.
    """
    settings = settings_for if callable(settings_for) else settings_for.__getitem__
    layouts: dict[Path, Layout] = {}
    records = lru_cache(1)(partial(_records, known))
    # Read before anything is checked: what changes from now on is another text to the next run.
    contents = Contents(records, mode.contents, dict if known is None else known.faces)
    work = _items(paths, settings, mode, known, layout_for, layouts, contents)
    recalled = [_known(item, mode, known, layouts, contents) for item in work]
    missing = [item for item, outcome in zip(work, recalled, strict=True) if outcome is None]
    around = Surroundings(layouts, mode.contents, records)
    outcomes = _outcomes(missing, mode, jobs, around)
    if not mode.only_looks:
        outcomes = _at_once(outcomes, len(missing), len(work), progress)
        progress = None
    files = _Files(work, mode, jobs, around)
    # What the files that are written by now held before.
    before: dict[Path, bytes] = {}
    written: dict[Path, Result] = {}
    try:
        if mode.fixes:
            for item, outcome in zip(work, recalled, strict=True):
                files.take(item, outcome or _remembered(next(outcomes), item, known, layouts, contents))
            files.come_to_rest()
        for done, (item, outcome) in enumerate(zip(work, recalled, strict=True), start=1):
            if not mode.fixes:
                outcome = outcome or _remembered(next(outcomes), item, known, layouts, contents)
                written.update(_write([(item, outcome)], mode, layouts, before))
            elif item.path not in written:
                written.update(_write(files.together(item), mode, layouts, before))
            yield files.marked(written.pop(item.path))
            if progress is not None:
                progress(done, len(work))
    finally:
        outcomes.close()
        if known is not None:
            known.finish(contents.to_keep)
            known.save()


def _remembered(
    outcome: _Outcome,
    item: _Item,
    known: Cache | None,
    layouts: Mapping[Path, Layout],
    contents: Contents,
) -> _Outcome:
    """Return an outcome, once the cache has been told of it."""
    if known is not None and outcome.key:
        known.put(outcome.key, outcome.found, _trace(outcome, item, layouts, contents))
    return outcome


def _at_once(
    outcomes: Generator[_Outcome, None, None], missing: int, work: int, progress: Progress | None
) -> Generator[_Outcome, None, None]:
    """Yield the same outcomes, of which the first is there only once all of them are."""
    done = []
    try:
        for outcome in outcomes:
            done.append(outcome)
            if progress is not None:
                progress(work - missing + len(done), work)
    finally:
        outcomes.close()
    yield from done


def run_text(
    data: bytes,
    path: Path,
    settings: LintSettings,
    mode: Mode,
    known: Cache | None = None,
    layout: Layout | None = None,
) -> tuple[Result, Source | None]:
    """Check, and if asked fix, the bytes of a file that is to be called ``path``; nothing is written.

    Returns the result with the text that it speaks of: the fixed one, if there is one; None if the bytes
    are no text. What is ``known`` already is not checked again; nothing is added to it, since a text may be
    one of many on the way to another. With a ``layout`` the file is part of that project.
    """
    item = _Item(path, settings, root=None if layout is None else layout.root)
    around = Surroundings({} if layout is None else {layout.root: layout})
    try:
        source = _source(data, path, settings)
    except SourceError as error:
        return Result(path, (_untreated(path, error),)), None
    if mode.only_looks:
        found = None if known is None else _recalled_text(known, data, item, around)
        found = found or _found(source, settings, around.project(item.root))
        result = _about(path, found, mode.scope(path), source)
    elif mode.noqa is not None:
        result, source = _silenced(source, item, mode, around)
    else:
        result, course, _ = _fixed(_begun(source, mode), item, around)
        if mode.diff and result.applied:
            result = replace(result, diff=difference(source, course.source))
        source = course.source
    return _Files([item], mode, 1, around).marked(result), source


def _silenced(source: Source, item: _Item, mode: Mode, around: Surroundings) -> tuple[Result, Source]:
    """Return the result of a file whose findings get comments, and its text with them."""
    from torchlint import silencing

    assert mode.noqa is not None
    scope = mode.scope(item.path).within(source)
    quiet = silencing.silence(source, item.settings, scope, mode.noqa, around.project(item.root))
    left = tuple(quiet.diagnostics)
    result = Result(item.path, left, known=quiet.known, silenced=quiet.silenced, hidden=quiet.hidden)
    return result, quiet.source


def _begun(source: Source, mode: Mode) -> Course:
    """Return the course of a file in which nothing has been fixed yet."""
    from torchlint.fixer import Course

    return Course.begin(source, mode.scope(source.path).within(source))


def _fixed(
    course: Course, item: _Item, around: Surroundings
) -> tuple[Result, Course, tuple[Diagnostic, ...]]:
    """Return the result of a file that is fixed from where it was left, how far it came,
    and all that is left.
    """
    from torchlint import fixer

    fixed, done = fixer.resume(course, item.settings, around.project(item.root), item.elsewhere)
    result = Result(
        item.path,
        tuple(fixed.diagnostics),
        fixed.applied,
        known=fixed.known,
        later=fixed.later,
        settled=fixed.settled,
        hidden=fixed.hidden,
        risks=fixed.risks,
    )
    return result, done, fixed.found


def _recalled_text(
    known: Cache, data: bytes, item: _Item, around: Surroundings
) -> tuple[Diagnostic, ...] | None:
    """Return what is known to be found in a text that counts as a file's."""
    salt, layout = known.salt(item.settings), around.layout(item.root)
    if layout is None:
        return _recalled_alone(known, salt, item.path, data)
    contents = Contents(partial(_records, known), {item.path: data}, known.faces)
    return _recalled(known, contents.salt(salt, layout, item.path), item.path, layout, contents)


def _source(data: bytes, path: Path, settings: LintSettings) -> Source:
    """Return what ``data`` says; in a notebook no more characters may be code than other files may have
    bytes.

    Raises:
        SourceError: it is no text, or too large.
    """
    most, notebook = settings.max_file_size, is_notebook(path, settings.extension)
    allowed = most_bytes(notebook, most)
    if most and len(data) > allowed:
        raise too_large(len(data), allowed)
    source = reading.from_bytes(data, path, notebook=notebook)
    if most and len(source.text) > most:
        size = len(source.text)
        raise SourceError(f"cannot read the file: it has {size} characters of code; the limit is {most}")
    return source


def _found(source: Source, settings: LintSettings, project: Project | None) -> tuple[Diagnostic, ...]:
    from torchlint import checker

    return tuple(checker.check(source, settings, project=project))


def _about(path: Path, found: Sequence[Diagnostic], scope: Scope, source: Source | None) -> Result:
    """Return the result of a file in which all of this was found: what of it is in ``scope``.

    The text is needed if that depends on it.
    """
    left = (scope if source is None else scope.within(source)).sort_out(source, found)
    return Result(path, tuple(left.told), known=left.known, hidden=left.hidden)


def difference(before: Source, after: Source) -> str:
    """Return the change of a file as a patch; of a notebook as one a cell, for people to read."""
    if not before.in_cells:
        return _of_file(before, before.stored, after.stored)
    name = _shown(before.path)
    return "".join(
        _unified(f"{name}:cell {old.cell}", _ended(old.text), _ended(new.text))
        for old, new in zip(before.parts, after.parts, strict=True)
    )


def _ended(cell: str) -> str:
    """Return a cell whose last line ends as the others do; usually it does not, and is no less a line."""
    return cell if cell.endswith("\n") or not cell else f"{cell}\n"


def unified_diff(source: Source, text: str) -> str:
    """Return the change from ``source`` to ``text`` as a patch that ``patch -p0`` and ``git apply -p0`` read.

    Carriage returns and the byte order mark belong to the lines, as in the file.
    """
    return _of_file(source, source.text, text)


def _of_file(source: Source, before: str, after: str) -> str:
    mark = "\ufeff" if source.bom else ""
    return _unified(_shown(source.path), mark + before, mark + after)


def _unified(name: str, before: str, after: str) -> str:
    import difflib

    lines = difflib.unified_diff(_lines(before), _lines(after), fromfile=name, tofile=name, lineterm="\n")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    # Patches know one end of line only; ``str.splitlines`` would split at form feeds too.
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _shown(path: Path) -> str:
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


# --- one file --------------------------------------------------------------------------------------------


def _items(
    paths: Sequence[Path],
    settings: Callable[[Path], LintSettings],
    mode: Mode,
    known: Cache | None,
    layout_for: LayoutFor | None,
    layouts: dict[Path, Layout],
    contents: Contents,
) -> list[_Item]:
    """Return the work on the files; the layouts of their projects are added to ``layouts`` by root."""
    if mode.noqa is not None:
        known = None
    # Most files share their settings, as one object.
    salts: dict[int, bytes] = {}
    items = []
    for path in paths:
        chosen = settings(path)
        if known is not None and id(chosen) not in salts:
            salts[id(chosen)] = known.salt(chosen)
        layout = None if layout_for is None else layout_for(path)
        if layout is not None:
            layouts[layout.root] = layout
        salt = salts.get(id(chosen), b"")
        if salt and layout is not None:
            salt = contents.salt(salt, layout, path)
        items.append(_Item(path, chosen, salt, None if layout is None else layout.root))
    return items


def _known(
    item: _Item, mode: Mode, known: Cache | None, layouts: Mapping[Path, Layout], contents: Contents
) -> _Outcome | None:
    """Return the outcome of a file, if it is known and there is nothing to fix."""
    if known is None or not item.salt:
        return None
    rests = Rests()
    try:
        if item.root is None:
            diagnostics = _recalled_alone(known, item.salt, item.path, _content(item, mode))
        else:
            traces: list[Trace] = []
            diagnostics = _recalled(known, item.salt, item.path, layouts[item.root], contents, traces)
            rests = contents.rests(layouts[item.root], traces[-1]) if traces else Rests()
        if diagnostics is None:
            return None
        # What counts of a file changes from run to run; what is remembered is all that was found in it.
        scope, source = mode.scope(item.path), None
        if diagnostics and scope.rests_on_text:
            source = _source(_content(item, mode), item.path, item.settings)
        result = _about(item.path, diagnostics, scope, source)
    except SourceError:
        return None
    if mode.fix or mode.diff:
        from torchlint.fixer import allowed

        if any(scope.acts_on(found) and allowed(found, item.settings) for found in result.diagnostics):
            return None
    return _Outcome(result, found=diagnostics, rests=rests)


def _recalled_alone(known: Cache, salt: bytes, path: Path, data: bytes) -> tuple[Diagnostic, ...] | None:
    """Return what is known to be found in a file that holds ``data`` and is judged alone."""
    return known.get(cache.key(salt, path, sha256(data).digest()), path, len(data))


def _recalled(
    known: Cache,
    salt: bytes,
    path: Path,
    layout: Layout,
    contents: Contents,
    traces: list[Trace] | None = None,
) -> tuple[Diagnostic, ...] | None:
    """Return what is known to be found in a file of a project, if all that it depends on is as it was.

    Its trace is added to ``traces``.
    """
    own = contents.of(path)
    if own is None:
        return None

    def holds(before: cache.Traced) -> Trace | None:
        trace = contents.holds(layout, Trace(*before))
        if trace is not None and traces is not None:
            traces.append(Trace(*before))
        return trace

    return known.get(cache.key(salt, path, own.digest), path, own.size, holds)


def _trace(
    outcome: _Outcome, item: _Item, layouts: Mapping[Path, Layout], contents: Contents
) -> Trace | None:
    """Return what a result depends on beside its file; None for one of a file alone."""
    return None if item.root is None else contents.trace(layouts[item.root], outcome.rests)


def _content(item: _Item, mode: Mode) -> bytes:
    """Return the bytes to check: those of the file, unless the scope has others.

    Raises:
        SourceError: the file cannot be read.
    """
    content = mode.scope(item.path).content
    if content is not None:
        return content
    notebook = is_notebook(item.path, item.settings.extension)
    return read_bytes(item.path, most_bytes(notebook, item.settings.max_file_size))


def _treat(item: _Item, mode: Mode, around: Surroundings) -> _Outcome:
    """Return what comes of one file; never raises on account of the file."""
    if not mode.timing:
        return _treated(item, mode, around)
    with stopwatch.recording() as seconds:
        outcome = _treated(item, mode, around)
    return replace(outcome, result=replace(outcome.result, seconds=seconds))


def _treated(item: _Item, mode: Mode, around: Surroundings) -> _Outcome:
    path, settings = item.path, item.settings
    try:
        if item.course is not None:
            return _resumed(item, around)
        data = _content(item, mode)
        key = cache.key(item.salt, path, sha256(data).digest()) if item.salt else ""
        source = _source(data, path, settings)
        if mode.only_looks:
            found = _found(source, settings, around.project(item.root))
            rests = around.rests(item.root, path)
            result = _about(path, found, mode.scope(path), source)
            return _Outcome(result, key=key, found=found, rests=rests)
        if mode.noqa is not None:
            result, text = _silenced(source, item, mode, around)
            return _Outcome(result, data, text if result.silenced else None)
        outcome = _resumed(replace(item, course=_begun(source, mode)), around)
        whole = path not in mode.scopes and not outcome.result.applied
        return replace(outcome, before=data, key=key if whole else "")
    except SourceError as error:
        if is_document(path) and is_file(path):
            # Nobody says that it is one of the program's, and what else it may hold is no concern of this.
            return _Outcome(Result(path))
        return _Outcome(Result(path, (_untreated(path, error),)))
    except RegistryError:
        # Not a matter of this file: there are no rules to check any file with.
        raise
    except Exception as error:
        from torchlint import checker

        checker.log_failure(path, error)
        return _Outcome(_failed(path, f"checking {path.name} failed with {checker.describe(error)}"))


def _resumed(item: _Item, around: Surroundings) -> _Outcome:
    assert item.course is not None
    result, course, found = _fixed(item.course, item, around)
    rests = around.rests(item.root, item.path)
    return _Outcome(result, found=found, rests=rests, course=course)


def _encoded(data: bytes, source: Source) -> bytes:
    """Return the bytes of the fixed text.

    Raises:
        SourceError: the codec does not give back what it read, and would change more than the fixes do.
    """
    original = reading.from_bytes(data, source.path, notebook=source.in_cells)
    if original.to_bytes() != data:
        raise SourceError(f"cannot write the fixes: the file does not round-trip through {source.encoding}")
    return source.to_bytes()


def _write(
    together: Sequence[tuple[_Item, _Outcome]],
    mode: Mode,
    layouts: Mapping[Path, Layout],
    before: dict[Path, bytes],
) -> dict[Path, Result]:
    """Write files of which each is changed on account of the others; none of them if one cannot be.

    What is said then are all findings as they are still, and why nothing was written. What the files that
    were written held is added to ``before``.
    """
    results = {item.path: outcome.result for item, outcome in together}
    changed = [(item, outcome) for item, outcome in together if outcome.after is not None]
    if not mode.writes or not changed:
        return results
    try:
        written = write_together([_change(item.path, outcome) for item, outcome in changed])
    except TogetherError as error:
        around = Surroundings(layouts, before)
        for item, outcome in changed:
            results[item.path] = _unwritten(outcome.before, item, mode, around, error)
        return results
    for (item, outcome), done in zip(changed, written, strict=True):
        before[item.path] = outcome.before
        results[item.path] = replace(outcome.result, written=done)
    return results


def _change(path: Path, outcome: _Outcome) -> Change:
    """Return what is to be written.

    Raises:
        TogetherError: its encoding cannot hold it.
    """
    assert outcome.after is not None
    try:
        return Change(path, _encoded(outcome.before, outcome.after), outcome.before)
    except SourceError as error:
        raise TogetherError(path, error) from error


def _unwritten(data: bytes, item: _Item, mode: Mode, around: Surroundings, failure: TogetherError) -> Result:
    """Return what there is to say of a file that was to be changed together with one
    that cannot be written.
    """
    error = failure.error
    if item.path != failure.path:
        error = SourceError(
            f"cannot write the fixes: those of {failure.path.name}, which go together with them, "
            "cannot be written"
        )
    told = _untreated(item.path, error)
    if isinstance(error, StaleSourceError):
        return Result(item.path, (told,))
    source = _source(data, item.path, item.settings)
    found = _found(source, item.settings, around.project(item.root))
    result = _about(item.path, found, mode.scope(item.path), source)
    return replace(result, diagnostics=(told, *result.diagnostics))


def _untreated(path: Path, error: SourceError) -> Diagnostic:
    from torchlint.checker import SYNTAX_ERROR

    return _about_file(SYNTAX_ERROR, path, error.reason, error.position, error.remedy)


def _failed(path: Path, reason: str) -> Result:
    from torchlint.checker import CRASH

    return Result(path, (_about_file(CRASH, path, reason, Position(1, 1)),))


def _about_file(
    code: str, path: Path, message: str, place: Position, remedy: str | None = None
) -> Diagnostic:
    """Return a diagnostic for a file whose text is not known."""
    from torchlint.checker import own_diagnostic

    diagnostic = own_diagnostic(code, Source(path, ""), Span(0, 0), message, remedy=remedy)
    return replace(diagnostic, start=place, end=place, noqa_row=place.row)


# --- files that are fixed together -------------------------------------------------------------------------


class _Files:
    """The files of a run that makes fixes, from turn to turn."""

    def __init__(self, work: _Work, mode: Mode, jobs: int, around: Surroundings) -> None:
        self._items = {item.path: item for item in work}
        self._mode, self._jobs, self._around = mode, jobs, around
        self._outcomes: dict[Path, _Outcome] = {}
        self._begun: dict[Path, Course] = {}
        self._tied: dict[Path, set[Path]] = {}
        self._judged: dict[Path, Source] = {}
        """The texts of changed files by which others were judged last."""

    def take(self, item: _Item, outcome: _Outcome) -> None:
        """Take in what came of a file in the first turn, or was known before."""
        self._outcomes[item.path] = outcome
        if outcome.course is not None:
            self._begun[item.path] = outcome.course

    def come_to_rest(self) -> None:
        """Fix the files until no fix in one of them brings up another."""
        changed = {path for path, course in self._begun.items() if self._is_changed(path, course)}
        every, together = set(changed), set[Path]()
        for _ in range(_MOST_TURNS):
            if not changed:
                changed = together = self._fix_together()
                every |= changed
            if not changed:
                break
            changed = self._turn(changed, together, every)
            every |= changed
            together = set()

    def _is_changed(self, path: Path, course: Course) -> bool:
        return course.source.text != course.first.text and self.hindrance(path) is None

    def _turn(self, changed: set[Path], together: set[Path], every: set[Path]) -> set[Path]:
        """Fix what depends on files that have ``changed``, and those of them that were changed ``together``.

        Returns the files that changed. They are tied to those they depend on of ``every`` file that has.
        """
        present = {path: self._begun[path].source for path in changed}
        pairs = [(self._judged.get(path, self._begun[path].first), now) for path, now in present.items()]
        self._around.take(present)
        asked = frozenset[str]().union(*(outcome.rests.asked for outcome in self._outcomes.values()))
        changes = self._around.changes(pairs, asked)
        self._judged.update(present)
        codes = frozenset(code for course in self._begun.values() for code in course.applied)
        stale = [
            replace(self._items[path], course=course, elsewhere=codes)
            for path, outcome in self._outcomes.items()
            if path in together or changes.concern(path, outcome.rests)
            if (course := self._course(path)) is not None and self.hindrance(path) is None
        ]
        found = set()
        for item, outcome in zip(stale, _outcomes(stale, self._mode, self._jobs, self._around), strict=True):
            path, before = item.path, self._outcomes[item.path]
            result = replace(outcome.result, seconds=before.result.seconds + outcome.result.seconds)
            rests = before.rests.joined(outcome.rests)
            self._outcomes[path] = replace(before, result=result, rests=rests)
            if outcome.course is not None:
                self._begun[path] = outcome.course
                if item.course is not None and outcome.course.source.text != item.course.source.text:
                    found.add(path)
                    self._tie({path, *(outcome.consulted & every)})
        return found

    def _fix_together(self) -> set[Path]:
        """Make fixes that change several files; returns the files that are to be checked again."""
        from torchlint import transactions

        again: set[Path] = set()
        for path in sorted(self._outcomes):
            for item in self._outcomes[path].result.diagnostics:
                files = {path, *(item.fix.elsewhere if item.fix else ())}
                # One fix of each file at a time: the others may be about to change by it.
                if len(files) == 1 or files & again or not self._may_be_made(path, item, files):
                    continue
                made = transactions.made(path, item, {file: self._begun[file] for file in files})
                self._begun.update(made)
                again |= files
                if len(made) > 1:
                    self._tie(files)
        return again

    def _may_be_made(self, path: Path, item: Diagnostic, files: set[Path]) -> bool:
        """Return whether a fix that changes these files is to be made."""
        from torchlint.fixer import allowed

        if not (self._mode.scope(path).acts_on(item) and allowed(item, self._items[path].settings)):
            return False
        if any(map(self.hindrance, files)):
            return False
        # Edits are of the texts that were looked at.
        consulted = files - {path} <= self._outcomes[path].consulted
        return consulted and item.code not in self._begun[path].barred

    def _tie(self, files: Iterable[Path]) -> None:
        """Have files written together, with those that each of them is tied to already."""
        joined = set(files)
        for file in files:
            joined |= self._tied.get(file, set())
        for file in joined:
            self._tied[file] = joined

    def _course(self, path: Path) -> Course | None:
        """Return how far a file has been fixed; None for one that could not be treated."""
        if path not in self._begun and (outcome := self._outcomes.get(path)) is not None:
            if outcome.course is None and not outcome.before and not _is_untreated(outcome):
                item = self._items[path]
                try:
                    data = _content(item, self._mode)
                    source = _source(data, path, item.settings)
                except SourceError:
                    return None
                self._begun[path] = _begun(source, self._mode).known(outcome.found)
                self._outcomes[path] = replace(outcome, before=data)
        return self._begun.get(path)

    def hindrance(self, path: Path) -> str | None:
        """Return why a file cannot be changed in this run; None if it can."""
        if path not in self._items:
            return f"`{path.name}` is not among the checked files"
        if not self._mode.fixes:
            return None
        course = self._course(path)
        if course is None:
            return f"`{path.name}` cannot be checked"
        if not self._mode.writes:
            return None
        try:
            check_writable(path)
            _encoded(self._outcomes[path].before, course.source)
        except SourceError as error:
            return f"`{path.name}` cannot be written: {error.reason.partition(': ')[2]}"
        return None

    def marked(self, result: Result) -> Result:
        """Return a result whose fixes say so where they would change a file that cannot be changed."""
        if not any(item.fix is not None and item.fix.elsewhere for item in result.diagnostics):
            return result
        from torchlint import transactions

        told = tuple(transactions.marked(item, self.hindrance) for item in result.diagnostics)
        return replace(result, diagnostics=told)

    def together(self, item: _Item) -> list[tuple[_Item, _Outcome]]:
        """Return a file, and those that are written together with it, as they are to be written."""
        return [
            (self._items[path], self._final(path)) for path in sorted(self._tied.get(item.path, {item.path}))
        ]

    def _final(self, path: Path) -> _Outcome:
        outcome, course = self._outcomes[path], self._begun.get(path)
        if course is None or course.source.text == course.first.text:
            return outcome
        diff = difference(course.first, course.source) if self._mode.diff else None
        return replace(outcome, result=replace(outcome.result, diff=diff), after=course.source)


def _is_untreated(outcome: _Outcome) -> bool:
    return any(item.code in UNTREATED for item in outcome.result.diagnostics)


# --- many files ------------------------------------------------------------------------------------------


def _outcomes(work: _Work, mode: Mode, jobs: int, around: Surroundings) -> Generator[_Outcome, None, None]:
    """Yield what comes of each file, checked here or by workers."""
    sizes = [_size(item.path) for item in work]
    jobs = min(jobs or _processors(), _MOST_JOBS, len(work))
    if jobs > 1 and sum(sizes) > _WORTH_A_POOL:
        yield from _in_pool(work, sizes, mode, jobs, around)
    else:
        yield from _in_process(work, sizes, mode, around)


def _records(known: Cache | None) -> Records:
    """Return what this run and earlier ones know of the files of projects."""
    from torchlint.project.records import Records

    return Records({}, {}) if known is None else Records(known.facts, known.new_facts)


def _in_process(work: _Work, sizes: Sequence[int], mode: Mode, around: Surroundings) -> Iterator[_Outcome]:
    unswept = 0
    with _sweeping():
        for item, size in zip(work, sizes, strict=True):
            yield _treat(item, mode, around)
            unswept += size
            unswept = _sweep(unswept, around)


_around = Surroundings()
"""What a worker knows of the projects that it checks files of: told once, and kept from chunk to chunk."""


def _treat_chunk(work: _Work, mode: Mode) -> list[_Outcome]:
    with _sweeping():
        outcomes = [_treat(item, mode, _around) for item in work]
        _sweep(_SWEEP_BYTES, _around)
    return outcomes


@contextmanager
def _sweeping() -> Iterator[None]:
    """Collect garbage only by `_sweep` within the block."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _sweep(unswept: int, around: Surroundings) -> int:
    """Collect the garbage of checked files now and then: it is not done while a file is checked.

    ``unswept`` is the size of the source checked since; what is left of it is returned. The model of a
    project is no garbage, and holds most of what there is: it is passed over, and searched once it is gone.
    """
    if not around.keeps_model:
        if unswept < _SWEEP_BYTES:
            return unswept
        gc.collect()
    # What is left are modules and what is remembered from file to file: it need not be searched again.
    gc.freeze()
    return 0


def _in_pool(
    work: _Work, sizes: Sequence[int], mode: Mode, jobs: int, around: Surroundings
) -> Iterator[_Outcome]:
    chunks = _chunks(work, sizes, jobs)
    pool = _pool(jobs, around)
    try:
        futures = [_submit(pool, chunk, mode) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            yield from _of_chunk(chunk, future, mode, around)
    finally:
        # After a full run there is nothing to wait for; after an interrupt there is nobody who would.
        pool.shutdown(wait=False, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, chunk: _Work, mode: Mode) -> Future[list[_Outcome]]:
    """Have a chunk treated; a process is started for it if the pool has room.

    Raises:
        PoolError: no process can be started.
    """
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    try:
        with _starting():
            return pool.submit(_treat_chunk, chunk, mode.only(item.path for item in chunk))
    except BrokenProcessPool as error:
        # Those started for earlier chunks are dead already.
        failed: Future[list[_Outcome]] = Future()
        failed.set_exception(error)
        return failed


def _of_chunk(
    chunk: _Work, future: Future[list[_Outcome]], mode: Mode, around: Surroundings
) -> Iterator[_Outcome]:
    """Yield the outcomes of a chunk; file by file, each in a process of its own, if its worker died."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from future.result()
    except BrokenProcessPool:
        for item in chunk:
            with _pool(1, around) as lonely:
                try:
                    yield from _submit(lonely, [item], mode).result()
                except BrokenProcessPool:
                    yield _Outcome(_failed(item.path, f"the process checking {item.path.name} died"))


def _chunks(work: _Work, sizes: Sequence[int], jobs: int) -> list[_Work]:
    """Split the work into parts of about the same size, several a worker, in order."""
    limit = min(_CHUNK_BYTES, max(sum(sizes) // (4 * jobs), 1))
    chunks: list[_Work] = []
    filled = limit
    for item, size in zip(work, sizes, strict=True):
        if filled >= limit:
            chunks.append([])
            filled = 0
        chunks[-1].append(item)
        filled += size
    return chunks


def _pool(jobs: int, around: Surroundings) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from torchlint import registry

    # Never a plain fork: a thread of the caller, such as a progress bar's, may hold a lock just then.
    methods = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in methods and sys.platform != "darwin" else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        # Imported once, and shared by all workers. A rule pack may do anything when it is imported.
        own = {rule.check.__module__ for rule in registry.catalogue().values()}
        rules = sorted(name for name in own if name.startswith("torchlint.rules."))
        kernel = ("torchlint.semantics", "torchlint.fixer", "torchlint.outline", "torchlint.project.program")
        preloaded = [*kernel, *rules]
        context.set_forkserver_preload(preloaded)
    with _starting():
        return ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(around,))


@contextmanager
def _starting() -> Iterator[None]:
    """Start processes within the block that do not look for modules in the working directory.

    Raises:
        PoolError: one cannot be started.
    """
    try:
        with _safe_path():
            yield
    except (OSError, EOFError) as error:
        # An end of file is the last that is heard of a process that was to start others.
        died = isinstance(error, (EOFError, ConnectionError))
        reason = (
            "the process that starts them died" if died else getattr(error, "strerror", None) or str(error)
        )
        raise PoolError(
            f"worker processes cannot be started: {reason}; use `--jobs 1` to run without them"
        ) from error


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep every Python that starts within the block from looking for modules in the working directory.

    multiprocessing starts its processes with ``python -c``, which would import a ``socket.py`` or a
    ``libcst.py`` of the project that is checked. The workers get the path of this process later on.
    """
    if sys.version_info >= (3, 11) and not sys.flags.ignore_environment:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before
        return
    # Without that variable there is only the flag that leaves out the rest of the environment as well.
    from multiprocessing import util

    flags = util._args_from_interpreter_flags  # type: ignore[attr-defined]
    util._args_from_interpreter_flags = lambda: ["-I", *flags()]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = flags  # type: ignore[attr-defined]


def _start_worker(around: Surroundings) -> None:
    import signal

    global _around
    _around = around

    from torchlint.orphans import end_with_parent

    end_with_parent()

    # An interrupt from the terminal reaches the workers too: they have nothing to clean up or to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
