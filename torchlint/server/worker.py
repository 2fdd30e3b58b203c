"""The process in which files are checked, and the handle that the server has on it.

A check is pure computing for a tenth of a second and more. In a thread of the server it would hold up
every answer to the editor, and a program that brings the parser down would bring down the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from torchlint.orphans import end_with_parent

Result = TypeVar("Result")
Pulse = Callable[[], None]

# A check that takes longer is taken to have no end, in seconds.
PATIENCE = 60.0
# Without work for so long, in seconds, the process looks for garbage, which it does not do during checks.
_IDLE = 1.0

_log = logging.getLogger("torchlint")


class WorkerError(Exception):
    """A file could not be worked on; the message is one sentence without a full stop."""


class _Abandoned(BaseException):
    """Nobody wants the result any more."""


class Worker:
    """One process that does one thing after another, started when there is something to do."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._abandoned = self._context.Value("q", 0, lock=False)
        self._numbers = itertools.count(1)
        # The thread that talks to the process, and waits for it.
        self._thread = ThreadPoolExecutor(1, "torchlint-worker")
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def warm_up(self) -> None:
        """Start the process, which takes a second, before there is something to do."""
        self._thread.submit(self._started)

    async def do(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Return what ``function(*arguments, pulse)`` returns in the process.

        ``pulse`` raises once the caller of ``do`` is cancelled; the function calls it now and then. The
        function is found by its name, and what goes in and comes out must be picklable.

        Raises:
            WorkerError: the function failed, or the process died or did not answer.
        """
        number = next(self._numbers)
        future: Future[Result] = self._thread.submit(self._exchange, number, function, arguments)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancelled():
                self._abandoned.value = number
            raise

    def stop(self) -> None:
        """End the process; nothing more can be done."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._end()

    def _exchange(
        self, number: int, function: Callable[..., Result], arguments: tuple[object, ...]
    ) -> Result:
        try:
            connection = self._started()
            connection.send((number, function, arguments))
            if not connection.poll(PATIENCE):
                self._end()
                raise WorkerError(f"no answer within {PATIENCE:.0f} seconds")
            failure, result = connection.recv()
        except (EOFError, OSError) as error:
            self._end()
            raise WorkerError("the process that checks files died") from error
        if failure:
            raise WorkerError(failure)
        answer: Result = result
        return answer

    def _started(self) -> Connection:
        if self._connection is not None and self._process is not None and self._process.is_alive():
            return self._connection
        self._end()
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._abandoned), daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, ours
        return ours

    def _end(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None:
            # Whoever waits for an answer wakes up by that, and not by the end of the connection.
            process.kill()
            process.join(1)
        if connection is not None:
            connection.close()


def _serve(connection: Connection, abandoned: Any) -> None:
    """Answer requests until the server closes its end; the life of the process."""
    end_with_parent()
    _leave_streams_alone()
    _prepare()
    idle = False
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            if not idle and not connection.poll(_IDLE):
                gc.collect()
                idle = True
            number, function, arguments = connection.recv()
            connection.send(_answer(number, function, arguments, abandoned))
            idle = False


def _answer(
    number: int, function: Callable[..., object], arguments: tuple[object, ...], abandoned: Any
) -> tuple[str, object]:
    def pulse() -> None:
        if abandoned.value == number:
            raise _Abandoned

    try:
        pulse()
        return "", function(*arguments, pulse)
    except _Abandoned:
        return "abandoned", None
    except Exception as error:
        from torchlint.checker import describe

        _log.exception("a request failed")
        return f"it failed with {describe(error)}", None


def _leave_streams_alone() -> None:
    """Leave standard input and output to the editor; whatever prints here prints to standard error."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)


def _prepare() -> None:
    """Import what checks need, and let the collector forget it."""
    from torchlint import checker, registry
    from torchlint.options import LintSettings
    from torchlint.source import Source

    with contextlib.suppress(registry.RegistryError):
        everything = LintSettings(rules=tuple(registry.rules()))
        checker.check(Source(Path(), "import torch\n"), everything, screen=False)
    gc.collect()
    gc.freeze()
