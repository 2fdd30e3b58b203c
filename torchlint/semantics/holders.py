"""Which expressions are, or may be objects that hold, an optimizer or a model."""

from __future__ import annotations

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
HARMLESS = (
    Role.SCHEDULER,
    Role.SAVING,
    Role.LOADING,
    Role.CHECKPOINT,
    Role.LOGGING,
    Role.EVALUATION,
    Role.HELD_OUT,
    Role.TEST,
    Role.COPY,
    Role.SCORE,
    Role.METRIC,
    Role.DRAWING,
    Role.FILE,
    Role.SAMPLING,
    Role.RECORD,
    Role.PROGRESS,
    Role.LOSS,
    Role.CRITERION,
    Role.PREDICTION,
    Role.LENGTH,
    Role.MAGNITUDE,
    Role.DEVICE,
    Role.COUNT,
    Role.CLIPPING,
    Role.DECAY,
    Role.WATCHING,
    Role.STOPPING,
    Role.PARAMETERS,
    Role.PURE,
)
# Kinds of objects that hold no optimizer and no model.
HOLD_NO_MODEL = frozenset(
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
        if value.kind in HOLD_NO_MODEL or value.kind is Kind.MODULE or hops == 0:
            return False
        match node:
            case cst.Tuple() | cst.List() | cst.Set():
                return any(self._holds(element.value, kinds, hops) for element in node.elements)
            case cst.Dict():
                return any(self._holds(element.value, kinds, hops) for element in node.elements)
            case cst.Call():
                if has(last_name(node.func), *HARMLESS) or has(last_name(node.func), *_DATA):
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
