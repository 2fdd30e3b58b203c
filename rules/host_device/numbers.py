"""Where a decision wants numbers of Python: bounds and sizes, and loops over the elements of one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What takes sizes as numbers, by its last name.
_SIZED = frozenset(
    {"arange", "empty", "expand", "full", "new_empty", "new_full", "new_ones", "new_zeros", "ones", "pad"}
    | {"range", "repeat", "reshape", "view", "zeros"}
)


def takes_number(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use needs a number of Python: the bound of a slice, a size, how often a loop runs."""
    match use.kind:
        case UseKind.INDEX:
            return isinstance(use.part, cst.Slice)
        case UseKind.ARGUMENT:
            return last_name(use.call.func) in _SIZED
        case UseKind.ASSIGNED | UseKind.OPERAND | UseKind.UNPACKED:
            return ONWARD
        case _:
            return False


def gone_through(module: Module, tensor: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor at whose elements a ``for`` loop that runs no model looks one by one,
    if ``tensor`` is one.

    Such a loop takes its time for these waits alone.
    """
    loop = _loop_around(module, tensor)
    return None if loop is None or places.computes(module, loop.body) else picked_from(module, tensor)


def _loop_around(module: Module, node: cst.CSTNode) -> cst.For | None:
    loop = next(iter(module.flow.statement_loops(node)), None)
    return loop if isinstance(loop, cst.For) else None


def is_one_of_many(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether a loop or comprehension that runs no model looks at the elements of a tensor one by one,
    and ``tensor`` is one of them.

    Each waits by itself, so that one copy of all is faster whatever the elements are for.
    """
    return gone_through(module, tensor) is not None or comprehended(module, tensor) is not None


def comprehended(module: Module, tensor: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``ranks`` for ``row[0]`` in ``[row[0].item() for row in ranks]``."""
    read = _names(module, tensor)
    for loop in module.flow.loops(tensor):
        if not isinstance(loop, cst.BaseSimpleComp):
            return None
        clause: cst.CompFor | None = loop.for_in
        while clause is not None:
            for target, items in _in_step(clause.target, clause.iter):
                if _names(module, target) & read and module.value(items).kind is Kind.TENSOR:
                    return None if places.computes(module, loop.elt) else items
            clause = clause.inner_for_in
    return None


def picked_from(module: Module, tensor: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor of which a ``for`` loop takes another element in each round,
    if ``tensor`` is one of them.

    ``path[i] == blank`` in ``for i in range(n)``, ``token == stop`` in ``for token in path``, and the tensor
    from which an element picks: ``found[token]``. None if the loop writes to the tensor: a copy made once
    would not show what it does.
    """
    loop = _loop_around(module, tensor)
    if loop is None:
        return None
    counters = _names(module, loop.target)
    for part in (*_picked(module, tensor), *module.tree.descendants(tensor)):
        if not isinstance(part, cst.Subscript) or not _is_named(part.value):
            continue
        indices = set[str]().union(*(_names(module, element) for element in part.slice))
        if indices & counters and module.value(part.value).kind is Kind.TENSOR:
            return None if _written_in(module, part.value, loop) else part.value
    read = _names(module, tensor)
    gone = (items for target, items in _in_step(loop.target, loop.iter) if _names(module, target) & read)
    return next((items for items in gone if module.value(items).kind is Kind.TENSOR), None)


def _is_named(node: cst.BaseExpression) -> bool:
    """Return whether it is a variable, an attribute, or an entry by its name: ``outputs["logits"]``."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        return isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)
    return isinstance(node, (cst.Name, cst.Attribute))


def _in_step(
    target: cst.BaseExpression, items: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield what a loop goes through, each with the name that it gives the elements:
    several with ``zip``.
    """
    match target, items:
        case (
            cst.Tuple(elements=[_, cst.Element(value=element)]),
            cst.Call(func=cst.Name("enumerate"), args=[cst.Arg(value=enumerated), *_]),
        ):
            yield from _in_step(element, enumerated)
        case cst.Tuple(elements=elements), cst.Call(func=cst.Name("zip"), args=args):
            for part, argument in zip(elements, args, strict=False):
                yield part.value, argument.value
        case cst.Name(), _:
            yield target, items
        case _:
            pass


def _picked(module: Module, tensor: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """Return an expression, with what it was assigned if it is a variable."""
    bindings = module.bindings(tensor)
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    return (tensor,) if made is None else (tensor, made)


def _names(module: Module, node: cst.CSTNode) -> set[str]:
    return module.tree.names_in(node)


def _written_in(module: Module, tensor: cst.BaseExpression, loop: cst.For) -> bool:
    """Return whether a loop assigns to a tensor, or to items of it."""
    name = module.source(tensor)
    for node in module.tree.descendants(loop.body):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)):
            target = node.target.value if isinstance(node.target, cst.Subscript) else node.target
            if module.source(target) == name:
                return True
    return False
