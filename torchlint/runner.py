"""Checks and fixes many files: in this process, or in a pool of worker processes if there are enough.

Workers only read and think; the results come back in the order of the files, and this process does all
writing, so that no two writes can race and an interrupted run leaves every file whole. What is found in a
file may rest on other files of its project: where files are to be changed, nothing is written before all of
them are judged, so that every result is about the texts as they were when the run began, in whatever order
and by however many processes.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import cache, reading, stopwatch
from torchlint.cache import Cache
from torchlint.diagnostics import Diagnostic, Position, Span
from torchlint.options import LintSettings
from torchlint.project.surroundings import Surroundings
from torchlint.project.traces import Contents, Trace
from torchlint.registry import RegistryError
from torchlint.scope import Scope
from torchlint.source import (
    Source,
    SourceError,
    StaleSourceError,
    most_bytes,
    read_bytes,
    too_large,
    write_atomically,
)
from torchlint.stopwatch import Seconds

# A run that finds every file known, and most do, needs neither what checks nor what starts processes.
if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

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
_SAFE_PATH = "PYTHONSAFEPATH"


@dataclass(frozen=True)
class Mode:
    """What to do with the findings.

    Fixes are applied and written (``fix``), or shown as a diff, or neither. With ``noqa`` findings are
    silenced by comments instead, each with that reason, which may be empty. ``scopes`` are those of the
    files of which not everything counts. With ``timing`` it is measured where the time goes.
    """

    fix: bool = False
    diff: bool = False
    noqa: str | None = None
    scopes: Mapping[Path, Scope] = field(default_factory=dict)
    timing: bool = False

    def scope(self, path: Path) -> Scope:
        """What counts of the file at ``path``."""
        return self.scopes.get(path) or Scope()

    def only(self, paths: Iterable[Path]) -> Mode:
        """The same for these files alone, so that no process is told of the others."""
        return replace(self, scopes={path: self.scopes[path] for path in paths if path in self.scopes})

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
        return Mode(scopes=self.scopes)


@dataclass(frozen=True)
class Result:
    """What came of one file.

    ``diagnostics`` are those left; ``applied`` counts the fixes by code, made or, for a diff, shown;
    ``later`` are those of them that other fixes brought up, and ``settled`` what they made needless;
    ``diff`` is a unified diff or None; ``written`` says whether the file was changed on disk. ``known`` are
    the fingerprints of findings that the baseline holds, ``silenced`` counts the findings that got a
    comment. ``seconds`` is empty unless the time was measured.
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


@dataclass(frozen=True)
class _Item:
    """A file to treat.

    ``salt`` is what its key in the cache begins with, empty if there is no cache; ``root`` that of the
    project that it is part of, None if it is judged alone.
    """

    path: Path
    settings: LintSettings
    salt: bytes = b""
    root: Path | None = None


_Work = list[_Item]


@dataclass(frozen=True)
class _Outcome:
    """A result on its way to this process; with the bytes before and after fixing.

    ``key`` is that of the bytes that were checked, and ``found`` all that is left to find in them; without a
    key the result is not theirs. It may rest on the files of the project that were ``consulted``.
    """

    result: Result
    before: bytes = b""
    after: bytes | None = None
    key: str = ""
    found: tuple[Diagnostic, ...] = ()
    consulted: frozenset[Path] = frozenset()


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
    # Read before anything is checked: what changes from now on is another text to the next run.
    contents = Contents(mode.contents)
    work = _items(paths, settings, mode, known, layout_for, layouts, contents)
    results = [_known(item, mode, known, layouts, contents) for item in work]
    missing = [item for item, result in zip(work, results, strict=True) if result is None]
    outcomes = _outcomes(missing, mode, jobs, layouts, known)
    # What the files that are written by now held before.
    before: dict[Path, bytes] = {}
    if mode.writes:
        outcomes = _at_once(outcomes, len(missing), len(work), progress)
        progress = None
    try:
        for done, (item, result) in enumerate(zip(work, results, strict=True), start=1):
            if result is None:
                outcome = next(outcomes)
                if known is not None and outcome.key:
                    known.put(outcome.key, outcome.found, _trace(outcome, item, layouts, contents))
                result = _write(outcome, item, mode, layouts, before)
            yield result
            if progress is not None:
                progress(done, len(work))
    finally:
        outcomes.close()
        if known is not None:
            known.save()


