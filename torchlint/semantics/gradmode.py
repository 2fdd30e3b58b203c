"""Whether autograd records at a place: decorators, contexts, statements, hooks, callers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.conventions import uses_model
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.fixpoint import Answers
from torchlint.semantics.flow.graph import FUNCTIONS, Function
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.reach import gathered
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind


class Grad(IdentityEnum):
    """Whether operations are recorded for a backward pass; UNKNOWN where it depends."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


# Hooks that a framework calls with autograd off, or of which it is not known.
_LIGHTNING_OFF = re.compile(
    r"^(?:(?:validation|test|predict)_(?:step|step_end|epoch_end)"
    r"|on_(?:validation|test|predict|sanity_check)_\w+)$"
)
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
_HOLDERS: frozenset[type] = frozenset({cst.With, *FUNCTIONS})
_SETTING_WORDS = ("set_grad_enabled", "enter_context", "__enter__")
_SETTERS = frozenset({"torch.set_grad_enabled", "torch._C._set_grad_enabled"})
# A context or decorator of another file with such a name probably turns autograd off.
_SUSPECTS = (Role.PREDICTION, Role.INFERENCE, Role.EVALUATION, Role.NO_GRADIENT)

_Setters = dict[cst.CSTNode | None, list[tuple[cst.CSTNode, Grad | None]]]
_SETTERS_KNOWN: Answers[_Setters] = Answers(nothing={}, unknown={})
_NO_MODES: frozenset[Grad] = frozenset()
_STARTS = Answers(nothing=_NO_MODES, unknown=_NO_MODES)


def _in_common(modes: frozenset[Grad]) -> Grad:
    """The mode in which all callers start a function."""
    return Grad.UNKNOWN if len(modes) > 1 else next(iter(modes), Grad.ON)


def grad(module: Module, node: cst.CSTNode) -> Grad:
    """Whether autograd records what a node computes."""
    return GradModes.of(module).mode(node)


