"""A short run of the fuzzer, always with the same programs: nothing in it may be wrong.

The long run is ``python -m benchmarks.fuzz``. A number that fails here is written out by
``python -m benchmarks.fuzz --seed 0 --show NUMBER``.
"""

from __future__ import annotations

import pytest

from benchmarks.fuzz import campaign, properties, syntax
from benchmarks.fuzz.campaign import KINDS

SEED = 0
# A round has one program of each place in ``KINDS``.
ROUNDS = 1


@pytest.mark.parametrize("number", range(ROUNDS * len(KINDS)))
def test_nothing_is_wrong(number: int) -> None:
    assert campaign.examined(SEED, number).problems == ()


def test_nothing_is_wrong_with_any_syntax() -> None:
    sources = syntax.sources(SEED, 20)
    assert len(set(sources)) > 10
    for source in sources:
        assert list(properties.held(source)) == []
