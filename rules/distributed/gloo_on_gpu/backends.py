"""Which back end the processes of a file can use: what it knows of NCCL, and where its models are.

NCCL exchanges tensors of NVIDIA GPUs on Linux; gloo works everywhere and adds up on the CPU (PyTorch's page
on torch.distributed, "Which backend to use?").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.comments import Topic, says
from torchlint.semantics.conventions import names_accelerator
from torchlint.semantics.evidence import named_accelerators
from torchlint.semantics.identifiers import identifiers, named, options
from torchlint.semantics.lexicon import Role, has, words
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Device

from ..parallelism import Parallelism, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

    from ..collectives import Group

_EXCHANGING = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD)
# What names a system or an accelerator for which there is no NCCL, or asks for it.
_WITHOUT_NCCL = frozenset({"is_nccl_available", "mps", "ipex", "intel_extension_for_pytorch"})
_SYSTEMS = frozenset({"win32", "Windows", "windows", "darwin", "mps"})
_ASKING_FOR_SYSTEM = frozenset({"os.name", "sys.platform", "platform.system"})
# The back ends of torch.distributed, and what chooses from them.
_BACKENDS = frozenset({"nccl", "hccl", "xccl", "ccl", "gloo", "backend", "accelerator"})
_OF_ACCELERATORS = _BACKENDS - {"gloo", "backend"}


def depends_on_machine(module: Module, group: Group) -> bool:
    """Return whether the file knows NCCL as well, a system without it, or asks for the device on the way."""
    if group.is_default and (_knows_nccl(module) or _runs_without_nccl(module)):
        return True
    if says(module, group.call, Topic.SYSTEM):
        return True
    branches = module.flow.branches(group.call, outward=True)
    if any(_asks_for_device(name) for branch in branches for name in named(module, branch.test)):
        return True
    chosen = module.flow.alternatives(group.call, outward=True)
    return any(not isinstance(alternative, cst.MatchCase) for alternative in chosen)


def _asks_for_device(name: str) -> bool:
    """Return whether a condition that has this name in it may know machines without an accelerator."""
    return has(name, Role.DEVICE, Role.CPU) or not _BACKENDS.isdisjoint(words(name))


@remembered
def _runs_without_nccl(module: Module) -> bool:
    """Return whether the file speaks of systems without NCCL, and does more than to turn them away."""
    refusals = [branch for branch in module.tree.nodes(cst.If) if _refuses(branch)]
    return any(
        _is_without_nccl(module, node) and not any(module.tree.contains(each, node) for each in refusals)
        for node in module.tree.nodes(cst.Name, cst.Attribute, cst.SimpleString)
    )


def _refuses(branch: cst.If) -> bool:
    """Return whether a branch ends the program where its condition holds."""
    match branch:
        case cst.If(
            body=cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[*_, cst.Raise()])]), orelse=None
        ):
            return True
        case _:
            return False


def _is_without_nccl(module: Module, node: cst.CSTNode) -> bool:
    match node:
        case cst.Name(name):
            return name in _WITHOUT_NCCL
        case cst.Attribute(attr=cst.Name("name" | "platform" | "system")):
            return module.qualified(node) in _ASKING_FOR_SYSTEM
        case cst.SimpleString():
            return node.raw_value in _SYSTEMS
        case _:
            return False


def _knows_nccl(module: Module) -> bool:
    """Return whether the file itself names NCCL, and not only in a text or among the choices of an option."""
    for string in module.tree.nodes(cst.SimpleString):
        text = string.evaluated_value
        if isinstance(text, str) and "nccl" in text.lower() and len(text) < 20:
            if not any(_is_help(around) for around in module.tree.ancestors(string)):
                return True
    return "NCCL" in module.tree.attributes_by_name


def _is_help(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in ("choices", "help")
    )


def wrapped_on_accelerator(module: Module) -> cst.CSTNode | None:
    """Return a call that wraps a model on the accelerator for several ranks."""
    for wrapper in Parallelism.of(module).wrapped_by(*_EXCHANGING):
        if Parallelism.of(module).inner(wrapper).device is Device.ACCELERATOR:
            return wrapper.call
        devices = Parallelism.of(module).argument(wrapper, "device_ids").node
        if isinstance(devices, cst.List) and devices.elements:
            # It takes none for models on the CPU.
            return wrapper.call
        for forward in Parallelism.of(module).forwards(wrapper):
            if module.value(forward.func).device is Device.ACCELERATOR:
                return wrapper.call
        if wrapper.model is not None and _moved(module, wrapper.model):
            return wrapper.call
    return None


def _moved(module: Module, model: cst.BaseExpression) -> bool:
    """Return whether it is ``model.cuda()`` in the same function,
    of a model that the file shows nothing else of.
    """
    text, function = module.source(model), module.function(model)
    return any(
        call.func.attr.value == "cuda"
        and module.source(call.func.value) == text
        and module.function(call) is function
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Attribute)
    )


def trains_on_cpu(module: Module) -> bool:
    """Return whether models are spread over ranks in a file that trains and names no accelerator at all."""
    if _names_accelerator(module) or not Backpropagation.of(module).happens:
        return False
    return bool(Parallelism.of(module).wrapped_by(*_EXCHANGING))


@remembered
def _names_accelerator(module: Module) -> bool:
    """Return whether the file names a device but the CPU, or moves something to the number of its process."""
    texts = (text.value for text in module.tree.nodes(cst.FormattedStringText))
    if named_accelerators(module) or any(map(names_accelerator, texts)):
        return True
    return any(
        has(name, Role.DEVICE) or names_accelerator(name) or not _OF_ACCELERATORS.isdisjoint(words(name))
        for name in identifiers(module) | options(module)
    ) or any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "to"
        and any(has(last_name(argument.value), Role.DISTRIBUTED) for argument in call.args)
        for call in module.tree.nodes(cst.Call)
    )
