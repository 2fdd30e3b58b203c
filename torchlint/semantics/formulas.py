"""Formulas on tensors: activation functions, layer norm and RMS norm that are written out.

Sums and products are taken apart, and terms moved to where one function takes them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import prod
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.constancy import same_later
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.operations import Operation, Operations, operations_of
from torchlint.semantics.spellings import parts_of_display

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

CURVES = ("sigmoid", "expit", "erf", "tanh", "relu6", "clamp", "clip", "softplus")
"""The functions and layers that gates are computed with, in lower case."""
_ROOT_OF_TWO = math.sqrt(2)
_ROOT_OF_TWO_OVER_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_QUICK = 1.702
# How near a constant comes to the exact one: to the last digit of float32, or just so that it is meant.
_EXACT, _MEANT = 1e-7, 1e-3


# --- activation functions ----------------------------------------------------------------------------------


class Formula(enum.Enum):
    """The formulas of activation functions; two of them for GELU, the exact one and the one with ``tanh``."""

    GELU = enum.auto()
    TANH_GELU = enum.auto()
    QUICK_GELU = enum.auto()
    SILU = enum.auto()
    HARD_SWISH = enum.auto()
    MISH = enum.auto()


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation function that is written out.

    Attributes:
        formula: which one it is.
        function: the dotted name of the function of torch; None if there is none.
        x: its input.
        options: the code of further arguments.
        since: the release from which on torch has it.
        exact: whether the constants are exact to the last digit of float32.
        names: what the steps were called, each read once.
    """

    formula: Formula
    function: str | None
    x: cst.BaseExpression
    names: tuple[cst.Name, ...]
    options: str = ""
    since: str = "1.7"
    exact: bool = True


def activation(module: Module, node: cst.BaseExpression) -> Activation | None:
    """Return the activation function that the product ``node`` writes out, if none around it does."""
    found = _of_product(module, node)
    if found is None:
        return None
    above = module.tree.parent(node)
    while isinstance(above, cst.BinaryOperation):
        if _of_product(module, above) is not None:
            return None
        above = module.tree.parent(above)
    return found


def _of_product(module: Module, node: cst.BaseExpression) -> Activation | None:
    if not _may_curve(module, node):
        return None
    names: list[cst.Name] = []
    found = product(module, node, names)
    if not 2 <= len(found.factors) <= 3:
        return None
    for index, factor in enumerate(found.factors):
        others = (*found.factors[:index], *found.factors[index + 1 :])
        if len(others) != 1 or operations_of(module).number(others[0]) is not None:
            continue
        read = _Reading(module, found.number, others[0], list(names))
        answer = read.gate(factor)
        if answer is not None:
            return answer
    return None


