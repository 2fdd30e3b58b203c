"""Gradients of several batches added up for one step of an optimizer, and what divides their losses."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard, TypeVar

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.iterations import Act, Event, Iteration, Iterations, Path
from torchlint.semantics.lexicon import Role, has, names_criterion, names_loss
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import returns
from torchlint.semantics.spellings import last_name
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_Found = TypeVar("_Found")

# Schedules of several models, in which one is trained less often than the other.
_SCHEDULE = (Role.POLICY, Role.COPY, Role.NETWORK, Role.MODEL_PART, Role.LOSS_TERM)
# What a loss is scaled by for other reasons than its weight.
_DIVISORS = (
    *(Role.ACCUMULATION, Role.RATIO, Role.CLIPPING, Role.STEP, Role.ITERATION, Role.BATCH, Role.COUNT),
)
# What is counted in steps is divided by their number for other reasons.
_COUNTS = (*(Role.LENGTH, Role.ITERATION, Role.NUMBER, Role.COUNT, Role.EPOCH, Role.MAGNITUDE, Role.LOADER),)
# What tells an engine to divide losses.
_ACCUMULATING = frozenset(
    {"gradient_accumulation_steps", "gradient_accumulation_plugin", "deepspeed_plugin", "megatron_lm_plugin"}
    | {"deepspeed_plugins", "fsdp_plugin", "dataloader_config", "project_config", "parallelism_config"}
)
_DIVIDING = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_", "mul", "mul_"})
_SUMMING = frozenset({"sum", "nansum", "logsumexp"})
_SAME = frozenset(
    {
        "mean",
        "clone",
        "float",
        "double",
        "half",
        "to",
        "cuda",
        "cpu",
        "squeeze",
        "contiguous",
        "nanmean",
        "view",
    }
)


class _Scale(enum.IntEnum):
    """Whether a loss is divided by a number of batches; the greater of two holds for their sum."""

    UNSEEN = -1  # not known yet, while a circle is gone through
    AVERAGE = 0  # over one batch, and by nothing else
    UNKNOWN = 1
    DIVIDED = 2


@dataclass(frozen=True, slots=True)
class Unscaled:
    """A backward pass of each iteration, for a step every ``count`` of them."""

    backward: Event
    step: Event
    count: cst.BaseExpression


def unscaled(module: Module, call: cst.Call) -> Unscaled | None:
    """How gradients of several batches are added up and divided by nothing; None if that is not proved."""
    return _first(module, call, _Search.unscaled, _Search.unscaled_within)


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Backward passes whose gradients add up to those of one step.

    ``passes`` is the loop that makes them: with a step every ``count`` iterations, or, if ``within``, over
    the batches of one step.
    """

    iteration: Iteration
    backward: Event
    steps: tuple[Event, ...]
    count: cst.BaseExpression
    passes: cst.CSTNode
    within: bool


def accumulation(module: Module, call: cst.Call) -> Accumulation | None:
    """How the gradients of a backward pass are added up for a step that is taken now and then."""
    return _first(module, call, _Search.accumulation, _Search.accumulation_within)


def _first(
    module: Module,
    call: cst.Call,
    running: Callable[[_Search, cst.Call], _Found | None],
    within: Callable[[_Search, cst.Call], _Found | None],
) -> _Found | None:
    """What is found first: in an iteration that runs ``call``, or else in one around it."""
    for iteration in Iterations.of(module).running(call):
        found = running(_Search(module.home(iteration.loop), iteration), call)
        if found is not None:
            return found
    for iteration in Iterations.of(module).around(call):
        found = within(_Search(module.home(iteration.loop), iteration), call)
        if found is not None:
            return found
    return None


