"""Run subjects on a device, and note which lines of their library ran and which made the host wait."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from benchmarks.runtime.subjects import LIBRARIES, Subject, subjects
from torchlint.verify.worker.evidence import Waits

_SECONDS = 5
"""The longest that one subject may take, on the CPU and on the device each."""

_SHARD = 16
"""Subjects that one process runs."""

_USING_CUDA = frozenset({"diffusers", "egnn_pytorch", "speechbrain", "x_transformers"})
"""Libraries whose import looks at the device."""

Seen = dict[str, Any]
"""What was seen of one shard.

``subjects`` are the names of those that ran, ``failed`` those that ran on the CPU and raised on the device;
``ran`` and ``waited`` are the lines, by file.
"""


def observe(library: str, device: str, jobs: int, seconds: float | None = None) -> Seen:
    """Return what was seen of the subjects of a library, over processes that are started anew for each shard.

    After ``seconds``, what still runs is ended. The order is drawn by chance, the same each time.
    """
    until = None if seconds is None else time.monotonic() + seconds
    distribution, *_ = importlib.metadata.packages_distributions()[library]
    version = importlib.metadata.version(distribution)
    total = len(list(subjects(library)))
    waiting = [(start, min(start + _SHARD, total)) for start in range(0, total, _SHARD)]
    random.Random(0).shuffle(waiting)
    together: Seen = {"version": version, "subjects": [], "failed": [], "ran": {}, "waited": {}}
    # A process that forks has the library imported already; it cannot go on with a device that is in use.
    context = get_context("spawn") if library in _USING_CUDA else get_context("fork")
    running: dict[Connection, tuple[Any, tuple[int, int]]] = {}
    left: dict[Connection, tuple[int, int]] = {}  # what a spoilt process has not come to
    while waiting or running:
        if until is not None and time.monotonic() > until:
            waiting.clear()
            left.clear()
            until = None
            for process, _ in running.values():
                process.terminate()
        while waiting and len(running) < jobs:
            shard = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_shard, args=(sender, library, shard, device), daemon=True)
            process.start()
            sender.close()
            running[receiver] = process, shard
        for ready in wait(list(running), None if until is None else max(0, until - time.monotonic())):
            assert isinstance(ready, Connection)
            process, shard = running[ready]
            try:
                seen, spoilt_at = ready.recv()
                _add(together, seen)
                if spoilt_at is not None:
                    left[ready] = spoilt_at + 1, shard[1]
            except EOFError:
                del running[ready]
                process.join()
                if ready in left:
                    waiting.append(left.pop(ready))
                print(f"{library} {shard[0]}-{shard[1]} done", file=sys.stderr)
    for kind in ("ran", "waited"):
        together[kind] = {file: sorted(lines) for file, lines in sorted(together[kind].items())}
    return together


def _add(together: Seen, seen: Seen) -> None:
    for kind in ("subjects", "failed"):
        together[kind] += seen[kind]
    for kind in ("ran", "waited"):
        for file, lines in seen[kind].items():
            together[kind].setdefault(file, set()).update(lines)


# --- in the process of a shard -------------------------------------------------------------------------


def _shard(sender: Connection, library: str, shard: tuple[int, int], device: str) -> None:
    """Run some subjects, and send what was seen after each: an assertion on the device ends the process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.hub.download_url_to_file = _no_download
    package = importlib.import_module(library)
    assert package.__file__ is not None
    root = Path(package.__file__).parent
    for number, subject in _runnable(list(enumerate(subjects(library)))[slice(*shard)]):
        lines, waits = _Lines(root), Waits(root)
        seen: Seen = {"subjects": [], "failed": [], "ran": {}, "waited": {}}
        try:
            with _within(_SECONDS):
                _seed()
                run = subject.prepare(device)
                run()  # first calls of libraries wait for reasons of their own
                if device != "cpu":
                    _look(run, lines, waits)
            seen["subjects"].append(subject.name)
            seen["ran"] = lines.found
            for line in waits.lines(1):
                if line["file"] in lines.found:  # not where a subject is prepared or called
                    seen["waited"].setdefault(line["file"], []).append(line["row"])
        except Exception as error:
            seen["failed"].append(f"{subject.name}: {type(error).__name__}")
        spoilt = bool(seen["failed"]) and device != "cpu" and _is_spoilt()
        sender.send((seen, number if spoilt else None))
        if spoilt:
            return  # another process goes on with the next one


def _is_spoilt() -> bool:
    """Return whether an assertion on the device has failed, after which a process can do nothing there."""
    try:
        torch.cuda.synchronize()
    except Exception:
        return True
    return False


def _no_download(*arguments: object, **keywords: object) -> None:
    raise ConnectionError("weights are not downloaded")


def _look(run: Callable[[], Any], lines: _Lines, waits: Waits) -> None:
    torch.cuda.synchronize()
    lines.start()
    waits.start()
    try:
        run()
    finally:
        waits.stop()
        lines.stop()


def _runnable(found: Sequence[tuple[int, Subject]]) -> Iterator[tuple[int, Subject]]:
    """Yield those that can be called, as a run on the CPU shows, with their numbers."""
    for number, subject in found:
        try:
            with _within(_SECONDS):
                _seed()
                subject.prepare("cpu")()
        except Exception:
            continue
        yield number, subject


def _seed() -> None:
    random.seed(0)
    torch.manual_seed(0)


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` in the block if it takes longer."""

    def expire(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Lines:
    """The lines below a folder that run, by `sys.monitoring` (Python 3.12)."""

    _TOOL = 4

    def __init__(self, root: Path) -> None:
        self._prefix = f"{root}/"
        self.found: dict[str, set[int]] = {}

    def start(self) -> None:
        """Note each line from now on, once."""
        monitoring = _monitoring()
        monitoring.use_tool_id(self._TOOL, "torchlint")
        monitoring.register_callback(self._TOOL, monitoring.events.LINE, self._line)
        monitoring.set_events(self._TOOL, monitoring.events.LINE)
        monitoring.restart_events()

    def stop(self) -> None:
        """Note nothing more."""
        _monitoring().set_events(self._TOOL, 0)
        _monitoring().free_tool_id(self._TOOL)

    def _line(self, code: CodeType, row: int) -> Any:
        if code.co_filename.startswith(self._prefix):
            self.found.setdefault(code.co_filename[len(self._prefix) :], set()).add(row)
        return _monitoring().DISABLE


def _monitoring() -> Any:
    return vars(sys)["monitoring"]  # new in Python 3.12; this project is checked as 3.10


def libraries(names: Sequence[str]) -> list[str]:
    """Return the named libraries, or all that are installed."""
    return [name for name in names or LIBRARIES if importlib.util.find_spec(name)]


def device_name() -> str:
    """Return what torch calls the GPU, asked in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        name: str = pool.apply(torch.cuda.get_device_name)
        return name
