"""The findings of each open text: checked once for each version, and not to the end for a version gone by."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from torchlint import checker
from torchlint.diagnostics import Diagnostic, Span
from torchlint.options import LintSettings
from torchlint.server import jobs
from torchlint.server.documents import Program
from torchlint.server.surroundings import Surroundings
from torchlint.server.worker import Worker, WorkerError
from torchlint.source import SourceError, too_large


class OvertakenError(Exception):
    """The check was abandoned: the text is another by now, or closed."""


@dataclass(frozen=True)
class Checked:
    """A program and what was found in it, with what is ``around`` it; nothing without settings."""

    program: Program
    settings: LintSettings | None
    around: Surroundings | None
    diagnostics: tuple[Diagnostic, ...] = ()


_Question = tuple[Program, LintSettings | None, Surroundings | None]


class Checks:
    """Asks the worker, and keeps the last answer for each program."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        # The programs in which something was found when they were last checked.
        self._with_findings: set[str] = set()
        self._tasks: dict[str, tuple[_Question, asyncio.Task[Checked]]] = {}

    async def of(
        self, program: Program, settings: LintSettings | None, around: Surroundings | None = None
    ) -> Checked:
        """Return what is found in a program. A check of an earlier version of it is abandoned.

        Raises:
            OvertakenError: this check was abandoned.
        """
        known = self._tasks.get(program.uri)
        asked = program, settings, around
        if known is None or known[0] != asked or known[1].cancelled():
            self.abandon(program.uri)
            task = asyncio.create_task(self._check(*asked))
            self._tasks[program.uri] = known = asked, task
        try:
            # Others may wait for the same.
            return await asyncio.shield(known[1])
        except asyncio.CancelledError:
            if known[1].cancelled():
                raise OvertakenError from None
            raise

    def abandon(self, uri: str) -> None:
        """End the check of a program, if one goes on."""
        known = self._tasks.get(uri)
        if known is not None:
            known[1].cancel()

    def forget(self, uri: str) -> None:
        """End the check of a program, and drop what was found in it."""
        self.abandon(uri)
        self._tasks.pop(uri, None)
        self._with_findings.discard(uri)

    async def _check(
        self, program: Program, settings: LintSettings | None, around: Surroundings | None
    ) -> Checked:
        if settings is None:
            return Checked(program, settings, around)
        source, uri = program.source, program.uri
        refused = oversized(program, settings)
        if refused is not None:
            told = checker.own_diagnostic(checker.SYNTAX_ERROR, source, Span(0, 0), refused.reason)
            return Checked(program, settings, around, (told,))
        try:
            found = await self._worker.do(
                jobs.check, source, settings, around, uri, uri in self._with_findings
            )
        except WorkerError as error:
            found = (checker.crash(source, f"checking {source.path.name} failed: {error}"),)
        # A text that is no program for a while has the findings from before once it is one again.
        if not is_broken(found):
            (self._with_findings.add if found else self._with_findings.discard)(uri)
        return Checked(program, settings, around, found)


def is_broken(found: Iterable[Diagnostic]) -> bool:
    """Return whether a text is no program."""
    return any(item.code == checker.SYNTAX_ERROR for item in found)


def oversized(program: Program, settings: LintSettings) -> SourceError | None:
    """Return why a program is not checked, if it is larger than the settings allow."""
    text, most = program.source.text, settings.max_file_size
    # Of a notebook the code counts; of a file the bytes, which are four for a character at most.
    size = len(text)
    if size * 4 > most and not program.source.in_cells:
        size = len(text.encode("utf-8", "surrogatepass"))
    return too_large(size, most) if most and size > most else None
