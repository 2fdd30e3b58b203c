"""How many replicates a case gets: enough for a verdict, more while all cases' budget has time for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from torchlint.verify.measure import WATCHING_SECONDS, WINDOWS, WRITING, Pool, Session, Settings
from torchlint.verify.plan import FIRST_ROUNDS, LEAST_REPLICATES, Plan
from torchlint.verify.processes import Nurseries, Spares, Times
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Block,
    Comparison,
    Examination,
    Interval,
    Machine,
    Noise,
    Sameness,
    Variant,
    Verdict,
)
from torchlint.verify.worker.job import Job


class Case:
    """A subject of which no process is ever started."""

    name, source, reruns, ranks = "TL000", "", True, 1

    def job(self, variant: str, task: str) -> Job:
        """Nobody asks for one."""
        raise AssertionError(variant, task)


class Timed(Session):
    """A session whose replicates are made up: they differ from each other by ``spread``."""

    spread = 0.0

    def _replicate(self, planned: Plan, numbers: Sequence[int], end: float) -> int | None:
        for number in numbers:
            for turn in range(4):
                for place, name in enumerate(planned.variants):
                    faster = 1 - self.spread * number if name == TOGETHER else 1
                    self.blocks.append(Block(name, number, turn, place, 1, 0.1 * faster, None, None))
        return None


@pytest.fixture
def session(tmp_path: Path) -> Timed:
    """A case with a sound fix, of whose original a step takes 0.1 s."""
    made = Timed(Pool(Case()), Settings(device="cpu"), Machine("cpu"), tmp_path)
    same = Sameness(Agreement.IDENTICAL)
    for name in (ORIGINAL, AGAIN, TOGETHER):
        made.variants.append(Variant(name))
        # It keeps several processors busy, so that none has to be kept awake.
        made.examinations[name] = Examination(name, steps=9, step_seconds=0.1, busy=2.0, sameness=same)
    return made


def replicates(session: Session) -> list[int]:
    """The numbers of the replicates, in the order in which they ran."""
    return list(dict.fromkeys(block.replicate for block in session.blocks))


def test_a_clear_verdict_takes_the_fewest_replicates(session: Timed) -> None:
    session.time(lambda *_: None)
    assert replicates(session) == list(range(LEAST_REPLICATES))
    session.time_more(lambda *_: None)
    assert replicates(session) == list(range(LEAST_REPLICATES))


def test_a_wide_interval_gets_more_replicates_where_there_is_time_for_them(session: Timed) -> None:
    session.spread = 0.1
    session.allow(1.0)
    session.time(lambda *_: None)
    assert replicates(session) == list(range(LEAST_REPLICATES)), "they were planned to fit, or have to be"
    session.time_more(lambda *_: None)
    assert replicates(session) == list(range(LEAST_REPLICATES)), "one more would take longer than a second"
    session.allow(100.0)
    session.time_more(lambda *_: None)
    assert len(replicates(session)) > LEAST_REPLICATES
    assert session.half_width > 0.03


def test_a_process_goes_on_where_others_would_tell_no_more(session: Timed) -> None:
    session.time(lambda *_: None)
    planned = session._planned
    assert planned is not None
    session.allow(1000.0)
    session._started = 5.0
    assert not session._others_wanted(planned), "the processes are alike"
    session.blocks, session.spread = [], 0.1
    for number in range(LEAST_REPLICATES):
        session._replicate(planned, [number], 0.0)
    assert session._others_wanted(planned)
    session.allow(60.0)
    assert not session._others_wanted(planned), "there is time for one, which would have to start"
    session.allow(1000.0)
    session._current = 0
    assert not session._others_wanted(planned), "how much processes differ is not known yet"


def test_what_is_timed_with_a_gpu_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nursery:
        def get(self, number: int) -> str:
            return f"nursery {number}"

    class Script(Case):
        def job(self, variant: str, task: str) -> Job:
            return Job(task, "script", "train.py", str(tmp_path), scratch=str(tmp_path))

    made: list[tuple[str, str | None, str | None]] = []
    monkeypatch.setattr(
        "torchlint.verify.measure.Process",
        lambda job, log, environment, nursery, spare: made.append((job.task, nursery, spare)),
    )

    class Early:
        left = 1

        def take(self) -> str | None:
            self.left -= 1
            return "spare" if self.left >= 0 else None

    pool = Pool(Script(), cast("Nurseries", Nursery()), cast("Spares", Early()))
    pool.fresh = frozenset({"time"})
    for task, count in (("examine", 1), ("time", 2)):
        pool.start(ORIGINAL, task, count)
    assert made == [("examine", "nursery 0", None), ("time", None, "spare"), ("time", None, None)]


def test_a_variant_that_there_is_no_time_for_is_not_even_examined(session: Timed) -> None:
    fixed = [Variant(name) for name in (TOGETHER, "TL101", "TL202")]
    session.allow(1000.0)
    assert session.affordable(fixed) == fixed
    assert session.dropped == []
    # A round takes a second for each variant, and an examination another.
    session.allow(45.0)
    assert session.affordable(fixed) == fixed[:2]
    assert session.dropped[0].startswith("TL202: not timed separately")
    session.dropped.clear()
    session.allow(1000.0)
    assert session.affordable(fixed, 955.0) == fixed[:2], "the rest is needed for something else"
    session.allow(0.0)
    assert session.affordable(fixed) == fixed[:1]


def test_a_recording_takes_a_start_and_the_steps_before_it(session: Timed) -> None:
    examined = replace(session.examinations[ORIGINAL], startup_seconds=7.0)
    session.examinations = {ORIGINAL: examined}
    assert session.recording_seconds == pytest.approx(7.0 + 13 * 0.1 + WRITING)
    long = {ORIGINAL: replace(examined, step_seconds=2.0)}
    session.examinations = long
    assert session.recording_seconds == pytest.approx(7.0 + 3 * 2.0 + WRITING), "two that lead to it, and one"
    # A program of three steps has no more to record.
    session.examinations = {ORIGINAL: replace(examined, steps=3, ended=True)}
    assert session.recording_seconds == pytest.approx(7.0 + 3 * 0.1 + WRITING)


def test_a_variant_whose_verdict_is_settled_takes_no_further_part(session: Timed) -> None:
    session.time(lambda *_: None)
    variants = (ORIGINAL, AGAIN, TOGETHER)
    assert session._still(variants, 9) == ()
    assert session._still(variants, 0) == variants, "its process may be another kind of process"
    session.blocks = [
        replace(block, wall=block.wall * (1 + 0.3 * block.replicate)) if block.variant == TOGETHER else block
        for block in session.blocks
    ]
    assert session._still(variants, 9) == variants


def test_where_no_verdict_was_reached_it_is_said_what_would_help(
    session: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def helped(half: float, load: float) -> str:
        monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
        wall = Interval(1.0, 1 - half, 1 + half)
        return "; ".join(session._help([Comparison(TOGETHER, Verdict.UNFIT, "")], Noise(wall, half, False)))

    # Twice as wide takes four times as long.
    monkeypatch.setattr(Case, "reruns", False)
    assert helped(0.06, 0.0) == "`--budget 480` may be enough for a verdict"
    assert helped(0.5, 0.0) == ""
    assert "times as much to do as it has processors" in helped(0.5, 1000.0)
    assert session._help([Comparison(TOGETHER, Verdict.SAME, "", Interval(1.0, 0.9, 1.1))], None) == []


class Clock:
    """A clock that goes on when a program runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """The time."""
        return self.now


