"""The findings of each open text: checked once for each version, and not to the end for a version gone by."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from torchlint import checker
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.server import jobs
from torchlint.server.worker import Worker, WorkerError
from torchlint.source import Source


class OvertakenError(Exception):
    """The check was abandoned: the text is another by now, or closed."""


@dataclass(frozen=True)
class Checked:
    """A text and what was found in it."""

    source: Source
    settings: LintSettings | None
    diagnostics: tuple[Diagnostic, ...] = ()


class Checks:
    """Asks the worker, and keeps the last answer for each URI."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        # The texts in which something was found when they were last checked.
        self._with_findings: set[str] = set()
        self._tasks: dict[str, tuple[Source, LintSettings | None, asyncio.Task[Checked]]] = {}

    async def of(self, uri: str, source: Source, settings: LintSettings | None) -> Checked:
        """What is found in a text; nothing without settings. A check of an earlier text is abandoned.

        Raises:
            OvertakenError: this check was abandoned.
        """
        known = self._tasks.get(uri)
        if known is None or known[:2] != (source, settings) or known[2].cancelled():
            self.forget(uri)
            task = asyncio.create_task(self._check(uri, source, settings))
            self._tasks[uri] = known = (source, settings, task)
        try:
            # Others may wait for the same.
            return await asyncio.shield(known[2])
        except asyncio.CancelledError:
            if known[2].cancelled():
                raise OvertakenError from None
            raise

    def forget(self, uri: str) -> None:
        """Abandon the check of a text, and drop what was found in it."""
        known = self._tasks.pop(uri, None)
        if known is not None:
            known[2].cancel()

    async def _check(self, uri: str, source: Source, settings: LintSettings | None) -> Checked:
        if settings is None:
            return Checked(source, settings)
        try:
            found = await self._worker.do(jobs.check, source, settings, uri in self._with_findings)
        except WorkerError as error:
            found = (checker.crash(source, f"checking {source.path.name} failed: {error}"),)
        # A text that is no program for a while has the findings from before once it is one again.
        if not any(item.code == checker.SYNTAX_ERROR for item in found):
            (self._with_findings.add if found else self._with_findings.discard)(uri)
        return Checked(source, settings, found)
