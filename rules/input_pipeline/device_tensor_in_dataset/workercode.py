"""What runs in the worker processes of loaders: methods of datasets, collate functions, what they call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.identifiers import option_default
from torchlint.semantics.loaders import Loaders, class_behind, collations, constructors_around
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Device, Kind

from ..workercounts import usual_workers

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

ITEM_METHODS = ("__getitem__", "__getitems__", "__iter__", "__next__")
# Not MPS: where it is, workers are spawned.
_ACCELERATORS = ("cuda", "xpu", "npu", "hpu")
STARTED_AFRESH = ("spawn", "forkserver")
"""How workers are started that can use CUDA."""


@dataclass(frozen=True, slots=True)
class Use:
    """A function that loaders run, and the calls that make these loaders, where the file has some."""

    function: Function
    loaders: tuple[cst.Call, ...]
    read: tuple[cst.ClassDef, ...] = ()
    """For each of them the class of the dataset, if the function is a method of one."""

    def forked(self, module: Module) -> cst.Call | None:
        """Return one of the loaders that has worker processes, or pins what it is handed;
        None if there is none.
        """
        for call in self.loaders:
            workers = usual_workers(module, call)
            if (workers is not None and workers.count > 0) or Loaders.of(module).pinned(call):
                return call
        return None


def worker_code(module: Module, node: cst.CSTNode) -> Use | None:
    """Return the function of a dataset, or the collate function, that runs ``node``, be it through others."""
    start = module.function(node)
    return _use_of(module, start) if start is not None else None


@remembered
def starts_afresh(module: Module) -> bool:
    """Return whether another file of the program asks for workers that are not forked: ``"spawn"``."""
    return any(
        string.raw_value in STARTED_AFRESH
        for other in module.companions(*STARTED_AFRESH)
        for string in other.tree.nodes(cst.SimpleString)
    )


def _runs(module: Module, use: Use, start: Function) -> Use:
    """Return a use with those loaders alone whose datasets have the method ``start``,
    not that of another heir.
    """
    owner = module.classes.owner(start)
    if module.link is None or owner is None or not use.read:
        return use
    loaders = [
        call
        for call, read in zip(use.loaders, use.read, strict=True)
        if any(member.node is owner for member in module.classes.info(read).lineage)
    ]
    # A helper of the dataset is a class of its own.
    related = any(member.node is owner for read in use.read for member in module.classes.info(read).lineage)
    return replace(use, loaders=tuple(loaders), read=()) if related or _is_heir(module, owner, use) else use


def _is_heir(module: Module, owner: cst.ClassDef, use: Use) -> bool:
    """Return whether a class derives from the one whose method a loader runs."""
    base = module.classes.owner(use.function)
    return any(member.node is base for member in module.classes.info(owner).lineage)


@remembered
def _use_of(module: Module, start: Function) -> Use | None:
    """Return the function of a dataset, or the collate function, that runs a function."""
    seen: dict[Function, None] = {start: None}
    waiting = [start]
    for function in waiting:
        uses = _uses(module.home(function))
        if function in uses:
            return _runs(module, uses[function], start)
        for call in module.callers(function):
            outer = module.function(call)
            if outer is not None and outer not in seen and len(seen) < 50:
                seen[outer] = None
                waiting.append(outer)
    return None


@remembered
def _uses(module: Module) -> dict[Function, Use]:
    """Return the functions that loaders run."""
    return {use.function: use for use in _find_uses(module)}


def _find_uses(module: Module) -> Iterator[Use]:
    reading: dict[cst.ClassDef, list[cst.Call]] = {}
    for call in constructors_around(module):
        dataset = Loaders.of(module).dataset(call)
        for found in _classes(module, dataset) if dataset is not None else ():
            reading.setdefault(found, []).append(call)
    for function, loaders in collations(module).items():
        yield Use(function, loaders)
    heirs: dict[cst.ClassDef, list[cst.ClassDef]] = {}
    for read in reading:
        for node in dict.fromkeys(member.node for member in module.classes.info(read).lineage):
            heirs.setdefault(node, []).append(read)
    for definition in module.tree.nodes(cst.ClassDef):
        info = module.classes.info(definition)
        if info.kind is not Kind.DATASET:
            continue
        made = [(call, read) for read in heirs.get(definition, ()) for call in reading[read]]
        run_by, classes = tuple(call for call, _ in made), tuple(read for _, read in made)
        for name in ITEM_METHODS:
            method = info.methods.get(name)
            if method is not None:
                yield Use(method, run_by, classes)


def _classes(module: Module, node: cst.BaseExpression) -> list[cst.ClassDef]:
    """Return the classes of the program that a dataset is an instance, or a part of an instance, of."""
    found = [end for end in class_behind(module, node) if end is not None]
    return sorted(found, key=module.tree.order.__getitem__)


# --- what uses the accelerator ------------------------------------------------------------------------


def reaches_accelerator(module: Module, call: cst.Call) -> bool:
    """Return whether a call certainly makes or moves something on an accelerator, where there is one."""
    func = call.func
    name = module.qualified(func)
    if name is not None and name.startswith("torch.cuda.") and name.endswith("Tensor"):
        return True
    if isinstance(func, cst.Attribute) and name is None and func.attr.value in ("cuda", "to"):
        if func.attr.value == "cuda":
            return module.value(func.value).definition is None or module.value(func.value).kind is Kind.MODULE
        if call.args and call.args[0].keyword is None and not call.args[0].star:
            return certain_accelerator(module, call.args[0].value)
    if name is not None and not name.startswith("torch."):
        return False
    return any(
        arg.keyword is not None and arg.keyword.value == "device" and certain_accelerator(module, arg.value)
        for arg in call.args
        if name is not None or last_name(func) == "to"
    )


def holds_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether ``self.images`` is what the class has put on an accelerator."""
    own = isinstance(node, cst.Attribute) and SelfAttributes.is_self(node.value)
    return own and every(_is_put_there(module, node))