class Program:
    """A process of a program whose steps take 10 to 20 ms, and that starts in 8 s."""

    def __init__(self, clock: Clock, job: Job) -> None:
        self.clock, self.scratch, self.alive = clock, Path(job.scratch), True
        self.begun, self.random = 0.0, random.Random(Path(job.scratch).name)

    def run(self, **changes: object) -> None:
        """It starts beside the others."""
        self.begun = self.clock.now

    def ready(self, timeout: float) -> None:
        """It has started."""
        self.clock.now = max(self.clock.now, self.begun + 8.0)

    def block(self, lead: int, steps: int, timeout: float) -> Times:
        """A block that takes its time."""
        wall = steps * self.random.uniform(0.01, 0.02)
        self.clock.now += wall + lead * 0.015
        return Times(wall, None, None)

    def work(self, lead: int, steps: int, timeout: float) -> Times:
        """The profiler takes its time."""
        self.clock.now += WATCHING_SECONDS / WINDOWS
        return Times(steps * 0.02, steps * 0.01, None)

    def kill(self) -> None:
        """Nothing is left of it."""
        self.alive = False

    close = kill


@pytest.fixture
def program(session: Timed, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, Clock, list[Program]]:
    """A session of a program with a GPU and the processes that it starts."""
    clock, started = Clock(), list[Program]()
    monkeypatch.setattr("torchlint.verify.measure.time", clock)
    monkeypatch.setattr("torchlint.verify.measure.processors", lambda: 16)
    monkeypatch.setattr("torchlint.verify.measure.Process", Program)

    class Script(Case):
        reruns = False

        def job(self, variant: str, task: str) -> Job:
            return Job(task, "script", "train.py", "", scratch=str(session.folder / str(len(started))))

    class Counted(Pool):
        def _new(self, variant: str, task: str, replicate: int) -> Program:  # type: ignore[override]
            started.append(Program(clock, self.subject.job(variant, task)))
            return started[-1]

    machine = Machine("cuda", gpu_memory=80 << 30, memory=128 << 30)
    made = Session(Counted(Script()), Settings(), machine, session.folder)
    made.variants, made.examinations = session.variants, dict(session.examinations)
    for name, found in made.examinations.items():
        evidence = replace(found.evidence, peak_reserved=1 << 30)
        made.examinations[name] = replace(
            found, step_seconds=0.016, startup_seconds=8.0, busy=1.0, evidence=evidence
        )
    return made, clock, started


