"""Layer norm and RMS norm that are written out by means, variances and roots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.algebra import as_assigned
from torchlint.semantics.constancy import unwritten
from torchlint.semantics.operations import Operation, operations_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding


@dataclass(frozen=True, slots=True)
class Normalization:
    """A normalisation over the last dimensions.

    Attributes:
        centred: whether the mean is taken away (layer norm) or not (RMS norm).
        x: what is normalised.
        eps: what is added under the root.
        dimensions: over how many dimensions.
        names: the names by which the steps are read, for `as_made`.
        statements: the assignments that give names to the steps.
        cast: whether the squares are summed in another type than what is scaled.
    """

    centred: bool
    x: cst.BaseExpression
    eps: cst.BaseExpression
    dimensions: int
    names: tuple[cst.Name, ...]
    statements: tuple[cst.CSTNode, ...]
    cast: bool = False


@dataclass(slots=True)
class _Walk:
    """One search backwards from the last step."""

    module: Module
    consumed: set[cst.CSTNode] = field(default_factory=set)
    followed: list[cst.Name] = field(default_factory=list)
    bindings: dict[Binding, None] = field(default_factory=dict)
    cast: bool = False

    def step(self, node: cst.BaseExpression) -> Operation | None:
        """The operation behind an expression, through names that have one definition."""
        operations = operations_of(self.module)
        current: cst.CSTNode = node
        for _ in range(4):
            if not isinstance(current, cst.Name):
                break
            bindings = self.module.bindings(current)
            definition = operations.definition(bindings[0]) if len(bindings) == 1 else None
            if definition is None:
                return None
            self.consumed.add(current)
            self.followed.append(current)
            self.bindings[bindings[0]] = None
            current = definition
        found = operations.of(current)
        return None if found is None or found.in_place else found

    def read_elsewhere(self) -> bool:
        """Whether a step serves another end as well."""
        return any(use not in self.consumed for b in self.bindings for use in self.module.uses(b))


def normalization(module: Module, node: cst.BaseExpression) -> Normalization | None:
    """The normalisation whose last step is ``node``; None if it is none, or its steps serve another end."""
    operation = operations_of(module).of(node)
    if operation is None or operation.name not in ("mul", "div") or operation.options or operation.in_place:
        return None
    left, right = operation.operands
    pairs = [(left, right)] if operation.name == "div" else [(left, right), (right, left)]
    for numerator, root in pairs:
        if not _may_be_root(module, root):
            continue
        walk = _Walk(module)
        inner = _under_root(walk, root, inverse=operation.name == "mul")
        found = _normalized(walk, numerator, inner) if inner is not None else None
        if found is not None and not walk.read_elsewhere():
            centred, x, eps, dimensions = found
            statements = tuple(dict.fromkeys(module.tree.statement(b.node) for b in walk.bindings))
            return Normalization(centred, x, eps, dimensions, tuple(walk.followed), statements, walk.cast)
    return None


def as_made(module: Module, found: Normalization) -> bool:
    """Whether each step, where it is read, is still what was computed, and of what it was computed.

    It takes longer to find out than everything else, and is asked last.
    """
    return all(unwritten(module, name) for name in found.names) and as_assigned(module, found.names)


def _may_be_root(module: Module, node: cst.BaseExpression) -> bool:
    """A cheap question first: whether a root is spelt here or where the name gets its value."""
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        if len(bindings) != 1 or bindings[0].value is None:
            return False
        node = bindings[0].value
    return any(
        (isinstance(part, cst.Name) and "sqrt" in part.value)
        or (isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Power))
        or (isinstance(part, cst.Name) and part.value == "pow")
        for part in (node, *module.tree.descendants(node))
    )


def _under_root(walk: _Walk, node: cst.BaseExpression, *, inverse: bool) -> cst.BaseExpression | None:
    """What the square root, or its inverse, is taken of."""
    operation = walk.step(node)
    if operation is None:
        return None
    number = operations_of(walk.module).number
    match operation.name:
        case "rsqrt":
            return operation.operands[0] if inverse else None
        case "sqrt":
            return None if inverse else operation.operands[0]
        case "pow":
            return operation.operands[0] if not inverse and number(operation.operands[1]) == 0.5 else None
        case "div" if inverse and number(operation.operands[0]) == 1:
            return _under_root(walk, operation.operands[1], inverse=False)
        case _:
            return None


def _normalized(
    walk: _Walk, numerator: cst.BaseExpression, inner: cst.BaseExpression
) -> tuple[bool, cst.BaseExpression, cst.BaseExpression, int] | None:
    total = walk.step(inner)
    if total is None or total.name != "add" or total.options:
        return None
    for spread, eps in (total.operands, total.operands[::-1]):
        if operations_of(walk.module).number(spread) is not None:
            continue
        operation = walk.step(spread)
        if operation is None:
            continue
        dimensions = _last_dimensions(walk, operation)
        if not dimensions:
            continue
        if operation.name == "var":
            x = operation.operands[0]
            if _is_biased(walk, operation) and _is_centred(walk, numerator, x, dimensions):
                return True, x, eps, dimensions
        elif operation.name == "mean":
            found = _of_squares(walk, operation.operands[0], numerator, dimensions)
            if found is not None:
                return *found, eps, dimensions
    return None


def _of_squares(
    walk: _Walk, squares: cst.BaseExpression, numerator: cst.BaseExpression, dimensions: int
) -> tuple[bool, cst.BaseExpression] | None:
    """Whether the squares are of what is divided, and whether that has its mean taken away."""
    base = _squared(walk, squares)
    if base is None:
        return None
    same = operations_of(walk.module).same
    centred = walk.step(base) if _is_difference(walk, base) else None
    if centred is not None:
        x = centred.operands[0]
        if _is_centred(walk, numerator, x, dimensions) and _is_centred(walk, base, x, dimensions):
            return True, x
        return None
    if same(base, numerator):
        return False, base
    operation = operations_of(walk.module).of(base)
    if (
        operation is not None
        and operation.name in ("to", "float", "type")
        and same(operation.operands[0], numerator)
    ):
        walk.cast = True
        return False, operation.operands[0]
    return None


def _is_difference(walk: _Walk, node: cst.BaseExpression) -> bool:
    operation = operations_of(walk.module).behind(node)
    if operation is None or operation.name != "sub":
        return False
    mean = operations_of(walk.module).behind(operation.operands[1])
    return mean is not None and mean.name == "mean"


def _squared(walk: _Walk, node: cst.BaseExpression) -> cst.BaseExpression | None:
    operation = walk.step(node)
    if operation is None or operation.options:
        return None
    operations = operations_of(walk.module)
    match operation.name:
        case "square":
            return operation.operands[0]
        case "pow" if operations.number(operation.operands[1]) == 2:
            return operation.operands[0]
        case "mul" if operations.same(*operation.operands):
            for operand in operation.operands:
                if isinstance(operand, cst.Name):
                    walk.consumed.add(operand)
            return operation.operands[0]
        case _:
            return None


def _is_centred(walk: _Walk, node: cst.BaseExpression, x: cst.BaseExpression, dimensions: int) -> bool:
    """Whether an expression is ``x`` less its mean over the same dimensions."""
    difference = walk.step(node)
    if difference is None or difference.name != "sub" or difference.options:
        return False
    same = operations_of(walk.module).same
    mean = walk.step(difference.operands[1])
    return (
        mean is not None
        and mean.name == "mean"
        and same(difference.operands[0], x)
        and same(mean.operands[0], x)
        and _last_dimensions(walk, mean) == dimensions
    )


def _last_dimensions(walk: _Walk, operation: Operation) -> int:
    """Over how many dimensions a reduction runs that keeps them, counted from the last; 0 for any other."""
    keep, dim = operation.options.get("keepdim"), operation.options.get("dim")
    if not isinstance(keep, cst.Name) or keep.value != "True" or "dtype" in operation.options:
        return 0
    elements = [e.value for e in dim.elements] if isinstance(dim, (cst.Tuple, cst.List)) else [dim]
    numbers = [operations_of(walk.module).integer(element) for element in elements]
    count = len(numbers)
    return count if sorted(n for n in numbers if n is not None) == list(range(-count, 0)) else 0


def _is_biased(walk: _Walk, operation: Operation) -> bool:
    """Whether a variance divides by the number of elements, as norms do."""
    unbiased, correction = operation.options.get("unbiased"), operation.options.get("correction")
    if correction is not None:
        return operations_of(walk.module).number(correction) == 0
    return isinstance(unbiased, cst.Name) and unbiased.value == "False"
