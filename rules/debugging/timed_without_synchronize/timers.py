"""The times that a program computes from two readings of a clock, and what is evaluated between these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import WALL_CLOCKS
from torchlint.semantics.names import BindingKind
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


@dataclass(frozen=True, slots=True)
class Interval:
    """A time that is computed from two readings of a wall clock in one function.

    ``elapsed`` is the subtraction. Both readings are evaluated once in every round of the same loop, or in
    none.
    """

    start: cst.Call
    end: cst.Call
    elapsed: cst.BinaryOperation


def reads_wall_clock(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node reads a clock whose readings stand for times of day, or grow with them."""
    return isinstance(node, cst.Call) and module.qualified(node.func) in WALL_CLOCKS


def timer(module: Module, made: cst.Call) -> tuple[cst.Call, list[cst.CSTNode]] | None:
    """Return the second reading of what ``with`` enters to time a block,
    and what is evaluated right before it.

    A class whose ``__enter__`` and ``__exit__`` read the clock, or a generator function made a
    context manager, which reads it before and behind its one ``yield``.
    """
    definition = module.value(made.func).definition
    module = module.home(definition) if definition is not None else module
    if isinstance(definition, cst.ClassDef):
        info = module.classes.info(definition)
        entering, leaving = info.method("__enter__"), info.method("__exit__")
        if entering is None or leaving is None:
            return None
        first, last = _in_order(module, entering.body), _in_order(module, leaving.body)
    elif isinstance(definition, cst.FunctionDef) and _is_context_manager(definition):
        nodes = _in_order(module, definition.body)
        yields = [index for index, node in enumerate(nodes) if isinstance(node, cst.Yield)]
        if len(yields) != 1:
            return None
        first, last = nodes[: yields[0]], nodes[yields[0] + 1 :]
    else:
        return None
    reading = next((index for index, node in enumerate(last) if reads_wall_clock(module, node)), None)
    if reading is None or not any(reads_wall_clock(module, node) for node in first):
        return None
    end = last[reading]
    return (end, last[:reading]) if isinstance(end, cst.Call) else None


def _in_order(module: Module, body: cst.BaseSuite) -> list[cst.CSTNode]:
    return list(evaluated(module, body))[::-1]


def _is_context_manager(function: cst.FunctionDef) -> bool:
    return any(last_name(decorator.decorator) == "contextmanager" for decorator in function.decorators)


def interval(module: Module, elapsed: cst.BinaryOperation) -> Interval | None:
    """Return the time that a subtraction computes, if it takes one reading of a clock from a later one.

    None where an operand may be one of several readings: ``time.time() - end`` in a loop that sets ``end``
    anew at its end tells of whole rounds, one behind the other, in which nothing is left out.
    """
    if not isinstance(elapsed.operator, cst.Subtract):
        return None
    end = _reading(module, elapsed.left)
    start = _reading(module, elapsed.right) if end is not None and end is not elapsed.right else None
    if start is None or end is None:
        return None
    order = module.tree.order
    if module.function(start) is not module.function(end) or order[start] > order[end]:
        return None
    return Interval(start, end, elapsed) if module.flow.loops(start) == module.flow.loops(end) else None


def _reading(module: Module, node: cst.BaseExpression) -> cst.Call | None:
    """Return the one reading of a wall clock that an expression is."""
    if isinstance(node, cst.Call):
        return node if module.qualified(node.func) in WALL_CLOCKS else None
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGN or bindings[0].path:
            return None
        value = bindings[0].value
    elif isinstance(node, cst.Attribute):
        value = _assigned(module, node)
    else:
        return None
    return value if isinstance(value, cst.Call) and module.qualified(value.func) in WALL_CLOCKS else None


def _assigned(module: Module, node: cst.Attribute) -> cst.BaseExpression | None:
    """Return what an attribute is set to, if its function does so once, above."""
    function, text = module.function(node), module.source(node)
    if function is None:
        return None
    values = [
        statement.value
        for statement in module.tree.descendants(function)
        if isinstance(statement, cst.Assign)
        if any(module.source(target.target) == text for target in statement.targets)
    ]
    above = len(values) == 1 and module.tree.order[values[0]] < module.tree.order[node]
    return values[0] if above else None


def evaluated_within(module: Module, measured: Interval) -> Iterator[cst.CSTNode]:
    """Yield what is evaluated between the statements of two readings, the last first.

    The bodies of functions and classes defined in between are left out.
    """
    tree = module.tree
    start, end = tree.statement(measured.start), tree.statement(measured.end)
    around = frozenset(tree.ancestors(end))
    block = next((node for node in tree.ancestors(start) if node in around), None)
    if block is not None and start is not end:
        after = max(tree.order[node] for node in tree.descendants(start))
        yield from _evaluated(module, block, after, tree.order[end])


def evaluated(module: Module, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Return what evaluating a node evaluates, the last first: each node before its parts."""
    return _evaluated(module, node, -1, module.tree.last(module.tree.root) + 1)


def _evaluated(module: Module, root: cst.CSTNode, after: int, before: int) -> Iterator[cst.CSTNode]:
    order = module.tree.order
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if after < order[node] < before:
            yield node
        waiting.extend(
            part
            for part in module.tree.parts(node)
            if order[part] < before and not isinstance(part, (cst.FunctionDef, cst.ClassDef, cst.Lambda))
        )