def test_the_first_processes_of_a_program_run_side_by_side(
    program: tuple[Session, Clock, list[Program]],
) -> None:
    session, clock, started = program
    session.allow(60.0)
    session.time(lambda *_: None)
    assert len(started) == LEAST_REPLICATES * len(session.variants)
    assert 55.0 <= clock.now <= 60.5, "the budget is used up, and exceeded by no more than blocks vary"
    rounds = {
        number: [block.round for block in session.blocks if block.replicate == number] for number in (0, 1)
    }
    assert abs(len(rounds[0]) - len(rounds[1])) <= 2 * len(session.variants)
    assert sum(block.wall for block in session.blocks) > 0.5 * 60.0
    assert len(session.windows) == 4 * len(session.variants)


def test_time_that_is_too_short_for_another_process_is_spent_on_those_that_are_there(
    program: tuple[Session, Clock, list[Program]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, clock, started = program
    # There is no room for more than one process of each variant.
    monkeypatch.setattr("torchlint.verify.measure.processors", lambda: 4)
    session.allow(30.0)
    session.time(lambda *_: None)
    assert len(started) == len(session.variants)
    assert 26.0 <= clock.now <= 30.0
    assert max(block.round for block in session.blocks) > FIRST_ROUNDS


def test_what_was_left_out_is_examined_where_nothing_else_keeps_the_results(session: Timed) -> None:
    fixed = [item for item in session.variants if item.name not in (ORIGINAL, AGAIN)]
    assert not session.rejected(fixed)
    for item in fixed:
        different = Sameness(Agreement.DIFFERENT)
        session.examinations[item.name] = replace(session.examinations[item.name], sameness=different)
    assert session.rejected(fixed)
    session._rounded.add(fixed[0].name)
    assert not session.rejected(fixed), "training may show that it keeps them"


def test_what_was_never_timed_gets_no_more(session: Timed) -> None:
    session.time_more(lambda *_: None)
    assert replicates(session) == []
    assert session.half_width == float("inf")


def test_without_any_time_left_nothing_is_started(program: tuple[Session, Clock, list[Program]]) -> None:
    session, clock, started = program
    session.allow(0.0)
    session.time(lambda *_: None)
    assert started == [] and clock.now == 0.0, "a single process of each variant has no verdict anyway"
    (found,) = session.measurement().comparisons
    assert found.verdict is Verdict.UNMEASURED
    assert session.notes[0].startswith("the time was up before anything could be timed")


@pytest.mark.parametrize(("busy", "most"), [(1.0, 8), (2.5, 6), (12.6, 1), (None, 8)])
def test_programs_that_keep_all_processors_busy_take_turns_also_while_nothing_is_timed(
    program: tuple[Session, Clock, list[Program]], busy: float | None, most: int
) -> None:
    session, _, _ = program
    session.examinations[ORIGINAL] = replace(session.examinations[ORIGINAL], busy=busy)
    assert session._parallel(99) == session._costs().parallel == most
    assert session._parallel(4) == min(most, 4)


def test_of_long_steps_one_process_is_timed_where_two_would_exceed_the_budget(
    program: tuple[Session, Clock, list[Program]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, clock, started = program
    original = session.examinations[ORIGINAL]
    session.examinations[ORIGINAL] = replace(original, step_seconds=1.5, startup_seconds=1.0)

    def slow(self: Program, lead: int, steps: int, timeout: float) -> Times:
        clock.now += 1.5 * (lead + steps)
        return Times(1.5 * steps, None, None)

    monkeypatch.setattr(Program, "block", slow)
    session.allow(45.0)
    session.time(lambda *_: None)
    assert len(started) == len(session.variants)
    assert {block.replicate for block in session.blocks} == {0}
