"""The measurement of one program: examine its variants, then time them against each other.

The coordinator never imports torch. Everything that is known so far can be had at any time, so that an
interrupted measurement still reports what it has.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from torchlint.verify import judge, stats
from torchlint.verify.awake import processors_awake
from torchlint.verify.periodic import periodic
from torchlint.verify.plan import (
    BLOCK_STEPS,
    FIRST_ROUNDS,
    LEAST_REPLICATES,
    LEAST_ROUNDS,
    MOST_WARMUPS,
    Costs,
    Plan,
    Wishes,
    plan,
    replicates,
)
from torchlint.verify.processes import (
    PATIENCE,
    Failure,
    Nurseries,
    Process,
    Spares,
    Times,
    torchrun_variables,
)
from torchlint.verify.ranks import Group
from torchlint.verify.reach import reached
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Allocation,
    Block,
    Comparison,
    Curve,
    Evidence,
    Examination,
    Line,
    Machine,
    Measurement,
    Noise,
    Roles,
    Sameness,
    SyncPhase,
    SyncReport,
    Timeline,
    Variant,
    Verdict,
)
from torchlint.verify.stats import discard
from torchlint.verify.timeline import Recording
from torchlint.verify.worker.job import Job

PRECISE = 0.03
"""The relative half-width of an interval that needs no further replicates to narrow it."""
ONE_PROCESSOR = 1.5
"""A program that keeps fewer processors busy than this leaves the others asleep. One that uses them all has
its threads spread over them by the system, which idle work on every processor would hinder."""
MEMORY_SHARE = 0.85
"""How much of the device's memory the processes of one replicate may fill."""
BUSY = 1.5
"""From how many times as much to do as it has processors on a machine counts as busy."""
CONTEXT = 600 << 20
"""Bytes of device memory that a process takes beside what torch counts."""
PROCESS_MEMORY = 3 << 30
"""Bytes of the machine's memory that a program is given room for where several wait side by side."""

Running = Process | Group
"""One run of a program, in one process or in several."""
Progress = Callable[[str, float], None]
"""Told what is being done, and which share of the whole (0 to 1) is behind."""


class Subject(Protocol):
    """A program with its variants."""

    @property
    def name(self) -> str:
        """The rule's code, or the script's path."""

    @property
    def source(self) -> str:
        """The original text."""

    @property
    def reruns(self) -> bool:
        """Whether one process can run the program several times, in several sizes."""

    @property
    def ranks(self) -> int:
        """How many processes one run of the program has."""

    def job(self, variant: str, task: str) -> Job:
        """Return what a process is told to run ``variant``, in a folder that nothing else uses."""


class Pool:
    """The processes of one subject.

    A process of a subject that reruns is kept, and found again by its variant, task and replicate. With
    ``nurseries``, processes are copies: those of one replicate from the same nursery. Those that are no
    copies are ``spares``, as long as there are any.
    """

    def __init__(
        self, subject: Subject, nurseries: Nurseries | None = None, spares: Spares | None = None
    ) -> None:
        self.subject = subject
        self._nurseries, self._spares = nurseries, spares
        self.fresh: frozenset[str] = frozenset()
        """The tasks whose processes are no copies all the same."""
        self.environment: Callable[[], dict[str, str]] = dict
        """Called for each process: the variables that it gets beside the user's."""
        self._kept: dict[tuple[str, str, int], Running] = {}
        self._alive: set[Running] = set()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def start(self, variant: str, task: str, replicates: int) -> None:
        """Let processes import torch now that will be wanted soon."""
        for replicate in range(replicates):
            if (variant, task, replicate) not in self._kept:
                self._kept[variant, task, replicate] = self._new(variant, task, replicate)

    @contextmanager
    def process(self, variant: str, task: str, replicate: int = 0) -> Iterator[Running]:
        """Yield a process that can run the program; afterwards it is ended, or stopped at a step and kept."""
        process = self._kept.pop((variant, task, replicate), None)
        process = process or self._new(variant, task, replicate)
        try:
            yield process
            if self.subject.reruns and task == "time":
                process.halt()
        except BaseException:
            self._end(process)
            raise
        if self.subject.reruns and process.alive:
            self._kept[variant, task, replicate] = process
        else:
            self._end(process)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """End the kept processes afterwards; the pool can still make new ones."""
        try:
            yield
        finally:
            kept, self._kept = list(self._kept.values()), {}
            # All at once: a process takes a while to give back what it has of the device.
            for process in kept:
                process.kill()
            for process in kept:
                self._end(process)

    def release(self, process: Running) -> None:
        """End a program that only runs once and has said all that it was asked; ``_end`` still tidies up."""
        if not self.subject.reruns:
            process.kill()

    def abort(self) -> None:
        """End all processes at once, those at work in other threads included."""
        for process in list(self._alive):
            process.kill()

    def _new(self, variant: str, task: str, replicate: int) -> Running:
        job = self.subject.job(variant, task)
        copied = self._nurseries is not None and task not in self.fresh
        nursery = self._nurseries.get(replicate) if self._nurseries and copied else None
        log = Path(job.scratch) / "output.log"
        process: Running
        if job.ranks > 1:
            process = Group(job, log, environment=self.environment(), nursery=nursery)
        else:
            spare = self._spares.take() if self._spares and not copied else None
            process = Process(job, log, environment=self.environment(), nursery=nursery, spare=spare)
        self._alive.add(process)
        return process

    def _end(self, process: Running) -> None:
        self.release(process)
        process.close()
        self._alive.discard(process)
        shutil.rmtree(process.scratch, ignore_errors=True)


