"""What part of a run counts: the lines of a change, and what the baseline does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from torchlint import reading
from torchlint.commands import Failure
from torchlint.diagnostics import UNTREATED, Impact
from torchlint.files import absolute
from torchlint.options import Options
from torchlint.render.report import plural
from torchlint.scope import Advice

if TYPE_CHECKING:
    from torchlint.baseline import Baseline
    from torchlint.changes import Changes
    from torchlint.diagnostics import Diagnostic
    from torchlint.scope import Scope
    from torchlint.source import Source


class Outcome(Protocol):
    """What of a run's outcome decides over the baseline."""

    diagnostics: list[Diagnostic]
    known: dict[Path, frozenset[str]]
    silenced: int


class Adoption:
    """The options about changes, the baseline, added comments and impact, followed for one run.

    Attributes:
        impact: the least that counts.
        advice: what is done with advice; with ``alone`` only that is told.

    Raises:
        click.UsageError: they contradict each other.
        Failure: the baseline cannot be read, or git cannot say what changed.
    """

    def __init__(self, chosen: Options, directory: Path, *, stdin: bool, alone: bool = False) -> None:
        _check(chosen, stdin=stdin)
        # A baseline holds everything, whatever later runs report.
        everything = chosen.update_baseline
        self.impact = Impact.LOW if everything else chosen.least
        self.advice = Advice.COUNTED if everything else Advice(chosen.advice)
        if alone:
            self.advice = Advice.ALONE
        self._chosen = chosen
        self._directory = directory
        self._baseline = _baseline(chosen)
        self._changes = _changes(chosen, directory)

    def narrowed(self, files: tuple[Path, ...], warn: Callable[[str], None]) -> tuple[Path, ...]:
        """Return those of ``files`` that the change touches.

        Raises:
            Failure: fixes would have to be made in files that are not as they are staged.
        """
        changes = self._changes
        if changes is None:
            return files
        outside = sum(not changes.covers(path) for path in files)
        if outside:
            warn(f"{plural(outside, 'file')} outside the repository {changes.top} skipped")
        for path in changes.missing:
            if path.suffix in (".py", ".pyw", ".ipynb"):
                warn(f"{path} is staged but missing from the working tree, and was not checked")
        for path in files:
            # It may be one that the change removes.
            if path not in changes.missing and not path.exists():
                warn(f"{path} does not exist, and was not checked")
        touched = tuple(path for path in files if changes.of(path) is not None)
        chosen = self._chosen
        if chosen.writes or chosen.add_noqa is not None:
            for path in touched:
                changed = changes.of(path)
                if changed is not None and changed.content is not None:
                    flag = "--fix" if chosen.writes else "--add-noqa"
                    raise Failure(
                        f"{flag} cannot change what is staged of {path}, which has changes that are not "
                        "staged; stage or stash them, or leave out --staged"
                    )
        return touched

    def scopes(self, files: Sequence[Path]) -> Mapping[Path, Scope]:
        """Return what counts of each of ``files`` of which not everything does."""
        baseline = None if self._chosen.update_baseline else self._baseline
        if baseline is None and self._changes is None:
            return {}
        from torchlint.scope import Scope

        found = {}
        for path in files:
            changed = self._changes.of(path) if self._changes else None
            known = baseline.known(path) if baseline else frozenset[str]()
            root = baseline.root if baseline else Path()
            if changed is not None:
                found[path] = Scope(changed.rows, known, root, changed.content)
            elif known:
                found[path] = Scope(None, known, root)
        return found

    def content(self, path: Path) -> bytes | None:
        """Return what is staged of a file that is something else in the working tree; None for any other."""
        changed = self._changes.of(path) if self._changes else None
        return None if changed is None else changed.content

    def sources(self, files: Iterable[Path]) -> Mapping[Path, Source]:
        """Return the texts of those files that are not checked as they lie in the working tree."""
        from torchlint.source import SourceError

        found = {}
        for path in files:
            content = self.content(path)
            if content is None:
                continue
            try:
                found[path] = reading.from_bytes(content, path)
            except SourceError:
                continue
        return found

    def conclude(
        self,
        outcome: Outcome,
        looked_for: Callable[[Path], Collection[str]],
        source: Callable[[Path], Source | None],
    ) -> str:
        """Write the baseline if that is wanted; what there is to say of it and of added comments.

        ``looked_for`` gives the codes of the rules that a file was checked with. What is written to the
        baseline is no longer part of the outcome.
        """
        told = ""
        if self._chosen.add_noqa is not None:
            told += f"{plural(outcome.silenced, 'finding')} silenced by comments.\n"
        if self._baseline is None or self._chosen.ignore_baseline:
            return told
        untreated = {item.path for item in outcome.diagnostics if item.code in UNTREATED}
        judged = {path: looked_for(path) for path in outcome.known if path not in untreated}
        if self._chosen.update_baseline:
            return told + self._update(self._baseline, outcome, judged, source)
        return told + self._left(self._baseline, outcome, judged)

    def _left(self, baseline: Baseline, outcome: Outcome, judged: Mapping[Path, Collection[str]]) -> str:
        held = sum(map(len, outcome.known.values()))
        gone = sum(
            entry.code in codes and entry.fingerprint not in outcome.known[path]
            for path, codes in judged.items()
            for entry in baseline.of(path)
        )
        told = f"{plural(held, 'finding')} listed in the baseline not shown.\n" if held else ""
        if gone:
            told += f"{plural(gone, 'finding')} in the baseline no longer found; "
            told += "run with `--update-baseline` to remove them.\n"
        return told

    def _update(
        self,
        baseline: Baseline,
        outcome: Outcome,
        judged: Mapping[Path, Collection[str]],
        source: Callable[[Path], Source | None],
    ) -> str:
        from torchlint.baseline import BaselineError, entries
        from torchlint.fingerprints import relative

        by_path: defaultdict[Path, list[Diagnostic]] = defaultdict(list)
        for item in outcome.diagnostics:
            by_path[item.path].append(item)
        found = [
            entry
            for path, diagnostics in by_path.items()
            if path in judged and (text := source(path)) is not None
            for entry in entries(text, diagnostics, baseline.root)
        ]
        updated = baseline.updated(judged, found)
        try:
            updated.write()
        except BaselineError as error:
            raise Failure(str(error)) from None
        outcome.diagnostics = [
            item for item in outcome.diagnostics if item.code in UNTREATED or item.path not in judged
        ]
        added, taken = len(updated.entries - baseline.entries), len(baseline.entries - updated.entries)
        shown = relative(baseline.path, self._directory)
        counts = f"{added} added, {taken} removed"
        return f"Wrote {plural(len(updated.entries), 'finding')} ({counts}) to {shown}.\n"


