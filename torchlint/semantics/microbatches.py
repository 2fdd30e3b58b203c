"""Gradients of several batches added up for one step of an optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.iterations import Act, Event, Iteration, Iterations, Path
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.sources import returns
from torchlint.semantics.spellings import last_name
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.values import MISSING

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Schedules of several models, in which one is trained less often than the other.
_SCHEDULE = (Role.POLICY, Role.COPY, Role.NETWORK, Role.MODEL_PART, Role.LOSS_TERM)


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Backward passes whose gradients add up to those of one step.

    ``passes`` is the loop that makes them: with a step every ``count`` iterations, or, if ``within``, over
    the batches of one step. It is ``counted`` where the number of iterations is a divisor, as in ``i % n``,
    and something is cleared as often.
    """

    iteration: Iteration
    backward: Event
    steps: tuple[Event, ...]
    count: cst.BaseExpression
    passes: cst.CSTNode
    within: bool
    counted: bool


def accumulations(module: Module, call: cst.Call) -> Iterator[Accumulation]:
    """Yield how the gradients of a backward pass are added up for a step that is taken now and then.

    It is looked for in the iterations that run ``call``, then in those around it.
    """
    for iteration in Iterations.of(module).running(call):
        found = _Search(module.home(iteration.loop), iteration).accumulation(call)
        if found is not None:
            yield found
    for iteration in Iterations.of(module).around(call):
        found = _Search(module.home(iteration.loop), iteration).accumulation_within(call)
        if found is not None:
            yield found


def batches_of_step(module: Module, loop: cst.CSTNode) -> cst.BaseExpression | None:
    """Return ``n`` of a loop over the batches that one step accumulates: over ``x.chunk(n)``, or over
    ``range(n)`` where ``n`` counts batches.
    """
    match loop:
        case cst.For(iter=cst.Call(func=func, args=[cst.Arg(value=count, keyword=None)])) if (
            module.qualified(func) == "builtins.range"
        ):
            named = has(last_name(count), Role.ACCUMULATION)
            return count if named and _are_several(module, count) else None
        case cst.For(iter=cst.Call(func=func, args=[cst.Arg(value=batches), *_])) if module.qualified(
            func
        ) in ("builtins.zip", "builtins.enumerate"):
            return _chunks(module, batches)
        case cst.For(iter=batches):
            return _chunks(module, batches)
    return None


