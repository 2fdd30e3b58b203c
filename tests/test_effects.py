"""The measured effects that are shipped: those of the results that are kept, as the pages tell them."""

from __future__ import annotations

from torchlint import effects
from torchlint.dev import measured, pages
from torchlint.registry import catalogue


def test_every_page_ends_with_what_is_shipped() -> None:
    told = 0
    for code, rule in catalogue().items():
        page = pages.path_of(rule).read_text(encoding="utf-8")
        section = effects.section(code, effects.of(code))
        assert page.endswith(section)
        assert ("## Measured" in page) == bool(section)
        told += bool(section)
    assert told > 40


def test_figures_are_those_of_the_measurement() -> None:
    shipped = [(code, effect) for code in catalogue() for effect in effects.of(code)]
    cases = {
        (case.measurement.subject, case.measurement.size, case.machine): case
        for case in measured.pooled(measured.load("bench"))
    }
    assert len(cases) == len(shipped)
    for code, effect in shipped:
        case = cases[code, effect["size"], effect["machine"]]
        walls = [item.wall for item in case.measurement.comparisons if item.wall is not None]
        assert effect["date"] == case.date
        if effect["speedup"] is not None:
            low, ratio, high = (effect["speedup"][key] for key in ("low", "ratio", "high"))
            assert any(abs(ratio / wall.ratio - 1) < 1e-3 for wall in walls)
            # What was measured lies in the interval, unless several runs contradict each other.
            singles = [item.wall for run in case.runs for item in run.measurement.comparisons if item.wall]
            assert len(singles) > 1 or low < singles[0].ratio < high
            assert low <= ratio <= high
            assert effect["verdict"] in ("FASTER", "SLOWER", "SAME", "UNCLEAR")


def test_a_rule_without_measurements_has_none() -> None:
    assert effects.of("ZZ999") == ()
    assert effects.section("ZZ999", ()) == ""
