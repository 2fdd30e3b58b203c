"""TL607: a checkpoint is loaded onto the device that it was saved from, next to the model."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name
from torchlint.semantics.usage import method_call, receivers
from torchlint.semantics.values import Device, Kind


@rule(
    "TL607",
    "checkpoint-loaded-on-device",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    mentions=("torch", "load_state_dict"),
    named={cst.Call: ("load",)},
)
def checkpoint_loaded_on_device(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.load` without `map_location` where `load_state_dict` then fills a model or an optimizer from
    the checkpoint. The rule ignores calls with `map_location` or `mmap=True`, files that run on the CPU only,
    checkpoints whose tensors become the model's own (`assign=True`), and objects without tensors, such as
    schedulers.

    ## Why is this bad?

    `torch.load` restores tensors to the device that they were saved from. Until the checkpoint is freed, that
    device holds the weights twice. With several processes, each of them may load a copy onto the first
    device. On a machine without that device, loading fails.

    With `map_location="cpu"`, the checkpoint takes no memory on the device. Loading may take longer, because
    the whole checkpoint is read into host memory before the first tensor is copied.

    ## Example

    ```python
    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    ```

    ## Use instead

    ```python
    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    ```

    ## Fix safety

    Unsafe: `load_state_dict` copies to the device of the parameters, but whatever else the program uses from
    the checkpoint stays on the CPU.

    ## References

    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    """
    if module.qualified(call.func) != "torch.load" or is_test(module):
        return
    for name in ("map_location", "mmap"):
        argument = module.argument(call, name)
        if not argument.absent and argument.constant not in (None, False):
            return
    filled = fills_from(module, call)
    if filled is None or not accelerated(module):
        return
    yield Finding(
        call,
        "`torch.load` loads a second copy of the weights onto the device that they were saved from",
        fix=unsafe(
            module,
            'Pass `map_location="cpu"`',
            set_argument(module, call, "map_location", '"cpu"'),
            risk="whatever else is read from the checkpoint is then on the CPU",
        ),
        related=((filled, "filled from the checkpoint here"),),
        remedy='Pass `map_location="cpu"`',
    )


def fills_from(module: Module, load: cst.Call) -> cst.Call | None:
    """Return the ``load_state_dict`` that copies what a call loads into a model or an optimizer.

    None if there is none, or only such as keep the loaded tensors, fill what holds none, or what is certainly
    on the CPU. Nor is there one for what was written to memory: it copies an object.
    """
    if _in_memory(module, load) or module.tree.mentions("torch_xla"):  # which saves from the CPU only
        return None
    for call in receivers(module, load):
        method = method_call(module, call)
        if method is None or method[1] != "load_state_dict":
            continue
        owner = module.value(method[0])
        if owner.kind in _WITHOUT_TENSORS or (owner.kind is Kind.MODULE and owner.device is Device.CPU):
            continue
        if owner.kind is Kind.UNKNOWN and ends(last_name(method[0]), *_NAMES_WITHOUT_TENSORS):
            continue
        if owner.kind is not Kind.MODULE and module.callee(call) is not None:
            continue  # a method of this file is entered; what it hands on is seen there
        if not any(_assigns(module, argument) for argument in call.args):
            return call
    return None


_WITHOUT_TENSORS = frozenset({Kind.SCHEDULER, Kind.SCALER, Kind.SAMPLER, Kind.LOADER, Kind.DATASET})
_NAMES_WITHOUT_TENSORS = (Role.SCHEDULER, Role.SCALER, Role.LOADER, Role.DATASET)


def _assigns(module: Module, argument: cst.Arg) -> bool:
    """Return whether it is ``assign=True``: the tensors that are loaded become those of the model."""
    named = argument.keyword is not None and argument.keyword.value == "assign"
    return named and module.value(argument.value).constant is not False


def _in_memory(module: Module, load: cst.Call) -> bool:
    """Return whether what is loaded was written to a buffer, and not to a file."""
    source = module.argument(load, "f").node
    made = (
        [binding.value for binding in module.bindings(source)] if isinstance(source, cst.Name) else [source]
    )
    return any(isinstance(node, cst.Call) and module.qualified(node.func) == "io.BytesIO" for node in made)
