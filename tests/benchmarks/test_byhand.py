"""Timings without the harness: what happens at the end of a step, and whose turn it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.byhand import LEAD, WARM, Command, Turns, taken_in_turns
from benchmarks.verdicts import Program
from torchlint.verify import stats
from torchlint.verify.results import ORIGINAL, TOGETHER


class Clock:
    """A clock that goes on with each step."""

    now = 0.0

    def perf_counter(self) -> float:
        """The time."""
        return self.now


def test_a_turn_has_a_lead_and_only_the_steps_after_it_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers, ended = Clock(), list[tuple[int, float]](), list[int]()
    orders = iter([(LEAD, 4), (LEAD, 2), None])
    step = 0
    monkeypatch.setattr("benchmarks.byhand.time", clock)
    turns = Turns(
        lambda: next(orders),
        lambda seconds: answers.append((step, seconds)),
        lambda: None,
        lambda: ended.append(step),
    )
    first, second = object(), object()
    while not ended:
        step += 1
        # The steps of a lead are slower.
        clock.now += 1.0 if step <= WARM + LEAD else 0.5
        turns(first)
        turns(second)
    assert answers == [(WARM, 0.0), (WARM + LEAD + 4, 2.0), (WARM + 2 * LEAD + 6, 1.0)]
    assert ended == [WARM + 2 * LEAD + 6], "steps of another optimizer are none"


def test_processes_take_turns_and_cover_the_same_steps() -> None:
    asked: list[tuple[str, int]] = []

    def process(name: str, number: int, seconds: float) -> object:
        def turn(steps: int) -> float | None:
            asked.append((name, number))
            return seconds * steps if len(asked) <= 40 else None

        return turn

    pairs = [
        {ORIGINAL: process(ORIGINAL, number, 0.02), TOGETHER: process(TOGETHER, number, 0.01)}
        for number in range(2)
    ]
    blocks = taken_in_turns(pairs, 10, 3600.0)  # type: ignore[arg-type]
    assert [name for name, number in asked[:16] if number == 0] == [
        ORIGINAL,
        TOGETHER,
        TOGETHER,
        ORIGINAL,
    ] * 2
    assert [name for name, number in asked[:8] if number == 1] == [TOGETHER, ORIGINAL, ORIGINAL, TOGETHER]
    assert len(blocks) == 40, "the programs were over"
    found = stats.interval(blocks, ORIGINAL, TOGETHER)
    assert found is not None and found.ratio == pytest.approx(2.0)
    assert taken_in_turns(pairs, 10, -1.0) == []  # type: ignore[arg-type]


def test_a_command_of_verify_is_taken_apart(tmp_path: Path) -> None:
    words = ("main.py", "--link", "../data", "--", "--epochs", "3")
    assert Command.of(Program("vae", words, tmp_path)) == Command(("main.py", "--epochs", "3"), ("../data",))
    unsafe = ("main.py", "--unsafe-fixes", "--", "--epochs", "3")
    assert Command.of(Program("vae", unsafe, tmp_path)) == Command(("main.py", "--epochs", "3"), (), True)
