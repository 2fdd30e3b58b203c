"""Which loops run a model on the host: those of programs that move nothing to a device."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.frameworks import PLACING_BATCHES
from torchlint.semantics.api.results import MOVES_TO_ACCELERATOR
from torchlint.semantics.lexicon import Role, ends, names_device
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import Device, Kind

_TAKING_AWAY = MOVES_TO_ACCELERATOR | {"to", "type", "copy_"}


@remembered
def runs_on_host(module: Module, loop: cst.For | cst.While) -> bool:
    """Return whether a loop runs a model on the host: one that is given the batches of a loader as they
    come, or that the function makes for itself, where nothing moves any tensor.

    A framework may do so out of sight, and so may the model itself.
    """
    calls = module.tree.nodes_within(loop.body, cst.Call)
    passes = [call for call in calls if module.value(call.func).kind is Kind.MODULE]
    if not passes or module.mentions(*PLACING_BATCHES) or _moves_something(module, _home_of(module, loop)):
        return False
    if isinstance(loop, cst.For) and _feeds_as_they_come(module, loop, passes):
        return True
    return all(_makes_on_host(module, call.func, loop) for call in passes)


def _home_of(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """Return the function around a node, or the module itself."""
    return module.function(node) or module.tree.root


def _feeds_as_they_come(module: Module, loop: cst.For, passes: list[cst.Call]) -> bool:
    """Return whether batches of a loader go into a model of which no code moves them.

    Tensors that are all of the data may have been moved before.
    """
    if not places.over_loader(module, loop) or module.mentions("TensorDataset("):
        return False
    fed = [call for call in passes if any(_is_item_of(module, arg.value, loop) for arg in call.args)]
    run = (callee for call in fed for callee in module.callees(call))
    return bool(fed) and not any(_moves_something(module, each) for each in run)


def _makes_on_host(module: Module, model: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Return whether a variable is a model of the project that a function makes,
    by code that makes nothing elsewhere.
    """
    made = module.value(model)
    bindings = module.bindings(model)
    if not isinstance(made.definition, cst.ClassDef) or not bindings:
        return False
    return not _moves_something(module, made.definition) and all(
        isinstance(each.value, cst.Call)
        and _home_of(module, each.node) is _home_of(module, loop)
        and not any(_moves_something(module, maker) for maker in module.callees(each.value))
        for each in bindings
    )


def _is_item_of(module: Module, node: cst.BaseExpression, loop: cst.For) -> bool:
    """Return whether a variable has what a loop gives it, or a part of that: ``x``, ``batch[0]``.

    It has not if the loader itself puts its batches on the device.
    """
    if module.value(node).device is Device.ACCELERATOR:
        return False
    bindings = module.bindings(start_of(node, cst.Subscript))
    return bool(bindings) and all(module.tree.contains(loop.target, each.node) for each in bindings)


@remembered
def _moves_something(module: Module, around: cst.CSTNode) -> bool:
    """Return whether code moves a tensor or makes one on a device, whatever that is."""
    home = module.home(around)
    return any(
        last_name(call.func) in _TAKING_AWAY
        or ends(last_name(call.func), Role.SENDING)
        or last_name(call.func) == "device"
        or any(names_device(argument.keyword.value) for argument in call.args if argument.keyword is not None)
        for call in home.tree.nodes_within(around, cst.Call)
    )
