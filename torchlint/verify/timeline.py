"""One step before and after the fixes as trace events, for Perfetto and ``chrome://tracing``.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from torchlint import __version__
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic
from torchlint.source import Source
from torchlint.verify.variants import SettingsFor
from torchlint.verify.worker.job import ANCHOR

BEFORE, AFTER = "before", "after"
"""The two groups of tracks."""
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
"""The categories of what runs on the device."""
_KINDS = ("X", "s", "f")
"""Events with a duration, and the two ends of an arrow from a launch to what it starts."""


@dataclass(frozen=True)
class Recording:
    """What one variant's process wrote of a step, or why it did not."""

    name: str
    """``BEFORE`` or ``AFTER``."""
    step: int = 0
    """Its number, from 1."""
    missing: str = ""
    """Why nothing was recorded; empty if something was."""
    found: Mapping[str, Any] = field(default_factory=dict)
    """As ``worker.timeline.Recording`` writes it."""


def trace(
    recordings: Sequence[Recording],
    sources: Mapping[str, Mapping[PurePosixPath, Source]],
    settings_for: SettingsFor,
) -> str:
    """Return the text of the file, with torchlint's findings on a track of their own where their lines ran.

    ``sources`` has the files of the program by the names of the recordings. Both steps begin at 0. Findings
    whose lines did not run in the step are listed with the step.
    """
    events: list[dict[str, Any]] = []
    for number, recording in enumerate(recordings, start=1):
        if not recording.missing:
            findings = {
                str(path): check(source, settings_for(source))
                for path, source in sources[recording.name].items()
            }
            events += _Group(number, recording, findings).events()
    told = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"torchlint": __version__}}
    return json.dumps(told, separators=(",", ":")) + "\n"


class _Group:
    """The tracks of one variant: a process, to those who show it."""

    def __init__(
        self, number: int, recording: Recording, findings: Mapping[str, Sequence[Diagnostic]]
    ) -> None:
        self._number, self._recording, self._findings = number, recording, findings
        self._begin: float = recording.found["begin"]
        self._end: float = recording.found["end"]
        self._tracks: dict[tuple[int, str, str], int] = {}

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield all events: the marks first, then what was recorded, then the names of the tracks."""
        marks, silent = self._marks()
        yield from marks
        found = [event for event in self._recording.found["events"] if event.get("ph") in _KINDS]
        # The step begins in the thread that the anchor is an event of.
        main = next((event["tid"] for event in found if event["ts"] == self._begin), None)
        step = self._slice(f"step {self._recording.step}", self._begin, self._end, self._track(1, "host", ""))
        yield {**step, "args": {"findings whose lines did not run in this step": silent} if silent else {}}
        for event in found:
            moved = self._moved(event, main)
            if moved is not None:
                yield moved
        yield self._names("process_name", 0, {"name": self._recording.name})
        yield self._names("process_sort_index", 0, {"sort_index": self._number})
        for place, (track, tid) in enumerate(sorted(self._tracks.items())):
            yield self._names("thread_name", tid, {"name": " ".join(track[1:]).strip()})
            yield self._names("thread_sort_index", tid, {"sort_index": place})

    def _marks(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return a slice for each time that the lines of a finding ran,
        and the findings whose lines did not.
        """
        marks: list[dict[str, Any]] = []
        silent = []
        for file, items in self._findings.items():
            for item in items:
                name = f"{item.code} {file}:{item.start.row}"
                rows = range(item.start.row, item.end.row + 1)
                ran: list[list[float]] = []
                for path, row, begin, end in self._recording.found["spans"]:
                    if path != file or row not in rows:
                        continue
                    if ran and ran[-1][1] == begin:
                        # The next line of the same expression.
                        ran[-1][1] = end
                    else:
                        ran.append([begin, end])
                if not ran:
                    silent.append(f"{name}: {item.message}")
                    continue
                track = self._track(0, "torchlint", "findings")
                marks += [
                    {**self._slice(name, begin, end, track), "args": {"message": item.message}}
                    for begin, end in ran
                ]
        return marks, silent

    def _moved(self, event: Mapping[str, Any], main: Any) -> dict[str, Any] | None:
        """Return an event of the profiler on a track of this group; None if it is not of the step."""
        begin = event["ts"]
        if isinstance(event["pid"], str) or begin < self._begin or event["name"] == ANCHOR:
            return None
        on_device = event.get("cat") in _DEVICE or (event["ph"] == "f" and event.get("cat") == "ac2g")
        if not on_device and begin > self._end:
            return None
        if on_device:
            track = self._track(3, f"GPU {event['pid']}", f"stream {event['tid']}")
        elif event["tid"] == main:
            track = self._track(1, "host", "")
        else:
            track = self._track(2, "host", f"thread {event['tid']}")
        moved = {**event, "pid": self._number, "tid": track, "ts": round(begin - self._begin, 3)}
        if "dur" in event and not on_device:
            moved["dur"] = round(min(event["dur"], self._end - begin), 3)
        if "id" in event:
            moved["id"] = f"{self._recording.name} {event['id']}"
        return moved

    def _track(self, kind: int, name: str, detail: str) -> int:
        """Return the number of a track, which no other has in either group."""
        return self._tracks.setdefault((kind, name, detail), self._number * 1000 + len(self._tracks))

    def _slice(self, name: str, begin: float, end: float, track: int) -> dict[str, Any]:
        times = {"ts": round(begin - self._begin, 3), "dur": round(end - begin, 3)}
        return {"ph": "X", "cat": "torchlint", "name": name, "pid": self._number, "tid": track, **times}

    def _names(self, what: str, track: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": self._number, "tid": track, "args": args}
