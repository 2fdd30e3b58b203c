"""TL414: convolutions work on channels first, where the tensor cores want them last."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import replace, set_argument, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.attributes import part_of
from torchlint.semantics.convolutions import convolutional, needs_channels_first
from torchlint.semantics.module import Module
from torchlint.semantics.program import Precision, Program, Trained, Training

_LAST = "torch.channels_last"


@rule(
    "TL414",
    "channels-first-convolutions",
    severity=NOTE,
    fix="unsafe",
    on=cst.Module,
    mentions=("torch", "backward"),
    advice=True,
    lasting=True,
)
def channels_first_convolutions(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that train a convolutional network over images on an accelerator without
    `memory_format=torch.channels_last` anywhere. One finding is made for a program, where the model is put on
    the device.

    Silent for networks over volumes or sequences, for transformers that only make patches with a convolution,
    for convolutions that no forward pass calls, where a framework runs the loop, for agents that wait for
    their environment, and for work that needs its digits or derivatives of derivatives, which tensor cores
    have no part in.

    ## Why is this bad?

    The convolutions of cuDNN for tensor cores work on channels last. Tensors with the channels first are
    turned around before each of them, and back behind it; with channels last throughout, nothing is turned.

    ## Example

    ```python
    model = resnet50().to(device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = criterion(model(images), labels)
    ```

    ## Use instead

    ```python
    model = resnet50().to(device, memory_format=torch.channels_last)
    for images, labels in loader:
        images = images.to(device, memory_format=torch.channels_last)
        labels = labels.to(device)
        loss = criterion(model(images), labels)
    ```

    ## Fix safety

    Unsafe: the results change in their last digits, and `view` fails on a tensor whose memory has another
    order. The fix changes the model and the images where both are moved to the device. It is offered for one
    network of torchvision, timm or this file; not if the code of the file calls `view` on what it computes,
    which has to become `reshape` or `flatten` first, nor if it makes images of what has no four dimensions.

    ## References

    - [Channels last memory format in PyTorch](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    program = Program.of(module)
    training = program.training
    if training is None or program.framework or program.waits_for_environment:
        return
    if module.tree.mentions("channels_last") or program.hooks_into_models:
        return
    if program.precision is Precision.EXACTING:
        return
    models = [model for model in training.models if convolutional(module, model, volumes=False)]
    if not models:
        return
    placed = program.put_on_device(models[0])
    yield Finding(
        placed or models[0].node,
        "the convolutions get channels first, and cuDNN turns them around for the tensor cores; give "
        f"`memory_format={_LAST}` to the model and to its images",
        fix=_fix(module, models[0], placed) if len(models) == 1 and placed is not None else None,
        related=((training.backward, "this is what trains"),),
        remedy=f"Give `memory_format={_LAST}` to the model and to its images",
    )


def _fix(module: Module, model: Trained, placed: cst.Call) -> Fix | None:
    training = Program.of(module).training
    if training is None or module.tree.is_elsewhere(training.loop):
        return None
    moves = _moves(module, training)
    if not moves or needs_channels_first(module, model):
        return None
    spelling = spell(module, _LAST, placed)
    if spelling is None:
        return None
    edits = [_with_format(module, call, spelling.text) for call in (placed, *moves)]
    return unsafe(module, "Keep the channels last", *edits, spelling.edits)


def _moves(module: Module, training: Training) -> list[cst.Call]:
    """The calls that move what the model is given to the device; empty if some are out of sight."""
    found: list[cst.Call] = []
    spelt: set[str] = set()
    for call in Program.of(module).forward_passes(training.loop):
        given = call.args[0].value if len(call.args) == 1 and not call.args[0].star else None
        moves = _moved(module, given)
        spelt.add(module.source(call.func))
        if not moves or len(spelt) > 1:
            return []
        found += moves
    return list(dict.fromkeys(found))


def _moved(module: Module, given: cst.BaseExpression | None) -> list[cst.Call]:
    match given:
        case cst.Call(func=cst.Attribute(attr=cst.Name("to" | "cuda"))):
            return [given]
        case cst.Name():
            values = [
                part_of(binding.value, binding.path) if binding.value is not None else None
                for binding in module.bindings(given)
            ]
            moves = [value for value in values if isinstance(value, cst.Call) and _moved(module, value)]
            return moves if len(moves) == len(values) else []
        case _:
            return []


def _with_format(module: Module, call: cst.Call, code: str) -> tuple[Edit, ...] | None:
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "to":
        return set_argument(module, call, "memory_format", code)
    return replace(module, call, f"{module.source(call)}.to(memory_format={code})")
