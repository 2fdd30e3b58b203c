"""Results first: what counts as the same, as a moved stream, and as a change."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from torchlint.verify import judge
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Block,
    Comparison,
    Evidence,
    Examination,
    Interval,
    Measurement,
    Noise,
    Sameness,
    Variant,
    Verdict,
)


def found(**changes: Any) -> dict[str, Any]:
    """What a run reports of its results."""
    return {
        "steps": 8,
        "bitwise": False,
        "streams_differ": False,
        "kinds_agree": True,
        "moments": 0.0,
        "coarsest": 1.2e-7,
        "differences": {},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "noise", "expected"),
    [
        ({"bitwise": True}, {}, Agreement.IDENTICAL),
        ({"differences": {"loss of step 1": 1e-4}}, {}, Agreement.CLOSE),
        ({"differences": {"loss of step 1": 1e-2}}, {}, Agreement.DIFFERENT),
        ({"differences": {"0.weight after 8 steps": 5e-3}}, {}, Agreement.CLOSE),
        ({"differences": {"gradient of 0.bias, step 1": 0.3}}, {}, Agreement.DIFFERENT),
        (
            {"differences": {"gradient of 0.bias, step 1": 0.3}},
            {"gradient of 0.bias, step 1": 0.1},
            Agreement.CLOSE,
        ),
        ({"differences": {"loss of step 1": 2.0}, "streams_differ": True}, {}, Agreement.STREAM_MOVED),
        (
            {"differences": {"loss of step 1": 2.0}, "streams_differ": True, "moments": 3.0},
            {},
            Agreement.DIFFERENT,
        ),
        (
            {"differences": {"loss of step 1": 2.0}, "streams_differ": True, "kinds_agree": False},
            {},
            Agreement.DIFFERENT,
        ),
        ({"differences": {"output of step 1": math.inf}}, {}, Agreement.DIFFERENT),
        ({"differences": {"loss of step 1": 2e-2}, "coarsest": 7.8e-3}, {}, Agreement.CLOSE),
        ({"steps": 0}, {}, Agreement.UNCHECKED),
        # Another result of the kind showed by how much the program differs from itself; not so a later step,
        # or another kind.
        ({"differences": {"loss of step 8": 3e-2}}, {"loss of step 8 (2)": 4e-2}, Agreement.CLOSE),
        ({"differences": {"loss of step 8": 3e-2}}, {"loss of step 5": 4e-2}, Agreement.CLOSE),
        ({"differences": {"loss of step 2": 3e-2}}, {"loss of step 8": 4e-2}, Agreement.DIFFERENT),
        ({"differences": {"loss of step 8": 3e-2}}, {"output of step 8": 4e-2}, Agreement.DIFFERENT),
        ({"differences": {"1.weight after 8 steps": 0.2}}, {"0.weight after 8 steps": 0.3}, Agreement.CLOSE),
        (
            {"differences": {"rank 1's loss of step 8": 3e-2}},
            {"rank 0's loss of step 8": 4e-2},
            Agreement.CLOSE,
        ),
        # What the original does not have twice, nobody has to have.
        ({"differences": {"loss of step 1": math.inf}}, {"loss of step 1": math.inf}, Agreement.CLOSE),
        ({"differences": {"loss of step 1": 0.3}}, {"loss of step 1": math.inf}, Agreement.CLOSE),
    ],
)
def test_agreement(changes: dict[str, Any], noise: dict[str, float], expected: Agreement) -> None:
    judged = judge.agreement(found(**changes), noise, 1e-3)
    assert judged.agreement is expected
    assert judged.reason
    assert math.isfinite(judged.largest)


def test_a_fix_that_changes_results_is_rejected_however_fast() -> None:
    original = Examination(ORIGINAL)
    changed = Examination(
        TOGETHER, sameness=Sameness(Agreement.DIFFERENT, 8, 1.0, reason="the results differ")
    )
    blocks = tuple(
        Block(name, replicate, turn, 0, 1, seconds)
        for replicate in range(3)
        for turn in range(6)
        for name, seconds in ((ORIGINAL, 1.0), (AGAIN, 1.0), (TOGETHER, 0.1))
    )
    outcome = judge.comparison(changed, original, blocks, judge.noise(blocks))
    assert outcome.verdict is Verdict.REJECTED
    assert outcome.wall is None
    same = Examination(TOGETHER, sameness=Sameness(Agreement.IDENTICAL, 8))
    assert judge.comparison(same, original, blocks, judge.noise(blocks)).verdict is Verdict.FASTER
    assert judge.comparison(same, original, (), None).verdict is Verdict.UNMEASURED


@pytest.mark.parametrize(
    ("verdict", "memory", "agreement", "expected"),
    [
        (Verdict.FASTER, None, Agreement.IDENTICAL, True),
        (Verdict.FASTER, None, Agreement.STREAM_MOVED, False),
        (Verdict.SAME, None, Agreement.IDENTICAL, False),
        (Verdict.SAME, 1.5, Agreement.CLOSE, True),
        (Verdict.SLOWER, 1.5, Agreement.CLOSE, False),
        (Verdict.SAME, 1.001, Agreement.CLOSE, False),
    ],
)
def test_worth_applying(verdict: Verdict, memory: float | None, agreement: Agreement, expected: bool) -> None:
    outcome = Comparison("TL302", verdict, "", memory=memory)
    assert judge.worth_applying(outcome, Sameness(agreement, 8)) is expected


def measured(*outcomes: Comparison, codes: tuple[str, ...] = ("TL202", "TL302")) -> Measurement:
    names = [outcome.variant for outcome in outcomes]
    return Measurement(
        "train.py",
        variants=(Variant(ORIGINAL), Variant(AGAIN), *(Variant(name, codes) for name in names)),
        examinations=tuple(
            Examination(name, sameness=Sameness(Agreement.IDENTICAL, 8), evidence=Evidence())
            for name in names
        ),
        comparisons=outcomes,
    )


def test_only_what_proved_its_worth_alone_is_applied() -> None:
    faster, same = Interval(1.2, 1.1, 1.3), Interval(1.0, 0.99, 1.01)
    both = measured(
        Comparison(TOGETHER, Verdict.FASTER, "", faster),
        Comparison("TL202", Verdict.SAME, "", same),
        Comparison("TL302", Verdict.FASTER, "", faster),
    )
    assert judge.proven(both) == {"TL302"}
    only = measured(Comparison(TOGETHER, Verdict.FASTER, "", faster), codes=("TL401",))
    assert judge.proven(only) == {"TL401"}
    none = measured(Comparison(TOGETHER, Verdict.SAME, "", same), codes=("TL401",))
    assert judge.proven(none) == set()


@pytest.mark.parametrize(
    ("again", "fixed", "expected"),
    [
        ((1.0, 0.6, 1.6), (4.0, 3.5, 4.6), Verdict.FASTER),
        ((1.0, 0.6, 1.6), (0.2, 0.1, 0.3), Verdict.SLOWER),
        ((1.0, 0.6, 1.6), (1.3, 1.2, 1.4), Verdict.UNFIT),
        ((1.0, 0.6, 1.6), (1.0, 0.99, 1.01), Verdict.UNFIT),
        ((1.3, 1.1, 1.6), (4.0, 3.5, 4.6), Verdict.FASTER),
        ((1.3, 1.1, 1.6), (0.5, 0.45, 0.55), Verdict.SLOWER),
        ((1.3, 1.1, 1.6), (1.7, 1.5, 1.9), Verdict.UNFIT),
        ((1.0, 0.99, 1.01), (1.1, 1.08, 1.12), Verdict.FASTER),
        ((1.02, 0.9, 1.15), (1.2, 1.1, 1.31), Verdict.FASTER),
        ((1.06, 0.98, 1.15), (1.1, 1.05, 1.15), Verdict.UNCLEAR),
    ],
    ids=[
        "far faster",
        "far slower",
        "a little faster",
        "same",
        "biased, faster",
        "biased, slower",
        "biased",
        "fit",
        "noisy",
        "as by chance",
    ],
)
def test_a_restless_machine_tells_only_what_lies_beyond_its_noise(
    again: tuple[float, float, float],
    fixed: tuple[float, float, float],
    expected: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torchlint.verify.stats.interval", lambda *_: Interval(*again))
    assert judge.timed(Interval(*fixed), judge.noise([]))[0] is expected


def test_a_single_replicate_has_no_verdict() -> None:
    blocks = tuple(
        Block(name, 0, turn, place, 1, 0.02 / speed)
        for turn in range(8)
        for place, (name, speed) in enumerate({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 2.0}.items())
    )
    same = Examination(TOGETHER, sameness=Sameness(Agreement.IDENTICAL))
    alone = judge.comparison(same, Examination(ORIGINAL), blocks, judge.noise(blocks))
    assert (alone.verdict, alone.reason) == (Verdict.UNCLEAR, judge.ONE_REPLICATE)
    twice = (*blocks, *(replace(block, replicate=1) for block in blocks))
    assert judge.comparison(same, Examination(ORIGINAL), twice, judge.noise(twice)).verdict is Verdict.FASTER


def blocks(times: dict[str, float], *, device: bool = False, wobble: float = 0.001) -> list[Block]:
    """Two replicates of four rounds, with a step time for each variant; ``device`` is what is timed."""
    return [
        Block(
            name,
            replicate,
            turn,
            0,
            1,
            0.0 if device else taken * (1 + wobble * ((turn // 2 + replicate) % 2)),
            taken * (1 + wobble * ((turn // 2 + replicate) % 2)) if device else None,
        )
        for replicate in range(2)
        for turn in range(4)
        for name, taken in times.items()
    ]


@pytest.mark.parametrize(
    ("device_time", "expected"),
    [(1.0, Verdict.SAME_WORK), (0.8, Verdict.LESS_WORK), (1.2, Verdict.MORE_WORK), (None, Verdict.UNFIT)],
)
def test_the_work_of_the_device_tells_where_times_do_not(
    device_time: float | None, expected: Verdict
) -> None:
    unfit = tuple(blocks({ORIGINAL: 1.0, AGAIN: 1.3, TOGETHER: 0.9}))
    windows = (
        [] if device_time is None else blocks({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: device_time}, device=True)
    )
    examined = {name: Examination(name) for name in (ORIGINAL, TOGETHER)}
    found = judge.comparison(examined[TOGETHER], examined[ORIGINAL], unfit, judge.noise(unfit), windows)
    assert found.verdict is expected
    # No number stands beside a time that says nothing.
    assert found.wall is None and found.device is None
    assert (found.work is None) is (device_time is None)


def test_times_that_tell_something_come_first() -> None:
    timed = tuple(blocks({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 0.5}))
    windows = blocks({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 1.0}, device=True)
    examined = {name: Examination(name) for name in (ORIGINAL, TOGETHER)}
    found = judge.comparison(examined[TOGETHER], examined[ORIGINAL], timed, judge.noise(timed), windows)
    assert found.verdict is Verdict.FASTER
    assert found.wall is not None and found.work is not None


def test_the_work_of_the_device_tells_nothing_where_it_is_not_reproduced() -> None:
    unfit = tuple(blocks({ORIGINAL: 1.0, AGAIN: 1.3, TOGETHER: 0.9}))
    windows = blocks({ORIGINAL: 1.0, AGAIN: 1.2, TOGETHER: 0.8}, device=True)
    examined = {name: Examination(name) for name in (ORIGINAL, TOGETHER)}
    found = judge.comparison(examined[TOGETHER], examined[ORIGINAL], unfit, judge.noise(unfit), windows)
    assert found.verdict is Verdict.UNFIT


def test_one_process_has_no_number() -> None:
    one = tuple(block for block in blocks({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 0.5}) if not block.replicate)
    examined = {name: Examination(name) for name in (ORIGINAL, TOGETHER)}
    found = judge.comparison(examined[TOGETHER], examined[ORIGINAL], one, judge.noise(one))
    assert found.verdict is Verdict.UNCLEAR and found.reason == judge.ONE_REPLICATE
    assert found.wall is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.96, 1.04, Verdict.SAME),
        (0.94, 1.06, Verdict.UNCLEAR),
        (1.15, 1.35, Verdict.FASTER),
        (0.7, 0.86, Verdict.SLOWER),
    ],
)
def test_same_is_said_of_narrow_intervals_only(low: float, high: float, expected: Verdict) -> None:
    """However large the differences are that the machine makes by itself."""
    found, reason = judge.timed(
        Interval((low * high) ** 0.5, low, high), Noise(Interval(1.0, 0.88, 1.13), 0.136, True)
    )
    assert found is expected
    assert expected is not Verdict.UNCLEAR or reason == "the interval is wider than ±5 %; measure longer"


def test_a_verdict_on_the_devices_work_says_how_launches_and_waits_differ() -> None:
    unfit = tuple(blocks({ORIGINAL: 1.0, AGAIN: 1.3, TOGETHER: 0.9}))
    windows = blocks({ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 1.0}, device=True)
    before = Examination(ORIGINAL, evidence=Evidence(kernels=220.0, syncs=7.0))
    after = Examination(TOGETHER, evidence=Evidence(kernels=221.2, syncs=4.0))
    found = judge.comparison(after, before, unfit, judge.noise(unfit), windows)
    assert found.verdict is Verdict.SAME_WORK
    assert found.reason.endswith("or more; a step has 4 instead of 7 waits")