def _at_once(
    outcomes: Generator[_Outcome, None, None], missing: int, work: int, progress: Progress | None
) -> Generator[_Outcome, None, None]:
    """The same outcomes, of which the first is there only once all of them are."""
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
    return _of_text(data, item, mode, around, known)


def _of_text(
    data: bytes, item: _Item, mode: Mode, around: Surroundings, known: Cache | None = None
) -> tuple[Result, Source | None]:
    path, settings = item.path, item.settings
    try:
        source = _source(data, path, settings.max_file_size)
    except SourceError as error:
        return Result(path, (_untreated(path, error),)), None
    if mode.only_looks:
        found = None if known is None else _recalled_text(known, data, item, around)
        if found is None:
            found = _found(source, settings, around.project(item.root))
        return _about(source, found, mode), source
    project = around.project(item.root)
    scope = mode.scope(path).within(source)
    if mode.noqa is not None:
        from torchlint import silencing

        quiet = silencing.silence(source, settings, scope, mode.noqa, project)
        result = Result(path, tuple(quiet.diagnostics), known=quiet.known, silenced=quiet.silenced)
        return result, quiet.source
    from torchlint import fixer

    fixed = fixer.fix(source, settings, scope, project)
    diff = difference(source, fixed.source) if mode.diff and fixed.applied else None
    result = Result(
        path,
        tuple(fixed.diagnostics),
        fixed.applied,
        diff,
        known=fixed.known,
        later=fixed.later,
        settled=fixed.settled,
    )
    return result, fixed.source


def _recalled_text(
    known: Cache, data: bytes, item: _Item, around: Surroundings
) -> tuple[Diagnostic, ...] | None:
    """What is known to be found in a text that counts as a file's."""
    salt, layout = known.salt(item.settings), around.layout(item.root)
    if layout is None:
        return _recalled_alone(known, salt, item.path, data)
    contents = Contents({item.path: data})
    return _recalled(known, contents.salt(salt, layout, item.path), item.path, layout, contents)


def _source(data: bytes, path: Path, most: int) -> Source:
    """What ``data`` says; of a notebook no more than ``most`` characters may be code, if that is not 0.

    Raises:
        SourceError: it is no text, or too large.
    """
    allowed = most_bytes(path, most)
    if most and len(data) > allowed:
        raise too_large(len(data), allowed)
    source = reading.from_bytes(data, path)
    if most and len(source.text) > most:
        size = len(source.text)
        raise SourceError(f"cannot read the file: it has {size} characters of code, and {most} are allowed")
    return source


def _found(source: Source, settings: LintSettings, project: Project | None) -> tuple[Diagnostic, ...]:
    from torchlint import checker

    return tuple(checker.check(source, settings, project=project))


def _about(source: Source, found: Sequence[Diagnostic], mode: Mode) -> Result:
    """The result of a file in which all of this was found: what of it the run is about."""
    left = mode.scope(source.path).within(source).sort_out(source, found)
    return Result(source.path, tuple(left.shown), known=left.known)


def difference(before: Source, after: Source) -> str:
    """The change of a file as a patch; of a notebook as one a cell, for people to read."""
    if not before.in_cells:
        return unified_diff(before, after.text)
    name = _shown(before.path)
    return "".join(
        _unified(f"{name}:cell {old.cell}", _ended(old.text), _ended(new.text))
        for old, new in zip(before.parts, after.parts, strict=True)
    )


def _ended(cell: str) -> str:
    """A cell whose last line ends as the others do; usually it does not, and is no less a line."""
    return cell if cell.endswith("\n") or not cell else f"{cell}\n"


def unified_diff(source: Source, text: str) -> str:
    """The change from ``source`` to ``text`` as a patch that ``patch -p0`` and ``git apply -p0`` read.

    Carriage returns and the byte order mark belong to the lines, as in the file.
    """
    mark = "\ufeff" if source.bom else ""
    return _unified(_shown(source.path), mark + source.text, mark + text)


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
    """The work on the files; the layouts of their projects are added to ``layouts`` by root."""
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
) -> Result | None:
    """The result of a file, if it is known and there is nothing to fix."""
    if known is None or not item.salt:
        return None
    try:
        if item.root is None:
            diagnostics = _recalled_alone(known, item.salt, item.path, _content(item, mode))
        else:
            diagnostics = _recalled(known, item.salt, item.path, layouts[item.root], contents)
        if diagnostics is None:
            return None
        result = Result(item.path, diagnostics)
        if diagnostics and item.path in mode.scopes:
            # What counts of a file changes from run to run; what is remembered is all that was found in it.
            result = _about(reading.from_bytes(_content(item, mode), item.path), diagnostics, mode)
    except SourceError:
        return None
    if mode.fix or mode.diff:
        from torchlint.fixer import applicable

        if any(applicable(found, item.settings) for found in result.diagnostics):
            return None
    return result


