"""Models that are put into evaluation mode in a training loop, and trained on in that mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import DEPENDENT_ON_MODE
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.flow.graph import Decision
from torchlint.semantics.iterations import (
    HARMLESS,
    LIBRARIES,
    Act,
    Event,
    Iteration,
    Iterations,
    Subject,
    bound_in,
    holds_model,
)
from torchlint.semantics.lexicon import Role, begins, ends, has, names_criterion
from torchlint.semantics.names import Scope
from torchlint.semantics.program import Program
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import sole
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Functions of other files that may put a model that they get hold of into training mode, by their names.
_MAY_TRAIN = (*(Role.TRAINING, Role.BEGINNING, Role.EPOCH, Role.SWITCHING, Role.LOADING, Role.CLEARING),)
_PREPARES = (Role.MAKING, Role.LOADING, Role.BEGINNING)
_EQUAL = (cst.Equal, cst.GreaterThanEqual, cst.GreaterThan)
_UNEQUAL = (cst.NotEqual, cst.LessThan, cst.LessThanEqual)
_PREDICTS = (
    Role.EVALUATION,
    Role.HELD_OUT,
    Role.TEST,
    Role.GENERATION,
    Role.INFERENCE,
    Role.PREDICTION,
    Role.SAMPLING,
    Role.SCORE,
    Role.METRIC,
    Role.DRAWING,
    Role.TRANSLATION,
)
_PARTS = frozenset({"parameters", "named_parameters"})


def _counts_batches(name: str | None) -> bool:
    """Return whether a name is that of a number of batches in an epoch: ``steps_per_epoch``."""
    if has(name, Role.EPOCH):
        return has(name, Role.ITERATION)
    return ends(name, Role.LENGTH) or (begins(name, Role.NUMBER) and ends(name, Role.BATCH, Role.LOADER))


@dataclass(frozen=True, slots=True)
class LeftEvaluating:
    """A model that is left in evaluation mode; ``step`` trains it on in the next iteration."""

    step: Event
    iteration: Iteration


def left_evaluating(module: Module, call: cst.Call) -> LeftEvaluating | None:
    """Return how a model is trained on in the evaluation mode that a call sets, if that is proved."""
    assert isinstance(call.func, cst.Attribute)
    if has(last_name(call.func.value), Role.COPY):
        return None
    if module.value(call.func.value).kind is not Kind.MODULE:
        return None
    for iteration in Iterations.of(module).around(call):
        for event in iteration.at(call, Act.EVAL):
            if event.subject is not None:
                step = _Search(module.home(iteration.loop), iteration).trained_on(event, event.subject)
                if step is not None:
                    return LeftEvaluating(step, iteration)
    return None


class _Search:
    """One iteration, looked through for what is done to the mode of a model."""

    def __init__(self, module: Module, iteration: Iteration) -> None:
        self.iteration = iteration
        self.module = module
        self.tree = module.tree

    def trained_on(self, event: Event, model: Subject) -> Event | None:
        """Return the step that trains the model on; None if the mode may be reset, or is meant."""
        iteration = self.iteration
        steps = [step for step in iteration.of(Act.STEP) if step.subject is not None]
        backwards = iteration.of(Act.BACKWARD)
        if not steps or not backwards or not iteration.complete or model.place is None:
            return None
        if any(not self._is_other(switch.subject, model) for switch in iteration.of(Act.TRAIN)):
            return None
        if not self._evaluates(event, model, backwards) or self._happens_at_the_end(event):
            return None
        step = next((step for step in steps if self._trains(step, model)), None)
        if step is None or self._is_made_inside(model):
            return None
        known = {event.node for event in iteration.events}
        if any(self._may_train(foreign) for foreign, _ in iteration.foreign if foreign not in known):
            return None
        if self._meant(model) or not self._depends_on_mode(model):
            return None
        return step

    # ------------------------------------------------------------------ the same model

    def _is_same(self, one: Subject, other: Subject) -> bool:
        if one.is_certainly(other):
            return True
        origin = self._origin(one)
        if origin is None or origin is not self._origin(other):
            return False
        # What a function makes may be made several times.
        function = self.module.function(origin)
        return function is None or len(self.module.callers(function)) <= 1

    def _is_other(self, one: Subject | None, other: Subject) -> bool:
        """Return whether two are surely different models."""
        if one is None or one.is_certainly(other):
            return False
        origins = one.value.origin, other.value.origin
        if None not in origins:
            return origins[0] is not origins[1]
        classes = one.value.definitions, other.value.definitions
        return one.place is not None and all(classes) and classes[0].isdisjoint(classes[1])

    def _origin(self, model: Subject) -> cst.CSTNode | None:
        """Return what makes a model, in whichever file; None if that cannot be told."""
        return model.value.origin or sole(Program.of(self.module).made(model.node))

    # ------------------------------------------------------------------ what is trained

    def _trains(self, step: Event, model: Subject) -> bool:
        """Return whether an optimizer steps the parameters of the model."""
        assert step.subject is not None
        origin = step.subject.value.origin
        if isinstance(origin, cst.Call) and origin.args:
            owners = [
                Iterations.of(self.module).subject(node.value, ())
                for node in _parts(self.module, origin.args[0].value)
            ]
            if owners:
                return any(self._is_same(owner, model) for owner in owners)
        return self._is_only_model(model)

    def _is_only_model(self, model: Subject) -> bool:
        """Return whether the losses of the iteration come from this model, and no other takes part."""
        passes = [event for event in self.iteration.of(Act.FORWARD) if not self._is_criterion(event)]
        run = {event.node for event in passes}
        # What a model runs in its own pass is a part of it.
        whole = [event for event in passes if run.isdisjoint(event.path)]
        trained = [event for event in whole if Backpropagation.of(self.module).reaches(event.node)]
        return bool(trained) and all(
            event.subject is not None and self._is_same(event.subject, model) for event in trained
        )

    def _is_criterion(self, event: Event) -> bool:
        assert event.subject is not None
        value = event.subject.value
        names = (value.cls, *(one.name.value for one in value.definitions if isinstance(one, cst.ClassDef)))
        said = any(name is not None and name.endswith("Loss") for name in names)
        return said or names_criterion(last_name(event.subject.node))

    # ------------------------------------------------------------------ what is meant

    def _evaluates(self, event: Event, model: Subject, backwards: list[Event]) -> bool:
        """Return whether the model is put into evaluation mode to be evaluated, and not to be trained in it.

        That is so in a function that does not train, behind the training of the iteration, in a phase in
        which nothing is trained, and before the training if the model is used in between.
        """
        if event.path and all(backward.path[:1] != event.path[:1] for backward in backwards):
            return True
        events = self.iteration.events
        if events.index(event) > max(events.index(backward) for backward in backwards):
            return True
        if all(self._in_different_phases(event, backward) for backward in backwards):
            return True
        return self._is_used_between(event, model, backwards)

    def _in_different_phases(self, event: Event, backward: Event) -> bool:
        """Return whether an inner loop runs the two by turns: ``for phase in ("train", "val")``."""
        return any(
            self._excludes(one, other)
            for one in self._conditions(event.outermost)
            for other in self._conditions(backward.outermost)
        )

    def _conditions(self, node: cst.CSTNode) -> Iterator[Decision]:
        """Yield the decisions on the targets of inner loops that lead to a node."""
        for loop in self.module.flow.loops(node):
            if not isinstance(loop, cst.For) or not self.tree.contains(self.iteration.loop, loop):
                continue
            if loop is self.iteration.loop:
                return
            targets = self.tree.names_in(loop.target)
            for branch in self.module.flow.branches(node, within=loop):
                tested = self.tree.descendants(branch.test)
                if any(isinstance(n, cst.Name) and n.value in targets for n in tested):
                    yield branch

    def _excludes(self, one: Decision, other: Decision) -> bool:
        source = self.tree.source
        if source(one.test) == source(other.test):
            return one.holds is not other.holds
        match one, other:
            case (
                Decision(cst.Comparison(left=a, comparisons=[cst.ComparisonTarget(cst.Equal(), x)]), True),
                Decision(cst.Comparison(left=b, comparisons=[cst.ComparisonTarget(cst.Equal(), y)]), True),
            ):
                values = self.module.value(x).constant, self.module.value(y).constant
                return source(a) == source(b) and MISSING not in values and values[0] != values[1]
            case _:
                return False

    def _is_used_between(self, event: Event, model: Subject, backwards: list[Event]) -> bool:
        """Return whether an event and the training have a prediction in between: ``translate(model)``."""
        order = self.tree.order
        training = min(order[backward.outermost] for backward in backwards)
        used = (call for call in self.tree.nodes(cst.Call) if order[event.outermost] < order[call] < training)
        subject = Iterations.of(self.module).subject
        return not event.path and any(
            has(last_name(call.func), *_PREDICTS)
            and any(subject(argument.value, ()).is_certainly(model) for argument in call.args)
            for call in used
        )

    def _happens_at_the_end(self, event: Event) -> bool:
        """Return whether the loop is left behind the evaluation, or it comes with the last iteration."""
        node = event.outermost
        loop = self.iteration.loop
        if self.module.flow.ends_loop(node, loop):
            return True
        counters = self.tree.names_in(loop.target) if isinstance(loop, cst.For) else set()
        # ``if i + 1 < len(loader): continue``
        return any(
            self._picks_one(decision.test, counters, otherwise=not decision.holds)
            for decision in self.module.flow.decisions(node, within=loop)
        )

    def _picks_one(self, test: cst.BaseExpression, counters: set[str], *, otherwise: bool) -> bool:
        """Return whether it picks one iteration: ``epoch == epochs - 1``, ``(i + 1) % len(loader) == 0``."""
        nodes = list(self.tree.descendants(test))
        modulo = [
            n for n in nodes if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Modulo)
        ]
        if any(_counts_batches(last_name(n.right)) for n in modulo):
            return True
        counted = any(isinstance(n, cst.Name) and n.value in counters for n in nodes)
        picking = _UNEQUAL if otherwise else _EQUAL
        last = any(isinstance(n, cst.Name) and has(n.value, Role.FINAL) for n in nodes)
        return (counted and not modulo and any(isinstance(n, picking) for n in nodes)) or last

    def _meant(self, model: Subject) -> bool:
        """Return whether the model is in evaluation mode before the loop already: it is trained in it."""
        order = self.tree.order
        loop = self.iteration.loop
        function = self.module.function(loop)
        inside = {event.node for event in self.iteration.of(Act.EVAL)}
        switches = (
            call
            for module in (self.module, *self.module.companions("eval", "train"))
            for name in ("eval", "train")
            for call in module.tree.calls_by_name.get(name, ())
        )
        for call in switches:
            if call in inside or not isinstance(call.func, cst.Attribute) or not self._turns_off(call):
                continue
            holder = self.module.function(call)
            if holder is function:
                before = order[call] < order[loop]
            else:
                name = holder.name.value if isinstance(holder, cst.FunctionDef) else ""
                before = holder is None or has(name, *_PREPARES)
            if before and not self._is_other(Iterations.of(self.module).subject(call.func.value, ()), model):
                return not self._turned_on(order[call], order[loop], function)
        return False

    def _turns_off(self, call: cst.Call) -> bool:
        if last_name(call.func) == "eval":
            return not call.args
        return bool(call.args) and self.module.value(call.args[0].value).constant is False

    def _turned_on(self, begin: int, end: int, function: cst.CSTNode | None) -> bool:
        """Return whether ``train()`` is called between two places of a function."""
        return any(
            begin < self.tree.order[call] < end
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "train"
            and not self._turns_off(call)
            and self.module.function(call) is function
            for call in self.tree.nodes(cst.Call)
        )

    # ------------------------------------------------------------------ the model

    def _is_made_inside(self, model: Subject) -> bool:
        """Return whether each iteration makes a model of its own."""
        if bound_in(self.module, self.iteration.loop, model.place):
            return True
        assert model.place is not None
        root = model.place[0]
        if isinstance(root, Scope) and root.node in self.iteration.functions:
            return True
        origin = model.value.origin
        if origin is None:
            return False
        function = self.module.function(origin)
        return self.tree.contains(self.iteration.loop, origin) or function in self.iteration.functions

    def _depends_on_mode(self, model: Subject) -> bool:
        """Return whether the model, as far as the file shows it, differs in evaluation mode."""
        seen: set[cst.CSTNode] = set()
        definition = model.value.definition
        waiting: list[cst.CSTNode] = [definition] if definition is not None else []
        if isinstance(model.value.origin, cst.Call):
            waiting.append(model.value.origin)
        if not waiting:
            return True
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            if isinstance(current, cst.ClassDef) and self.module.classes.info(current).opaque:
                return True
            for call in self.tree.descendants(current):
                if not isinstance(call, cst.Call):
                    continue
                dotted = self.module.qualified(call.func)
                inner = self.module.value(call.func).definition or self.module.callee(call)
                if dotted is None and inner is not None:
                    waiting.append(inner)
                elif dotted in DEPENDENT_ON_MODE or not self._is_known(call, dotted):
                    return True
        return False

    def _is_known(self, call: cst.Call, dotted: str | None) -> bool:
        if dotted is not None:
            return dotted.startswith(LIBRARIES)
        # A method of a tensor, a layer of the instance, ``super()``.
        return isinstance(call.func, cst.Attribute)

    # ------------------------------------------------------------------ functions of other files

    def _may_train(self, call: cst.Call) -> bool:
        """Return whether a function that the file does not show may put the model into training mode."""
        dotted = self.module.qualified(call.func)
        if dotted is not None and dotted.startswith(LIBRARIES):
            return False
        if not isinstance(call.func, (cst.Name, cst.Attribute)):
            # ``getattr(self, name)()``
            given = (*call.args, *(call.func.args if isinstance(call.func, cst.Call) else ()))
            return any(holds_model(self.module, argument.value) for argument in given)
        if not has(last_name(call.func) or "train", *_MAY_TRAIN):
            return False
        owner = call.func.value if isinstance(call.func, cst.Attribute) and dotted is None else None
        if owner is not None and has(last_name(owner), *HARMLESS):
            return False
        handed = [*(argument.value for argument in call.args), *([owner] if owner is not None else [])]
        return any(holds_model(self.module, node) for node in handed)


@remembered
def _parts(module: Module, node: cst.BaseExpression) -> list[cst.Attribute]:
    """Return the ``model.parameters`` in what an optimizer is given."""
    found: list[cst.Attribute] = []
    waiting, seen = [node], {node}
    while waiting:
        for inner in module.tree.descendants(waiting.pop()):
            if isinstance(inner, cst.Attribute) and inner.attr.value in _PARTS:
                found.append(inner)
            elif isinstance(inner, cst.Name) and module.names.is_read(inner):
                for binding in module.bindings(inner):
                    value = binding.value
                    if isinstance(value, (cst.Call, cst.List, cst.Tuple, cst.ListComp)):
                        if value not in seen:
                            seen.add(value)
                            waiting.append(value)
    return found
