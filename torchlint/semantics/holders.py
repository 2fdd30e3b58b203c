"""Which expressions are, or may be objects that hold, an optimizer or a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

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


def holds_optimizer(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is, or may be an object that holds, an optimizer or parameters."""
    return some(_holds(module, node, (Kind.OPTIMIZER, Kind.PARAMETERS)))


def holds_model(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is, or may be an object that holds, a model,
    its parameters or an optimizer.
    """
    return some(_holds(module, node, (Kind.OPTIMIZER, Kind.PARAMETERS, Kind.MODULE)))


@traced(Through.ITEMS)
def _holds(
    module: Module, node: cst.CSTNode, path: Path, kinds: tuple[Kind, ...]
) -> bool | list[Source] | None:
    """Return whether this is of one of these kinds, by what it was made with, and by its name last.

    An object may hold whatever it was made with; which part of it is asked for makes no difference.
    """
    kind = module.value(node).kind
    if kind in kinds or kind in HOLD_NO_MODEL or kind is Kind.MODULE:
        return kind in kinds
    match node:
        case cst.Param():
            return ends(node.name.value, *_HOLDERS)
        case cst.Tuple() | cst.List() | cst.Set() | cst.Dict():
            return onward(*(element.value for element in node.elements))
        case cst.Call():
            if has(last_name(node.func), *HARMLESS, *_DATA):
                return False
            return onward(*(argument.value for argument in node.args))
        case cst.Attribute(attr=cst.Name(name)):
            assigned = module.names.attributes.get(name, ())
            if not assigned:
                return ends(name, *_HOLDERS)
            return onward(*(binding.value for binding in assigned if binding.value is not None))
        case cst.Subscript():
            return onward(node.value)
        case _:
            return None
