"""The watch of ``verify --syncs``: where the whole program waits for the device, and in which of its phases.

Nothing is timed meanwhile but the waits themselves, and nothing is compared. A phase is what the program does
with a model, told by the function of the project that calls it, and by whether it keeps a graph for a
backward pass.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn.modules import module as modules

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.device import Cuda, Device
from torchlint.verify.worker.evidence import Waits, place_of
from torchlint.verify.worker.job import Job
from torchlint.verify.worker.lines import Lines
from torchlint.verify.worker.ranks import Alone
from torchlint.verify.worker.steps import FORWARD

TRAINING, INFERENCE = "training", "inference"
STARTING = "start-up"
"""What comes before the first call of a model."""
_TOOL = 3
"""The number under which ``sys.monitoring`` knows this; it has a meaning for no other tool."""

Place = tuple[str, int]


@dataclass
class _Phase:
    seconds: float = 0.0
    calls: int = 0


class Watch:
    """A boundary that lets the program run until its end, or until the job's time is over."""

    def __init__(
        self, job: Job, device: Device, stopper: Stopper, began: float, fellows: Alone | None = None
    ) -> None:
        self._job, self._device, self._stopper = job, device, stopper
        self._fellows = fellows or Alone()
        self._project = Path(job.project)
        self._end = began + job.watch_seconds
        self._steps = 0
        self._depth = 0
        self._phase = STARTING
        self._since = began
        self._phases: dict[str, _Phase] = {STARTING: _Phase()}
        self._waits = _WaitsOfPhases(self, self._project)
        self._lines = Lines(self._project, Path(job.scratch) / "lines")
        self._handles: list[Any] = []
        self._missing: list[str] = []

    @property
    def phase(self) -> str:
        """What the program does now."""
        return self._phase

    def start(self) -> None:
        """Begin, before the program does."""
        self._lines.start()
        if not isinstance(self._device, Cuda):
            self._missing.append("synchronizing calls: only available on CUDA")
            return
        self._handles = [
            modules.register_module_forward_pre_hook(self._enters),
            modules.register_module_forward_hook(self._leaves, always_call=True),
        ]
        self._waits.start()

    def __call__(self) -> None:
        """Take note of the end of a step."""
        self._steps += 1
        self._lines.steps = self._steps
        if self._phase == STARTING:
            # Its model is no module.
            self._enter(TRAINING)
        # All ranks go on, or none does.
        if not self._fellows.any(self._wanted()):
            self._stopper.stop()

    def outcome(self, *, found_by: str, ended: bool) -> dict[str, Any]:
        """Return what was found, as an examination has it, with the phases."""
        self._spend()
        watched = isinstance(self._device, Cuda)
        if watched:
            self._waits.stop()
        for handle in self._handles:
            handle.remove()
        infers = found_by == FORWARD
        names = {name: _renamed(name) if infers else name for name in self._phases}
        lines = self._waits.found(max(self._steps, 1)) if watched else []
        for line in lines:
            line["phases"] = [names[name] for name in line["phases"]]
        evidence: dict[str, Any] = {"steps": self._steps, "missing": self._missing}
        if watched:
            evidence |= {"syncs": sum(line["per_step"] for line in lines), "sync_lines": lines}
        prefix = f"{self._project}/"
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return {
            "steps": self._steps,
            "ended": ended,
            "results": {"steps": 0},
            "evidence": evidence,
            "modules": sorted({file[len(prefix) :] for file in files if file and file.startswith(prefix)}),
            "lines": self._lines.found(),
            "news": [],
            "libraries": [],
            "phases": [
                {"name": names[name], "seconds": phase.seconds, "calls": phase.calls}
                for name, phase in self._phases.items()
            ],
        }

    def _wanted(self) -> bool:
        return isinstance(self._device, Cuda) and time.perf_counter() < self._end

    def _enters(self, module: torch.nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():
            # A module inside of what is compiled; its graph must not break here.
            return
        self._depth += 1
        if self._depth > 1:
            return
        if self._fellows.count == 1 and self._steps and not self._wanted():
            # A long evaluation has no end of a step.
            self._stopper.stop()
        kind = TRAINING if torch.is_grad_enabled() and module.training else INFERENCE
        caller = self._caller(sys._getframe(1))
        self._enter(f"{kind} in {caller}" if caller else kind)

    def _leaves(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        if not torch.compiler.is_compiling():
            self._depth -= 1

    def _enter(self, phase: str) -> None:
        self._spend()
        self._phase = phase
        self._phases.setdefault(phase, _Phase()).calls += 1

    def _spend(self) -> None:
        now = time.perf_counter()
        self._phases[self._phase].seconds += now - self._since
        self._since = now

    def _caller(self, frame: FrameType | None) -> str:
        """Return the function of the project that calls the model; empty if it is the script itself,
        or none.
        """
        prefix = f"{self._project}/"
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(prefix):
                return "" if code.co_name == "<module>" else f"{code.co_name}()"
            frame = frame.f_back
        return ""


class _WaitsOfPhases(Waits):
    """Tells the phases apart in which a line waited, and for how long it did."""

    def __init__(self, watch: Watch, project: Path) -> None:
        super().__init__(project)
        self._watch = watch
        self._of_phase: defaultdict[Place, Counter[str]] = defaultdict(Counter)
        self._times = _Times()

    def stop(self) -> None:
        super().stop()
        self._times.stop()

    def _count(self, frame: FrameType, what: str = "") -> None:
        super()._count(frame, what)
        place, own = place_of(frame, self._project)
        self._of_phase[place][self._watch.phase] += 1
        if own is not None:
            self._times.begin(place, own)

    def found(self, steps: int) -> list[dict[str, Any]]:
        """Return the lines as ``results.Line`` has them. Where none of its phases trains,
        a wait stands alone.
        """
        found = self.lines(steps)
        for line in found:
            place = line["file"], line["row"]
            phases = self._of_phase[place]
            line["calls"] = sum(phases.values())
            line["phases"] = [name for name, _ in phases.most_common()]
            seconds = self._times.seconds.get(place)
            if seconds is not None:
                line["seconds"] = seconds / steps
        return found


class _Times:
    """How long lines take from where they begin to wait to where the next line of their function begins.

    With Python 3.12 and newer that is seen by ``sys.monitoring``, in the functions that wait and no others.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[Place, float] = defaultdict(float)
        self._open: dict[CodeType, tuple[Place, float]] = {}
        self._followed: set[CodeType] = set()
        self._on = False

    def begin(self, place: Place, frame: FrameType) -> None:
        """Take note that a line begins to wait, the one that its function is at."""
        code = frame.f_code
        if code not in self._open and (code in self._followed or self._follow(code)):
            self._open[code] = place, time.perf_counter()

    def _over(self, code: CodeType, *_: Any) -> None:
        waited = self._open.pop(code, None)
        if waited is not None:
            place, began = waited
            self.seconds[place] += time.perf_counter() - began

    if sys.version_info >= (3, 12):

        def stop(self) -> None:
            """Stop following."""
            if self._on:
                for code in self._followed:
                    sys.monitoring.set_local_events(_TOOL, code, 0)
                sys.monitoring.free_tool_id(_TOOL)
                self._on = False

        def _follow(self, code: CodeType) -> bool:
            watch, events = sys.monitoring, sys.monitoring.events
            if not self._on:
                if watch.get_tool(_TOOL) is not None:
                    return False
                watch.use_tool_id(_TOOL, "torchlint waits")
                for event in (events.LINE, events.PY_RETURN, events.PY_YIELD):
                    watch.register_callback(_TOOL, event, self._over)
                self._on = True
            watch.set_local_events(_TOOL, code, events.LINE | events.PY_RETURN | events.PY_YIELD)
            self._followed.add(code)
            return True

    else:

        def stop(self) -> None:
            """Do nothing: nothing was followed."""

        def _follow(self, code: CodeType) -> bool:
            return False


def _renamed(phase: str) -> str:
    """Return the phase of a program that has no optimizer."""
    return INFERENCE + phase.removeprefix(TRAINING) if phase.startswith(TRAINING) else phase
