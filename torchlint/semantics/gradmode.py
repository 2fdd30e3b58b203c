"""Whether autograd records at a place: decorators, contexts, statements, hooks, callers."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.api.frameworks import LIGHTNING_EVALUATION
from torchlint.semantics.conventions import uses_model
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Path, Source, Through, steps, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind


class Grad(IdentityEnum):
    """Whether operations are recorded for a backward pass; UNKNOWN where it depends."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


# Methods that a framework calls with autograd off, or of which it is not known.
_METHODS = {
    ("torch.autograd.Function", "forward"): Grad.OFF,
    ("torch.autograd.Function", "backward"): Grad.OFF,
    ("torchmetrics.Metric", "update"): Grad.OFF,
    ("transformers.Pipeline", "_forward"): Grad.OFF,
    ("transformers.Trainer", "prediction_step"): Grad.UNKNOWN,
    ("transformers.Trainer", "evaluation_loop"): Grad.UNKNOWN,
    ("transformers.Trainer", "evaluate"): Grad.UNKNOWN,
    ("transformers.Trainer", "predict"): Grad.UNKNOWN,
    ("transformers.Seq2SeqTrainer", "prediction_step"): Grad.UNKNOWN,
    ("transformers.Trainer", "compute_loss"): Grad.UNKNOWN,
}
_CONTEXTS = {
    "torch.no_grad": Grad.OFF,
    "torch.inference_mode": Grad.OFF,
    "torch.enable_grad": Grad.ON,
}
_SETTING_WORDS = ("set_grad_enabled", "enter_context", "__enter__")
_SETTERS = frozenset({"torch.set_grad_enabled", "torch._C._set_grad_enabled"})
# A context or decorator of another file with such a name probably turns autograd off.
_SUSPECTS = (Role.PREDICTION, Role.INFERENCE, Role.EVALUATION, Role.NO_GRADIENT)


class _Setting(NamedTuple):
    """A statement that sets the mode from there on; None: back to the one before."""

    call: cst.Call
    mode: Grad | None
    until: cst.CSTNode | None = None
    """The ``with`` at whose end the mode of before is back, if there is one."""


def _in_common(modes: frozenset[Grad]) -> Grad:
    """Return the mode in which all callers start a function."""
    return Grad.UNKNOWN if len(modes) > 1 else next(iter(modes), Grad.ON)


def grad(module: Module, node: cst.CSTNode) -> Grad:
    """Return whether autograd records what a node computes."""
    return GradModes.of(module).mode(node)


