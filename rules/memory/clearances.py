"""Memory that is given back at every step: emptied caches, collected garbage, and reasons for it.

Who frees a whole model before the next one is made, who looks for the largest batch that fits, who measures
memory, and who asked for it by an option has a reason. A step of training has none: memory that it frees is
used again by the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import comments, places
from torchlint.semantics.comments import Topic
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.lexicon import Role, begins, has, names_model
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_EMPTYING = frozenset(
    {
        "torch.cuda.empty_cache",
        "torch.cuda.memory.empty_cache",
        "torch.accelerator.empty_cache",
        "torch.accelerator.memory.empty_cache",
        "torch.xpu.empty_cache",
        "torch.xpu.memory.empty_cache",
        "torch.mps.empty_cache",
        "torch.npu.empty_cache",
        "torch.mlu.empty_cache",
        "torch.musa.empty_cache",
    }
)
_FREEING = frozenset(
    {
        "accelerate.utils.clear_device_cache",
        "accelerate.utils.memory.clear_device_cache",
        "diffusers.training_utils.free_memory",
        "lightning.pytorch.utilities.memory.garbage_collection_cuda",
        "pytorch_lightning.utilities.memory.garbage_collection_cuda",
    }
)
_ABSTRACTIONS = frozenset(
    {
        "deepspeed.accelerator.get_accelerator",
        "deepspeed.accelerator.real_accelerator.get_accelerator",
        "torch.get_device_module",
    }
)

# Functions of torch's devices that tell how much memory is used end so, and helpers around them.
_MEASURES = (
    *("memory_allocated", "memory_reserved", "memory_cached", "memory_stats", "memory_summary"),
    *("memory_snapshot", "memory_usage", "mem_get_info"),
)
# Packages that ask the driver.
_DRIVERS = ("pynvml", "py3nvml", "nvidia_smi", "GPUtil", "nvitop")


def measures_memory(module: Module) -> bool:
    """Return whether the file measures how much memory is used."""
    if imports(module, _DRIVERS) or any(name.endswith(_MEASURES) for name in identifiers(module)):
        return True
    texts = (string.raw_value for string in module.tree.nodes(cst.SimpleString))
    return any(text.startswith("nvidia-smi") for text in texts)


def _measures_or_tries(name: str | None) -> bool:
    """Return whether a function of this name measures something, or tries how much fits."""
    return has(name, Role.MEASUREMENT) or (
        has(name, Role.BATCH) and has(name, Role.MAGNITUDE) and has(name, Role.SEARCH)
    )


def emptying(module: Module, call: cst.Call) -> str | None:
    """Return the name of what empties the cache of an accelerator, itself or among other things."""
    name = module.qualified(call.func)
    if name in _EMPTYING:
        return name
    if name in _FREEING:
        return name.rpartition(".")[2]
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name("empty_cache")) if name is None:
            return f"{module.source(owner)}.empty_cache" if _is_abstraction(module, owner) else None
        case _:
            return None


def _is_abstraction(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether an expression stands for the module of whatever accelerator there is."""
    if isinstance(owner, cst.Name):
        bindings = module.bindings(owner)
        made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    else:
        made = owner
    return isinstance(made, cst.Call) and module.qualified(made.func) in _ABSTRACTIONS


def clears_each_step(module: Module, call: cst.Call) -> Hot | None:
    """Return the hot place of a call that gives memory back at every step for no reason
    that the file shows.
    """
    if not may_repeat(module, call):
        return None
    hot = places.hot(module, call)
    if hot is None or _asked_for(module, call) or any(_asked_for(module, step) for step in hot.path):
        return None
    if any(_frees_model(module.home(place), place) for place in (call, *hot.path)):
        return None
    if _measures(module, call, hot):
        return None
    return None if _places_layers(module, hot.loop) else hot


def called_elsewhere(module: Module, hot: Hot, call: cst.Call) -> bool:
    """Return whether the helper that makes the call is also called at places
    that do not run at every step.
    """
    function = module.function(call)
    if not hot.path or function is None:
        return False
    return any(places.hot(module, place) is None for place in module.callers(function))


