"""Arguments of torchvision's builders that say whether weights are loaded, but not which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from .weights import PRETRAINED, PRETRAINED_BACKBONE, QUANTIZED

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_PLACE = "torchvision.models."
_FAMILIES = ("detection", "segmentation", "quantization", "video", "optical_flow")
_ANY = "*"
_NEW = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}
_TAKES_NAME_FIRST = ("detection.resnet_fpn_backbone", "detection.mobilenet_backbone")


@dataclass(frozen=True)
class Legacy:
    """An argument of the old kind, its name and the new one, and the code of what is equal to its value.

    ``code`` is None where the value is not known, or has no equal. ``added`` tells that the builder may be
    one that the program put among torchvision's, which takes the arguments that it was written with.
    """

    arg: cst.Arg
    old: str
    new: str
    code: str | None
    added: bool


def legacy_weights(module: Module, call: cst.Call) -> Iterator[Legacy]:
    """Yield the arguments ``pretrained`` and ``pretrained_backbone`` of a call of one of torchvision's
    builders.
    """
    named = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in _NEW]
    first = call.args[0] if call.args and call.args[0].keyword is None and not call.args[0].star else None
    if first is not None and not _is_flag(first.value):
        first = None
    if not named and first is None:
        return
    builder = _builder(module, call.func)
    if builder is None:
        return
    added = builder == _ANY and _adds_builders(module)
    for arg in named:
        assert arg.keyword is not None
        old = arg.keyword.value
        if old == "pretrained" or builder in PRETRAINED_BACKBONE:
            yield Legacy(arg, old, _NEW[old], _code(module, call, builder, arg, old), added)
    if first is not None and builder not in _TAKES_NAME_FIRST:
        code = _code(module, call, builder, first, "pretrained")
        yield Legacy(first, "pretrained", "weights", code, added)


def _is_flag(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Name("True" | "False"):
            return True
        case cst.Name(name) | cst.Attribute(attr=cst.Name(name)):
            return "pretrain" in name and "weight" not in name
    return False


def _builder(module: Module, func: cst.BaseExpression) -> str | None:
    """Return the name of a builder in the table;
    a star for one that is chosen by name among the classifiers.
    """
    match func:
        case cst.Subscript(value=cst.Attribute(value=models, attr=cst.Name("__dict__"))):
            return _ANY if module.qualified(models) == "torchvision.models" else None
        case cst.Call(func=cst.Name("getattr"), args=[cst.Arg(value=models), _]):
            return _ANY if module.qualified(models) == "torchvision.models" else None
    dotted = module.qualified(func)
    if dotted is None or not dotted.startswith(_PLACE):
        return None
    family, _, last = dotted[len(_PLACE) :].partition(".")
    last = last.rpartition(".")[2] or family
    name = f"{family}.{last}" if family in _FAMILIES else last
    known = last in QUANTIZED if family == "quantization" else name in PRETRAINED
    return name if known else None


def _adds_builders(module: Module) -> bool:
    """Return whether a file of the program puts functions of its own into ``torchvision.models``."""
    return any(map(_adds, (module, *module.companions("torchvision"))))


def _adds(module: Module) -> bool:
    """Return whether a file does: ``models.__dict__[name] = …``, ``setattr(models, name, …)``,
    ``models.name = …``.
    """
    if any(
        (module.qualified(binding.target) or "").startswith(_PLACE)
        for bindings in module.names.attributes.values()
        for binding in bindings
    ):
        return True
    for call in module.tree.calls_by_name.get("setattr", ()):
        if call.args and module.qualified(call.args[0].value) == "torchvision.models":
            return True
    return any(
        _is_written(module, node)
        for node in module.tree.nodes(cst.Attribute)
        if node.attr.value == "__dict__" and module.qualified(node.value) == "torchvision.models"
    )


def _is_written(module: Module, namespace: cst.Attribute) -> bool:
    """Return whether something is put into a namespace: by its name, or by a method."""
    match module.tree.parent(namespace):
        case cst.Subscript() as item:
            return isinstance(module.tree.parent(item), cst.AssignTarget)
        case cst.Attribute(attr=cst.Name("update" | "setdefault")):
            return True
    return False


def _code(module: Module, call: cst.Call, builder: str, arg: cst.Arg, old: str) -> str | None:
    match arg.value:
        case cst.Name("False"):
            return "None"
        case cst.Name("True"):
            pass
        case _:
            return None
    family, _, last = builder.partition(".")
    name: str | None
    if builder == _ANY:
        name = PRETRAINED["resnet50"]
    elif old == "pretrained_backbone":
        name = PRETRAINED_BACKBONE[builder]
    elif family != "quantization":
        name = PRETRAINED[builder]
    else:
        quantized = next((a.value for a in call.args if a.keyword and a.keyword.value == "quantize"), None)
        literal = quantized is None or (
            isinstance(quantized, cst.Name) and quantized.value in ("True", "False")
        )
        if any(a.star for a in call.args) or not literal:
            return None
        is_quantized = quantized is not None and module.value(quantized).constant is True
        name = QUANTIZED[last] if is_quantized else PRETRAINED[last]
    return f'"{name}"' if name is not None else None
