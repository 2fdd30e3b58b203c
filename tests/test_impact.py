"""How much is at stake in a finding: the rule for it cell by cell, and what measurements are worth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from torchlint import effects, impact, registry
from torchlint.diagnostics import Frequency, Impact, Severity
from torchlint.impact import Gain, Worth
from torchlint.rule import Rule
from torchlint.semantics.contexts import Context

FREQUENCIES = (*Frequency, None)
CELLS = {
    # once, epoch, rarely, loop, unknown, batch, step, token, lasting
    Worth.MUCH: "low low low low medium medium high high high",
    Worth.SOME: "low low low low low medium medium high medium",
    Worth.NOTHING: "low low low low low low low low low",
    Worth.UNMEASURED: "medium medium medium medium medium medium medium medium medium",
}
TABLE = [
    (worth, frequency, Impact[word.upper()])
    for worth, cells in CELLS.items()
    for frequency, word in zip(FREQUENCIES, cells.split(), strict=True)
]


@pytest.mark.parametrize(("worth", "frequency", "expected"), TABLE)
def test_a_warning_is_of_the_impact_in_its_cell(
    worth: Worth, frequency: Frequency | None, expected: Impact
) -> None:
    assert impact.impact(worth, Severity.WARNING, frequency, None) is expected


@pytest.mark.parametrize(("worth", "frequency", "expected"), TABLE)
def test_a_note_is_of_medium_impact_at_most(
    worth: Worth, frequency: Frequency | None, expected: Impact
) -> None:
    found = impact.impact(worth, Severity.NOTE, frequency, None)
    assert found is min(expected, Impact.MEDIUM)


@pytest.mark.parametrize("worth", [*Worth, None])
@pytest.mark.parametrize("frequency", FREQUENCIES)
@pytest.mark.parametrize("context", [None, *Context])
def test_errors_are_of_high_impact_everywhere(
    worth: Worth | None, frequency: Frequency | None, context: Context | None
) -> None:
    assert impact.impact(worth, Severity.ERROR, frequency, context) is Impact.HIGH


@pytest.mark.parametrize("context", list(Context))
@pytest.mark.parametrize("worth", [*Worth, None])
@pytest.mark.parametrize("severity", [Severity.NOTE, Severity.WARNING])
def test_where_speed_is_of_no_account_all_else_is_of_low_impact(
    worth: Worth | None, severity: Severity, context: Context
) -> None:
    found = impact.impact(worth, severity, Frequency.STEP, context)
    # What is wrong with a benchmark itself is not about its speed.
    counts = context is Context.BENCHMARK and worth is None and severity is Severity.WARNING
    assert found is (Impact.MEDIUM if counts else Impact.LOW)


@pytest.mark.parametrize(
    ("severity", "expected"), [(Severity.NOTE, Impact.LOW), (Severity.WARNING, Impact.MEDIUM)]
)
def test_what_claims_no_gain_goes_by_its_severity(severity: Severity, expected: Impact) -> None:
    assert impact.impact(None, severity, None, None) is expected


@pytest.mark.parametrize(
    ("worth", "severity", "frequency", "context", "told"),
    [
        (Worth.MUCH, Severity.WARNING, Frequency.ONCE, None, "runs once"),
        (Worth.SOME, Severity.NOTE, Frequency.LOOP, None, "runs in a loop without a model"),
        (Worth.SOME, Severity.WARNING, Frequency.UNKNOWN, None, "how often it runs is not known"),
        (Worth.MUCH, Severity.WARNING, Frequency.STEP, Context.TEST, "in a test"),
        (Worth.NOTHING, Severity.WARNING, Frequency.STEP, None, "nothing was gained in the rule's benchmark"),
        (Worth.NOTHING, Severity.WARNING, None, None, "nothing was gained in the rule's benchmark"),
        (None, Severity.NOTE, None, None, "claims no gain in speed or memory"),
        (None, Severity.NOTE, None, Context.BENCHMARK, "claims no gain in speed or memory"),
    ],
)
def test_a_low_impact_has_a_reason(
    worth: Worth | None, severity: Severity, frequency: Frequency | None, context: Context | None, told: str
) -> None:
    assert impact.impact(worth, severity, frequency, context) is Impact.LOW
    assert impact.slight(worth, severity, frequency, context) == told


@pytest.mark.parametrize("context", Context)
def test_every_context_is_told(context: Context) -> None:
    told = impact.slight(Worth.MUCH, Severity.WARNING, Frequency.STEP, context)
    assert told.partition(" ")[0] in ("in", "only")


def test_the_documented_table_is_the_one_in_force() -> None:
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in (impact.__doc__ or "").splitlines()
        if line.startswith("| ") and not line.startswith("| worth")
    ]
    documented = {row[0]: " ".join(row[1:]) for row in rows}
    assert documented == {worth.label: cells for worth, cells in CELLS.items()}


# --- what was measured ------------------------------------------------------------------------------------


def effect(
    verdict: str, low: float = 1.0, memory: float = 1.0, ratio: float | None = None, **counts: float
) -> dict[str, Any]:
    """One measurement, as far as worth goes; ``counts`` are after a fix what they were ten of before."""
    speedup = None if verdict == "UNFIT" else {"ratio": ratio or low, "low": low, "high": 2 * low}
    return {
        "verdict": verdict,
        "speedup": speedup,
        "peak_memory": {"before": 1000, "after": 1000 * memory},
        **dict.fromkeys(("syncs", "collectives", "kernels")),
        **{name: {"before": 10.0, "after": after} for name, after in counts.items()},
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], Worth.UNMEASURED),
        ([effect("FASTER", 1.2)], Worth.MUCH),
        ([effect("FASTER", 1.19)], Worth.SOME),
        # In one size is enough, and the others take nothing away.
        ([effect("SAME"), effect("UNCLEAR", 1.5), effect("FASTER", 3.0)], Worth.MUCH),
        ([effect("SLOWER", 0.8), effect("FASTER", 1.3)], Worth.MUCH),
        # A figure that the verdict does not bear out is none.
        ([effect("UNCLEAR", 1.5), effect("SAME", 1.02), effect("UNFIT")], Worth.NOTHING),
        ([effect("SLOWER", 0.5)], Worth.NOTHING),
        ([effect("SAME", memory=0.8)], Worth.MUCH),
        ([effect("UNFIT", memory=0.5)], Worth.MUCH),
        ([effect("SAME", memory=0.81)], Worth.SOME),
        ([effect("SAME", memory=0.95)], Worth.SOME),
        ([effect("SAME", memory=0.96)], Worth.NOTHING),
        # Memory that costs time.
        ([effect("SAME", memory=0.5), effect("SLOWER", 0.7)], Worth.SOME),
        ([effect("SAME", memory=1.5)], Worth.NOTHING),
        # What a program with more to do would have felt.
        ([effect("SAME", syncs=9.0)], Worth.SOME),
        ([effect("SLOWER", 0.9, collectives=1.0)], Worth.SOME),
        ([effect("UNCLEAR", kernels=7.9)], Worth.SOME),
        ([effect("UNCLEAR", syncs=10.0, kernels=8.0)], Worth.NOTHING),
    ],
)
def test_worth_follows_from_measurements(found: list[dict[str, Any]], expected: Worth) -> None:
    assert impact.judged(found) is expected


def test_a_measurement_without_memory_counts_by_its_time() -> None:
    found = {**effect("FASTER", 1.5), "peak_memory": None}
    assert impact.judged([found]) is Worth.MUCH


@pytest.mark.parametrize(
    ("gain", "told"),
    [
        (Gain(), ""),
        (Gain(1.994, 1.9), "up to 1.99 times as fast"),
        (Gain(5.68, 5.0), "up to 5.7 times as fast"),
        (Gain(23.3, 18.0), "up to 23 times as fast"),
        (Gain(memory=0.5), "up to 50 % less memory"),
        (Gain(2.02, 1.9, 0.5), "up to 2.0 times as fast, 50 % less memory"),
        (Gain(2.02, 1.9, relief="up to 29 % fewer kernel launches"), "up to 2.0 times as fast"),
        (Gain(relief="up to 29 % fewer kernel launches"), "up to 29 % fewer kernel launches"),
    ],
)
def test_gains_in_words(gain: Gain, told: str) -> None:
    assert gain.told == told


def test_what_a_step_is_relieved_of_is_told_by_the_most_that_was_measured() -> None:
    found = [effect("SAME", syncs=9.0), effect("SAME", syncs=2.5, kernels=1.0)]
    assert impact.gained(found).told == "up to 75 % fewer synchronizations with the device"
    assert impact.gained([effect("SAME", kernels=7.0)]).told == "up to 30 % fewer kernel launches"


def test_gains_are_ordered_by_the_larger_one() -> None:
    assert Gain(3.0, 1.1, 0.5).best == 2.0
    assert Gain(3.0, 2.5, 0.5).best == 2.5
    assert Gain().best == 1.0


@pytest.mark.parametrize("rule", registry.catalogue().values(), ids=lambda rule: rule.code)
def test_every_rule_has_the_worth_of_its_measurements(rule: Rule) -> None:
    if not rule.measured:
        assert impact.worth(rule) is None
        assert not effects.of(rule.code)
    else:
        assert impact.worth(rule) is impact.judged(effects.of(rule.code))


def test_a_rule_that_nobody_measured() -> None:
    rule = cast(Rule, SimpleNamespace(code="ZZ1", measured=True))
    assert impact.worth(rule) is Worth.UNMEASURED
