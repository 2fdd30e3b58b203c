"""``check --watch``: check all files, and again those that change, until interrupted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from torchlint import target
from torchlint.cache import Cache
from torchlint.commands import Failure, not_installed
from torchlint.commands.terminal import Terminal
from torchlint.config import FILE_NAMES, ConfigError
from torchlint.files import IGNORE_FILES
from torchlint.options import EXCLUDED, INCLUDED, LintSettings
from torchlint.runner import LayoutFor, Mode, Progress, Result
from torchlint.source import State, state_of

# What says how files are to be checked, and which.
_DECIDING = frozenset({*FILE_NAMES, *target.FILES, *IGNORE_FILES})
_USUALLY_LEFT_OUT = frozenset(EXCLUDED.split())
_PATIENCE = 500
"""Milliseconds after which config files outside of the watched directories are looked at again."""


class Memory:
    """The results of files, each good for as long as the file and its settings stay as they are."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places
        self._kept: dict[Path, tuple[State, LintSettings, Mode, Result]] = {}
        self._projects: dict[Path, dict[Path, State]] = {}

    def run(
        self,
        paths: Sequence[Path],
        settings: Mapping[Path, LintSettings],
        mode: Mode,
        jobs: int,
        progress: Progress,
        known: Cache | None = None,
        layout_for: LayoutFor | None = None,
    ) -> Iterator[Result]:
        """Do what `runner.run` does, except that files of which the result is known are not checked again.

        A change of one file makes all results of its project uncertain.
        """
        from torchlint import runner

        states = {path: state_of(path) for path in paths}
        changed = self._changed_projects(paths, layout_for)
        stale = [
            path
            for path in paths
            if not self._knows(path, states[path], settings[path], mode) or changed.get(path)
        ]
        self._kept = {path: kept for path, kept in self._kept.items() if path in states}
        results = runner.run(stale, settings, mode, jobs, progress, known, layout_for)
        unknown = set(stale)
        for path in paths:
            if path in unknown:
                result = next(results)
                # What torchlint wrote itself is no change, and was told of once.
                state = state_of(path) if result.written else states[path]
                told = _of_now(result) if result.written else result
                self._kept[path] = state, settings[path], mode, told
                yield result
            else:
                yield self._kept[path][3]

    def _changed_projects(self, paths: Sequence[Path], layout_for: LayoutFor | None) -> dict[Path, bool]:
        """Return for each path whether a file of its project came,
        went or changed since this was last asked.
        """
        states: dict[Path, dict[Path, State]] = {}
        found = {}
        for path in paths:
            layout = None if layout_for is None else layout_for(path)
            if layout is None:
                continue
            if layout.root not in states:
                states[layout.root] = {file: state_of(file) for file in layout.every}
            found[path] = states[layout.root] != self._projects.get(layout.root)
        self._projects = states
        return found

    @property
    def surroundings(self) -> Iterator[Path]:
        """The files of the projects of what was checked."""
        for states in self._projects.values():
            yield from states

    def _knows(self, path: Path, state: State, settings: LintSettings, mode: Mode) -> bool:
        return path in self._kept and self._kept[path][:3] == (state, settings, mode)

    def concerned(self, path: Path) -> bool:
        """Return whether a change of ``path`` can change what there is to report."""
        if path.name in _DECIDING or path.name.startswith("requirements"):
            return True
        if path in self._kept:
            return self._kept[path][0] != state_of(path)
        for states in self._projects.values():
            if path in states:
                return states[path] != state_of(path)
        holds = any(path in known.parents for known in self._kept)
        if path.is_dir() or not path.exists():
            # A directory that came or went; what torchlint writes beside a file is gone by now.
            return path.is_dir() is not holds
        around = (*self._places, *self._projects)
        below = [path.relative_to(place) for place in around if path.is_relative_to(place)]
        if path not in self._places and all(_USUALLY_LEFT_OUT & set(inside.parts) for inside in below):
            return False
        suffixes = {Path(pattern).suffix for pattern in INCLUDED} | {known.suffix for known in self._kept}
        for _, settings, *_ in self._kept.values():
            suffixes.update(f".{suffix}" for suffix, _ in settings.extension)
        return path.suffix in suffixes


def rounds(places: Sequence[Path], others: Callable[[], Iterable[Path]], memory: Memory) -> Iterator[None]:
    """Yield at once, and again whenever something has changed that is of concern.

    ``places`` are the files and directories that are checked; ``others`` gives the files elsewhere that say
    how.

    Raises:
        Failure: the library that watches is not installed, or the system cannot watch so much.
    """
    try:
        import watchfiles
    except ImportError as error:
        raise not_installed("`--watch`", "watchfiles", "watch") from error

    directories = {place if place.is_dir() else place.parent for place in places}
    watched = watchfiles.watch(
        *sorted(directory for directory in directories if directory.is_dir()),
        watch_filter=None,
        rust_timeout=_PATIENCE,
        yield_on_timeout=True,
        recursive=any(place.is_dir() for place in places),
    )
    try:
        # From the first answer on no change is missed, not even one that is made during the first round.
        batch = next(watched)
        while True:
            yield
            states = {path: state_of(path) for path in others()}
            for batch in watched:
                changed = any(memory.concerned(Path(path)) for _, path in batch)
                if changed or states != {path: state_of(path) for path in states}:
                    break
    except OSError as error:
        raise Failure(f"cannot watch the files: {error}; WATCHFILES_FORCE_POLLING=1 may help") from error


def deciding(places: Iterable[Path], configs: Iterable[Path]) -> list[Path]:
    """Return the files around ``places`` that say, or could come to say, how and which files are checked."""
    directories: dict[Path, None] = {}
    for place in places:
        for directory in (place, *place.parents):
            directories[directory] = None
            if (directory / ".git").exists():
                break
    return [*configs, *(directory / name for directory in directories for name in sorted(_DECIDING))]


def follow(check: Callable[[], None], terminal: Terminal, steps: Iterator[None]) -> None:
    """Run ``check`` at each step; it is told on standard error that more may come."""
    for number, _ in enumerate(steps):
        target.forget()
        if number:
            terminal.clear()
        try:
            check()
        except click.exceptions.Exit:
            pass
        except ConfigError as error:
            # The first round fails as without --watch; later somebody may be in the middle of writing it.
            if not number:
                raise
            Failure(str(error)).show(color=terminal.color)
        if not terminal.quiet:
            terminal.err("Watching for changes. Press Ctrl-C to stop.\n")


def _of_now(result: Result) -> Result:
    """Return what is left of a file, without what was done to get there."""
    nothing = Counter[str]()
    return replace(result, applied=nothing, later=nothing, settled=nothing, written=False)
