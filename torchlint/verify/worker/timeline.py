"""A run for its timeline: what host and device do in some steps, and when. Nothing is timed meanwhile."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.device import Cuda, Device
from torchlint.verify.worker.job import ANCHOR, Job

MOST_SPANS = 100_000
"""How many runs of lines are kept: a loop over numbers in the step must not fill the memory."""
_ANCHORS = 8
"""How many events tie the profiler's clock to that of the interpreter; the quickest one does."""
OWN_PROFILER = "the program uses a profiler itself"


class Recording:
    """A boundary that records ``recorded_steps`` after ``lead_steps`` others, and then stops the program.

    What was recorded is written to ``timeline`` as JSON: the ``events`` as the profiler exports them for
    Chrome; the ``spans``, in which a line of the project ran, as file, line, start and end; and the start
    and the end of each of the ``steps``, which the device begins with nothing to do. All times are
    microseconds of the profiler's clock.
    """

    def __init__(self, job: Job, device: Device, stopper: Stopper) -> None:
        self._job, self._device, self._stopper = job, device, stopper
        self._steps = 0
        self._profile: Any = None
        self._missing = ""
        self._spans = Spans(Path(job.project))
        self._anchors: list[tuple[float, float]] = []
        self._begin = 0.0
        self._found: list[tuple[float, float]] = []

    def __call__(self) -> None:
        self._steps += 1
        if self._steps == self._job.lead_steps:
            self._missing = self._start()
        elif self._steps > self._job.lead_steps:
            self._found.append((self._begin, time.perf_counter()))
            self._device.synchronize()
        if self._missing or len(self._found) >= self._job.recorded_steps:
            self._stopper.stop()
        self._begin = time.perf_counter()

    def outcome(self) -> dict[str, Any]:
        """Write what was recorded; return the number of the first such step,
        and in ``missing`` why there is none.
        """
        if self._found and not self._missing:
            self._missing = self._stop()
        if not self._found and not self._missing:
            steps = "step" if self._steps == 1 else "steps"
            self._missing = f"the program ended after {self._steps} {steps}, before one could be recorded"
        return {"step": self._job.lead_steps + 1, "missing": self._missing}

    def _start(self) -> str:
        """Begin to record; says why that is not possible."""
        try:
            from torch.profiler import ProfilerActivity, profile, record_function

            activities = [ProfilerActivity.CPU]
            if isinstance(self._device, Cuda):
                activities.append(ProfilerActivity.CUDA)
            # Its first use takes a while.
            with record_function(ANCHOR):
                pass
            self._device.synchronize()
            self._profile = profile(activities=activities)
            self._profile.__enter__()
            # One that is interrupted says nothing exact of both clocks.
            for _ in range(_ANCHORS):
                before = time.perf_counter()
                with record_function(ANCHOR):
                    pass
                self._anchors.append((time.perf_counter() - before, before))
        except (ImportError, RuntimeError, AssertionError) as error:
            return f"torch.profiler is not available: {str(error).strip() or type(error).__name__}"
        self._spans.start()
        return ""

    def _stop(self) -> str:
        """End, and write; says why there is nothing to write."""
        self._spans.stop(self._found[-1][1])
        path = Path(self._job.scratch) / f"profile-{self._job.rank}.json"
        try:
            self._profile.__exit__(None, None, None)
            if not self._profile.profiler.kineto_results.events():
                # Another profiler has ended it, and torch would crash in the attempt to write nothing.
                return OWN_PROFILER
            self._profile.export_chrome_trace(str(path))
            events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
        except (RuntimeError, AssertionError, AttributeError, OSError, ValueError):
            return OWN_PROFILER
        anchored = sorted(event["ts"] for event in events if event.get("name") == ANCHOR)
        if len(anchored) != len(self._anchors):
            return OWN_PROFILER
        (_, began), anchor = min(zip(self._anchors, anchored, strict=True))

        def moment(seconds: float) -> float:
            return float(anchor) + (seconds - began) * 1e6

        spans = [(file, row, moment(begin), moment(until)) for (file, row), begin, until in self._spans.found]
        if self._job.rank == 0:
            steps = [(moment(begin), moment(end)) for begin, end in self._found]
            found = {"events": events, "spans": spans, "steps": steps}
            Path(self._job.timeline).write_text(json.dumps(found), encoding="utf-8")
        return ""


class Spans:
    """Notes when the lines of the project run, by the interpreter's trace function.

    The time of a line is that of everything it calls.
    """

    def __init__(self, project: Path) -> None:
        self._prefix = f"{project}/"
        self._since: dict[FrameType, tuple[tuple[str, int], float]] = {}
        self.found: list[tuple[tuple[str, int], float, float]] = []
        """File and line, start and end, in the order of the ends."""

    def start(self) -> None:
        """Follow the lines, those of functions that already run included."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._prefix):
                frame.f_trace = self._line
            frame = frame.f_back
        sys.settrace(self._call)

    def stop(self, end: float) -> None:
        """Stop following; what still runs has run until ``end``."""
        sys.settrace(None)
        self.found += [(place, began, end) for place, began in reversed(self._since.values())]
        self._since = {}

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._prefix) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception":
            return self._line
        now = time.perf_counter()
        if frame in self._since:
            place, began = self._since.pop(frame)
            self.found.append((place, began, now))
            if len(self.found) >= MOST_SPANS:
                sys.settrace(None)
                return None
        if event == "line":
            self._since[frame] = (frame.f_code.co_filename[len(self._prefix) :], frame.f_lineno), now
        return self._line
