"""Measuring processes, as the coordinator sees them: started, steered through pipes, paused, ended.

A process leads a session and a group of its own, so that a signal reaches everything that the program has
started. Only one program at a time runs; the groups of the others are stopped, loader workers included, so
that nobody gains from a pause. That takes signals that Windows does not have.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.verify import remains
from torchlint.verify.nursery import SUPPORTED as COPIES
from torchlint.verify.nursery import Copy, Nursery
from torchlint.verify.results import Block, Machine
from torchlint.verify.worker.copies import FILE_SYSTEM, copied
from torchlint.verify.worker.job import Job, visible

SUPPORTED = os.name == "posix"
"""Whether this system can pause process groups."""
GRACE = 2.0
"""Seconds that a program has to end after it was told to."""
_WORKER = "from torchlint.verify.worker.main import main; main()"
_LAST_LINES = 6
_LAST_BYTES = 1 << 15
_LONGEST_LINE = 500
# What programs look for that torchrun would have set.
_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Failure(Exception):  # noqa: N818
    """A program that cannot be measured, with the reason for people.

    ``wants_torchrun`` is set where the program only misses the variables that torchrun sets.
    """

    def __init__(self, reason: str, *, wants_torchrun: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wants_torchrun = wants_torchrun


@dataclass(frozen=True)
class Times:
    """The times of one block, as ``results.Block`` has them."""

    wall: float
    device: float | None
    clock: int | None
    since: int = 0
    until: int = 0
    times: tuple[float, ...] = ()
    slow: tuple[tuple[int, float], ...] = ()

    @staticmethod
    def told(message: Mapping[str, Any]) -> Times:
        """Return what a process says of a block."""
        slow = tuple((number, seconds) for number, seconds in message.get("slow", ()))
        since, until = message.get("since", 0), message.get("until", 0)
        times = tuple(message.get("times", ()))
        return Times(message["wall"], message["device"], message["clock"], since, until, times, slow)

    def block(self, variant: str, replicate: int, turn: int, position: int, steps: int) -> Block:
        """Return the block that took this time."""
        return Block(
            variant,
            replicate,
            turn,
            position,
            steps,
            self.wall,
            self.device,
            self.clock,
            since=self.since,
            until=self.until,
            times=self.times,
            slow=self.slow,
        )


class Process:
    """An interpreter that runs one variant. Leaving the ``with`` block ends it and all it started.

    It is a fresh one, the copy of a nursery, or one that has imported torch already.
    """

    def __init__(
        self,
        job: Job,
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        nursery: Nursery | None = None,
        spare: Nursery | None = None,
    ) -> None:
        self._job, self._log = job, log
        self._unread = b""
        self.startup_seconds: float | None = None
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        variables = _environment(job, environment or {})
        with log.open("wb") as output:
            files = (theirs_in, theirs_out, output.fileno())
            self._child: subprocess.Popen[bytes] | Copy
            if nursery is not None:
                self._child = nursery.copy(files, job.scratch, variables)
            elif spare is not None:
                self._child = spare.become(files, job.scratch, variables)
            else:
                self._child = _fresh(files, job.scratch, variables)
        os.close(theirs_in)
        os.close(theirs_out)
        self._closed = False
        self._loaded = self._killed = False
        self._send(job.as_json())

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process can take orders."""
        return not self._killed and self._child.poll() is None

    @property
    def scratch(self) -> Path:
        """The folder of this run, which nobody needs once the process is closed."""
        return Path(self._job.scratch)

    @property
    def group(self) -> int:
        """The number of the process group that the program and all it starts belong to."""
        return self._child.pid

    def load(self) -> None:
        """Wait until torch is imported and the program can be run.

        Raises:
            Failure: torch is missing or too old, or there is no such device.
        """
        if self._loaded:
            return
        message = self._receive(STARTUP)
        if message["event"] != "loaded":
            raise self.failure(message)
        self._loaded = True

    def loaded(self) -> None:
        """Take note that somebody else has waited for that."""
        self._loaded = True

    def run(self, **changes: Any) -> None:
        """Start the program; ``changes`` replace fields of the job, such as the size of a case."""
        self.load()
        self._send({"do": "run", "job": changes})

    def halt(self) -> None:
        """Stop a case at the end of its step, so that it can be run again.

        Raises:
            Failure: it does not stop.
        """
        self.dismiss()
        message = self._receive(PATIENCE)
        if message["event"] != "end" or message["reason"] != "stopped":
            raise self.failure(message)

    def dismiss(self) -> None:
        """Tell the program to stop at the end of its step."""
        if not self._closed:
            self._signal(signal.SIGCONT)
            self._send({"do": "stop"})

    def pause(self) -> None:
        """Let nothing of the program go on until the next order."""
        self._signal(signal.SIGSTOP)

    def order(self, lead: int, steps: int) -> None:
        """Let a program that is paused run ``lead`` steps and time ``steps``, and do not wait for it."""
        self._signal(signal.SIGCONT)
        self._send({"do": "block", "lead": lead, "steps": steps})

    def ready(self, timeout: float) -> None:
        """Wait until the program stands at the end of its first step, and pause it there.

        Raises:
            Failure: it does not get there.
        """
        message = self._receive(timeout)
        if message["event"] != "ready":
            raise self.failure(message)
        self.startup_seconds = message["startup_seconds"]
        self.pause()

    def block(self, lead: int, steps: int, timeout: float) -> Times | None:
        """Run ``lead`` steps, then time ``steps``; None if the program came to its own end before that.

        Raises:
            Failure: the program failed, or hangs.
        """
        self.order(lead, steps)
        return self._timed(timeout)

    def work(self, lead: int, steps: int, timeout: float) -> Times | None:
        """Return the same, with the time that the device works as ``device``; the profiler makes it slower.

        Raises:
            Failure: the program failed, or hangs.
        """
        self._signal(signal.SIGCONT)
        self._send({"do": "work", "lead": lead, "steps": steps})
        return self._timed(timeout)

    def _timed(self, timeout: float) -> Times | None:
        message = self._receive(timeout)
        if message["event"] == "end" and message["reason"] == "finished":
            return None
        if message["event"] != "block":
            raise self.failure(message)
        self.pause()
        return Times.told(message)

    def examined(self, timeout: float) -> dict[str, Any]:
        """Wait for the outcome of an examination.

        Raises:
            Failure: the program failed, hangs, or never reached a step.
        """
        message = self._receive(timeout)
        if message.pop("event") != "examined":
            raise self.failure({"event": "end", **message})
        if self._job.form == "case":
            # It can be run again once it has come to its end; a script has done what it was started for.
            self._receive(PATIENCE)
        return message

    def trained(self, timeout: float) -> list[float]:
        """Wait for the losses of a run.

        Raises:
            Failure: the program failed, or hangs.
        """
        message = self._receive(timeout)
        if message["event"] != "trained":
            raise self.failure(message)
        losses: list[float] = message["losses"]
        return losses

    def recorded(self, timeout: float) -> dict[str, Any]:
        """Wait for the outcome of a recording.

        Raises:
            Failure: the program failed, or hangs.
        """
        message = self._receive(timeout)
        if message.pop("event") != "recorded":
            raise self.failure({"event": "end", **message})
        return message

    def described(self, timeout: float) -> Machine:
        """Wait for the description of the machine.

        Raises:
            Failure: torch is missing or too old, or there is no such device.
        """
        message = self._receive(timeout)
        if message.pop("event") != "machine":
            raise self.failure({"event": "end", **message})
        return Machine(**message)

    def kill(self) -> None:
        """End the program and whatever it has started, at once; ``close`` is still wanted, to tidy up."""
        self._killed = True
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End the program, cleanly if it lets itself be ended so, and whatever it has started."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._signal(signal.SIGCONT)
            self._send({"do": "stop"})
        os.close(self._to)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(GRACE)
        self._signal(signal.SIGKILL)
        self._child.wait()
        remains.end(_temporary(self._job))
        os.close(self._from)

    # --- messages -----------------------------------------------------------------------------------------

    def _send(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._to, json.dumps(message).encode() + b"\n")

    def _receive(self, timeout: float) -> dict[str, Any]:
        """Return the next message; one about the end if the process ends without any.

        Raises:
            Failure: none came in time.
        """
        deadline = time.monotonic() + timeout
        while (message := self.arrived(0.2)) is None:
            if time.monotonic() > deadline:
                raise self._hanging(timeout)
        return message

    @property
    def answers(self) -> int:
        """The descriptor that has something to read when a message arrives."""
        return self._from

    @property
    def unread(self) -> bool:
        """Whether a message has come together with the one before it."""
        return b"\n" in self._unread

    def arrived(self, wait: float) -> dict[str, Any] | None:
        """Return the next message if it comes within ``wait`` seconds;
        one about the end if the process ends so.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            while not self.unread:
                if selector.select(wait):
                    chunk = os.read(self._from, 1 << 20)
                    if not chunk:
                        return self._end()
                    self._unread += chunk
                elif self._child.poll() is not None:
                    # Processes that it has left behind may hold the pipe open.
                    return self._end()
                else:
                    return None
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _end(self) -> dict[str, Any]:
        code = self._child.wait()
        if code < 0:
            name = signal.Signals(-code).name
            out_of_memory = "; the system may have run out of memory" if name == "SIGKILL" else ""
            return {"event": "end", "reason": "error", "message": f"it was killed by {name}{out_of_memory}"}
        return {"event": "end", "reason": "error", "message": f"its process exited with status {code}"}

    # --- failures -----------------------------------------------------------------------------------------

    def failure(self, message: Mapping[str, Any]) -> Failure:
        """Return what an end means."""
        if message["reason"] in ("torch", "device"):
            return Failure(message["message"])
        if message["reason"] == "finished":
            return Failure(
                "the program ended without a step: no optimizer stepped and no module was called. "
                "`--entry MODULE:FUNCTION` names a function whose calls count as steps"
            )
        said = self._theirs(self._said())
        reason = self._theirs(message["message"] or "the program stopped") + self._unseen(message["message"])
        if "usage: " in said and not self._job.arguments:
            reason += "; pass its arguments after `--`: `torchlint verify … -- ARGS`"
        printed = f"\nThe last lines of its output:\n{said}" if said else ""
        return Failure(
            f"the program failed: {reason}{printed}", wants_torchrun=_misses_torchrun(reason + said)
        )

    def _hanging(self, waited: float) -> Failure:
        """Return what the program does instead of reaching the end of a step."""
        place = self.place()
        where = f"; it is{place}" if place else ""
        return Failure(f"the program did not finish a step within {waited:.0f} s{where}")

    def place(self) -> str:
        """Return where in its project the program is: `` at train.py:7, in main()``;
        empty if it is not there.
        """
        self._signal(signal.SIGCONT)
        before = self._log.stat().st_size
        with contextlib.suppress(OSError):
            os.kill(self._child.pid, signal.SIGUSR1)
            time.sleep(0.5)
        with self._log.open("rb") as log:
            log.seek(before)
            stack = log.read().decode(errors="replace")
        project = re.escape(self._job.project or self._job.folder)
        place = re.search(rf'File "{project}/([^"]+)", line (\d+) in (\S+)', stack)
        return f" at {place[1]}:{place[2]}, in {place[3]}()" if place else ""

    def _said(self) -> str:
        """Return the last lines that the program printed, each as far as it fits."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _LAST_BYTES))
            lines = log.read().decode(errors="replace").replace("\r", "\n").splitlines()
        last = [line for line in lines if line.strip()][-_LAST_LINES:]
        return "\n".join(f"  {line[:_LONGEST_LINE]}" for line in last)

    def _theirs(self, text: str) -> str:
        """Return the text with the paths that the user knows, instead of those of copies."""
        return text.replace(f"{self._job.scratch}/{FILE_SYSTEM}/", "/") if self._job.original else text

    def _unseen(self, reason: str) -> str:
        """Return what to do about a file that the program misses,
        and that the user has outside of the project.
        """
        missed = re.search(re.escape(f"{self._job.scratch}/{FILE_SYSTEM}") + r"(/[^'\"]+)", reason)
        if not self._job.original or missed is None:
            return ""
        place = Path(missed[1])
        if not place.exists() or place.is_relative_to(self._job.original):
            return ""
        shared = Path(os.path.commonpath([place, self._job.original]))
        part = shared / place.relative_to(shared).parts[0]
        return f"\nThis path is outside the project, which the program runs a copy of; try `--link {part}`"

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