class GradModes(Part):
    """The grad modes of one file, computed on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self._sets_modes = any(self.tree.mentions(word) for word in _SETTING_WORDS)

    @remembered
    def mode(self, node: cst.CSTNode) -> Grad:
        """Return whether autograd records what ``node`` computes."""
        inside, function = self._inside(node)
        if inside is not None:
            return inside
        return _in_common(self._modes_at_start(function)) if function is not None else Grad.ON

    # ------------------------------------------------------------------ inside a function

    def _inside(self, node: cst.CSTNode) -> tuple[Grad | None, Function | None]:
        """Return what the function around ``node`` itself does to the mode there, and that function."""
        root = self.module.flow.root(node)
        function = None if isinstance(root, cst.Module) else root
        for item in self.module.flow.contexts(node):
            mode = self._context(item.item)
            if mode is not None:
                return self._stated(node, self.tree.parents[item], function) or mode, None
        return self._stated(node, root, function), function

    @solved({})
    def _settings(self, root: cst.CSTNode) -> dict[Function | None, list[_Setting]]:
        """Return the statements that set the mode from there on, by function, in source order."""
        found: dict[Function | None, list[_Setting]] = {}
        for call in self.tree.nodes(cst.Call):
            if isinstance(self.tree.parent(call), (cst.Expr, cst.Assign)):
                setting = self._setting(call)
                if setting is not None:
                    found.setdefault(self.module.function(call), []).append(setting)
        return found

    def _setting(self, call: cst.Call) -> _Setting | None:
        if self.names.qualified(call.func) in _SETTERS and call.args:
            argument = call.args[0].value
            return _Setting(call, None if self._is_saved(argument) else self._switched(argument))
        match call.func:
            case cst.Attribute(attr=cst.Name("enter_context"), value=stack) if len(call.args) == 1:
                mode, until = self._context(call.args[0].value), self._unwinding(call, stack)
            case cst.Attribute(attr=cst.Name("__enter__"), value=context):
                mode, until = self._context(context), None
            case _:
                return None
        return _Setting(call, mode, until) if mode is not None else None

    def _unwinding(self, call: cst.Call, stack: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the ``with`` that unwinds an exit stack in which ``call`` enters something."""
        opened = [binding.value for binding in self.names.bindings(stack)]
        blocks = (self.tree.parents[item] for item in self.module.flow.contexts(call) if item.item in opened)
        return next(blocks, None)

    def _is_saved(self, node: cst.CSTNode) -> bool:
        """Return whether this is the mode of before, kept in a variable."""
        if isinstance(node, cst.Name):
            return any(
                isinstance(b.value, cst.Call)
                and self.names.qualified(b.value.func) in ("torch.is_grad_enabled", *_SETTERS)
                for b in self.names.bindings(node)
            )
        return False

    def _stated(self, node: cst.CSTNode, limit: cst.CSTNode, function: Function | None) -> Grad | None:
        """Return what the statements of the same function above ``node`` leave in force, inside ``limit``."""
        if not self._sets_modes:
            return None
        flow, order = self.module.flow, self.tree.order
        settings = [
            setting
            for setting in self._settings(self.tree.root).get(function, ())
            if self.tree.contains(limit, setting.call)
            and (setting.until is None or self.tree.contains(setting.until, node))
        ]
        if not settings:
            return None
        before = bisect_left(settings, order[node], key=lambda setting: order[setting.call])
        if before:
            call, mode, _ = settings[before - 1]
            if flow.certainly_before(call, node):
                return mode
            if all(other.mode == mode for other in settings):
                return Grad.UNKNOWN if mode is not Grad.ON else None
            # Of the loops around a statement it is taken that they have iterations.
            return Grad.UNKNOWN if flow.is_conditional(call) else mode
        # What comes later in a loop is in force when the loop comes round again.
        last = settings[-1]
        if any(self.tree.contains(loop, last.call) for loop in flow.statement_loops(node)[:1]):
            return None if last.mode in (None, Grad.ON) else Grad.UNKNOWN
        return None

    def _switched(self, argument: cst.BaseExpression) -> Grad:
        constant = self.module.value(argument).constant
        if constant is MISSING or constant is None:
            return Grad.UNKNOWN
        return Grad.ON if constant else Grad.OFF

    # ------------------------------------------------------------------ contexts

    def _context(self, node: cst.BaseExpression) -> Grad | None:
        """Return what entering this context manager does; None: nothing to the grad mode."""
        modes = self._entered(node)
        return next(iter(modes), None) if len(modes) < 2 else Grad.UNKNOWN

    @traced(Through.RETURNS)
    def _entered(self, node: cst.CSTNode, path: Path) -> Grad | None:
        """Return the modes that entering what a context manager comes from turns on."""
        match node:
            case cst.Call():
                return self._made(node)
            case cst.Param(name=cst.Name(name)):
                return Grad.UNKNOWN if has(name, *_SUSPECTS) else None
            case cst.Name() | cst.Attribute() if not self._is_shown(node):
                return Grad.UNKNOWN if has(last_name(node), *_SUSPECTS) else None
            case _:
                return None

    def _is_shown(self, node: cst.Name | cst.Attribute) -> bool:
        """Return whether the file shows what a name or attribute is assigned."""
        onto = steps(self.module, Source(node)) or ()
        return any(steps(self.module, source) is not None for source in onto)

    def _made(self, call: cst.Call) -> Grad | None:
        """Return what entering the context manager that a call makes does to the grad mode."""
        qualified = self.names.qualified(call.func)
        if qualified == "torch.inference_mode" and call.args:
            return Grad.OFF if self._switched(call.args[0].value) is Grad.ON else Grad.UNKNOWN
        if qualified in _CONTEXTS:
            return _CONTEXTS[qualified]
        if qualified in _SETTERS and call.args:
            return self._switched(call.args[0].value)
        function = self.module.callee(call)
        made = self.module.value(call.func).definition
        if isinstance(function, cst.FunctionDef) and function.name.value == "__init__":
            made = self.module.classes.owner(function)
        if isinstance(made, cst.ClassDef):
            return Grad.UNKNOWN if self._switches_when_entered(made) else None
        if isinstance(function, cst.FunctionDef):
            return self._managed(function)
        return Grad.UNKNOWN if has(last_name(call.func), *_SUSPECTS) else None

    def _switches_when_entered(self, cls: cst.ClassDef) -> bool:
        """Return whether entering an instance of a class meddles with the mode at all."""
        enter = self.module.classes.info(cls).method("__enter__")
        return enter is not None and any(
            isinstance(part, (cst.Name, cst.Attribute))
            and (self.names.qualified(part) in _CONTEXTS or self.names.qualified(part) in _SETTERS)
            for part in self.tree.descendants(enter)
        )

    def _managed(self, function: cst.FunctionDef) -> Grad | None:
        """Return what holds at the ``yield`` of a context manager written as a generator."""
        found = {self._inside(node)[0] for node in self.module.home(function).flow.yields(function)}
        return next(iter(found), None) if len(found) < 2 else Grad.UNKNOWN

    # ------------------------------------------------------------------ functions

    @solved(frozenset())
    def _modes_at_start(self, function: Function) -> frozenset[Grad]:
        """Return the modes in which a function starts: its decorators, its framework, its callers tell."""
        modes, onward = self._started_in(function)
        return frozenset(modes).union(*map(self._modes_at_start, dict.fromkeys(onward)))

    def _started_in(self, function: Function) -> tuple[list[Grad], list[Function]]:
        """Return the modes in which a function starts, and the functions that it starts in the mode of."""
        own = self._own_entry(function)
        if own is not None:
            return [own], []
        places: list[cst.BaseExpression | Function] = [*self.module.callers(function)]
        around = [self._inside(place) for place in places or [function]]
        modes = [inside or Grad.ON for inside, outer in around if inside is not None or outer is None]
        return modes, [outer for inside, outer in around if inside is None and outer is not None]

    def _own_entry(self, function: Function) -> Grad | None:
        """Return what the function itself shows; None if its callers, or its maker, decide."""
        if isinstance(function, cst.FunctionDef):
            for decorator in reversed(function.decorators):
                mode = self._decorated(decorator.decorator)
                if mode is not None:
                    return mode
            mode = self._hooked(function)
            if mode is None:
                mode = self._wrapped(function)
            if mode is not None:
                return mode
        if isinstance(function, cst.Lambda) or self.module.callers(function):
            return None
        if self.module.function(function) is not None:
            # A closure without a known call runs under its maker's mode, as far as is known.
            return None
        owner = self.module.classes.owner(function)
        if (
            owner is not None
            and function.name.value != "forward"
            and not function.name.value.startswith("__")
        ):
            info = self.module.classes.info(owner)
            part = info.kind is Kind.MODULE and not info.lightning and not uses_model(function.name.value)
            part = part and not self._goes_over_loader(function)
            if part or (info.opaque and (info.lightning or not self._sets_its_mode(function))):
                # Whoever has the instance, or a base class of another file, calls it in any mode.
                return Grad.UNKNOWN
        return self._global

    def _goes_over_loader(self, function: Function) -> bool:
        """Return whether a function goes over all of a loader, as what trains or evaluates does."""
        return any(
            isinstance(node, cst.For) and self.module.value(node.iter).kind is Kind.LOADER
            for node in self.tree.descendants(function.body)
        )

    def _sets_its_mode(self, function: Function) -> bool:
        """Return whether a function trains or evaluates a model, so that autograd is up to it, too."""
        return any(
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and (node.func.attr.value == "backward" or (node.func.attr.value == "eval" and not node.args))
            and self.module.function(node) is function
            for node in self.tree.descendants(function.body)
        )

    @property
    def _global(self) -> Grad:
        """The mode that the module's own statements leave for the functions it defines."""
        if not self._sets_modes:
            return Grad.ON
        modes = {setting.mode for setting in self._settings(self.tree.root).get(None, ())}
        if not modes or modes == {Grad.ON}:
            return Grad.ON
        return Grad.OFF if modes == {Grad.OFF} else Grad.UNKNOWN

    def _hooked(self, function: cst.FunctionDef) -> Grad | None:
        owner = self.module.classes.owner(function)
        if owner is None:
            return None
        info = self.module.classes.info(owner)
        name = function.name.value
        if info.lightning and LIGHTNING_EVALUATION.match(name):
            return Grad.OFF
        for base in info.bases:
            mode = _METHODS.get((base, name))
            if mode is not None:
                return mode
        return None

    def _decorated(self, decorator: cst.BaseExpression) -> Grad | None:
        qualified = self.names.qualified(decorator)
        if qualified in _CONTEXTS:
            return _CONTEXTS[qualified]
        made = decorator.func if isinstance(decorator, cst.Call) else decorator
        definition = self.module.value(made).definition
        if isinstance(definition, cst.FunctionDef):
            mode = self._around(definition)
            suspect = mode is None and has(last_name(made), *_SUSPECTS)
            return Grad.UNKNOWN if suspect and self._hands_on(definition) else mode
        return self._context(decorator)

    def _around(self, decorator: cst.FunctionDef) -> Grad | None:
        """Return the mode in which a decorator of this file runs the function that it is given."""
        found: set[Grad | None] = set()
        for node in self.tree.descendants(decorator.body):
            match node:
                case cst.Call(func=cst.Name() as called):
                    if self._is_given(called):
                        found.add(self._inside(node)[0])
                case cst.Call(func=cst.Call(func=made, args=[]), args=[cst.Arg(value=cst.Name() as wrapped)]):
                    # ``return torch.no_grad()(function)``
                    if self._is_given(wrapped):
                        choices = (made.body, made.orelse) if isinstance(made, cst.IfExp) else (made,)
                        found.update(_CONTEXTS.get(self.names.qualified(each) or "") for each in choices)
        if not found:
            return None
        return found.pop() if len(found) == 1 else Grad.UNKNOWN

    def _hands_on(self, decorator: cst.FunctionDef) -> bool:
        """Return whether a decorator returns what something else makes of the function that it is given."""
        for call in self.tree.descendants(decorator.body):
            if not isinstance(call, cst.Call) or isinstance(self.tree.parent(call), cst.Expr):
                continue
            if isinstance(call.func, cst.Name) and self._is_given(call.func):
                continue
            if self.names.qualified(call.func) != "functools.wraps" and any(
                isinstance(argument.value, cst.Name) and self._is_given(argument.value)
                for argument in call.args
            ):
                return True
        return False

    def _is_given(self, name: cst.Name) -> bool:
        return any(binding.kind is BindingKind.PARAMETER for binding in self.names.bindings(name))

    def _wrapped(self, function: cst.FunctionDef) -> Grad | None:
        """Return the mode that ``evaluate = torch.no_grad()(evaluate)`` gives a function."""
        binding = self.names.by_node.get(function)
        if binding is None or self.module.classes.owner(function) is not None:
            return None
        for use in self.names.uses(binding):
            call = self.tree.parent(self.tree.parents[use])
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Call) and len(call.args) == 1:
                mode = self._context(call.func)
                if mode is not None and isinstance(self.tree.parent(call), cst.Assign):
                    return mode
        return None
