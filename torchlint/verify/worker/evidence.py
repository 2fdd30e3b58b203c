"""What the device does in a step: waits of the host, kernels, copies, memory. Nothing is timed meanwhile."""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from torchlint.verify.worker.device import Device

_SYNC = "called a synchronizing CUDA operation"
_ASKED_FOR = (
    (torch.cuda, "synchronize"),
    (torch.cuda.Stream, "synchronize"),
    (torch.cuda.Event, "synchronize"),
)
"""What waits because it is told to, of which CUDA says nothing."""
_COPIES = ("to", "cuda", "copy_")
"""The methods of tensors that copy to a device."""
PAGEABLE = "copy from pageable memory"
"""What a copy with ``non_blocking=True`` is where the host has to hand it over piece by piece."""


class Waits:
    """Counts the operations that make the host wait for the device, by the program's line.

    A copy with ``non_blocking=True`` from memory that is not pinned is one of them, though CUDA does not tell
    of it: the host stays with it until it is staged.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._lines: Counter[tuple[str, int]] = Counter()
        self._kinds: dict[tuple[str, int], str] = {}
        self._shown: Any = None
        self._filters: Any = None
        self._own: list[Any] = []
        self._copies: list[Any] = []

    def start(self) -> None:
        """Ask CUDA to tell of each such operation."""
        self._shown, self._filters = warnings.showwarning, warnings.filters[:]
        warnings.simplefilter("always")
        warnings.showwarning = self._saw  # type: ignore[assignment]
        torch.cuda.set_sync_debug_mode("warn")
        self._own = [getattr(owner, name) for owner, name in _ASKED_FOR]
        for (owner, name), function in zip(_ASKED_FOR, self._own, strict=True):
            setattr(owner, name, self._counted(function))
        self._copies = [getattr(torch.Tensor, name) for name in _COPIES]
        for name, function in zip(_COPIES, self._copies, strict=True):
            setattr(torch.Tensor, name, self._followed(function))

    def stop(self) -> None:
        """Stop following."""
        for (owner, name), function in zip(_ASKED_FOR, self._own, strict=True):
            setattr(owner, name, function)
        for name, function in zip(_COPIES, self._copies, strict=True):
            setattr(torch.Tensor, name, function)
        torch.cuda.set_sync_debug_mode("default")
        warnings.showwarning = self._shown
        warnings.filters[:] = self._filters  # type: ignore[index]

    def _saw(self, message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        if _SYNC not in str(message):
            return
        self._count(sys._getframe(1))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def synchronize(*arguments: Any, **options: Any) -> Any:
            caller = sys._getframe(1)
            if not caller.f_globals.get("__name__", "").startswith("torchlint."):
                self._count(caller)
            return function(*arguments, **options)

        return synchronize

    def _followed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def copy(tensor: Any, *arguments: Any, **options: Any) -> Any:
            result = function(tensor, *arguments, **options)
            if options.get("non_blocking") or any(item is True for item in arguments[1:]):
                # `copy_` is a method of what is copied to.
                into = function.__name__ == "copy_"
                source = (arguments[0] if arguments else options.get("src")) if into else tensor
                if _pageable(source, result):
                    self._count(sys._getframe(1), PAGEABLE)
            return result

        return copy

    def _count(self, frame: FrameType, what: str = "") -> None:
        place, _ = place_of(frame, self._project)
        self._lines[place] += 1
        if what:
            self._kinds[place] = what

    def lines(self, steps: int) -> list[dict[str, Any]]:
        """Return the lines as ``results.Line`` has them, most calls first."""
        return [
            {"file": file, "row": row, "per_step": count / steps, "what": self._kinds.get((file, row), "")}
            for (file, row), count in self._lines.most_common()
        ]


def _pageable(source: Any, result: Any) -> bool:
    """Return whether the result was copied to a GPU out of memory that is not pinned."""
    if not isinstance(source, torch.Tensor) or not isinstance(result, torch.Tensor):
        return False
    return source.device.type == "cpu" and result.device.type == "cuda" and not source.is_pinned()


class Durations:
    """Times the lines that made the host wait, in steps that run without the warnings.

    The time of a line is that of everything it calls; the interpreter's trace function adds some
    microseconds to each line of the file.
    """

    def __init__(self, project: Path, lines: set[tuple[str, int]]) -> None:
        self._project, self._wanted = project, lines
        self._files = {str(project / file) for file, _ in lines}
        self._since: dict[FrameType, tuple[tuple[str, int], float]] = {}
        self._seconds: defaultdict[tuple[str, int], float] = defaultdict(float)

    def start(self) -> None:
        """Follow the lines, those of functions that already run included."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self._files:
                frame.f_trace = self._line
            frame = frame.f_back
        sys.settrace(self._call)

    def stop(self) -> None:
        """Stop following."""
        sys.settrace(None)

    def seconds(self, file: str, row: int, steps: int) -> float | None:
        """Return the average time of a line in one step; None if it was not run."""
        total = self._seconds.get((file, row))
        return None if total is None else total / steps

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        now = time.perf_counter()
        if frame in self._since:
            place, began = self._since.pop(frame)
            self._seconds[place] += now - began
        place = frame.f_code.co_filename.removeprefix(f"{self._project}/"), frame.f_lineno
        if event == "line" and place in self._wanted:
            self._since[frame] = place, time.perf_counter()
        return self._line


