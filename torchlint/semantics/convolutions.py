"""Whether the models that a program trains are convolutional networks, over images, of one size each time.

cuDNN can measure which algorithm suits a convolution best, and its kernels like the channels last; both pay
for networks that are mostly convolutions, and the first only where the shapes stay what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import (
    ATTENTION,
    CONVOLUTIONS,
    MODELS_BY_NAME,
)
from torchlint.semantics.identifiers import named
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.program import Program, Trained
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SEGMENTATION = "segmentation_models_pytorch."


def convolutional(module: Module, model: Trained, *, volumes: bool = True) -> bool:
    """Whether a model is a convolutional network over images, or, with ``volumes``, over volumes."""
    layers = list(Program.of(module).layers(model))
    if layers:
        names = [name for _, name in layers]
        dimensions = [CONVOLUTIONS.get(name, 0) for name in names]
        count = sum(number > 1 for number in dimensions)
        if not volumes and 3 in dimensions:
            return False
        # One convolution beside attention makes patches of an image.
        if count == 1 and (not ATTENTION.isdisjoint(names) or _attends(module, model)):
            return False
        if count:
            return "torch.nn.Embedding" not in names or count > 4
        return any(_is_network(module, call) for call, _ in layers)
    return any(_is_network(module, call) for call in Program.of(module).makers(model))


def _attends(module: Module, model: Trained) -> bool:
    definition = model.value.definition
    return definition is not None and any(has(name, Role.ATTENTION) for name in named(module, definition))


def _is_network(module: Module, call: cst.Call) -> bool:
    """Whether what a call makes goes by the name of a convolutional network."""
    if isinstance(call.func, cst.Subscript) and isinstance(call.func.value, cst.Attribute):
        # ``torchvision.models.__dict__[arch]()``: nearly all of them are convolutional networks.
        table = call.func.value
        return table.attr.value == "__dict__" and module.qualified(table.value) == "torchvision.models"
    dotted = module.qualified(call.func) or ""
    if dotted.startswith(_SEGMENTATION):
        return "mit_b" not in module.source(call)
    if dotted.startswith("torchvision.models.detection."):
        return False
    return any(map(_sounds_convolutional, names_of_network(module, call)))


def names_of_network(module: Module, call: cst.Call) -> list[str]:
    """The names by which a call says which network it makes."""
    if module.qualified(call.func) in MODELS_BY_NAME:
        constants = [module.value(arg.value).constant for arg in call.args[:2]]
        return [text.partition(".")[0] for text in constants if isinstance(text, str)]
    return [last_name(call.func) or ""]


def _sounds_convolutional(name: str) -> bool:
    return has(name, Role.FULLY_CONVOLUTIONAL, Role.CONVOLUTIONAL) and not has(name, Role.NOT_CONVOLUTIONAL)