class _Search:
    """One iteration, looked through for an accumulation."""

    def __init__(self, module: Module, iteration: Iteration) -> None:
        self.iteration = iteration
        self.module = module
        self.tree = module.tree

    def unscaled(self, call: cst.Call) -> Unscaled | None:
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        if backward is None or not steps or not iteration.complete:
            return None
        loss = self._loss(call)
        if loss is None or backward.loops or self._divisor_around(backward) is not None:
            return None
        counts = [self._count(step) for step in steps]
        count = counts[0]
        if count is None or any(c is None or self._text(c) != self._text(count) for c in counts):
            return None
        clearing = iteration.of(Act.CLEAR)
        if not any(self._count(event) is not None for event in clearing):
            return None
        if not all(self._is_throttled(event) for event in clearing):
            # What is cleared in each iteration is not added up.
            return None
        if self._trains_in_turns(steps) or not self._is_number_of_batches(count):
            return None
        return self._averaged(backward, steps[0], loss, count)

    def unscaled_within(self, call: cst.Call) -> Unscaled | None:
        """As ``unscaled``, for a loop over the batches of a step, ``for _ in range(accumulate)``."""
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        clearing = iteration.of(Act.CLEAR)
        if backward is None or not steps or not clearing or not iteration.complete:
            return None
        if len(backward.loops) != 1 or any(event.loops for event in (*steps, *clearing)):
            return None
        count = self._batches_of(backward.loops[0])
        loss = self._loss(call)
        if (
            count is None
            or loss is None
            or iteration.events.index(backward) > iteration.events.index(steps[0])
        ):
            return None
        return self._averaged(backward, steps[0], loss, count)

    def _averaged(
        self, backward: Event, step: Event, loss: cst.BaseExpression, count: cst.BaseExpression
    ) -> Unscaled | None:
        """The accumulation, if each loss is the mean of its batch and nothing divides by their number."""
        if self._divided_elsewhere(count) or self._handles_gradients():
            return None
        averaged = self._scale(loss, count) is _Scale.AVERAGE
        return Unscaled(backward, step, count) if averaged else None

    def accumulation(self, call: cst.Call) -> Accumulation | None:
        """A backward pass of each iteration, and a step every so many of them."""
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        if backward is None or not steps or not iteration.complete:
            return None
        if backward.loops or self._divisor_around(backward) is not None:
            return None
        counts = [self._count(step) or self._named_count(step) for step in steps]
        count = counts[0]
        if count is None or any(c is None or self._text(c) != self._text(count) for c in counts):
            return None
        clearing = iteration.of(Act.CLEAR)
        if not clearing or not all(self._is_throttled(event) for event in clearing):
            return None
        if self._trains_in_turns(steps) or not self._is_number_of_batches(count):
            return None
        return Accumulation(iteration, backward, tuple(steps), count, iteration.loop, within=False)

    def accumulation_within(self, call: cst.Call) -> Accumulation | None:
        """As ``accumulation``, for a loop over the batches of a step, ``for _ in range(accumulate)``."""
        iteration = self.iteration
        backward = next(iter(iteration.at(call, Act.BACKWARD)), None)
        steps = iteration.of(Act.STEP)
        clearing = iteration.of(Act.CLEAR)
        if backward is None or not steps or not clearing or not iteration.complete:
            return None
        if len(backward.loops) != 1 or any(event.loops for event in (*steps, *clearing)):
            return None
        count = self._batches_of(backward.loops[0])
        if count is None or iteration.events.index(backward) > iteration.events.index(steps[0]):
            return None
        return Accumulation(iteration, backward, tuple(steps), count, backward.loops[0], within=True)

    def _batches_of(self, loop: cst.CSTNode) -> cst.BaseExpression | None:
        """``n`` of a loop over ``range(n)`` that is called after the batches of a step, or ``x.chunk(n)``."""
        match loop:
            case cst.For(iter=cst.Call(func=func, args=[cst.Arg(value=count, keyword=None)])) if (
                self.module.qualified(func) == "builtins.range"
            ):
                named = has(last_name(count), Role.ACCUMULATION)
                return count if named and self._are_several(count) else None
            case cst.For(iter=cst.Call(func=func, args=[cst.Arg(value=batches), *_])) if (
                self.module.qualified(func) in ("builtins.zip", "builtins.enumerate")
            ):
                return self._chunks(batches)
            case cst.For(iter=batches):
                return self._chunks(batches)
        return None

    def _chunks(self, batches: cst.BaseExpression) -> cst.BaseExpression | None:
        """``n`` of ``x.chunk(n)``: a batch in parts."""
        match batches:
            case cst.Call(func=cst.Attribute(attr=cst.Name("chunk")), args=[*_, cst.Arg(value=count)]):
                whole = len(batches.args) == self._place_of_count(batches)
                return count if whole and self._are_several(count) else None
        return None

    def _place_of_count(self, chunk: cst.Call) -> int:
        return 2 if self.module.qualified(chunk.func) == "torch.chunk" else 1

    def _are_several(self, count: cst.BaseExpression) -> bool:
        constant = self.module.value(count).constant
        return constant is MISSING or (isinstance(constant, int) and constant > 1)

    def _loss(self, call: cst.Call) -> cst.BaseExpression | None:
        """The loss of ``loss.backward()``; None for engines that divide it themselves."""
        if not isinstance(call.func, cst.Attribute) or self.module.qualified(call.func) is not None:
            return None
        owner = call.func.value
        given = [argument.value for argument in call.args if argument.keyword is None]
        if self.module.value(owner).kind is Kind.ACCELERATOR:
            return given[0] if given and not self._divides(owner) else None
        if given:
            return None
        return owner if self.module.value(owner).kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.BATCH) else None

    def _divides(self, engine: cst.BaseExpression) -> bool:
        """Whether an engine may divide the loss: one of accelerate does as it was told when it was made."""
        value = self.module.value(engine)
        if (value.cls or "").endswith("Fabric"):
            return False
        made = value.origin
        if not isinstance(made, cst.Call) or any(argument.star for argument in made.args):
            return True
        return any(
            argument.keyword is None or argument.keyword.value in _ACCUMULATING for argument in made.args
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
        """``n`` where an event happens in every n-th iteration."""
        return self._divisor_around(event) if self._is_throttled(event) else None

    def _named_count(self, event: Event) -> cst.BaseExpression | None:
        """``n`` where an event happens once a counter has got ``n`` further: ``i - last >= accumulate``."""
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
            count = self._divisor(test, path, 3)
            if count is not None:
                return count
        return None

    def _tests(self, event: Event) -> Iterator[tuple[cst.BaseExpression, Path]]:
        """The conditions on which an event happens within the iteration, with the calls that lead to each.

        Those in the code of the loop come first, then those in the functions that it calls.
        """
        for depth, node in enumerate((*event.path, event.node)):
            flow, within = self.module.home(node).flow, self.iteration.loop if depth == 0 else None
            for decision in flow.decisions(node, within=within):
                yield decision.test, event.path[:depth]

    def _divisor(self, test: cst.BaseExpression, path: Path, hops: int) -> cst.BaseExpression | None:
        """``n`` of ``i % n`` in a condition, in what its names are given, or in what a caller passes."""
        home = self.module.home(test)
        for node in (test, *home.tree.descendants(test)):
            if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
                return node.right
            if isinstance(node, cst.Name) and hops and home.names.is_read(node):
                for binding in home.bindings(node):
                    given = self._given(home, binding, path)
                    found = self._divisor(*given, hops - 1) if given is not None else None
                    if found is not None:
                        return found
            function = home.callee(node) if isinstance(node, cst.Call) and hops else None
            if isinstance(node, cst.Call) and isinstance(function, cst.FunctionDef):
                for answer in returns(home, function):
                    found = self._divisor(answer, (*path, node), hops - 1)
                    if found is not None:
                        return found
        return None

    def _given(self, home: Module, binding: Binding, path: Path) -> tuple[cst.BaseExpression, Path] | None:
        """What a name of a condition is given in the iteration, with the calls that lead there."""
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
        """Whether gradients are computed in the branch of a step as well: another model has its turn."""
        return any(
            isinstance(branch.construct, cst.If)
            and self.tree.contains(branch.construct.body, backward.outermost)
            for step in steps
            for branch in self.module.flow.branches(step.outermost, within=self.iteration.loop)
            for backward in self.iteration.of(Act.BACKWARD)
        )

    # ------------------------------------------------------------------ divided by other means

    def _divided_elsewhere(self, count: cst.BaseExpression) -> bool:
        """Whether anything is divided by the number of batches: a rate, the loss of a helper.

        That is in the file of the loop, or in that of a function that the iteration calls.
        """
        name = last_name(count)
        if name is None:
            return False
        files = dict.fromkeys([self.module, *map(self.module.home, self.iteration.functions)])
        trees = [each.tree for each in files]
        divisions = [
            (node.left, node.right)
            for tree in trees
            for node in tree.nodes(cst.BinaryOperation)
            if isinstance(node.operator, cst.Divide)
        ]
        divisions += [
            (node.target, node.value)
            for tree in trees
            for node in tree.nodes(cst.AugAssign)
            if isinstance(node.operator, cst.DivideAssign)
        ]
        return any(
            name in self.tree.names_in(divisor)
            and not self._is_count(dividend)
            and not self._is_reported(dividend)
            for dividend, divisor in divisions
        )

    def _is_count(self, dividend: cst.BaseExpression) -> bool:
        """Whether what is divided counts batches or samples, and is no loss."""
        if self.module.value(dividend).kind is Kind.NUMBER:
            return True
        words = self.tree.names_in(dividend)
        return not any(map(names_loss, words)) and any(has(word, *_COUNTS) for word in words)

    def _is_reported(self, dividend: cst.BaseExpression) -> bool:
        """Whether what is divided is for a report, and not for the backward pass."""
        calls = [node for node in self.tree.descendants(dividend) if isinstance(node, cst.Call)]
        return any(
            (isinstance(call.func, cst.Attribute) and call.func.attr.value in ("item", "detach"))
            or self.module.qualified(call.func) == "builtins.float"
            for call in calls
        )

    def _handles_gradients(self) -> bool:
        """Whether the iteration changes gradients by hand, so that it may divide them."""
        for holder in (self.iteration.loop, *self.iteration.functions):
            for node in self.tree.descendants(holder):
                if isinstance(node, cst.Attribute) and node.attr.value == "grad":
                    if not isinstance(self.tree.parent(node), (cst.Comparison, cst.AssignTarget)):
                        return True
        return False

    # ------------------------------------------------------------------ the loss

    @solved(_Scale.UNSEEN)
    def _scale(self, node: cst.BaseExpression, count: cst.BaseExpression) -> _Scale:
        """By what an expression is divided, as far as the file shows how it is computed."""
        match node:
            case cst.Name():
                return self._scale_of_name(node, count)
            case cst.BinaryOperation():
                return self._scale_of_operation(node, count)
            case cst.UnaryOperation():
                return self._scale(node.expression, count)
            case cst.IfExp():
                return max(self._scale(node.body, count), self._scale(node.orelse, count))
            case cst.Call():
                return self._scale_of_call(node, count)
            case cst.Attribute(attr=cst.Name("loss"), value=output) | cst.Subscript(value=output):
                # What a model computes beside its outputs.
                return self._scale(output, count)
            case _:
                return _Scale.UNKNOWN

    def _scale_of_name(self, name: cst.Name, count: cst.BaseExpression) -> _Scale:
        found = [_Scale.UNKNOWN] if not self.module.bindings(name) else []
        for binding in self.module.bindings(name):
            if binding.value is None or binding.kind not in (
                BindingKind.ASSIGN,
                BindingKind.AUGMENT,
                BindingKind.WITH,
            ):
                return _Scale.UNKNOWN
            statement = self.tree.parent(binding.node)
            if isinstance(statement, cst.AugAssign):
                if not isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign)):
                    return _Scale.DIVIDED
                # ``loss += penalty``
                scope = binding.scope.bindings.get(binding.name, ())
                earlier = [b.value for b in scope if b.kind is BindingKind.ASSIGN and b.value is not None]
                found += [self._scale(value, count) for value in earlier]
                continue
            parts = self._parts(binding)
            found += [self._scale(part, count) for part in parts] or [_Scale.UNKNOWN]
        return max(found)

    def _parts(self, binding: Binding) -> list[cst.BaseExpression]:
        """The expressions that a name stands for, if it is one of several that are unpacked."""
        assert binding.value is not None
        match binding.value, binding.path:
            case value, ():
                return [value]
            case cst.Tuple(elements=elements), (int(index),) if index < len(elements):
                return [elements[index].value]
            case cst.Call() as call, (int(index),):
                callee = self.module.callee(call)
                if callee is None:
                    # What a model computes beside its outputs comes first.
                    return [call] if index == 0 and self.module.value(call.func).kind is Kind.MODULE else []
                returned = [r.value for r in self.tree.nodes(cst.Return) if self.module.function(r) is callee]
                found = [r.elements[index].value for r in returned if _has(r, index)]
                return found if len(found) == len(returned) else []
            case _:
                return []

    def _scale_of_operation(self, node: cst.BinaryOperation, count: cst.BaseExpression) -> _Scale:
        left, right = node.left, node.right
        if isinstance(node.operator, (cst.Add, cst.Subtract)):
            sides = [side for side in (left, right) if self.module.value(side).kind is not Kind.NUMBER]
            # Terms of other files add to a loss; what is divided is divided as a whole, mostly.
            scales = [scale for side in sides if (scale := self._scale(side, count)) is not _Scale.UNSEEN]
            return _Scale.DIVIDED if _Scale.DIVIDED in scales else min(scales, default=_Scale.UNKNOWN)
        if isinstance(node.operator, cst.Multiply):
            if self._is_weight(left, count):
                return self._scale(right, count)
            return self._scale(left, count) if self._is_weight(right, count) else _Scale.DIVIDED
        if isinstance(node.operator, cst.Divide) and self._is_weight(right, count):
            return self._scale(left, count)
        return _Scale.DIVIDED

    def _is_weight(self, node: cst.BaseExpression, count: cst.BaseExpression) -> bool:
        """Whether a factor weighs one loss against others: a number that is not that of the batches."""
        constant = self.module.value(node).constant
        number = self.module.value(count).constant
        if isinstance(constant, (int, float)):
            if number is MISSING:
                return isinstance(node, (cst.Integer, cst.Float))
            return isinstance(number, int) and constant not in (number, 1 / number)
        word = last_name(node)
        return (
            isinstance(node, (cst.Name, cst.Attribute))
            and has(word, Role.FACTOR)
            and not has(word, *_DIVISORS)
        )

    def _scale_of_call(self, call: cst.Call, count: cst.BaseExpression) -> _Scale:
        dotted = self.module.qualified(call.func)
        name = last_name(call.func)
        if dotted is not None:
            return self._reduced(call) if dotted in FUNCTIONAL_LOSSES else _Scale.UNKNOWN
        value = self.module.value(call.func)
        callee = self.module.callee(call)
        if value.kind is Kind.MODULE:
            if value.cls in NN_LOSSES:
                made = value.origin
                return self._reduced(made) if isinstance(made, cst.Call) else _Scale.UNKNOWN
            if callee is None:
                return _Scale.AVERAGE
        if callee is not None:
            returned = [r.value for r in self.tree.nodes(cst.Return) if self.module.function(r) is callee]
            scales = [_Scale.UNKNOWN if r is None else self._scale(r, count) for r in returned]
            return max(scales, default=_Scale.UNKNOWN)
        if isinstance(call.func, cst.Attribute):
            owner = call.func.value
            if name in _DIVIDING:
                return _Scale.DIVIDED
            if name in _SUMMING:
                return _Scale.UNKNOWN
            if name == "scale" and call.args and "scaler" in (last_name(owner) or "scaler"):
                return self._scale(call.args[0].value, count)
            if name == "scale_loss" and call.args:
                return self._scale(call.args[0].value, count)
            if name in _SAME:
                inner = self._scale(owner, count)
                return _Scale.AVERAGE if name == "mean" and inner is _Scale.UNKNOWN else inner
        return _Scale.AVERAGE if names_criterion(name) else _Scale.UNKNOWN

    def _reduced(self, call: cst.Call) -> _Scale:
        """How a loss of torch is reduced, by the call that computes it or makes the module for it."""
        reduction = self.module.argument(call, "reduction")
        old = [self.module.argument(call, word) for word in ("size_average", "reduce")]
        if any(argument.given or argument.unknown for argument in old):
            return _Scale.UNKNOWN
        if reduction.absent or reduction.constant == "mean":
            return _Scale.AVERAGE
        return _Scale.UNKNOWN


def _has(value: cst.BaseExpression | None, index: int) -> TypeGuard[cst.Tuple]:
    return isinstance(value, cst.Tuple) and index < len(value.elements)