@traced(Through.NOTHING)
def _is_put_there(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    return reaches_accelerator(module, node) if isinstance(node, cst.Call) and not path else None


def certain_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a device is an accelerator, if there is one,
    by what the file says and not by its name.
    """
    return every(_is_accelerator(module, node))


@traced(Through.PARAMETERS)
def _is_accelerator(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    constant = module.value(node).constant if not path else None
    if isinstance(constant, str):
        return constant.partition(":")[0] in _ACCELERATORS
    match node:
        case cst.Call() if module.qualified(node.func) == "torch.device" and node.args:
            return onward(node.args[0].value)
        case cst.Call() if module.qualified(node.func) == "torch.cuda.current_device":
            return True
        case cst.IfExp():
            # Where there is one, it is not the host that is chosen.
            return onward(*(side for side in (node.body, node.orelse) if not _is_host(module, side)))
        case cst.FormattedString():
            text = module.source(node).lstrip("fFrR").strip("\"'")
            return text.startswith(_ACCELERATORS)
        case cst.Attribute() if _is_accelerator_by_default(module, node):
            return True
        case cst.Attribute(attr=cst.Name(value="device")) if not SelfAttributes.is_self(node.value):
            # What goes to where another tensor is does not put anything on the accelerator first.
            return module.value(node.value).kind is Kind.ACCELERATOR
        case _:
            return None


def _is_accelerator_by_default(module: Module, node: cst.Attribute) -> bool:
    """Return whether an option of the command line is an accelerator unless somebody asks for another."""
    name = node.attr.value
    default = option_default(module, name)
    constant = module.value(default).constant if default is not None else None
    return (
        isinstance(constant, str)
        and constant.partition(":")[0] in _ACCELERATORS
        and not any(_assigns_option(each, name) for each in (module, *module.companions(f".{name} = ")))
    )


@remembered
def _assigns_option(module: Module, name: str) -> bool:
    """Return whether code of a file gives an option another value: ``args.device = choose(args)``."""
    targets = (each.target for each in module.tree.nodes(cst.AssignTarget))
    return any(
        isinstance(target, cst.Attribute)
        and target.attr.value == name
        and not SelfAttributes.is_self(target.value)
        for target in targets
    )


def _is_host(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return value.device is Device.CPU or value.constant == "cpu"
