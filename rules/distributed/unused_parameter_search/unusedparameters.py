"""The search of DDP for parameters that get no gradient: where it is on, and whether it can find any.

With ``find_unused_parameters=True`` DDP goes through the graph of autograd after each forward pass, before it
starts on the backward pass. It cannot find any where all that a model has takes part in every forward pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.evidence import is_test
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

from ..parallelism import Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_KEYWORDS = ("find_unused_parameters", "ddp_find_unused_parameters")
# What hands the option on to DDP, by the last word of its name and the package that has it.
_CARRIERS = re.compile(
    r"(?:accelerate|lightning|lightning_fabric|transformers|trl|ignite|pytorch_lightning)\.(?:\w+\.)*"
    r"(?:DistributedDataParallelKwargs|DDP\w*(?:Strategy|Plugin)|\w*TrainingArguments|\w+Config|auto_model)"
)
_STRATEGY = re.compile(r"ddp\w*find_unused_parameters_true")
# A remark of the author that says why it is on.
_EXPLAINED = re.compile(
    r"#[^\r\n]*(?:unused|need|requir|because|otherwise|without|error|dynamic|some param|not all)",
    re.IGNORECASE,
)
# Models of torchvision without a head that only some passes use.
_WHOLLY_USED = re.compile(
    r"torchvision\.models\.(?:\w+\.)*(?:resnet|resnext|wide_resnet|vgg|densenet|mobilenet|efficientnet|convnext"
    r"|vit_|swin_|regnet|shufflenet|mnasnet|squeezenet|alexnet)\w*"
)
_BRANCHES = (cst.If, cst.IfExp, cst.While, cst.Try, cst.TryStar, cst.Match, cst.BooleanOperation)
_CUTTING = frozenset({"detach", "detach_", "no_grad", "set_grad_enabled", "inference_mode", "checkpoint"})
_LINES_ABOVE = 3
_HOPS = 4


class Outcome(IdentityEnum):
    """What the search can find, as far as the file shows."""

    NOTHING = "nothing"
    """Everything that the model has takes part in each of its forward passes."""
    BRANCHES = "branches"
    """The forward pass of the model has branches, which may leave out some of it."""
    OPEN = "open"
    """The file does not show enough of the model."""


@dataclass(frozen=True, slots=True)
class Search:
    """A place that switches the search on, with its outcome and what the model is, if that is shown."""

    node: cst.CSTNode
    outcome: Outcome
    model: str = ""


def search(call: cst.Call, module: Module) -> Search | None:
    """The search for unused parameters that a call switches on, whatever the program is told."""
    node = _switched_on(call, module)
    if node is None or is_test(module) or _is_explained(call, module):
        return None
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is not None:
        inner = Parallelism.of(module).inner(wrapper)
        if isinstance(inner.definition, cst.ClassDef):
            return Search(node, _Uses(module).of(inner.definition), inner.definition.name.value)
        made = _maker(wrapper.model, module) if wrapper.model is not None else None
        if made is not None and _WHOLLY_USED.fullmatch(made):
            return Search(node, Outcome.NOTHING, made.rpartition(".")[2])
    return Search(node, Outcome.OPEN) if _trains(wrapper, module) else None


def _maker(node: cst.BaseExpression, module: Module) -> str | None:
    """The library function whose result a model certainly is."""
    for _ in range(_HOPS):
        if isinstance(node, cst.Call):
            if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in RETURNS_SELF:
                return module.qualified(node.func)
            node = node.func.value
        bindings = module.bindings(node) if isinstance(node, cst.Name) else ()
        if len(bindings) == 1 and bindings[0].value is not None and not bindings[0].path:
            node = bindings[0].value
    return None


def _trains(wrapper: Wrapper | None, module: Module) -> bool:
    """Whether the file trains the model, so that whoever reads it can try without: a library cannot."""
    if wrapper is not None:
        if wrapper.model is None or not _is_made(module, wrapper.model, _HOPS):
            return False
        forwards = Parallelism.of(module).forwards(wrapper)
        return Backpropagation.of(module).happens and any(
            grad(module, call) is not Grad.OFF for call in forwards
        )
    return _runs(module)


@remembered
def _is_made(module: Module, node: cst.BaseExpression, hops: int) -> bool:
    """Whether the file makes a model itself, where a trainer takes whichever it is given."""
    if isinstance(node, cst.Call):
        wrapper = Parallelism.of(module).wrapper(node)
        if wrapper is not None:
            return wrapper.model is not None and _is_made(module, wrapper.model, hops)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in RETURNS_SELF:
            return _is_made(module, node.func.value, hops)
        return True
    if not isinstance(node, cst.Name):
        return False
    for binding in module.bindings(node):
        if binding.kind is BindingKind.PARAMETER and hops:
            calls = module.callers(binding.scope.node)
            given = [module.argument(call, binding.name).node for call in calls]
            if any(value is not None and _is_made(module, value, hops - 1) for value in given):
                return True
        elif binding.value is not None and hops and not module.tree.contains(binding.value, node):
            if isinstance(binding.value, (cst.Call, cst.Name)) and _is_made(module, binding.value, hops - 1):
                return True
    return False


def _runs(module: Module) -> bool:
    """Whether a file is a program, or has a trainer do its work."""
    for call in module.tree.nodes(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("fit", "train"):
            if "trainer" in (last_name(call.func.value) or "").lower():
                return True
    return module.tree.mentions("__main__")


def _switched_on(call: cst.Call, module: Module) -> cst.CSTNode | None:
    """The argument that says so."""
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is not None and wrapper.wrapping is Wrapping.DDP:
        on = Parallelism.of(module).argument(wrapper, "find_unused_parameters")
        static = Parallelism.of(module).argument(wrapper, "static_graph")
        # A graph that never changes is searched once.
        given = on.given and on.constant is True and (static.absent or static.constant is False)
        return on.arg if given else None
    if not _CARRIERS.fullmatch(module.qualified(call.func) or ""):
        return _strategy(call, module)
    found = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    static_graph = found.get("static_graph")
    if static_graph is not None and module.value(static_graph.value).constant is not False:
        return None
    for keyword in _KEYWORDS:
        if keyword in found and module.value(found[keyword].value).constant is True:
            return found[keyword]
    return None


def _strategy(call: cst.Call, module: Module) -> cst.CSTNode | None:
    """``Trainer(strategy="ddp_find_unused_parameters_true")``."""
    if last_name(call.func) not in ("Trainer", "Fabric"):
        return None
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "strategy":
            constant = module.value(arg.value).constant
            if constant is not MISSING and isinstance(constant, str) and _STRATEGY.fullmatch(constant):
                return arg
    return None


def _is_explained(call: cst.Call, module: Module) -> bool:
    """Whether a remark beside or above a call gives a reason."""
    lines = _lines(module)
    first = module.tree.line(call) - 1
    count = module.source(call).count("\n") + 1
    return _EXPLAINED.search("\n".join(lines[max(0, first - _LINES_ABOVE) : first + count])) is not None


@remembered
def _lines(module: Module) -> list[str]:
    return module.tree.text.splitlines()


class _Uses:
    """Whether the modules and parameters of a class take part in each of its forward passes."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree = module, module.tree
        self.seen: set[cst.ClassDef] = set()

    def of(self, definition: cst.ClassDef) -> Outcome:
        """What a search through an instance of a class finds."""
        info = self.module.classes.info(definition)
        init, forward = info.methods.get("__init__"), info.methods.get("forward")
        if forward is None or info.opaque or info.bases != ("torch.nn.Module",) or len(info.lineage) > 1:
            return Outcome.OPEN
        if any(isinstance(node, _BRANCHES) for node in self.tree.descendants(forward.body)):
            return Outcome.BRANCHES
        self.seen.add(definition)
        if init is None or not self._is_plain(forward):
            return Outcome.OPEN
        used = frozenset(self._used(forward))
        for name, value in self._kept(init, info):
            if not self._all_used(name, value, used):
                return Outcome.OPEN
        return Outcome.NOTHING

    def _is_plain(self, forward: cst.FunctionDef) -> bool:
        """Whether a forward pass ends in one result, and cuts the graph nowhere."""
        returns = [node for node in self.tree.descendants(forward.body) if isinstance(node, cst.Return)]
        if len(returns) != 1 or returns[0] is not self._last(forward):
            return False
        if isinstance(returns[0].value, (cst.Tuple, cst.List, cst.Dict)) or returns[0].value is None:
            return False
        for node in self.tree.descendants(forward.body):
            if isinstance(node, (cst.Name, cst.Attribute)) and last_name(node) in _CUTTING:
                return False
            if isinstance(node, (cst.Break, cst.Continue, cst.Yield, cst.Lambda, cst.FunctionDef)):
                return False
        return True

    def _last(self, forward: cst.FunctionDef) -> cst.CSTNode | None:
        line = forward.body.body[-1] if forward.body.body else None
        return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None

    def _used(self, forward: cst.FunctionDef) -> Iterator[str]:
        """The attributes of ``self`` that a forward pass calls, goes through in a loop, or computes with."""
        for attribute in self.tree.descendants(forward.body):
            if not isinstance(attribute, cst.Attribute) or last_name(attribute.value) != "self":
                continue
            if not isinstance(attribute.value, cst.Name):
                continue
            parent = self.tree.parent(attribute)
            called = isinstance(parent, cst.Call) and parent.func is attribute
            looped = isinstance(parent, cst.For) and parent.iter is attribute
            if called or (looped and self._calls_each(parent)):
                yield attribute.attr.value
            elif isinstance(parent, (cst.BinaryOperation, cst.Arg)):
                yield f"={attribute.attr.value}"

    def _calls_each(self, loop: cst.CSTNode | None) -> bool:
        """``for layer in self.layers: x = layer(x)``."""
        if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
            return False
        name = loop.target.value
        return any(
            isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == name
            for node in self.tree.descendants(loop.body)
        )

    def _kept(
        self, init: cst.FunctionDef, info: ClassInfo
    ) -> Iterator[tuple[str, cst.BaseExpression | None]]:
        """What a constructor keeps on ``self``; None for what only some instances have, or is hidden."""
        for node in self.tree.descendants(info.node):
            match node:
                case cst.Assign(targets=targets):
                    for target in targets:
                        match target.target:
                            case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)):
                                plain = self.tree.statement(node) in init.body.body and len(targets) == 1
                                yield name, node.value if plain else None
                            case cst.Tuple() | cst.List():
                                yield "", None
                            case _:
                                pass
                case cst.AnnAssign(target=cst.Attribute(attr=cst.Name(name)), value=value):
                    yield name, value
                case cst.Call(func=cst.Attribute(value=cst.Name("self"), attr=cst.Name(method))):
                    if method in ("add_module", "register_module", "register_parameter", "__setattr__"):
                        yield "", None
                case cst.Call(func=cst.Name("setattr")):
                    yield "", None
                case _:
                    pass

    def _all_used(self, name: str, value: cst.BaseExpression | None, used: frozenset[str]) -> bool:
        """Whether what is kept under a name takes part in the forward pass, or has no parameters."""
        if value is None:
            return False
        known = self.module.value(value)
        if known.kind in (Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE):
            return True
        if known.kind is Kind.TENSOR:
            return not known.leaf or f"={name}" in used
        return known.kind is Kind.MODULE and name in used and self._complete(value)

    def _complete(self, value: cst.BaseExpression) -> bool:
        """Whether all of a module takes part when it is called: a layer of torch, or of a class like this."""
        if not isinstance(value, cst.Call):
            return False
        dotted = self.module.qualified(value.func)
        if dotted in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            return bool(value.args) and all(self._member(arg) for arg in value.args)
        if dotted is not None:
            return dotted.startswith("torch.nn.") and dotted != "torch.nn.ModuleDict"
        definition = self.module.value(value).definition
        if not isinstance(definition, cst.ClassDef) or definition in self.seen:
            return isinstance(definition, cst.ClassDef) and definition in self.seen
        return self.of(definition) is Outcome.NOTHING

    def _member(self, arg: cst.Arg) -> bool:
        value = arg.value
        if isinstance(value, (cst.List, cst.Tuple)):
            return all(self._complete(element.value) for element in value.elements)
        if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
            return self._complete(value.elt)
        return self._complete(value)
