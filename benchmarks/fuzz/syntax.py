"""Programs of whatever Python's grammar allows, made by hypothesmith."""

from __future__ import annotations

import warnings

import hypothesmith
from hypothesis import HealthCheck, Phase, given, seed, settings


def sources(number: int, count: int) -> list[str]:
    """Return ``count`` programs, or fewer if there are no more; the same ones for the same number."""
    found: list[str] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(hypothesmith.from_grammar())
    def keep(text: str) -> None:
        found.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keep()
    return found
