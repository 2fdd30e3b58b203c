"""Losses of several batches whose gradients are added up, and what divides them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.lexicon import Role, has, names_criterion, names_loss
from torchlint.semantics.microbatches import Accumulation, accumulations
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import returns
from torchlint.semantics.spellings import is_none, last_name, positional
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What a loss is scaled by for other reasons than its weight.
_DIVISORS = (
    *(Role.ACCUMULATION, Role.RATIO, Role.CLIPPING, Role.STEP, Role.ITERATION, Role.BATCH, Role.COUNT),
)
# What is counted in steps is divided by their number for other reasons.
_COUNTS = (*(Role.LENGTH, Role.ITERATION, Role.NUMBER, Role.COUNT, Role.EPOCH, Role.MAGNITUDE, Role.LOADER),)
# What tells an engine to divide losses.
_ACCUMULATING = frozenset(
    {"gradient_accumulation_steps", "gradient_accumulation_plugin", "deepspeed_plugin", "megatron_lm_plugin"}
    | {"deepspeed_plugins", "fsdp_plugin", "dataloader_config", "project_config", "parallelism_config"}
)
_DIVIDING = frozenset({"div", "div_", "divide", "divide_", "true_divide", "true_divide_", "mul", "mul_"})
_SUMMING = frozenset({"sum", "nansum", "logsumexp"})
_SAME = frozenset(
    {
        "mean",
        "clone",
        "float",
        "double",
        "half",
        "to",
        "cuda",
        "cpu",
        "squeeze",
        "contiguous",
        "nanmean",
        "view",
    }
)


class _Scale(enum.IntEnum):
    """Whether a loss is divided by a number of batches; the greater of two holds for their sum."""

    UNSEEN = -1  # not known yet, while a circle is gone through
    AVERAGE = 0  # over one batch, and by nothing else
    UNKNOWN = 1
    DIVIDED = 2


def unscaled(module: Module, call: cst.Call) -> Accumulation | None:
    """Return how gradients of several batches are added up and divided by nothing;
    None if that is not proved.
    """
    found = (each for each in accumulations(module, call) if each.counted)
    return next((each for each in found if _Scaling(module, each).is_missing(call)), None)


class _Scaling:
    """By what the losses of an accumulation are divided."""

    def __init__(self, module: Module, accumulation: Accumulation) -> None:
        self.iteration, self.count = accumulation.iteration, accumulation.count
        self.module = module.home(self.iteration.loop)
        self.tree = self.module.tree

    def is_missing(self, call: cst.Call) -> bool:
        """Return whether each loss is the mean of its batch, and nothing divides by the number of batches."""
        loss = self._loss(call)
        if loss is None or self._divided_elsewhere(self.count) or self._handles_gradients():
            return False
        return self._scale(loss, self.count) is _Scale.AVERAGE

    def _loss(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return the loss of ``loss.backward()``; None for engines that divide it themselves."""
        if not isinstance(call.func, cst.Attribute) or self.module.qualified(call.func) is not None:
            return None
        owner = call.func.value
        given = positional(call)
        if self.module.value(owner).kind is Kind.ACCELERATOR:
            return given[0] if given and not self._divides(owner) else None
        if given:
            return None
        return owner if self.module.value(owner).kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.BATCH) else None

    def _divides(self, engine: cst.BaseExpression) -> bool:
        """Return whether an engine may divide the loss:
        one of accelerate does as it was told when it was made.
        """
        value = self.module.value(engine)
        if (value.cls or "").endswith("Fabric"):
            return False
        made = value.origin
        if not isinstance(made, cst.Call) or any(argument.star for argument in made.args):
            return True
        return any(
            argument.keyword is None or argument.keyword.value in _ACCUMULATING for argument in made.args
        )

    def _divided_elsewhere(self, count: cst.BaseExpression) -> bool:
        """Return whether anything is divided by the number of batches: a rate, the loss of a helper.

        That is in the file of the loop, or in that of a function that the iteration calls.
        """
        name = last_name(count)
        if name is None:
            return False
        files = dict.fromkeys([self.module, *map(self.module.home, self.iteration.functions)])
        trees = [each.tree for each in files]
        divisions = [
            (node.left, node.right)
            for tree in trees
            for node in tree.nodes(cst.BinaryOperation)
            if isinstance(node.operator, cst.Divide)
        ]
        divisions += [
            (node.target, node.value)
            for tree in trees
            for node in tree.nodes(cst.AugAssign)
            if isinstance(node.operator, cst.DivideAssign)
        ]
        return any(
            name in self.tree.names_in(divisor)
            and not self._is_count(dividend)
            and not self._is_reported(dividend)
            for dividend, divisor in divisions
        )

    def _is_count(self, dividend: cst.BaseExpression) -> bool:
        """Return whether what is divided counts batches or samples, and is no loss."""
        if self.module.value(dividend).kind is Kind.NUMBER:
            return True
        words = self.tree.names_in(dividend)
        return not any(map(names_loss, words)) and any(has(word, *_COUNTS) for word in words)

    def _is_reported(self, dividend: cst.BaseExpression) -> bool:
        """Return whether what is divided is for a report, and not for the backward pass."""
        calls = [node for node in self.tree.descendants(dividend) if isinstance(node, cst.Call)]
        return any(
            (isinstance(call.func, cst.Attribute) and call.func.attr.value in ("item", "detach"))
            or self.module.qualified(call.func) == "builtins.float"
            for call in calls
        )

    def _handles_gradients(self) -> bool:
        """Return whether the iteration changes gradients by hand, so that it may divide them."""
        for holder in (self.iteration.loop, *self.iteration.functions):
            for node in self.tree.descendants(holder):
                if isinstance(node, cst.Attribute) and node.attr.value == "grad":
                    if not isinstance(self.tree.parent(node), (cst.Comparison, cst.AssignTarget)):
                        return True
        return False

    @solved(_Scale.UNSEEN)
    def _scale(self, node: cst.BaseExpression, count: cst.BaseExpression) -> _Scale:
        """Return by what an expression is divided, as far as the file shows how it is computed."""
        match node:
            case cst.Name():
                return self._scale_of_name(node, count)
            case cst.BinaryOperation():
                return self._scale_of_operation(node, count)
            case cst.UnaryOperation():
                return self._scale(node.expression, count)
            case cst.IfExp():
                return max(self._scale(node.body, count), self._scale(node.orelse, count))
            case cst.Call():
                return self._scale_of_call(node, count)
            case cst.Attribute(attr=cst.Name("loss"), value=output) | cst.Subscript(value=output):
                # What a model computes beside its outputs.
                return self._scale(output, count)
            case _:
                return _Scale.UNKNOWN

    def _scale_of_name(self, name: cst.Name, count: cst.BaseExpression) -> _Scale:
        # ``loss = None`` is for calls without targets, of which no loss is backpropagated.
        bindings = [each for each in self.module.bindings(name) if not is_none(each.value)]
        found = [_Scale.UNKNOWN] if not bindings else []
        for binding in bindings:
            if binding.value is None or binding.kind not in (
                BindingKind.ASSIGN,
                BindingKind.AUGMENT,
                BindingKind.WITH,
            ):
                return _Scale.UNKNOWN
            statement = self.tree.parent(binding.node)
            if isinstance(statement, cst.AugAssign):
                if not isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign)):
                    return _Scale.DIVIDED
                # ``loss += penalty``
                scope = binding.scope.bindings.get(binding.name, ())
                earlier = [b.value for b in scope if b.kind is BindingKind.ASSIGN and b.value is not None]
                found += [self._scale(value, count) for value in earlier]
                continue
            parts = self._parts(binding)
            found += [self._scale(part, count) for part in parts] or [_Scale.UNKNOWN]
        return max(found)

    def _parts(self, binding: Binding) -> list[cst.BaseExpression]:
        """Return the expressions that a name stands for, if it is one of several that are unpacked."""
        assert binding.value is not None
        match binding.value, binding.path:
            case value, ():
                return [value]
            case cst.Tuple(elements=elements), (int(index),) if index < len(elements):
                return [elements[index].value]
            case cst.Call() as call, (int(index),):
                callee = self.module.callee(call)
                if callee is None:
                    # What a model computes beside its outputs comes first.
                    return [call] if index == 0 and self.module.value(call.func).kind is Kind.MODULE else []
                returned = returns(self.module, callee)
                found = [r.elements[index].value for r in returned if _has(r, index)]
                return found if len(found) == len(returned) else []
            case _:
                return []

    def _scale_of_operation(self, node: cst.BinaryOperation, count: cst.BaseExpression) -> _Scale:
        left, right = node.left, node.right
        if isinstance(node.operator, (cst.Add, cst.Subtract)):
            sides = [side for side in (left, right) if self.module.value(side).kind is not Kind.NUMBER]
            # Terms of other files add to a loss; what is divided is divided as a whole, mostly.
            scales = [scale for side in sides if (scale := self._scale(side, count)) is not _Scale.UNSEEN]
            return _Scale.DIVIDED if _Scale.DIVIDED in scales else min(scales, default=_Scale.UNKNOWN)
        if isinstance(node.operator, cst.Multiply):
            if self._is_weight(left, count):
                return self._scale(right, count)
            return self._scale(left, count) if self._is_weight(right, count) else _Scale.DIVIDED
        if isinstance(node.operator, cst.Divide) and self._is_weight(right, count):
            return self._scale(left, count)
        return _Scale.DIVIDED

    def _is_weight(self, node: cst.BaseExpression, count: cst.BaseExpression) -> bool:
        """Return whether a factor weighs one loss against others:
        a number that is not that of the batches.
        """
        constant = self.module.value(node).constant
        number = self.module.value(count).constant
        if isinstance(constant, (int, float)):
            if number is MISSING:
                return isinstance(node, (cst.Integer, cst.Float))
            return isinstance(number, int) and constant not in (number, 1 / number)
        word = last_name(node)
        return (
            isinstance(node, (cst.Name, cst.Attribute))
            and has(word, Role.FACTOR)
            and not has(word, *_DIVISORS)
        )

    def _scale_of_call(self, call: cst.Call, count: cst.BaseExpression) -> _Scale:
        dotted = self.module.qualified(call.func)
        name = last_name(call.func)
        if dotted is not None:
            return self._reduced(call) if dotted in FUNCTIONAL_LOSSES else _Scale.UNKNOWN
        value = self.module.value(call.func)
        callee = self.module.callee(call)
        if value.kind is Kind.MODULE:
            if value.cls in NN_LOSSES:
                made = value.origin
                return self._reduced(made) if isinstance(made, cst.Call) else _Scale.UNKNOWN
            if callee is None:
                return _Scale.AVERAGE
        if callee is not None:
            scales = (self._scale(returned, count) for returned in returns(self.module, callee))
            return max(scales, default=_Scale.UNKNOWN)
        if isinstance(call.func, cst.Attribute):
            owner = call.func.value
            if name in _DIVIDING:
                return _Scale.DIVIDED
            if name in _SUMMING:
                return _Scale.UNKNOWN
            if name == "scale" and call.args and "scaler" in (last_name(owner) or "scaler"):
                return self._scale(call.args[0].value, count)
            if name == "scale_loss" and call.args:
                return self._scale(call.args[0].value, count)
            if name in _SAME:
                inner = self._scale(owner, count)
                return _Scale.AVERAGE if name == "mean" and inner is _Scale.UNKNOWN else inner
        return _Scale.AVERAGE if names_criterion(name) else _Scale.UNKNOWN

    def _reduced(self, call: cst.Call) -> _Scale:
        """Return how a loss of torch is reduced, by the call that computes it or makes the module for it."""
        reduction = self.module.argument(call, "reduction")
        old = [self.module.argument(call, word) for word in ("size_average", "reduce")]
        if any(argument.given or argument.unknown for argument in old):
            return _Scale.UNKNOWN
        if reduction.absent or reduction.constant == "mean":
            return _Scale.AVERAGE
        return _Scale.UNKNOWN


def _has(value: cst.BaseExpression | None, index: int) -> TypeGuard[cst.Tuple]:
    return isinstance(value, cst.Tuple) and index < len(value.elements)
