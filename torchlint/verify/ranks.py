"""The processes of a program with several ranks, steered as if they were one.

They are given what ``torchrun`` gives its workers, but are not started by it: its agent puts every worker
into a session of its own, where no pause reaches it, and imports torch anew in each. Here each rank is a
process as any other, with pipes of its own. What the program does is done when the last rank has done it,
and takes as long as the slowest; and when a rank fails, so do all.
"""

from __future__ import annotations

import math
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from torchlint.verify.nursery import Nursery
from torchlint.verify.processes import PATIENCE, STARTUP, Failure, Process, Times
from torchlint.verify.worker.job import Job

CAUSE = 0.2
"""Seconds in which ranks may fail after each other, and the first of them is to blame."""
_POLL = 0.2


class Group:
    """The processes of one run of a program. Leaving the ``with`` block ends them and all they started."""

    def __init__(
        self,
        job: Job,
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        nursery: Nursery | None = None,
    ) -> None:
        """Start ``job.ranks`` processes.

        Args:
            job: what they do; each is told its rank and gets a folder of its own in ``job.scratch``.
            log: where they write; ``output.log`` stands for ``output.rank0.log`` and so on.
            environment: variables beside the user's and those of ``torchrun``.
            nursery: what they are copies of, if of anything.
        """
        self._job = job
        self._members: list[Process] = []
        port = _free_port()
        try:
            for rank in range(job.ranks):
                scratch = Path(job.scratch) / f"rank{rank}"
                scratch.mkdir()
                own = replace(job, rank=rank, scratch=str(scratch), meeting=f"{job.scratch}/meeting")
                self._members.append(
                    Process(
                        own,
                        log.with_name(f"{log.stem}.rank{rank}{log.suffix}"),
                        environment={**(environment or {}), **variables(rank, job.ranks, port)},
                        nursery=nursery,
                    )
                )
        except BaseException:
            self.close()
            raise
        self._loaded = False

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether all ranks can take orders."""
        return all(member.alive for member in self._members)

    @property
    def scratch(self) -> Path:
        """The folder of this run, which nobody needs once the group is closed."""
        return Path(self._job.scratch)

    @property
    def groups(self) -> list[int]:
        """The numbers of the process groups of the ranks."""
        return [member.group for member in self._members]

    @property
    def startup_seconds(self) -> float | None:
        """How long the last rank took to its first step."""
        return max((member.startup_seconds or 0.0 for member in self._members), default=None)

    def load(self) -> None:
        """Wait until all have imported torch and found each other.

        Raises:
            Failure: torch is missing or too old, or there are no such devices.
        """
        if not self._loaded:
            self._gather(STARTUP, "loaded")
            for member in self._members:
                member.loaded()
            self._loaded = True

    def run(self, **changes: Any) -> None:
        """Start the program in every rank; ``changes`` replace fields of the job, such as the size of a case.

        Each rank keeps its results for itself, beside those of the first, and is compared with its like; all
        with the only process of an original that has one.
        """
        self.load()
        trace = changes.pop("trace", self._job.trace)
        writes = changes.get("role", self._job.role) == "reference"
        for rank, member in enumerate(self._members):
            own = f"{trace}.rank{rank}" if rank else trace
            member.run(**changes, trace=own if writes or Path(own).exists() else trace)

    def halt(self) -> None:
        """Stop a case at the end of its step, so that it can be run again.

        Raises:
            Failure: a rank does not stop.
        """
        for member in self._members:
            member.dismiss()
        self._gather(PATIENCE, "end")

    def ready(self, timeout: float) -> None:
        """Wait until all ranks stand at the end of their first step, and pause them there.

        Raises:
            Failure: one does not get there.
        """
        for member, message in zip(self._members, self._gather(timeout, "ready"), strict=True):
            member.startup_seconds = message["startup_seconds"]
            member.pause()

    def block(self, lead: int, steps: int, timeout: float) -> Times | None:
        """Let all run ``lead`` steps, then time ``steps``; None if the program came to its own end before.

        Raises:
            Failure: a rank failed, or hangs.
        """
        for member in self._members:
            member.order(lead, steps)
        found = self._gather(timeout, "block")
        if any(message["event"] == "end" for message in found):
            return None
        for member in self._members:
            member.pause()
        return slowest([Times.told(item) for item in found])

    def examined(self, timeout: float) -> dict[str, Any]:
        """Wait for the outcome of an examination in every rank, and put them together.

        Raises:
            Failure: a rank failed, hangs, or never reached a step.
        """
        found = self._gather(timeout, "examined")
        if self._job.form == "case":
            self._gather(PATIENCE, "end")
        for message in found:
            del message["event"]
        return together(found)

    def recorded(self, timeout: float) -> dict[str, Any]:
        """Wait for the outcome of a recording, which is that of the first rank.

        Raises:
            Failure: a rank failed, or hangs.
        """
        message = self._gather(timeout, "recorded")[0]
        del message["event"]
        return message

    def kill(self) -> None:
        """End all ranks and whatever they have started, at once; ``close`` is still wanted, to tidy up."""
        for member in self._members:
            member.kill()

    def close(self) -> None:
        """End all ranks, cleanly if they let themselves be ended so, and whatever they have started."""
        for member in self._members:
            member.dismiss()
        for member in self._members:
            member.close()

    # --- messages -----------------------------------------------------------------------------------------

    def _gather(self, timeout: float, event: str) -> list[dict[str, Any]]:
        """Return one message of every rank, all about ``event``, or about the end of the program.

        Raises:
            Failure: a rank failed, ended alone, or said nothing in time. All are ended then.
        """
        found: dict[int, dict[str, Any]] = {}
        deadline = time.monotonic() + timeout
        while len(found) < len(self._members):
            self._take(found, _POLL)
            if any(map(_failed, found.values())):
                # Whoever waits for a rank that has failed may fail by that.
                time.sleep(CAUSE)
                self._take(found, 0.0)
                self._fail(found)
            if time.monotonic() > deadline and len(found) < len(self._members):
                self._hang(found, timeout)
        said = {message["event"] for message in found.values()}
        reasons = {message.get("reason") for message in found.values()}
        if said not in ({event}, {"end"}) or len(reasons) > 1:
            self.kill()
            raise Failure(f"the ranks diverged: one reached {' and one reached '.join(sorted(said))}")
        if said == {"end"} and event not in ("end", "block"):
            self._fail(found)
        return [found[rank] for rank in range(len(self._members))]

    def _take(self, found: dict[int, dict[str, Any]], wait: float) -> None:
        """Add what ranks have to say that have said nothing yet."""
        silent = [rank for rank in range(len(self._members)) if rank not in found]
        with selectors.DefaultSelector() as selector:
            for rank in silent:
                selector.register(self._members[rank].answers, selectors.EVENT_READ)
            if not any(self._members[rank].unread for rank in silent):
                selector.select(wait)
        for rank in silent:
            message = self._members[rank].arrived(0.0)
            if message is not None:
                found[rank] = message

    def _fail(self, found: Mapping[int, dict[str, Any]]) -> NoReturn:
        """Raise the failure of the rank that was the first to fail, with what it printed."""
        ended = {rank: message for rank, message in found.items() if message["event"] == "end"}
        failed = {rank: message for rank, message in ended.items() if _failed(message)} or ended
        # A rank that was ended from outside cannot say when: the others miss it, and not the other way round.
        first = min(failed, key=lambda rank: (failed[rank].get("at", -math.inf), rank))
        self._end(lambda: self._members[first].failure(failed[first]), f"rank {first} of {self._job.ranks}: ")

    def _hang(self, found: Mapping[int, dict[str, Any]], waited: float) -> NoReturn:
        """Raise the failure of ranks that say nothing, with where they are."""
        silent = [rank for rank in range(len(self._members)) if rank not in found]
        places = [f"rank {rank}{self._members[rank].place()}" for rank in silent]
        others = ", and no other" if found else ""
        self._end(
            lambda: Failure(
                f"the program did not finish a step within {waited:.0f} s; it hangs in "
                f"{', '.join(places)}{others}"
            )
        )

    def _end(self, failure: Callable[[], Failure], prefix: str = "") -> NoReturn:
        try:
            made = failure()
        finally:
            self.kill()
        raise Failure(prefix + made.reason, wants_torchrun=made.wants_torchrun)


def variables(rank: int, ranks: int, port: int) -> dict[str, str]:
    """Return what ``torchrun --nproc-per-node RANKS`` sets for one of its workers."""
    local = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    found = {name: str(value) for name, value in local.items()}
    found |= {
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(ranks),
    }
    found |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if ranks > 1:
        found["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        # All ranks are here: the name of the machine need not lead anywhere.
        own = "lo0" if sys.platform == "darwin" else "lo"
        found["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", own)
    return found


def slowest(times: Sequence[Times]) -> Times:
    """Return the time of a block that several ranks ran side by side,
    with the lowest clock of their devices.
    """
    devices = [item.device for item in times if item.device is not None]
    clocks = [item.clock for item in times if item.clock is not None]
    return Times(
        max(item.wall for item in times),
        max(devices, default=None),
        min(clocks, default=None),
        times=tuple(map(max, *(item.times for item in times))) if len(times) > 1 else times[0].times,
    )


def together(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the examinations of all ranks as one.

    The most memory that any has; the slowest step; the processors that all keep busy; the lines that any has
    run; and results that are the same only if they are on every rank. The rest is what the first has to tell.
    """
    first = dict(found[0])
    for name in ("step_seconds", "startup_seconds"):
        if name in first:
            first[name] = max(item[name] for item in found)
    if "busy" in first:
        first["busy"] = sum(item["busy"] for item in found)
    evidence = dict(first["evidence"])
    for name in ("peak_allocated", "peak_reserved"):
        if name in evidence:
            evidence[name] = max(item["evidence"].get(name, 0) for item in found)
    most = max(found, key=lambda item: item["evidence"].get("peak_allocated", 0))["evidence"]
    if "roles" in most:
        evidence["roles"] = most["roles"]
    lines = [item["lines"] for item in found if item.get("lines") is not None]
    if lines:
        # What a single rank does, such as to log or to save, runs.
        first["lines"] = {
            file: sorted({row for item in lines for row in item.get(file, ())})
            for file in dict.fromkeys(file for item in lines for file in item)
        }
    return {**first, "evidence": evidence, "results": _results([item["results"] for item in found])}


def _results(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what ``worker.trace`` compared on all ranks, each result with its rank."""
    first = dict(found[0])
    first["steps"] = min(item["steps"] for item in found)
    for name, every in (("bitwise", all), ("kinds_agree", all), ("streams_differ", any)):
        if name in first:
            first[name] = every(item[name] for item in found)
    for name in ("moments", "coarsest"):
        if name in first:
            first[name] = max(item[name] for item in found)
    if "differences" in first:
        first["differences"] = {
            f"rank {rank}'s {key}": value
            for rank, item in enumerate(found)
            for key, value in item["differences"].items()
        }
    return first


def _failed(message: Mapping[str, Any]) -> bool:
    return message["event"] == "end" and message["reason"] not in ("finished", "stopped")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
