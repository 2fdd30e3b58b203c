"""The control-flow graph of a function, a lambda or a module.

A node of the graph is a basic block: what runs from its start to its end without a choice. In a block stand
*points*, in the order in which they run. A point is a small statement, or an expression that is evaluated as
a whole; an expression with a choice in it (``and``, ``or``, a conditional expression, a comprehension) or
with a ``yield`` is taken apart as far as the choice goes. Tests become branches as in the jumping code of
Aho, Lam, Sethi and Ullman, "Compilers" (2006), section 6.6: the block behind an outcome has its `Decision`.

Exceptions: within a ``try`` each point may raise, so that from before it there is an edge to the handlers; if
the exception leaves the function, that is no edge. What follows on a ``finally`` depends on how control came
to it: its statements are there twice, once for what runs on, and once for exceptions and jumps together.

The body of a class runs where it stands, and belongs to the graph around it. So does a generator expression,
as if it were gone through at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar, TypeAlias

import libcst as cst

from torchlint.syntax import STATEMENTS, SyntaxTree

Function: TypeAlias = cst.FunctionDef | cst.Lambda
Comprehension: TypeAlias = cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp
StatementLoop: TypeAlias = cst.For | cst.While
Loop: TypeAlias = StatementLoop | Comprehension
Root: TypeAlias = Function | cst.Module
Block: TypeAlias = int
FUNCTIONS = (cst.FunctionDef, cst.Lambda)
COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
LOOPS = (cst.For, cst.While, *COMPREHENSIONS)
_CHOICES = (cst.BooleanOperation, cst.IfExp, cst.Yield, *COMPREHENSIONS)
# The fields of nodes that are not evaluated in the order in which they are written.
_EVALUATED: dict[type, tuple[str, ...]] = {
    cst.Assign: ("value", "targets"),
    cst.AnnAssign: ("annotation", "value", "target"),
    cst.NamedExpr: ("value", "target"),
    cst.FunctionDef: ("decorators", "params", "returns"),
    cst.ClassDef: ("decorators", "bases", "keywords"),
    cst.Lambda: ("params",),
}
_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
"""The last words of the context managers behind which control goes on when their block has raised."""
_ENDING = frozenset(
    {
        *("sys.exit", "os._exit", "os.abort", "exit", "quit", "parser.error", "parser.exit"),
        *(f"pytest.{name}" for name in ("exit", "fail", "skip", "xfail")),
        *("self.fail", "self.skipTest"),
    }
)
"""The calls behind which nothing runs: they end the program, or the test, by an exception."""


def iterable_of(loop: Loop) -> cst.BaseExpression | None:
    """Return what a ``for`` loop or comprehension goes through; None for a ``while`` loop."""
    if isinstance(loop, COMPREHENSIONS):
        return loop.for_in.iter
    return loop.iter if isinstance(loop, cst.For) else None


@dataclass(frozen=True, slots=True)
class Decision:
    """A test and its outcome: what is known at the start of a block. No test is a negation.

    ``construct`` is what makes the test: a statement, a case of a ``match``, an operator or a comprehension.
    """

    test: cst.BaseExpression
    holds: bool
    construct: cst.CSTNode

    @classmethod
    def of(cls, test: cst.BaseExpression, holds: bool, construct: cst.CSTNode) -> Decision:
        """Return a decision on a test, of which ``not`` is taken away."""
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, holds = test.expression, not holds
        return cls(test, holds, construct)


@dataclass(slots=True)
class Graph:
    """The control-flow graph of a function.

    Attributes:
        successors: for each block those that may follow it.
        fallthrough: edges that control never takes, from what leaves a block to the code that is written
            behind: by them unreachable code has a place as well.
        decisions: the decisions by the block at whose start they hold.
        exit: the block of the normal end; ``raised`` that of an exception, or of a generator given up.
        alternatives: the handlers and cases by the block at whose start one of them has been chosen.
        heads: for each loop the block that decides on another iteration; ``latches`` has the block that
            ends each iteration.
        points: the nodes that stand in the graph, in the order of their numbers.
        blocks: the block of each point.
        numbers: the points of a node: more than one in a ``finally``.
    """

    successors: list[list[Block]] = field(default_factory=list)
    fallthrough: list[tuple[Block, Block]] = field(default_factory=list)
    decisions: dict[Block, Decision] = field(default_factory=dict)
    alternatives: dict[Block, cst.CSTNode] = field(default_factory=dict)
    heads: dict[cst.CSTNode, Block] = field(default_factory=dict)
    latches: dict[cst.CSTNode, Block] = field(default_factory=dict)
    points: list[cst.CSTNode] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    numbers: dict[cst.CSTNode, tuple[int, ...]] = field(default_factory=dict)
    entry: ClassVar[Block] = 0
    exit: ClassVar[Block] = 1
    raised: ClassVar[Block] = 2


def choices(tree: SyntaxTree) -> frozenset[cst.CSTNode]:
    """Return the expressions with a choice in them, and what stands around them in the statement."""
    found: set[cst.CSTNode] = set()
    chained = (node for node in tree.nodes(cst.Comparison) if len(node.comparisons) > 1)
    for choice in (*tree.nodes(*_CHOICES), *chained):
        node: cst.CSTNode = choice
        while node not in found:
            found.add(node)
            parent = tree.parents[node]
            if node.__class__ in STATEMENTS or (parent.__class__ is cst.Lambda and parent.body is node):
                break
            node = parent
    return frozenset(found)


def build(tree: SyntaxTree, root: Root, branching: frozenset[cst.CSTNode]) -> Graph:
    """Return the graph of a function, a lambda or a module, of whose expressions some are ``branching``."""
    builder = _Builder(tree, branching)
    graph = builder.graph
    if isinstance(root, cst.Module):
        builder.statements(root.body)
    elif isinstance(root, cst.Lambda):
        builder.value(root.body)
    else:
        builder.suite(root.body)
    builder.edge(graph.exit)
    tree.effort.spend(len(graph.points))
    return graph


class _Leaving(Enum):
    """The ways to leave a block before its end."""

    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()
    RAISE = auto()


@dataclass(slots=True)
class _Frame:
    """A statement around the one at hand, by what it does with those who leave it.

    ``targets`` has the block to which control goes, by how it leaves. ``passed`` is None unless the block is
    that of a ``finally``: then it has all who came, and who go on behind it.
    """

    targets: dict[_Leaving, Block]
    passed: dict[_Leaving, None] | None = None


class _Task(Enum):
    """The steps by which an expression is taken apart."""

    VALUE = auto()
    TEST = auto()
    BRANCH = auto()
    POINT = auto()
    JUMP = auto()
    ENTER = auto()
    GIVE_UP = auto()


_Step: TypeAlias = "tuple[_Task, cst.CSTNode | None, Block, Block]"
_NO_BLOCK = -1


class _Builder:
    """Builds a graph statement by statement; ``current`` is the block in which the next point stands."""

    def __init__(self, tree: SyntaxTree, branching: frozenset[cst.CSTNode]) -> None:
        self.tree, self.branching = tree, branching
        self.graph = Graph()
        self.current = self._block()
        self._block()
        self._block()
        self._frames: list[_Frame] = []
        self._raising: Block | None = None
        """Where an exception goes to that any point may raise; None if that is outside of the function."""
        self._copying = False

    # ------------------------------------------------------------------ blocks and points

    def _block(self, decision: Decision | None = None) -> Block:
        successors = self.graph.successors
        number = len(successors)
        successors.append([])
        if decision is not None:
            self.graph.decisions[number] = decision
        return number

    def edge(self, to: Block) -> None:
        """Let a block follow the current one."""
        self.graph.successors[self.current].append(to)

    def _go(self, to: Block) -> None:
        self.graph.successors[self.current].append(to)
        self.current = to

    def _name(self, node: cst.CSTNode) -> None:
        """Let a node stand where the next point does."""
        numbers, number = self.graph.numbers, len(self.graph.points)
        known = numbers.get(node)
        numbers[node] = (number,) if known is None else (*known, number)

    def _point(self, node: cst.CSTNode) -> None:
        self._may_raise()
        self._name(node)
        self.graph.points.append(node)
        self.graph.blocks.append(self.current)

    def _may_raise(self) -> None:
        if self._raising is not None:
            self.edge(self._raising)
            self._go(self._block())

    # ------------------------------------------------------------------ leaving

    def _push(self, targets: dict[_Leaving, Block], passed: dict[_Leaving, None] | None = None) -> None:
        self._frames.append(_Frame(targets, passed))
        self._raising = targets.get(_Leaving.RAISE, self._raising)

    def _pop(self) -> None:
        self._frames.pop()
        catching = (frame.targets[_Leaving.RAISE] for frame in reversed(self._frames) if _catches(frame))
        self._raising = next(catching, None)

    def _leave(self, leaving: _Leaving) -> None:
        """Lead the current block to where control goes that leaves in this way."""
        for frame in reversed(self._frames):
            target = frame.targets.get(leaving)
            if target is not None:
                self.edge(target)
                if frame.passed is not None:
                    frame.passed[leaving] = None
                return
        self.edge(self.graph.exit if leaving is _Leaving.RETURN else self.graph.raised)

    def _jump(self, leaving: _Leaving) -> None:
        """Leave; what is written behind cannot be reached."""
        self._leave(leaving)
        behind = self._block()
        self.graph.fallthrough.append((self.current, behind))
        self.current = behind

    # ------------------------------------------------------------------ expressions

    def value(self, node: cst.CSTNode) -> None:
        """Evaluate an expression, or what holds expressions."""
        if node in self.branching:
            self._run([(_Task.VALUE, node, _NO_BLOCK, _NO_BLOCK)])
        else:
            self._point(node)

    def _test(self, node: cst.BaseExpression, construct: cst.CSTNode) -> tuple[Block, Block]:
        """Evaluate a test; the blocks behind its outcomes, first that where it holds."""
        true = self._block(Decision.of(node, True, construct))
        false = self._block(Decision.of(node, False, construct))
        self._run([(_Task.TEST, node, true, false)])
        return true, false

    def _run(self, stack: list[_Step]) -> None:
        """Take an expression apart: no recursion, since ``a and b and …`` may be as deep as it is long."""
        while stack:
            task, node, one, other = stack.pop()
            match task:
                case _Task.JUMP:
                    self.edge(one)
                case _Task.ENTER:
                    self.current = one
                case _Task.GIVE_UP:
                    self._leave(_Leaving.RAISE)
                    self._go(self._block())
                case _Task.POINT:
                    assert node is not None
                    self._point(node)
                case _Task.BRANCH:
                    truth = written_truth(node)
                    for block, outcome in ((one, True), (other, False)):
                        if truth is None or truth is outcome:
                            self.edge(block)
                        else:
                            self.graph.fallthrough.append((self.current, block))
                case _Task.TEST:
                    assert node is not None
                    self._test_step(node, one, other, stack)
                case _Task.VALUE:
                    assert node is not None
                    if node in self.branching:
                        stack.extend(reversed(list(self._steps(node))))
                    else:
                        self._point(node)

    def _test_step(self, node: cst.CSTNode, true: Block, false: Block, stack: list[_Step]) -> None:
        match node:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                self._name(node)
                stack.append((_Task.TEST, inner, false, true))
            case cst.BooleanOperation(left=left, operator=operator, right=right):
                self._name(node)
                both = isinstance(operator, cst.And)
                further = self._block(Decision.of(left, both, node))
                stack.append((_Task.TEST, right, true, false))
                stack.append((_Task.ENTER, None, further, _NO_BLOCK))
                done = (further, false) if both else (true, further)
                stack.append((_Task.TEST, left, *done))
            case _:
                stack.append((_Task.BRANCH, node, true, false))
                stack.append((_Task.VALUE, node, _NO_BLOCK, _NO_BLOCK))

    def _steps(self, node: cst.CSTNode) -> Iterable[_Step]:
        """Yield the steps that evaluate an expression with a choice in it."""
        match node:
            case cst.BooleanOperation(left=left, operator=operator, right=right):
                both = isinstance(operator, cst.And)
                further, end = self._block(Decision.of(left, both, node)), self._block()
                yield _Task.TEST, left, *((further, end) if both else (end, further))
                yield _Task.ENTER, None, further, _NO_BLOCK
                yield _Task.VALUE, right, _NO_BLOCK, _NO_BLOCK
                yield _Task.JUMP, None, end, _NO_BLOCK
                yield _Task.ENTER, None, end, _NO_BLOCK
            case cst.IfExp(test=test, body=body, orelse=orelse):
                true, false = (
                    self._block(Decision.of(test, True, node)),
                    self._block(Decision.of(test, False, node)),
                )
                end = self._block()
                yield _Task.TEST, test, true, false
                for block, branch in ((true, body), (false, orelse)):
                    yield _Task.ENTER, None, block, _NO_BLOCK
                    yield _Task.VALUE, branch, _NO_BLOCK, _NO_BLOCK
                    yield _Task.JUMP, None, end, _NO_BLOCK
                yield _Task.ENTER, None, end, _NO_BLOCK
            case cst.Comparison(left=left, comparisons=comparisons):
                end = self._block()
                yield _Task.VALUE, left, _NO_BLOCK, _NO_BLOCK
                yield _Task.VALUE, comparisons[0], _NO_BLOCK, _NO_BLOCK
                for comparison in comparisons[1:]:
                    further = self._block()
                    yield _Task.JUMP, None, further, _NO_BLOCK
                    yield _Task.JUMP, None, end, _NO_BLOCK
                    yield _Task.ENTER, None, further, _NO_BLOCK
                    yield _Task.VALUE, comparison, _NO_BLOCK, _NO_BLOCK
                yield _Task.JUMP, None, end, _NO_BLOCK
                yield _Task.ENTER, None, end, _NO_BLOCK
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                yield from self._comprehension_steps(node)
            case _:
                for part in self._evaluated(node):
                    yield _Task.VALUE, part, _NO_BLOCK, _NO_BLOCK
        yield _Task.POINT, node, _NO_BLOCK, _NO_BLOCK
        if isinstance(node, cst.Yield):
            # Whoever asks for the values may stop, and then the generator ends here.
            yield _Task.GIVE_UP, None, _NO_BLOCK, _NO_BLOCK

    def _comprehension_steps(
        self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp
    ) -> Iterable[_Step]:
        loop: cst.CompFor | None = node.for_in
        outer: Block | None = None
        done = self._block()
        while loop is not None:
            yield _Task.VALUE, loop.iter, _NO_BLOCK, _NO_BLOCK
            head, body = self._block(), self._block()
            yield _Task.JUMP, None, head, _NO_BLOCK
            yield _Task.ENTER, None, head, _NO_BLOCK
            yield _Task.JUMP, None, body, _NO_BLOCK
            yield _Task.JUMP, None, done if outer is None else outer, _NO_BLOCK
            yield _Task.ENTER, None, body, _NO_BLOCK
            yield _Task.VALUE, loop.target, _NO_BLOCK, _NO_BLOCK
            for condition in loop.ifs:
                met = self._block(Decision.of(condition.test, True, node))
                yield _Task.TEST, condition.test, met, head
                yield _Task.ENTER, None, met, _NO_BLOCK
            outer, loop = head, loop.inner_for_in
        assert outer is not None
        results = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)
        for result in results:
            yield _Task.VALUE, result, _NO_BLOCK, _NO_BLOCK
        yield _Task.JUMP, None, outer, _NO_BLOCK
        yield _Task.ENTER, None, done, _NO_BLOCK

    def _evaluated(self, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        """Return the parts of a node in the order in which they are evaluated."""
        fields = _EVALUATED.get(node.__class__)
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            fields = ("value", "target")
        if fields is None:
            return self.tree.parts(node)
        parts: list[cst.CSTNode] = []
        for name in fields:
            value = getattr(node, name)
            parts.extend(value if isinstance(value, Sequence) else (value,) if value is not None else ())
        return parts

    # ------------------------------------------------------------------ statements

    def suite(self, suite: cst.BaseSuite) -> None:
        """Run the statements of a block."""
        self._name(suite)
        self.statements(suite.body)

    def statements(self, body: Sequence[cst.CSTNode]) -> None:
        """Run statements one after the other."""
        for statement in body:
            if statement.__class__ is cst.SimpleStatementLine:
                self._name(statement)
                for small in statement.body:
                    _STATEMENT.get(small.__class__, _Builder._small)(self, small)
            else:
                _STATEMENT.get(statement.__class__, _Builder._small)(self, statement)

    def _small(self, node: cst.CSTNode) -> None:
        self.value(node)
        leaving = _Leaving.RAISE if _ends(node) else _LEAVING.get(node.__class__)
        if leaving is not None:
            self._jump(leaving)

    def _assert(self, node: cst.Assert) -> None:
        self._name(node)
        true, self.current = self._test(node.test, node)
        if node.msg is not None:
            self.value(node.msg)
        self._leave(_Leaving.RAISE)
        self.current = true

    def _if(self, node: cst.If) -> None:
        end = self._block()
        branch: cst.If | cst.Else | None = node
        while isinstance(branch, cst.If):
            self._name(branch)
            self.current, otherwise = self._test(branch.test, branch)
            self.suite(branch.body)
            self.edge(end)
            self.current = otherwise
            branch = branch.orelse
        self._otherwise(branch)
        self._go(end)

    def _otherwise(self, node: cst.Else | None) -> None:
        if node is not None:
            self._name(node)
            self.suite(node.body)

    def _while(self, node: cst.While) -> None:
        self._point(node)
        head, latch, end = self._block(), self._block(), self._block()
        self._go(head)
        self.current, otherwise = self._test(node.test, node)
        self._repeat(node, latch, end, head)
        self.current = otherwise
        self._otherwise(node.orelse)
        self._go(end)

    def _for(self, node: cst.For) -> None:
        if node.iter in self.branching:
            self.value(node.iter)
        self._point(node)
        head, latch, end, body = self._block(), self._block(), self._block(), self._block()
        self._go(head)
        self.edge(body)
        otherwise = self._block()
        self.edge(otherwise)
        self.current = body
        self.value(node.target)
        self._repeat(node, latch, end, head)
        self.current = otherwise
        self._otherwise(node.orelse)
        self._go(end)

    def _repeat(self, node: cst.For | cst.While, latch: Block, end: Block, head: Block) -> None:
        """Run the body of a loop."""
        self.graph.heads.setdefault(node, head)
        self.graph.latches.setdefault(node, latch)
        self._push({_Leaving.BREAK: end, _Leaving.CONTINUE: latch})
        self.suite(node.body)
        self._pop()
        self._go(latch)
        self.edge(head)

    def _with(self, node: cst.With) -> None:
        self._name(node)
        for item in node.items:
            self.value(item)
        if any(_suppresses(item.item) for item in node.items):
            end = self._block()
            self._push({_Leaving.RAISE: end})
            self.suite(node.body)
            self._pop()
            self._go(end)
        else:
            self.suite(node.body)
        # What is left may raise as well.
        self._may_raise()

    def _match(self, node: cst.Match) -> None:
        if node.subject in self.branching:
            self.value(node.subject)
        self._point(node)
        end = self._block()
        for case in node.cases:
            taken, missed = self._block(), self._block()
            self.graph.alternatives[taken] = case
            self._point(case)
            self.edge(taken)
            certain = _matches_all(case.pattern)
            if certain:
                self.graph.fallthrough.append((self.current, missed))
            else:
                self.edge(missed)
            self.current = taken
            for bound in self._captured(case.pattern):
                self._point(bound)
            if case.guard is not None:
                self.current, refused = self._test(case.guard, case)
                self.graph.successors[refused].append(missed)
            self.suite(case.body)
            self.edge(end)
            self.current = missed
        self._go(end)

    def _captured(self, pattern: cst.MatchPattern) -> Iterator[cst.Name]:
        """Yield the names that a pattern binds when it has matched."""
        for node in self.tree.descendants(pattern):
            match node:
                case (
                    cst.MatchAs(name=cst.Name() as name)
                    | cst.MatchStar(name=cst.Name() as name)
                    | cst.MatchMapping(rest=cst.Name() as name)
                ):
                    yield name

    def _try(self, node: cst.Try | cst.TryStar) -> None:
        self._name(node)
        passed: dict[_Leaving, None] = {}
        cleaning = self._block() if node.finalbody is not None else _NO_BLOCK
        if node.finalbody is not None:
            passed[_Leaving.RAISE] = None
            self._push(dict.fromkeys(_Leaving, cleaning), passed)
        end = self._block()
        if node.handlers:
            raised = self._block()
            self._push({_Leaving.RAISE: raised})
            self.suite(node.body)
            self._pop()
            self._otherwise(node.orelse)
            self.edge(end)
            self._handlers(node.handlers, raised, end)
        else:
            self.suite(node.body)
            self._otherwise(node.orelse)
            self.edge(end)
        self.current = end
        if node.finalbody is not None:
            self._pop()
            self._finally(node.finalbody, cleaning, passed)

    def _handlers(
        self, handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler], raised: Block, end: Block
    ) -> None:
        for handler in handlers:
            caught = self._block()
            self.current = raised
            self.edge(caught)
            self.graph.alternatives[caught] = handler
            self.current = caught
            self._point(handler)
            self.suite(handler.body)
            self.edge(end)
        if not any(_catches_all(handler) for handler in handlers):
            self.current = raised
            self._leave(_Leaving.RAISE)

    def _finally(self, node: cst.Finally, cleaning: Block, passed: dict[_Leaving, None]) -> None:
        """Run the last block of a ``try``, for those who come to its end and for those who leave it.

        Within a copy there is only one block for both: otherwise each level would double what is in it.
        """
        if self._copying:
            self._go(cleaning)
            self._clean_up(node)
            for leaving in passed:
                self._leave(leaving)
            self._go(self._block())
            return
        self._clean_up(node)
        end, self.current, self._copying = self.current, cleaning, True
        self._clean_up(node)
        for leaving in passed:
            self._leave(leaving)
        self.current, self._copying = end, False

    def _clean_up(self, node: cst.Finally) -> None:
        self._name(node)
        self.suite(node.body)

    def _class(self, node: cst.ClassDef) -> None:
        self.value(node)
        self.suite(node.body)


_STATEMENT: dict[type, Callable[[_Builder, cst.CSTNode], None]] = {
    cst.If: _Builder._if,  # type: ignore[dict-item]
    cst.For: _Builder._for,  # type: ignore[dict-item]
    cst.While: _Builder._while,  # type: ignore[dict-item]
    cst.With: _Builder._with,  # type: ignore[dict-item]
    cst.Try: _Builder._try,  # type: ignore[dict-item]
    cst.TryStar: _Builder._try,  # type: ignore[dict-item]
    cst.Match: _Builder._match,  # type: ignore[dict-item]
    cst.ClassDef: _Builder._class,  # type: ignore[dict-item]
    cst.Assert: _Builder._assert,  # type: ignore[dict-item]
}
_LEAVING: dict[type, _Leaving] = {
    cst.Break: _Leaving.BREAK,
    cst.Continue: _Leaving.CONTINUE,
    cst.Return: _Leaving.RETURN,
    cst.Raise: _Leaving.RAISE,
}


def _catches(frame: _Frame) -> bool:
    return _Leaving.RAISE in frame.targets


def written_truth(node: cst.CSTNode | None) -> bool | None:
    """Return the outcome of a test that is written out; None for any other."""
    match node:
        case cst.Name(value="True" | "__debug__"):  # which is false under ``python -O`` only
            return True
        case cst.Name(value="False" | "None"):
            return False
        case cst.Integer():
            return node.evaluated_value != 0
        case _:
            return None


def _ends(statement: cst.CSTNode) -> bool:
    """Return whether a statement is a call that ends the program, or the test that is running."""
    if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call):
        return False
    match statement.value.func:
        case cst.Name(value=name):
            return name in _ENDING
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)):
            return f"{owner}.{name}" in _ENDING
        case _:
            return False


def _suppresses(manager: cst.BaseExpression) -> bool:
    """Return whether control may go on behind a ``with`` whose block has raised."""
    if not isinstance(manager, cst.Call):
        return False
    named = manager.func.attr if isinstance(manager.func, cst.Attribute) else manager.func
    return isinstance(named, cst.Name) and named.value in _SUPPRESSING


def _matches_all(pattern: cst.MatchPattern) -> bool:
    return isinstance(pattern, cst.MatchAs) and pattern.pattern is None


def _catches_all(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    match handler.type:
        case None | cst.Name(value="BaseException"):
            return True
        case _:
            return False
