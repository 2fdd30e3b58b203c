"""The search of DDP for parameters that get no gradient: where it is on, and whether it can find any.

With ``find_unused_parameters=True`` DDP goes through the graph of autograd after each forward pass, before it
starts on the backward pass. It cannot find any where all that a model has takes part in every forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.comments import Topic, says
from torchlint.semantics.contexts import is_test
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.identifiers import is_below
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import Item, Path, Source, Through, every, onward, sole, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

from ..parallelism import Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_KEYWORDS = ("find_unused_parameters", "ddp_find_unused_parameters")
# What hands the option on to DDP: the packages that have it, and what its name is or ends with.
_PACKAGES = (
    *("accelerate", "ignite", "lightning", "lightning_fabric", "pytorch_lightning", "transformers", "trl"),
)
_CARRIERS = frozenset({"DistributedDataParallelKwargs", "auto_model"})
_CONFIGURATIONS = ("TrainingArguments", "Config")
_OF_LIGHTNING = ("Strategy", "Plugin")
_STRATEGIES = frozenset(
    f"ddp{how}_find_unused_parameters_true" for how in ("", "_spawn", "_fork", "_notebook")
)
# Models of torchvision without a head that only some passes use.
_WHOLLY_USED = (
    *(
        "alexnet",
        "convnext",
        "densenet",
        "efficientnet",
        "mnasnet",
        "mobilenet",
        "regnet",
        "resnet",
        "resnext",
    ),
    *("shufflenet", "squeezenet", "swin_", "vgg", "vit_", "wide_resnet"),
)
_BRANCHES = (cst.If, cst.IfExp, cst.While, cst.Try, cst.TryStar, cst.Match, cst.BooleanOperation)
_CUTTING = frozenset({"detach", "detach_", "no_grad", "set_grad_enabled", "inference_mode", "checkpoint"})


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


def search(module: Module, call: cst.Call) -> Search | None:
    """Return the search for unused parameters that a call switches on, whatever the program is told."""
    node = _switched_on(module, call)
    if node is None or is_test(module) or says(module, call, Topic.UNUSED, Topic.REASON):
        return None
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is not None:
        inner = Parallelism.of(module).inner(wrapper)
        if isinstance(inner.definition, cst.ClassDef):
            return Search(node, _outcome(module, inner.definition), inner.definition.name.value)
        made = _maker(module, wrapper.model) if wrapper.model is not None else None
        if made is not None and _is_wholly_used(made):
            return Search(node, Outcome.NOTHING, made.rpartition(".")[2])
    return Search(node, Outcome.OPEN) if _trains(module, wrapper) else None


def _is_wholly_used(dotted: str) -> bool:
    """Return whether a function of torchvision makes a model all of which takes part in each pass."""
    return is_below(dotted, ("torchvision.models",)) and dotted.rpartition(".")[2].startswith(_WHOLLY_USED)


def _maker(module: Module, node: cst.BaseExpression) -> str | None:
    """Return the library function whose result a model certainly is."""
    return sole(_made_by(module, node))


@traced(Through.NOTHING)
def _made_by(module: Module, node: cst.CSTNode, path: Path) -> str | list[Source] | None:
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in RETURNS_SELF:
            return onward(owner)
        case cst.Call() if not path:
            return module.qualified(node.func)
        case _:
            return None


def _trains(module: Module, wrapper: Wrapper | None) -> bool:
    """Return whether the program trains the model, so that whoever reads it can try without:
    a library cannot.
    """
    if wrapper is not None:
        if wrapper.model is None or not some(_is_made(module, wrapper.model)):
            return False
        forwards = Parallelism.of(module).forwards(wrapper)
        files = (module, *module.companions("backward"))
        return any(Backpropagation.of(each).happens for each in files) and any(
            grad(module, call) is not Grad.OFF for call in forwards
        )
    return _runs(module)


@traced(Through.PARAMETERS)
def _is_made(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether the file makes a model itself, where a trainer takes whichever it is given."""
    if not isinstance(node, cst.Call):
        return None
    wrapper = Parallelism.of(module).wrapper(node)
    if wrapper is not None:
        return onward(wrapper.model) if wrapper.model is not None else False
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in RETURNS_SELF:
        return onward(node.func.value)
    return True


