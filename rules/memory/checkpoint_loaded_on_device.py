"""TL607: a checkpoint is loaded onto the device that it was saved from, next to the model."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.checkpoints import fills_from
from torchlint.semantics.contexts import is_test
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.module import Module


@rule(
    "TL607",
    "checkpoint-loaded-on-device",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    mentions=("torch", "load_state_dict"),
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

    What this gains is memory: loading itself may take longer, since all of the checkpoint is held by the host
    before the first tensor is copied.

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
        fix=unsafe(module, 'Pass `map_location="cpu"`', set_argument(module, call, "map_location", '"cpu"')),
        related=((filled, "filled from the checkpoint here"),),
        remedy='Pass `map_location="cpu"`',
    )
