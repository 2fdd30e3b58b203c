"""Sentences and parts of sentences that rules of several families say of what the model knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.places import Cause
from torchlint.semantics.repetition import Seldom

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

KEPT_FOR_CALLERS = "in code that is itself deprecated"
"""Why little is gained in what is only kept for its callers."""

SELDOM = {
    Seldom.FOR_CALLERS: "how often it runs is up to its callers",
    Seldom.SUMS_UP: "computes a metric from what it collected",
}
"""Why little is at stake where something does not run at every step."""

_REASONS = {
    Cause.OPTIMIZER_STEP: "the loop steps the optimizer",
    Cause.GRADIENTS: "the loop computes gradients",
    Cause.MODULE_CALL: "the loop calls a module",
    Cause.MODULE_METHOD: "the loop calls a method of a module",
    Cause.GIVEN_MODEL: "the loop runs `{name}` on the device",
    Cause.COMPUTATION: "the loop computes on the device",
    Cause.BATCHES: "the loop passes batches to a model",
    Cause.METHOD: "`{name}` runs at every step",
    Cause.LIGHTNING: "Lightning calls `{name}` for every batch",
    Cause.HOOK: "the hook runs at every step",
    Cause.TRAINING_STEP: "each call of `{name}` is a training step",
    Cause.CALLERS: "how often `{name}` runs is up to its callers",
}


def reason(hot: Hot) -> str:
    """Return what makes a place hot, as a clause: "the loop calls a module"."""
    return _REASONS[hot.reason.cause].format(name=hot.reason.name)


def trail(hot: Hot) -> tuple[tuple[cst.CSTNode, str], ...]:
    """Return the loop that makes a place hot and the calls that lead from it to the place, with remarks."""
    return ((hot.loop, reason(hot)), *((call, "called here") for call in hot.path))


def often(hot: Hot) -> str:
    """Return how often a hot place is reached, for the end of a clause: "in every iteration"."""
    if isinstance(hot.loop, (cst.FunctionDef, cst.Lambda)):
        name = hot.loop.name.value if isinstance(hot.loop, cst.FunctionDef) else "lambda"
        once = "in every forward pass" if name == "forward" else f"each time `{name}` runs"
        several = "forward passes" if name == "forward" else f"runs of `{name}`"
    else:
        once, several = "in every iteration", "iterations"
    return once if hot.period == 1 else f"every {hot.period} {several}"


_NAMED = 2
"""How many of the calls on the way to a place a message names; the trail has all of them."""


def when(module: Module, hot: Hot) -> str:
    """Return how often a hot place is reached, and from where: "in every iteration",
    for the end of a sentence.

    With calls in between: "in every iteration (called from `train()`, line 40, through `report()`)".
    """
    told = often(hot)
    if not hot.path:
        return told
    outermost, *between = hot.path
    place = line(module, outermost)
    caller = module.function(outermost)
    if isinstance(caller, cst.FunctionDef):
        place = f"`{caller.name.value}()`, {place}"
    functions = (module.function(call) for call in between)
    passed = [f"`{each.name.value}()`" for each in functions if isinstance(each, cst.FunctionDef)]
    if len(passed) > _NAMED:
        passed[_NAMED - 1 :] = [f"{len(passed) - _NAMED + 1} more calls"]
    through = f", through {' and '.join(passed)}" if passed else ""
    return f"{told} (called from {place}{through})"


def line(module: Module, node: cst.CSTNode) -> str:
    """Return where a node begins: "line 40", in a notebook "line 4 of cell 3", elsewhere "engine.py,
    line 40".
    """
    elsewhere = module.link is not None and module.tree.is_elsewhere(node)
    place = module.link.place(node) if module.link is not None and elsewhere else module.position(node)
    told = f"line {place.row}" + ("" if place.cell is None else f" of cell {place.cell}")
    return f"{place.path.name}, {told}" if place.path else told


_PLACES = "Select by the condition instead of by indices: `torch.where(…, …, …)`"
SIZED_BEFOREHAND = {
    "argwhere": _PLACES,
    "bincount": "Count with `torch.zeros(…).scatter_add_(0, …, …)`",
    "histc": "Pass the range: `min=…` and `max=…`",
    "masked_select": "Keep the shape, and select with `torch.where(…)`",
    "nonzero": _PLACES,
    "one_hot": "Pass the number of classes as a Python integer: `num_classes=…`",
    "repeat_interleave": "Pass the length of the result: `output_size=…`",
    "sparse_coo_tensor": "Pass the size: `size=…`",
    "to_sparse": "Remove `.to_sparse()`, and keep the tensor dense",
    "unique": "Sort, and mark where the value changes: `.sort().values.diff() != 0`",
    "unique_consecutive": "Mark where the value changes: `.diff() != 0`",
    "where": _PLACES,
}
"""What to do, by the name of an operation whose result is as long as values say."""
