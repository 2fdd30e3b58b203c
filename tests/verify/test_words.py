"""What a result says to do, in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchlint.verify import words
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Comparison,
    Evidence,
    Examination,
    Interval,
    Measurement,
    Sameness,
    Variant,
    Verdict,
)

MOVED = "moved"


def measurement(
    outcomes: dict[str, Verdict], *, moved: tuple[str, ...] = (), leaner: tuple[str, ...] = ()
) -> Measurement:
    """A measurement in which the variants came out as given; what is FASTER runs 1.35 times as fast."""
    codes = tuple(name for name in outcomes if name != TOGETHER) or ("TL302",)
    timed = {Verdict.FASTER: Interval(1.35, 1.3, 1.4), Verdict.SAME: Interval(1.0, 0.99, 1.01)}
    examinations = [Examination(ORIGINAL, evidence=Evidence(peak_allocated=4 << 30))]
    for name in outcomes:
        agreement = Agreement.STREAM_MOVED if name in moved else Agreement.IDENTICAL
        peak = 3 << 30 if name in leaner else 4 << 30
        examinations.append(
            Examination(name, sameness=Sameness(agreement), evidence=Evidence(peak_allocated=peak))
        )
    return Measurement(
        "train.py",
        variants=(Variant(ORIGINAL), Variant(AGAIN), *(Variant(name, codes) for name in outcomes)),
        examinations=tuple(examinations),
        comparisons=tuple(
            Comparison(name, verdict, "", timed.get(verdict), memory=4 / 3 if name in leaner else 1.0)
            for name, verdict in outcomes.items()
        ),
    )


F, S, L, U = Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR
UNFIT, REJECTED, UNREACHED, UNMEASURED = (
    Verdict.UNFIT,
    Verdict.REJECTED,
    Verdict.UNREACHED,
    Verdict.UNMEASURED,
)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({}, "There is no fix to measure."),
        ({TOGETHER: F}, "Apply TL302: 1.35 times as fast. Nothing else matters here."),
        (
            {TOGETHER: F, "TL402": F, "TL404": F, "TL101": S},
            "Apply TL402 and TL404: 1.35 times as fast. Nothing else matters here.",
        ),
        ({TOGETHER: S, "TL402": F, "TL101": L}, "Apply TL402: 1.35 times as fast. TL101 makes it slower."),
        (
            {TOGETHER: S, "TL402": F, "TL404": F, "TL101": L},
            "Apply TL402 (1.35 times as fast) and TL404 (1.35 times as fast). TL101 makes it slower.",
        ),
        ({TOGETHER: S, "TL402": S, "TL101": UNREACHED}, "Apply nothing: no fix makes a difference here."),
        ({TOGETHER: S}, "Apply nothing: no fix makes a difference here."),
        ({TOGETHER: L}, "Apply nothing yet. TL302 makes it slower."),
        (
            {TOGETHER: S, "TL402": Verdict.SAME_WORK, "TL101": UNREACHED},
            "Apply nothing: no fix makes a difference that could be seen here.",
        ),
        (
            {TOGETHER: Verdict.LESS_WORK, "TL402": Verdict.LESS_WORK, "TL101": Verdict.MORE_WORK},
            "Apply nothing yet. TL402 leaves the device less to do. TL101 gives the device more to do.",
        ),
        ({TOGETHER: U, "TL101": UNREACHED}, "Apply nothing yet. Nothing can be said yet of TL101."),
        ({TOGETHER: U, "TL402": U, "TL101": S}, "Apply nothing yet. Nothing can be said yet of TL402."),
        (
            {TOGETHER: F, "TL402": U, "TL101": S},
            (
                "All fixes together run 1.35 times as fast, but no single one is clearly faster. "
                "Nothing can be said yet of TL402."
            ),
        ),
        (
            {TOGETHER: REJECTED, "TL402": F, "TL101": REJECTED, "TL403": REJECTED},
            "Apply TL402: 1.35 times as fast. TL101 and TL403 do not keep the results.",
        ),
        ({TOGETHER: UNFIT, "TL402": UNFIT, "TL101": UNMEASURED}, "Nothing could be measured."),
    ],
)
def test_the_first_line_says_what_to_do(outcomes: dict[str, Verdict], expected: str) -> None:
    assert words.what_to_do(measurement(outcomes)) == expected


def test_memory_is_a_reason_too_and_moved_random_numbers_are_said() -> None:
    leaner = measurement({TOGETHER: S, "TL402": S, "TL101": S}, leaner=(TOGETHER, "TL402"))
    assert words.what_to_do(leaner) == "Apply TL402: 1.00 GiB less memory. Nothing else matters here."
    moved = measurement({TOGETHER: F, "TL201": F, "TL402": F}, moved=(TOGETHER, "TL201"))
    told = "Apply TL402: 1.35 times as fast. TL201 runs faster, but with other random numbers."
    assert words.what_to_do(moved) == told


def test_a_fix_that_was_not_reached_is_not_among_those_of_which_nothing_can_be_said() -> None:
    found = measurement({TOGETHER: U, "TL101": UNREACHED})
    both = tuple(replace(item, codes=("TL101", "TL402")) for item in found.variants if item.codes)
    assert words.what_to_do(replace(found, variants=both)) == (
        "Apply nothing yet. Nothing can be said yet of TL402."
    )


@pytest.mark.parametrize(
    ("examination", "expected"),
    [
        (
            Examination(ORIGINAL, "optimizer steps", 229, step_seconds=0.0124),
            "A step is an optimizer step; 229 were watched, 12.4 ms each.",
        ),
        (
            Examination(ORIGINAL, "forward passes", 40, ended=True, step_seconds=2.0),
            "A step is a forward pass; the program has 40, 2.00 s each.",
        ),
        (Examination(ORIGINAL, "calls of once()", 8), "A step is a call of once(); 8 were watched."),
        (Examination(ORIGINAL, "calls of once()", 1), "A step is a call of once(); 1 was watched."),
        (Examination(ORIGINAL, failure="it failed"), ""),
    ],
)
def test_it_is_said_what_a_step_is(examination: Examination, expected: str) -> None:
    assert words.step_is(Measurement("train.py", examinations=(examination,))) == expected