def _fresh(
    files: tuple[int, int, int], folder: str, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Return a new interpreter; orders come from the first file, answers go to the second,
    output to the third.
    """
    theirs_in, theirs_out, output = files
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(theirs_in), str(theirs_out)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=(theirs_in, theirs_out),
        # No module that lies where the program runs may stand before torchlint's own.
        cwd=folder,
        env=dict(environment),
    )


class Nurseries:
    """A nursery for each replicate, where the system has any. Leaving the ``with`` block ends them."""

    def __init__(self, folder: Path, device: str, most: int = sys.maxsize) -> None:
        """Make none yet.

        Args:
            folder: where they have their folders.
            device: as in ``Job.device``.
            most: how many there are at most; further replicates share them.
        """
        self._folder, self._device, self._most = folder, device, most
        self._made: dict[int, Nursery] = {}
        self.loaded = False
        """Whether they have imported the libraries of a program."""
        self._lock = threading.Lock()

    def __enter__(self) -> Nurseries:
        return self

    def __exit__(self, *_: object) -> None:
        for nursery in self._made.values():
            nursery.close()

    def get(self, number: int) -> Nursery | None:
        """Return the nursery with this number, made when it is first asked for;
        None where there can be none.
        """
        if not COPIES:
            return None
        number %= self._most
        with self._lock:
            found = self._made.get(number)
            if found is None or not found.alive:
                found = self._made[number] = self._new(self._folder / f"nursery{number}")
            return found

    def load(self, modules: Sequence[tuple[str, str]]) -> None:
        """Let all copies that are made from now on have these modules, names with their files, imported.

        Where copies could not be used then, they are made without.
        """
        nursery = self.get(0)
        if nursery is None or not modules:
            return
        file = self._folder / "modules.json"
        file.write_text(json.dumps(modules), encoding="utf-8")
        try:
            self.loaded = nursery.load(file)
        except OSError:
            self.loaded = False
        if not self.loaded:
            nursery.close()

    def renew(self) -> None:
        """Make copies without any libraries again."""
        self.loaded = False
        for nursery in self._made.values():
            nursery.close()

    def _new(self, folder: Path) -> Nursery:
        return _importing(folder, self._device)


class Spares:
    """Processes that import torch before anybody knows what for; each becomes one measuring process.

    Unlike copies they are what the program is by itself: in a copy, torch has fixed how many threads the main
    thread has, which in a process of its own may still depend on what the program does first. Leaving the
    ``with`` block ends those that are left.
    """

    def __init__(self, folder: Path, device: str, count: int) -> None:
        """Start ``count`` of them; the other arguments are those of ``Nurseries``."""
        self._left = [_importing(folder / f"spare{number}", device) for number in range(count)]

    def __enter__(self) -> Spares:
        return self

    def __exit__(self, *_: object) -> None:
        for spare in self._left:
            spare.close()

    def take(self) -> Nursery | None:
        """Return one that nobody has; None if there is none left."""
        while self._left:
            spare = self._left.pop()
            if spare.alive:
                return spare
        return None


def _importing(folder: Path, device: str) -> Nursery:
    """Return a process that imports torch, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    job = Job("time", "case", "", str(folder), scratch=str(folder), device=device)
    return Nursery(_environment(job, {}), folder / "output.log")


def machine(device: str, folder: Path, nursery: Nursery | None = None) -> Machine:
    """Return what is known about the machine and the device; torch is asked in a process of its own.

    Args:
        device: as in ``Job.device``.
        folder: where the process has its folder.
        nursery: what it is a copy of, if of anything.

    Raises:
        Failure: torch is missing or too old, or there is no such device.
    """
    job = Job(task="machine", form="", path="", folder=str(folder), scratch=str(folder), device=device)
    with Process(job, folder / "machine.log", nursery=nursery) as process:
        return process.described(STARTUP)


STARTUP = 180.0
"""Seconds that importing torch may take."""
PATIENCE = 60.0
"""Seconds that a program may take for a step before it counts as hanging."""


def torchrun_variables() -> dict[str, str]:
    """Return what torchrun sets for the only process of a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    values = ("0", "0", "1", "1", "127.0.0.1", str(port))
    return dict(zip(_TORCHRUN, values, strict=True))


def _temporary(job: Job) -> str:
    """Return the temporary folder of a program, by which what it starts is known."""
    return f"{job.scratch}/tmp"


def _misses_torchrun(text: str) -> bool:
    names = "|".join(_TORCHRUN)
    missing = rf"KeyError: '({names})'|environment variable ({names}) expected|int\(\) argument .* 'NoneType'"
    return re.search(missing, text) is not None


def _environment(job: Job, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program: the user's, without what would reach out of the scratch place."""
    environment = dict(os.environ)
    temporary = _temporary(job)
    Path(temporary).mkdir(exist_ok=True)
    environment["TMPDIR"] = temporary
    if environment.get("WANDB_MODE") != "disabled":
        environment["WANDB_MODE"] = "offline"
    environment["WANDB_DIR"] = temporary
    environment["MLFLOW_TRACKING_URI"] = f"file://{temporary}/mlruns"
    # Whatever the user has: a window that opens would wait to be closed.
    environment["MPLBACKEND"] = "Agg"
    environment["PYTHONHASHSEED"] = str(job.seed)
    if environment.get("PYTHONPATH"):
        entries = [str(Path.cwd() / entry) for entry in environment["PYTHONPATH"].split(os.pathsep)]
        environment["PYTHONPATH"] = os.pathsep.join(
            copied(entry, Path(job.original), Path(job.project)) if job.original else entry
            for entry in entries
        )
    return {**environment, **visible(job.device), **more}
