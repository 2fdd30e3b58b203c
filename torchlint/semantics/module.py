"""The façade that rules ask: one object for one file, every part built when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import libcst as cst

from torchlint import rewriting
from torchlint.diagnostics import Applicability, Edit, Fix, Position
from torchlint.semantics import calls, unusedimports, wholeprogram
from torchlint.semantics.api import results
from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.backendflags import BackendFlags
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.checkpoints import loads_weights
from torchlint.semantics.classes import Classes, kind_of_class
from torchlint.semantics.collectives import Collectives
from torchlint.semantics.compilation import Compilation
from torchlint.semantics.dataflow import Dataflow
from torchlint.semantics.evaluation import Evaluation
from torchlint.semantics.evaluationmode import left_evaluating
from torchlint.semantics.evaluator import Function
from torchlint.semantics.evidence import (
    Evidence,
    defined_for_others,
    device_evidence,
    imports_test_library,
)
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.guards import Guard, guards
from torchlint.semantics.gradients import Gradients
from torchlint.semantics.inference import Inference
from torchlint.semantics.iterations import Iterations
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.names import Binding, Names
from torchlint.semantics.otherframeworks import imports_torch
from torchlint.semantics.parallelism import Parallelism
from torchlint.semantics.parameters import tells_parameters_apart
from torchlint.semantics.places import Grad, Hot, Loop, Phase, Places
from torchlint.semantics.program import Program
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.repetition import Repetition
from torchlint.semantics.values import MISSING, UNKNOWN, Device, Kind, Value
from torchlint.syntax import SyntaxTree
from torchlint.target import TORCH, Target, beside

Edits = tuple[Edit, ...]


class Settings(Protocol):
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


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a file can write a library name, and the edits (an import) that make it possible."""

    text: str
    edits: Edits


