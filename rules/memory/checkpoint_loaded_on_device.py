"""TL607: a checkpoint is loaded to the device that it was saved from, beside the model that gets it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.checkpoints import fills_from
from torchlint.semantics.evidence import accelerated, is_test
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

    Finds `torch.load` of a checkpoint without `map_location`, if a model or optimizer is filled from it with
    `load_state_dict`. Calls with `map_location` or `mmap=True` are left alone, and so are those in files that
    run on the CPU only, those whose tensors become the model's own (`assign=True`), and those that fill only
    what holds no tensors, such as a scheduler.

    ## Why is this bad?

    Tensors go back to the device that they were saved from. While `load_state_dict` copies them into the
    model, there are two copies of all weights on that device, and longer than that if a variable keeps the
    checkpoint. With several processes, each of them may load its copy to the first device. And on a machine
    without that device loading fails.

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

    Unsafe: `load_state_dict` copies to where the parameters are, but what else the program takes from the
    checkpoint stays on the CPU.

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
        "`torch.load` puts the checkpoint on the device that it was saved from, beside the weights that it "
        'fills; pass `map_location="cpu"`',
        fix=unsafe(module, "Load to the CPU", set_argument(module, call, "map_location", '"cpu"')),
        related=((filled, "copied from the checkpoint here"),),
        remedy='Pass `map_location="cpu"`',
    )