class GradModes(Part):
    """The grad modes of one file, worked out on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self._modes: dict[cst.CSTNode, Grad] = {}
        self._starts: dict[Function, frozenset[Grad]] = {}
        self._regions: dict[cst.CSTNode, cst.CSTNode] = {}
        self._sets_modes = any(self.tree.mentions(word) for word in _SETTING_WORDS)

    def mode(self, node: cst.CSTNode) -> Grad:
        """Whether autograd records what ``node`` computes."""
        found = self._modes.get(node)
        if found is None:
            inside, function = self._inside(node)
            if inside is not None:
                found = inside
            else:
                found = self._entry(function) if function is not None else Grad.ON
            if not self.module.fixpoint.busy:
                self._modes[node] = found
        return found

    # ------------------------------------------------------------------ inside a function

    def _inside(self, node: cst.CSTNode) -> tuple[Grad | None, Function | None]:
        """What the function around ``node`` itself does to the mode there, and that function."""
        setters = self._setters
        for child, parent in self.tree.edges(node, _HOLDERS):
            if isinstance(parent, FUNCTIONS) and child is parent.body:
                return (self._stated(node, parent, parent) if setters else None), parent
            if isinstance(parent, cst.With):
                held = self._held(parent, child)
                if held is not None:
                    stated = self._stated(node, parent, self.module.function(parent)) if setters else None
                    return (stated or held), None
        return (self._stated(node, self.tree.root, None) if setters else None), None

    def _held(self, block: cst.With, child: cst.CSTNode) -> Grad | None:
        for item in reversed(block.items):
            if child is not block.body:
                # Within the header only the items further left are in force.
                if item is child:
                    child = block.body
                continue
            mode = self._context(item.item)
            if mode is not None:
                return mode
        return None

    @property
    def _setters(self) -> _Setters:
        """The statements that set the mode from there on, by function; None: back to the one before."""
        if not self._sets_modes:
            return {}
        question = "setters", self.tree.root
        found: _Setters = self.module.fixpoint.ask(question, self._find_setters, _SETTERS_KNOWN)
        return found

    def _find_setters(self, _: object) -> _Setters:
        found: _Setters = {}
        for call in self.tree.nodes(cst.Call):
            if isinstance(self.tree.parent(call), (cst.Expr, cst.Assign)):
                setting = self._setting(call)
                if setting is not None:
                    found.setdefault(self.module.function(call), []).append(setting)
        return found

    def _setting(self, call: cst.Call) -> tuple[cst.CSTNode, Grad | None] | None:
        if self.names.qualified(call.func) in _SETTERS and call.args:
            argument = call.args[0].value
            if self._is_saved(argument):
                return call, None
            return call, self._switched(argument)
        if isinstance(call.func, cst.Attribute):
            mode: Grad | None = None
            if call.func.attr.value == "enter_context" and len(call.args) == 1:
                mode = self._context(call.args[0].value)
                if mode is not None:
                    self._regions[call] = self._stack_block(call.func.value)
            elif call.func.attr.value == "__enter__":
                mode = self._context(call.func.value)
            return (call, mode) if mode is not None else None
        return None

    def _stack_block(self, stack: cst.BaseExpression) -> cst.CSTNode:
        """The ``with`` that unwinds an exit stack; the whole file if there is none."""
        for binding in self.names.bindings(stack) if isinstance(stack, cst.Name) else ():
            if binding.kind is BindingKind.WITH:
                block = self.tree.enclosing(binding.node, cst.With)
                if block is not None:
                    return block
        return self.tree.root

    def _is_saved(self, node: cst.CSTNode) -> bool:
        """Whether this is the mode of before, kept in a variable."""
        if isinstance(node, cst.Name):
            return any(
                isinstance(b.value, cst.Call)
                and self.names.qualified(b.value.func) in ("torch.is_grad_enabled", *_SETTERS)
                for b in self.names.bindings(node)
            )
        return False

    def _stated(self, node: cst.CSTNode, limit: cst.CSTNode, function: Function | None) -> Grad | None:
        """What the statements of the same function above ``node`` leave in force, inside ``limit``."""
        order = self.tree.order
        settings = self._setters.get(function, [])
        if limit is not self.tree.root:
            first = bisect_left(settings, order[limit], key=lambda setting: order[setting[0]])
            last = self.tree.last(limit)
            settings = settings[first : bisect_right(settings, last, key=lambda setting: order[setting[0]])]
        if self._regions:
            settings = [
                (call, mode)
                for call, mode in settings
                if call not in self._regions or self.tree.contains(self._regions[call], node)
            ]
        if not settings:
            return None
        before = bisect_left(settings, order[node], key=lambda setting: order[setting[0]])
        if before:
            call, mode = settings[before - 1]
            block = self.tree.parent(self.tree.statement(call))
            if block is not None and self.tree.contains(block, node):
                return mode
            if all(other == mode for _, other in settings):
                return Grad.UNKNOWN if mode is not Grad.ON else None
            if isinstance(
                self.tree.parent(block) if block is not None else None, (cst.For, cst.While, cst.With)
            ):
                return mode
            return Grad.UNKNOWN
        # What comes later in a loop is in force when the loop comes round again.
        loop = self.tree.enclosing(node, cst.For, cst.While)
        if loop is not None and self.tree.contains(loop, settings[-1][0]):
            return None if settings[-1][1] in (None, Grad.ON) else Grad.UNKNOWN
        return None

    def _switched(self, argument: cst.BaseExpression) -> Grad:
        constant = self.module.value(argument).constant
        if constant is MISSING or constant is None:
            return Grad.UNKNOWN
        return Grad.ON if constant else Grad.OFF

    # ------------------------------------------------------------------ contexts

    @remembered
    def _context(self, node: cst.CSTNode, depth: int = 0) -> Grad | None:
        """What entering this context manager does; None: nothing to the grad mode."""
        if depth > 4:
            return None
        match node:
            case cst.Call():
                return self._called_context(node, depth)
            case cst.IfExp():
                body, other = self._context(node.body, depth + 1), self._context(node.orelse, depth + 1)
                return body if body is other else Grad.UNKNOWN
            case cst.Name():
                bindings = self.names.bindings(node)
                values = [b.value for b in bindings if b.kind is BindingKind.ASSIGN and not b.path]
                if bindings and len(values) == len(bindings):
                    return self._joined(values, depth)
            case cst.Attribute(value=cst.Name() as owner):
                cls = self.module.classes.instance_class(owner)
                if cls is not None:
                    info = self.module.classes.info(cls)
                    assigned = self.module.classes.attribute_bindings(info, node.attr.value)
                    if assigned:
                        return self._joined([b.value for b in assigned], depth)
            case _:
                pass
        word = last_name(node)
        return Grad.UNKNOWN if word is not None and has(word, *_SUSPECTS) else None

    def _joined(self, values: Iterable[cst.BaseExpression | None], depth: int) -> Grad | None:
        modes = {self._context(value, depth + 1) if value is not None else None for value in values}
        return modes.pop() if len(modes) == 1 else Grad.UNKNOWN

    def _called_context(self, call: cst.Call, depth: int) -> Grad | None:
        qualified = self.names.qualified(call.func)
        if qualified in _CONTEXTS:
            if qualified == "torch.inference_mode" and call.args:
                return Grad.OFF if self._switched(call.args[0].value) is Grad.ON else Grad.UNKNOWN
            return _CONTEXTS[qualified]
        if qualified in _SETTERS and call.args:
            return self._switched(call.args[0].value)
        function = self.module.callee(call)
        if isinstance(function, cst.FunctionDef):
            if function.name.value == "__init__":
                owner = self.module.classes.owner(function)
                return self._entered(owner) if owner is not None else None
            return self._managed(function, depth)
        definition = self.module.value(call.func).definition
        if isinstance(definition, cst.ClassDef):
            return self._entered(definition)
        word = last_name(call.func)
        return Grad.UNKNOWN if word is not None and has(word, *_SUSPECTS) else None

    def _entered(self, cls: cst.ClassDef) -> Grad | None:
        """What entering an instance of this class does; unknown if it meddles with the mode at all."""
        enter = self.module.classes.info(cls).method("__enter__")
        if enter is None:
            return None
        meddles = any(
            isinstance(part, (cst.Name, cst.Attribute))
            and (self.names.qualified(part) in _CONTEXTS or self.names.qualified(part) in _SETTERS)
            for part in self.tree.descendants(enter)
        )
        return Grad.UNKNOWN if meddles else None

    def _managed(self, function: cst.FunctionDef, depth: int) -> Grad | None:
        """What holds at the ``yield`` of a context manager written as a generator, or what it returns."""
        found: list[Grad | None] = []
        for node in self._own_nodes(function):
            if isinstance(node, cst.Yield):
                found.append(self._inside(node)[0])
            elif isinstance(node, cst.Return) and node.value is not None:
                found.append(self._context(node.value, depth + 1))
        if not found:
            return None
        return found[0] if all(mode is found[0] for mode in found) else Grad.UNKNOWN

    def _own_nodes(self, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
        for node in self.tree.descendants(function.body):
            if isinstance(node, (cst.Yield, cst.Return)) and self.module.function(node) is function:
                yield node

    # ------------------------------------------------------------------ functions

    def _entry(self, function: Function) -> Grad:
        """The mode in which a function starts: its decorators, its framework, its callers."""
        if not self.module.fixpoint.busy:
            # Nothing that is asked now rests on half an answer, so that all on the way may be remembered.
            return _in_common(gathered(function, self._started_in, self._starts))
        return _in_common(self._modes_at_start(function))

    def _modes_at_start(self, function: Function) -> frozenset[Grad]:
        """The modes in which a function starts, asked while values are being worked out."""
        found: frozenset[Grad] = self.module.fixpoint.ask(("starts", function), self._find_modes, _STARTS)
        return found

    def _find_modes(self, question: tuple[str, Function]) -> frozenset[Grad]:
        modes, onward = self._started_in(question[1])
        return frozenset(modes).union(*map(self._modes_at_start, dict.fromkeys(onward)))

    def _started_in(self, function: Function) -> tuple[list[Grad], list[Function]]:
        """The modes in which a function starts, and the functions that it starts in the mode of."""
        own = self._own_entry(function)
        if own is not None:
            return [own], []
        places: list[cst.BaseExpression | Function] = [*self.module.callers(function)]
        around = [self._inside(place) for place in places or [function]]
        modes = [inside or Grad.ON for inside, outer in around if inside is not None or outer is None]
        return modes, [outer for inside, outer in around if inside is None and outer is not None]

    def _own_entry(self, function: Function) -> Grad | None:
        """As far as the function itself shows it; None: its callers, or its maker, decide."""
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
            if part or (info.opaque and (info.lightning or not self._sets_its_mode(function))):
                # Whoever has the instance, or a base class of another file, calls it in any mode.
                return Grad.UNKNOWN
        return self._global

    def _sets_its_mode(self, function: Function) -> bool:
        """Whether a function trains, or puts a model into evaluation mode: then autograd is up to it, too."""
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
        modes = {mode for _, mode in self._setters.get(None, ())}
        if not modes or modes == {Grad.ON}:
            return Grad.ON
        return Grad.OFF if modes == {Grad.OFF} else Grad.UNKNOWN

    def _hooked(self, function: cst.FunctionDef) -> Grad | None:
        owner = self.module.classes.owner(function)
        if owner is None:
            return None
        info = self.module.classes.info(owner)
        name = function.name.value
        if info.lightning and _LIGHTNING_OFF.match(name):
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
            return self._around(definition)
        return self._context(decorator)

    def _around(self, decorator: cst.FunctionDef) -> Grad | None:
        """The mode in which a decorator of this file runs the function that it is given."""
        found: set[Grad | None] = set()
        for node in self.tree.descendants(decorator.body):
            match node:
                case cst.Call(func=cst.Name() as called):
                    if any(b.kind is BindingKind.PARAMETER for b in self.names.bindings(called)):
                        found.add(self._inside(node)[0])
                case _:
                    pass
        if not found:
            return None
        return found.pop() if len(found) == 1 else Grad.UNKNOWN

    def _wrapped(self, function: cst.FunctionDef) -> Grad | None:
        """``evaluate = torch.no_grad()(evaluate)``."""
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