def _baseline(chosen: Options) -> Baseline | None:
    if chosen.baseline is None:
        return None
    from torchlint.baseline import Baseline, BaselineError
    from torchlint.source import exists

    path = absolute(chosen.baseline)
    if chosen.ignore_baseline or (chosen.update_baseline and not exists(path)):
        return Baseline(path)
    try:
        return Baseline.read(path)
    except BaselineError as error:
        raise Failure(f"{error}{'' if exists(path) else '; `--update-baseline` creates it'}") from None


def _changes(chosen: Options, directory: Path) -> Changes | None:
    if chosen.changed_since is None and not chosen.staged:
        return None
    from torchlint import changes

    try:
        if chosen.changed_since is None:
            return changes.staged(directory)
        return changes.since(chosen.changed_since, directory)
    except changes.ChangesError as error:
        raise Failure(str(error)) from None


def _check(chosen: Options, *, stdin: bool) -> None:
    """Raise for options that do not go together."""
    given = {
        "--changed-since": chosen.changed_since is not None,
        "--staged": chosen.staged,
        "--update-baseline": chosen.update_baseline,
        "--add-noqa": chosen.add_noqa is not None,
    }
    if chosen.changed_since == "":
        raise click.UsageError("--changed-since requires a commit, branch or tag")
    if chosen.update_baseline and chosen.baseline is None:
        raise click.UsageError("--update-baseline requires --baseline FILE, or `baseline` in a config file")
    if chosen.update_baseline and chosen.ignore_baseline:
        raise click.UsageError("--update-baseline and --ignore-baseline cannot be combined")
    if chosen.add_noqa is not None and len(chosen.add_noqa.splitlines()) > 1:
        raise click.UsageError("--add-noqa: the reason must be a single line")
    if chosen.add_noqa is not None and chosen.require_suppression_reason and not chosen.add_noqa.strip():
        raise click.UsageError("--add-noqa: `require-suppression-reason` requires a reason")
    if stdin and any(given.values()):
        flag = next(flag for flag, is_given in given.items() if is_given)
        raise click.UsageError(f"{flag} does not work with standard input")
    fixing = chosen.fix or chosen.fix_only or chosen.diff
    together = [
        ("--changed-since", "--staged"),
        ("--changed-since", "--update-baseline"),
        ("--staged", "--update-baseline"),
        ("--add-noqa", "--update-baseline"),
    ]
    for one, other in together:
        if given[one] and given[other]:
            raise click.UsageError(f"{one} and {other} cannot be combined")
    if given["--add-noqa"] and chosen.ignore_noqa:
        raise click.UsageError("--add-noqa and --ignore-noqa cannot be combined")
    if given["--add-noqa"] and fixing:
        raise click.UsageError("--add-noqa cannot be combined with --fix, --fix-only or --diff")
    if chosen.update_baseline and chosen.diff:
        raise click.UsageError("--update-baseline and --diff cannot be combined")