def _may_curve(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a curve is named in a product, or where a factor is made: a cheap test."""
    if not any(map(module.tree.mentions_in_any_case, CURVES)):
        return False
    if _names_curve(module, node):
        return True
    for name in operations_of(module).read_names(node):
        bindings = module.bindings(name)
        if len(bindings) == 1 and bindings[0].value is not None and _names_curve(module, bindings[0].value):
            return True
    return False


def _names_curve(module: Module, node: cst.BaseExpression) -> bool:
    return any(
        isinstance(part, cst.Name) and any(curve in part.value.lower() for curve in CURVES)
        for part in module.tree.descendants(node)
    )


@dataclass(slots=True)
class _Reading:
    """One way of reading a product: ``number * x * gate``."""

    module: Module
    number: float
    x: cst.BaseExpression
    names: list[cst.Name]

    def gate(self, factor: cst.BaseExpression) -> Activation | None:
        """Return the activation whose gate is ``factor``."""
        return self._normal(factor) or self._curve(factor)

    def _is_x(self, node: cst.BaseExpression) -> bool:
        return operations_of(self.module).same(self.x, node)

    def _all_x(self, factors: Sequence[cst.BaseExpression], count: int) -> bool:
        return len(factors) == count and all(self._is_x(factor) for factor in factors)

    def _answer(
        self,
        formula: Formula,
        function: str | None,
        error: float = 0.0,
        options: str = "",
        since: str = "1.7",
    ) -> Activation | None:
        if error > _MEANT or not as_assigned(self.module, self.names):
            return None
        return Activation(
            formula, function, self.x, tuple(dict.fromkeys(self.names)), options, since, error <= _EXACT
        )

    def _curve(self, factor: cst.BaseExpression) -> Activation | None:
        operation = only_here(self.module, factor, self.names)
        if operation is None or operation.in_place:
            return None
        inner = operation.operands[0]
        match operation.name:
            case "sigmoid" if not operation.options and self.number == 1:
                if self._is_x(inner):
                    return self._answer(Formula.SILU, "torch.nn.functional.silu")
                scaled = product(self.module, inner, self.names)
                if self._all_x(scaled.factors, 1):
                    error = _error(scaled.number, _QUICK)
                    return self._answer(Formula.QUICK_GELU, None, error)
            case "hardsigmoid" if self.number == 1 and self._is_x(inner):
                return self._answer(Formula.HARD_SWISH, "torch.nn.functional.hardswish")
            case "relu6" | "clamp" | "hardtanh":
                return self._hard(operation.name, inner, operation.options)
            case "tanh" if self.number == 1:
                return self._mish(inner)
        return None

    def _hard(
        self, name: str, inner: cst.BaseExpression, options: dict[str, cst.BaseExpression] | object
    ) -> Activation | None:
        assert isinstance(options, dict)
        number = operations_of(self.module).number
        if name == "clamp" and (number(options.get("min")), number(options.get("max"))) != (0, 6):
            return None
        if name == "hardtanh" and (number(options.get("min_val")), number(options.get("max_val"))) != (0, 6):
            return None
        shifted = plus_number(self.module, inner, self.names)
        if shifted is None or shifted[1] != 3 or not self._is_x(shifted[0]):
            return None
        return self._answer(Formula.HARD_SWISH, "torch.nn.functional.hardswish", _error(self.number, 1 / 6))

    def _mish(self, inner: cst.BaseExpression) -> Activation | None:
        operation = only_here(self.module, inner, self.names)
        if operation is None or operation.in_place or operation.options:
            return None
        found: cst.BaseExpression | None = None
        if operation.name == "softplus":
            found = operation.operands[0]
        elif operation.name in ("log1p", "log"):
            term = operation.operands[0]
            if operation.name == "log":
                shifted = plus_number(self.module, term, self.names)
                if shifted is None or shifted[1] != 1:
                    return None
                term = shifted[0]
            power = only_here(self.module, term, self.names)
            found = power.operands[0] if power is not None and power.name == "exp" else None
        if found is None or not self._is_x(found):
            return None
        return self._answer(Formula.MISH, "torch.nn.functional.mish", since="1.9")

    def _normal(self, factor: cst.BaseExpression) -> Activation | None:
        """Return GELU by ``1 + erf(...)`` or ``1 + tanh(...)``."""
        found = plus_number(self.module, factor, self.names)
        if found is None or found[1] != 1 or _error(self.number, 0.5) > _EXACT:
            return None
        operation = only_here(self.module, found[0], self.names)
        if operation is None or operation.name not in ("erf", "tanh") or operation.in_place:
            return None
        inner = product(self.module, operation.operands[0], self.names)
        if operation.name == "erf":
            if not self._all_x(inner.factors, 1):
                return None
            return self._answer(
                Formula.GELU, "torch.nn.functional.gelu", _error(inner.number, 1 / _ROOT_OF_TWO)
            )
        cubic = self._cubic(inner.factors)
        if cubic is None:
            return None
        error = max(_error(inner.number, _ROOT_OF_TWO_OVER_PI), _error(cubic, _CUBIC))
        name = "torch.nn.functional.gelu"
        return self._answer(Formula.TANH_GELU, name, error, 'approximate="tanh"', "1.12")

    def _cubic(self, factors: Sequence[cst.BaseExpression]) -> float | None:
        """Return the ``a`` of ``x + a * x**3``, or of ``x * (1 + a * x * x)``."""
        if len(factors) == 2:
            for index, factor in enumerate(factors):
                shifted = plus_number(self.module, factor, self.names)
                if shifted is None or shifted[1] != 1 or not self._is_x(factors[1 - index]):
                    continue
                square = product(self.module, shifted[0], self.names)
                if self._all_x(square.factors, 2):
                    return square.number
        if len(factors) != 1:
            return None
        operation = only_here(self.module, factors[0], self.names)
        if operation is None or operation.name != "add" or operation.options:
            return None
        for first, second in (operation.operands, operation.operands[::-1]):
            cube = product(self.module, second, self.names)
            if self._is_x(first) and self._all_x(cube.factors, 3):
                return cube.number
        return None


def _error(number: float, exact: float) -> float:
    return abs(number / exact - 1)


# --- normalisation: by means, variances and roots --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Normalization:
    """A normalisation over the last dimensions.

    Attributes:
        centred: whether the mean is taken away (layer norm) or not (RMS norm).
        x: what is normalised.
        eps: what is added under the root.
        dimensions: over how many dimensions.
        names: the names by which the steps are read, to ask whether these are what was computed.
        statements: the assignments that give names to the steps.
        cast: whether the squares are summed in another type than what is scaled.
        factors: what the result is multiplied with before the root divides it, such as the weight in
            ``weight * x / root``; None stands for the result.
    """

    centred: bool
    x: cst.BaseExpression
    eps: cst.BaseExpression
    dimensions: int
    names: tuple[cst.Name, ...]
    statements: tuple[cst.CSTNode, ...]
    cast: bool = False
    factors: tuple[cst.BaseExpression | None, ...] = (None,)


@dataclass(slots=True)
class _Walk:
    """One search backwards from the last step."""

    module: Module
    consumed: set[cst.CSTNode] = field(default_factory=set)
    followed: list[cst.Name] = field(default_factory=list)
    bindings: dict[Binding, None] = field(default_factory=dict)
    cast: bool = False

    def step(self, node: cst.BaseExpression) -> Operation | None:
        """Return the operation behind an expression, through names that have one definition."""
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
        """Return whether a step serves another end as well."""
        return any(use not in self.consumed for b in self.bindings for use in self.module.uses(b))


def normalization(module: Module, node: cst.BaseExpression) -> Normalization | None:
    """Return the normalisation whose last step is ``node``, if its steps serve no other end."""
    operation = operations_of(module).of(node)
    if operation is None or operation.name not in ("mul", "div") or operation.options or operation.in_place:
        return None
    left, right = operation.operands
    pairs = [(left, right)] if operation.name == "div" else [(left, right), (right, left)]
    for numerator, root in pairs:
        if not _may_be_root(module, root):
            continue
        for divided, factors in _divided(numerator):
            walk = _Walk(module)
            inner = _under_root(walk, root, inverse=operation.name == "mul")
            found = _normalized(walk, divided, inner) if inner is not None else None
            if found is not None and not walk.read_elsewhere():
                statements = tuple(dict.fromkeys(module.tree.statement(b.node) for b in walk.bindings))
                return Normalization(*found, tuple(walk.followed), statements, walk.cast, factors)
    return None


def _divided(
    numerator: cst.BaseExpression,
) -> Iterator[tuple[cst.BaseExpression, tuple[cst.BaseExpression | None, ...]]]:
    """Yield what may be normalised, with its factors: the numerator, or a factor of a product."""
    yield numerator, (None,)
    match numerator:
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            yield right, (left, None)
            yield left, (None, right)


def _may_be_root(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a root is spelt here or where the name gets its value; a cheap test that comes first."""
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        if len(bindings) != 1 or bindings[0].value is None:
            return False
        node = bindings[0].value
    return any(
        (isinstance(part, cst.Name) and "sqrt" in part.value)
        or (isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Power))
        or (isinstance(part, cst.Name) and part.value == "pow")
        for part in module.tree.descendants(node)
    )


