"""TL710: the ranks exchange tensors of an accelerator over gloo."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.collectives import Group, goes_over_accelerator, group_made, groups
from torchlint.semantics.module import Module
from torchlint.semantics.parallelism import Wrapping
from torchlint.semantics.values import Device

_EXCHANGING = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD)
# NCCL is not to be had there.
_WITHOUT_NCCL = re.compile(
    r"win32|\bos\.name\b|platform\.system|[Ww]indows|is_nccl_available|\bmps\b|darwin|\bipex\b|intel_extension"
)
# What a branch asks that knows machines without an accelerator.
_ASKING = re.compile(r"cuda|gpu|cpu|device|backend|accelerator|nccl|gloo", re.IGNORECASE)
_ACCELERATED = re.compile(r"cuda|xpu|npu|hpu|mps|gpu|accelerator|device|ccl|to\(\w*rank\)", re.IGNORECASE)


@rule(
    "TL710",
    "gloo-on-gpu",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("gloo|GLOO", "init_process_group|new_group|init_distributed"),
)
def gloo_on_gpu(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds process groups whose back end is gloo, where the file wraps a model on the GPU for them, or hands
    tensors of the GPU to their collective operations. A back end that depends on the machine, one of several
    (`cpu:gloo,cuda:nccl`), a second group for objects and barriers, and systems without NCCL are left alone.

    A program that trains on CPUs only gets the note that oneCCL exists.

    ## Why is this bad?

    gloo works in host memory. Every tensor of a GPU is copied there, sent, added up by the CPU and copied
    back, while NCCL sends from GPU to GPU and adds up there. With `DistributedDataParallel` that is all
    gradients in every step.

    ## Example

    ```python
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(Net().to(rank), device_ids=[rank])
    ```

    ## Use instead

    ```python
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DDP(Net().to(rank), device_ids=[rank])
    ```

    Where objects or tensors of the CPU are exchanged as well, `"cpu:gloo,cuda:nccl"` has both.

    ## Fix safety

    There is no fix: NCCL wants a GPU of its own for each rank, and takes no tensors of the CPU.

    ## References

    - [Which backend to use?](https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if module.is_test:
        return
    group = group_made(module, call)
    if group is None or group.backend != "gloo" or group.alone or _depends_on_machine(module, group):
        return
    if group.optional and any(
        other.named is group.named and module.tree.order[other.call] < module.tree.order[call]
        for other in groups(module)
    ):
        # One option, one finding.
        return
    place = _wraps(module) if group.is_default else None
    if place is None:
        place = goes_over_accelerator(module, group)
    if place is not None:
        where = "by default, gloo" if group.optional else "gloo"
        yield Finding(
            call,
            f"{where} takes every tensor of the GPU through host memory and adds up on the CPU; use `nccl`",
            related=((place, "tensors of the GPU go over it"),),
        )
    elif group.is_default and _trains_on_cpu(module):
        yield Finding(
            call,
            "on Intel CPUs, oneCCL (`ccl`) exchanges the gradients faster than gloo does",
            severity=NOTE,
        )


def _depends_on_machine(module: Module, group: Group) -> bool:
    """Whether the file knows NCCL as well, a system without it, or asks for the device on the way."""
    if group.is_default and (_knows_nccl(module) or _runs_without_nccl(module)):
        return True
    child: cst.CSTNode = group.call
    for ancestor in module.tree.ancestors(group.call):
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            if _ASKING.search(module.source(ancestor.test)):
                return True
        if isinstance(ancestor, cst.ExceptHandler):
            return True
        child = ancestor
    return False


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


def _wraps(module: Module) -> cst.CSTNode | None:
    """A call that wraps a model on the accelerator for several ranks."""
    for wrapper in module.parallelism.of(*_EXCHANGING):
        if module.parallelism.inner(wrapper).device is Device.ACCELERATOR:
            return wrapper.call
        devices = module.parallelism.argument(wrapper, "device_ids").node
        if isinstance(devices, cst.List) and devices.elements:
            # It takes none for models on the CPU.
            return wrapper.call
        for forward in module.parallelism.forwards(wrapper):
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


def _trains_on_cpu(module: Module) -> bool:
    if _ACCELERATED.search(module.tree.text) or not module.backpropagation.happens:
        return False
    return bool(module.parallelism.of(*_EXCHANGING))
