"""What the graphs say, held to what the interpreter does: random programs, run in every way they can go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.parsing import DEEPEST_QUESTIONS
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.inference import place_of
from torchlint.syntax import SyntaxTree

_MOST_REPEATED = 3
_MOST_RUNS = 400


class Abandoned(BaseException):
    """A run has come to one call as often as is tried."""


class ExpectedError(Exception):
    """What handlers catch."""


class OtherError(Exception):
    """What they may miss."""


def control_flow(tree: SyntaxTree) -> ControlFlow:
    return ControlFlow(tree, Fixpoint(partial(place_of, tree.order), depth=DEEPEST_QUESTIONS))


# --- programs ---------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Writes a program of calls, each of which has a number of its own."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    with_finally: bool
    numbers: Iterator[int] = field(default_factory=count)
    size: int = 0

    def one_of(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def call(self, name: str) -> str:
        return f"{name}({next(self.numbers)})"

    def test(self, depth: int = 2) -> str:
        match self.one_of("atom", "atom", "and", "or", "not", "choice") if depth else "atom":
            case "and" | "or" as operator:
                return f"({self.test(depth - 1)} {operator} {self.test(depth - 1)})"
            case "not":
                return f"(not {self.test(depth - 1)})"
            case "choice":
                return f"({self.test(depth - 1)} if {self.test(depth - 1)} else {self.test(depth - 1)})"
            case _:
                return self.call("test")

    def expression(self) -> str:
        match self.one_of("mark", "mark", "mark", "choice", "and", "list", "nested", "chain"):
            case "choice":
                return f"{self.call('mark')} if {self.test()} else {self.call('mark')}"
            case "and":
                return f"{self.test(1)} {self.one_of('and', 'or')} {self.call('mark')}"
            case "list":
                condition = f" if {self.test(1)}" if self.one_of(True, False) else ""
                inner = f" for _ in {self.call('items')}" if self.one_of(True, False) else ""
                return f"[{self.call('mark')} for _ in {self.call('items')}{condition}{inner}]"
            case "nested":
                return f"{self.call('mark')}({self.test(1)}, {self.call('mark')})"
            case "chain":
                return f"{self.call('mark')} < {self.call('mark')} < {self.call('mark')}"
            case _:
                return self.call("mark")

    def block(self, depth: int, loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            self.size += 1
            lines += self.statement(depth if self.size < 12 else 0, loop)
        return [f"    {line}" for line in lines]

    def statement(self, depth: int, loop: bool) -> list[str]:
        simple = ["mark", "mark", "assign", "return", "raise", "yield"]
        if self.with_finally:  # which handler gets the exception of an assertion, graphs do not say
            simple.append("assert")
        compound = ["if", "if", "while", "for", "with", "suppress", "try", "try", "match"]
        jumps = ["break", "continue"] if loop else []
        match self.one_of(*simple, *jumps, *(compound if depth else [])):
            case "assign":
                return [f"{self.call('mark')}.x = {self.expression()}"]
            case "assert":
                return [f"assert {self.test()}, {self.call('mark')}"]
            case "raise":
                return [f"raise {self.call('failure')}"]
            case "return" | "yield" as word:
                return [f"{word} {self.call('mark')}"]
            case "break" | "continue" as word:
                return [word]
            case "if":
                lines = [f"if {self.test()}:", *self.block(depth - 1, loop)]
                if self.one_of(True, False):
                    lines += [f"elif {self.test()}:", *self.block(depth - 1, loop)]
                return [*lines, *self.otherwise(depth, loop)]
            case "while":
                return [f"while {self.test()}:", *self.block(depth - 1, True), *self.otherwise(depth, loop)]
            case "for":
                head = f"for _ in {self.call('items')}:"
                return [head, *self.block(depth - 1, True), *self.otherwise(depth, loop)]
            case "with":
                return [f"with {self.call('manager')}:", *self.block(depth - 1, loop)]
            case "suppress":
                return ["with suppress(ExpectedError):", *self.block(depth - 1, loop)]
            case "match":
                lines = [f"match {self.call('subject')}:"]
                for pattern in self.one_of(("True",), ("True", "_"), ("False", f"_ if {self.test()}")):
                    lines += [f"    case {pattern}:", *(f"    {o}" for o in self.block(depth - 1, loop))]
                return lines
            case "try":
                return self.attempt(depth, loop)
            case _:
                return [self.expression()]

    def otherwise(self, depth: int, loop: bool) -> list[str]:
        return ["else:", *self.block(depth - 1, loop)] if self.one_of(True, False) else []

    def attempt(self, depth: int, loop: bool) -> list[str]:
        lines = ["try:", *self.block(depth - 1, loop)]
        some, every = "except ExpectedError:", "except:"
        handlers = self.one_of((), (some,), (every,), (some, every))
        if not self.with_finally and not handlers:
            handlers = (some,)
        for handler in handlers:
            lines += [handler, *self.block(depth - 1, loop)]
        if handlers:
            lines += self.otherwise(depth, loop)
        if not handlers or (self.with_finally and self.one_of(True, False)):
            lines += ["finally:", *self.block(depth - 1, loop)]
        return lines


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any], with_finally: bool) -> str:
    """A function whose calls have numbers."""
    return "\n".join(["def program():", *Writer(draw, with_finally).block(3, loop=False)])


# --- runs -------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One run of a program, which takes the choices of a script and then the first there is.

    ``before`` has for each call that was begun what had run then, and ``known`` how the tests had come out.
    ``events`` are the calls that begin (False) and end (True); the run has ``ended`` if nothing was raised.
    """

    script: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    begun: dict[int, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    outcomes: dict[int, bool] = field(default_factory=dict)
    before: dict[int, set[int]] = field(default_factory=dict)
    known: dict[int, set[tuple[int, bool]]] = field(default_factory=dict)
    events: list[tuple[int, bool]] = field(default_factory=list)
    ended: bool = False
    abandoned: bool = False

    def choose(self, options: int) -> int:
        if self.abandoned:
            raise Abandoned
        at = len(self.taken)
        choice = self.script[at] if at < len(self.script) else 0
        self.taken.append((choice, options))
        return choice

    def count(self, number: int) -> None:
        self.begun[number] = self.begun.get(number, 0) + 1
        self.abandoned = self.abandoned or self.begun[number] > _MOST_REPEATED
        if self.abandoned:
            raise Abandoned

    def begin(self, number: int) -> None:
        self.count(number)
        known = set(self.outcomes.items())
        self.before[number] = self.before.get(number, self.done) & self.done
        self.known[number] = self.known.get(number, known) & known
        self.events.append((number, False))
        failing = self.choose(3)
        if failing:
            raise (ExpectedError, OtherError)[failing - 1]

    def finish(self, number: int) -> None:
        self.done.add(number)
        self.events.append((number, True))

    def mark(self, number: int) -> Any:
        self.begin(number)
        self.finish(number)
        run = self

        class Marked:
            def __call__(self, *_: object) -> Marked:
                return self

            def __lt__(self, _: object) -> bool:
                return bool(run.choose(2))

        return Marked()

    def failure(self, number: int) -> Exception:
        self.begin(number)
        self.finish(number)
        return (ExpectedError, OtherError)[self.choose(2)]()

    def test(self, number: int) -> bool:
        self.begin(number)
        outcome = self.outcomes[number] = bool(self.choose(2))
        self.finish(number)
        return outcome

    def subject(self, number: int) -> bool:
        self.begin(number)
        self.finish(number)
        return bool(self.choose(2))

    def items(self, number: int) -> Iterator[int]:
        self.begin(number)
        self.finish(number)

        def following() -> Iterator[int]:
            while self.choose(2):
                self.count(number)
                yield 0

        return following()

    def manager(self, number: int) -> Any:
        self.begin(number)
        self.finish(number)
        return nullcontext()

    def __call__(self, code: Any) -> None:
        scope: dict[str, Any] = {"suppress": suppress, "ExpectedError": ExpectedError}
        names = ("mark", "failure", "test", "subject", "items", "manager")
        scope |= {name: getattr(self, name) for name in names}
        exec(code, scope)
        with suppress(Abandoned, ExpectedError, OtherError, AssertionError):
            generator = scope["program"]()
            if hasattr(generator, "__next__"):
                with suppress(StopIteration):
                    self.go_through(generator)
            self.ended = not self.abandoned

    def go_through(self, generator: Any) -> None:
        """Take the values of a generator, or fail in between."""
        stopping = 0
        while True:
            if stopping:
                generator.throw((ExpectedError, OtherError)[stopping - 1]())
            else:
                next(generator)
            stopping = self.choose(3)

    def behind(self) -> dict[int, set[int]]:
        """For each call that ended what was begun behind it at any time."""
        found: dict[int, set[int]] = {}
        begun: set[int] = set()
        for number, ends in reversed(self.events):
            if ends:
                found.setdefault(number, set()).update(begun)
            else:
                begun.add(number)
        return found

    def behind_at_last(self) -> dict[int, set[int]]:
        """For each call that ended what was begun when it had ended for the last time."""
        found: dict[int, set[int]] = {}
        begun: set[int] = set()
        for number, ends in reversed(self.events):
            if ends:
                found.setdefault(number, set(begun))
            else:
                begun.add(number)
        return found


def runs(program: str) -> tuple[list[Run], bool]:
    """The runs of a program, and whether they are all that come to no call more often than is tried."""
    code = compile(program, "program", "exec")
    found: list[Run] = []
    pending: list[list[int]] = [[]]
    while pending and len(found) < _MOST_RUNS:
        script = pending.pop()
        run = Run(script)
        run(code)
        found.append(run)
        choices = [choice for choice, _ in run.taken]
        for at in range(len(script), len(choices)):
            pending += [[*choices[:at], other] for other in range(1, run.taken[at][1])]
    return found, not pending


# --- the comparison ---------------------------------------------------------------------------------


def seen(program: str) -> tuple[dict[int, set[int]], dict[int, set[tuple[int, bool]]], bool]:
    """What had always run, and how tests had always come out, when each call was begun."""
    found, complete = runs(program)
    before: dict[int, set[int]] = {}
    known: dict[int, set[tuple[int, bool]]] = {}
    for run in found:
        for number, done in run.before.items():
            before[number] = before.get(number, done) & done
            known[number] = known.get(number, run.known[number]) & run.known[number]
    return before, known, complete


def atoms(test: cst.BaseExpression, holds: bool) -> Iterator[tuple[int, bool]]:
    match test:
        case cst.UnaryOperation(expression=inner):
            yield from atoms(inner, not holds)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            if isinstance(operator, cst.And) is holds:
                yield from (*atoms(left, holds), *atoms(right, holds))
        case cst.Call(args=[cst.Arg(value=cst.Integer(value=number))]):
            yield int(number), holds
        case _:
            pass


def numbered(tree: SyntaxTree) -> dict[int, cst.Call]:
    """The calls of a program by their numbers."""
    calls: dict[int, cst.Call] = {}
    for call in tree.nodes(cst.Call):
        match call.args:
            case [cst.Arg(value=cst.Integer(value=number))]:
                calls[int(number)] = call
    return calls


def told(program: str) -> tuple[dict[int, set[int]], dict[int, set[tuple[int, bool]]]]:
    """What the graph says has always run, and how tests have come out, when each call begins."""
    tree = SyntaxTree(program)
    flow = control_flow(tree)
    calls = numbered(tree)
    before = {
        number: {other for other, node in calls.items() if flow.certainly_before(node, call)}
        for number, call in calls.items()
    }
    known = {
        number: {atom for decision in flow.decisions(call) for atom in atoms(decision.test, decision.holds)}
        for number, call in calls.items()
    }
    return before, known


@settings(max_examples=25, deadline=None, derandomize=True, report_multiple_bugs=False)
@given(programs(with_finally=True))
def test_what_is_said_is_true(program: str) -> None:
    before, known, _ = seen(program)
    said_before, said_known = told(program)
    for number in before:
        assert said_before[number] <= before[number], (program, number)
        assert said_known[number] <= known[number], (program, number)


@settings(max_examples=40, deadline=None, derandomize=True, report_multiple_bugs=False)
@given(programs(with_finally=False))
def test_all_that_is_true_is_said(program: str) -> None:
    before, known, complete = seen(program)
    said_before, said_known = told(program)
    for number in before:
        assert said_before[number] <= before[number], (program, number)
        assert said_known[number] <= known[number], (program, number)
        if complete:
            assert said_before[number] == before[number], (program, number)
            assert said_known[number] == known[number], (program, number)


@settings(max_examples=25, deadline=None, derandomize=True, report_multiple_bugs=False)
@given(programs(with_finally=True))
def test_what_comes_behind(program: str) -> None:
    tree = SyntaxTree(program)
    flow, calls = control_flow(tree), numbered(tree)
    behind: dict[int, set[int]] = {}
    at_last: dict[int, set[int]] = {}
    for run in runs(program)[0]:
        for number, others in run.behind().items():
            behind.setdefault(number, set()).update(others)
        for number, others in run.behind_at_last().items() if run.ended else ():
            at_last[number] = at_last.get(number, others) & others
    for number, call in calls.items():
        for other, following in calls.items():
            if other in behind.get(number, ()):
                assert flow.may_follow(call, following), (program, number, other)
            if other not in at_last.get(number, calls):
                assert not flow.certainly_after(call, following), (program, number, other)


# --- by hand ----------------------------------------------------------------------------------------

BRANCHES = {
    "none": ("f()", []),
    "a branch": ("if a:\n    f()", ["a"]),
    "the other one": ("if a:\n    pass\nelse:\n    f()", ["not a"]),
    "a negation": ("if not a:\n    f()", ["not a"]),
    "two of them": ("if a:\n    if b:\n        f()", ["b", "a"]),
    "in a loop": ("if a:\n    while b:\n        f()", ["a"]),
    "what is left": ("if a:\n    raise ValueError\nf()", []),
    "an operator": ("a and f()", ["a"]),
    "a class": ("if a:\n    class C:\n        f()", ["a"]),
    "a function": ("if a:\n    def g():\n        if b:\n            f()", ["b", "outside a"]),
    "a default": ("if a:\n    def g(x=f()):\n        pass", ["a"]),
    "a case": ("match a:\n    case 1 if b:\n        f()", ["b"]),
}


@pytest.mark.parametrize(("program", "expected"), BRANCHES.values(), ids=BRANCHES)
def test_branches(program: str, expected: list[str]) -> None:
    tree = SyntaxTree(program)
    flow, call = control_flow(tree), called(tree, "f")
    inside = list(flow.branches(call))
    told = [
        f"{'' if branch in inside else 'outside '}{'' if branch.holds else 'not '}{tree.source(branch.test)}"
        for branch in flow.branches(call, outward=True)
    ]
    assert told == expected


@pytest.mark.parametrize("test", ["True", "a"])
def test_a_choice_stands_in_none_of_its_branches(test: str) -> None:
    tree = SyntaxTree(f"if d:\n    f(b if {test} else c)")
    (choice,) = tree.nodes(cst.IfExp)
    assert [tree.source(branch.test) for branch in control_flow(tree).branches(choice)] == ["d"]


def test_tests_of_loops_on_demand() -> None:
    tree = SyntaxTree("if a:\n    while b:\n        f()")
    branches = control_flow(tree).branches(called(tree, "f"), loops=True)
    assert [tree.source(branch.test) for branch in branches] == ["b", "a"]


def test_branches_within_a_loop() -> None:
    tree = SyntaxTree(
        "if a:\n    for x in y:\n        if b:\n            continue\n        if c:\n            f()"
    )
    flow, call, loop = control_flow(tree), called(tree, "f"), tree.nodes(cst.For)[0]
    assert [tree.source(d.test) for d in flow.branches(call, within=loop)] == ["c"]
    assert [tree.source(d.test) for d in flow.decisions(call, within=loop)] == ["c", "b"]


ALTERNATIVES = {
    "none": ("try:\n    f()\nexcept E:\n    pass", 0),
    "a handler": ("try:\n    pass\nexcept E:\n    f()", 1),
    "behind one": ("try:\n    return_(1)\nexcept E:\n    pass\nf()", 0),
    "only behind one": ("while a:\n    try:\n        break\n    except E:\n        pass\n    f()", 1),
    "a case": ("match a:\n    case 1:\n        f()", 1),
}


@pytest.mark.parametrize(("program", "expected"), ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_alternatives(program: str, expected: int) -> None:
    tree = SyntaxTree(program)
    assert len(list(control_flow(tree).alternatives(called(tree, "f")))) == expected


LAST_ROUNDS = {
    "another round": ("for x in y:\n    f()", False),
    "broken off": ("for x in y:\n    f()\n    break", True),
    "perhaps broken off": ("for x in y:\n    f()\n    if a:\n        break", False),
    "tried until it works": (
        "while a:\n    try:\n        f()\n        break\n    except E:\n        pass",
        True,
    ),
    "what failed": ("while a:\n    try:\n        break\n    except E:\n        f()", False),
    "the end of a program": ("for x in y:\n    f()\n    sys.exit()", True),
}


@pytest.mark.parametrize(("program", "expected"), LAST_ROUNDS.values(), ids=LAST_ROUNDS)
def test_the_last_round_of_a_loop(program: str, expected: bool) -> None:
    tree = SyntaxTree(program)
    loop = tree.nodes(cst.For, cst.While)[0]
    assert control_flow(tree).runs_once(called(tree, "f"), loop) is expected


BAD_ENDS = {
    "none": ("f()", False),
    "an exception": ("f()\nraise E", True),
    "in one branch": ("f()\nif a:\n    raise E", False),
    "in all branches": ("f()\nif a:\n    raise E\nelse:\n    sys.exit()", True),
    "behind a result": ("def g():\n    if f():\n        return\n    raise E", False),
    "no end": ("f()\nwhile True:\n    if a:\n        raise E", False),
    "a generator": ("def g():\n    f()\n    yield a\n    raise E", False),
    "a message": ("assert a, f()", True),
}


@pytest.mark.parametrize(("program", "expected"), BAD_ENDS.values(), ids=BAD_ENDS)
def test_a_bad_end(program: str, expected: bool) -> None:
    tree = SyntaxTree(program)
    assert control_flow(tree).ends_badly(called(tree, "f")) is expected


COMMON_BLOCKS = {
    "one line": ("f(); g()", "f(); g()"),
    "a branch": ("if a:\n    f()\ng()", "if a:"),
    "both in it": ("if a:\n    f()\n    g()", "f()"),
    "two branches": ("if a:\n    f()\nelse:\n    g()", "if a:"),
}


@pytest.mark.parametrize(("program", "expected"), COMMON_BLOCKS.values(), ids=COMMON_BLOCKS)
def test_the_block_of_two(program: str, expected: str) -> None:
    tree = SyntaxTree(program)
    block, statement = control_flow(tree).common_block(called(tree, "f"), called(tree, "g"))
    assert tree.source(statement).strip().startswith(expected)
    assert tree.contains(block, called(tree, "g"))


CONTEXTS = {
    "two of them": ("with a, b:\n    with c:\n        f()", ["c", "b", "a"]),
    "a header": ("with a, f(), b:\n    pass", ["a"]),
    "a function": ("with a:\n    def g():\n        with b:\n            f()", ["b"]),
}


@pytest.mark.parametrize(("program", "expected"), CONTEXTS.values(), ids=CONTEXTS)
def test_contexts(program: str, expected: list[str]) -> None:
    tree = SyntaxTree(program)
    items = control_flow(tree).contexts(called(tree, "f"))
    assert [tree.source(item.item) for item in items] == expected


TRIES = {
    "two of them": ("try:\n    try:\n        f()\n    except B:\n        pass\nfinally:\n    a", 2),
    "a handler": ("try:\n    pass\nexcept E:\n    f()", 0),
    "behind the block": ("try:\n    pass\nexcept E:\n    pass\nelse:\n    f()\nfinally:\n    f()", 0),
    "a function": ("try:\n    def g():\n        f()\nexcept E:\n    pass", 0),
    "a default": ("try:\n    def g(x=f()):\n        pass\nexcept E:\n    pass", 1),
}


@pytest.mark.parametrize(("program", "expected"), TRIES.values(), ids=TRIES)
def test_tries(program: str, expected: int) -> None:
    tree = SyntaxTree(program)
    assert len(list(control_flow(tree).tries(called(tree, "f")))) == expected


def test_tries_around_a_function() -> None:
    tree = SyntaxTree("try:\n    def g():\n        f()\nexcept E:\n    pass")
    assert list(control_flow(tree).tries(called(tree, "f"), outward=True)) == tree.nodes(cst.Try)


LOOPS = {
    "two of them": ("for a in b:\n    while c:\n        f()", "while for"),
    "an iterable": ("for a in f():\n    pass", ""),
    "a test": ("while f():\n    pass", "while"),
    "behind a loop": ("while a:\n    pass\nelse:\n    f()", ""),
    "a comprehension": ("for a in b:\n    [f() for c in d]", "[ for"),
    "the first iterable": ("[a for a in f()]", ""),
    "the second iterable": ("[a for a in b for c in f()]", "["),
    "a function": ("for a in b:\n    def g():\n        f()", ""),
}


@pytest.mark.parametrize(("program", "expected"), LOOPS.values(), ids=LOOPS)
def test_loops(program: str, expected: str) -> None:
    tree = SyntaxTree(program)
    flow, call = control_flow(tree), called(tree, "f")
    spelt = {cst.For: "for", cst.While: "while", cst.ListComp: "["}
    assert " ".join(spelt[type(loop)] for loop in flow.loops(call)) == expected
    statements = [loop for loop in flow.loops(call) if not isinstance(loop, cst.ListComp)]
    assert flow.statement_loops(call) == statements


STATEMENTS = {
    "a small one": ("if a:\n    x = [f()]", cst.Assign),
    "a header": ("if a:\n    pass\nelif f():\n    pass", cst.If),
    "a context": ("with f():\n    pass", cst.With),
    "a default": ("def g(x=f()):\n    pass", cst.FunctionDef),
    "a lambda": ("lambda: f()", cst.Expr),
}


@pytest.mark.parametrize(("program", "expected"), STATEMENTS.values(), ids=STATEMENTS)
def test_statement(program: str, expected: type) -> None:
    tree = SyntaxTree(program)
    flow = control_flow(tree)
    statement = flow.statement(called(tree, "f"))
    assert type(statement) is expected
    assert flow.statement(statement) is statement


CONDITIONS = {
    "none": ("x = f() > 0", None),
    "a branch": ("if a and not f():\n    pass", cst.If),
    "a body": ("if a:\n    f()", None),
    "an assertion": ("assert f(), a", cst.Assert),
    "its message": ("assert a, f()", None),
    "a ternary": ("if a if f() else b:\n    pass", cst.IfExp),
    "a part of one": ("if f() if a else b:\n    pass", cst.If),
    "a filter": ("[a for a in b if f()]", cst.CompIf),
}


@pytest.mark.parametrize(("program", "expected"), CONDITIONS.values(), ids=CONDITIONS)
def test_condition(program: str, expected: type | None) -> None:
    tree = SyntaxTree(program)
    decided = control_flow(tree).condition(called(tree, "f"))
    assert (None if decided is None else type(decided)) is expected


def test_what_may_follow_in_one_iteration() -> None:
    tree = SyntaxTree("for x in y:\n    if x:\n        f()\n    else:\n        g()\n    h()")
    flow, loop = control_flow(tree), tree.nodes(cst.For)[0]
    one, other, last = called(tree, "f"), called(tree, "g"), called(tree, "h")
    assert flow.may_follow(one, other)
    assert not flow.may_follow(one, other, within=loop)
    assert flow.may_follow(one, last, within=loop)
    assert not flow.may_follow(last, one, within=loop)


def test_nested_clean_up_takes_no_room_without_bound() -> None:
    lines = [f"{' ' * depth}{word}" for depth in range(40) for word in ("try:", " f()", "finally:")]
    tree = SyntaxTree("\n".join([*lines, f"{' ' * 40}f()"]))
    assert len(control_flow(tree).of(tree.root).graph.points) < 4_000


def called(tree: SyntaxTree, name: str) -> cst.Call:
    """The call of a function."""
    return next(call for call in tree.nodes(cst.Call) if tree.source(call.func) == name)


DEAD = {
    "live": ("f()", False),
    "behind a result": ("def g():\n    return a\n    f()", True),
    "behind an assertion": ("assert False, a\nf()", True),
    "behind one that may hold": ("assert a\nf()", False),
    "below a test that never holds": ("if False:\n    f()", True),
    "beside one": ("if False:\n    a\nelse:\n    f()", False),
    "behind a loop without end": ("while True:\n    a\nf()", True),
    "behind one that is left": ("while True:\n    if a:\n        break\nf()", False),
    "in a cleanup": ("try:\n    raise E\nfinally:\n    f()", False),
}


@pytest.mark.parametrize(("program", "expected"), DEAD.values(), ids=DEAD)
def test_dead_code(program: str, expected: bool) -> None:
    tree = SyntaxTree(program)
    assert control_flow(tree).is_dead(called(tree, "f")) is expected


AVAILABLE = {
    "above": ("make()\nread()", True),
    "not above": ("other()\nread()", False),
    "ended": ("make()\nend()\nread()", False),
    "on one way only": ("if x:\n    make()\nread()", False),
    "on both ways": ("if x:\n    make()\nelse:\n    make()\nread()", True),
    "ended on one way": ("make()\nif x:\n    end()\nread()", False),
    "the other way leaves": ("make()\nif x:\n    end()\n    raise x\nread()", True),
    "above a branch": ("make()\nif x:\n    read()", True),
    "above a with": ("make()\nwith x:\n    read()", True),
    "each iteration begins anew": ("make()\nfor x in y:\n    read()\n    make()", False),
    "in the iteration": ("for x in y:\n    make()\n    read()", True),
    "behind a loop": ("make()\nfor x in y:\n    other()\nread()", True),
    "behind a nested loop": ("for z in y:\n    make()\n    for x in y:\n        other()\n    read()", True),
    "behind a loop that is left": ("make()\nwhile x:\n    if y:\n        break\nread()", True),
    "below a condition in a loop": ("make()\nfor x in y:\n    if x:\n        read()", False),
    "ended in a loop": ("make()\nfor x in y:\n    end()\nread()", False),
    "in a loop that may not run": ("for x in y:\n    make()\nread()", False),
    "a comprehension": ("make()\nx = [read(y) for y in z]", True),
    "ended in a comprehension": ("make()\nx = [(read(y), end()) for y in z]", False),
    "a handler": ("try:\n    make()\n    other()\nexcept E:\n    read()", False),
    "above a try": ("make()\ntry:\n    other()\nexcept E:\n    read()", True),
    "finally": ("try:\n    make()\nfinally:\n    read()", False),
    "above finally": ("make()\ntry:\n    other()\nfinally:\n    read()", True),
}


@pytest.mark.parametrize(("program", "expected"), AVAILABLE.values(), ids=AVAILABLE)
def test_what_holds_on_every_way(program: str, expected: bool) -> None:
    tree = SyntaxTree(program)
    flow = control_flow(tree)

    def judge(point: cst.CSTNode) -> bool | None:
        if isinstance(point, (cst.For, cst.While, cst.ExceptHandler)):
            return None  # what stands in it has points of its own
        source = tree.source(point)
        return True if "make" in source else False if "end" in source else None

    assert flow.at_point(called(tree, "read"), flow.available(tree.root, judge)) is expected


ANTICIPATED = {
    "below": ("read()\nmake()", True),
    "not below": ("make()\nread()", False),
    "ended before": ("read()\nend()\nmake()", False),
    "with others between": ("read()\nother()\nmake()", True),
    "on one way only": ("read()\nif x:\n    make()", False),
    "on both ways": ("read()\nif x:\n    make()\nelse:\n    make()", True),
    "the other way leaves": ("read()\nif x:\n    raise x\nmake()", True),
    "the other way returns": ("def f():\n    read()\n    if x:\n        return\n    make()", False),
    "behind the branch": ("if x:\n    read()\nmake()", True),
    "in a test": ("read()\nif make():\n    other()", True),
    "in a loop": ("read()\nfor x in y:\n    make()", True),
    "ended in a loop": ("read()\nfor x in y:\n    end()\nmake()", False),
    "in a loop by a condition": ("read()\nwhile x:\n    make()", False),
    "in the next iteration": ("for x in y:\n    make()\n    read()", False),
    "in the iteration": ("for x in y:\n    read()\n    make()", True),
    "behind the loop": ("for x in y:\n    read()\nmake()", False),
    "behind a try": ("try:\n    read()\nexcept E:\n    other()\nmake()", True),
    "finally": ("try:\n    read()\nfinally:\n    make()", True),
    "below a with": ("with x:\n    read()\nmake()", True),
}


@pytest.mark.parametrize(("program", "expected"), ANTICIPATED.values(), ids=ANTICIPATED)
def test_what_comes_on_every_way(program: str, expected: bool) -> None:
    tree = SyntaxTree(program)
    flow = control_flow(tree)

    def judge(point: cst.CSTNode) -> bool | None:
        if isinstance(point, (cst.For, cst.While, cst.ExceptHandler)):
            return None
        source = tree.source(point)
        return True if "make" in source else False if "end" in source else None

    read = called(tree, "read")
    assert flow.at_point(read, flow.anticipated(flow.root(read), judge)) is expected


ENDS = {
    "made": ("def f():\n    make()", True, True),
    "made on one way": ("def f():\n    if x:\n        make()", False, False),
    "made in front of a way out": (
        "def f():\n    make()\n    if x:\n        return\n    other()",
        True,
        True,
    ),
    "made behind a way out": ("def f():\n    if x:\n        return\n    make()", False, False),
    "made and ended": ("def f():\n    make()\n    end()", False, True),
    "ended and made": ("def f():\n    end()\n    make()", True, False),
    "an error otherwise": ("def f():\n    if make():\n        raise x", True, True),
}


@pytest.mark.parametrize(("program", "at_end", "at_start"), ENDS.values(), ids=ENDS)
def test_what_holds_at_the_ends_of_a_function(program: str, at_end: bool, at_start: bool) -> None:
    tree = SyntaxTree(program)
    flow = control_flow(tree)
    (function,) = tree.nodes(cst.FunctionDef)

    def judge(point: cst.CSTNode) -> bool | None:
        source = tree.source(point)
        return True if "make" in source else False if "end" in source else None

    assert flow.available(function, judge).far is at_end
    assert flow.anticipated(function, judge).far is at_start
    assert flow.anticipated(function, lambda _: None, at_end=True).far


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("x = read(y)", "x = read(y)"),
        ("if read(x):\n    y", "read(x)"),
        ("x = y and f(read())", "f(read())"),
        ("with read() as x:\n    y", "read() as x"),
    ],
)
def test_what_evaluates_a_node(program: str, expected: str) -> None:
    tree = SyntaxTree(program)
    assert tree.source(control_flow(tree).point(called(tree, "read"))) == expected