class Module:
    """The semantic model of one file.

    Every question is answered lazily and remembered. Unknown stays unknown: None, ``UNKNOWN`` or False
    wherever the file does not show the answer. ``locate`` tells the place of an offset as people count it:
    in a notebook that is one in a cell.
    """

    def __init__(
        self, tree: SyntaxTree, settings: Settings, locate: Callable[[int], Position] | None = None
    ) -> None:
        self.tree = tree
        self.settings = settings
        self._locate = locate
        self.answers: dict[Callable[..., Any], dict[tuple[Any, ...], Any]] = {}
        """What functions of the model said of this one; see `torchlint.semantics.remembered`."""

    def close(self) -> None:
        """Forget everything that was worked out; the model answers nothing any more.

        The parts hold one another, and the tree. Apart, they are gone at once, where the search of the
        garbage collector for so many objects takes a twentieth of a check.
        """
        for part in vars(self).values():
            if isinstance(part, (Names, Classes)):
                part.close()
            elif isinstance(part, _PARTS):
                vars(part).clear()
        vars(self).clear()

    # ------------------------------------------------------------------ parts

    @cached_property
    def names(self) -> Names:
        """Scopes, bindings and dotted names."""
        return Names(self.tree, _is_library_name)

    @cached_property
    def flow(self) -> ControlFlow:
        """The control-flow graphs of the functions."""
        return ControlFlow(self.tree)

    @cached_property
    def classes(self) -> Classes:
        """The classes of the file."""
        return Classes(self.tree, self.names)

    @cached_property
    def inference(self) -> Inference:
        """The evaluator of expressions."""
        inference = Inference(self.tree, self.names, self.classes)
        inference.grad_off = lambda node: self.grad(node) is Grad.OFF
        return inference

    @property
    def fixpoint(self) -> Fixpoint[Any, Any]:
        """What remembers the answers on which values depend, and which depend on values."""
        return self.inference.fixpoint

    @cached_property
    def dataflow(self) -> Dataflow:
        """Which layer or function of a model feeds which."""
        return Dataflow(self)

    @cached_property
    def loaders(self) -> Loaders:
        """The data loaders and where their batches go."""
        return Loaders(self)

    @cached_property
    def backpropagation(self) -> Backpropagation:
        """The backward passes, and what gradients flow back through."""
        return Backpropagation(self)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The forward passes made for evaluation."""
        return Evaluation(self)

    @cached_property
    def gradients(self) -> Gradients:
        """The gradients that parameters hold."""
        return Gradients(self)

    @cached_property
    def iterations(self) -> Iterations:
        """What each iteration of a training loop does."""
        return Iterations(self)

    @cached_property
    def parallelism(self) -> Parallelism:
        """The models that are spread over several devices or processes, and who sees to it."""
        return Parallelism(self)

    @cached_property
    def program(self) -> Program:
        """What the file does when it is run."""
        return Program(self)

    @cached_property
    def backend_flags(self) -> BackendFlags:
        """The switches of torch's backends that the file sets."""
        return BackendFlags(self)

    @cached_property
    def collectives(self) -> Collectives:
        """What the ranks of a distributed program exchange."""
        return Collectives(self)

    @cached_property
    def release_checks(self) -> ReleaseChecks:
        """The checks of which release of a library there is, and what runs under them."""
        return ReleaseChecks(self)

    @cached_property
    def places(self) -> Places:
        """Loops, hotness, phases and grad mode."""
        return Places(self)

    @cached_property
    def compilation(self) -> Compilation:
        """The code that ``torch.compile`` compiles."""
        return Compilation(self)

    @property
    def target(self) -> Target:
        """The torch releases that may run this file."""
        return self.settings.target

    def target_of(self, package: str) -> Target:
        """The releases of a library that may run this file, as declared or else as torch's imply."""
        if package == TORCH:
            return self.target
        own = self.settings.libraries.get(package, Target.unknown())
        known = own.lower is not None or own.upper is not None
        return own if known else beside(self.target, package)

    @cached_property
    def repetition(self) -> Repetition:
        """Which places can run more than once, going by names alone."""
        return Repetition(self.tree, self.names)

    # ------------------------------------------------------------------ names and values

    def qualified(self, node: cst.CSTNode) -> str | None:
        """The public dotted library name that a name or attribute stands for; None for anything else."""
        return self.names.qualified(node)

    def value(self, node: cst.CSTNode) -> Value:
        """What an expression can evaluate to."""
        return self.inference.value(node)

    def bindings(self, name: cst.Name) -> tuple[Binding, ...]:
        """The definitions that reach a read of a name."""
        return self.names.bindings(name)

    def binding_of(self, target: cst.CSTNode) -> Binding | None:
        """The binding that an assignment target, parameter, import or definition makes."""
        return self.names.by_node.get(target)

    def uses(self, binding: Binding) -> list[cst.Name]:
        """The reads that a definition reaches."""
        return self.names.uses(binding)

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether an expression is known to be a tensor."""
        return self.value(node).kind is Kind.TENSOR

    def on_device(self, node: cst.CSTNode) -> bool:
        """Whether an expression is a tensor that lives on an accelerator where this file has one.

        A tensor whose place the file does not show counts if the file as a whole runs on one.
        """
        if not self.for_accelerator(node):
            return False
        value = self.value(node)
        return value.tensorlike and value.device is not Device.CPU

    # ------------------------------------------------------------------ calls

    def call(self, call: cst.Call) -> calls.BoundCall:
        """The arguments of a call laid against the signature of what it calls."""
        found = self._bound.get(call)
        if found is None:
            signature, presets = self._signature(call)
            found = calls.bind(call, signature, presets=presets, resolve=self.inference.callgraph.literal)
            if not self.fixpoint.busy:
                # Else what is called may still be half an answer.
                self._bound[call] = found
        return found

    def _accepted_as(self, node: cst.BaseExpression) -> str | None:
        """What an argument is, in the words by which overloads are told apart (``x.to(device)``)."""
        return calls.literal_kind(node) or _ACCEPTED_AS.get(self.value(node).kind)

    @cached_property
    def _bound(self) -> dict[cst.Call, calls.BoundCall]:
        return {}

    def argument(self, call: cst.Call, name: str) -> Argument:
        """What a call passes for the parameter ``name``."""
        return Argument(self.call(call).get(name), self.value)

    def _signature(self, call: cst.Call) -> tuple[calls.Signature | None, Sequence[cst.Call]]:
        dotted = self.qualified(call.func)
        if dotted is not None:
            return SIGNATURES.get(dotted), ()
        base = self.base_constructed(call)
        if base is not None:
            return SIGNATURES.get(base), ()
        callee = self.value(call.func)
        definition = callee.definition
        if isinstance(definition, (cst.FunctionDef, cst.Lambda)):
            bound = isinstance(definition, cst.FunctionDef) and callee.receiver is not None
            return calls.signature_of_function(definition, bound=bound), callee.presets
        if isinstance(definition, cst.ClassDef) and callee.kind is Kind.CLASS:
            info = self.classes.info(definition)
            init = info.method("__init__")
            if init is not None:
                return calls.signature_of_function(init, bound=True), callee.presets
            known = [SIGNATURES[base] for base in info.bases if base in SIGNATURES]
            return (known[0] if known and not info.opaque else None), callee.presets
        if callee.receiver is not None and callee.cls is not None:
            owner = _METHOD_OWNERS.get(callee.receiver.kind)
            return (SIGNATURES.get(owner + callee.cls) if owner else None), ()
        if callee.kind is Kind.MODULE and callee.cls is not None:
            return SIGNATURES.get(f"{callee.cls}.forward"), ()
        if callee.cls is not None:
            return SIGNATURES.get(callee.cls), callee.presets
        return None, ()

    def class_of(self, call: cst.Call) -> str | None:
        """The library class of what a call makes, through local subclasses and ``partial``.

        A user's own class counts as the library class it inherits from only if it leaves the
        constructor alone.
        """
        dotted = self.qualified(call.func)
        if dotted is not None:
            return dotted if kind_of_class(dotted) is not Kind.UNKNOWN else None
        callee = self.value(call.func)
        if callee.kind is not Kind.CLASS:
            return None
        if isinstance(callee.definition, cst.ClassDef):
            info = self.classes.info(callee.definition)
            if info.method("__init__") is not None or info.opaque:
                return None
            return next((base for base in info.bases if kind_of_class(base) is not Kind.UNKNOWN), None)
        return callee.cls

    def base_constructed(self, call: cst.Call) -> str | None:
        """The library class whose constructor ``super().__init__(...)`` runs; None for any other call."""
        match call.func:
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")):
                owner = self.tree.enclosing(call, cst.ClassDef)
                info = self.classes.info(owner) if owner is not None else None
                if info is not None and len(info.bases) == 1 and not info.opaque:
                    if all(parent.method("__init__") is None for parent in info.parents):
                        return info.bases[0]
        return None

    def method_call(self, call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
        """The receiver and the name of a call written ``receiver.name(...)``; None for library functions."""
        if isinstance(call.func, cst.Attribute) and self.qualified(call.func) is None:
            return call.func.value, call.func.attr.value
        return None

    def callee(self, call: cst.Call) -> Function | None:
        """The function of this file that a call runs (a method, a lambda, a module's ``forward``)."""
        return self.inference.callgraph.callee(call)

    def callers(self, function: cst.CSTNode) -> list[cst.Call]:
        """The calls in this file that run a function of this file."""
        return self.inference.callgraph.callers(function)

    def calls_in(self, function: Function | None) -> list[cst.Call]:
        """The calls of a function itself, in source order, or those of the module outside of functions."""
        return self._calls_in.get(function, [])

    @cached_property
    def _calls_in(self) -> dict[Function | None, list[cst.Call]]:
        found: dict[Function | None, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            found.setdefault(self.function(call), []).append(call)
        return found

    def function(self, node: cst.CSTNode) -> Function | None:
        """The function or lambda whose body holds a node; a decorator or default is outside it."""
        self.tree.effort.spend(1)
        scope = self.names.scope(node)
        while scope.parent is not None:
            if isinstance(scope.node, (cst.FunctionDef, cst.Lambda)):
                return scope.node
            scope = scope.parent
        return None

    # ------------------------------------------------------------------ places

    def hot(self, node: cst.CSTNode) -> Hot | None:
        """Whether a node runs in every iteration of a loop that does device work, and which way."""
        return None if self.is_test else self.places.hot(node)

    def may_repeat(self, node: cst.CSTNode) -> bool:
        """Whether a node can run again and again at all: a cheap question to ask before dearer ones."""
        found = self._repeating.get(node)
        if found is None:
            found = self._repeating[node] = not self.is_test and self.repetition.possible(node)
        return found

    @cached_property
    def _repeating(self) -> dict[cst.CSTNode, bool]:
        return {}

    def loops(self, node: cst.CSTNode) -> list[Loop]:
        """The loops and comprehensions around a node within its function, innermost first."""
        return self.places.loops(node)

    def over_loader(self, loop: Loop) -> bool:
        """Whether a loop goes over the batches of a loader."""
        return self.places.over_loader(loop)

    def computes(self, node: cst.CSTNode) -> bool:
        """Whether a statement or expression runs a model, computes gradients or steps an optimizer."""
        return self.places.computes(node)

    def throttled(self, node: cst.CSTNode) -> bool:
        """Whether a node runs only in some iterations of the loop around it."""
        return self.places.throttled(node)

    def phase(self, node: cst.CSTNode) -> Phase:
        """What the program is doing when a node runs: training, evaluation, a forward …"""
        return self.places.phase(node)

    def guards(self, node: cst.CSTNode) -> Iterator[Guard]:
        """What was tested on every way to a node within its function, and how that came out."""
        return guards(self, node)

    def evaluated_only(self, node: cst.CSTNode) -> bool:
        """Whether the code around a node rules out that it runs while a model is trained."""
        return self.phase(node) is Phase.EVALUATION or self.places.evaluated_only(node)

    def grad(self, node: cst.CSTNode) -> Grad:
        """Whether autograd records when a node runs."""
        return self.places.grad(node)

    def compiled(self, node: cst.CSTNode) -> bool:
        """Whether a node is inside a function or module that ``torch.compile`` compiles."""
        return self.compilation.region(node) is not None

    def for_accelerator(self, node: cst.CSTNode) -> bool:
        """Whether a place may run on an accelerator: the file may, or the place is in compiled code.

        What is compiled is made to be fast, and by others than the file itself if it names no device.
        """
        return self.accelerated or self.compiled(node)

    def main_guarded(self, node: cst.CSTNode) -> bool:
        """Whether a node runs only when the file is run as a script."""
        return self.places.main_guarded(node)

    # ------------------------------------------------------------------ the file as a whole

    @cached_property
    def evidence(self) -> Evidence:
        """What the file shows about where it runs."""
        return device_evidence(self.tree, self.names, self.inference)

    @cached_property
    def accelerated(self) -> bool:
        """Whether this file ever runs on an accelerator, or defines modules that others will run on one."""
        # That modules are defined for others is told without evaluating anything, most of the time.
        if defined_for_others(self.tree, self.names, self.inference):
            return True
        return self.evidence is not Evidence.CPU

    @cached_property
    def is_test(self) -> bool:
        """Whether the file holds unit tests, in which no place is hot."""
        return imports_test_library(self.names)

    @cached_property
    def loads_weights(self) -> bool:
        """Whether this file fills models from checkpoints or from pretrained weights."""
        return loads_weights(self.tree, self.names)

    def seen_whole(self, node: cst.CSTNode) -> bool:
        """Whether no other file can have to do with what ``node`` makes, since this one is the program."""
        return wholeprogram.seen_whole(self, node)

    def state_unobserved(self, node: cst.CSTNode) -> bool:
        """Whether nobody would notice other keys in the ``state_dict`` of the model ``node`` belongs to."""
        return wholeprogram.state_unobserved(self, node)

    @cached_property
    def tells_parameters_apart(self) -> bool:
        """Whether the file counts, lists or adds up parameters, so that one less would show."""
        return tells_parameters_apart(self)

    @cached_property
    def trains_in_evaluation_mode(self) -> bool:
        """Whether models are put into evaluation mode, and trained in that mode or not at all."""
        return left_evaluating(self)

    # ------------------------------------------------------------------ fixes

    def spell(self, qualified: str, at: cst.CSTNode) -> Spelling | None:
        """How to write a library name at a place, importing its root package if no import serves.

        None if the root package's own name means something else there, and of torch if the file imports
        nothing from it: whatever it calls torch's is not known to be.
        """
        text = self.names.spelling(qualified, at)
        if text is not None:
            return Spelling(text, ())
        root = qualified.partition(".")[0]
        if self.names.lookup(root, at) is not None or root in self.names.module_scope.bindings:
            return None
        if root == "torch" and not imports_torch(self.names):
            return None
        return Spelling(qualified, rewriting.add_import(self.tree, f"import {root}"))

    def safe(self, message: str, *edits: Edits | None) -> Fix | None:
        """A safe fix of these edits; None if one of them could not be made."""
        return self._fix(message, Applicability.SAFE, edits)

    def unsafe(self, message: str, *edits: Edits | None) -> Fix | None:
        """An unsafe fix of these edits; None if one of them could not be made."""
        return self._fix(message, Applicability.UNSAFE, edits)

    def _fix(self, message: str, applicability: Applicability, parts: Sequence[Edits | None]) -> Fix | None:
        edits: list[Edit] = []
        for part in parts:
            if part is None:
                return None
            edits.extend(part)
        fitted = rewriting.fit_into_strings(self.tree, tuple(edits))
        return None if fitted is None else Fix(message, fitted, applicability)

    def replace(self, node: cst.CSTNode, code: str) -> Edits | None:
        """Put ``code`` where ``node`` stands; None if a comment in ``node`` would be lost."""
        return rewriting.replace(self.tree, node, code)

    def set_argument(self, call: cst.Call, name: str, code: str) -> Edits | None:
        """Make a call pass ``code`` for a parameter, in place if it passes something, else as a keyword.

        None where the argument may already be hidden in ``*args`` or ``**kwargs``.
        """
        bound = self.call(call).get(name)
        if bound.given:
            return rewriting.set_argument_value(self.tree, bound.arg, code) if bound.arg is not None else None
        if bound.unknown:
            return None
        # Absent is proved by the signature, so that no `*args` holds it.
        return rewriting.add_argument(self.tree, call, code, keyword=name, keyword_only=True)

    def cut_off(self, kept: cst.BaseExpression, whole: cst.BaseExpression) -> Edits | None:
        """Leave ``x`` of ``x.to(device)``; None if a comment or a bracket is in the way."""
        return rewriting.cut_off(self.tree, kept, whole)

    def remove_argument(self, call: cst.Call, name: str) -> Edits | None:
        """Drop the argument for a parameter; None if the call does not spell it.

        Where positional arguments follow, the default takes its place, so that they keep theirs.
        """
        found = self.call(call)
        arg = found.get(name).arg
        if arg is None:
            return None
        behind = call.args[call.args.index(arg) + 1 :]
        if arg.keyword is not None or all(other.keyword is not None for other in behind):
            return rewriting.remove_argument(self.tree, arg)
        parameter = found.signature.get(name) if found.signature is not None else None
        if parameter is None or isinstance(parameter.default, calls.Default):
            return None
        return rewriting.set_argument_value(self.tree, arg, repr(parameter.default))

    def remove_statement(self, node: cst.CSTNode) -> Edits | None:
        """Remove the statement that holds ``node``, and no other that shares its line."""
        holder = self.tree.statement(node)
        if isinstance(holder, cst.SimpleStatementLine) and len(holder.body) > 1:
            holder = next((small for small in holder.body if self.tree.contains(small, node)), holder)
        return rewriting.remove_statement(self.tree, holder)

    def remove_import(self, alias: cst.CSTNode) -> Edits | None:
        """Drop an imported name, with its statement if that brings no other; None if a comment would go."""
        return rewriting.remove_import(self.tree, alias)

    def without_unused_imports(self, edits: Sequence[Edit], *, safe: bool) -> Edits:
        """Edits that drop the imports of which ``edits`` take out every use; see `unusedimports`."""
        return unusedimports.without_unused_imports(self, edits, safe=safe)

    def add_decorator(self, function: cst.FunctionDef, code: str) -> Edits:
        """Put ``@code`` directly above ``def``, below every decorator there is."""
        return rewriting.add_decorator(self.tree, function, code)

    def wrap(self, statements: Sequence[cst.CSTNode], header: str) -> Edits | None:
        """Put sibling statements into a block under ``header``."""
        return rewriting.wrap(self.tree, statements, header)

    def wrap_with(
        self, statements: Sequence[cst.CSTNode], header: str, alike: Callable[[cst.With], bool]
    ) -> Edits | None:
        """Put sibling statements under ``header``, as one with the blocks that are ``alike`` beside them."""
        return rewriting.wrap_with(self.tree, statements, header, alike)

    def dissolve_in(self, node: cst.CSTNode, alike: Callable[[cst.With], bool]) -> Edits | None:
        """Take the blocks away that are ``alike`` and stand in ``node``, and leave what they hold."""
        return rewriting.dissolve_in(self.tree, (node,), alike)

    def insert_before(self, statement: cst.CSTNode, code: str) -> Edits | None:
        """Put the lines of ``code`` above a statement; None where it is not one of a block."""
        return rewriting.insert_before(self.tree, statement, code)

    def insert_after(self, statement: cst.CSTNode, code: str) -> Edits | None:
        """Put the lines of ``code`` below a statement; None where it is not one of a block."""
        return rewriting.insert_after(self.tree, statement, code)

    def end_block_before(self, statement: cst.CSTNode) -> Edits | None:
        """Take a statement and all that follows it out of the block that they end."""
        return rewriting.end_block_before(self.tree, statement)

    def line(self, node: cst.CSTNode) -> str:
        """Where a node begins, in words for a message: "line 40", in a notebook "line 4 of cell 3"."""
        if self._locate is None:
            return f"line {self.tree.line(node)}"
        place = self._locate(self.tree.span(node).start)
        return f"line {place.row}" + ("" if place.cell is None else f" of cell {place.cell}")

    @property
    def in_notebook(self) -> bool:
        """Whether the program is that of a notebook, which no other file imports."""
        return self._locate is not None and self._locate(0).cell is not None

    def source(self, node: cst.CSTNode) -> str:
        """The text of a node as the file spells it."""
        return self.tree.source(node)


_PARTS = (
    *(Inference, Dataflow, Loaders, Backpropagation, Evaluation, Gradients, Iterations, Places),
    *(Repetition, Compilation, Program, BackendFlags, Collectives, Parallelism, ReleaseChecks),
)
_ACCEPTED_AS = {
    Kind.TENSOR: "tensor",
    Kind.NDARRAY: "ndarray",
    Kind.DEVICE: "device",
    Kind.DTYPE: "dtype",
    Kind.NUMBER: "number",
    Kind.STRING: "str",
    Kind.BOOL: "bool",
    Kind.NONE: "none",
    Kind.SHAPE: "size",
    Kind.LIST: "size",
    Kind.TUPLE: "size",
}
_METHOD_OWNERS = {
    Kind.TENSOR: "torch.Tensor",
    Kind.BATCH: "torch.Tensor",
    Kind.MODULE: "torch.nn.Module",
    Kind.OPTIMIZER: "torch.optim.Optimizer",
}


def _is_library_name(dotted: str) -> bool:
    # By name, not by family: a star import must not claim the capitalised names of the next one.
    return dotted in SIGNATURES or dotted in results.FUNCTIONS
