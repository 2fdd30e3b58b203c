"""One step before and after the fixes: as trace events for Perfetto and ``chrome://tracing``, and in brief.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from torchlint import __version__
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic
from torchlint.source import Source
from torchlint.verify.results import Slice, Timeline, Total, Track, TrackKind
from torchlint.verify.variants import SettingsFor
from torchlint.verify.worker.job import ANCHOR

BEFORE, AFTER = "before", "after"
"""The two groups of tracks."""
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
"""The categories of what runs on the device."""
_KINDS = ("X", "s", "f")
"""Events with a duration, and the two ends of an arrow from a launch to what it starts."""
_CALLS = ("cuda_runtime", "cuda_driver")
"""The categories of what the host asks of the device."""
_WAITS = ("Synchronize",)
_GRAINS = 300
"""The places of a figure that can be told apart: what is shorter is put together,"""
_WIDEST = 4
"""to at most so many of them."""
_LONGEST = 5
"""How many names of a track are listed."""
_WHOLE = 0.95
"""The share of a step from which on a line stands for all of it."""
_LENGTH = 100
"""The characters of a name that are kept."""


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
    """As ``worker.timeline.Recording`` writes it, with some steps."""
    chosen: int = 0
    """Which of these it is about; ``step`` is the number of this one."""


def steadiest(recordings: Sequence[Recording]) -> list[Recording]:
    """Return recordings of the same steps, each about the one of them that least disturbed all.

    What else goes on in the machine makes a step longer, and never shorter.
    """
    lengths = [
        [end - begin for begin, end in recording.found["steps"]]
        for recording in recordings
        if not recording.missing
    ]
    common = range(min(map(len, lengths), default=1))
    chosen = min(common, key=lambda number: sum(found[number] / min(found) for found in lengths))
    return [
        item if item.missing else replace(item, step=item.step + chosen, chosen=chosen) for item in recordings
    ]


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


def brief(
    recording: Recording,
    variant: str,
    sources: Mapping[PurePosixPath, Source],
    changed: Set[tuple[str, int]] = frozenset(),
) -> Timeline:
    """Return the tracks of a step in no more detail than a figure has.

    ``sources`` are the files of the program; ``changed`` are the lines that fixes change, by file and row.
    """
    if recording.missing:
        return Timeline(variant, recording.step, missing=recording.missing)
    step = _Step(recording)
    found: dict[tuple[TrackKind, str], list[_Piece]] = defaultdict(list)
    lines = {str(path): source.text.splitlines() for path, source in sources.items()}
    for file, row, begin, end in step.spans():
        text = lines.get(file, [])[row - 1 : row]
        piece = step.piece(f"{file}:{row}: {text[0].strip() if text else ''}", begin, end)
        found[TrackKind.LINES, ""].append(piece)
        if (file, row) in changed:
            found[TrackKind.CHANGED, ""].append(piece)
    for event, on_device in step.events():
        kind, detail = _track_of(event, on_device, step)
        if kind is not None:
            found[kind, detail].append(step.piece(event["name"], event["ts"], event["ts"] + event["dur"]))
    for key, pieces in found.items():
        if key[0] is TrackKind.LINES:
            found[key] = _lines(pieces, (step.end - step.begin) / 1e6)
        elif key[0] is TrackKind.OPERATORS:
            found[key] = _outermost(pieces)
    grain = max((end for pieces in found.values() for _, end, _ in pieces), default=0.0) / _GRAINS
    order = list(TrackKind)
    several = {kind for kind in TrackKind if sum(key[0] is kind for key in found) > 1}
    tracks = [
        _track(kind, detail if kind in several else "", found[kind, detail], grain)
        for kind, detail in sorted(found, key=lambda key: (order.index(key[0]), key[1]))
    ]
    return Timeline(variant, recording.step, _rounded((step.end - step.begin) / 1e6), tuple(tracks))


_Piece = tuple[float, float, str]
"""When something began and ended, in seconds of its step, and its name."""


def _track_of(event: Mapping[str, Any], on_device: bool, step: _Step) -> tuple[TrackKind | None, str]:
    """Return the track that an event belongs to, and which of its kind; None for what is on none."""
    category = event.get("cat")
    if event["ph"] != "X":
        return None, ""
    if on_device:
        kind = {"kernel": TrackKind.KERNELS, "gpu_memcpy": TrackKind.COPIES, "gpu_memset": TrackKind.COPIES}
        gpu = f"GPU {event['pid']}, " if event["pid"] else ""
        return kind.get(str(category)), f"{gpu}stream {event['tid']}"
    if category in _CALLS:
        waits = any(word in event["name"] for word in _WAITS)
        return TrackKind.WAITS if waits else TrackKind.LAUNCHES, ""
    if category == "cpu_op":
        return TrackKind.OPERATORS, "" if event["tid"] == step.main else "other threads"
    return None, ""


def _outermost(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return the pieces that none that began before contains."""
    kept: list[_Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece[0], -piece[1])):
        if not kept or piece[1] > kept[-1][1]:
            kept.append(piece)
    return kept


def _lines(pieces: Sequence[_Piece], length: float) -> list[_Piece]:
    """Return the outermost lines, without those that are nearly all of the step where they call others."""
    inside = _outermost(piece for piece in pieces if piece[1] - piece[0] < _WHOLE * length)
    within = sum(end - begin for begin, end, _ in inside) >= length / 2
    return inside if within else _outermost(pieces)