def _recalled_alone(known: Cache, salt: bytes, path: Path, data: bytes) -> tuple[Diagnostic, ...] | None:
    """What is known to be found in a file that holds ``data`` and is judged alone."""
    return known.get(cache.key(salt, path, sha256(data).digest()), path, len(data))


def _recalled(
    known: Cache, salt: bytes, path: Path, layout: Layout, contents: Contents
) -> tuple[Diagnostic, ...] | None:
    """What is known to be found in a file of a project, if all that it rests on is as it was."""
    own = contents.of(path)
    if own is None:
        return None
    return known.get(
        cache.key(salt, path, own.digest),
        path,
        own.size,
        lambda runs, digest: contents.holds(layout, Trace(runs, digest)),
    )


def _trace(
    outcome: _Outcome, item: _Item, layouts: Mapping[Path, Layout], contents: Contents
) -> Trace | None:
    """What a result rests on beside its file; None for one of a file alone."""
    return None if item.root is None else contents.trace(layouts[item.root], outcome.consulted)


def _content(item: _Item, mode: Mode) -> bytes:
    """The bytes to check: those of the file, unless the scope has others.

    Raises:
        SourceError: the file cannot be read.
    """
    content = mode.scope(item.path).content
    return (
        read_bytes(item.path, most_bytes(item.path, item.settings.max_file_size))
        if content is None
        else content
    )


def _treat(item: _Item, mode: Mode, around: Surroundings) -> _Outcome:
    """What comes of one file; never raises on account of the file."""
    if not mode.timing:
        return _treated(item, mode, around)
    with stopwatch.recording() as seconds:
        outcome = _treated(item, mode, around)
    return replace(outcome, result=replace(outcome.result, seconds=seconds))


def _treated(item: _Item, mode: Mode, around: Surroundings) -> _Outcome:
    path, settings = item.path, item.settings
    try:
        data = _content(item, mode)
        key = cache.key(item.salt, path, sha256(data).digest()) if item.salt else ""
        if mode.only_looks:
            source = _source(data, path, settings.max_file_size)
            found = _found(source, settings, around.project(item.root))
            consulted = around.consulted(item.root, path)
            return _Outcome(_about(source, found, mode), key=key, found=found, consulted=consulted)
        result, text = _of_text(data, item, mode, around)
        if text is not None and not (result.applied or result.silenced):
            whole = path not in mode.scopes
            consulted = around.consulted(item.root, path)
            return _Outcome(result, key=key if whole else "", found=result.diagnostics, consulted=consulted)
        if text is None or mode.diff:
            return _Outcome(result)
        try:
            return _Outcome(result, data, _encoded(data, text))
        except SourceError as error:
            return _Outcome(_unwritten(data, item, mode, around, error))
    except SourceError as error:
        return _Outcome(Result(path, (_untreated(path, error),)))
    except RegistryError:
        # Not a matter of this file: there are no rules to check any file with.
        raise
    except Exception as error:
        from torchlint import checker

        checker.log_failure(path, error)
        return _Outcome(_failed(path, f"checking {path.name} failed with {checker.describe(error)}"))


def _encoded(data: bytes, source: Source) -> bytes:
    """The bytes of the fixed text.

    Raises:
        SourceError: the codec does not give back what it read, and would change more than the fixes do.
    """
    original = reading.from_bytes(data, source.path)
    if original.to_bytes() != data:
        raise SourceError(f"cannot write the fixes: {source.encoding} does not give the same bytes back")
    return source.to_bytes()


