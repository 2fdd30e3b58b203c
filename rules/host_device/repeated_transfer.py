"""TL208 repeated-transfer."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.synchronisation import waiting_place
from torchlint.semantics.values import Kind

from .invariance import Repeated, hoisted, needless_move
from .remedies import inline, step_of
from .roundtrips import MOVES, copied_back_from


@rule(
    "TL208",
    "repeated-transfer",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: MOVES},
    mentions=("torch|lightning|accelerate", ".cuda(|.to(|device"),
    remedy="Move it once, before the loop",
)
def repeated_transfer(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds transfers to the accelerator that a hot loop, or each forward pass, could do without: of a tensor
    that never changes there, of a module that has been there since the first step, and of values that were
    only just copied from the device to the host.

    ## Why is this bad?

    A copy through pageable memory makes the host wait for all work queued before it. Moving a module that is
    on the device copies nothing, but goes through all of its parameters and buffers. A round trip waits
    twice, and leaves the device idle while the host computes.

    ## Example

    ```python
    weights = torch.tensor([0.2, 0.8])
    for x, y in loader:
        loss = F.cross_entropy(model(x), y, weight=weights.to(device))
        noise = np.clip(x.cpu().numpy(), 0, 1)
        x = torch.from_numpy(noise).to(device)
    ```

    ## Use instead

    ```python
    weights = torch.tensor([0.2, 0.8])
    weights = weights.to(device)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y, weight=weights)
        x = x.clamp(0, 1)
    ```

    A tensor that belongs to a module moves with it as a buffer: `self.register_buffer("mean", mean,
    persistent=False)`. Without `persistent=False` it is part of the state dict, which older checkpoints lack.

    A copy to the host that comes back is reported here, and not as a host copy (TL203) as well. What is made
    anew at each step is left alone, but for what a kernel can make (TL201), and so are copies made to save
    device memory.

    ## Fix safety

    The move goes in front of the outermost loop in which nothing of it changes. The fix is safe if the tensor
    has one assignment, outside of the loop, and memory of its own, if it is moved the same way wherever it is
    read from there on, and if all that uses it, a view of it or what was moved only reads it. It is unsafe
    where something keeps it or other code may write to it, and for modules, which any code may change. No fix
    is offered where the file shows that it, or what was moved, is written to, where the move stands under a
    condition, where its device is only known in the loop, for attributes, and for round trips.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
    """
    if not may_repeat(module, call) or not accelerated(module) or phase(module, call) is Phase.DATASET:
        return
    copy = copied_back_from(module, call)
    hot = waiting_place(module, call) if copy is not None else None
    if copy is not None and hot is not None:
        message = f"this came from the device and goes back to it {when(module, hot)}; compute it there"
        related = ((copy, "copied to the host here"), *trail(hot))
        yield Finding(call, message, related=related, remedy=_stay(module, copy))
        return
    repeated = needless_move(module, call)
    if repeated is not None:
        message, fix, related = (
            _message(module, repeated),
            hoisted(module, repeated),
            trail(repeated.hot),
        )
        yield Finding(call, message, fix, related=related, remedy=_remedy(module, call, repeated))


def _stay(module: Module, copy: cst.CSTNode) -> str:
    """What keeps on the device what goes to the host and comes back."""
    way = step_of(module, copy) if isinstance(copy, cst.Call) else inline(module, copy)
    return f"Remove `{way}` and the way back, and compute with torch what is computed between them"


def _remedy(module: Module, call: cst.Call, repeated: Repeated) -> str:
    """Where to move instead, by what is moved and what becomes of it."""
    moved, name = repeated.moved, inline(module, repeated.moved)
    if isinstance(moved, cst.Attribute) and not _is_part(module, moved):
        return f"Move it once, where `{name}` is given its value, and leave the move out here"
    if isinstance(moved, cst.Attribute) and repeated.whole_module:
        return f"Remove `{inline(module, call)}`: a submodule moves along with the module that it is part of"
    if isinstance(moved, cst.Attribute):
        buffer = f'{inline(module, moved.value)}.register_buffer("{moved.attr.value}", …, persistent=False)'
        return f"Make it a buffer, `{buffer}`, which moves along with the module, and leave the move out here"
    if repeated.whole_module:
        return f"Move it before the loop: `{inline(module, call)}`"
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else "to"
    new = f"moved_{moved.value.lower()}" if isinstance(moved, cst.Name) else "moved"
    advice = f"Move it once, before the loop: `{new} = {name}.{method}({'…' if call.args else ''})`"
    if isinstance(module.tree.parent(call), (cst.Assign, cst.Arg)):
        advice += f", and write to copies of that only, `{new}.clone()`"
    return advice


def _message(module: Module, repeated: Repeated) -> str:
    code, often = module.source(repeated.moved), when(module, repeated.hot)
    name = "this" if "\n" in code else f"`{code}`"
    if repeated.whole_module:
        cure = "leave the move out" if _is_part(module, repeated.moved) else "move it once"
        return (
            f"{name} stays on the device, and each move goes through all of its parameters, {often}; {cure}"
        )
    cure = "make it a buffer" if _is_part(module, repeated.moved) else "move it once"
    return f"{name} never changes and is copied to the device {often}; {cure}"


def _is_part(module: Module, moved: cst.BaseExpression) -> bool:
    """Whether it is an attribute of a module, along with which it can move."""
    return isinstance(moved, cst.Attribute) and module.value(moved.value).kind is Kind.MODULE
