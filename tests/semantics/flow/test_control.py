"""What the graphs say, held to what the interpreter does: random programs, run in every way they can go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import libcst as cst
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.semantics.flow.control import ControlFlow
from torchlint.syntax import SyntaxTree

_MOST_REPEATED = 3
_MOST_RUNS = 1_000


class Abandoned(BaseException):
    """A run has come to one call as often as is tried."""


class ExpectedError(Exception):
    """What handlers catch."""


class OtherError(Exception):
    """What they may miss."""


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


class Value:
    """What a mark gives: something to which anything may be done."""

    def __call__(self, *_: object) -> Value:
        return self

    def __lt__(self, _: object) -> bool:
        raise NotImplementedError


@dataclass
class Run:
    """One run of a program, which takes the choices of a script and then the first there is.

    ``before`` has for each call that was begun what had run then, and ``known`` how the tests had come out.
    """

    script: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    begun: dict[int, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    outcomes: dict[int, bool] = field(default_factory=dict)
    before: dict[int, set[int]] = field(default_factory=dict)
    known: dict[int, set[tuple[int, bool]]] = field(default_factory=dict)
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
        failing = self.choose(3)
        if failing:
            raise (ExpectedError, OtherError)[failing - 1]

    def mark(self, number: int) -> Any:
        self.begin(number)
        self.done.add(number)
        run = self

        class Compared(Value):
            def __lt__(self, _: object) -> bool:
                return bool(run.choose(2))

        return Compared()

    def failure(self, number: int) -> Exception:
        self.begin(number)
        self.done.add(number)
        return (ExpectedError, OtherError)[self.choose(2)]()

    def test(self, number: int) -> bool:
        self.begin(number)
        outcome = self.outcomes[number] = bool(self.choose(2))
        self.done.add(number)
        return outcome

    def subject(self, number: int) -> bool:
        self.begin(number)
        self.done.add(number)
        return bool(self.choose(2))

    def items(self, number: int) -> Iterator[int]:
        self.begin(number)
        self.done.add(number)

        def following() -> Iterator[int]:
            while self.choose(2):
                self.count(number)
                yield 0

        return following()

    def manager(self, number: int) -> Any:
        self.begin(number)
        self.done.add(number)
        return nullcontext()

    def __call__(self, code: Any) -> None:
        scope: dict[str, Any] = {"suppress": suppress, "ExpectedError": ExpectedError}
        names = ("mark", "failure", "test", "subject", "items", "manager")
        scope |= {name: getattr(self, name) for name in names}
        exec(code, scope)
        with suppress(Abandoned, ExpectedError, OtherError, AssertionError, StopIteration):
            generator = scope["program"]()
            if hasattr(generator, "__next__"):
                stopping = 0
                while True:
                    if stopping:
                        generator.throw((ExpectedError, OtherError)[stopping - 1]())
                    else:
                        next(generator)
                    stopping = self.choose(3)


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


def told(program: str) -> tuple[dict[int, set[int]], dict[int, set[tuple[int, bool]]]]:
    """What the graph says has always run, and how tests have come out, when each call begins."""
    tree = SyntaxTree(program)
    flow = ControlFlow(tree)
    calls: dict[int, cst.Call] = {}
    for call in tree.nodes(cst.Call):
        match call.args:
            case [cst.Arg(value=cst.Integer(value=number))]:
                calls[int(number)] = call
    before = {
        number: {other for other, node in calls.items() if flow.certainly_before(node, call)}
        for number, call in calls.items()
    }
    known = {
        number: {atom for decision in flow.decisions(call) for atom in atoms(decision.test, decision.holds)}
        for number, call in calls.items()
    }
    return before, known


@settings(max_examples=40, deadline=None, report_multiple_bugs=False)
@given(programs(with_finally=True))
def test_what_is_said_is_true(program: str) -> None:
    before, known, _ = seen(program)
    said_before, said_known = told(program)
    for number in before:
        assert said_before[number] <= before[number], (program, number)
        assert said_known[number] <= known[number], (program, number)


@settings(max_examples=80, deadline=None, report_multiple_bugs=False)
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
