"""Formulas on tensors: sums and products taken apart, and terms moved to where one function takes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from math import prod
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.constancy import same_later
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.operations import Operation, Operations, operations_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


@dataclass(frozen=True, slots=True)
class Product:
    """A product taken apart: a number, and the factors that are no numbers."""

    number: float
    factors: tuple[cst.BaseExpression, ...]


def product(module: Module, node: cst.BaseExpression, names: list[cst.Name]) -> Product:
    """Return the number and the factors that an expression is the product of;
    names with one use are looked into.

    Those names are added to ``names``, for `as_assigned`. What is made of too many operations is one factor.
    """
    operations = operations_of(module)
    total = divisor = 1.0
    factors: list[cst.BaseExpression] = []
    through: list[cst.Name] = []
    # Each with its exponent.
    waiting = [(node, 1)]
    taken_apart = 0
    while waiting:
        operand, exponent = waiting.pop()
        number = operations.number(operand)
        if number is not None:
            total *= prod(repeat(number, exponent))
            continue
        looked_into: list[cst.Name] = []
        operation = only_here(module, operand, looked_into)
        inner = _multiplied(operations, operation) if operation is not None else None
        if inner is None:
            factors += [operand] * exponent
        else:
            taken_apart += 1
            times, by, parts = inner
            total *= prod(repeat(times, exponent))
            divisor *= prod(repeat(by, exponent))
            waiting += [(part, exponent * power) for part, power in reversed(parts)]
            through += looked_into
        if max(taken_apart, len(factors), exponent) > MANY:
            return Product(1.0, (node,))
    names += through
    return Product(total / divisor, tuple(factors))


def _multiplied(
    operations: Operations, operation: Operation
) -> tuple[float, float, list[tuple[cst.BaseExpression, int]]] | None:
    """Return the numbers by which a product is multiplied and divided, and its factors with their exponents.

    None if an operation is no product.
    """
    if operation.in_place or operation.options:
        return None
    first, *others = operation.operands
    match operation.name:
        case "mul":
            return 1.0, 1.0, [(operand, 1) for operand in operation.operands]
        case "div":
            divisor = operations.number(others[0])
            return (1.0, divisor, [(first, 1)]) if divisor else None
        case "neg":
            return -1.0, 1.0, [(first, 1)]
        case "pow":
            exponent = operations.integer(others[0])
            if exponent is None or not 1 < exponent <= 4:
                return None
            return 1.0, 1.0, [(first, exponent)]
        case "square":
            return 1.0, 1.0, [(first, 2)]
        case _:
            return None


def plus_number(
    module: Module, node: cst.BaseExpression, names: list[cst.Name]
) -> tuple[cst.BaseExpression, float] | None:
    """Return the term and the number of ``x + 3`` or ``3 + x``; of ``x - 3`` the number is negative.

    A name that is looked into is added to ``names``, for `as_assigned`.
    """
    operation = only_here(module, node, names)
    if operation is None or operation.name not in ("add", "sub") or operation.options or operation.in_place:
        return None
    left, right = operation.operands
    number = operations_of(module).number(right)
    if number is not None:
        return left, number if operation.name == "add" else -number
    number = operations_of(module).number(left)
    return (right, number) if number is not None and operation.name == "add" else None


def only_here(module: Module, node: cst.BaseExpression, names: list[cst.Name]) -> Operation | None:
    """Return the operation behind an expression,
    or behind a name that is read nowhere else (added to ``names``).

    Whether such a name still stands for that operation is asked last, of all names of a formula that was
    recognised: see `as_assigned`.
    """
    operations = operations_of(module)
    if not isinstance(node, cst.Name):
        return operations.of(node)
    bindings = module.bindings(node)
    if len(bindings) != 1 or len(module.uses(bindings[0])) != 1:
        return None
    definition = operations.definition(bindings[0])
    if definition is None:
        return None
    names.append(node)
    return operations.of(definition)


def as_assigned(module: Module, names: Iterable[cst.Name]) -> bool:
    """Return whether the expressions that were assigned to some names would give the same
    where those are read.
    """
    operations = operations_of(module)
    for name in names:
        bindings = module.bindings(name)
        definition = operations.definition(bindings[0]) if len(bindings) == 1 else None
        if definition is None or not same_later(module, definition, name, assignments(module, bindings)):
            return False
    return True


def argument(module: Module, node: cst.BaseExpression) -> str:
    """Return the code of an expression as an argument: without the brackets around it."""
    code = module.source(node)
    if isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield)):
        return code
    for _ in range(module.tree.parentheses(node)):
        code = code[1:-1].strip() if code.startswith("(") else code
    return code


def operand(module: Module, node: cst.BaseExpression) -> str:
    """Return the code of an expression as an operand of the tightest operator:
    in brackets unless it is an atom.
    """
    code = argument(module, node)
    return code if isinstance(node, _ATOMS) else f"({code})"


def assignments(module: Module, bindings: Iterable[Binding]) -> list[cst.CSTNode]:
    """Return the assignments that make some bindings, without what else stands on their lines."""
    found = (
        module.tree.enclosing(binding.node, cst.Assign, cst.AnnAssign, cst.AugAssign) for binding in bindings
    )
    return [statement for statement in found if statement is not None]
