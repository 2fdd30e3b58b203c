"""Which lines of the project run, in this process and in those that it forks, such as loader workers.

With Python 3.12 and newer by ``sys.monitoring``, which costs next to nothing: a line tells of itself once.
With older ones by the interpreter's trace function, which is off while anything is looked at more closely.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_TOOL = 4
"""The number under which ``sys.monitoring`` knows this; it has a meaning for no other tool."""


class Lines:
    """Notes lines in a file that all processes append to."""

    def __init__(self, project: Path, path: Path) -> None:
        self._prefix, self._path = f"{project}/", path
        self._file = -1
        self.steps = 0
        """How many steps of the program are over."""
        self._seen: set[tuple[str, int]] = set()
        self._left: dict[CodeType, set[int]] = {}
        self._begun = BaseProcess.start
        self._elsewhere = False
        self._compiled = 0
        """How much of what this process compiled had nothing to do with the program."""

    def start(self) -> None:
        """Follow the program, the functions that already run included."""
        if self._file < 0:
            self._file = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            self._compiled = _compiled()
            self._watch_processes()
        if sys.version_info >= (3, 12):
            self._monitor()
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._wants(frame.f_code):
                frame.f_trace = self._line
            frame = frame.f_back
        threading.settrace(self._call)
        sys.settrace(self._call)

    def pause(self) -> None:
        """Leave the interpreter alone until the next ``start``, if it would be slower otherwise."""
        if sys.version_info < (3, 12):
            threading.settrace(None)
            sys.settrace(None)

    def found(self) -> dict[str, list[int]] | None:
        """Return the lines by file, relative to the project; None if some ran where nobody could see them.

        That is in processes that were not forked, and in what torch compiles.
        """
        if self._file < 0 or self._elsewhere or _compiled() != self._compiled:
            return None
        found: dict[str, list[int]] = {}
        for _, row, file in self._noted():
            found.setdefault(file, []).append(row)
        return found

    def news(self) -> list[tuple[int, str, int]]:
        """Return the number of each step in which a line ran for the first time, with the first such line."""
        found: dict[int, tuple[int, str, int]] = {}
        if self._file >= 0:
            for steps, row, file in self._noted():
                found.setdefault(steps, (steps + 1, file, row))
        return list(found.values())

    def _noted(self) -> Iterator[tuple[int, int, str]]:
        for line in self._path.read_text(encoding="utf-8").splitlines():
            steps, row, file = line.split(" ", 2)
            yield int(steps), int(row), file

    def _note(self, code: CodeType, row: int) -> None:
        file = code.co_filename.removeprefix(self._prefix)
        if (file, row) not in self._seen:
            self._seen.add((file, row))
            os.write(self._file, f"{self.steps} {row} {file}\n".encode())

    def _ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._prefix)

    def _watch_processes(self) -> None:
        begun = self._begun

        def start(process: Any) -> None:
            method = process._start_method or multiprocessing.get_start_method()
            self._elsewhere |= method != "fork"
            begun(process)

        BaseProcess.start = start  # type: ignore[method-assign, assignment]

    if sys.version_info >= (3, 12):

        def _monitor(self) -> None:
            watch = sys.monitoring
            if watch.get_tool(_TOOL) is not None:
                return
            watch.use_tool_id(_TOOL, "torchlint")

            def begins(code: CodeType, offset: int) -> Any:
                if self._ours(code):
                    watch.set_local_events(_TOOL, code, watch.events.LINE)
                return watch.DISABLE

            def line(code: CodeType, row: int) -> Any:
                self._note(code, row)
                return watch.DISABLE

            watch.register_callback(_TOOL, watch.events.PY_START, begins)
            watch.register_callback(_TOOL, watch.events.LINE, line)
            watch.set_events(_TOOL, watch.events.PY_START)

    def _wants(self, code: CodeType) -> bool:
        """Return whether there are lines of a function that have not run yet."""
        if not self._ours(code):
            return False
        if code not in self._left:
            self._left[code] = {row for *_, row in code.co_lines() if row is not None}
        return bool(self._left[code])

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if self._wants(frame.f_code) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._note(frame.f_code, frame.f_lineno)
            self._left[frame.f_code].discard(frame.f_lineno)
        return self._line if self._left[frame.f_code] else None


def _compiled() -> int:
    """Return a number that grows whenever torch compiles a function of Python into a form of its own."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    traced = sum(sum(counter.values()) for counter in dynamo.counters.values()) if dynamo is not None else 0
    state, recursive = (sys.modules.get(f"torch.jit.{name}") for name in ("_state", "_recursive"))
    if state is None or recursive is None:
        return traced
    return traced + len(state._jit_caching_layer) + len(recursive.concrete_type_store.type_store)
