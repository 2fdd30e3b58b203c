"""Which code runs in only a few of the iterations of the loop around it.

People keep costly lines out of the hot path in many shapes: ``if step % 100 == 0``, a flag computed from
a modulo, a counter reset by hand, a clock, the first or the last batch, an early ``continue``, a branch
that ends the run, a debug switch. The graph tells which tests came out how before a place is reached. What
such a test says of it is a *restriction*: whether it counts for a loop depends on what it restricts, every
iteration of anything, or one loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, TypeGuard

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes, part_of
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import LOOPS, Decision, Loop, written_truth
from torchlint.semantics.flow.guards import Guard, concluded, implied, met
from torchlint.semantics.identifiers import outcome_by_default, setting_default
from torchlint.semantics.lexicon import Role, asks, asks_for_accelerator, begins, ends, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind, dotted_text
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.serving import is_made_each_step
from torchlint.semantics.sources import Path, Source, Through, every, onward, returns, some, traced
from torchlint.semantics.spellings import is_none, last_name, start_of
from torchlint.semantics.values import Device, Kind
from torchlint.syntax import alike

_FEW = 100
"""``i < N`` picks out a few iterations up to this N."""

_SHORT = 3
"""What runs in every N-th iteration runs in few of them from this N on."""

_LEARNING = 16
"""Where nothing else in a loop trains, what trains in every N-th iteration up to this N is what it is for."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """Code is reached in few iterations.

    ``loop``: of this loop (and of the loops in it, taken over all its iterations). None: of any loop or
    function around it. ``host``: it runs only where there is no accelerator to wait for. ``debugs``: it runs
    only where somebody asks for more than a run does by default, to find a mistake.
    """

    loop: Loop | None = None
    host: bool = False
    debugs: bool = False


_ALWAYS = Restriction()
_ON_HOST = Restriction(host=True)
_DEBUGGING = Restriction(debugs=True)

# Restrictions from the innermost on, each with what imposes it: a statement, a handler, an operator.
_Chain: TypeAlias = "tuple[tuple[cst.CSTNode, Restriction], ...]"


class Throttling(Part):
    """The restrictions of one file."""

    def between(self, node: cst.CSTNode, boundary: cst.CSTNode) -> bool:
        """Return whether ``node`` runs in few of the iterations of the loop, or calls of the function,
        around it.

        ``boundary`` is that loop or function, or the module itself.
        """
        flow = self.module.flow
        if flow.runs_once(node, boundary) if isinstance(boundary, LOOPS) else flow.ends_badly(node):
            return True
        return any(self.imposed(node, boundary))

    def imposed(self, node: cst.CSTNode, boundary: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield what restricts ``node`` to few iterations of a loop, or calls of a function, around it."""
        tree = self.tree
        return (
            holder
            for holder, restriction in self._chain(node)
            if (restriction.loop is None or tree.contains(restriction.loop, boundary))
            and (holder is boundary or tree.contains(boundary, holder))
        )

    def is_of_open_period(self, test: cst.BaseExpression) -> bool:
        """Return whether a test holds every so many iterations, of a number unknown: ``step % n == 0``."""
        periods = self._periods_in(test)
        return bool(periods) and not any(isinstance(period, int) for period in periods)

    def is_of_learning(self, test: cst.BaseExpression) -> bool:
        """Return whether a test holds as often as an agent learns from what it does: ``step % 4 == 0``."""
        periods = self._periods_in(test)
        return bool(periods) and all(isinstance(period, int) and period <= _LEARNING for period in periods)

    def _periods_in(self, test: cst.BaseExpression) -> list[object]:
        compared = [*self.tree.descendants(test)]
        counters = {spelt for part in compared if (spelt := dotted_text(part)) is not None}
        # ``self.step = (self.step + 1) % 4``: the counter that is compared starts over.
        around = self.module.function(test) or self.tree.root
        compared += (
            assign.value
            for assign in self.tree.nodes_within(around, cst.Assign)
            if dotted_text(assign.targets[0].target) in counters
        )
        return [
            self._period(part.right)
            for part in compared
            if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Modulo)
        ]

    def _period(self, period: cst.BaseExpression) -> object:
        """Return a period that is known: a constant, or a long one by default; else what is known of it."""
        constant = self.module.inference.parameters.constant_in_sight(period)
        if isinstance(constant, int):
            return constant
        usual = [
            each.evaluated_value if isinstance(each, cst.Integer) else 0
            for each in _usual_periods(self.module, period)
        ]
        return min(usual) if usual and min(usual) > _LEARNING else constant

    def on_host(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` stands in a branch of its function for machines without an accelerator."""
        return any(restriction.host for _, restriction in self._chain(node))

    def debugs(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` stands in a branch of its function for debugging."""
        return any(restriction.debugs for _, restriction in self._chain(node))

    def rarely_true(self, test: cst.BaseExpression) -> bool:
        """Return whether a condition holds in few iterations."""
        return self._rare(test, True) is not None

    def is_periodic(self, test: cst.BaseExpression, holds: bool) -> bool:
        """Return whether a test comes out so in every n-th iteration, however small n is."""
        return concluded(self.module, test, holds, self._counted_off) is True

    def period(self, node: cst.CSTNode, boundary: cst.CSTNode | None) -> int:
        """Return in every how many iterations, or calls of its function, a node is reached by its counters.

        Only what is decided within ``boundary`` counts, if that is given.
        """
        nearest = next(iter(self.module.flow.decisions(node)), None)
        return 1 if nearest is None else self._period_behind(nearest, boundary)

    @remembered
    def _period_behind(self, decision: Decision, boundary: cst.CSTNode | None) -> int:
        """Return the same for what a decision lets run, on top of those before it."""
        period = self.period(decision.test, boundary)
        within = boundary is None or self.tree.contains(boundary, decision.construct)
        if not within or not self.is_periodic(decision.test, decision.holds):
            return period
        return max((period, *(each for each in self._periods_in(decision.test) if isinstance(each, int))))

    # ------------------------------------------------------------------ places

    def _chain(self, node: cst.CSTNode) -> _Chain:
        """Return the restrictions of a node in its function."""
        flow, tree = self.module.flow, self.tree
        chosen = [each for each in flow.alternatives(node) if tree.contains(each, node)]
        imposed = [(each, rarely) for each in chosen if (rarely := self._chosen(each)) is not None]
        kept = self._keeps(flow.root(node))
        if kept is not None and tree.order[node] > tree.order[kept] and not tree.contains(kept, node):
            imposed.append((kept, _ALWAYS))
        for decision in flow.decisions(node):
            # What ended a loop says nothing of the code behind it.
            loops = flow.statement_loops(decision.construct)
            if not loops or tree.contains(loops[0], node):
                return (*imposed, *self._behind(decision))
        return tuple(imposed)

    def _chosen(self, alternative: cst.CSTNode) -> Restriction | None:
        """Return the restriction of a handler, or of a case of a ``match``."""
        if not isinstance(alternative, cst.MatchCase):
            return _ALWAYS
        match = self.tree.parent(alternative)
        if isinstance(match, cst.Match) and isinstance(alternative.pattern, cst.MatchValue):
            dividend = self._dividend(match.subject)
            return self._tied(dividend) if dividend is not None else None
        return None

    @remembered
    def _behind(self, decision: Decision) -> _Chain:
        """Return the restrictions of what runs only if a test has come out so."""
        construct, test = decision.construct, decision.test
        while _continues(test, construct):
            # What is in front of the last operand is among the restrictions of that.
            test = test.right
        outer = self._chain(test)
        # How often a loop goes round is no choice in it, and what is asserted is always so.
        if isinstance(construct, (cst.While, cst.Assert)) or self._is_demanded(decision):
            return outer
        rarely = self._rare(test, decision.holds)
        if rarely is None and isinstance(construct, cst.If):
            rarely = self._done_with(construct, decision)
        if rarely is None:
            return outer
        # The same restriction further out says nothing more.
        return ((construct, rarely), *(item for item in outer if item[1] != rarely))

    def _is_demanded(self, decision: Decision) -> bool:
        """Return whether the other outcome ends in an error: ``if rows != limit: raise ValueError``."""
        branch = decision.construct
        if not isinstance(branch, cst.If) or decision == Decision.of(branch.test, True, branch):
            return False
        return self.module.flow.ends_badly(branch.body.body[0])

    def _done_with(self, branch: cst.If, decision: Decision) -> Restriction | None:
        """Return the restriction of a branch that itself puts an end to what it tests for."""
        taken = decision == Decision.of(branch.test, True, branch)
        if self._renews(branch, decision, taken):
            return _ALWAYS
        if taken:
            once = self._fits(branch, decision) or self._spends(branch)
            return _ALWAYS if once else self._filled(branch)
        return _ALWAYS if self._settles(branch, decision) or self._filled_behind(branch) else None

    # ------------------------------------------------------------------ conditions

    @solved(None)
    def _rare(self, test: cst.BaseExpression, holds: bool) -> Restriction | None:
        """Return what is restricted to few iterations by ``test`` being true (or false); None if nothing.

        Flags may depend on one another: nothing is restricted by what only its own condition restricts.
        """
        return concluded(self.module, test, holds, self._judged, _narrower)

    def _judged(self, guard: Guard) -> Restriction | None:
        test, truth = guard.test, guard.holds
        match test:
            case cst.Comparison(comparisons=[compared]):
                return self._compared(test.left, compared, truth)
            case cst.BinaryOperation():
                dividend = None if truth else self._dividend(test)
                return self._tied(dividend) if dividend is not None else None
            case cst.Call():
                return self._called(test, truth)
            case cst.Name() | cst.Attribute() | cst.Subscript():
                return self._flag(test, truth)
            case _:
                return None

    def _compared(
        self, left: cst.BaseExpression, target: cst.ComparisonTarget, truth: bool
    ) -> Restriction | None:
        """Return what is restricted by a comparison that holds, or does not."""
        operator, right = target.operator, target.comparator
        if isinstance(left, cst.NamedExpr):
            left = left.value
        if isinstance(operator, (cst.In, cst.NotIn)):
            return self._member(left, right) if isinstance(operator, cst.In) is truth else None
        if isinstance(operator, (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)):
            ascending = isinstance(operator, (cst.LessThan, cst.LessThanEqual)) is truth
            return self._ordered(*((left, right) if ascending else (right, left)), truth)
        return self._equated(left, right, isinstance(operator, (cst.Equal, cst.Is)) is truth, truth)

    def _member(self, left: cst.BaseExpression, right: cst.BaseExpression) -> Restriction | None:
        """Return what is restricted where one value is among others: ``step in (1, 10, 100)``."""
        if (odd := _odd_devices(left, right)) is not None:
            return odd
        if self._asks_variable_for_debugging(left, right):
            return _DEBUGGING
        scheduled = _is_collection(right) and not self._is_refilled(right)
        return self._tied(left) if scheduled and self._counts(left) else None

    def _is_refilled(self, collection: cst.BaseExpression) -> bool:
        """Return whether a loop puts something into a collection that it asks, or takes it out: what it has
        seen, or has still to see, is no schedule of steps.
        """
        name, loops = dotted_text(collection), self.module.flow.loops(collection)
        return name is not None and any(
            isinstance(call.func, cst.Attribute)
            and dotted_text(call.func.value) == name
            and any(self.tree.contains(loop, call) for loop in loops)
            for method in _REFILLING
            for call in self.tree.calls_by_name.get(method, ())
        )

    def _equated(
        self, left: cst.BaseExpression, right: cst.BaseExpression, equal: bool, truth: bool
    ) -> Restriction | None:
        """Return what is restricted where two values are equal, or where they differ.

        ``truth``: whether the comparison holds as it is written.
        """
        if not equal and dotted_text(left) is not None and dotted_text(left) == dotted_text(right):
            return _ALWAYS  # only NaN differs from itself
        for side in (left, right):
            if (dividend := self._dividend(side)) is not None:
                return self._tied(dividend) if equal else None
        if equal and (_is_debug_text(left, right) or self._asks_variable_for_debugging(left, right)):
            return _DEBUGGING
        if not equal and is_none(right) and has(last_name(left), *_SWITCHES):
            return _DEBUGGING  # ``if self.profiler is not None``
        if (odd := self._odd_device(left, right, equal)) is not None:
            return odd
        if _some_clock(self.module, left, right):
            return _ALWAYS if truth else None
        if equal:
            counter = self._picked_counter(left, right)
            return self._tied(counter) if counter is not None else None
        return _DEBUGGING if truth and self._is_loud(left, right) else None

    def _ordered(self, less: cst.BaseExpression, more: cst.BaseExpression, truth: bool) -> Restriction | None:
        """Return what is restricted where one value is below another: ``step % 100 < 2``, ``step < 3``.

        ``truth``: whether the comparison holds as it is written.
        """
        if (dividend := self._dividend(less)) is not None:
            return self._tied(dividend)
        if self._dividend(more) is not None:
            return None
        if last_name(less) in _CHANCES and _is_rare_chance(more):
            return _ALWAYS
        if _some_clock(self.module, less, more):
            return _ALWAYS if truth else None
        if self._is_past_mark(more, less):
            return _ALWAYS
        if _is_few(more) and self._counts(less):
            return self._tied(less)
        if _is_last(less) and self._counts(more):
            return self._tied(more)
        if truth and (self._is_best(less) or self._is_best(more)):
            return _ALWAYS
        return _DEBUGGING if truth and self._is_loud(less, more) else None

    def _odd_device(
        self, left: cst.BaseExpression, right: cst.BaseExpression, same: bool
    ) -> Restriction | None:
        """Return what runs where a comparison of two expressions finds the CPU, or an accelerator with gaps.

        ``same``: where it finds them equal.
        """
        if same:
            places = (cst.Name, cst.Attribute, cst.Call)
            hosts = [self.module.value(side) for side in (left, right) if isinstance(side, places)]
            if any(value.kind is Kind.DEVICE and value.device is Device.CPU for value in hosts):
                return _ON_HOST
            return _odd_device(left, right)
        return _ON_HOST if _is_named(left, right, ("cuda",)) else None

    def _picked_counter(
        self, left: cst.BaseExpression, right: cst.BaseExpression
    ) -> cst.BaseExpression | None:
        """Return the counter of which an equation picks out a few values: ``step == 0``, ``step == last``."""
        for one, other in ((left, right), (right, left)):
            if not isinstance(other, cst.SimpleString) and not is_none(other) and self._counts(one):
                return None if self._is_followed(one, other) else one
        return None

    def _is_followed(self, counter: cst.BaseExpression, mark: cst.BaseExpression) -> bool:
        """Return whether it is ``step - 1 == mark``, where the loop sets ``mark = step``: always true."""
        around = next(iter(self.module.flow.statement_loops(counter)), None)
        marks = self._marks(around) if around is not None else {}
        followed = marks.get(dotted_text(mark) or "", frozenset())
        return not followed.isdisjoint(self._variables(counter))

    def _is_past_mark(self, ahead: cst.BaseExpression, behind: cst.BaseExpression) -> bool:
        """Return whether it is ``seen >= mark + interval``, where the loop sets ``mark = seen``: whether so
        much has gone by.

        Without a loop, it is an attribute that keeps the mark until the next call of the function.
        """
        around = next(iter(self.module.flow.statement_loops(ahead)), None)
        function = self.module.function(ahead)
        if around is not None:
            marks = self._marks(around)
        elif function is not None:
            kept = self._marks(function).items()
            marks = {mark: counters for mark, counters in kept if mark.startswith("self.")}
        else:
            return False
        compared = {spelt for side in (ahead, behind) for spelt in self._variables(side)}
        counters = set(self._variables(ahead))
        return any(mark in compared and not counters.isdisjoint(marks[mark] - {mark}) for mark in marks)

    @remembered
    def _marks(self, loop: cst.CSTNode) -> dict[str, frozenset[str]]:
        """Return the variables that a loop sets to others as they are, with those others."""
        found: dict[str, frozenset[str]] = {}
        for assign in self.tree.nodes_within(loop, cst.Assign):
            mark, counter = dotted_text(assign.targets[0].target), dotted_text(assign.value)
            if mark is not None and counter is not None and len(assign.targets) == 1:
                found[mark] = found.get(mark, frozenset()) | {counter}
        return found

    def _variables(self, node: cst.CSTNode) -> Iterator[str]:
        """Return the variables and attributes in an expression, as they are spelt."""
        parts = self.tree.descendants(node)
        spelt = (dotted_text(part) for part in parts if isinstance(part, (cst.Name, cst.Attribute)))
        return (text for text in spelt if text is not None)

    def _is_loud(self, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Return whether a comparison asks for more reports than a run makes by default: ``verbose > 1``."""
        return any(
            has(last_name(level), *_SWITCHES)
            and not self._is_on_by_default(
                level, least.evaluated_value if isinstance(least, cst.Integer) else 0
            )
            for level, least in ((left, right), (right, left))
        )

    def _called(self, call: cst.Call, truth: bool) -> Restriction | None:
        name, qualified = last_name(call), self.module.qualified(call.func)
        given = call.args[0].value if call.args else None
        if name in ("any", "all", "item"):
            if given is None and isinstance(call.func, cst.Attribute):
                given = call.func.value
            return self._rare(given, truth) if given is not None else None
        function = self.module.callee(call)
        shown = isinstance(function, cst.FunctionDef) and self._says(returns(self.module, function), truth)
        if truth and not shown:
            if self._asks_for_debugging(name, given) and not _is_on_where_absent(call):
                return _DEBUGGING
            if name in _BAD_NUMBERS or _says_occasion(name):
                return _ALWAYS
        if not truth:
            if qualified in _HAS_ACCELERATOR:
                return _ON_HOST
            # What takes the place of a function that the installed release lacks.
            lacking = name == "hasattr" and given is not None and self.module.qualified(given) in _NAMESPACES
            if lacking or name == "isfinite":
                return _ALWAYS
            dividend = self._dividend(call)
            if dividend is not None:
                return self._tied(dividend)
        if isinstance(function, cst.FunctionDef) and self._answers(function, truth) is not None:
            return self._tied(call)
        return None

    @staticmethod
    def _asks_for_debugging(name: str | None, given: cst.BaseExpression | None) -> bool:
        """Return whether somebody looks for a mistake: ``is_debugging()``, ``config.get("debug")``."""
        if name in ("get", "getenv", "isEnabledFor") and given is not None:
            return _is_debug_text(given) or has(last_name(given), *_SWITCHES)
        return has(name, *_SWITCHES)

    def _asks_variable_for_debugging(self, variable: cst.BaseExpression, texts: cst.CSTNode) -> bool:
        """Return whether a variable of the environment has to be set for somebody to look for a mistake:
        ``os.getenv("DEBUG_SYNC", "0").lower() in ("1", "true")``.
        """
        while (owner := _spelt_otherwise(variable)) is not None:
            variable = owner
        if not isinstance(variable, cst.Call) or last_name(variable) not in ("get", "getenv"):
            return False
        if not variable.args or not self._asks_for_debugging(last_name(variable), variable.args[0].value):
            return False
        absent = variable.args[1].value if len(variable.args) > 1 else None
        return not isinstance(absent, cst.SimpleString) or not any(
            isinstance(text, cst.SimpleString) and text.evaluated_value == absent.evaluated_value
            for text in self.tree.descendants(texts)
        )

    def _answers(self, function: cst.FunctionDef, truth: bool) -> Restriction | None:
        """Return when a function says ``truth``."""
        last = function.body.body[-1]
        silent = not isinstance(last, cst.SimpleStatementLine) or not isinstance(last.body[-1], cst.Return)
        # Who comes to the end of it answers None.
        return None if silent and not truth else self._one_of(returns(self.module, function), truth)

    def _flag(self, flag: cst.Name | cst.Attribute | cst.Subscript, truth: bool) -> Restriction | None:
        values = _values(self.module, flag)
        if None not in values:
            kept = flag.attr.value if isinstance(flag, cst.Attribute) else None
            rarely = self._one_of((value for value in values if value is not None), truth, kept)
            if rarely is not None:
                return rarely
        if truth and (left := self._left_by(flag)) is not None:
            return Restriction(left)
        name = last_name(flag)
        if isinstance(flag, cst.Attribute):
            read = self._properties.get(flag.attr.value)
            if read is not None and self._answers(read, truth) is not None:
                return _ALWAYS
            if flag.attr.value == ("is_cpu" if truth else "is_cuda"):
                return _ON_HOST
        if asks_for_accelerator(name) is (not truth):
            return _ON_HOST
        if not truth:
            return None
        if has(name, *_SWITCHES):
            return None if self._is_on_by_default(flag, 0) else _DEBUGGING
        if _says_occasion(name):
            return _ALWAYS
        reports = asks(name, Role.LOGGING, Role.DRAWING)
        return _ALWAYS if reports and outcome_by_default(self.module, flag) is False else None

    def _left_by(self, flag: cst.BaseExpression) -> Loop | None:
        """Return the loop that is left where a flag is true: ``if done: break``."""
        if not isinstance(flag, cst.Name):
            return None
        for loop in self.module.flow.statement_loops(flag):
            for branch in self.tree.nodes_within(loop, cst.If):
                test = branch.test
                if (
                    isinstance(test, cst.Name)
                    and test.value == flag.value
                    and (self.module.flow.ends_loop(branch.body.body[-1], loop))
                ):
                    return loop
        return None

    def _one_of(
        self, values: Iterable[cst.CSTNode], truth: bool, kept: str | None = None
    ) -> Restriction | None:
        """Return when one of some values is true (or false): all that can be so have to say it.

        What an attribute ``kept`` gets where it is found without it, it has from then on.
        """
        said = ((value, written_truth(value)) for value in values)
        # ``log = True`` below ``if step % 100 == 0``.
        rare = (
            self._rare(value, truth) if constant is None else self._at(value, kept)
            for value, constant in said
            if constant is None or constant is truth
        )
        return met(rare, _narrower)

    def _says(self, values: Iterable[cst.CSTNode], truth: bool) -> bool:
        """Return whether one of some values is plainly true (or false) at a place that is often reached."""
        return any(written_truth(value) is truth and self._at(value) is None for value in values)

    def _at(self, node: cst.CSTNode, kept: str | None = None) -> Restriction | None:
        """Return the innermost restriction of a place in the loop around it, but no test of an attribute."""
        loops = self.module.flow.statement_loops(node)
        within = loops[0] if loops else self.tree.root
        return next(
            (
                rarely
                for holder, rarely in self._chain(node)
                if self.tree.contains(within, holder) and not (kept is not None and self._tests(holder, kept))
            ),
            None,
        )

    def _tests(self, branch: cst.CSTNode, attribute: str) -> bool:
        """Return whether the test of a branch reads an attribute of this name."""
        return isinstance(branch, cst.If) and any(
            isinstance(part, cst.Attribute) and part.attr.value == attribute
            for part in self.tree.descendants(branch.test)
        )

    @cached_property
    def _properties(self) -> dict[str, cst.FunctionDef]:
        """The properties of the file's classes by their names, without those of which there are several."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self.tree.nodes(cst.FunctionDef):
            if any(last_name(decorator.decorator) == "property" for decorator in function.decorators):
                found.setdefault(function.name.value, []).append(function)
        return {name: functions[0] for name, functions in found.items() if len(functions) == 1}

    def _is_on_by_default(self, flag: cst.CSTNode, bound: int) -> bool:
        """Return whether it is above ``bound`` unless somebody turns it off: ``verbose=1``."""
        defaults, constant = self._defaults(flag), self.module.inference.parameters.constant_in_sight(flag)
        if defaults:
            return all(_number(default) > bound for default in defaults)
        return written_truth(flag) is True or (isinstance(constant, int) and constant > bound)

    def _defaults(self, flag: cst.CSTNode) -> list[cst.BaseExpression | None]:
        """Return the defaults of a parameter; nothing for other variables."""
        bindings = self.module.bindings(flag)
        params = [binding.node for binding in bindings if isinstance(binding.node, cst.Param)]
        return [param.default for param in params] if len(params) == len(bindings) else []

    # ------------------------------------------------------------------ branches that end what they test for

    def _renews(self, branch: cst.If, decision: Decision, taken: bool) -> bool:
        """Return whether a counter or clock is compared in the test and set anew behind it, which happens
        every so often.

        That may be in the branch, or behind ``if waited < 100: waited += 1; continue``.
        """
        compared = set(self._compared_names(decision))
        if taken or not compared:
            return not compared.isdisjoint(self._renewed(branch.body))
        lines = (line for line in branch.body.body if isinstance(line, cst.SimpleStatementLine))
        small = (statement for line in lines for statement in line.body)
        counted = {dotted_text(each.target) for each in small if isinstance(each, cst.AugAssign)}
        order, renewed = self.tree.order, self._renewed(self.tree.parents[branch])
        return any(renewed.get(name, -1) > order[branch] for name in compared & counted)

    def _settles(self, branch: cst.If, decision: Decision) -> bool:
        """Return whether it is once a change: ``if self.scaled == wanted: return``, then set behind it."""
        match decision.test:
            case cst.Comparison(
                left=left, comparisons=[cst.ComparisonTarget(cst.Equal() | cst.Is(), right)]
            ) if not is_none(right):  # what is set to None has been used up
                assigned = self._assigned(self.tree.parents[branch]).get(dotted_text(left) or "", [])
            case _:
                return False
        return any(
            self.tree.order[each] > self.tree.order[branch] and alike(each.value, right) for each in assigned
        )

    def _fits(self, branch: cst.If, decision: Decision) -> bool:
        """Return whether it is made anew when a size changes: ``if self.a.shape != x.shape: self.a = …``,
        ``if self.a.size(0) < rows: self.a = …``.
        """
        differing = set[str]()
        for guard in implied(self.module, decision.test, decision.holds):
            match guard.test:
                case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator, right)]):
                    unlike = cst.NotEqual if guard.holds else cst.Equal
                    if isinstance(operator, (unlike, *_ORDERS)):
                        differing |= {
                            self.tree.source(kept) for kept in map(_measured, (left, right)) if kept
                        }
        return any(
            self.tree.source(target) in differing
            and self._outlives(target.value if isinstance(target, cst.Subscript) else target)
            for line in self.tree.parts(branch.body)
            for target in _filled_by(line)
        )

    def _spends(self, branch: cst.If) -> bool:
        """Return whether it is ``if self.fresh: …``,
        and ``self.fresh = False`` in it or in the method that it calls: once.

        Only the constructor sets the flag.
        """
        for guard in implied(self.module, branch.test, True):
            if not guard.holds or not isinstance(guard.test, cst.Attribute):
                continue
            word = guard.test.attr.value
            assigned = self.module.names.attributes.get(word, [])
            off = [each for each in assigned if each.value is not None and written_truth(each.value) is False]
            if all(each in off or self._in_constructor(each.target) for each in assigned) and any(
                self._runs_in(branch.body, each.target) for each in off
            ):
                return True
        return False

    def _in_constructor(self, node: cst.CSTNode) -> bool:
        function = self.module.function(node)
        return isinstance(function, cst.FunctionDef) and function.name.value == "__init__"

    def _runs_in(self, block: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Return whether a statement is unconditional in a block, or in a function that the block calls."""
        if self.tree.contains(block, node):
            return not self.module.flow.is_conditional(node, within=block)
        function = self.module.function(node)
        return (
            isinstance(function, cst.FunctionDef)
            and not self.module.flow.is_conditional(node)
            and any(self.tree.contains(block, call) for call in self.module.callers(function))
        )

    @remembered
    def _assigned(self, suite: cst.CSTNode) -> dict[str, list[cst.Assign]]:
        """Return the assignments of a block itself, by their first targets."""
        found: dict[str, list[cst.Assign]] = {}
        for line in self.tree.parts(suite):
            for each in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(each, cst.Assign):
                    found.setdefault(dotted_text(each.targets[0].target) or "", []).append(each)
        return found

    def _compared_names(self, decision: Decision) -> Iterator[str]:
        """Yield the variables that the comparisons of a test depend on."""
        for guard in implied(self.module, decision.test, decision.holds):
            if isinstance(guard.test, cst.Comparison):
                for node in self.tree.descendants(guard.test):
                    spelt = dotted_text(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
                    if spelt is not None:
                        yield spelt

    @remembered
    def _renewed(self, suite: cst.CSTNode) -> dict[str, int]:
        """Return the counters, clocks and lists that the statements of a block reset, and where last."""
        found: dict[str, int] = {}
        lines: object = getattr(suite, "body", ())
        for line in lines if isinstance(lines, Sequence) else ():
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
                target: cst.CSTNode | None = None
                anew = False
                match statement:
                    case cst.Assign(targets=[cst.AssignTarget(target=assigned)], value=fresh):
                        target = assigned
                        anew = (
                            _starts_over(fresh)
                            or _some_clock(self.module, fresh)
                            or ends(last_name(fresh), Role.CLOCK)
                        )
                    case cst.AugAssign():
                        target = statement.target
                        anew = isinstance(statement.operator, cst.SubtractAssign)
                    case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)))):
                        target, anew = owner, name in _RESETTING
                if target is not None and (anew or has(last_name(target), *_RECORDS)):
                    spelt = dotted_text(target)
                    if spelt is not None:
                        found[spelt] = self.tree.order[statement]
        return found

    def _filled(self, branch: cst.If) -> Restriction | None:
        """Return a branch that fills what it tests to be missing, a cache or a lazy attribute: once."""
        missing = set(self._missing(branch.test))
        if not missing:
            return None
        missing.update(*map(self._handed_out, tuple(missing)))
        for node in self.tree.descendants(branch.body):
            target: cst.CSTNode | None = None
            stored = added = False
            if isinstance(node, cst.Call):
                if not missing.isdisjoint(self._set_by(node)):
                    return _ALWAYS
                target = _set_in_place(node)
                added = target is None
                target = target or _appended_to(node)
            elif isinstance(node, (cst.AssignTarget, cst.AnnAssign)):
                target = node.target
                if isinstance(target, cst.Subscript):
                    target, stored = target.value, True
            if target is None:
                continue
            known = dotted_text(target) in missing
            lasts = self._outlives(target) or (stored and self._is_of_lasting(target, branch))
            if not added and lasts and (known or (stored and self._looked_up(target, missing, branch))):
                return _ALWAYS
            if known and isinstance(target, cst.Name) and not stored:
                rarely = self._first_round(target, branch)
                if rarely is not None and not (added and self._emptied(target, rarely)):
                    return rarely
        return _ALWAYS if self._filled_later(branch, missing) else None

    def _filled_behind(self, branch: cst.If) -> bool:
        """Return whether it is filled once behind a branch: ``if self.table is not None: return …``."""
        if branch.orelse is not None:
            return False
        missing = set(self._missing(branch.test, holds=False))
        tables = {*self._asked_tables(branch)}
        if not missing and not tables:
            return False
        order, lines = self.tree.order, self.tree.parts(self.tree.parents[branch])
        behind = (line for line in lines if order[line] > order[branch])
        for target in chain.from_iterable(map(_filled_by, behind)):
            if self._outlives(target) and dotted_text(target) in missing:
                return True
            # ``if key in self.table: return …``, and ``self.table[key] = …`` behind it: once for each key.
            if isinstance(target, cst.Subscript) and dotted_text(target.value) in tables | missing:
                return self._outlives(target.value)
        return False

    @remembered
    def _keeps(self, function: cst.CSTNode) -> cst.If | None:
        """Return the branch in which a function returns since what it makes behind it is still there, and
        fits: ``if self.table is not None: if self.table.size(0) >= rows: return``.
        """
        if not isinstance(function, cst.FunctionDef) or not isinstance(function.body, cst.IndentedBlock):
            return None
        lines = function.body.body
        for number, branch in enumerate(lines):
            tests = _tests_of_return(branch) if isinstance(branch, cst.If) else []
            kept = set.intersection(*map(self._asked_of, tests)) if tests else set[str]()
            made = chain.from_iterable(map(self._made_by, lines[number + 1 :])) if kept else ()
            if isinstance(branch, cst.If) and not kept.isdisjoint(made):
                return branch
        return None

    def _asked_of(self, test: cst.BaseExpression) -> set[str]:
        """Return what a test asks for being there, or for its size, dtype or place."""
        asked = set(self._missing(test, holds=False))
        for guard in implied(self.module, test, True):
            match guard.test:
                case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
                    measured = (kept for side in (left, right) if (kept := _measured(side)) is not None)
                    asked |= {spelt for kept in measured if (spelt := dotted_text(kept)) is not None}
        return asked

    def _made_by(self, line: cst.CSTNode) -> Iterator[str]:
        """Yield the attributes that a statement, or a method that it calls, sets for later calls."""
        for target in _filled_by(line):
            spelt = dotted_text(target)
            if spelt is not None and self._outlives(target):
                yield spelt
        match line:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]):
                yield from self._set_by(call)

    def _asked_tables(self, branch: cst.If) -> Iterator[str]:
        """Yield the tables in which the test of a branch, or a variable that it asks, looks something up."""
        parts = [*self.tree.descendants(branch.test)]
        asked = [part.value for part in parts if isinstance(part, cst.NamedExpr)]
        for part in parts:
            bindings = self.module.bindings(part)
            asked += [b.value for b in bindings if isinstance(b.value, cst.Call) and not b.path]
        for call in asked:
            match call:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("get"))):
                    if (spelt := dotted_text(owner)) is not None:
                        yield spelt

    def _handed_out(self, spelt: str) -> Iterator[str]:
        """Yield what a property hands out: ``self._step`` for ``self.step``."""
        owner, _, name = spelt.rpartition(".")
        read = self._properties.get(name) if owner else None
        for given in () if read is None else returns(self.module, read):
            if isinstance(given, cst.Attribute) and SelfAttributes.is_self(given.value):
                yield f"{owner}.{given.attr.value}"

    def _set_by(self, call: cst.Call) -> Iterator[str]:
        """Yield the attributes that a call of a method of an object sets, also by ``register_buffer``."""
        func = call.func
        owner = dotted_text(func.value) if isinstance(func, cst.Attribute) else None
        if not isinstance(func, cst.Attribute) or owner is None:
            return
        if func.attr.value == "register_buffer" and call.args and SelfAttributes.is_self(func.value):
            name = call.args[0].value
            if isinstance(name, cst.SimpleString):
                yield f"{owner}.{name.evaluated_value!s}"
            return
        method = self.module.callee(call)
        if not isinstance(method, cst.FunctionDef) or self.tree.is_elsewhere(method):
            return
        if self.module.classes.owner(method) is None or not method.params.params:
            return
        receiver = method.params.params[0].name.value
        assigned = (each.target for each in self.tree.nodes_within(method, cst.AssignTarget))
        filled = map(_set_in_place, self.tree.nodes_within(method, cst.Call))
        for target in (*assigned, *filled):
            match target:
                case cst.Attribute(value=cst.Name(value=holder), attr=attribute) if holder == receiver:
                    yield f"{owner}.{attribute.value}"

    def _filled_later(self, branch: cst.If, missing: set[str]) -> bool:
        """Return whether it is filled once where a flag says so: ``first = not hasattr(self, "mean")``."""
        if not isinstance(branch.test, cst.Name):
            return False
        function = self.module.function(branch)
        words = {spelt.rpartition(".")[2] for spelt in missing}
        filled = (binding.target for word in words for binding in self.module.names.attributes.get(word, ()))
        return function is not None and any(
            dotted_text(target) in missing and self.module.function(target) is function for target in filled
        )

    def _looked_up(self, store: cst.CSTNode, missing: set[str], branch: cst.If) -> bool:
        """Return whether what is missing is cached: ``x = cache.get(key)``, then ``cache[key] = …``."""
        bindings = (binding for name in missing for binding in self.module.names.bindings_at(name, branch))
        for binding in bindings:
            match binding.value:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="get"))):
                    if dotted_text(owner) == dotted_text(store):
                        return True
        return False

    def _first_round(self, target: cst.Name, branch: cst.If) -> Restriction | None:
        """Return the restriction to the first round of a loop, of ``if x is None: x = …`` in it."""
        empty = [
            b.node
            for b in self.module.names.bindings_at(target.value, branch)
            if b.value is not None and b.kind is BindingKind.ASSIGN and _is_empty(part_of(b.value, b.path))
        ]
        found: Restriction | None = None
        for loop in self.module.flow.statement_loops(branch) if empty else ():
            if any(self.tree.contains(loop, node) for node in empty):
                break
            found = Restriction(loop)
        return found

    def _emptied(self, name: cst.Name, rarely: Restriction) -> bool:
        """Return whether the loop whose first round fills a list takes something out of it."""
        return rarely.loop is not None and any(
            isinstance(node, cst.Del)
            or (
                isinstance(node, cst.Attribute)
                and node.attr.value in _EMPTYING
                and dotted_text(node.value) == name.value
            )
            for node in self.tree.descendants(rarely.loop)
        )

    def _missing(self, test: cst.BaseExpression, holds: bool = True) -> Iterator[str]:
        """Yield what variables a test finds empty: ``x is None``, ``k not in x``, ``len(x) == 0``."""
        waiting = [(test, holds)]
        while waiting:
            for guard in implied(self.module, *waiting.pop()):
                if isinstance(guard.test, cst.BooleanOperation):
                    waiting += ((guard.test.right, guard.holds), (guard.test.left, guard.holds))
                    continue
                spelt = _missing_part(guard) or self._found_missing(guard)
                if spelt is not None:
                    yield spelt

    def _found_missing(self, guard: Guard) -> str | None:
        """Return ``x`` of ``not exists(x)``, where ``exists`` says whether it is not None."""
        match guard.test:
            case cst.Call(args=[cst.Arg(value=asked, keyword=None)]) if not guard.holds:
                function = self.module.callee(guard.test)
                answers = returns(self.module, function) if function is not None else ()
                match answers:
                    case (
                        cst.Comparison(
                            left=cst.Name(), comparisons=[cst.ComparisonTarget(cst.IsNot(), none)]
                        ),
                    ):
                        return dotted_text(asked) if is_none(none) else None
        return None

    def _outlives(self, target: cst.CSTNode) -> bool:
        """Return whether a variable keeps its value from one call of the function to the next."""
        if isinstance(target, cst.Attribute) and SelfAttributes.is_self(target.value):
            return not is_made_each_step(self.module, self.module.function(target))
        if not isinstance(target, cst.Name):
            return isinstance(target, cst.Attribute)
        names = self.module.names
        return names.lookup(target.value, target) is names.module_scope

    def _is_of_lasting(self, target: cst.CSTNode, place: cst.CSTNode) -> bool:
        """Return whether a variable is a part of what outlives the call: ``state = self.state[p]``."""
        if not isinstance(target, cst.Name):
            return False
        bindings = self.module.names.bindings_at(target.value, place)
        return bool(bindings) and all(
            binding.value is not None
            and not binding.path
            and self._outlives(start_of(binding.value, cst.Subscript))
            for binding in bindings
        )

    # ------------------------------------------------------------------ parts of conditions

    def _counted_off(self, guard: Guard) -> bool | None:
        """Return True for ``step % k == 0`` and ``not step % k``; None for what says nothing of a period."""
        match guard.test:
            case cst.Comparison(
                comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as same)]
            ):
                counted, picked = guard.test.left, isinstance(same, cst.Equal) is guard.holds
            case test:
                counted, picked = test, not guard.holds
        return True if picked and self._dividend(counted, short=True) is not None else None

    def _dividend(self, node: cst.CSTNode, *, short: bool = False) -> cst.BaseExpression | None:
        """Return what is counted off in ``step % k`` or ``step & mask``; None if it is no such thing.

        A period that is known to be short counts only if ``short``.
        """
        match node:
            case cst.Subscript(value=cst.Call(func=func, args=[counted, *_])) if last_name(func) == "divmod":
                return counted.value
            case cst.Call(func=func, args=[counted, _]) if last_name(func) in ("mod", "fmod", "remainder"):
                return counted.value
            case cst.BinaryOperation(left=left, operator=cst.BitAnd(), right=cst.Integer()):
                return left if self._counts(left) else None
            case cst.BinaryOperation(left=left, operator=cst.Modulo(), right=right):
                if isinstance(left, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
                    return None
                if not short and self._is_short(right):
                    return None
                # Padding to a multiple looks the same; a size is the same in every iteration.
                sized = any(ends(word, Role.SIZE) for word in self._words(_divided(left)))
                return left if not sized or self._is_growing(left) else None
            case _:
                return None

    def _is_short(self, period: cst.BaseExpression) -> bool:
        """Return whether a period is so short, by default at least, that what it picks runs all the time."""
        constant = self.module.inference.parameters.constant_in_sight(period)
        if isinstance(constant, int):
            return constant < _SHORT
        periods = _periods(self.module, period)
        return bool(periods) and all(
            isinstance(each, cst.Integer) and each.evaluated_value < _SHORT for each in periods
        )

    def _is_growing(self, node: cst.CSTNode) -> bool:
        """Return whether it is ``len(losses)``, where the function appends to ``losses``."""
        match node:
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=counted)]):
                grown = dotted_text(counted)
            case _:
                return False
        around = self.module.function(node) or self.tree.root
        return grown is not None and any(
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "append"
            and dotted_text(call.func.value) == grown
            for call in self.tree.nodes_within(around, cst.Call)
        )

    def _counts(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression goes up (or down) with the iterations."""
        return some(_counted(self.module, node))

    def _words(self, node: cst.CSTNode) -> Iterator[str]:
        return (part.value for part in self.tree.descendants(node) if isinstance(part, cst.Name))

    def _tied(self, counter: cst.CSTNode) -> Restriction:
        """Return the restriction by a counter: of the loop that moves it on, or of everything."""
        names = self.module.names
        for part in self.tree.descendants(counter):
            if isinstance(part, cst.Name) and names.is_read(part):
                for binding in names.bindings(part):
                    loop = None if _picks(binding) else names.loop(binding)
                    if loop is not None and self.tree.contains(loop, counter):
                        return Restriction(loop)
        return _ALWAYS

    def _is_best(self, node: cst.CSTNode) -> bool:
        return any(
            has(word, Role.BEST)
            or (begins(word, Role.EXTREME) and ends(word, Role.LOSS, Role.SCORE, Role.METRIC))
            for word in self._words(node)
        )


def _continues(test: cst.BaseExpression, construct: cst.CSTNode) -> TypeGuard[cst.BooleanOperation]:
    """Return whether the left operand of ``and``, or of ``or``, is a chain of the same operator."""
    return (
        isinstance(construct, cst.BooleanOperation)
        and isinstance(test, cst.BooleanOperation)
        and type(test.operator) is type(construct.operator)
    )


def _narrower(one: Restriction, other: Restriction) -> Restriction:
    """Return what two conditions restrict, one of which holds."""
    if one.loop is None and other.loop is None and one != other:
        return _ALWAYS
    return one if one.loop is not None else other


@traced(Through.NOTHING)
def _values(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | None:
    """Return what a flag can be: the tests and constants that give it its value."""
    following = isinstance(node, (cst.Attribute, cst.IfExp, cst.NamedExpr, cst.Param, cst.Subscript))
    named = isinstance(node, cst.Name) and written_truth(node) is None
    return None if path or named or following or not isinstance(node, cst.BaseExpression) else node


@traced(Through.NOTHING)
def _periods(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
    """Return what a period can be: constants, or the defaults of options, as of ``args.accumulation``."""
    if isinstance(node, cst.Attribute) and not path:
        default = setting_default(module, node)
        if default is not None:
            return [Source(default)]
    return node if isinstance(node, cst.Integer) and not path else None


@traced(Through.NOTHING)
def _usual_periods(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
    """Return what a period can be unless a caller says otherwise: constants, and defaults of parameters."""
    if isinstance(node, cst.Param) and node.default is not None and not path:
        return [Source(node.default)]
    return node if isinstance(node, cst.Integer) and not path else None


@traced(Through.OPERANDS | Through.RETURNS)
def _counted(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a number goes up (or down) with the iterations."""
    match node:
        case cst.BinaryOperation(operator=cst.Modulo()):
            return False
        case cst.Call() if node.args or not module.callees(node):
            return False
        case cst.BinaryOperation():
            return _terms(node)
        case cst.Name() | cst.Attribute() | cst.Subscript():
            if isinstance(node, cst.Name) and _is_counter(module, node):
                return True
            if isinstance(node, cst.Attribute) and _is_counting_attribute(module, node):
                return True
            word = last_name(node) or ""
            # What is written in capitals is a constant, such as a member of an enumeration.
            if word.isupper() or ends(word, Role.SIZE) or every(_sized(module, node)):
                return False
            if ends(word, *_COUNTERS):
                return True
    return None


@traced(Through.OPERANDS)
def _sized(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a number is a size, the same in every iteration: ``rows, columns = x.shape``."""
    match node:
        case (
            cst.Attribute(attr=cst.Name("shape")) | cst.Subscript(value=cst.Attribute(attr=cst.Name("shape")))
        ):
            return True
        case cst.Call(func=func):
            return last_name(func) in ("dim", "len", "numel", "size")
    return None


def _terms(node: cst.BinaryOperation) -> list[Source]:
    """Return the operands of a chain of one operator, to go on with."""
    terms, side = [], node.left
    while isinstance(side, cst.BinaryOperation) and type(side.operator) is type(node.operator):
        terms.append(side.right)
        side = side.left
    return onward(side, *terms, node.right)


def _divided(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is divided in a quotient, such as samples by the size of a batch; else the node itself."""
    match node:
        case cst.BinaryOperation(left=divided, operator=cst.Divide() | cst.FloorDivide()):
            return divided
        case _:
            return node


def _is_counter(module: Module, name: cst.Name) -> bool:
    return any(_counts_on(binding) for binding in module.bindings(name))


def _is_counting_attribute(module: Module, node: cst.Attribute) -> bool:
    """Return whether a class only sets an attribute to numbers and counts it up: ``self.seen += 1``."""
    owner = SelfAttributes.of(module).enclosing_class(node) if SelfAttributes.is_self(node.value) else None
    if owner is None:
        return False
    counts = False
    for binding in module.classes.attribute_bindings(module.classes.info(owner), node.attr.value):
        statement = module.tree.parent(binding.target)
        if isinstance(statement, cst.AugAssign):
            if not isinstance(statement.operator, cst.AddAssign) or not _is_few(statement.value):
                return False
            counts = True
        elif not isinstance(binding.value, cst.Integer):
            return False
    return counts


def _counts_on(binding: Binding) -> bool:
    """Return whether it is ``i += 1``, ``for i in range(9)``, ``for i, x in enumerate(xs)``."""
    if binding.kind is BindingKind.AUGMENT:
        return _is_few(binding.value)
    if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) and isinstance(binding.value, cst.Call):
        word = last_name(binding.value.func)
        return word == "range" or (word == "enumerate" and binding.path == (0,))
    return False


def _picks(binding: Binding) -> bool:
    """Return whether a loop goes over numbers that something else counted: ``for i in chosen``."""
    looping = binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION)
    return looping and not _counts_on(binding)


