"""What calls lead to, asked of all code of a file at once, and answers that are kept."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.semantics import model
from torchlint.semantics.fixpoint import Answers
from torchlint.semantics.module import Module
from torchlint.semantics.reach import Reach, gathered
from torchlint.semantics.remembered import remembered, solved
from torchlint.syntax import SyntaxTree

PROGRAM = """
def mark():
    pass


def direct():
    mark()


def looped():
    for x in data:
        mark()


def through(n):
    if n:
        through(n - 1)
    direct()


def outer():
    def inner():
        through(1)

    return inner


def decorated(f=direct()):
    pass


def nothing():
    print(outer)
"""


@pytest.fixture
def module() -> Iterator[Module]:
    made = model.build(SyntaxTree(PROGRAM), LintSettings())
    yield made
    made.close()


def marks(module: Module) -> Reach:
    return Reach(module, [call for call in module.tree.nodes(cst.Call) if module.source(call) == "mark()"])


def functions(module: Module) -> dict[str, cst.FunctionDef]:
    return {function.name.value: function for function in module.tree.nodes(cst.FunctionDef)}


def test_code_that_leads_to_a_mark(module: Module) -> None:
    reach = marks(module)
    found = {name for name, function in functions(module).items() if reach.holds(function.body)}
    assert found == {"direct", "looped", "through", "outer", "inner"}
    assert reach.holds(functions(module)["decorated"]), "its default is worked out where it is made"


def test_what_comes_to_a_mark_each_time_round(module: Module) -> None:
    reach = marks(module)
    found = {name for name, function in functions(module).items() if reach.each_round(function)}
    assert found == {"direct", "through", "outer", "inner", "decorated"}
    assert reach.each_round(module.tree.nodes(cst.For)[0])


GRAPH = {"a": "bc", "b": "d", "c": "a", "d": "ef", "e": "d", "f": "", "g": "c", "h": "h"}
FACTS = {"b": [1], "e": [2], "f": [3], "h": [4], "c": [5]}


def look(node: str) -> tuple[list[int], str]:
    return FACTS.get(node, []), GRAPH[node]


@pytest.mark.parametrize("order", ["abcdefgh", "hgfedcba", "dgaehbfc"])
def test_facts_are_gathered_through_circles_in_any_order(order: str) -> None:
    known: dict[str, frozenset[int]] = {}
    for node in order:
        gathered(node, look, known)
    around = frozenset({1, 2, 3, 5})
    assert known == {
        **dict.fromkeys("acg", around),
        "b": frozenset({1, 2, 3}),
        **dict.fromkeys("de", frozenset({2, 3})),
        "f": frozenset({3}),
        "h": frozenset({4}),
    }


def test_each_node_is_looked_at_once() -> None:
    seen: list[str] = []

    def looked(node: str) -> tuple[list[int], str]:
        seen.append(node)
        return look(node)

    known: dict[str, frozenset[int]] = {}
    for node in GRAPH:
        gathered(node, looked, known)
    assert sorted(seen) == sorted(GRAPH)


def test_answers_are_kept_unless_they_rest_on_open_questions(module: Module) -> None:
    asked: list[str] = []

    @remembered
    def length(module: Module, name: str) -> int:
        asked.append(name)
        return len(name)

    answers = Answers(nothing=0, unknown=0)

    def work_out(question: str) -> int:
        return length(module, question)

    assert [length(module, "one"), length(module, "one")] == [3, 3]
    assert asked == ["one"]
    module.fixpoint.ask(("", module.tree.root, "three"), lambda _: length(module, "three"), answers)
    assert length(module, "three") == 5
    assert asked == ["one", "three"]

    steps: list[int] = []

    @remembered
    def following(module: Module, most: int) -> int:
        steps.append(most)
        answer: int = module.fixpoint.ask(circle, work_out_circle, answers)
        return min(most, answer + 1)

    def work_out_circle(_: object) -> int:
        # Both ways meet in the same answer, which is computed once as long as the circle says the same.
        return max(following(module, 3), following(module, 3))

    circle = ("", module.tree.root, "circle")
    assert module.fixpoint.ask(circle, work_out_circle, answers) == 3
    assert following(module, 3) == 3
    assert steps == [3, 3, 3, 3, 3]


def test_a_question_may_lead_back_to_itself(module: Module) -> None:
    onward = {name: name.value for name in module.tree.nodes(cst.Name)}
    asked: list[str] = []

    @solved(frozenset())
    def reached(module: Module, name: cst.Name, beside: str) -> frozenset[str]:
        asked.append(name.value)
        others = [other for other in onward if onward[other] < name.value or onward[other] == beside]
        return frozenset({name.value}).union(*(reached(module, other, beside) for other in others))

    last = max(onward, key=lambda name: name.value)
    first = min(onward, key=lambda name: name.value)
    assert reached(module, last, last.value) == frozenset(onward.values())
    assert reached(module, first, last.value) == frozenset(onward.values())
    assert len(asked) < 4 * len(onward)
