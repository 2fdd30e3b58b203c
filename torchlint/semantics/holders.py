"""Which expressions are, or may be objects that hold, an optimizer or a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_HOPS = 4

# What functions of other files do with an optimizer without clearing anything, going by their names.
HARMLESS = re.compile(
    r"(^|_)(lr|learning_?rates?|sched(uler?)?|warm_?up|save|saver|load|checkpoint|ckpt|log|logger|logging|print|clip"
    r"|norm|norms|eval|evaluate|valid|validate|validation|test|ema|swa|accuracy|metrics?|meter|plot|draw|write|writer"
    r"|record|sample|visuali[sz]e|summary|watch|decay|beta|isinstance|len|id|type|repr|str|getattr|hasattr|list|tuple"
    r"|dict|zip|enumerate|map|filter|sum|max|min|any|all|range|reversed|sorted|pbar|progress|bar|tqdm|timer|early"
    r"|stopping|stopper|sync|loss|criterion|cost|forward|predict|predictions?|parameters|count|caches?|average|autocast|join"
    r"|device|report|size)(_|$)",
    re.IGNORECASE,
)
# Kinds of objects that hold no optimizer and no model.
EMPTY_HANDED = frozenset(
    {
        *(Kind.TENSOR, Kind.BATCH, Kind.LOADER, Kind.DATASET, Kind.SAMPLER, Kind.SCHEDULER, Kind.SCALER),
        *(Kind.ACCELERATOR, Kind.NDARRAY, Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE),
        *(Kind.CLASS, Kind.DEVICE, Kind.DTYPE, Kind.GENERATOR),
    }
)
# Parameters of a function that may hold everything, by their names.
_HOLDERS = (Role.CONTEXT, Role.TRAINER, Role.OPTIMIZER)
# Functions whose results are data, whatever they are given.
_DATA = (Role.DATA, Role.LOADER, Role.BATCH, Role.DATASET, Role.DEVICE)
LIBRARIES = (
    "torch.",
    "builtins.",
    "numpy.",
    "math.",
    "random.",
    "os.",
    "time.",
    "tqdm.",
    "logging.",
    "json.",
    "apex.",
)


class Holders:
    """What the expressions of one file may hold, going by what they were made with, and by names last."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def holds_optimizer(self, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
        return self._holds(node, (Kind.OPTIMIZER, Kind.PARAMETERS), hops)

    def holds_model(self, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
        return self._holds(node, (Kind.OPTIMIZER, Kind.PARAMETERS, Kind.MODULE), hops)

    @remembered
    def _holds(self, node: cst.BaseExpression, kinds: tuple[Kind, ...], hops: int) -> bool:
        """Whether an expression is, or may be an object that holds, something of these kinds."""
        value = self.module.value(node)
        if value.kind in kinds:
            return True
        if value.kind in EMPTY_HANDED or value.kind is Kind.MODULE or hops == 0:
            return False
        match node:
            case cst.Tuple() | cst.List() | cst.Set():
                return any(self._holds(element.value, kinds, hops) for element in node.elements)
            case cst.Dict():
                return any(self._holds(element.value, kinds, hops) for element in node.elements)
            case cst.Call():
                if HARMLESS.search(last_name(node.func) or "") or has(last_name(node.func), *_DATA):
                    return False
                return any(self._holds(argument.value, kinds, hops - 1) for argument in node.args)
            case cst.Attribute():
                assigned = self.module.names.attributes.get(node.attr.value, ())
                if any(a.value is not None and self._holds(a.value, kinds, hops - 1) for a in assigned):
                    return True
                return not assigned and ends(node.attr.value, *_HOLDERS)
            case cst.Subscript():
                return self._holds(node.value, kinds, hops - 1)
            case cst.Name():
                return any(
                    ends(node.value, *_HOLDERS)
                    if binding.kind is BindingKind.PARAMETER
                    else binding.value is not None and self._holds(binding.value, kinds, hops - 1)
                    for binding in self.module.bindings(node)
                )
            case _:
                return False
