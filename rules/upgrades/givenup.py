"""What is said of names and parameters that libraries gave up, and how they are mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, replace, unset_argument
from torchlint.fixes.callforms import UNSAFE, constant
from torchlint.fixes.replacements import brought
from torchlint.messages import KEPT_FOR_CALLERS
from torchlint.semantics.api.upgrades import ARGUMENTS, Upgrade
from torchlint.semantics.upgrading import Given, is_kept_for_callers, last_part
from torchlint.target import OLDEST

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_PACKAGES = ("torch", "torchvision", "torchaudio")
_TAKERS = {symbol: rows for symbol, rows in ARGUMENTS.items() if rows[0].package in _PACKAGES}
# Beyond this many characters a message leaves what to do to the help.
_LONGEST = 100
_PARAMETERS = frozenset(row.argument for rows in _TAKERS.values() for row in rows)
# Subclasses that the file or a library made of it change what ``isinstance`` says.
_ASKED_FOR_TYPE = "torch.optim.lr_scheduler._LRScheduler"


def said_of(module: Module, row: Upgrade) -> str:
    """Return the message about a row, as far as it concerns the releases that may run the program."""
    name = row.argument or row.symbol
    target = module.target_of(row.package)
    if row.is_removed(target):
        what = f"was removed in {row.package} {row.removed}"
    elif row.private:
        what = "is private"
    elif row.quiet or row.deprecated in (OLDEST, "0.8"):
        what = "is deprecated"
    else:
        what = f"is deprecated since {row.package} {row.deprecated}"
    advice = [row.note] if row.replacement is None else [f"u{row.remedy[1:]}", f"use `{row.replacement}`"]
    told = (f"`{name}` {what}; {each}" for each in advice)
    return next((each for each in told if len(each) <= _LONGEST), f"`{name}` {what}")


def slight(module: Module, use: cst.CSTNode, row: Upgrade) -> str | None:
    """Return why there is little to gain from doing without a name or parameter that still works.

    Little in a function that is itself deprecated, and where nothing does the same: TorchScript is a format
    that other programs load, other parameters synchronize differently, and a checkpoint that was saved under
    other names no longer loads.
    """
    if is_kept_for_callers(module, use):
        return KEPT_FOR_CALLERS
    if row.removed is None:
        if row.replacement is None:
            return None if row.argument else "nothing else does the same"
        if row.renames_state:
            return "saved checkpoints have the old names"
        if row.argument and not row.exact:
            return "the replacement works differently"
    return None


def moved(module: Module, use: cst.CSTNode, row: Upgrade) -> Fix | None:
    """Return the fix that brings a use of a name to its replacement,
    if every release that may run it has that.
    """
    if row.replacement is None or not row.is_replaceable(module.target_of(row.package)):
        return None
    if not row.exact and row.rewrite not in UNSAFE:
        return None
    edits = brought(module, use, row)
    risk = None
    if row.rewrite in UNSAFE:
        risk = "of a batch of vectors, the new function may make one matrix"
    elif row.retypes:
        risk = "it is another class, which a printed model shows"
    elif row.symbol == _ASKED_FOR_TYPE and _asks_for_type(module):
        risk = "the program asks for the type, and the answer changes"
    return graded(module, f"Use `{row.replacement}`", edits, risk=risk)


def _asks_for_type(module: Module) -> bool:
    """Return whether a file of the program does more with the class than to inherit from it and to annotate:
    asks what is an instance of it, in a call or a pattern.
    """
    word = last_part(_ASKED_FOR_TYPE)
    return any(
        each.qualified(node) == _ASKED_FOR_TYPE and not _is_only_named(each, node)
        for each in (module, *module.companions(word))
        for node in (*each.names.reads(word), *each.tree.attributes_by_name.get(word, ()))
    )


def _is_only_named(module: Module, use: cst.CSTNode) -> bool:
    """Return whether a class inherits from what is used, or an annotation names it."""
    argument = module.tree.parent(use)
    inherited = isinstance(argument, cst.Arg) and isinstance(module.tree.parent(argument), cst.ClassDef)
    return inherited or module.tree.enclosing(use, cst.Annotation) is not None


def arguments_given_up(module: Module, call: cst.Call) -> Iterator[Given]:
    """Yield the arguments of a call, given by keyword, that torch and its libraries gave up."""
    for arg in call.args:
        if arg.keyword is None or arg.keyword.value not in _PARAMETERS:
            continue
        taker = module.qualified(call.func) or module.base_constructed(call)
        for row in _TAKERS.get(taker, ()) if taker is not None else ():
            if row.argument == arg.keyword.value:
                yield Given(arg, arg.keyword, row)


def dropped_or_renamed(module: Module, call: cst.Call, given: Given) -> Fix | None:
    """Return the fix that gives an argument its new name, or drops it where it does nothing any more."""
    row = given.row
    assert isinstance(given.node, cst.Arg)
    target = module.target_of(row.package)
    if row.replacement is not None:
        if not row.is_replaceable(target):
            return None
        if any(arg.keyword is not None and arg.keyword.value == row.replacement for arg in call.args):
            return None
        hidden = any(arg.star == "**" for arg in call.args)
        risk = None
        if hidden:
            risk = "`**` may pass the new name already"
        elif not row.exact:
            risk = "the new argument does not mean quite the same"
        edits = replace(module, given.name, row.replacement)
        return graded(module, f"Use `{row.replacement}`", edits, risk=risk)
    # A release that takes it no more prints nothing in any case.
    unheard = row.is_removed(target) or constant(module, given.node, False) in (False, None)
    risk = None if unheard else "an older release that may run the program no longer prints"
    edits = unset_argument(module, call, row.argument)
    return graded(module, f"Remove `{row.argument}`", edits, risk=risk)