def _runs(module: Module) -> bool:
    """Return whether a file is a program, or has a trainer do its work."""
    for call in module.tree.nodes(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("fit", "train"):
            if "trainer" in (last_name(call.func.value) or "").lower():
                return True
    return module.tree.mentions("__main__")


def _switched_on(module: Module, call: cst.Call) -> cst.CSTNode | None:
    """Return the argument that says so."""
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is not None and wrapper.wrapping is Wrapping.DDP:
        on = Parallelism.of(module).argument(wrapper, "find_unused_parameters")
        static = Parallelism.of(module).argument(wrapper, "static_graph")
        # A graph that never changes is searched once.
        given = on.given and on.constant is True and (static.absent or static.constant is False)
        return on.arg if given else None
    if not _hands_on(module.qualified(call.func) or ""):
        return _strategy(module, call)
    found = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    static_graph = found.get("static_graph")
    if static_graph is not None and module.value(static_graph.value).constant is not False:
        return None
    for keyword in _KEYWORDS:
        if keyword in found and module.value(found[keyword].value).constant is True:
            return found[keyword]
    return None


def _hands_on(dotted: str) -> bool:
    """Return whether a class or function of a library hands the option on to DDP."""
    name = dotted.rpartition(".")[2]
    return is_below(dotted, _PACKAGES) and (
        name in _CARRIERS
        or name.endswith(_CONFIGURATIONS)
        or (name.startswith("DDP") and name.endswith(_OF_LIGHTNING))
    )


def _strategy(module: Module, call: cst.Call) -> cst.CSTNode | None:
    """Return the argument of ``Trainer(strategy="ddp_find_unused_parameters_true")``."""
    if last_name(call.func) not in ("Trainer", "Fabric"):
        return None
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "strategy":
            constant = module.value(arg.value).constant
            if isinstance(constant, str) and constant in _STRATEGIES:
                return arg
    return None


# --- what takes part in a forward pass ---------------------------------------------------------------------


@solved(Outcome.NOTHING)
def _outcome(module: Module, definition: cst.ClassDef) -> Outcome:
    """Return what a search through an instance of a class finds."""
    info = module.classes.info(definition)
    init, forward = info.methods.get("__init__"), info.methods.get("forward")
    if forward is None or info.opaque or info.bases != ("torch.nn.Module",) or len(info.lineage) > 1:
        return Outcome.OPEN
    if any(isinstance(node, _BRANCHES) for node in module.tree.descendants(forward.body)):
        return Outcome.BRANCHES
    if init is None or not _is_plain(module, forward):
        return Outcome.OPEN
    used = frozenset(_used(module, forward))
    for name, value in _kept(module, init, info):
        if not _all_used(module, name, value, used):
            return Outcome.OPEN
    return Outcome.NOTHING


def _is_plain(module: Module, forward: cst.FunctionDef) -> bool:
    """Return whether a forward pass ends in one result, and cuts the graph nowhere."""
    returns = [node for node in module.tree.descendants(forward.body) if isinstance(node, cst.Return)]
    if len(returns) != 1 or returns[0] is not _last(forward):
        return False
    if isinstance(returns[0].value, (cst.Tuple, cst.List, cst.Dict)) or returns[0].value is None:
        return False
    for node in module.tree.descendants(forward.body):
        if isinstance(node, (cst.Name, cst.Attribute)) and last_name(node) in _CUTTING:
            return False
        if isinstance(node, (cst.Break, cst.Continue, cst.Yield, cst.Lambda, cst.FunctionDef)):
            return False
    return True


def _last(forward: cst.FunctionDef) -> cst.CSTNode | None:
    line = forward.body.body[-1] if forward.body.body else None
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None


def _used(module: Module, forward: cst.FunctionDef) -> Iterator[str]:
    """Yield the attributes of ``self`` that a forward pass calls, goes through in a loop,
    or computes with.
    """
    for attribute in module.tree.descendants(forward.body):
        if not isinstance(attribute, cst.Attribute) or last_name(attribute.value) != "self":
            continue
        if not isinstance(attribute.value, cst.Name):
            continue
        parent = module.tree.parent(attribute)
        looped = isinstance(parent, cst.For) and parent.iter is attribute
        if module.tree.is_called(attribute) or (looped and _calls_each(module, parent)):
            yield attribute.attr.value
        elif isinstance(parent, (cst.BinaryOperation, cst.Arg)):
            yield f"={attribute.attr.value}"


def _calls_each(module: Module, loop: cst.CSTNode | None) -> bool:
    """Return whether it is ``for layer in self.layers: x = layer(x)``."""
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
        return False
    name = loop.target.value
    return any(
        isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == name
        for node in module.tree.descendants(loop.body)
    )


def _kept(
    module: Module, init: cst.FunctionDef, info: ClassInfo
) -> Iterator[tuple[str, cst.BaseExpression | None]]:
    """Yield what a constructor keeps on ``self``; None for what only some instances have, or is hidden."""
    for node in module.tree.descendants(info.node):
        match node:
            case cst.Assign(targets=targets):
                for target in targets:
                    match target.target:
                        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)):
                            plain = module.tree.statement(node) in init.body.body and len(targets) == 1
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


def _all_used(module: Module, name: str, value: cst.BaseExpression | None, used: frozenset[str]) -> bool:
    """Return whether what is kept under a name takes part in the forward pass, or has no parameters."""
    if value is None:
        return False
    known = module.value(value)
    if known.kind in (Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE):
        return True
    if known.kind is Kind.TENSOR:
        return not known.leaf or f"={name}" in used
    return known.kind is Kind.MODULE and name in used and _complete(module, value)


def _complete(module: Module, value: cst.BaseExpression | Source) -> bool:
    """Return whether all of a module takes part when it is called: a layer of torch,
    or of a class like this.
    """
    return every(_takes_part(module, value))


@traced(Through.ITEMS)
def _takes_part(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    if path or not isinstance(node, cst.Call):
        return None
    dotted = module.qualified(node.func)
    if dotted in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return bool(node.args) and all(_complete(module, _members(arg)) for arg in node.args)
    if dotted is not None:
        return dotted.startswith("torch.nn.") and dotted != "torch.nn.ModuleDict"
    definition = module.value(node).definition
    return isinstance(definition, cst.ClassDef) and _outcome(module, definition) is Outcome.NOTHING


def _members(arg: cst.Arg) -> Source:
    """Return the layers that a container is given with an argument: each of a list, or one."""
    listed = arg.star or isinstance(arg.value, (cst.List, cst.Tuple, cst.ListComp, cst.GeneratorExp))
    return Source(arg.value, (Item.EACH,) if listed else ())
