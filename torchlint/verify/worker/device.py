"""The device that a program works on: its clock, its streams of random numbers, its memory."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

MOST_ALLOCATIONS = 100_000
"""How many allocations and releases are kept: each takes some KiB."""


class Device:
    """The processor: nothing is asynchronous, and torch does not count its memory."""

    kind = "cpu"

    def synchronize(self) -> None:
        """Wait until the device has done everything that it was given."""

    def mark(self) -> Any:
        """Return a point in the device's own time; None without one."""
        return None

    def between(self, start: Any, end: Any) -> float | None:
        """Return seconds between two marks that lie in the past."""
        return None

    def clock(self) -> int | None:
        """Return the clock of the compute units in MHz."""
        return None

    def reset_peak(self) -> None:
        """Start to look for a new peak of memory."""

    def peak(self) -> tuple[int, int] | None:
        """Return the most bytes allocated and reserved since ``reset_peak``;
        None where torch does not count.
        """
        return None

    def allocator_events(self) -> int:
        """Return how many allocations and releases torch has counted so far."""
        return 0

    def keep_history(self) -> None:
        """Begin to keep what is allocated and freed, and by which lines."""

    def history(self) -> list[dict[str, Any]]:
        """Return that, as torch tells it, and keep no more; nothing where the program keeps it itself."""
        return []

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is in the memory that ``peak`` is about."""
        return bool(tensor.device.type == self.kind)


class Cuda(Device):
    """NVIDIA's, and AMD's under the same name. Nothing here starts CUDA before the program does."""

    kind = "cuda"
    _clock_known = True
    _keeps = False

    def synchronize(self) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()

    def mark(self) -> Any:
        if not torch.cuda.is_initialized():
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float | None:
        if start is None or end is None:
            return None
        return float(start.elapsed_time(end)) / 1000

    def clock(self) -> int | None:
        if not self._clock_known or not torch.cuda.is_initialized():
            return None
        try:
            return int(torch.cuda.clock_rate())
        except Exception:  # no NVML, or no right to ask it
            self._clock_known = False
            return None

    def reset_peak(self) -> None:
        import gc

        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> tuple[int, int] | None:
        if not torch.cuda.is_initialized():
            return None
        return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()

    def allocator_events(self) -> int:
        if not torch.cuda.is_initialized():
            return 0
        counted = torch.cuda.memory_stats()
        return int(counted["allocation.all.allocated"] + counted["allocation.all.freed"])

    def keep_history(self) -> None:
        kept: Any = getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)
        if not torch.cuda.is_initialized() or kept():
            return
        try:
            torch.cuda.memory._record_memory_history(
                context="alloc", stacks="python", max_entries=MOST_ALLOCATIONS
            )
            self._keeps = True
        except (RuntimeError, TypeError, ValueError):  # an allocator, or a release of torch, without it
            self._keeps = False

    def history(self) -> list[dict[str, Any]]:
        if not self._keeps:
            return []
        self._keeps = False
        try:
            traces = torch.cuda.memory._snapshot()["device_traces"]
            torch.cuda.memory._record_memory_history(enabled=None)
        except RuntimeError:
            return []
        found: list[dict[str, Any]] = traces[torch.cuda.current_device()]
        # What came first is overwritten in a history that is full.
        return found if len(found) < MOST_ALLOCATIONS else []

    def holds(self, tensor: torch.Tensor) -> bool:
        return bool(tensor.is_cuda and tensor.device.index == torch.cuda.current_device())


class Metal(Device):
    """Apple's GPUs."""

    kind = "mps"

    def synchronize(self) -> None:
        torch.mps.synchronize()


def find(wanted: str) -> Device:
    """Return the device of this name (``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``).

    Raises:
        ValueError: this machine or this torch has no such device.
    """
    kind = wanted.partition(":")[0]
    if kind in ("auto", "cuda") and torch.cuda.is_available():
        return Cuda()
    if kind in ("auto", "mps") and torch.backends.mps.is_available():
        return Metal()
    if kind in ("auto", "cpu"):
        return Device()
    if kind not in ("cuda", "mps"):
        raise ValueError(f"torchlint cannot measure on device `{wanted}`; use cpu, cuda or mps")
    raise ValueError(f"torch {torch.__version__} finds no {kind} device on this machine")


def seed(number: int) -> None:
    """Start all streams of random numbers at the same place."""
    random.seed(number)
    torch.manual_seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


def streams() -> dict[str, Any]:
    """Return the state of every stream of random numbers, to be given to ``restore_streams``."""
    found: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy"] = numpy.random.get_state()
    return found


def restore_streams(states: dict[str, Any]) -> None:
    """Put every stream back to where ``streams`` found it."""
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    numpy = sys.modules.get("numpy")
    if "numpy" in states and numpy is not None:
        numpy.random.set_state(states["numpy"])


def tensor_streams_differ(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether two runs that began alike have drawn differently from torch's generators."""

    def states(found: dict[str, Any]) -> list[Any]:
        return [found["torch"], *found.get("cuda", ())]

    one, other = states(ours), states(theirs)
    if len(one) != len(other):
        return True
    return any(not torch.equal(a, b) for a, b in zip(one, other, strict=True))
