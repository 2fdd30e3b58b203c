"""Losses and what they are given: followed back to the last operation, through models of the file.

A loss that wants logits and is given probabilities, or the other way round, is only seen by following its
input through names, reshapes, arguments of helpers, and the ``forward`` or the last layer of a model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.layers import SEQUENTIAL
from torchlint.semantics.module import Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.operations import Operation, operations_of
from torchlint.semantics.remembered import solved
from torchlint.semantics.values import MISSING

from .layerorder import called, last_in, makers

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

# What changes neither the elements nor their order along the classes enough to matter here.
RESHAPES = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous", "clone", "float", "to", "permute"}
) | {"transpose", "type", "type_as"}
# One of these is in the text of each file that computes a loss.
_COMPUTING = ("loss", "backward", "riterion")
_LAST_LAYERS = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.Sigmoid": "sigmoid",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The last operation behind a value.

    Attributes:
        name: its name: ``softmax``, ``log_softmax`` or ``sigmoid``.
        node: where it stands: the expression, or the call that makes the layer.
        operation: the operation, if it stands in the function that asks.
        reshaped: whether something stands between that changes the shape.
        read: the name that was read to get here, if any, and ``behind`` the ending of what it stands for.
    """

    name: str
    node: cst.CSTNode
    operation: Operation | None = None
    reshaped: bool = False
    read: cst.Name | None = None
    behind: Ending | None = None

    @property
    def through(self) -> list[cst.Name]:
        """The names between, from the one that is read on."""
        found: list[cst.Name] = []
        ending: Ending | None = self
        while ending is not None:
            if ending.read is not None:
                found.append(ending.read)
            ending = ending.behind
        return found


@dataclass(frozen=True, slots=True)
class GivenTo:
    """A loss, and what its input ends in.

    Attributes:
        call: the call of the loss.
        given: the input.
        ending: the last operation behind it.
        uses: how often this loss is called in the program.
    """

    call: cst.Call
    given: cst.BaseExpression
    ending: Ending
    uses: int


def given_to(
    module: Module, node: cst.Call, function: str, layer: str, names: Collection[str]
) -> GivenTo | None:
    """Return what the loss ``node`` is given, if it ends in one of these operations.

    ``node`` is a call of the function, or the call that makes the layer; of a layer the first call counts
    whose input ends so.
    """
    qualified = module.qualified(node.func)
    if qualified == function:
        return _first(module, [node], names)
    if qualified != layer:
        return None
    found: GivenTo | None = None
    uses = 0
    for each in (module, *module.companions(*_COMPUTING)):
        calls = [
            call
            for call in each.tree.nodes(cst.Call)
            if call is not node and _may_be_loss(call) and each.value(call.func).origin is node
        ]
        uses += len(calls)
        found = found or _first(each, calls, names)
    return replace(found, uses=uses) if found is not None else None


def _may_be_loss(call: cst.Call) -> bool:
    return len(call.args) >= 2 and isinstance(call.func, (cst.Name, cst.Attribute, cst.Call))


def _first(module: Module, calls: Sequence[cst.Call], names: Collection[str]) -> GivenTo | None:
    for call in calls:
        given = _input(call)
        ending = ending_of(module, given) if given is not None else None
        if given is not None and ending is not None and ending.name in names:
            return GivenTo(call, given, ending, len(calls))
    return None


def _input(call: cst.Call) -> cst.BaseExpression | None:
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is None or arg.keyword.value == "input":
            return arg.value
    return None


def ending_of(module: Module, node: cst.BaseExpression) -> Ending | None:
    """Return the last operation behind an expression, if it is known and one that losses care for."""
    return _Search.of(module).expression(node, True)


