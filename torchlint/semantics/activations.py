"""Activation functions that are written out: GELU, SiLU, hard swish, Mish."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.algebra import as_assigned, only_here, plus_number, product
from torchlint.semantics.operations import operations_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

CURVES = ("sigmoid", "expit", "erf", "tanh", "relu6", "clamp", "clip", "softplus")
"""The functions and layers that gates are computed with, in lower case."""
_ROOT_OF_TWO = math.sqrt(2)
_ROOT_OF_TWO_OVER_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_QUICK = 1.702
# How near a constant comes to the exact one: to the last digit of float32, or just so that it is meant.
_EXACT, _MEANT = 1e-7, 1e-3


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
    """The activation function that the product ``node`` writes out, if none around it does."""
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
    """A cheap question first: whether a curve is named in the product, or in what a factor was made by."""
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
        for part in (node, *module.tree.descendants(node))
    )


@dataclass(slots=True)
class _Reading:
    """One way of reading a product: ``number * x * gate``."""

    module: Module
    number: float
    x: cst.BaseExpression
    names: list[cst.Name]

    def gate(self, factor: cst.BaseExpression) -> Activation | None:
        """The activation whose gate is ``factor``."""
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
        """GELU by ``1 + erf(...)`` or ``1 + tanh(...)``."""
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
        """The ``a`` of ``x + a * x**3``, or of ``x * (1 + a * x * x)``."""
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
