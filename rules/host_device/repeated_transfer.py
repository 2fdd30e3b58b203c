"""TL208 repeated-transfer."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.evidence import perhaps_accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.values import Kind

from .invariance import Repeated, hoisted, needless_move
from .neighbours import beside_staying_wait
from .purpose import slight_wait
from .remedies import inline, step_of
from .roundtrips import MOVES, copied_back_from
from .stakes import BESIDE
from .waits import waiting_place


@rule(
    "TL208",
    "repeated-transfer",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: MOVES},
    mentions=("torch|lightning|accelerate", ".to(|.cuda(|.hpu(|.ipu(|.mlu(|.mtia(|.musa(|.npu(|.xpu(|device"),
    remedy="Move it once before the loop",
    synchronizes=True,
)
def repeated_transfer(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds unnecessary transfers to the accelerator in every iteration of a hot loop or in every forward pass:
    transfers of a tensor that never changes, of a module that is already on the device, and of values that
    were just copied from the device to the host.

    A copy to the host that returns to the device is reported here and not as a host copy (TL203). The rule
    ignores tensors that are created in every step (see TL201 for those that a kernel could fill), and copies
    that save device memory.

    ## Why is this bad?

    A copy from pageable memory makes the host wait for all work launched before it. Moving a module that is
    already on the device copies nothing, but iterates over all of its parameters and buffers. A round trip
    synchronizes twice, and leaves the device idle while the host computes. A copy next to a synchronization
    that stays is of low impact.

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

    A tensor that belongs to a module can be a buffer, which moves with the module:
    `self.register_buffer("mean", mean, persistent=False)`. Without `persistent=False` it is part of the
    state dict, which older checkpoints lack.

    ## Fix safety

    The fix moves the transfer before the outermost loop that does not change its operands. It is safe if the
    tensor owns its memory and is assigned once, outside the loop, if every later use moves it in the same
    way, and if it, its views and the moved tensor are only read. It is unsafe if something stores the tensor
    or other code may write to it, and for modules, which any code may change. There is no fix if the file
    writes to the tensor or to the moved one, if the transfer is conditional, if the device is only known
    inside the loop, for attributes, or for round trips.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
    """
    if not may_recur(module, call) or not perhaps_accelerated(module) or phase(module, call) is Phase.DATASET:
        return
    copy = copied_back_from(module, call)
    hot = waiting_place(module, call) if copy is not None else None
    if copy is not None and hot is not None:
        message = f"this data is copied to the host and back to the device {when(module, hot)}"
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
        remedy = _remedy(module, call, repeated)
        why = BESIDE if beside_staying_wait(module, call, repeated.hot) else None
        little = slight_wait(module, call, why)
        yield Finding(call, message, fix, related=related, remedy=remedy, slight=little)


def _stay(module: Module, copy: cst.CSTNode) -> str:
    """Return what keeps on the device what goes to the host and comes back."""
    way = step_of(module, copy) if isinstance(copy, cst.Call) else inline(module, copy)
    return f"Remove `{way}` and the copy back, and use torch functions in between"


def _remedy(module: Module, call: cst.Call, repeated: Repeated) -> str:
    """Return where to move instead, by what is moved and what becomes of it."""
    moved, name = repeated.moved, inline(module, repeated.moved)
    if isinstance(moved, cst.Attribute) and not _is_part(module, moved):
        return f"Move `{name}` once, where it is assigned, and remove this call"
    if isinstance(moved, cst.Attribute) and repeated.whole_module:
        return f"Remove `{inline(module, call)}`: moving the parent module also moves its submodules"
    if isinstance(moved, cst.Attribute):
        buffer = f'{inline(module, moved.value)}.register_buffer("{moved.attr.value}", …, persistent=False)'
        return f"Register a buffer, `{buffer}`, which moves with the module, and remove this call"
    if repeated.whole_module:
        return f"Move the module before the loop: `{inline(module, call)}`"
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else "to"
    new = f"moved_{moved.value.lower()}" if isinstance(moved, cst.Name) else "moved"
    advice = f"Move it once before the loop: `{new} = {name}.{method}({'…' if call.args else ''})`"
    if isinstance(module.tree.parent(call), (cst.Assign, cst.Arg)):
        advice += f", and modify only clones of it, `{new}.clone()`"
    return advice


def _message(module: Module, repeated: Repeated) -> str:
    code, often = module.source(repeated.moved), when(module, repeated.hot)
    name = "this" if "\n" in code else f"`{code}`"
    if repeated.whole_module:
        return f"{name} is already on the device, but is moved again {often}"
    return f"{name} never changes, but is copied to the device {often}"


def _is_part(module: Module, moved: cst.BaseExpression) -> bool:
    """Return whether it is an attribute of a module, along with which it can move."""
    return isinstance(moved, cst.Attribute) and module.value(moved.value).kind is Kind.MODULE
