"""What a block of statements is there for: does a model get trained in it, and for how long?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.places import is_epoch_loop
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Options of trainers by which a run ends after few steps.
_SHORT = frozenset(
    {"fast_dev_run", "limit_train_batches", "max_iter", "max_iters", "max_steps", "overfit_batches"}
)
_LEAVING = (cst.Break, cst.Return, cst.Raise)


def training_in(module: Module, block: cst.CSTNode, *, whole: bool = False) -> cst.CSTNode | None:
    """Return what trains a model in a block: the loop of its steps, or a call that asks something else to.

    The block may be one of the steps; with ``whole`` it has to hold the training, and more than a few steps.
    """
    return _training_in(module, block, whole, None, set())


def _training_in(
    module: Module,
    block: cst.CSTNode,
    whole: bool,
    around: cst.CSTNode | None,
    searched: set[tuple[cst.CSTNode, bool]],
) -> cst.CSTNode | None:
    """Return what ``training_in`` does, for a block that calls lead to.

    ``around`` is a loop around those calls. ``searched`` are the blocks that have been looked at, each with
    whether there was such a loop.
    """
    for call in module.tree.descendants(block):
        if not isinstance(call, cst.Call) or (whole and ends_soon(module, call)):
            continue
        inner = next((loop for loop in module.flow.loops(call) if module.tree.contains(block, loop)), None)
        loop: cst.CSTNode | None = inner if inner is not None else around
        if isinstance(call.func, cst.Attribute):
            method = call.func.attr.value
            if method == "fit" or (method == "train" and ends(last_name(call.func.value), Role.TRAINER)):
                if not whole or _SHORT.isdisjoint(identifiers(module)):
                    return call
            if method == "backward":
                hot = places.hot(module, call)
                if hot is not None and (loop is not None or not whole):
                    return loop or hot.loop
        callee = module.callee(call)
        place = (callee.body, loop is not None) if isinstance(callee, cst.FunctionDef) else None
        if place is not None and place not in searched:
            searched.add(place)
            found = _training_in(module, place[0], whole, loop, searched)
            if found is not None:
                return found
    return None


def ends_soon(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a loop around a node ends after few rounds, or may: a small count,
    a condition to leave it.
    """
    return any(_is_short(module, loop) for loop in module.flow.loops(node))


def _is_short(module: Module, loop: cst.CSTNode) -> bool:
    """Return whether a loop ends after few rounds, or may: by a count,
    or by a condition under which it is left.

    An epoch is long however few there are; data that are counted out, and not loaded, are made up.
    """
    if not isinstance(loop, (cst.For, cst.While)) or is_epoch_loop(loop):
        return False
    if isinstance(loop, cst.For) and any(_counts(module, part) for part in _parts(loop.iter)):
        return True
    return any(
        isinstance(node, _LEAVING) and module.flow.is_conditional(node, within=loop)
        for node in module.tree.descendants(loop.body)
    )


def _parts(iterable: cst.BaseExpression) -> Iterator[cst.Call]:
    """Yield the calls that an iterable is wrapped into: ``enumerate(islice(loader, 10))``."""
    if isinstance(iterable, cst.Call):
        yield iterable
        for argument in iterable.args:
            yield from _parts(argument.value)


def _counts(module: Module, call: cst.Call) -> bool:
    """Return whether a call gives out so many items and no more: ``range(100)``, ``islice(loader, 10)``."""
    if last_name(call.func) not in ("range", "trange", "islice", "take"):
        return False
    counts = [module.value(argument.value) for argument in call.args if argument.keyword is None]
    return any(count.kind is Kind.NUMBER and count.constant is not MISSING for count in counts)
