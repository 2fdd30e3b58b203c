"""The façade over names, calls and values of one file, and the base of what is known on top of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, Protocol, TypeVar

import libcst as cst

from torchlint.diagnostics import Position
from torchlint.parsing import DEEPEST_QUESTIONS
from torchlint.semantics import calls
from torchlint.semantics.api import results
from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.callgraph import Run
from torchlint.semantics.classes import Classes, kind_of_class
from torchlint.semantics.declared import Declared
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.inference import Inference, place_of
from torchlint.semantics.linked import Link, handing_on
from torchlint.semantics.names import Binding, Names
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import MISSING, UNKNOWN, Kind, Value
from torchlint.source import line_start
from torchlint.syntax import SyntaxTree
from torchlint.target import TORCH, Target, beside


class Settings(Declared, Protocol):
    """What the model wants to know of the options."""

    @property
    def target(self) -> Target:
        """The torch releases that may run the file."""

    @property
    def libraries(self) -> Mapping[str, Target]:
        """The releases of other libraries that may run the file, by package."""

    @property
    def workers(self) -> int:
        """How many loader workers a fix should ask for."""

    @property
    def hot(self) -> tuple[tuple[str, str], ...]:
        """Patterns of functions that run at every step: a root, and ``engine/**::Runner.execute_model``."""

    @property
    def cold(self) -> tuple[tuple[str, str], ...]:
        """Patterns of functions that run once or seldom."""


_ASKED = tuple(
    name for each in Settings.__mro__ for name, value in vars(each).items() if isinstance(value, property)
)


def alike(one: Settings, other: Settings) -> bool:
    """Return whether the model of a file is the same with these options, whatever else they say."""
    return one is other or all(getattr(one, name) == getattr(other, name) for name in _ASKED)


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call passes for one parameter, with its value.

    ``given``, ``absent`` and ``unknown`` exclude one another; unknown is behind ``*args`` or ``**kwargs``.
    """

    bound: calls.Argument
    evaluate: Callable[[cst.CSTNode], Value]

    @property
    def value(self) -> Value:
        """What the given expression evaluates to, found out when it is asked for."""
        return self.evaluate(self.bound.node) if self.bound.node is not None else UNKNOWN

    @property
    def given(self) -> bool:
        """Whether the call spells a value."""
        return self.bound.given

    @property
    def absent(self) -> bool:
        """Whether the call provably leaves it to its default."""
        return self.bound.absent

    @property
    def unknown(self) -> bool:
        """Whether nothing can be said."""
        return self.bound.unknown

    @property
    def node(self) -> cst.BaseExpression | None:
        """The value expression, if there is exactly one."""
        return self.bound.node

    @property
    def arg(self) -> cst.Arg | None:
        """The argument to edit, if the value has one of its own."""
        return self.bound.arg

    @property
    def constant(self) -> object:
        """The Python constant that the parameter gets; ``MISSING`` if that is not known."""
        if self.bound.absent:
            default = self.bound.default
            return MISSING if isinstance(default, calls.Default) else default
        return self.value.constant if self.bound.given else MISSING


class Module:
    """The names, calls and values of one file, on which the rest of the semantic model builds.

    Every question is answered lazily and remembered. Unknown stays unknown: None, ``UNKNOWN`` or False
    wherever the file does not show the answer. ``locate`` tells the place of an offset as people count it:
    in a notebook that is one in a cell. ``grad_off`` tells whether autograd is off where a node runs: values
    depend on it, though it is found out by way of values; ``handed_on`` which calls run a function that they
    do not name, which callers depend on in the same way. `torchlint.semantics.model` supplies both.
    """

    # They only put together what others answer, who hand questions on themselves.
    answers_for_all = frozenset(
        {
            *("argument", "base_constructed", "bindings", "callee", "callees", "callers", "class_of"),
            *("function", "home", "qualified", "uses", "value"),
        }
    )

    def __init__(
        self,
        tree: SyntaxTree,
        settings: Settings,
        locate: Callable[[int], Position] | None,
        path: PurePath | None,
        grad_off: Callable[[Module, cst.CSTNode], bool],
        handed_on: Callable[[Module, Function], tuple[Run, ...]],
        link: Link | None = None,
        fixpoint: Fixpoint[Any, Any] | None = None,
    ) -> None:
        self.link = link
        """What connects it with the other files of its project; None if it stands alone."""
        self._shared = fixpoint
        self.tree = tree
        self.settings = settings
        self._locate = locate
        self.path = path
        """Where the file is, as far as that is known."""
        self._grad_off = grad_off
        self._handed_on = handed_on
        self._parts: dict[type[Part], Part] = {}
        """What further parts of the model know of this one; see `Part`."""

    def _linked(self, kind: type[AnyPart]) -> type[AnyPart]:
        """Return the class of which a part is made: in a project, one that hands questions on."""
        return kind if self.link is None else handing_on(kind)

    @staticmethod
    def counterpart(module: Any) -> Module:
        """Return the module itself, which answers for its nodes."""
        found: Module = module
        return found

    def home(self, node: cst.CSTNode) -> Module:
        """Return the module of the file that a node belongs to: this one, unless it is linked with others."""
        if self.link is None or not self.tree.is_elsewhere(node):
            return self
        found: Module = self.link.home(node)
        return found

    def companions(self, *words: str) -> Sequence[Module]:
        """Return those other files of its programs that have one of some words in their text."""
        return () if self.link is None else self.link.companions(self, words)

    def mentions(self, *words: str) -> bool:
        """Return whether the text of this file, or of another one of its programs, has one of some words."""
        return any(map(self.tree.mentions, words)) or bool(self.companions(*words))

    def close(self) -> None:
        """Forget everything that was computed; the model answers nothing any more.

        The parts hold one another, and the tree. Apart, they are gone at once, where the search of the
        garbage collector for so many objects takes a twentieth of a check.
        """
        for part in self._parts.values():
            vars(part).clear()
        for part in vars(self).values():
            if isinstance(part, Names):
                part.close()
            elif isinstance(part, (ControlFlow, Classes, Inference, Fixpoint)):
                # What the fixpoint remembers is found by the parts that were asked.
                vars(part).clear()
        vars(self).clear()

    # ------------------------------------------------------------------ parts

    @cached_property
    def names(self) -> Names:
        """Scopes, bindings and dotted names."""
        return self._linked(Names)(self.tree, self.flow, _is_library_name, self.link)

    @cached_property
    def flow(self) -> ControlFlow:
        """The control-flow graphs of the functions."""
        return ControlFlow(self.tree, self.fixpoint, self.link)

    @cached_property
    def classes(self) -> Classes:
        """The classes of the file."""
        return self._linked(Classes)(self.tree, self.names)

    @cached_property
    def inference(self) -> Inference:
        """The evaluator of expressions."""
        inference = self._linked(Inference)(self.tree, self.names, self.flow, self.classes)
        inference.grad_off = lambda node: self._grad_off(self, node)
        inference.callgraph.handed_on = lambda function: self._handed_on(self, function)
        if self.settings.host_names or self.settings.device_names or self.settings.known_async_helpers:
            inference.declared = self.settings
        return inference

    @cached_property
    def fixpoint(self) -> Fixpoint[Any, Any]:
        """What remembers every answer: the one memory of the model."""
        if self._shared is not None:
            return self._shared
        order = partial(place_of, self.tree.order)
        return Fixpoint(order, depth=DEEPEST_QUESTIONS, effort=self.tree.effort)

    @property
    def target(self) -> Target:
        """The torch releases that may run this file."""
        return self.settings.target

    def target_of(self, package: str) -> Target:
        """Return the releases of a library that may run this file, as declared or else as torch's imply."""
        if package == TORCH:
            return self.target
        own = self.settings.libraries.get(package, Target.unknown())
        known = own.lower is not None or own.upper is not None
        return own if known else beside(self.target, package)

    # ------------------------------------------------------------------ names and values

    def qualified(self, node: cst.CSTNode) -> str | None:
        """Return the public dotted library name that a name or attribute stands for, if it is one."""
        return self.names.qualified(node)

    def value(self, node: cst.CSTNode) -> Value:
        """Return what an expression can evaluate to, in whichever file it stands."""
        return self.inference.value(node)

    def bindings(self, node: cst.CSTNode) -> tuple[Binding, ...]:
        """Return the definitions that reach the read of a name; none for any other node."""
        return self.names.bindings(node)

    def binding_of(self, target: cst.CSTNode) -> Binding | None:
        """Return the binding that an assignment target, parameter, import or definition makes."""
        return self.names.by_node.get(target)

    def uses(self, binding: Binding) -> list[cst.Name]:
        """Return the reads that a definition reaches."""
        return self.names.uses(binding)

    # ------------------------------------------------------------------ calls

    @remembered
    def call(self, call: cst.Call, override: cst.FunctionDef | None = None) -> calls.BoundCall:
        """Return the arguments of a call bound to the signature of what it calls, or of an override."""
        signature, presets = self._signature(call, override)
        around = self.function(call) if any(argument.star for argument in call.args) else None
        graph = self.inference.callgraph
        if isinstance(around, cst.FunctionDef) and self._shows_calls(around):
            held = graph.held_by_stars(call, None)
            if held and None not in held:
                return calls.either(
                    [calls.bind(call, signature, presets=presets, unpacked=each) for each in held]
                )
        return calls.bind(call, signature, presets=presets, resolve=graph.literal)

    def _shows_calls(self, function: cst.FunctionDef) -> bool:
        """Return whether the files of the project show who calls a function, if only its own."""
        known_as = self.classes.owner(function) or function
        return self.link is None or self.link.shows_users(self, known_as.name.value)

    def argument(self, call: cst.Call, name: str, override: cst.FunctionDef | None = None) -> Argument:
        """Return what a call passes for a parameter of what it calls, or of an override of that."""
        bound = self.call(call) if override is None else self.call(call, override)
        return Argument(bound.get(name), self.value)

    def _signature(
        self, call: cst.Call, override: cst.FunctionDef | None
    ) -> tuple[calls.Signature | None, Sequence[cst.Call]]:
        dotted = self.qualified(call.func)
        if dotted is not None:
            return SIGNATURES.get(dotted), ()
        base = self.base_constructed(call)
        if base is not None:
            return SIGNATURES.get(base), ()
        callee = self.value(call.func)
        definition = callee.definition
        if isinstance(definition, (cst.FunctionDef, cst.Lambda)):
            bound = self.classes.binds_first(definition, named_by_class=callee.named_by_class)
            return calls.signature_of_function(override or definition, bound=bound), callee.presets
        if isinstance(definition, cst.ClassDef) and callee.kind is Kind.CLASS:
            info = self.classes.info(definition)
            init = info.method("__init__") if info.opaque or not info.bases else info.constructor
            if init is not None:
                return calls.signature_of_function(init, bound=True), callee.presets
            known = [SIGNATURES[base] for base in info.bases if base in SIGNATURES]
            return (known[0] if known and not info.opaque else None), callee.presets
        if isinstance(definition, cst.ClassDef) or (override is not None and definition is None):
            # An instance runs its ``forward`` or ``__call__``; of several only the one that is asked for.
            run = override or self.callee(call)
            if isinstance(run, cst.FunctionDef):
                bound = self.classes.self_name(run) is not None
                return calls.signature_of_function(run, bound=bound), callee.presets
        if callee.receiver is not None and callee.cls is not None:
            owner = _METHOD_OWNERS.get(callee.receiver.kind)
            return (SIGNATURES.get(owner + callee.cls) if owner else None), ()
        if callee.kind is Kind.MODULE and callee.cls is not None:
            return SIGNATURES.get(f"{callee.cls}.forward"), ()
        if callee.cls is not None:
            return SIGNATURES.get(callee.cls), callee.presets
        return None, ()

    def class_of(self, call: cst.Call) -> str | None:
        """Return the library class of what a call makes, through local subclasses and ``partial``.

        A user's own class counts as the library class it inherits from only if it leaves the
        constructor alone, or hands on to it all that it is given.
        """
        dotted = self.qualified(call.func)
        if dotted is not None:
            return dotted if kind_of_class(dotted) is not Kind.UNKNOWN else None
        callee = self.value(call.func)
        if callee.kind is not Kind.CLASS:
            return None
        if isinstance(callee.definition, cst.ClassDef):
            info = self.classes.info(callee.definition)
            if info.constructor is not None or info.opaque:
                return None
            return next((base for base in info.bases if kind_of_class(base) is not Kind.UNKNOWN), None)
        return callee.cls

    def base_constructed(self, call: cst.Call) -> str | None:
        """Return the library class whose constructor ``super().__init__(...)`` runs, if it does."""
        match call.func:
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")):
                owner = self.tree.enclosing(call, cst.ClassDef)
                info = self.classes.info(owner) if owner is not None else None
                if info is not None and len(info.bases) == 1 and not info.opaque:
                    if all(parent.method("__init__") is None for parent in info.parents):
                        return info.bases[0]
        return None

    def callee(self, call: cst.Call) -> Function | None:
        """Return the function of this file that a call runs (a method, a lambda, a module's ``forward``)."""
        return self.inference.callgraph.callee(call)

    def callees(self, call: cst.Call) -> tuple[Function, ...]:
        """Return the functions of the project one of which a call runs; none if it may be another."""
        return self.inference.callgraph.callees(call)

    def callers(self, function: cst.CSTNode) -> list[cst.Call]:
        """Return the calls in this file that run a function of this file."""
        return self.inference.callgraph.callers(function)

    def calls_in(self, function: Function | None) -> list[cst.Call]:
        """Return the calls of a function itself, or of the module outside of functions, in source order."""
        return self._calls_in.get(function, [])

    @cached_property
    def _calls_in(self) -> dict[Function | None, list[cst.Call]]:
        found: dict[Function | None, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            found.setdefault(self.function(call), []).append(call)
        return found

    def function(self, node: cst.CSTNode) -> Function | None:
        """Return the function or lambda whose body holds a node; a decorator or default is outside it."""
        self.tree.effort.spent += 1
        scope = self.names.scope(node)
        while scope.parent is not None:
            if isinstance(scope.node, (cst.FunctionDef, cst.Lambda)):
                return scope.node
            scope = scope.parent
        return None

    def place_by(self, locate: Callable[[int], Position]) -> None:
        """Tell places from now on as ``locate`` does."""
        self._locate = locate

    def position(self, node: cst.CSTNode) -> Position:
        """Return where a node begins, as people count it: in a notebook, within its cell."""
        start = self.tree.span(node).start
        if self._locate is not None:
            return self._locate(start)
        return Position(self.tree.line(node), start - line_start(self.tree.text, start) + 1)

    @property
    def in_notebook(self) -> bool:
        """Whether the program is that of a notebook, which no other file imports."""
        return self._locate is not None and self._locate(0).cell is not None

    def source(self, node: cst.CSTNode) -> str:
        """Return the text of a node as the file spells it."""
        return self.tree.source(node)


class Part:
    """What one module of the model knows of a file, made when it is first asked for.

    ``Loaders.of(module)`` are the loaders of a file. A part asks the façade and parts of the layers below
    it, and no other file while it is made; the façade knows of none.
    """

    hands_everything_on = True

    def __init__(self, module: Module) -> None:
        self.module = module
        self.tree = module.tree
        self.link = module.link

    @classmethod
    def counterpart(cls: type[Known], module: Any) -> Known:
        """Return the same part of another module."""
        kind: Any = getattr(cls, "alone", cls)
        found: Known = kind.of(module)
        return found

    @classmethod
    def of(cls: type[Known], module: Module) -> Known:
        """Return the part for a file, the same each time."""
        parts: dict[Any, Any] = module._parts
        found: Known | None = parts.get(cls)
        if found is None:
            found = parts[cls] = module._linked(cls)(module)
        return found


Known = TypeVar("Known", bound=Part)
AnyPart = TypeVar("AnyPart")
_METHOD_OWNERS = {
    Kind.TENSOR: "torch.Tensor",
    Kind.BATCH: "torch.Tensor",
    Kind.MODULE: "torch.nn.Module",
    Kind.OPTIMIZER: "torch.optim.Optimizer",
}


def _is_library_name(dotted: str) -> bool:
    # By name, not by family: a star import must not claim the capitalised names of the next one.
    return dotted in SIGNATURES or dotted in results.FUNCTIONS
