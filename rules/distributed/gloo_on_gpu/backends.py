"""Which back end the processes of a file can use: what it knows of NCCL, and where its models are.

NCCL exchanges tensors of NVIDIA GPUs on Linux; gloo works everywhere and adds up on the CPU (PyTorch's page
on torch.distributed, "Which backend to use?").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Device

from ..parallelism import Parallelism, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

    from ..collectives import Group

_EXCHANGING = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD)
# NCCL is not to be had there.
_WITHOUT_NCCL = re.compile(
    r"win32|\bos\.name\b|platform\.system|[Ww]indows|is_nccl_available|\bmps\b|darwin|\bipex\b|intel_extension"
)
# What a branch asks that knows machines without an accelerator.
_ASKING = re.compile(r"cuda|gpu|cpu|device|backend|accelerator|nccl|gloo", re.IGNORECASE)
_ACCELERATED = re.compile(r"cuda|xpu|npu|hpu|mps|gpu|accelerator|device|ccl|to\(\w*rank\)", re.IGNORECASE)


def depends_on_machine(module: Module, group: Group) -> bool:
    """Whether the file knows NCCL as well, a system without it, or asks for the device on the way."""
    if group.is_default and (_knows_nccl(module) or _runs_without_nccl(module)):
        return True
    branches = module.flow.branches(group.call, outward=True)
    if any(_ASKING.search(module.source(branch.test)) for branch in branches):
        return True
    chosen = module.flow.alternatives(group.call, outward=True)
    return any(not isinstance(alternative, cst.MatchCase) for alternative in chosen)


@remembered
def _runs_without_nccl(module: Module) -> bool:
    """Whether the file speaks of systems without NCCL, and does more than to turn them away."""
    text = module.tree.text
    if not _WITHOUT_NCCL.search(text):
        return False
    for test in module.tree.nodes(cst.If):
        if isinstance(test.body, cst.IndentedBlock) and test.orelse is None:
            last = test.body.body[-1]
            if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise):
                text = text.replace(module.source(test), "")
    return _WITHOUT_NCCL.search(text) is not None


def _knows_nccl(module: Module) -> bool:
    """Whether the file itself names NCCL, and not only in a text or among the choices of an option."""
    for string in module.tree.nodes(cst.SimpleString):
        text = string.evaluated_value
        if isinstance(text, str) and "nccl" in text.lower() and len(text) < 20:
            if not any(_is_help(around) for around in module.tree.ancestors(string)):
                return True
    return any(name.attr.value == "NCCL" for name in module.tree.nodes(cst.Attribute))


def _is_help(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in ("choices", "help")
    )


def wrapped_on_accelerator(module: Module) -> cst.CSTNode | None:
    """A call that wraps a model on the accelerator for several ranks."""
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
        if wrapper.model is not None and _moved(wrapper.model, module):
            return wrapper.call
    return None


def _moved(model: cst.BaseExpression, module: Module) -> bool:
    """``model.cuda()`` in the same function, of a model that the file shows nothing else of."""
    text, function = module.source(model), module.function(model)
    return any(
        call.func.attr.value == "cuda"
        and module.source(call.func.value) == text
        and module.function(call) is function
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Attribute)
    )


def trains_on_cpu(module: Module) -> bool:
    """Whether models are spread over ranks in a file that trains and names no accelerator at all."""
    if module.tree.matches(_ACCELERATED) or not Backpropagation.of(module).happens:
        return False
    return bool(Parallelism.of(module).wrapped_by(*_EXCHANGING))
