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
    shipped = {
        (effect["machine"], code, effect["size"]): effect
        for code in catalogue()
        for effect in effects.of(code)
    }
    cases = measured._latest(measured.load("bench"))
    assert len(cases) == len(shipped)
    for case in cases:
        effect, head = (
            shipped[case.machine, case.measurement.subject, case.measurement.size],
            case.measurement,
        )
        speedups = {round(item.wall.ratio, 6) for item in head.comparisons if item.wall is not None}
        assert effect["date"] == case.date
        if effect["speedup"] is not None:
            assert any(abs(effect["speedup"]["ratio"] / ratio - 1) < 1e-3 for ratio in speedups)
            low, high = effect["speedup"]["low"], effect["speedup"]["high"]
            assert low <= effect["speedup"]["ratio"] <= high
            assert effect["verdict"] in ("FASTER", "SLOWER", "SAME", "UNCLEAR")


def test_a_rule_without_measurements_has_none() -> None:
    assert effects.of("ZZ999") == ()
    assert effects.section("ZZ999", ()) == ""