def _under_root(walk: _Walk, node: cst.BaseExpression, *, inverse: bool) -> cst.BaseExpression | None:
    """Return what the square root, or its inverse, is taken of."""
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
    """Return whether the squares are of what is divided, and whether that has its mean taken away."""
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
    """Return whether an expression is ``x`` less its mean over the same dimensions."""
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
    """Return over how many dimensions a reduction runs that keeps them, counted from the last, or 0."""
    keep, dim = operation.options.get("keepdim"), operation.options.get("dim")
    if not isinstance(keep, cst.Name) or keep.value != "True" or "dtype" in operation.options:
        return 0
    elements = parts_of_display(dim) if dim is not None else []
    numbers = [operations_of(walk.module).integer(element) for element in elements]
    count = len(numbers)
    return count if sorted(n for n in numbers if n is not None) == list(range(-count, 0)) else 0


def _is_biased(walk: _Walk, operation: Operation) -> bool:
    """Return whether a variance divides by the number of elements, as norms do."""
    unbiased, correction = operation.options.get("unbiased"), operation.options.get("correction")
    if correction is not None:
        return operations_of(walk.module).number(correction) == 0
    return isinstance(unbiased, cst.Name) and unbiased.value == "False"


# --- sums and products taken apart --------------------------------------------------------------------------

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
    """Return whether what was assigned to some names would give the same where they are read."""
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
    """Return the code of an expression as an operand, in brackets unless it is an atom."""
    code = argument(module, node)
    return code if isinstance(node, _ATOMS) else f"({code})"


def assignments(module: Module, bindings: Iterable[Binding]) -> list[cst.CSTNode]:
    """Return the assignments that make some bindings, without what else stands on their lines."""
    found = (
        module.tree.enclosing(binding.node, cst.Assign, cst.AnnAssign, cst.AugAssign) for binding in bindings
    )
    return [statement for statement in found if statement is not None]
