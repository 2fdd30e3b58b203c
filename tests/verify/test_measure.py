"""How many replicates a case gets: enough for a verdict, more while all cases' budget has time for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from torchlint.verify.measure import Pool, Session, Settings
from torchlint.verify.plan import LEAST_REPLICATES, Plan
from torchlint.verify.processes import Nurseries
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

    def _replicate(self, planned: Plan, number: int, end: float) -> int | None:
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
        session._replicate(planned, number, 0.0)
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

    made: list[tuple[str, str | None]] = []
    monkeypatch.setattr(
        "torchlint.verify.measure.Process",
        lambda job, log, environment, nursery: made.append((job.task, nursery)),
    )
    pool = Pool(Script(), cast("Nurseries", Nursery()))
    pool.fresh = frozenset({"time"})
    for task in ("examine", "time"):
        pool.start(ORIGINAL, task, 1)
    assert made == [("examine", "nursery 0"), ("time", None)]


def test_a_variant_that_there_is_no_time_for_is_not_even_examined(session: Timed) -> None:
    fixed = [Variant(name) for name in (TOGETHER, "TL101", "TL202")]
    session.allow(1000.0)
    assert session.affordable(fixed) == fixed
    assert session.dropped == []
    # A round takes a second for each variant, and an examination another.
    session.allow(45.0)
    assert session.affordable(fixed) == fixed[:2]
    assert session.dropped[0].startswith("TL202: not timed separately")
    session.allow(0.0)
    assert session.affordable(fixed) == fixed[:1]


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


def test_what_was_never_timed_gets_no_more(session: Timed) -> None:
    session.time_more(lambda *_: None)
    assert replicates(session) == []
    assert session.half_width == float("inf")