def _track(kind: TrackKind, detail: str, pieces: Sequence[_Piece], grain: float) -> Track:
    slices: list[Slice] = []
    longest = 0.0
    totals: dict[str, list[float]] = defaultdict(list)
    for begin, end, name in sorted(pieces):
        totals[name].append(end - begin)
        last = slices[-1] if slices else None
        fine = end - begin < grain
        joined = last is not None and (
            begin < last.end
            or (fine and longest < grain and begin - last.end < grain and end - last.begin < _WIDEST * grain)
        )
        if last is None or not joined:
            slices.append(Slice(name, begin, end, end - begin))
            longest = end - begin
            continue
        slices[-1] = Slice(
            name if end - begin > longest else last.name,
            last.begin,
            max(end, last.end),
            last.busy + max(0.0, end - max(begin, last.end)),
            last.count + 1,
        )
        longest = max(longest, end - begin)
    first = sorted(totals, key=lambda name: -sum(totals[name]))[:_LONGEST]
    return Track(
        kind,
        detail,
        _rounded(sum(item.busy for item in slices)),
        tuple(
            Slice(_cut(item.name), _rounded(item.begin), _rounded(item.end), _rounded(item.busy), item.count)
            for item in slices
        ),
        tuple(Total(_cut(name), _rounded(sum(totals[name])), len(totals[name])) for name in first),
    )


def _rounded(seconds: float) -> float:
    return round(seconds, 9)


def _cut(name: str) -> str:
    name = name.removeprefix("void ").removeprefix("autograd::engine::evaluate_function: ")
    return name if len(name) <= _LENGTH else name[: _LENGTH - 1] + "…"


class _Step:
    """The part of a recording that is of its step."""

    def __init__(self, recording: Recording) -> None:
        steps = recording.found["steps"]
        self.begin, self.end = steps[recording.chosen]
        following = steps[recording.chosen + 1 :]
        self._until: float = following[0][0] if following else math.inf
        self._spans = recording.found["spans"]
        self._events = [event for event in recording.found["events"] if event.get("ph") in _KINDS]
        # The program's main thread is the one that the anchor is an event of.
        self.main: Any = next((event["tid"] for event in self._events if event["name"] == ANCHOR), None)

    def spans(self) -> Iterator[tuple[str, int, float, float]]:
        """Yield which line ran, from when to when."""
        for file, row, begin, end in self._spans:
            if begin < self.end and end > self.begin:
                yield file, row, max(begin, self.begin), min(end, self.end)

    def events(self) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """Yield the events, and whether they are of the device; those of the host end with the step.

        The device is done with the step before the next one begins.
        """
        for event in self._events:
            begin = event["ts"]
            outside = begin < self.begin or begin >= self._until
            if isinstance(event["pid"], str) or outside or event["name"] == ANCHOR:
                continue
            arrives = event["ph"] == "f" and event.get("cat") == "ac2g"
            if event.get("cat") in _DEVICE or arrives:
                yield event, True
            elif begin <= self.end:
                ends = {"dur": round(min(event["dur"], self.end - begin), 3)} if "dur" in event else {}
                yield {**event, **ends}, False

    def piece(self, name: str, begin: float, end: float) -> _Piece:
        """Return something that ran, in seconds since the step began."""
        return (begin - self.begin) / 1e6, (end - self.begin) / 1e6, name


class _Group:
    """The tracks of one variant: a process, to those who show it."""

    def __init__(
        self, number: int, recording: Recording, findings: Mapping[str, Sequence[Diagnostic]]
    ) -> None:
        self._number, self._recording, self._findings = number, recording, findings
        self._step = _Step(recording)
        self._tracks: dict[tuple[int, str, str], int] = {}

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield all events: the marks first, then what was recorded, then the names of the tracks."""
        marks, silent = self._marks()
        yield from marks
        host = self._track(1, "host", "")
        step = self._slice(f"step {self._recording.step}", self._step.begin, self._step.end, host)
        yield {**step, "args": {"findings whose lines did not run in this step": silent} if silent else {}}
        for event, on_device in self._step.events():
            yield self._moved(event, on_device)
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
                for path, row, begin, end in self._step.spans():
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

    def _moved(self, event: Mapping[str, Any], on_device: bool) -> dict[str, Any]:
        """Return an event of the profiler on a track of this group."""
        if on_device:
            track = self._track(3, f"GPU {event['pid']}", f"stream {event['tid']}")
        elif event["tid"] == self._step.main:
            track = self._track(1, "host", "")
        else:
            track = self._track(2, "host", f"thread {event['tid']}")
        begin = round(event["ts"] - self._step.begin, 3)
        moved = {**event, "pid": self._number, "tid": track, "ts": begin}
        if "id" in event:
            moved["id"] = f"{self._recording.name} {event['id']}"
        return moved

    def _track(self, kind: int, name: str, detail: str) -> int:
        """Return the number of a track, which no other has in either group."""
        return self._tracks.setdefault((kind, name, detail), self._number * 1000 + len(self._tracks))

    def _slice(self, name: str, begin: float, end: float, track: int) -> dict[str, Any]:
        times = {"ts": round(begin - self._step.begin, 3), "dur": round(end - begin, 3)}
        return {"ph": "X", "cat": "torchlint", "name": name, "pid": self._number, "tid": track, **times}

    def _names(self, what: str, track: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": self._number, "tid": track, "args": args}
