"""Questions that lean on one another, by numbers: what is asked of what is a graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

import pytest

from torchlint.semantics.fixpoint import Answers, Fixpoint

Reach = frozenset[int]
_NOTHING: Reach = frozenset({-1})
_UNKNOWN: Reach = frozenset({-2})
_ANSWERS = Answers(nothing=_NOTHING, unknown=_UNKNOWN)


class _Graph:
    """Asks of a number which numbers it leads to, going by those that its neighbours lead to."""

    def __init__(self, edges: Mapping[int, Iterable[int]], *, depth: int = 1000) -> None:
        self.edges = edges
        self.worked_out = 0
        self.fixpoint: Fixpoint[int, Reach] = Fixpoint(lambda key: (key, ""), depth=depth)

    def reach(self, key: int) -> Reach:
        return self.fixpoint.ask(key, self._work_out, _ANSWERS)

    def _work_out(self, key: int) -> Reach:
        self.worked_out += 1
        found = {key}
        for other in self.edges.get(key, ()):
            found |= self.reach(other) - {-1}
        return frozenset(found)

    def reachable(self, key: int) -> Reach:
        """The same by a plain search."""
        seen, waiting = {key}, [key]
        while waiting:
            for other in self.edges.get(waiting.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return frozenset(seen)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("depth", [1000, 3])
def test_answers_are_the_least_that_agree_whatever_is_asked_first(seed: int, depth: int) -> None:
    chance = random.Random(seed)
    edges = {key: chance.sample(range(14), chance.choice((0, 1, 1, 2, 3))) for key in range(14)}
    graph = _Graph(edges, depth=depth)
    for key in chance.sample(range(14), 14):
        assert graph.reach(key) == graph.reachable(key)
        assert not graph.fixpoint.open


def test_what_leads_in_no_circle_is_worked_out_once() -> None:
    graph = _Graph({key: range(key) for key in range(12)})
    assert graph.reach(11) == frozenset(range(12))
    assert graph.worked_out == 12


def test_a_great_circle_takes_few_rounds() -> None:
    graph = _Graph({key: [(key + 1) % 100, (key * 7) % 100] for key in range(100)})
    assert graph.reach(50) == frozenset(range(100))
    assert graph.worked_out <= 500


def test_questions_that_all_ask_each_other_take_few_rounds() -> None:
    graph = _Graph({key: [other for other in range(30) if other != key] for key in range(30)})
    assert graph.reach(29) == frozenset(range(30))
    assert graph.worked_out <= 150


def test_an_answer_is_worked_out_again_only_if_what_it_rests_on_says_something_else() -> None:
    asked: list[int] = []

    def next_says(key: int) -> Reach:
        asked.append(key)
        ask((key + 1) % 100)
        return frozenset({key})

    _, ask = _asking(next_says)
    assert ask(50) == frozenset({50})
    assert len(asked) <= 105


def _asking(work_out: Callable[[int], Reach]) -> tuple[Fixpoint[int, Reach], Callable[[int], Reach]]:
    fixpoint: Fixpoint[int, Reach] = Fixpoint(lambda key: (key, ""), depth=100)
    return fixpoint, lambda key: fixpoint.ask(key, work_out, _ANSWERS)


def test_an_answer_that_never_comes_to_rest_is_given_up() -> None:
    rounds = 0

    def alternate(key: int) -> Reach:
        nonlocal rounds
        rounds += 1
        if key == 0:
            return frozenset({1}) if ask(1) != frozenset({1}) else frozenset({2})
        return ask(0)

    _, ask = _asking(alternate)
    assert ask(0) == ask(1) == _UNKNOWN
    assert rounds < 60


def test_a_circle_of_which_nothing_tells_anything_is_unknown() -> None:
    _, ask = _asking(lambda key: ask((key + 1) % 3))
    assert [ask(key) for key in range(3)] == [_UNKNOWN] * 3


def test_what_unknown_tells_in_a_circle_is_heeded() -> None:
    def work_out(key: int) -> Reach:
        if key == 0:
            return ask(1)
        return _NOTHING if ask(0) == _NOTHING else frozenset({7})

    _, ask = _asking(work_out)
    assert ask(1) == ask(0) == frozenset({7})


def test_questions_met_only_once_others_are_answered_join_the_circle() -> None:
    edges = {0: (1,), 1: (0,), 2: (3,), 3: (1, 2), 4: (2,)}

    def work_out(key: int) -> Reach:
        found = {key}
        for other in edges[key]:
            found |= ask(other) - {-1}
        if {0, 1} <= found and key == 0:
            found |= ask(4)
        return frozenset(found)

    for first in range(5):
        _, ask = _asking(work_out)
        ask(first)
        assert [ask(key) for key in range(5)] == [frozenset(range(5))] * 5


def test_an_exception_leaves_nothing_half_done() -> None:
    broken = True

    def work_out(key: int) -> Reach:
        if key == 2 and broken:
            raise ZeroDivisionError
        return frozenset({key}) | (ask((key + 1) % 4) - {-1})

    fixpoint, ask = _asking(work_out)
    with pytest.raises(ZeroDivisionError):
        ask(0)
    assert not fixpoint.open
    broken = False
    assert ask(1) == frozenset(range(4))