def _selects_rows(module: Module, node: cst.Subscript) -> bool:
    """Return whether an index only chooses some samples of a batch: ``out[:n]``, ``out[mask]``."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Slice())]:
            return True
        case [cst.SubscriptElement(slice=cst.Index(value=index))]:
            return module.value(index).constant is MISSING
    return False


class _Search(Part):
    """What the values of one file end in."""

    @solved(None)
    def expression(self, node: cst.BaseExpression, here: bool) -> Ending | None:
        """Return whether the expression stands in the function that asks: ``here``."""
        if isinstance(node, cst.Name):
            return self._name(node, here)
        if isinstance(node, cst.Subscript):
            found = self.expression(node.value, here) if _selects_rows(self.module, node) else None
            return replace(found, reshaped=True) if found is not None else None
        operation = operations_of(self.module).of(node)
        if operation is not None:
            if operation.name in ("softmax", "log_softmax", "sigmoid") and not operation.in_place:
                return Ending(operation.name, node, operation if here else None)
            if operation.name not in RESHAPES:
                return None
            found = self.expression(operation.operands[0], here)
            return replace(found, reshaped=True) if found is not None else None
        return self._called(node, None) if isinstance(node, cst.Call) else None

    def _name(self, name: cst.Name, here: bool) -> Ending | None:
        bindings = self.module.bindings(name)
        endings = [self._binding(binding, here) for binding in bindings]
        found = _agreed(endings)
        if found is None:
            return None
        if len(bindings) > 1:
            return Ending(found.name, found.node)
        return replace(found, read=name, behind=found)

    def _binding(self, binding: Binding, here: bool) -> Ending | None:
        if binding.kind is BindingKind.PARAMETER:
            return self._parameter(binding)
        if binding.kind not in (BindingKind.ASSIGN, BindingKind.WALRUS) or binding.value is None:
            return None
        if not binding.path:
            return self.expression(binding.value, here)
        if len(binding.path) == 1 and isinstance(binding.value, cst.Call) and binding.path[0] is not None:
            return self._called(binding.value, binding.path[0])
        return None

    def _parameter(self, binding: Binding) -> Ending | None:
        """Return what the callers in the file give for a parameter."""
        function = binding.scope.node
        if not isinstance(function, cst.FunctionDef):
            return None
        found = []
        for call in self.module.callers(function):
            argument = self.module.argument(call, binding.name, function)
            if argument.node is None:
                return None
            found.append(self.expression(argument.node, False))
        return _away(_agreed(found))

    def _called(self, call: cst.Call, index: int | None) -> Ending | None:
        """Return what the output, or one part of it, of a model or function of the file ends in."""
        functions = self.module.callees(call)
        if functions and all(isinstance(each, cst.FunctionDef) for each in functions):
            found: list[Ending | None] = []
            for each in functions:
                assert isinstance(each, cst.FunctionDef)
                returned = self._returned(each, index)
                found += [None] if returned is None else [self.expression(node, False) for node in returned]
            return _away(_agreed(found))
        if index is not None or self.module.qualified(call.func) is not None:
            return None
        return _away(self._last_layer(call.func))

    def _returned(self, function: cst.FunctionDef, index: int | None) -> list[cst.BaseExpression] | None:
        found = []
        for node in self.module.tree.nodes(cst.Return):
            if self.module.function(node) is not function:
                continue
            value: cst.BaseExpression | None = node.value
            if index is not None:
                if not isinstance(value, cst.Tuple) or not -1 < index < len(value.elements):
                    return None
                value = value.elements[index].value
            if value is None:
                return None
            found.append(value)
        return found or None

    @solved(None)
    def _last_layer(self, layer: cst.BaseExpression) -> Ending | None:
        """Return what the output of a layer ends in."""
        found: list[Ending | None] = []
        for maker in sorted(makers(self.module, layer), key=self._place):
            module = self.module.home(maker) if maker is not None else self.module
            name = called(module, maker)
            if maker is not None and name in _LAST_LAYERS:
                found.append(Ending(_LAST_LAYERS[name], maker))
            else:
                last = last_in(module, maker) if maker is not None and name == SEQUENTIAL else None
                found.append(self._last_layer(last) if last is not None else None)
        return _agreed(found)

    def _place(self, maker: cst.Call | None) -> int:
        return self.module.tree.order[maker] if maker is not None else -1


def _away(ending: Ending | None) -> Ending | None:
    """Return the ending as seen from another function, which cannot take it out."""
    return Ending(ending.name, ending.node) if ending is not None else None


def _agreed(endings: Iterable[Ending | None]) -> Ending | None:
    """Return the one answer, if all say the same."""
    found = list(endings)
    if not found or any(e is None or e.name != (found[0].name if found[0] else None) for e in found):
        return None
    return found[0]