def _chunks(module: Module, batches: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``n`` of ``x.chunk(n)``: a batch in parts."""
    match batches:
        case cst.Call(func=cst.Attribute(attr=cst.Name("chunk")), args=[*_, cst.Arg(value=count)]):
            place = 2 if module.qualified(batches.func) == "torch.chunk" else 1
            return count if len(batches.args) == place and _are_several(module, count) else None
    return None


def _are_several(module: Module, count: cst.BaseExpression) -> bool:
    constant = module.value(count).constant
    return constant is MISSING or (isinstance(constant, int) and constant > 1)


class _Search:
    """One iteration, looked through for an accumulation."""

    def __init__(self, module: Module, iteration: Iteration) -> None:
        self.iteration = iteration
        self.module = module
        self.tree = module.tree

    def accumulation(self, call: cst.Call) -> Accumulation | None:
        """Return a backward pass of each iteration, and a step every so many of them."""
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        if backward is None or not steps or not iteration.complete:
            return None
        if backward.loops or self._divisor_around(backward) is not None:
            return None
        divisors = [self._count(step) for step in steps]
        counts = [divisor or self._named_count(step) for divisor, step in zip(divisors, steps, strict=True)]
        count = counts[0]
        if count is None or any(c is None or self._text(c) != self._text(count) for c in counts):
            return None
        clearing = iteration.of(Act.CLEAR)
        if not clearing or not all(self._is_throttled(event) for event in clearing):
            return None
        if self._trains_in_turns(steps) or not self._is_number_of_batches(count):
            return None
        counted = None not in divisors and any(self._count(event) is not None for event in clearing)
        return Accumulation(
            iteration, backward, tuple(steps), count, iteration.loop, within=False, counted=counted
        )

    def accumulation_within(self, call: cst.Call) -> Accumulation | None:
        """Return what ``accumulation`` does, for a loop over batches of a step."""
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        clearing = iteration.of(Act.CLEAR)
        if backward is None or not steps or not clearing or not iteration.complete:
            return None
        if len(backward.loops) != 1 or any(event.loops for event in (*steps, *clearing)):
            return None
        count = batches_of_step(self.module, backward.loops[0])
        if count is None or iteration.events.index(backward) > iteration.events.index(steps[0]):
            return None
        return Accumulation(
            iteration, backward, tuple(steps), count, backward.loops[0], within=True, counted=True
        )

    def _text(self, node: cst.BaseExpression) -> str:
        return self.module.home(node).tree.source(node)

    # ------------------------------------------------------------------ every so many iterations

    def _is_throttled(self, event: Event) -> bool:
        loop = self.iteration.loop
        assert not isinstance(loop, cst.FunctionDef)
        if places.throttled_in(self.module, event.outermost, loop):
            return True
        periodic = Throttling.of(self.module).is_periodic
        decisions = self.module.flow.decisions(event.outermost, within=loop)
        if any(periodic(decision.test, decision.holds) for decision in decisions):
            return True
        return bool(event.path) and self._divisor_around(event) is not None

    def _count(self, event: Event) -> cst.BaseExpression | None:
        """Return ``n`` where an event happens in every n-th iteration."""
        return self._divisor_around(event) if self._is_throttled(event) else None

    def _named_count(self, event: Event) -> cst.BaseExpression | None:
        """Return ``n`` of an event once a counter is ``n`` further: ``i - last >= accumulate``."""
        if not self._is_throttled(event):
            return None
        for test, _ in self._tests(event):
            match test:
                case cst.Comparison(
                    comparisons=[cst.ComparisonTarget(cst.GreaterThanEqual() | cst.Equal(), count)]
                ):
                    if has(last_name(count), Role.ACCUMULATION):
                        return count
        return None

    def _divisor_around(self, event: Event) -> cst.BaseExpression | None:
        for test, path in self._tests(event):
            count = self._divisor(test, path)
            if count is not None:
                return count
        return None

    def _tests(self, event: Event) -> Iterator[tuple[cst.BaseExpression, Path]]:
        """Yield the conditions on which an event happens within the iteration,
        with the calls that lead to each.

        Those in the code of the loop come first, then those in the functions that it calls.
        """
        for depth, node in enumerate((*event.path, event.node)):
            flow, within = self.module.home(node).flow, self.iteration.loop if depth == 0 else None
            for decision in flow.decisions(node, within=within):
                yield decision.test, event.path[:depth]

    def _divisor(self, test: cst.BaseExpression, path: Path) -> cst.BaseExpression | None:
        """Return ``n`` of ``i % n`` in a condition, in what its names are given, or at the caller."""
        waiting, seen = [(test, path)], {test}
        while waiting and len(seen) <= MANY:
            place, path = waiting.pop()
            home = self.module.home(place)
            for node in home.tree.descendants(place):
                if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
                    return node.right
                for onward in self._leading_to(home, node, path):
                    if onward[0] not in seen:
                        seen.add(onward[0])
                        waiting.append(onward)
        return None

    def _leading_to(
        self, home: Module, node: cst.CSTNode, path: Path
    ) -> Iterator[tuple[cst.BaseExpression, Path]]:
        """Yield what a name in a condition is given, or what a function returns that is called there."""
        if isinstance(node, cst.Name) and home.names.is_read(node):
            given = (self._given(home, binding, path) for binding in home.bindings(node))
            yield from (each for each in given if each is not None)
        elif isinstance(node, cst.Call) and isinstance(function := home.callee(node), cst.FunctionDef):
            yield from ((answer, (*path, node)) for answer in returns(home, function))

    def _given(self, home: Module, binding: Binding, path: Path) -> tuple[cst.BaseExpression, Path] | None:
        """Return what a name of a condition is given in the iteration, with the calls that lead there."""
        if binding.kind is BindingKind.PARAMETER and path:
            caller = self.module.home(path[-1])
            passed = caller.argument(path[-1], binding.name).node
            return (passed, path[:-1]) if passed is not None else None
        if binding.value is None or binding.path or binding.kind is not BindingKind.ASSIGN:
            return None
        inside = bool(path) or home.tree.contains(self.iteration.loop, binding.node)
        return (binding.value, path) if inside else None

    def _is_number_of_batches(self, count: cst.BaseExpression) -> bool:
        constant = self.module.value(count).constant
        if constant is not MISSING:
            return isinstance(constant, int) and constant > 1
        return not has(last_name(count), *_SCHEDULE)

    def _trains_in_turns(self, steps: list[Event]) -> bool:
        """Return whether the branch of a step computes gradients, too: another model has its turn."""
        return any(
            isinstance(branch.construct, cst.If)
            and self.tree.contains(branch.construct.body, backward.outermost)
            for step in steps
            for branch in self.module.flow.branches(step.outermost, within=self.iteration.loop)
            for backward in self.iteration.of(Act.BACKWARD)
        )