@dataclass(frozen=True)
class Settings:
    """How to measure, whatever the program is."""

    device: str = "auto"
    wishes: Wishes = field(default_factory=Wishes)
    budget: float = 120.0
    """Seconds."""
    tolerance: float = judge.TOLERANCE
    seed: int = 0


@dataclass
class Session:
    """Measures one subject step by step, and knows at any time what it has so far."""

    pool: Pool
    settings: Settings
    machine: Machine
    folder: Path
    """Where the results of the original are kept."""
    size: str | None = None
    remarks: tuple[str, ...] = ()
    """What is to be said of it whatever comes out, as ``Measurement.notes``."""
    variants: list[Variant] = field(default_factory=list)
    examinations: dict[str, Examination] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    windows: list[Block] = field(default_factory=list)
    """What the profiler saw of those that are not settled."""
    notes: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    syncs: SyncReport | None = None
    curves: list[Curve] = field(default_factory=list)
    timelines: Sequence[Timeline] = ()
    spent: dict[str, float] = field(default_factory=dict)
    """As ``Measurement.spent``."""
    importing: float = 0.0
    """Seconds that a process that is no copy takes to import torch."""
    modules: tuple[str, ...] = ()
    """The files of the project that the original loaded, relative to it."""
    libraries: Sequence[tuple[str, str]] = ()
    """The modules from elsewhere that it loaded, with their files; none if they depend on the program."""
    lines: Mapping[str, frozenset[int]] | None = None
    """The lines that ran in the original, by file; None where that is not known."""
    news: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """The first line that was new in a step of the original, by the number of the step."""
    unreached: list[Variant] = field(default_factory=list)
    """The fixed variants that are not examined, since nothing that they change ran."""
    _replicates: int = 0
    _say: Callable[[float], None] = lambda _: None
    """Told which share of the time for the timing is over."""
    _rounded: set[str] = field(default_factory=set)
    """The variants whose results may differ by nothing but how numbers are rounded."""
    _current: int = 0
    """The replicate at hand."""
    _warmup: int = 0
    _run_steps: int = 0
    """How far the programs of the replicate at hand have come."""
    _awake: int = 0
    _planned: Plan | None = None
    _watched: float = field(default_factory=lambda: WATCHING_SECONDS)
    """Seconds that it takes to watch the device in one process."""
    _started: float | None = None
    """Seconds from the start of a replicate to its first block, for each of its variants."""
    _copying: float = 0.0
    """Seconds that it takes to copy the project and to start a process in it."""
    _end: float = field(init=False)
    """Until when the budget lasts, on the clock ``time.monotonic``."""
    _allowed: float = field(init=False)
    """How long it was when it was last said."""

    def __post_init__(self) -> None:
        self.allow(self.settings.budget)

    def allow(self, seconds: float) -> None:
        """Let the timing take ``seconds`` from now on."""
        self._end = time.monotonic() + seconds
        self._allowed = seconds

    @contextmanager
    def _spending(self, on: str) -> Iterator[None]:
        """Count the time of the ``with`` block as spent on something."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent[on] = self.spent.get(on, 0.0) + time.monotonic() - began

    @property
    def begun(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.examinations or self.notes)

    @property
    def half_width(self) -> float:
        """How wide the widest interval is, as ``Interval.half_width``; infinite where nothing was timed."""
        found = [item.wall.half_width for item in self.measurement().comparisons if item.wall is not None]
        return max(found, default=math.inf)

    @property
    def spreads(self) -> bool:
        """Whether the program uses several processors at once."""
        original = self.examinations.get(ORIGINAL)
        ranks = self.pool.subject.ranks
        return original is not None and (original.busy or ranks) >= ONE_PROCESSOR * ranks

    @property
    def _patience(self) -> float:
        """How long a program may take to examine, or for its first step, in seconds."""
        if self.pool.subject.ranks > 1 and self.machine.device != "cpu":
            # Ranks that wait for one another for good must not use up the time of all cases.
            return 2 * PATIENCE
        return max(self.settings.budget, PATIENCE)

    @property
    def _trace(self) -> Path:
        return self.folder / f"{self.size or 'trace'}.pt"

    # --- examination ------------------------------------------------------------------------------------

    def examine_original(self) -> Examination:
        """Run the original once: what its steps are, what it computes, what the device does.

        Raises:
            Failure: it does not run, or never reaches a step.
        """
        self.variants = [Variant(ORIGINAL), Variant(AGAIN)]
        found = self._found("examine")
        self.libraries = found["libraries"]
        self.news = {number: (file, row) for number, file, row in found["news"]}
        self.examinations[ORIGINAL] = _examination(ORIGINAL, found, Sameness(Agreement.IDENTICAL))
        return self.examinations[ORIGINAL]

    def watch_original(self) -> tuple[Evidence, tuple[SyncPhase, ...], bool]:
        """Run the original once, to its end or for the time that is left, and see where it waits.

        Returns:
            The waits, what the program did, and whether it came to its end.

        Raises:
            Failure: it does not run, or never reaches a step.
        """
        self.variants = [Variant(ORIGINAL)]
        found = self._found("watch")
        examined = _examination(ORIGINAL, found, Sameness(Agreement.UNCHECKED))
        self.examinations[ORIGINAL] = examined
        return examined.evidence, tuple(SyncPhase(**item) for item in found["phases"]), examined.ended

    def _found(self, task: str) -> dict[str, Any]:
        """Return what the original's first run tells; it is started as torchrun does where it wants that."""
        try:
            found = self._run_original(task)
        except Failure as error:
            if not error.wants_torchrun:
                raise
            self.pool.environment = torchrun_variables
            self.notes.append("the program expects torchrun; it was run with a single process")
            found = self._run_original(task)
        self.modules = tuple(found["modules"])
        if found["lines"] is not None:
            self.lines = {file: frozenset(rows) for file, rows in found["lines"].items()}
        return found

    def reaches(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Return whether the original ran any of what is changed, as far as that is known.

        Args:
            before: the texts of its files.
            after: those of the files that change.
        """
        lines = self.lines
        return lines is None or any(
            reached(before[file], text, lines.get(file, frozenset())) for file, text in after.items()
        )

    def affordable(self, variants: Sequence[Variant], reserved: float = 0.0) -> list[Variant]:
        """Return the variants that the budget has time to examine and to time, the first in any case.

        Of the others ``dropped`` says that they are left out. ``reserved`` seconds are for something else.
        """
        left = self._left() - reserved
        planned = self._plan([ORIGINAL, AGAIN, variants[0].name], [item.name for item in variants[1:]], left)
        self._say_dropped(planned.dropped)
        return [item for item in variants if item.name not in planned.dropped]

    def rejected(self, variants: Sequence[Variant]) -> bool:
        """Return whether none of these may be timed, so that the budget is there for others."""
        return not any(self._sound(item.name) or item.name in self._rounded for item in variants)

    def examine(self, variants: Sequence[Variant]) -> None:
        """Run the original again and every variant once, and compare what they compute."""
        self.variants += (item for item in variants if item not in self.variants)
        names = [AGAIN, *(variant.name for variant in variants)]
        with self._spending("results"), ExitStack() as stack:
            processes = [stack.enter_context(self.pool.process(name, "examine")) for name in names]
            with ThreadPoolExecutor(self._parallel(len(names))) as threads:
                try:
                    found = dict(zip(names, threads.map(self._attempt, names, processes), strict=True))
                except BaseException:
                    threads.shutdown(wait=False, cancel_futures=True)
                    self.pool.abort()
                    raise
        self._judge(found, [found[AGAIN]])
        runs = [found[AGAIN]]
        for role in ("compared", "perturbed"):
            agreements = {self.examinations[name].sameness.agreement for name in names[1:]}
            if Agreement.DIFFERENT not in agreements or self._left() <= 0:
                break
            # Perhaps the program differs from itself by as much, and one run did not show it.
            with self._spending("results"), self.pool.process(AGAIN, "examine") as process:
                runs.append(self._attempt(AGAIN, process, role))
            self._judge(found, runs)

    def _judge(
        self, found: Mapping[str, dict[str, Any] | Failure], again: Sequence[dict[str, Any] | Failure]
    ) -> None:
        """Compare what the variants found with the original, given what that found when it ran ``again``."""
        noise: dict[str, float] = {}
        for run in again:
            if not isinstance(run, Failure):
                for key, value in run["results"].get("differences", {}).items():
                    noise[key] = max(value, noise.get(key, 0.0))
        for name, item in found.items():
            if not isinstance(item, Failure):
                differences = item["results"].get("differences", {})
                (self._rounded.add if judge.rounds_otherwise(differences) else self._rounded.discard)(name)
            self.examinations[name] = self._judged(name, item, {} if name == AGAIN else noise)

    def train(self) -> None:
        """Train the original and what only rounds otherwise from a few seeds: does that train the same?

        What does is no longer of different results.
        """
        alone = self.pool.subject.ranks == 1
        names = sorted(name for name in self._rounded - {AGAIN} if alone and not self._sound(name))
        runs = [(name, seed) for seed in range(SEEDS) for name in (ORIGINAL, *names)] if names else []
        if not runs or (steps := self._training_steps(len(runs))) < judge.FEWEST_LOSSES:
            return

        def trained(variant: str, seed: int) -> Curve:
            with self.pool.process(variant, "train", seed) as process:
                assert isinstance(process, Process)
                try:
                    process.run(
                        **self._changes(train_steps=steps, shift=seed, seed=self.settings.seed + seed)
                    )
                    return Curve(variant, seed, tuple(process.trained(self._patience)))
                except Failure:
                    return Curve(variant, seed, ())

        with self._spending("training"), ThreadPoolExecutor(self._parallel(len(runs))) as threads:
            try:
                self.curves = list(threads.map(lambda run: trained(*run), runs))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self.pool.abort()
                raise
        losses = {name: [item.losses for item in self.curves if item.variant == name] for name, _ in runs}
        for name in names:
            same, reason = judge.training(losses[ORIGINAL], losses[name])
            examined = self.examinations[name]
            found = examined.sameness
            told = replace(
                found,
                agreement=Agreement.TRAINS if same else found.agreement,
                reason=reason if same else f"{found.reason}; {reason}",
            )
            self.examinations[name] = replace(examined, sameness=told)

    def _training_steps(self, runs: int) -> int:
        """Return how many steps of each run there is time for."""
        original = self.examinations[ORIGINAL]
        waves = math.ceil(runs / self._parallel(runs))
        costs = self._costs()
        # Side by side, programs take longer than alone.
        seconds = TRAINING * self._left() / waves - costs.startup - costs.copy
        steps = min(int(seconds / (2 * costs.step)), MOST_LOSSES)
        return min(steps, original.steps - 1) if original.ended else steps

    def _attempt(self, name: str, process: Running, role: str = "") -> dict[str, Any] | Failure:
        """Return what the run of a variant found, or how it failed."""
        try:
            found = self._run(name, process, role)
        except Failure as error:
            process.kill()
            return error
        self.pool.release(process)
        return found

    def _judged(self, name: str, found: dict[str, Any] | Failure, noise: Mapping[str, float]) -> Examination:
        if isinstance(found, Failure):
            sameness = Sameness(Agreement.FAILED, reason=found.reason)
            return Examination(name, sameness=sameness, failure=found.reason)
        return _examination(name, found, judge.agreement(found["results"], noise, self.settings.tolerance))

    def _run_original(self, task: str) -> dict[str, Any]:
        began = time.monotonic()
        with self._spending("original"), self.pool.process(ORIGINAL, task) as process:
            self._copying = time.monotonic() - began
            if task == "watch":
                process.load()
                process.run(**self._changes(watch_seconds=self._left()))
                return process.examined(self._left() + self._patience)
            return self._run(ORIGINAL, process)

    def _run(self, name: str, process: Running, role: str = "") -> dict[str, Any]:
        role = role or {ORIGINAL: "reference", AGAIN: "perturbed"}.get(name, "compared")
        process.run(**self._changes(trace=str(self._trace), role=role))
        return process.examined(self._patience)

    def _changes(self, **more: Any) -> dict[str, Any]:
        """Return what is said of the job beside what the subject says."""
        original = self.examinations.get(ORIGINAL)
        if self.size is not None:
            more["size"] = self.size
        if original is not None:
            more["steps_by"] = "forward" if original.found_by.startswith("forward") else "optimizer"
        return {"seed": self.settings.seed, **more}

    @property
    def recording_seconds(self) -> float:
        """About how long it takes to record steps of a variant."""
        costs = self._costs()
        return costs.copy + costs.startup + (self._lead + self._recorded_steps) * costs.step + WRITING

    @property
    def _recorded_steps(self) -> int:
        original = self.examinations[ORIGINAL]
        most = int(RECORDED_SECONDS / (original.step_seconds or BLIND_STEP))
        there = original.steps - LEAST_LEAD if original.ended else MOST_RECORDED
        return max(1, min(MOST_RECORDED, most, there))

    @property
    def _lead(self) -> int:
        """How many steps run before the first that is recorded."""
        original = self.examinations[ORIGINAL]
        lead = max(LEAST_LEAD, min(MOST_LEAD, int(LEADING / (original.step_seconds or BLIND_STEP))))
        return max(1, min(lead, original.steps - self._recorded_steps)) if original.ended else lead

    def record(self, name: str, variant: str) -> Recording:
        """Run a variant once, and record some of its steps as the recording ``name``."""
        path = self.folder / f"{name}.timeline"
        with self._spending("recording"), self.pool.process(variant, "record") as process:
            try:
                steps = {"lead_steps": self._lead, "recorded_steps": self._recorded_steps}
                process.run(**self._changes(timeline=str(path), **steps))
                said = process.recorded(self._patience)
            except Failure as error:
                process.kill()
                return Recording(name, missing=error.reason)
        found = {} if said["missing"] else json.loads(path.read_text(encoding="utf-8"))
        return Recording(name, said["step"], said["missing"], found)

    # --- time -------------------------------------------------------------------------------------------

    def time(self, progress: Progress) -> None:
        """Time every variant that kept the results, for as long as the budget allows."""
        original = self.examinations.get(ORIGINAL)
        if original is None or original.failure is not None:
            return
        alone = [
            variant.name
            for variant in self.variants
            if variant.name not in (ORIGINAL, AGAIN, TOGETHER) and self._sound(variant.name)
        ]
        together = [TOGETHER] if self._known(TOGETHER) and self._sound(TOGETHER) else []
        if not together and not alone:
            return
        planned = self._plan([ORIGINAL, AGAIN, *together], alone, self._left(), examined=True)
        self._say_dropped(planned.dropped)
        if len(planned.variants) <= len((ORIGINAL, AGAIN)):
            return
        self._planned = planned
        self.time_more(progress)
        wanted = self.settings.wishes.replicates
        if not self._replicates:
            self.notes.append("the time was up before anything could be timed; raise `--budget`")
        elif wanted is not None and self._replicates < wanted:
            self.notes.append(f"the budget ran out after {self._replicates} of {wanted} replicates")

    def time_more(self, progress: Progress) -> None:
        """Run replicates of what ``time`` has planned, until the verdicts are settled or the budget ends."""
        if self._planned is None:
            return
        # A user's program is timed as it runs by itself, on processors that sleep between its steps.
        wakeful = self.pool.subject.reruns and not self.spreads
        with processors_awake() if wakeful else nullcontext(0) as self._awake:
            while self._planned is not None and (more := self._more(self._planned)):
                self._planned = self._replicate_all(self._planned, more, progress)

    def _more(self, planned: Plan) -> int:
        """Return how many more replicates there shall be."""
        done, wanted = self._replicates, self.settings.wishes.replicates
        # A case is planned to get the fewest; the time of a program is its user's.
        least = LEAST_REPLICATES if self.pool.subject.reruns else 0
        if self._left() <= 0 and done >= least:
            return 0
        if wanted is not None:
            return wanted - done
        open_ = self._open(planned.variants)
        if done and not open_:
            return 0
        planned = replace(planned, variants=(ORIGINAL, AGAIN, *(open_ or planned.variants)))
        left = self._left() - self._watching(planned, done)
        found = replicates(self._costs(), planned, left, done, self._spread(open_))
        return max(found, (least or 1) - done)

    def _spread(self, variants: Sequence[str]) -> float:
        """Return the deviation of blocks over that of processes,
        of the variants that are still to be decided.
        """
        return median([stats.spread(self.blocks, ORIGINAL, name) for name in variants] or [math.inf])

    def _replicate_all(self, planned: Plan, more: int, progress: Progress) -> Plan:
        """Run one replicate with a share of the budget, in as many parts as the device's memory wants.

        Where there is room, the first of them run side by side.
        """
        number = self._replicates
        open_ = self._open(planned.variants) if number else planned.variants
        groups = self._groups([name for name in planned.variants if name in open_])
        # Of a program with long steps, the budget may be enough for the fewest rounds of one process only.
        fits = LEAST_REPLICATES * self._costs().replicate(planned) <= self._left()
        together = LEAST_REPLICATES if not number and fits and self._beside(planned.variants) else 1
        until = self._left() * min(together / more, 1)
        self._current = number + together - 1
        for place, group in enumerate(groups):
            processes = "process" if together == 1 else "processes"
            which = " and ".join(str(number + 1 + other) for other in range(together))
            self._say = partial(progress, f"timing, {processes} {which} of each variant")
            end = time.monotonic() + until / len(groups)
            numbers = [(number + other) * len(groups) + place for other in range(together)]
            ended = self._replicate(replace(planned, variants=group), numbers, end)
            self._replicates = number + together
            if ended is not None and planned.lead:
                # Shorter than the examination could see: from now on every step counts.
                made = plan(planned.variants, (), self._costs(), self.settings.wishes, self._left(), ended)
                planned = replace(made, dropped=planned.dropped)
                if all(block.replicate not in numbers for block in self.blocks):
                    self._replicates = number
        return planned

    def _beside(self, variants: Sequence[str]) -> bool:
        """Return whether the first replicates of a program can all be there at once.

        They are started in the time that one takes, and blocks of each process are spread over all the time.
        """
        subject, wanted = self.pool.subject, self.settings.wishes.replicates
        count = LEAST_REPLICATES * len(variants)
        if subject.reruns or subject.ranks > 1 or count > processors():
            return False
        if wanted is not None and wanted < LEAST_REPLICATES:
            return False
        memory = self.machine.memory
        return count <= self._room and (memory is None or count * PROCESS_MEMORY <= memory)

    @property
    def _share(self) -> float:
        """Which share of the time for the timing is over."""
        left = max(self._left(), 0.0)
        return 1 - left / self._allowed if self._allowed > 0 else 1.0

    def _plan(
        self, needed: Sequence[str], alone: Sequence[str], budget: float, *, examined: bool = False
    ) -> Plan:
        original = self.examinations[ORIGINAL]
        total = original.steps if original.ended else None
        return plan(needed, alone, self._costs(), self.settings.wishes, budget, total, examined=examined)

    def _say_dropped(self, names: Sequence[str]) -> None:
        if names:
            self.dropped.append(
                f"{', '.join(names)}: not timed separately, because the budget is too small; "
                "raise it with `--budget SECONDS`"
            )

    def _costs(self) -> Costs:
        original, examined = self.examinations[ORIGINAL], self.examinations.values()
        return Costs(
            step=original.step_seconds or BLIND_STEP,
            # The first run had to import what its copies find imported.
            startup=self.importing + (original.startup_seconds or 0.0)
            if "time" in self.pool.fresh
            else min(filter(None, (item.startup_seconds for item in examined)), default=0.0),
            parallel=self._parallel(processors()),
            examination=EXAMINED_STEPS * (original.step_seconds or BLIND_STEP),
            copy=self._copying,
            started=self._started,
            spreads=self.spreads,
        )

    def _replicate(self, planned: Plan, numbers: Sequence[int], end: float) -> int | None:
        """Start all variants and run their rounds; if the program ended, the number of steps it had.

        There are at least as many rounds as are of use, and more until the time ``end``. A variant whose
        verdict is settled takes no further part. Replicates of several ``numbers`` take turns.
        """
        orders = {number: _order(planned.variants, self.settings.seed, number) for number in numbers}
        end -= self._watching(planned, self._current)
        began = time.monotonic()
        with ExitStack() as stack:
            open_ = self.pool.process
            with self._spending("start"):
                sets = {
                    number: {name: stack.enter_context(open_(name, "time", number)) for name in order}
                    for number, order in orders.items()
                }
                every = [process for processes in sets.values() for process in processes.values()]
                for process in every:
                    stack.callback(self.pool.release, process)
                    process.run(**self._changes())
                for process in every:
                    process.ready(self._patience)
            try:
                with self._spending("warm-up"):
                    self._warm_up(planned, every)
                if len(sets) == 1:
                    # Those that started side by side had imported torch before.
                    self._started = (time.monotonic() - began) / len(planned.variants)
                taken = 0.0
                # A program that is over soon has no steps for both in one process.
                only_watched = self._watches and self._short and self._current in WATCHED_SHORT
                rounds = 0 if only_watched else planned.rounds or sys.maxsize
                for turn, number in ((turn, number) for turn in range(0, rounds, 2) for number in numbers):
                    began = time.monotonic()
                    if turn >= planned.least_rounds and self._enough(planned, turn, end, taken):
                        break
                    still = self._still(planned.variants, turn)
                    if not still:
                        break
                    self._run_steps = 1 + planned.warmup + turn * (planned.lead + planned.steps)
                    names = [name for name in orders[number] if name in still]
                    with self._spending("timed"):
                        for half, order in enumerate((names, names[::-1])):
                            self._round(planned, sets[number], number, turn + half, order)
                    taken = time.monotonic() - began
                if only_watched or (not self._short and self._current in WATCHED):
                    with self._spending("device work"):
                        self._watch_all(planned, sets)
            except _Ended:
                return self._run_steps
        return None

    def _enough(self, planned: Plan, turn: int, end: float, taken: float) -> bool:
        """Return whether a replicate has had its share of the time,
        or fewer rounds where others are to follow.

        Two further rounds take about ``taken`` seconds. What is left and too short for another replicate is
        best spent on the processes that are there.
        """
        left = self._left() - self._watching(planned, self._current)
        if left < taken:
            return True
        first = self._current < LEAST_REPLICATES - 1 and turn >= FIRST_ROUNDS
        over = first or (turn == FIRST_ROUNDS and self._others_wanted(planned))
        over = over or time.monotonic() + taken > end
        another = self._costs().replicate(planned) + self._watching(planned, self._current + 1)
        return over and (self.pool.subject.reruns or another <= left)

    def _others_wanted(self, planned: Plan) -> bool:
        """Return whether the rest of the budget is for several other processes:
        a single one costs too much.
        """
        if self._current != LEAST_REPLICATES - 1:
            return False
        left = self._left() - self._watching(planned, self._current)
        spread = self._spread(self._open(planned.variants))
        return replicates(self._costs(), planned, left, LEAST_REPLICATES, spread) > 1

    def _round(
        self, planned: Plan, processes: Mapping[str, Running], number: int, turn: int, names: Sequence[str]
    ) -> None:
        """Time one block of each variant."""
        self._say(self._share)
        times = {name: self._block(processes[name], planned.lead, planned.steps) for name in names}
        self._run_steps += planned.lead + planned.steps
        self.blocks += [
            taken.block(name, number, turn, place, planned.steps)
            for place, (name, taken) in enumerate(times.items())
        ]

    def _watching(self, planned: Plan, number: int) -> float:
        """Return how long it takes to watch the device at the end of a replicate; 0 where nobody does."""
        if not self._watches or self._short or number not in WATCHED:
            return 0.0
        sets = LEAST_REPLICATES if self._beside(planned.variants) else 1
        own = [block.wall / block.steps for block in self.blocks if block.variant == ORIGINAL]
        step = median(own) if own else self.examinations[ORIGINAL].step_seconds or BLIND_STEP
        # Under the profiler, steps take longer.
        seconds = 1.5 * WINDOWS * (planned.lead + _window_steps(planned)) * step
        return sets * len(planned.variants) * max(self._watched, seconds)

    @property
    def _short(self) -> bool:
        """Whether the program has fewer steps than somebody may want."""
        return self._planned is not None and self._planned.rounds is not None

    @property
    def _watches(self) -> bool:
        """Whether the device's own work is of interest: a case can be timed for as long as it takes."""
        subject = self.pool.subject
        return self.machine.device == "cuda" and subject.ranks == 1 and not subject.reruns

    def _watch_all(self, planned: Plan, sets: Mapping[int, Mapping[str, Running]]) -> None:
        """Let the profiler see the programs, and once more where that says nothing yet and there is time.

        Raises:
            _Ended: a program came to its end first.
        """
        taken = 0.0
        for turn in range(0, MOST_WINDOWS, WINDOWS):
            seen = {block.replicate for block in self.windows}
            if turn and (self._short or len(seen) < LEAST_REPLICATES or self._left() < taken):
                break
            if turn and not self._undecided(planned.variants):
                break
            began = time.monotonic()
            for number, processes in sets.items():
                self._watch(planned, processes, number, turn)
            taken = time.monotonic() - began

    def _undecided(self, variants: Sequence[str]) -> bool:
        """Return whether neither the times nor what the device does settle a variant."""
        blocks, windows = discard(self.blocks), discard(self.windows)
        noise, original = judge.noise(blocks), self.examinations[ORIGINAL]
        found = [
            judge.comparison(self.examinations[name], original, blocks, noise, windows)
            for name in variants
            if name not in (ORIGINAL, AGAIN)
        ]
        return any(item.verdict in (Verdict.UNCLEAR, Verdict.UNFIT) for item in found)

    def _watch(self, planned: Plan, processes: Mapping[str, Running], number: int, first: int) -> None:
        """Let the profiler see some blocks of each variant that is not settled, one program at a time.

        Raises:
            _Ended: a program came to its end first.
        """
        open_ = self._open(planned.variants) if self._watches else []
        names = [name for name in processes if name in (ORIGINAL, AGAIN, *open_)] if open_ else []
        steps = _window_steps(planned)
        began = time.monotonic()
        for turn in range(first, first + WINDOWS if names else first):
            for place, name in enumerate(names if turn % 2 == 0 else names[::-1]):
                process = processes[name]
                assert isinstance(process, Process)
                taken = process.work(planned.lead, steps, PATIENCE)
                if taken is None:
                    raise _Ended
                self.windows.append(taken.block(name, number, turn, place, steps))
        if names:
            self._watched = (time.monotonic() - began) / len(names)

    def _still(self, variants: Sequence[str], turn: int) -> Sequence[str]:
        """Return the variants that take part in the next rounds, the original and its copy among them;
        or none.
        """
        if turn < LEAST_ROUNDS or self._current < LEAST_REPLICATES - 1:
            return variants
        open_ = self._open(variants)
        return (ORIGINAL, AGAIN, *open_) if open_ else ()

    def _block(self, process: Running, lead: int, steps: int) -> Times:
        """Let one variant run and be timed.

        Raises:
            _Ended: its program came to an end first.
        """
        expected = (self.examinations[ORIGINAL].step_seconds or 1.0) * (lead + steps)
        times = process.block(lead, steps, PATIENCE + 50 * expected)
        if times is None:
            raise _Ended
        return times

    def _warm_up(self, planned: Plan, processes: Sequence[Running]) -> None:
        """Run steps that do not count, in several programs side by side.

        Raises:
            _Ended: a program came to an end first.
        """
        chunk = max(1, planned.warmup // MOST_WARMUPS)
        self._run_steps = 1
        with ThreadPoolExecutor(self._parallel(len(processes))) as threads:
            try:
                while (left := 1 + planned.warmup - self._run_steps) > 0:
                    steps = min(chunk, left)
                    list(threads.map(partial(self._block, lead=0, steps=steps), processes))
                    self._run_steps += steps
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self.pool.abort()
                raise
        self._warmup = max(self._warmup, planned.warmup)

    def _groups(self, others: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the variants that may hold the device's memory at once;
        each group has the original twice.
        """
        others = [name for name in others if name not in (ORIGINAL, AGAIN)]
        size = int(min(max(3, self._room) - 2, max(1, len(others))))
        return [(ORIGINAL, AGAIN, *others[at : at + size]) for at in range(0, len(others), size)]

    @property
    def _room(self) -> float:
        """How many processes the device has memory for; infinite where that is not known."""
        peak = self.examinations[ORIGINAL].evidence.peak_reserved
        if not peak or not self.machine.gpu_memory:
            return math.inf
        return MEMORY_SHARE * self.machine.gpu_memory // (peak + CONTEXT)

    def _open(self, variants: Sequence[str]) -> list[str]:
        """Return the fixed variants that are not settled; all of them,
        where the user said how many processes.
        """
        fixed = [name for name in variants if name not in (ORIGINAL, AGAIN)]
        if self.settings.wishes.replicates is not None:
            return fixed
        blocks = discard(self.blocks)
        noise = judge.noise(blocks)
        original = self.examinations[ORIGINAL]
        found = [judge.comparison(self.examinations[name], original, blocks, noise) for name in fixed]
        return [item.variant for item in found if not _settled(item)]

    def _left(self) -> float:
        return self._end - time.monotonic()

    def _known(self, name: str) -> bool:
        return name in self.examinations

    def _sound(self, name: str) -> bool:
        agreement = self.examinations[name].sameness.agreement
        return agreement not in (Agreement.DIFFERENT, Agreement.FAILED)

    def _parallel(self, count: int) -> int:
        """Return how many programs may run at once while nothing is timed: they must fit into the memory.

        Where each keeps all processors busy, several of them take far longer side by side than in turn:
        OpenMP's threads wait for one another at every operation. Of a program that prepares images with
        all of 16 processors, a step of 10 ms took 284 beside one other, and warming up six of them took 56 s.
        """
        if self.pool.subject.ranks > 1 and self.machine.device != "cpu":
            # A GPU is dealt out to processes in slices, and a rank that waits for another uses up its own.
            return 1
        original = self.examinations.get(ORIGINAL)
        busy = max(2 * self.pool.subject.ranks, (original and original.busy) or 0)
        return int(max(1, min(count, processors() // busy, self._room)))

    def _help(self, comparisons: Sequence[Comparison], noise: Noise | None) -> list[str]:
        """Return what would help where a budget was not enough for a verdict, a sentence each."""
        undecided = (Verdict.UNFIT, Verdict.UNCLEAR)
        shown = [item.wall or (noise and noise.wall) for item in comparisons if item.verdict in undecided]
        half = [interval.half_width for interval in shown if interval]
        if self.pool.subject.reruns or not half:
            return []
        told = []
        # An interval narrows with the root of the time.
        seconds = round(self.settings.budget * (max(half) / PRECISE) ** 2, -1)
        if seconds <= LONGEST:
            told.append(f"`--budget {max(seconds, 2 * self.settings.budget):g}` may be enough for a verdict")
        busy = os.getloadavg()[0] / processors()
        if busy > BUSY:
            told.append(
                f"this machine has {busy:.0f} times as much to do as it has processors; "
                "with fewer programs on it, the times vary less"
            )
        return told

    # --- outcome ----------------------------------------------------------------------------------------

    def measurement(self) -> Measurement:
        """Return what is known by now."""
        blocks, windows = discard(self.blocks), discard(self.windows)
        noise = judge.noise(blocks)
        original = self.examinations.get(ORIGINAL)
        compared = [
            judge.comparison(self.examinations[variant.name], original, blocks, noise, windows)
            for variant in self.variants
            if variant.name not in (ORIGINAL, AGAIN) and original and variant.name in self.examinations
        ]
        steps = 0 if original is None else original.steps
        compared += [
            Comparison(
                item.name, Verdict.UNREACHED, f"the lines that it changes did not run in {steps} steps"
            )
            for item in self.unreached
        ]
        return Measurement(
            subject=self.pool.subject.name,
            size=self.size,
            variants=(*self.variants, *self.unreached),
            examinations=tuple(self.examinations.values()),
            blocks=blocks,
            windows=windows,
            noise=noise,
            comparisons=tuple(compared),
            replicates=self._replicates,
            warmup_steps=self._warmup,
            awake=self._awake,
            dropped=tuple(self.dropped),
            notes=(*self.remarks, *self.notes, *self._help(compared, noise)),
            source=self.pool.subject.source,
            syncs=self.syncs,
            # A case of `bench` does the same in every step: what seems regular there is the machine's doing.
            periodic=None if self.pool.subject.reruns else periodic(self.blocks, self.news),
            curves=tuple(self.curves),
            timelines=tuple(self.timelines),
            spent={on: round(seconds, 2) for on, seconds in self.spent.items()},
            ranks=self.pool.subject.ranks,
            device=self.machine.device,
        )


SEEDS = 3
"""From how many seeds a program is trained whose results are rounded otherwise."""
TRAINING = 0.2
"""The share of the time left that this may take."""
LEAST_LEAD, MOST_LEAD = 2, 10
"""How many steps run before the first that is recorded,"""
LEADING = 5.0
"""and for how many seconds at most, unless there are fewer than the least."""
MOST_RECORDED, RECORDED_SECONDS = 3, 1.0
"""How many steps are recorded at most, and for how long unless it is a single one: the steadiest is kept."""
WRITING = 1.0
"""Seconds that it takes to write and read a recording, about."""
MOST_LOSSES = 300
"""The most steps of such a run."""
WINDOWS = 2
"""The blocks of a process that the profiler sees. What the device does is much the same in all of them,"""
MOST_WINDOWS = 6
"""or else it sees so many, where there is time;"""
WINDOW = 3
"""so that they are shorter than those that are timed: a third."""
WATCHED = range(LEAST_REPLICATES)
"""The processes in which the profiler sees them,"""
WATCHED_SHORT = range(LEAST_REPLICATES, 2 * LEAST_REPLICATES)
"""and those of a program with few steps, which are seen instead of being timed."""
WATCHING_SECONDS = 1.0
"""What it takes to watch one process, before it is known."""
EXAMINED_STEPS = Job.compare_steps + 2
"""The steps that the examination of a variant takes at least."""
LONGEST = 3600.0
"""Seconds of a budget that somebody may be asked for."""
BLIND_STEP = 0.1
"""Seconds assumed for a step whose time the examination could not tell."""


class _Ended(Exception):  # noqa: N818
    """A variant's program came to its own end."""


def _window_steps(planned: Plan) -> int:
    """Return the steps of a block that the profiler sees."""
    return max(planned.steps // WINDOW, min(planned.steps, BLOCK_STEPS))


def _settled(comparison: Comparison) -> bool:
    """Return whether more blocks could not change much."""
    decided = comparison.verdict in (Verdict.FASTER, Verdict.SAME, Verdict.SLOWER)
    return decided and comparison.wall is not None and comparison.wall.half_width <= PRECISE


def _order(variants: Sequence[str], seed: int, replicate: int) -> list[str]:
    """Return a random order for the first round of a replicate; the same for the same seed."""
    random = np.random.default_rng((seed, replicate))
    return [variants[index] for index in random.permutation(len(variants))]


def _examination(name: str, found: Mapping[str, Any], sameness: Sameness) -> Examination:
    """Return what a process reported, as data."""
    evidence = dict(found["evidence"])
    evidence["sync_lines"] = tuple(
        Line(**{**line, "phases": tuple(line.get("phases", ()))}) for line in evidence.get("sync_lines", ())
    )
    evidence["missing"] = tuple(evidence["missing"])
    if evidence.get("roles") is not None:
        lines = tuple(Allocation(**line) for line in evidence["roles"].get("lines", ()))
        evidence["roles"] = Roles(**{**evidence["roles"], "lines": lines})
    rest = {
        key: found[key]
        for key in ("found_by", "steps", "ended", "step_seconds", "startup_seconds", "busy")
        if key in found
    }
    return Examination(name, sameness=sameness, evidence=Evidence(**evidence), **rest)


def processors() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