def _frees_model(module: Module, place: cst.CSTNode) -> bool:
    """Return whether a model is let go on every way to a place, in the same round of the loops around it.

    ``del model, optimizer``, ``node.delete_model()``
    """
    tree = module.tree
    loops = module.flow.loops(place)
    around = loops[0] if loops else module.function(place) or tree.root
    deleted = (part for part in tree.nodes_within(around, cst.Del) if _names_module(module, part.target))
    discarded = (
        call
        for call in tree.nodes_within(around, cst.Call)
        if begins(last_name(call.func), Role.DISCARDING) and has(last_name(call.func), Role.MODEL)
    )
    return any(module.flow.certainly_before(each, place) for each in (*deleted, *discarded))


def _names_module(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether one of the names that are deleted is that of a model."""
    return any(
        isinstance(part, cst.Name) and (module.value(part).kind is Kind.MODULE or names_model(part.value))
        for part in module.tree.descendants(target)
    )


def _places_layers(module: Module, loop: cst.CSTNode) -> bool:
    """Return whether each iteration moves another part of a model: there is room for one at a time only.

    ``self.modules[i] = self.modules[i].to(device)``
    """
    if not isinstance(loop, cst.For):
        return False
    return any(
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("to", "cuda", "cpu")
        and _is_part_of_round(module, loop, call.func.value)
        for call in module.tree.descendants(loop.body)
    )


def _is_part_of_round(module: Module, loop: cst.For, moved: cst.BaseExpression) -> bool:
    """Return whether this is the part of a model that an iteration is about: ``layer``, ``layers[i]``."""
    names = (each.value for each in module.tree.descendants(loop.target) if isinstance(each, cst.Name))
    match moved:
        case cst.Subscript(value=held, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(index)))]):
            chosen = index in names
        case cst.Name(name):
            held, chosen = moved, name in names
        case _:
            return False
    part = has(last_name(held), Role.LAYER) or module.value(moved).kind is Kind.MODULE
    return chosen and part


def _asked_for(module: Module, call: cst.CSTNode) -> bool:
    """Return whether it happens only if an option for saving memory is set, or after memory ran out."""
    tests = (module.source(d.test) for d in module.flow.branches(call, outward=True) if d.holds)
    return any(has(test, Role.MEMORY, Role.CACHE) and "is_available" not in test for test in tests)


def _measures(module: Module, call: cst.Call, hot: Hot) -> bool:
    """Return whether a measurement starts from an empty cache, or it is found out what fits into memory."""
    around = [module.function(place) for place in (call, *hot.path)]
    if isinstance(hot.loop, cst.FunctionDef):
        around.append(hot.loop)
    if any(isinstance(f, cst.FunctionDef) and _measures_or_tries(f.name.value) for f in around):
        return True
    return isinstance(hot.loop, (cst.For, cst.While)) and any(_tries(module, hot.loop))


def _tries(module: Module, loop: cst.For | cst.While) -> Iterator[bool]:
    """Yield whether the calls of a loop measure by name,
    or it ends with what does or does not fit into memory.
    """
    for node in module.tree.descendants(loop.body):
        if isinstance(node, cst.Call):
            yield begins(last_name(node.func), Role.MEASUREMENT)
        elif isinstance(node, cst.Try):
            full = [handler for handler in node.handlers if _is_for_memory(module, handler)]
            ends: list[cst.CSTNode | None] = [*full, node.orelse] if full else []
            yield any(
                isinstance(part, cst.Break)
                for end in ends
                if end is not None
                for part in module.tree.descendants(end)
            )


def _is_for_memory(module: Module, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    """Return whether an error is caught that says that memory ran out, by its class or by what it says."""
    return any(
        has(node.value, Role.MEMORY)
        if isinstance(node, cst.Name)
        else isinstance(node, cst.SimpleString) and comments.speaks_of(node.raw_value, Topic.MEMORY)
        for node in module.tree.descendants(handler)
    )


def explained(module: Module, call: cst.Call) -> bool:
    """Return whether a comment gives the reason for the call: right above it,
    or about memory at its statement.
    """
    return bool(comments.above(module, call)) or comments.says(module, call, Topic.MEMORY)