def _write(
    outcome: _Outcome, item: _Item, mode: Mode, layouts: Mapping[Path, Layout], before: dict[Path, bytes]
) -> Result:
    """Write what was fixed; where that fails, say so together with all that is still to be fixed.

    What the file held is added to ``before``.
    """
    result = outcome.result
    if outcome.after is None:
        return result
    try:
        written = write_atomically(result.path, outcome.after, outcome.before)
    except StaleSourceError as error:
        return Result(result.path, (_untreated(result.path, error),))
    except SourceError as error:
        return _unwritten(outcome.before, item, mode, Surroundings(layouts, before), error)
    before[result.path] = outcome.before
    return replace(result, written=written)


def _unwritten(data: bytes, item: _Item, mode: Mode, around: Surroundings, error: SourceError) -> Result:
    result, _ = _of_text(data, item, mode.looking, around)
    return replace(result, diagnostics=(_untreated(item.path, error), *result.diagnostics))


def _untreated(path: Path, error: SourceError) -> Diagnostic:
    from torchlint.checker import SYNTAX_ERROR

    return _about_file(SYNTAX_ERROR, path, error.reason, error.position)


def _failed(path: Path, reason: str) -> Result:
    from torchlint.checker import CRASH

    return Result(path, (_about_file(CRASH, path, reason, Position(1, 1)),))


def _about_file(code: str, path: Path, message: str, place: Position) -> Diagnostic:
    """A diagnostic for a file whose text is not known."""
    from torchlint.checker import own_diagnostic

    diagnostic = own_diagnostic(code, Source(path, ""), Span(0, 0), message)
    return replace(diagnostic, start=place, end=place, noqa_row=place.row)


# --- many files ------------------------------------------------------------------------------------------


def _outcomes(
    work: _Work, mode: Mode, jobs: int, layouts: Mapping[Path, Layout], known: Cache | None
) -> Generator[_Outcome, None, None]:
    """What comes of each file, checked here or by workers."""
    sizes = [_size(item.path) for item in work]
    jobs = min(jobs or _processors(), _MOST_JOBS, len(work))
    if jobs > 1 and sum(sizes) > _WORTH_A_POOL:
        yield from _in_pool(work, sizes, mode, jobs, Surroundings(layouts, mode.contents))
    else:
        records = None if known is None else partial(_records, known)
        yield from _in_process(work, sizes, mode, Surroundings(layouts, mode.contents, records))


def _records(known: Cache) -> Records:
    """What earlier runs know of the files of projects."""
    from torchlint.project.records import Records

    return Records(known.facts, known.new_facts)


def _in_process(work: _Work, sizes: Sequence[int], mode: Mode, around: Surroundings) -> Iterator[_Outcome]:
    unswept = 0
    for item, size in zip(work, sizes, strict=True):
        yield _treat(item, mode, around)
        unswept += size
        unswept = _sweep(unswept)


_around = Surroundings()
"""What a worker knows of the projects that it checks files of: told once, and kept from chunk to chunk."""


def _treat_chunk(work: _Work, mode: Mode) -> list[_Outcome]:
    outcomes = [_treat(item, mode, _around) for item in work]
    _sweep(_SWEEP_BYTES)
    return outcomes


def _sweep(unswept: int) -> int:
    """Collect the garbage of checked files now and then: it is not done while a file is checked.

    ``unswept`` is the size of the source checked since; what is left of it is returned.
    """
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
    """The outcomes of a chunk; file by file, each in a process of its own, if its worker died."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        yield from future.result()
    except BrokenProcessPool:
        for item in chunk:
            with _pool(1, around) as lonely:
                try:
                    yield from _submit(lonely, [item], mode).result()
                except BrokenProcessPool:
                    yield _Outcome(_failed(item.path, f"the process that checked {item.path.name} died"))


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
    """Meanwhile processes are started, which do not look for modules in the working directory.

    Raises:
        PoolError: one cannot be started.
    """
    try:
        with _safe_path():
            yield
    except (OSError, EOFError) as error:
        # An end of file is the last that is heard of a process that was to start others.
        died = isinstance(error, (EOFError, ConnectionError))
        reason = "the one that starts them died" if died else getattr(error, "strerror", None) or str(error)
        raise PoolError(
            f"the processes that check files cannot be started: {reason}; `--jobs 1` needs none"
        ) from error


@contextmanager
def _safe_path() -> Iterator[None]:
    """Meanwhile no Python that this process starts looks for modules in the working directory.

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
