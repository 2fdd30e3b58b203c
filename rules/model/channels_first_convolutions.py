"""TL414: convolutions work on channels first, where the tensor cores want them last."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import Edits, elsewhere, replace, set_argument, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.attributes import part_of
from torchlint.semantics.dimensions import adds_dimension
from torchlint.semantics.module import Module
from torchlint.semantics.program import Precision, Program, Trained, Training, convolutional

_LAST = "torch.channels_last"

# Libraries whose networks work with channels last.
_KNOWN = ("torchvision.models.", "timm.", "segmentation_models_pytorch.", "torch.nn.")


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

    Finds programs that train a convolutional network on images on an accelerator and never use
    `memory_format=torch.channels_last`. There is one finding per program, where the model is moved to the
    device.

    The rule ignores networks for volumes or sequences, transformers that only use a convolution to make
    patches, convolutions that no forward pass calls, programs whose training loop a framework runs,
    reinforcement learning agents that wait for their environment, and code that depends on full precision or
    on second derivatives, for which tensor cores are not used.

    ## Why is this bad?

    The tensor core convolutions of cuDNN work on channels-last data. Channels-first tensors are converted
    before each convolution, and back after it. With channels-last tensors throughout, there is nothing to
    convert.

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

    Unsafe: results change in the last digits, and `view` fails on tensors with a different memory layout. The
    fix changes the calls that move the model and the images to the device. It is offered for a single network
    of torchvision, timm or the file itself. It is not offered if the code calls `view` on computed tensors,
    which has to become `reshape` or `flatten` first, or if the images are made from data that is not
    four-dimensional.

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
        f"cuDNN converts channels-first data for its tensor core convolutions; use `{_LAST}`",
        fix=_fix(module, models[0], placed) if len(models) == 1 and placed is not None else None,
        related=((training.backward, "the model is trained here"),),
        remedy=f"Pass `memory_format={_LAST}` to the `.to()` calls of the model and of its images",
    )


def _fix(module: Module, model: Trained, placed: cst.Call) -> Fix | None:
    training = Program.of(module).training
    moves = _moves(module, training) if training is not None else []
    if not moves or needs_channels_first(module, model):
        return None
    edits: list[Edits | None] = []
    for home in dict.fromkeys(map(module.home, (placed, *moves))):
        calls = [call for call in (placed, *moves) if module.home(call) is home]
        spelling = spell(home, _LAST, calls[0])
        if spelling is None:
            return None
        edits += [elsewhere(module, home, _with_format(home, call, spelling.text)) for call in calls]
        edits.append(elsewhere(module, home, spelling.edits))
    return unsafe(
        module,
        f"Move the model and its images with `memory_format={_LAST}`",
        *edits,
        risk="results change in the last digits, and `view` fails on tensors of another memory layout",
    )


def _moves(module: Module, training: Training) -> list[cst.Call]:
    """Return the calls that move what the model is given to the device; empty if some are out of sight."""
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


def needs_channels_first(module: Module, model: Trained) -> bool:
    """Return whether a program may fail with channels last.

    Its code is out of sight, it calls ``view``, or it makes images of what has no four dimensions: only what
    has four can have its channels last.
    """
    definition = model.value.definition
    if isinstance(definition, cst.ClassDef):
        if module.classes.info(definition).opaque:
            return True
    elif not any(name.startswith(_KNOWN) for _, name in Program.of(module).layers(model)):
        return True
    return any(map(_changes_dimensions, (module, *module.companions())))


def _changes_dimensions(module: Module) -> bool:
    return any(_refuses_channels_last(call) for call in module.tree.nodes(cst.Call)) or any(
        adds_dimension(element.slice)
        for subscript in module.tree.nodes(cst.Subscript)
        for element in subscript.slice
    )


def _refuses_channels_last(call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        return False
    name = call.func.attr.value
    if name == "reshape":
        sizes = call.args[0].value if len(call.args) == 1 else None
        given = sizes.elements if isinstance(sizes, (cst.Tuple, cst.List)) else call.args
        return len(given) == 4
    return name in ("view", "as_strided", "unsqueeze", "unflatten")