def place_of(frame: FrameType | None, project: Path) -> tuple[tuple[str, int], FrameType | None]:
    """Return the innermost line of the project on the stack, with its frame.

    Without any, that of anything but torch and torchlint, without a frame.
    """
    outside: tuple[str, int] | None = None
    prefix = f"{project}/"
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(prefix):
            return (file[len(prefix) :], frame.f_lineno), frame
        if outside is None and not any(part in file for part in ("/torch/", "/torchlint/", "/warnings.py")):
            outside = file, frame.f_lineno
        frame = frame.f_back
    return outside or ("", 0), None


class Peak:
    """The most memory that a step needs."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def start(self) -> None:
        self._device.reset_peak()

    def found(self) -> dict[str, Any]:
        """Return ``peak_allocated`` and ``peak_reserved``, if torch counts them here."""
        peak = self._device.peak()
        return {} if peak is None else {"peak_allocated": peak[0], "peak_reserved": peak[1]}


class Kernels:
    """Counts kernels and copies, by torch's profiler."""

    def __init__(self) -> None:
        self._profile: Any = None

    def start(self) -> None:
        """Begin to record."""
        from torch.profiler import ProfilerActivity, profile

        self._profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        self._profile.__enter__()

    def found(self, steps: int) -> dict[str, Any]:
        """End, and count per step; nothing where the program has run a profiler of its own."""
        torch.cuda.synchronize()
        events = recorded(self._profile)
        if events is None:
            return {}
        kernels = to_device = to_host = 0
        for event in events:
            if event.device_type != torch.autograd.DeviceType.CUDA:
                continue
            if event.name.startswith("Memcpy HtoD"):
                to_device += 1
            elif event.name.startswith("Memcpy DtoH"):
                to_host += 1
            elif not event.name.startswith(("Memcpy", "Memset")) and not event.is_user_annotation:
                kernels += 1
        return {
            "kernels": kernels / steps,
            "copies_to_device": to_device / steps,
            "copies_to_host": to_host / steps,
        }


class Work:
    """The time that kernels, copies and fills take on the device, by torch's profiler.

    Whatever the host does meanwhile, and how long it waits, makes no difference to it.
    """

    def __init__(self) -> None:
        self._profile: Any = None

    def start(self) -> None:
        """Begin to record."""
        from torch.profiler import ProfilerActivity, profile

        self._profile = profile(activities=[ProfilerActivity.CUDA])
        self._profile.__enter__()

    def seconds(self) -> float | None:
        """End, and add up; None where the program has run a profiler of its own."""
        try:
            self._profile.__exit__(None, None, None)
            # As they were recorded: to make torch's own objects of them takes longer than the steps did.
            events = self._profile.profiler.kineto_results.events()
        except (AttributeError, RuntimeError, AssertionError):
            return None
        nanoseconds: float = sum(
            event.duration_ns()
            for event in events
            if event.device_type() == torch.autograd.DeviceType.CUDA and not event.is_user_annotation()
        )
        return nanoseconds / 1e9


class Collectives:
    """Counts what a rank sends to the others and gets from them: all-reduces, gathers, broadcasts, barriers.

    They are seen where torch hands them to a backend, so that those of a wrapper's C++ are among them.
    """

    def __init__(self) -> None:
        self._profile: Any = None

    def start(self) -> None:
        """Begin to record."""
        from torch.profiler import ProfilerActivity, profile

        self._profile = profile(activities=[ProfilerActivity.CPU])
        self._profile.__enter__()

    def found(self) -> dict[str, Any]:
        """End, and count: of a program's step, since that is what ran meanwhile."""
        events = recorded(self._profile)
        if events is None:
            return {}
        return {"collectives": float(sum(event.name.startswith("c10d::") for event in events))}


def recorded(profile: Any) -> list[Any] | None:
    """End a profile, and what it has seen; None if the program has run a profiler of its own meanwhile.

    There is one profiler a process, and the end of one that began later ends them all.
    """
    try:
        profile.__exit__(None, None, None)
        return list(profile.events())
    except (RuntimeError, AssertionError):
        return None
