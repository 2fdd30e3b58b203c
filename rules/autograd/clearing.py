"""Optimizer steps taken with gradients that nothing has cleared since the step before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.conventions import CALLED_MODULE_NAME
from torchlint.semantics.iterations import (
    HARMLESS,
    HOLD_NO_MODEL,
    LIBRARIES,
    Act,
    Event,
    Iteration,
    Iterations,
    Subject,
    bound_in,
    holds_model,
    holds_optimizer,
)
from torchlint.semantics.lexicon import Role, begins, ends, has, names_optimizer
from torchlint.semantics.names import AttributeBinding, Binding
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What they are called that may well clear gradients of what they get hold of.
_MAY_CLEAR = (
    Role.CLEARING,
    Role.OPTIMIZER,
    Role.STEP,
    Role.TRAINING,
    Role.BACKPROPAGATION,
    Role.LEARNING,
    Role.BEGINNING,
)
_OPTIMIZER_METHODS = frozenset(
    {
        *(
            "step",
            "zero_grad",
            "state_dict",
            "load_state_dict",
            "add_param_group",
            "train",
            "eval",
            "__init__",
        ),
        # Options are called ``opt`` as well.
        *("get", "items", "keys", "values"),
    }
)
_MODULE_METHODS = frozenset(
    {
        *("apply", "bfloat16", "buffers", "children", "cpu", "cuda", "double", "eval", "extra_repr", "float"),
        *("forward", "get_parameter", "get_submodule", "half", "load_state_dict", "modules", "named_buffers"),
        *("named_children", "named_modules", "named_parameters", "no_sync", "parameters", "requires_grad_"),
        *("share_memory", "state_dict", "to", "train", "type", "compile", "values", "items", "keys"),
    }
)
_HOOKS = ("register_post_accumulate_grad_hook", "register_multi_grad_hook", "register_step_post_hook")


@dataclass(frozen=True, slots=True)
class Uncleared:
    """A step in a loop in which nothing clears the gradients that ``backward`` adds to.

    ``outside`` is where they are cleared once, before or around the loop, if anywhere.
    """

    step: Event
    backward: Event
    iteration: Iteration


def uncleared(module: Module, call: cst.Call) -> Uncleared | None:
    """Return how a step goes on with the gradients of the steps before; None if that cannot be proved."""
    if any(module.tree.mentions(hook) for hook in _HOOKS):
        return None
    for iteration in Iterations.of(module).running(call) if may_repeat(module, call) else ():
        found = _Search(module.home(iteration.loop), iteration).uncleared(call)
        if found is not None:
            return found
    for iteration in Iterations.of(module).entered(call):
        search = _Search(module.home(iteration.loop), iteration)
        found = search.uncleared(call)
        if found is not None and search.is_whole(call):
            return found
    return None


class _Search:
    """One iteration, looked through for what clears gradients."""

    def __init__(self, module: Module, iteration: Iteration) -> None:
        self.iteration = iteration
        self.module = module
        self.tree = module.tree

    def uncleared(self, call: cst.Call) -> Uncleared | None:
        iteration = self.iteration
        step = next(iter(iteration.at(call, Act.STEP)), None)
        backward = next(iter(iteration.of(Act.BACKWARD)), None)
        if step is None or backward is None or step.subject is None or step.loops or not iteration.complete:
            return None
        optimizer = step.subject
        if not self._is_plain(optimizer) or bound_in(self.module, iteration.loop, optimizer.place):
            return None
        if not self._only_steps(step):
            return None
        if any(not self._is_of_another(event.subject, optimizer) for event in iteration.of(Act.CLEAR)):
            return None
        if self._is_made_inside(optimizer) or self._runs_once(step) or self._runs_once(backward):
            return None
        if any(self._may_clear(foreign) for foreign, _ in iteration.foreign):
            return None
        return Uncleared(step, backward, iteration)

    def is_whole(self, call: cst.Call) -> bool:
        """Return whether a function that is called from outside is a training step
        that leaves nothing to others.

        It computes the loss itself, no method that it overrides does a part of it, and nothing else in the
        program clears these gradients.
        """
        iteration = self.iteration
        if not iteration.of(Act.FORWARD) or any(_is_super(call.func) for call, _ in iteration.foreign):
            return False
        steps = [event.subject for event in iteration.at(call, Act.STEP)]
        files = (self.module, *self.module.companions("grad"))
        clearings = set().union(*(Iterations.of(each).clearings for each in files))
        elsewhere = clearings - {event.node for event in iteration.of(Act.CLEAR)}
        return all(
            self._clears_another(node, step) for node in elsewhere for step in steps if step is not None
        )

    def _clears_another(self, clearing: cst.CSTNode, optimizer: Subject) -> bool:
        match clearing:
            case cst.Call(func=cst.Attribute(attr=cst.Name("zero_grad"), value=owner)):
                return self._is_of_another(Iterations.of(self.module).subject(owner, ()), optimizer)
            case _:
                return False

    # ------------------------------------------------------------------ the optimizer

    def _is_plain(self, optimizer: Subject) -> bool:
        """Return whether an optimizer is surely one of torch, whose ``step`` clears nothing."""
        value = optimizer.value
        if value.kind not in (Kind.OPTIMIZER, Kind.UNKNOWN) or optimizer.place is None:
            return False
        if value.definition is not None:
            return False
        if value.cls is not None:
            return value.cls.startswith("torch.optim.") or has(value.cls.rpartition(".")[2], Role.ALGORITHM)
        # By its name alone: what is handed in, or made by functions and optimizers of other files.
        return not any(self._is_wrapper(made) for made in _made(self.module, optimizer.node))

    def _is_wrapper(self, made: cst.BaseExpression) -> bool:
        """Return whether a call makes an instance of a class of another file
        that is not called after a method.
        """
        if not isinstance(made, cst.Call) or (self.module.qualified(made.func) or "").startswith("torch."):
            return False
        name = last_name(made.func) or ""
        return name[:1].isupper() and not has(name, Role.ALGORITHM)

    def _only_steps(self, step: Event) -> bool:
        """Return whether nothing but a closure is handed to a step:
        one that takes a loss may do everything.
        """
        assert isinstance(step.node, cst.Call) and step.subject is not None
        if not isinstance(step.node.func, cst.Attribute) or step.subject.node is not step.node.func.value:
            return True
        return all(
            self.module.value(argument.value).kind is Kind.FUNCTION
            or "closure" in (last_name(argument.value) or "").lower()
            for argument in step.node.args
        )

    def _is_of_another(self, cleared: Subject | None, optimizer: Subject) -> bool:
        """Return whether what is cleared is surely another optimizer, for other parameters."""
        if cleared is None or cleared.value.kind is not Kind.OPTIMIZER or cleared.is_certainly(optimizer):
            return False
        one, other = cleared.value.origin, optimizer.value.origin
        if not isinstance(one, cst.Call) or not isinstance(other, cst.Call) or one is other:
            return False
        return not (self._names(one) & self._names(other))

    def _names(self, call: cst.Call) -> set[str]:
        """Return the variables that an optimizer gets its parameters from, followed back."""
        found: set[str] = set()
        waiting = [argument.value for argument in call.args[:1]]
        seen: set[Binding] = set()
        while waiting:
            for node in self.tree.descendants(waiting.pop()):
                if isinstance(node, cst.Attribute) and not self.tree.is_called(node):
                    found.add(node.attr.value)
                if not isinstance(node, cst.Name) or not self.module.names.is_read(node):
                    continue
                if self.module.qualified(node) is not None:
                    continue
                found.add(node.value)
                for binding in self.module.bindings(node):
                    if binding.value is not None and binding not in seen:
                        seen.add(binding)
                        waiting.append(binding.value)
        return found - {"self"}

    def _is_made_inside(self, optimizer: Subject) -> bool:
        """Return whether the optimizer, or the model whose parameters it gets,
        is made anew in each iteration.
        """
        origin = optimizer.value.origin
        if origin is None:
            return False
        if self._is_inside(origin):
            return True
        if not isinstance(origin, cst.Call):
            return False
        for argument in origin.args[:1]:
            for node in self.tree.descendants(argument.value):
                if not isinstance(node, (cst.Name, cst.Attribute)):
                    continue
                made = self.module.value(node).origin
                if made is not None and self._is_inside(made):
                    return True
                if isinstance(node, cst.Name) and any(
                    self._is_inside(binding.node) for binding in self.module.bindings(node)
                ):
                    return True
        return False

    def _is_inside(self, node: cst.CSTNode) -> bool:
        if self.tree.contains(self.iteration.loop, node):
            return True
        function = self.module.function(node)
        return function is not None and function in self.iteration.functions

    def _runs_once(self, event: Event) -> bool:
        """Return whether the loop is left behind an event, so that it happens only once."""
        return self.module.flow.ends_loop(event.outermost, self.iteration.loop)

    # ------------------------------------------------------------------ functions of other files

    def _may_clear(self, call: cst.Call) -> bool:
        """Return whether a function that the file does not show may clear the gradients."""
        dotted = self.module.qualified(call.func)
        if dotted is not None and dotted.startswith(LIBRARIES):
            return False
        name = last_name(call.func)
        if name is None or not isinstance(call.func, (cst.Name, cst.Attribute)):
            # What ``getattr(self, name)()`` and ``handlers[i](...)`` run depends on what they are given.
            given = (*call.args, *(call.func.args if isinstance(call.func, cst.Call) else ()))
            return any(holds_optimizer(self.module, argument.value) for argument in given)
        if has(name, *HARMLESS) or self.module.value(call.func).kind is Kind.MODULE:
            return False
        if isinstance(call.func, cst.Attribute) and dotted is None:
            owner = call.func.value
            if self._is_scaler(owner):
                return False
            if not begins(name, *CALLED_MODULE_NAME) and self._method_may_clear(owner, name):
                return True
            if has(last_name(owner), *HARMLESS) or begins(name, *CALLED_MODULE_NAME):
                # ``ema.update(model)``
                return any(holds_optimizer(self.module, argument.value) for argument in call.args)
        if any(holds_optimizer(self.module, argument.value) for argument in call.args):
            return True
        return has(name, *_MAY_CLEAR) and any(holds_model(self.module, a.value) for a in call.args)

    def _method_may_clear(self, owner: cst.BaseExpression, name: str) -> bool:
        value = self.module.value(owner)
        if value.kind in HOLD_NO_MODEL or (value.kind is Kind.UNKNOWN and name in TENSOR_METHODS):
            return False
        if value.kind is Kind.OPTIMIZER or names_optimizer(last_name(owner)):
            return name not in _OPTIMIZER_METHODS
        if has(last_name(owner), *HARMLESS):
            return False
        if value.kind is Kind.MODULE:
            return name not in _MODULE_METHODS and has(name, *_MAY_CLEAR)
        if holds_optimizer(self.module, owner) and name not in self.module.names.attributes:
            # A method that is inherited, say; what is called by an attribute goes by its name.
            return True
        return has(name, *_MAY_CLEAR) and holds_model(self.module, owner)

    def _is_scaler(self, owner: cst.BaseExpression) -> bool:
        value = self.module.value(owner)
        named = value.kind is Kind.UNKNOWN and "scaler" in (last_name(owner) or "")
        return value.kind is Kind.SCALER or named


def wraps_optimizer(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a variable holds what another library calls an optimizer: ``ScheduledOptim(…)``.

    A method of optimization is called by its name (``Lion``); this may be anything that has one, with a
    ``zero_grad`` of its own.
    """
    return any(
        isinstance(made, cst.Call)
        and not (module.qualified(made.func) or "").startswith("torch.")
        and _is_wrapper_class(last_name(made.func) or "")
        for made in _made(module, node)
    )


def _is_wrapper_class(name: str) -> bool:
    return name[:1].isupper() and ends(name, Role.OPTIMIZER)


def _made(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Return what a variable or an attribute is bound to."""
    bindings: Iterable[Binding | AttributeBinding] = ()
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
    elif isinstance(node, cst.Attribute):
        bindings = module.names.attributes.get(node.attr.value, ())
    return (binding.value for binding in bindings if binding.value is not None)


def clearings_around(module: Module, found: Uncleared) -> Iterator[cst.CSTNode]:
    """Yield the clearings of the optimizer in the same function that the loop does not repeat,
    in source order.
    """
    assert found.step.subject is not None
    function = module.function(found.iteration.loop)
    for call in module.tree.nodes(cst.Call):
        match call.func:
            case cst.Attribute(attr=cst.Name("zero_grad"), value=owner) if module.function(call) is function:
                if Iterations.of(module).subject(owner, ()).is_certainly(found.step.subject):
                    yield call


def _is_super(method: cst.BaseExpression) -> bool:
    match method:
        case cst.Attribute(value=cst.Call(func=cst.Name("super"))):
            return True
        case _:
            return False
