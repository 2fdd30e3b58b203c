"""The untimed run: what the steps compute, then what the device does in them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.device import Cuda, Device
from torchlint.verify.worker.evidence import Collectives, Durations, Kernels, Peak, Waits
from torchlint.verify.worker.job import Job
from torchlint.verify.worker.libraries import Libraries
from torchlint.verify.worker.lines import Lines
from torchlint.verify.worker.ranks import Alone
from torchlint.verify.worker.roles import Roles
from torchlint.verify.worker.trace import Trace

T = TypeVar("T")

ENOUGH_SECONDS = (2.0, 6.0)
"""A program that goes on for longer than this, after all else, has as many steps as anybody asks for. The
second holds for one that has not done ``ENOUGH_STEPS`` by then."""
ENOUGH_STEPS = 100
OWN = str(Path(__file__).parents[2])
"""The folder of torchlint itself."""
_PARTS = {"peak_allocated": "peak memory", "syncs": "synchronizing calls", "kernels": "kernels and copies"}


class Examination:
    """A boundary that leads the program through the parts of the examination.

    A program that ends before the last part still has what the parts before it found.
    """

    def __init__(
        self, job: Job, device: Device, stopper: Stopper, began: float, fellows: Alone | None = None
    ) -> None:
        self._job, self._device, self._stopper = job, device, stopper
        self._fellows = fellows or Alone()
        self._project = Path(job.project)
        self._began = began
        self._course = self._run()
        self._steps = 0
        self._evidence: dict[str, Any] = {"steps": job.evidence_steps, "missing": []}
        self._found: dict[str, Any] = {}
        self.trace = Trace(Path(job.trace), job.compare_steps, job.role, job.compared)
        self._lines = Lines(self._project, Path(job.scratch) / "lines")
        self._whole = job.role == "reference" and job.form != "case"
        self._libraries = Libraries((job.project, job.scratch, job.original, OWN))
        if self._whole:
            self._lines.start()
            self._libraries.start()

    def __call__(self) -> None:
        self._steps += 1
        self._lines.steps = self._steps
        if self._steps == 1:
            self._found["startup_seconds"] = time.perf_counter() - self._began
        if next(self._course, None) is None:
            self._stopper.stop()

    def outcome(self, *, ended: bool) -> dict[str, Any]:
        """Return what was found, as ``results.Examination`` has it, with the comparison as ``results``."""
        self.trace.finish()
        if ended and self._job.role != "perturbed":
            told = "".join(self._evidence["missing"])
            self._evidence["missing"] += [
                f"{name}: the program ended after {self._steps} steps, before they could be counted"
                for key, name in _PARTS.items()
                if key not in self._evidence and name not in told
            ]
        return {
            **self._found,
            "steps": self._steps,
            "ended": ended,
            "results": self.trace.compare(),
            "evidence": self._evidence,
            "modules": self._modules(),
            "lines": self._lines.found() if self._whole else None,
            "news": self._lines.news(),
            "libraries": self._libraries.found() if self._whole else [],
        }

    def _run(self) -> Iterator[bool]:
        """Yield the course of the examination; each ``yield`` lets the program do one step."""
        while self.trace.boundary():
            yield True
        self._lines.pause()
        if self._job.role == "perturbed":
            return
        yield from self._pace()
        yield from self._memory()
        if self._fellows.count > 1:
            yield from self._collectives()
        if isinstance(self._device, Cuda):
            yield from self._waits()
            yield from self._kernels()
        else:
            self._evidence["missing"] += [
                "synchronizing calls: only available on CUDA",
                "kernels and copies: only available on CUDA",
            ]
        if self._whole:
            self._lines.start()
            yield from self._length()

    def _length(self) -> Iterator[bool]:
        """Go on for a while, to see more lines run; of a short program the plan wants to know its length."""
        began = time.perf_counter()
        least, most = ENOUGH_SECONDS

        def wanted() -> bool:
            taken = time.perf_counter() - began
            return taken < least or (self._steps < ENOUGH_STEPS and taken < most)

        # Every rank does the same number of steps, whichever of them is late.
        while self._fellows.any(wanted()):
            yield True

    def _pace(self) -> Iterator[bool]:
        """Yield a rough time of a step, for the plan;
        what follows is seen in the same steps of all variants.
        """
        for _ in range(2):
            yield True
        self._device.synchronize()
        began, busy = time.perf_counter(), time.process_time()
        for _ in range(self._job.evidence_steps):
            yield True
        self._device.synchronize()
        seconds = time.perf_counter() - began
        self._found["step_seconds"] = seconds / self._job.evidence_steps
        self._found["busy"] = (time.process_time() - busy) / seconds

    def _memory(self) -> Iterator[bool]:
        peak = Peak(self._device)
        roles = Roles(self._device, self.trace.roots, self.trace.optimizers, self._project)
        if not peak.found():
            self._evidence["roles"] = self._of_roles(roles.now)
            self._evidence["missing"].append(f"peak memory: not available on {self._device.kind}")
            return
        peak.start()
        self._of_roles(roles.start)
        yield True
        yield True
        self._evidence |= peak.found() | {"roles": self._of_roles(lambda: roles.stop(2))}

    def _of_roles(self, ask: Callable[[], T]) -> T | None:
        """Ask for the roles of memory; None, with the reason, where tensors of a program's own do not answer.

        That is no reason to give up the program.
        """
        try:
            return ask()
        except Exception as error:
            self._evidence["missing"].append(f"memory by role: {type(error).__name__}: {error}")
            return None

    def _waits(self) -> Iterator[bool]:
        steps = self._job.evidence_steps
        waits = Waits(self._project)
        waits.start()
        for _ in range(steps):
            yield True
        waits.stop()
        lines = waits.lines(steps)
        self._evidence["syncs"] = sum(line["per_step"] for line in lines)
        self._evidence["sync_lines"] = lines
        # Every rank does the same number of steps, whichever of them waits.
        if self._fellows.any(bool(lines)):
            durations = Durations(self._project, {(line["file"], line["row"]) for line in lines})
            durations.start()
            for _ in range(steps):
                yield True
            durations.stop()
            for line in lines:
                line["seconds"] = durations.seconds(line["file"], line["row"], steps)

    def _collectives(self) -> Iterator[bool]:
        # Of one step: what a profile has of five takes longer to read than the steps.
        collectives = Collectives()
        collectives.start()
        yield True
        self._evidence |= collectives.found()

    def _kernels(self) -> Iterator[bool]:
        kernels = Kernels()
        kernels.start()
        for _ in range(self._job.evidence_steps):
            yield True
        self._evidence |= kernels.found(self._job.evidence_steps)

    def _modules(self) -> list[str]:
        """Return the files of the project that the program has loaded, relative to it."""
        prefix = f"{self._project}/"
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return sorted({file[len(prefix) :] for file in files if file and file.startswith(prefix)})