@traced(Through.OPERANDS)
def _of_clock(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a value is read from a clock, or is computed from what is."""
    match node:
        case cst.Call():
            qualified = module.qualified(node.func) or ""
            if qualified.startswith(("time.", "datetime.")):
                return True
            if qualified.startswith("builtins."):
                return onward(*(argument.value for argument in node.args))
            return onward(node.func.value) if isinstance(node.func, cst.Attribute) else False
        case cst.Attribute(value=owner) if not SelfAttributes.is_self(owner):
            return onward(owner)
        case cst.BinaryOperation():
            return _terms(node)
        case _:
            return None


def _some_clock(module: Module, *nodes: cst.BaseExpression) -> bool:
    """Return whether any of some expressions is computed from the reading of a clock."""
    return any(some(_of_clock(module, node)) for node in nodes)


# ---------------------------------------------------------------------- spellings

_COUNTERS = (Role.ITERATION, Role.INDEX, Role.COUNT, Role.BATCH, Role.EPOCH, Role.EPISODE)
_SWITCHES = (Role.DEBUGGING, Role.PROFILING, Role.TRACING, Role.CALIBRATION)
_RECORDS = (Role.BEST, Role.EXTREME, Role.NEIGHBOUR)
_EMPTYING = frozenset({"clear", "pop", "popleft", "remove"})
_RESETTING = frozenset({"clear", "reset", "restart", "start"})
_CHANCES = frozenset({"random", "rand", "uniform"})
_BAD_NUMBERS = frozenset({"isnan", "isinf", "is_nan", "has_nan", "isneginf", "isposinf"})
_HAS_ACCELERATOR = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})
_NAMESPACES = frozenset({"torch", "torch.cuda", "torch.nn", "torch.nn.functional", "torch.Tensor"})
_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_COLLECTIONS = frozenset({"set", "list", "tuple", "frozenset", "range"})
# Code for one accelerator that lacks something; what runs on all of them asks no such question.
_ODD_DEVICES = frozenset({"mps", "xpu", "npu", "hpu", "xla", "meta"})


def _odd_device(one: cst.CSTNode, other: cst.CSTNode) -> Restriction | None:
    """Return what a comparison says that asks for the CPU by name, or for an accelerator with gaps."""
    if _is_named(one, other, ("cpu",)):
        return _ON_HOST
    return _ALWAYS if _is_named(one, other, _ODD_DEVICES) else None


def _is_named(one: cst.CSTNode, other: cst.CSTNode, devices: Collection[str]) -> bool:
    """Return whether one of two expressions names one of ``devices``, and the other is a device."""
    return any(
        _device_named(text) in devices
        and (ends(last_name(device), Role.TYPE, Role.DEVICE) or last_name(device) == "str")
        for device, text in ((one, other), (other, one))
    )


def _device_named(node: cst.CSTNode) -> object:
    """Return the text of a string, or what a member of an enumeration is called: ``Device.CUDA``."""
    match node:
        case cst.SimpleString():
            return node.evaluated_value
        case cst.Attribute(attr=cst.Name(member)) if member.isupper():
            return member.lower()
    return None


def _odd_devices(device: cst.CSTNode, texts: cst.CSTNode) -> Restriction | None:
    """Return what ``_odd_device`` does, for ``device in {…}``."""
    if not isinstance(texts, (cst.Set, cst.Tuple, cst.List)) or not texts.elements:
        return None
    return met((_odd_device(device, element.value) for element in texts.elements), _narrower)


def _set_in_place(call: cst.Call) -> cst.BaseExpression | None:
    """Return ``flag`` in ``flag.fill_(True)`` and ``flag.data.copy_(true)``."""
    match call.func:
        case cst.Attribute(
            value=cst.Attribute(value=target, attr=cst.Name("data")), attr=cst.Name("copy_" | "fill_")
        ):
            return target
        case cst.Attribute(value=target, attr=cst.Name("copy_" | "fill_")):
            return target
    return None


def _measured(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor whose size, dtype or place is asked: ``x`` in ``x.shape[2:4]``, ``x.size(0)``."""
    if isinstance(node, cst.Subscript):
        node = node.value
    if isinstance(node, cst.Call):
        node = node.func
    measured = isinstance(node, cst.Attribute) and node.attr.value in ("shape", "size", "device", "dtype")
    return node.value if isinstance(node, cst.Attribute) and measured else None


def _says_occasion(name: str | None) -> bool:
    """Return whether a flag of this name is set now and then: ``is_last``, unlike ``is_last_rank``."""
    return has(name, Role.OCCASION) and not has(name, Role.PLACE_IN_PIPELINE)


def _tests_of_return(branch: cst.If) -> list[cst.BaseExpression]:
    """Return the tests behind which a branch ends in ``return``, the outermost first; none if it does not."""
    tests = [branch.test]
    while branch.orelse is None:
        last = branch.body.body[-1]
        if isinstance(last, cst.SimpleStatementLine):
            return tests if isinstance(last.body[-1], cst.Return) else []
        if not isinstance(last, cst.If):
            break
        branch = last
        tests.append(branch.test)
    return []


def _filled_by(line: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield what a statement certainly assigns to or fills, unless it is with whether a condition holds."""
    if isinstance(line, cst.With):
        for inner in line.body.body:
            yield from _filled_by(inner)
    for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
        match statement:
            case cst.Assign(value=cst.Comparison() | cst.BooleanOperation() | cst.UnaryOperation()):
                pass
            case cst.Assign(targets=targets):
                yield from (each.target for each in targets)
            case cst.AnnAssign(target=target, value=cst.BaseExpression()):
                yield target
            case cst.Expr(value=cst.Call() as call) if (filled := _set_in_place(call)) is not None:
                yield filled


def _missing_part(guard: Guard) -> str | None:
    """Return the variable that is empty, or lacks a key or an attribute, where a test has this outcome."""
    match guard.test:
        case cst.Call(
            func=cst.Name(value="hasattr"), args=[owner, cst.Arg(value=cst.SimpleString() as name)]
        ):
            of = dotted_text(owner.value)
            return f"{of}.{name.raw_value}" if of is not None and not guard.holds else None
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]
        ):
            differs = isinstance(operator, (cst.NotIn, cst.IsNot, cst.NotEqual))
            if differs is guard.holds and not isinstance(operator, cst.NotIn | cst.In):
                return None
            match operator, left:
                case ((cst.In() | cst.NotIn()), _):
                    return dotted_text(right) if differs is guard.holds else None
                case ((cst.Is() | cst.IsNot()), _) if is_none(right):
                    return dotted_text(left)
                case (
                    (cst.Equal() | cst.NotEqual()),
                    cst.Call(func=cst.Name(value="len"), args=[collection]),
                ):
                    return dotted_text(collection.value) if _is_empty(right) else None
            return None
        case _:
            return None if guard.holds else dotted_text(guard.test)


def _appended_to(call: cst.Call) -> cst.Name | None:
    """Return the variable whose list a call adds to."""
    match call.func:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value="append" | "extend")):
            return owner
        case _:
            return None


def _is_empty(value: cst.CSTNode | None) -> bool:
    """Return whether a value is None, False, 0 or a list without elements."""
    if isinstance(value, cst.List):
        return not value.elements
    return value is not None and written_truth(value) is False


def _is_on_where_absent(call: cst.Call) -> bool:
    """Return whether it is ``getattr(args, "verbose", True)``."""
    by_name = isinstance(call.func, cst.Name) and call.func.value == "getattr" and len(call.args) == 3
    return by_name and written_truth(call.args[2].value) is True


def _spelt_otherwise(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``text`` in ``text.strip()``, ``text.lower()``."""
    match node:
        case cst.Call(
            func=cst.Attribute(value=owner, attr=cst.Name("casefold" | "lower" | "strip" | "upper")), args=[]
        ):
            return owner
    return None


def _is_debug_text(*nodes: cst.CSTNode) -> bool:
    texts = (node.evaluated_value for node in nodes if isinstance(node, cst.SimpleString))
    return any(isinstance(text, str) and has(text, *_SWITCHES) for text in texts)


def _is_few(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Integer) and node.evaluated_value <= _FEW


def _is_last(node: cst.CSTNode) -> bool:
    """Return whether it is the last that is counted: ``total - 1``."""
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract)


def _is_rare_chance(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Float) and node.evaluated_value <= 0.1


def _starts_over(value: cst.CSTNode) -> bool:
    """Return whether a counter, or a list, starts over with a value: ``left = 10``, ``seen = []``."""
    match value:
        case cst.Integer() | cst.Float():
            return True
        case cst.List() | cst.Dict() | cst.Tuple():
            return not value.elements
        case _:
            return False


def _number(node: cst.BaseExpression | None) -> int:
    """Return the number, or the truth as a number, of a literal; 0 of anything else."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    return int(node is not None and written_truth(node) is True)


_REFILLING = ("add", "append", "discard", "remove")


def _is_collection(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Set, cst.Tuple, cst.List, cst.Name, cst.Attribute)):
        return True
    return isinstance(node, cst.Call) and last_name(node.func) in _COLLECTIONS
