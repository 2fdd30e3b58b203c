"""Steps that do more than the others are told from noise, and paired by their numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchlint.verify import words
from torchlint.verify.periodic import periodic
from torchlint.verify.results import AGAIN, ORIGINAL, TOGETHER, Block, Examination, Measurement
from torchlint.verify.worker.blocks import outstanding


def blocks(*numbers: int, after: float = 0.3, last: int = 400) -> list[Block]:
    """Blocks of two replicates; the steps ``numbers`` take longer, with the fixes by ``after``."""
    return [
        Block(
            name,
            replicate,
            turn,
            0,
            20,
            1.0,
            since=since,
            until=since + 19,
            slow=tuple(
                (number, after if name == TOGETHER else 0.8)
                for number in numbers
                if since <= number < since + 20 and (after or name != TOGETHER)
            ),
        )
        for replicate in range(2)
        for turn, since in enumerate(range(31, last, 20))
        for name in (ORIGINAL, AGAIN, TOGETHER)
    ]


def test_regular_steps_are_found_with_what_runs_in_them() -> None:
    found = periodic(
        blocks(50, 100, 150, 200, 250, 300, 350, 400), {50: ("train.py", 88), 1: ("train.py", 1)}
    )
    assert found is not None
    assert (found.every, found.file, found.row) == (50, "train.py", 88)
    assert found.seconds == {ORIGINAL: 0.8, AGAIN: 0.8, TOGETHER: 0.3}


def test_the_first_may_come_at_another_distance_and_before_the_first_block() -> None:
    found = periodic(blocks(67, 117, 167), {17: ("train.py", 9)})
    assert found is not None and (found.every, found.row) == (50, 9)


def test_what_runs_after_every_50th_step_belongs_to_the_next() -> None:
    found = periodic(blocks(51, 101), {1: ("train.py", 1), 51: ("train.py", 22)})
    assert found is not None and (found.every, found.row) == (50, 22)


def test_steps_that_a_fix_makes_as_fast_as_the_others_take_nothing_more() -> None:
    found = periodic(blocks(50, 100, 150, 200, after=0.0), {})
    assert found is not None and found.seconds[TOGETHER] == 0.0 and not found.file


@pytest.mark.parametrize("numbers", [(), (60, 100), (50, 61, 140, 155), (45, 46, 47, 48)])
def test_irregular_steps_are_not_reported(numbers: tuple[int, ...]) -> None:
    assert periodic(blocks(*numbers), {}) is None


def test_what_is_slow_in_one_process_is_noise() -> None:
    noisy = [
        block if block.variant == AGAIN and not block.replicate else replace(block, slow=())
        for block in blocks(50, 100, 150, 200)
    ]
    assert periodic(noisy, {}) is None


def test_slow_steps_are_known_by_their_numbers() -> None:
    ends = [0.0, 0.01, 0.02, 0.03, 0.54, 0.55, 0.56]
    assert outstanding(ends, 31) == [(34, 0.5)]
    assert outstanding([0.0, 1e-4, 2e-4, 3e-4, 1.3e-3], 1) == [], "too little to tell"
    assert outstanding([0.0], 1) == []


def test_it_is_said_in_words() -> None:
    found = periodic(blocks(50, 100, 150, 200), {50: ("train.py", 88)})
    examined = Examination(ORIGINAL, "optimizer steps", 200, step_seconds=0.0101)
    measurement = Measurement("train.py", examinations=(examined,), periodic=found)
    assert words.step_is(measurement).endswith("each. Every 50th takes 800 ms more (train.py:88).")
    assert words.periodic(measurement) == "every 50th step takes more: fixed 800 → 300 ms"
    same = periodic(blocks(50, 100, 150, 200, after=0.75), {})
    assert words.periodic(replace(measurement, periodic=same)) == ""
    assert words.periodic(replace(measurement, periodic=None)) == ""


@pytest.mark.parametrize(
    ("number", "expected"), [(2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (50, "50th"), (112, "112th")]
)
def test_ordinals(number: int, expected: str) -> None:
    assert words.ordinal(number) == expected
