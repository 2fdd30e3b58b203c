"""Which code runs in only a few of the iterations of the loop around it.

People keep costly lines out of the hot path in many shapes: ``if step % 100 == 0``, a flag computed from
a modulo, a counter reset by hand, a clock, the first or the last batch, an early ``continue``, a branch
that ends the run, a debug switch. Each is a *restriction*; what it restricts (every iteration of
anything, the loops of the function, or one loop) decides whether it counts for the loop in question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.attributes import part_of
from torchlint.semantics.fixpoint import Answers, Fixpoint
from torchlint.semantics.flow.graph import COMPREHENSIONS, FUNCTIONS, LOOPS, Comprehension, Function, Loop
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import Binding, BindingKind, Names, dotted_text
from torchlint.semantics.spellings import last_name
from torchlint.syntax import SyntaxTree

_DEPTH = 6
"""How many definitions are followed from one flag to the next."""

_MAX_DEPTH = 500
"""How deep one condition may lead into others before all of them are solved as if they were a circle."""

_FEW = 100
"""``i < N`` picks out a few iterations up to this N."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """Code is reached in few iterations.

    ``loop``: of this loop (and of the loops in it, taken over all its iterations). None: of any loop or
    function around it. ``returns``: it runs at most once a call, in whatever loop of the function.
    ``host``: it runs only where there is no accelerator to wait for.
    """

    loop: Loop | None = None
    returns: bool = False
    host: bool = False


_ALWAYS = Restriction()
_ONCE_A_CALL = Restriction(returns=True)
_ON_HOST = Restriction(host=True)


_Question: TypeAlias = tuple[str, cst.CSTNode]
_NOTHING_SAID: Answers[tuple[Restriction, ...]] = Answers(nothing=(), unknown=())

_BLOCKS: frozenset[type] = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite})
_FUNCTIONS: frozenset[type] = frozenset(FUNCTIONS)
_RESTRICTING: frozenset[type] = frozenset(
    {
        cst.If,
        cst.IfExp,
        cst.BooleanOperation,
        cst.Assert,
        cst.ExceptHandler,
        cst.ExceptStarHandler,
        cst.MatchCase,
        cst.Module,
        *_BLOCKS,
        *COMPREHENSIONS,
    }
)


_BOUNDS = _RESTRICTING | _FUNCTIONS
# What stands in its like again and again, to any depth.
_REPEATED: frozenset[type] = frozenset({cst.If, cst.BooleanOperation})


@dataclass(slots=True)
class _Guards:
    """The conditions among the statements of a block, and what the first ``known`` of them say.

    ``found`` has each restriction at the first place that says it, the number of its statement.
    """

    statements: list[cst.If]
    known: int = 0
    found: list[tuple[int, Restriction]] = field(default_factory=list)


class Throttling:
    """The restrictions of one file, worked out edge by edge of the syntax tree and remembered.

    ``callee`` gives the function of this file that a call runs, if any.
    """

    def __init__(self, tree: SyntaxTree, names: Names, callee: Callable[[cst.Call], Function | None]) -> None:
        self.tree = tree
        self.names = names
        self._callee = callee
        self._said: Fixpoint[_Question, tuple[Restriction, ...]] = Fixpoint(
            lambda question: (tree.order[question[1]], question[0]), depth=_MAX_DEPTH
        )
        self._chains: dict[cst.CSTNode, list[tuple[cst.CSTNode, Restriction]]] = {}
        self._exits: dict[cst.CSTNode, str | None] = {}
        self._guards: dict[cst.CSTNode, _Guards] = {}
        self._left: dict[cst.CSTNode, int] = {}
        self._clocks: dict[cst.CSTNode, bool] = {}
        self._renewals: dict[cst.CSTNode, dict[str, int]] = {}

    def between(self, node: cst.CSTNode, boundary: cst.CSTNode) -> bool:
        """Whether ``node`` runs in few of the iterations of the loop, or calls of the function, around it.

        ``boundary`` is that loop or function, or the module itself.
        """
        order = self.tree.order
        return any(
            order[holder] >= order[boundary] and self._applies(restriction, boundary)
            for holder, restriction in self._chain(node)
        )

    def on_host(self, node: cst.CSTNode) -> bool:
        """Whether ``node`` stands in a branch of its function for machines without an accelerator."""
        return any(restriction.host for _, restriction in self._chain(node))

    def rarely_true(self, test: cst.BaseExpression) -> bool:
        """Whether a condition holds in few iterations."""
        return self._rare(test, True) is not None

    def _chain(self, node: cst.CSTNode) -> list[tuple[cst.CSTNode, Restriction]]:
        """The restrictions from ``node`` up to its function, each with the node that imposes it."""
        # What the parts of one expression or one chain of ``elif`` have in common is remembered at them.
        trail: list[tuple[cst.CSTNode, tuple[Restriction, ...]]] = []
        found: list[tuple[cst.CSTNode, Restriction]] = []
        for child, parent in self.tree.edges(node, _BOUNDS):
            kind = parent.__class__
            if kind in _FUNCTIONS:
                if getattr(parent, "body", None) is child:
                    break
                continue
            trail.append((parent, self._edge(child)))
            if kind in _BLOCKS:
                found = self._chain_of_block(parent)
                break
            if kind in _REPEATED and (known := self._chains.get(parent)) is not None:
                found = known
                break
        for parent, restrictions in reversed(trail):
            if parent.__class__ in _REPEATED and not self._said.busy:
                self._chains[parent] = found
            if restrictions:
                # The same restriction further out says nothing more.
                outer = [item for item in found if item[1] not in restrictions]
                found = [*((parent, restriction) for restriction in restrictions), *outer]
        return found

    def _chain_of_block(self, block: cst.CSTNode) -> list[tuple[cst.CSTNode, Restriction]]:
        found = self._chains.get(block)
        if found is None:
            parent = self.tree.parents.get(block)
            if parent is None or parent.__class__ in _FUNCTIONS:
                found = []
            else:
                found = [(parent, restriction) for restriction in self._edge(block)]
                found += self._chain(parent)
            if not self._said.busy:
                self._chains[block] = found
        return found

    def _applies(self, restriction: Restriction, boundary: cst.CSTNode) -> bool:
        if restriction.returns:
            return isinstance(boundary, LOOPS)
        if restriction.loop is None:
            return True
        return self.tree.contains(restriction.loop, boundary)

    # ------------------------------------------------------------------ edges

    def _edge(self, child: cst.CSTNode) -> tuple[Restriction, ...]:
        """What the parent of a node says of it.

        Flags may depend on one another: nothing is restricted by what only its own condition restricts.
        """
        question = "edge", child
        known = self._said.settled.get(question)
        return self._said.ask(question, self._find_edge, _NOTHING_SAID) if known is None else known

    def _find_edge(self, question: _Question) -> tuple[Restriction, ...]:
        _, child = question
        # The same restriction twice says nothing more.
        return tuple(dict.fromkeys(self._restrictions(child, self.tree.parents[child])))

    def _restrictions(self, child: cst.CSTNode, parent: cst.CSTNode) -> Iterator[Restriction]:
        rarely: Restriction | None = None
        match parent:
            case cst.If() if child is parent.body:
                rarely = self._rare(parent.test, True) or self._reset(parent) or self._filled(parent)
            case cst.If() if child is parent.orelse:
                rarely = self._rare(parent.test, False)
            case cst.IfExp() if child is not parent.test:
                rarely = self._rare(parent.test, child is parent.body)
            case cst.BooleanOperation() if child is parent.right:
                rarely = self._rare(parent.left, isinstance(parent.operator, cst.And))
            case cst.ExceptHandler() | cst.ExceptStarHandler() if child is parent.body:
                rarely = _ALWAYS
            case cst.Assert() if child is parent.msg:
                rarely = _ALWAYS
            case cst.MatchCase() if child is parent.body:
                rarely = self._matched(parent)
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                if child is not parent.for_in:
                    yield from self._filters(parent)
            case cst.IndentedBlock() | cst.SimpleStatementSuite() | cst.Module():
                yield from self._block(child, parent)
            case _:
                pass
        if rarely is not None:
            yield rarely

    def _filters(self, comprehension: Comprehension) -> Iterator[Restriction]:
        clause: cst.CompFor | None = comprehension.for_in
        while clause is not None:
            for condition in clause.ifs:
                rarely = self._rare(condition.test, True)
                if rarely is not None:
                    yield rarely
            clause = clause.inner_for_in

    def _matched(self, case: cst.MatchCase) -> Restriction | None:
        if case.guard is not None:
            rarely = self._rare(case.guard, True)
            if rarely is not None:
                return rarely
        subject = self.tree.parents[case]
        if isinstance(subject, cst.Match) and isinstance(case.pattern, cst.MatchValue):
            dividend = self._dividend(subject.subject)
            if dividend is not None:
                return self._tied(dividend)
        return None

    def _block(
        self, child: cst.CSTNode, block: cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module
    ) -> Iterator[Restriction]:
        yield from self._guarded(child, block)
        ending = self._exit(block)
        if ending is None or self.tree.order[child] <= self._last_left(block, ending):
            return
        if ending == "raise":
            yield _ALWAYS
        elif ending == "return":
            yield _ONCE_A_CALL
        elif ending == "break":
            loop = self._statement_loop(block)
            if loop is not None:
                yield Restriction(loop)

    def _guarded(
        self, child: cst.CSTNode, block: cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module
    ) -> list[Restriction]:
        """What the statements above ``child`` in a block say of it."""
        guards = self._guards.get(block)
        if guards is None:
            guards = self._guards[block] = _Guards([s for s in block.body if isinstance(s, cst.If)])
        order = self.tree.order
        found = [restriction for place, restriction in guards.found if place < order[child]]
        for number in range(guards.known, len(guards.statements)):
            statement = guards.statements[number]
            if order[statement] >= order[child]:
                break
            question = "guard", statement
            said = self._said.ask(question, self._find_guard, _NOTHING_SAID)
            found += said
            # What was said while an edge was still open may be said otherwise later.
            if number == guards.known and question in self._said.settled:
                guards.known += 1
                known = {restriction for _, restriction in guards.found}
                guards.found += [(order[statement], one) for one in said if one not in known]
        return found

    def _last_left(
        self, block: cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module, ending: str
    ) -> int:
        """The last place at which a statement may leave a block before it comes to its end; -1 if none does.

        ``if fine: return x`` above ``raise``, ``if not found: continue`` above ``return``. A statement in
        front of that place is not sure to lead to the end of the block.
        """
        found = self._left.get(block)
        if found is None:
            exits: tuple[type[cst.CSTNode], ...] = (cst.Continue,)
            if ending == "raise":
                exits = (cst.Return, cst.Yield, cst.Continue, cst.Break)
            order, end, found = self.tree.order, self.tree.order[block.body[-1]], -1
            for kind in exits:
                for node in reversed(self.tree.within(block, self.tree.nodes(kind))):
                    if order[node] < end and self._leaves(node, block):
                        found = max(found, self._position(node, block))
                        break
            self._left[block] = found
        return found

    def _position(self, node: cst.CSTNode, block: cst.CSTNode) -> int:
        """The number of the statement of a block that holds ``node``."""
        child = node
        for parent in self.tree.ancestors(node):
            if parent is block:
                break
            child = parent
        return self.tree.order[child]

    def _leaves(self, node: cst.CSTNode, block: cst.CSTNode) -> bool:
        """Whether a statement inside of ``block`` leaves it, and not only a loop or a function in it."""
        stops: tuple[type, ...] = (cst.FunctionDef, cst.Lambda)
        if isinstance(node, (cst.Continue, cst.Break)):
            stops = (*stops, cst.For, cst.While)
        for parent in self.tree.ancestors(node):
            if parent is block:
                return True
            if isinstance(parent, stops):
                return False
        return False

    def _find_guard(self, question: _Question) -> tuple[Restriction, ...]:
        _, statement = question
        assert isinstance(statement, cst.If)
        said = dict.fromkeys(self._guard(statement))
        if self._skips_until_reset(statement):
            said.setdefault(_ALWAYS)
        return tuple(said)

    def _guard(self, statement: cst.If) -> Iterator[Restriction]:
        """What an ``if …: continue`` says about the statements after it."""
        branch: cst.If | cst.Else | None = statement
        while isinstance(branch, cst.If):
            rarely: Restriction | None = None
            if self._exit(branch.body) is not None:
                rarely = self._rare(branch.test, False)
            elif isinstance(branch.orelse, cst.Else) and self._exit(branch.orelse.body) is not None:
                rarely = self._rare(branch.test, True)
            if rarely is not None:
                yield rarely
            branch = branch.orelse

    def _skips_until_reset(self, statement: cst.If) -> bool:
        """``if waited < 100: waited += 1; continue`` with ``waited = 0`` among the statements behind it."""
        if self._exit(statement.body) not in ("continue", "return"):
            return False
        compared = self._compared_names(statement.test)
        counted = {
            dotted_text(part.target)
            for line in statement.body.body
            if isinstance(line, cst.SimpleStatementLine)
            for part in line.body
            if isinstance(part, cst.AugAssign)
        }
        if not compared & counted:
            return False
        block = self.tree.parents[statement]
        assert isinstance(block, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module))
        renewals = self._renewals.get(block)
        if renewals is None:
            renewals = self._renewals[block] = dict(self._renewed(block.body))
        return any(renewals.get(name, -1) > self.tree.order[statement] for name in compared)

    def _statement_loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The loop that a ``break`` in this block ends."""
        child = node
        for parent in self.tree.ancestors(node):
            if isinstance(parent, (cst.For, cst.While)) and child is parent.body:
                return parent
            if isinstance(parent, FUNCTIONS) and child is parent.body:
                return None
            child = parent
        return None

    def _exit(self, block: cst.CSTNode) -> str | None:
        """How control certainly leaves at the end of this block: raise, return, break or continue.

        The weakest of them where branches differ; ``raise`` stands for ending the program, too.
        """
        if block not in self._exits:
            self._exits[block] = self._exit_of(block)
        return self._exits[block]

    def _exit_of(self, block: cst.CSTNode) -> str | None:
        body = getattr(block, "body", ())
        if not isinstance(body, Sequence) or not body:
            return None
        last: cst.CSTNode = body[-1]
        if isinstance(last, cst.SimpleStatementLine):
            last = last.body[-1]
        match last:
            case cst.Raise():
                return "raise"
            case cst.Return():
                return "return"
            case cst.Break():
                return "break"
            case cst.Continue():
                return "continue"
            case cst.Expr(value=cst.Call() as call):
                return "raise" if self.names.qualified(call.func) in _ENDS_PROGRAM else None
            case cst.With():
                return self._exit(last.body)
            case cst.If(orelse=orelse) if orelse is not None:
                other = orelse if isinstance(orelse, cst.If) else orelse.body
                endings = [
                    self._exit(last.body),
                    self._exit_of_if(other) if isinstance(other, cst.If) else self._exit(other),
                ]
                return _weakest(endings)
            case _:
                return None

    def _exit_of_if(self, statement: cst.If) -> str | None:
        endings = [self._exit(statement.body)]
        if isinstance(statement.orelse, cst.If):
            endings.append(self._exit_of_if(statement.orelse))
        else:
            endings.append(self._exit(statement.orelse.body) if statement.orelse is not None else None)
        return _weakest(endings)

    # ------------------------------------------------------------------ conditions

    def _rare(self, test: cst.CSTNode, truth: bool, depth: int = 0) -> Restriction | None:
        """What is restricted to few iterations by ``test`` being true (or false); None if nothing."""
        if depth > _DEPTH:
            return None
        found = self._said.ask(
            (f"{truth} {depth}", test),
            lambda _: () if (rare := self._find_rare(test, truth, depth)) is None else (rare,),
            _NOTHING_SAID,
        )
        return found[0] if found else None

    def _find_rare(self, test: cst.CSTNode, truth: bool, depth: int) -> Restriction | None:
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self._rare(test.expression, not truth, depth + 1)
            case cst.BooleanOperation():
                one = self._rare(test.left, truth, depth + 1)
                if isinstance(test.operator, cst.And) is truth:
                    return one or self._rare(test.right, truth, depth + 1)
                if one is None:
                    return None
                other = self._rare(test.right, truth, depth + 1)
                return None if other is None else one if one.loop is not None else other
            case cst.NamedExpr():
                return self._rare(test.value, truth, depth + 1)
            case cst.Comparison() if len(test.comparisons) == 1:
                return self._compared(test, truth)
            case cst.BinaryOperation():
                dividend = None if truth else self._dividend(test)
                return self._tied(dividend) if dividend is not None else None
            case cst.Call():
                return self._called(test, truth, depth)
            case cst.Name() | cst.Attribute() | cst.Subscript():
                return self._flag(test, truth, depth)
            case _:
                return None

    def _compared(self, test: cst.Comparison, truth: bool) -> Restriction | None:
        left, operator, right = test.left, test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(left, cst.NamedExpr):
            left = left.value
        equal = isinstance(operator, (cst.Equal, cst.Is))
        unequal = isinstance(operator, (cst.NotEqual, cst.IsNot))
        if unequal and truth and dotted_text(left) is not None and dotted_text(left) == dotted_text(right):
            return _ALWAYS  # only NaN differs from itself
        less: bool | None = None
        if isinstance(operator, (cst.LessThan, cst.LessThanEqual)):
            less = truth
        elif isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual)):
            less = not truth
        if isinstance(right, cst.BinaryOperation) and self._dividend(right) is not None:
            left, right = right, left
            less = None if less is None else not less
        dividend = self._dividend(left)
        if dividend is not None:
            if less or (equal and truth) or (unequal and not truth):
                return self._tied(dividend)
            return None
        if less and last_name(left) in ("random", "rand", "uniform") and _is_rare_chance(right):
            return _ALWAYS
        if self._is_clock(left) or self._is_clock(right):
            return _ALWAYS if truth else None
        if isinstance(operator, (cst.In, cst.NotIn)):
            if truth is isinstance(operator, cst.In) and _are_odd_devices(left, right):
                return _ALWAYS
            picked = truth is isinstance(operator, cst.In) and self._counts(left)
            return self._tied(left) if picked and _is_collection(right) else None
        if (equal and truth) or (unequal and not truth):
            if _is_odd_device(left, right) or _is_odd_device(right, left):
                return _ALWAYS
            if _is_debug_text(right) or _is_debug_text(left):
                return _ALWAYS
            for counter, other in ((left, right), (right, left)):
                if self._counts(counter) and not isinstance(other, cst.SimpleString):
                    return self._tied(counter)
        if less is not None:
            counter, bound = (left, right) if less else (right, left)
            if self._counts(counter) and _is_few(bound):
                return self._tied(counter)
            # ``i >= len(loader) - 1``: the last one.
            counter, bound = (right, left) if less else (left, right)
            last = isinstance(bound, cst.BinaryOperation) and isinstance(bound.operator, cst.Subtract)
            if last and self._counts(counter):
                return self._tied(counter)
        if truth and (self._is_best(left) or self._is_best(right)) and less is not None:
            return _ALWAYS
        if truth and not equal:
            for side, other in ((left, right), (right, left)):
                least = other.evaluated_value if isinstance(other, cst.Integer) else 0
                if has(last_name(side), *_SWITCHES) and not self._is_on_by_default(side, least):
                    return _ALWAYS
        return None

    def _called(self, call: cst.Call, truth: bool, depth: int) -> Restriction | None:
        name = last_name(call.func)
        if name is None:
            return None
        if name in ("any", "all", "bool", "item") and not _tests_finiteness(name):
            inner = call.args[0].value if call.args else None
            if isinstance(call.func, cst.Attribute) and inner is None:
                inner = call.func.value
            return self._rare(inner, truth, depth + 1) if inner is not None else None
        if truth and name in _BAD_NUMBERS:
            return _ALWAYS
        if not truth and name == "isfinite":
            return _ALWAYS
        if truth and has(name, Role.TRACING):
            return _ALWAYS
        if not truth and self.names.qualified(call.func) in _HAS_ACCELERATOR:
            return _ON_HOST
        if not truth and name == "hasattr" and self.names.qualified(call.args[0].value) in _NAMESPACES:
            return _ALWAYS  # what takes the place of a function that the installed release lacks
        if not truth and name in ("mod", "fmod", "remainder") and len(call.args) == 2:
            return self._tied(call.args[0].value)
        if truth and (has(name, *_SWITCHES) or _MOMENTS.search(name)):
            return _ALWAYS
        if truth and name in ("get", "getenv", "isEnabledFor") and call.args:
            asked = call.args[0].value
            if _is_debug_text(asked) or has(last_name(asked), *_SWITCHES):
                return _ALWAYS
        function = self._callee(call)
        if isinstance(function, cst.FunctionDef) and self._answers_rarely(function, truth, depth):
            return self._tied(call)
        return None

    def _answers_rarely(self, function: cst.FunctionDef, truth: bool, depth: int) -> bool:
        """Whether a function of plain ``return`` lines, with or without conditions, rarely says ``truth``."""
        answered = False
        for line in function.body.body:
            returned: cst.CSTNode | None = None
            condition: cst.BaseExpression | None = None
            if isinstance(line, cst.If) and line.orelse is None and len(line.body.body) == 1:
                condition = line.test
                inner = line.body.body[0]
                returned = inner.body[0] if isinstance(inner, cst.SimpleStatementLine) else inner
            elif isinstance(line, cst.SimpleStatementLine):
                returned = line.body[0]
                if isinstance(returned, (cst.Expr, cst.Assign, cst.AnnAssign)):
                    continue
            if not isinstance(returned, cst.Return) or returned.value is None:
                return False
            constant = _constant(returned.value)
            if constant is not None and constant is not truth:
                continue
            answered = True
            rarely = condition is not None and self._rare(condition, True, depth + 1) is not None
            if not rarely and (constant is not None or self._rare(returned.value, truth, depth + 1) is None):
                return False
        return answered

    def _flag(
        self, flag: cst.Name | cst.Attribute | cst.Subscript, truth: bool, depth: int
    ) -> Restriction | None:
        if isinstance(flag, cst.Name):
            bindings = self.names.bindings(flag)
            if bindings and all(
                b.kind in (BindingKind.ASSIGN, BindingKind.WALRUS) and not b.path for b in bindings
            ):
                return self._computed(bindings, truth, depth) or self._switch(flag, truth)
            if truth and flag.value in _OPTIONS and all(map(_is_off_by_default, bindings)) and bindings:
                return _ALWAYS
        elif isinstance(flag, cst.Attribute):
            asked = self._properties.get(flag.attr.value)
            if asked is not None and self._answers_rarely(asked, truth, depth):
                return _ALWAYS
        return self._switch(flag, truth)

    @cached_property
    def _properties(self) -> dict[str, cst.FunctionDef]:
        """The properties of the file's classes by their names, without those of which there are several."""
        found: dict[str, cst.FunctionDef] = {}
        several: set[str] = set()
        for function in self.tree.nodes(cst.FunctionDef):
            name = function.name.value
            if any(last_name(decorator.decorator) == "property" for decorator in function.decorators):
                if name in found:
                    several.add(name)
                found[name] = function
        return {name: function for name, function in found.items() if name not in several}

    def _switch(self, flag: cst.CSTNode, truth: bool) -> Restriction | None:
        if isinstance(flag, cst.Attribute) and flag.attr.value == ("is_cpu" if truth else "is_cuda"):
            return _ON_HOST
        if _matches(_NO_ACCELERATOR if truth else _ON_ACCELERATOR, flag):
            return _ON_HOST
        if truth and has(last_name(flag), *_SWITCHES) and self._is_on_by_default(flag, 0):
            return None
        return (
            _ALWAYS
            if truth and (has(last_name(flag), *_SWITCHES) or _MOMENTS.search(last_name(flag) or ""))
            else None
        )

    def _is_on_by_default(self, flag: cst.CSTNode, bound: int) -> bool:
        """``verbose=1``: a parameter that is above ``bound`` unless callers turn it off."""
        if not isinstance(flag, cst.Name):
            return False
        bindings = self.names.bindings(flag)
        return bool(bindings) and all(
            isinstance(b.node, cst.Param) and _number(b.node.default) > bound for b in bindings
        )

    def _computed(self, bindings: Iterable[Binding], truth: bool, depth: int) -> Restriction | None:
        """As ``_rare`` for a flag, from all the values that it can have."""
        found: Restriction | None = None
        for binding in bindings:
            assert binding.value is not None
            constant = _constant(binding.value)
            if constant is not None:
                if bool(constant) is not truth:
                    continue
                # ``log = True`` below ``if step % 100 == 0``.
                rarely = self._restricted(binding.node)
            else:
                rarely = self._rare(binding.value, truth, depth + 1)
            if rarely is None:
                return None
            found = rarely if found is None or rarely.loop is not None else found
        return found

    def _restricted(self, node: cst.CSTNode) -> Restriction | None:
        child = node
        for parent in self.tree.ancestors(node):
            if isinstance(parent, FUNCTIONS) or isinstance(child, (cst.For, cst.While)):
                return None
            for restriction in self._edge(child):
                if not restriction.returns:
                    return restriction
            child = parent
        return None

    def _reset(self, branch: cst.If) -> Restriction | None:
        """A counter or clock compared in the test and set anew in the branch: every so often."""
        compared = self._compared_names(branch.test)
        renews = compared and any(name in compared for name, _ in self._renewed(branch.body.body))
        return _ALWAYS if renews else None

    def _compared_names(self, test: cst.CSTNode) -> set[str]:
        """The variables that the comparisons of a test depend on."""
        spelt = (
            dotted_text(node)
            for comparison in self._comparisons(test)
            for side in (comparison.left, comparison.comparisons[0].comparator)
            for node in self.tree.descendants(side)
            if isinstance(node, (cst.Name, cst.Attribute))
        )
        return {name for name in spelt if name is not None}

    def _renewed(self, body: Iterable[cst.CSTNode]) -> Iterator[tuple[str, int]]:
        """The counters, clocks and lists that some statements set back, and where, in source order."""
        for line in body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                target: cst.CSTNode | None = None
                anew = False
                match statement:
                    case cst.Assign(targets=[cst.AssignTarget(target=assigned)], value=fresh):
                        target = assigned
                        anew = _is_zero(fresh) or self._is_clock(fresh) or ends(last_name(fresh), Role.CLOCK)
                    case cst.AugAssign():
                        target = statement.target
                        anew = isinstance(statement.operator, cst.SubtractAssign)
                    case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)))):
                        target, anew = owner, name in _RESETTING
                if target is not None and (anew or has(last_name(target), *_RECORDS)):
                    spelt = dotted_text(target)
                    if spelt is not None:
                        yield spelt, self.tree.order[statement]

    def _filled(self, branch: cst.If) -> Restriction | None:
        """A branch that fills what it tests to be missing, a cache or a lazy attribute: once."""
        missing = set(self._missing(branch.test))
        if not missing:
            return self._filled_later(branch)
        for node in self.tree.descendants(branch.body):
            if isinstance(node, cst.Call):
                started = _appended_to(node)
                if started is not None and started.value in missing:
                    rarely = self._first_round(started, branch)
                    if rarely is not None and not self._emptied(started, rarely):
                        return rarely
            if isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
                target: cst.CSTNode = node.target
                stored = isinstance(target, cst.Subscript)
                if isinstance(target, cst.Subscript):
                    target = target.value
                if stored and self._outlives(target) and self._looked_up_in(target, missing, branch):
                    return _ALWAYS
                if dotted_text(target) not in missing:
                    continue
                if self._outlives(target):
                    return _ALWAYS
                if isinstance(target, cst.Name) and not stored:
                    rarely = self._first_round(target, branch)
                    if rarely is not None:
                        return rarely
        return None

    def _filled_later(self, branch: cst.If) -> Restriction | None:
        """``first = not hasattr(self, "mean")``, ``if first: …``, and then ``self.mean = …``: once."""
        binding = self.names.assignment(branch.test) if isinstance(branch.test, cst.Name) else None
        if binding is None or binding.value is None:
            return None
        missing = set(self._missing(binding.value))
        function = self.tree.enclosing(branch, cst.FunctionDef)
        if not missing or function is None:
            return None
        for node in self.tree.descendants(function.body):
            if isinstance(node, cst.AssignTarget) and dotted_text(node.target) in missing:
                return _ALWAYS if self._outlives(node.target) else None
        return None

    def _looked_up_in(self, store: cst.CSTNode, missing: set[str], branch: cst.If) -> bool:
        """``x = cache.get(key)``, ``if x is None``, then ``cache[key] = …``: what is missing is cached."""
        for name in missing:
            for binding in self.names.bindings_at(name, branch):
                match binding.value:
                    case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="get"))):
                        if dotted_text(owner) == dotted_text(store):
                            return True
        return False

    def _first_round(self, target: cst.Name, branch: cst.If) -> Restriction | None:
        """``if x is None: x = …`` in a loop that starts with ``x = None`` before it: in its first round."""
        found: Restriction | None = None
        empty = [
            b.node
            for b in self.names.bindings_at(target.value, branch)
            if b.value is not None and b.kind is BindingKind.ASSIGN and _is_empty(part_of(b.value, b.path))
        ]
        for parent in self.tree.ancestors(branch):
            if isinstance(parent, FUNCTIONS):
                break
            if isinstance(parent, (cst.For, cst.While)):
                if any(self.tree.contains(parent, node) for node in empty):
                    break
                found = Restriction(parent)
        return found if empty else None

    def _emptied(self, name: cst.Name, rarely: Restriction) -> bool:
        """Whether the loop whose first round fills a list takes something out of it."""
        if rarely.loop is None:
            return False
        for node in self.tree.descendants(rarely.loop):
            if isinstance(node, cst.Del):
                return True
            if isinstance(node, cst.Attribute) and node.attr.value in _EMPTYING:
                if dotted_text(node.value) == name.value:
                    return True
        return False

    def _missing(self, test: cst.CSTNode) -> Iterator[str]:
        """What variables a test finds empty: ``x is None``, ``not x``, ``k not in x``, ``len(x) == 0``."""
        waiting = [test]
        while waiting:
            part = waiting.pop()
            if isinstance(part, cst.BooleanOperation):
                waiting += (part.right, part.left)
                continue
            spelt = _missing_part(part) or self._found_missing(part)
            if spelt is not None:
                yield spelt

    def _found_missing(self, test: cst.CSTNode) -> str | None:
        """``not exists(x)``, where ``exists`` is a function of the file that says whether ``x`` is None."""
        match test:
            case cst.UnaryOperation(
                operator=cst.Not(), expression=cst.Call(args=[cst.Arg(value=asked, keyword=None)]) as call
            ):
                function = self._callee(call)
                answer = _only_return(function) if isinstance(function, cst.FunctionDef) else None
                match answer:
                    case cst.Comparison(
                        left=cst.Name(),
                        comparisons=[cst.ComparisonTarget(cst.IsNot(), cst.Name(value="None"))],
                    ):
                        return dotted_text(asked)
        return None

    def _outlives(self, target: cst.CSTNode) -> bool:
        """Whether a variable keeps its value from one call of the function to the next."""
        if not isinstance(target, cst.Name):
            return isinstance(target, cst.Attribute)
        scope = self.names.lookup(target.value, target)
        return scope is self.names.module_scope

    def _comparisons(self, test: cst.CSTNode) -> Iterator[cst.Comparison]:
        """The simple comparisons that must all be true for ``test`` to be true."""
        waiting = [test]
        while waiting:
            part = waiting.pop()
            if isinstance(part, cst.Comparison) and len(part.comparisons) == 1:
                yield part
            elif isinstance(part, cst.BooleanOperation) and isinstance(part.operator, cst.And):
                waiting += (part.right, part.left)

    # ------------------------------------------------------------------ parts of conditions

    def _dividend(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """What is counted off in ``step % k`` or ``step & mask``; None if it is no such thing."""
        if isinstance(node, cst.Subscript):
            # divmod(step, k)[1]
            inner = node.value
            if isinstance(inner, cst.Call) and last_name(inner.func) == "divmod" and inner.args:
                return inner.args[0].value
            return None
        if isinstance(node, cst.Call) and last_name(node.func) in ("mod", "fmod", "remainder"):
            return node.args[0].value if len(node.args) == 2 else None
        if not isinstance(node, cst.BinaryOperation):
            return None
        if isinstance(node.operator, cst.BitAnd):
            return node.left if self._counts(node.left) and isinstance(node.right, cst.Integer) else None
        if not isinstance(node.operator, cst.Modulo):
            return None
        left, right = node.left, node.right
        if isinstance(left, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
            return None
        if isinstance(right, cst.Integer) and right.evaluated_value == 1:
            return None
        # Padding to a multiple looks the same; a size is the same in every iteration.
        if any(ends(word, Role.SIZE) for word in self._words(left)) and not self._is_growing(left):
            return None
        return left

    def _is_growing(self, node: cst.CSTNode) -> bool:
        """``len(losses)``, where the function appends to ``losses``."""
        match node:
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=counted)]):
                grown = dotted_text(counted)
            case _:
                return False
        function = self.tree.enclosing(node, cst.FunctionDef)
        return grown is not None and any(
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "append"
            and dotted_text(call.func.value) == grown
            for call in self.tree.descendants(function or self.tree.root)
        )

    def _counts(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether this expression goes up (or down) with the iterations."""
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.Modulo):
                return False
            return self._counts(node.left, depth + 1) or self._counts(node.right, depth + 1)
        if isinstance(node, cst.NamedExpr):
            return self._counts(node.value, depth + 1)
        word = last_name(node)
        if word is None or isinstance(node, cst.Call):
            return False
        if ends(word, *_COUNTERS) and not ends(word, Role.SIZE):
            return True
        return isinstance(node, cst.Name) and self._is_counter(node)

    def _is_counter(self, name: cst.Name) -> bool:
        for binding in self.names.bindings(name):
            if binding.kind is BindingKind.AUGMENT and _is_few(binding.value):
                return True
            if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
                called = binding.value.func if isinstance(binding.value, cst.Call) else None
                word = last_name(called) if called is not None else None
                if word == "range" or (word == "enumerate" and binding.path == (0,)):
                    return True
        return False

    def _words(self, node: cst.CSTNode) -> Iterator[str]:
        for part in self.tree.descendants(node):
            if isinstance(part, cst.Name):
                yield part.value

    def _tied(self, counter: cst.CSTNode) -> Restriction:
        """The restriction by a counter: of the loop that moves it on, or of everything."""
        for part in self.tree.descendants(counter):
            if isinstance(part, cst.Name):
                for binding in self.names.bindings(part) if self.names.is_read(part) else ():
                    loop = self._loop_of(binding)
                    if loop is not None and self.tree.contains(loop, counter):
                        return Restriction(loop)
        return _ALWAYS

    def _loop_of(self, binding: Binding) -> Loop | None:
        """The loop whose target this binding is."""
        if binding.kind is BindingKind.LOOP:
            return self.tree.enclosing(binding.node, cst.For)
        if binding.kind is BindingKind.COMPREHENSION:
            for parent in self.tree.ancestors(binding.node):
                if isinstance(parent, COMPREHENSIONS):
                    return parent
        return None

    def _is_clock(self, node: cst.CSTNode, depth: int = 0) -> bool:
        if depth > _DEPTH:
            return False
        if isinstance(node, cst.BinaryOperation):
            return self._is_clock(node.left, depth + 1) or self._is_clock(node.right, depth + 1)
        if isinstance(node, cst.Call):
            qualified = self.names.qualified(node.func) or ""
            if qualified.startswith(("time.", "datetime.")):
                return True
            return isinstance(node.func, cst.Attribute) and self._is_clock(node.func.value, depth + 1)
        if isinstance(node, cst.Attribute):
            return self._is_clock(node.value, depth + 1)
        if isinstance(node, cst.Name):
            return any(
                isinstance(b.value, (cst.Call, cst.BinaryOperation))
                and not b.path
                and b.kind is BindingKind.ASSIGN
                and self._reads_clock(b.value)
                for b in self.names.bindings(node)
            )
        return False

    def _reads_clock(self, node: cst.CSTNode) -> bool:
        """As ``_is_clock``, looking only at what this expression itself calls."""
        found = self._clocks.get(node)
        if found is None:
            found = self._clocks[node] = any(
                (self.names.qualified(call.func) or "").startswith(("time.", "datetime."))
                for call in self.tree.within(node, self.tree.nodes(cst.Call))
            )
        return found

    def _is_best(self, node: cst.CSTNode) -> bool:
        return any(
            has(word, Role.BEST)
            or (begins(word, Role.EXTREME) and ends(word, Role.LOSS, Role.SCORE, Role.METRIC))
            for word in self._words(node)
        )


# ---------------------------------------------------------------------- spellings

_COUNTERS = (Role.ITERATION, Role.INDEX, Role.COUNT, Role.BATCH, Role.EPOCH, Role.EPISODE)
_SWITCHES = (Role.DEBUGGING, Role.PROFILING, Role.TRACING)
_MOMENTS = re.compile(
    r"^(?:_?should_|time_to_|is_time_to_|_?(?:is|at)_(?:log|print|plot|save|eval|last|first|final|best)"
    r"|do_(?:log|print|plot|print|vis)|log_now|sanity_check)"
    r"|(?:^|_)(?:this_step|this_iter|this_batch|log_step|last_batch|last_step|last_iter|first_batch"
    r"|first_step|first_iter|final_batch|final_step|is_best|improved|early_stop|diverged"
    r"|(?:has|is|found)_(?:nan|inf))$"
)
_OPTIONS = frozenset({"log", "print_log", "plot", "visualize", "visualise", "vis", "show", "print_stats"})
_RECORDS = (Role.BEST, Role.EXTREME, Role.NEIGHBOUR)
_EMPTYING = frozenset({"clear", "pop", "popleft", "remove"})
_RESETTING = frozenset({"clear", "reset", "restart", "start"})
_BAD_NUMBERS = frozenset({"isnan", "isinf", "is_nan", "has_nan", "isneginf", "isposinf"})
_ENDS_PROGRAM = frozenset(
    {"sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit", "pytest.fail"}
)
# Where there is no accelerator nothing waits for one.
_ON_ACCELERATOR = re.compile(
    r"^_?(?:(?:use|uses|using|on|is|has|have|with|want|enable)_(?:the_)?(?:cuda|gpu)s?|cuda|(?:cuda|gpu)_available)$",
    re.IGNORECASE,
)
_NO_ACCELERATOR = re.compile(
    r"^_?(?:(?:no|disable|without)_(?:cuda|gpu)|(?:use|on|is)_cpu|cpu_only)$", re.IGNORECASE
)
_HAS_ACCELERATOR = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})
_NAMESPACES = frozenset({"torch", "torch.cuda", "torch.nn", "torch.nn.functional", "torch.Tensor"})
_STRENGTH = ("raise", "return", "break", "continue")


def _tests_finiteness(name: str) -> bool:
    return name in _BAD_NUMBERS or name == "isfinite"


def _weakest(endings: Iterable[str | None]) -> str | None:
    found = list(endings)
    if None in found:
        return None
    return max((ending for ending in found if ending is not None), key=_STRENGTH.index)


def _matches(pattern: re.Pattern[str], node: cst.CSTNode) -> bool:
    word = last_name(node)
    return word is not None and pattern.search(word) is not None


# Code for one accelerator that lacks something; what runs on all of them asks no such question.
_ODD_DEVICES = frozenset({"cpu", "mps", "xpu", "npu", "hpu", "xla", "meta"})


def _is_odd_device(device: cst.CSTNode, text: cst.CSTNode) -> bool:
    """Whether ``device`` compared with ``text`` asks for the CPU, or for an accelerator with gaps."""
    if not isinstance(text, cst.SimpleString) or text.evaluated_value not in _ODD_DEVICES:
        return False
    word = last_name(device)
    return word is not None and re.search(r"(?:^|_)(?:type|device|dev)(?:_type)?$|^str$", word) is not None


def _are_odd_devices(device: cst.CSTNode, texts: cst.CSTNode) -> bool:
    """As ``_is_odd_device`` for ``device in {…}``."""
    if not isinstance(texts, (cst.Set, cst.Tuple, cst.List)) or not texts.elements:
        return False
    return all(_is_odd_device(device, element.value) for element in texts.elements)


def _missing_part(test: cst.CSTNode) -> str | None:
    match test:
        case cst.UnaryOperation(
            operator=cst.Not(), expression=cst.Call(func=cst.Name(value="hasattr")) as call
        ):
            if len(call.args) == 2 and isinstance(call.args[1].value, cst.SimpleString):
                owner, attribute = dotted_text(call.args[0].value), call.args[1].value.evaluated_value
                if owner is not None and isinstance(attribute, str):
                    return f"{owner}.{attribute}"
            return None
        case cst.UnaryOperation(operator=cst.Not()):
            return dotted_text(test.expression)
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotIn(), comparator=container)]):
            return dotted_text(container)
        case cst.Comparison(
            comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))]
        ):
            return dotted_text(test.left)
        case cst.Comparison(
            left=cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=collection)]),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer(value="0"))],
        ):
            return dotted_text(collection)
        case _:
            return None


def _appended_to(call: cst.Call) -> cst.Name | None:
    """The variable whose list a call adds to."""
    match call.func:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value="append" | "extend")):
            return owner
        case _:
            return None


def _is_empty(value: cst.CSTNode | None) -> bool:
    """Whether a value is None, False, 0 or a list without elements."""
    if isinstance(value, cst.List):
        return not value.elements
    return value is not None and _constant(value) is False


def _is_debug_text(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleString):
        return False
    text = node.evaluated_value
    return isinstance(text, str) and has(text, *_SWITCHES)


def _is_few(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Integer) and node.evaluated_value <= _FEW


def _is_rare_chance(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Float) and node.evaluated_value <= 0.1


def _is_zero(node: cst.CSTNode) -> bool:
    match node:
        case cst.Integer() | cst.Float():
            return True
        case cst.List() | cst.Dict() | cst.Tuple():
            return not node.elements
        case _:
            return False


def _constant(node: cst.CSTNode) -> bool | None:
    """The truth of a literal; None if it is none."""
    match node:
        case cst.Name(value="True"):
            return True
        case cst.Name(value="False" | "None"):
            return False
        case cst.Integer():
            return node.evaluated_value != 0
        case _:
            return None


def _number(node: cst.BaseExpression | None) -> int:
    """The number, or the truth as a number, of a literal; 0 of anything else."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    return int(node is not None and _constant(node) is True)


def _is_collection(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Set, cst.Tuple, cst.List, cst.Name, cst.Attribute)):
        return True
    return isinstance(node, cst.Call) and last_name(node.func) in (
        "set",
        "list",
        "tuple",
        "frozenset",
        "range",
    )


def _is_off_by_default(binding: Binding) -> bool:
    return (
        binding.kind is BindingKind.PARAMETER
        and isinstance(binding.node, cst.Param)
        and binding.node.default is not None
        and _constant(binding.node.default) is False
    )


def _only_return(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """What a function of one ``return`` line answers."""
    lines = [
        line
        for line in function.body.body
        if not (
            isinstance(line, cst.SimpleStatementLine)
            and isinstance(line.body[0], cst.Expr)
            and isinstance(line.body[0].value, cst.SimpleString)
        )
    ]
    if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine):
        statement = lines[0].body[0]
        if isinstance(statement, cst.Return):
            return statement.value
    return None
