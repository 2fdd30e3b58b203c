"""Models that one process copies to several devices: ``nn.DataParallel`` and its function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.contexts import is_test
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.guards import guards
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.spellings import given_as

from ..parallelism import DATA_PARALLEL, Parallelism, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_FUNCTION = "torch.nn.parallel.data_parallel"
# What is asked of a wrapper that only gives the parameters the names that a checkpoint has for them.
_FOR_NAMES = frozenset({"module", "load_state_dict", "state_dict"})


class Replication(IdentityEnum):
    """What a program has besides the model that one process copies to several devices."""

    ONLY = "only"
    """Nothing: this is how it uses several devices."""
    FALLBACK = "fallback"
    """It wraps in ``DistributedDataParallel`` where it is started as several processes."""


def replication(module: Module, call: cst.Call) -> Replication | None:
    """Return whether a call makes one process use several devices,
    and whether the program knows another way.
    """
    dotted = module.qualified(call.func)
    if dotted == _FUNCTION:
        devices = given_as(call, "device_ids", 2)
    elif dotted is None or dotted == DATA_PARALLEL:
        wrapper = Parallelism.of(module).wrapper(call)
        if wrapper is None or wrapper.wrapping is not Wrapping.DATA_PARALLEL:
            return None
        devices = Parallelism.of(module).argument(wrapper, "device_ids").node
    else:
        return None
    if is_test(module) or (devices is not None and _is_one(module, devices)):
        return None
    if _wrapped_before(module, call) or _offered(module, call) or _for_names(module, call):
        return None
    if _hands_out_pretrained(module, call):
        return None
    parallelism = Parallelism.of(module)
    several = parallelism.wrapped_by(Wrapping.DDP) or parallelism.frameworks or parallelism.distributed
    return Replication.FALLBACK if several else Replication.ONLY


def _wrapped_before(module: Module, call: cst.Call) -> bool:
    """Return whether a call wraps again what came wrapped:
    ``if isinstance(model, nn.DataParallel)`` around it.
    """
    for guard in guards(module, call):
        test = guard.test
        if (
            guard.holds
            and isinstance(test, cst.Call)
            and module.qualified(test.func) == "builtins.isinstance"
        ):
            if any(module.qualified(n) == DATA_PARALLEL for n in module.tree.descendants(test.args[-1])):
                return True
    return False


def _offered(module: Module, call: cst.Call) -> bool:
    """Return whether a class offers just this to whoever asks for it: ``DataParallelStrategy``."""
    owner = module.tree.enclosing(call, cst.ClassDef)
    return owner is not None and has(owner.name.value, Role.DISTRIBUTED)


def _for_names(module: Module, call: cst.Call) -> bool:
    """Return whether the wrapper is only filled from a checkpoint, and taken off again."""
    match module.tree.parent(call):
        case cst.Attribute(attr=cst.Name("module")):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]) if module.function(call):
            binding = module.binding_of(target)
            uses = module.uses(binding) if binding is not None else []
            parents = (module.tree.parent(use) for use in uses)
            return all(isinstance(p, cst.Attribute) and p.attr.value in _FOR_NAMES for p in parents)
        case _:
            return False


def _hands_out_pretrained(module: Module, call: cst.Call) -> bool:
    """Return whether a function only makes a model for inference from a checkpoint,
    in a file that has no data.

    The checkpoint may have been written by a wrapped model, and the process is that of the caller.
    """
    if module.tree.mentions("backward(") or module.tree.mentions("DataLoader("):
        return False
    function = module.function(call)
    methods = _chained(module, call)
    made: cst.CSTNode = call
    while isinstance(module.tree.parent(made), (cst.Attribute, cst.Call)):
        made = module.tree.parents[made]
    match module.tree.parent(made):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]) if function is not None:
            binding = module.binding_of(target)
            for use in module.uses(binding) if binding is not None else ():
                methods |= _chained(module, use)
    return {"eval", "load_state_dict"} <= methods


def _chained(module: Module, node: cst.CSTNode) -> set[str]:
    """Return what is asked of an expression, one after the other: ``model.module.load_state_dict(…)``."""
    found: set[str] = set()
    around = module.tree.parent(node)
    while isinstance(around, (cst.Attribute, cst.Call)):
        if isinstance(around, cst.Attribute):
            found.add(around.attr.value)
        around = module.tree.parent(around)
    return found


def _is_one(module: Module, devices: cst.BaseExpression) -> bool:
    """Return whether a list of devices has one item: ``[0]``, ``[args.gpu]``."""
    shown = module.inference.callgraph.literal(devices)
    if isinstance(shown, (cst.List, cst.Tuple)):
        return len(shown.elements) == 1 and not isinstance(shown.elements[0], cst.StarredElement)
    elements = module.value(devices).elements
    return elements is not None and len(elements) == 1
