"""Loops that change parameters, or their gradients, one after the other: what they do to each of them.

A loop counts if it goes over parameters (``model.parameters()``, two of them zipped, a state dict, the
``params`` of a group) and all of its body is such changes, guards around them and names for what they need.
What else a loop does, a message, a collective operation, a call of something unknown, disqualifies it: then
it is no loop that one call could stand for.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.compilation import compiled
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import is_none, last_name, positional
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Calls around collections of parameters that hand on their elements.
_SAME = frozenset(
    {"zip", "list", "tuple", "dict", "enumerate", "filter", "reversed", "chain", "sorted", "tqdm"}
)
_SOURCES = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})
# What leaves the tensor that it is asked for as it is.
_VIEWS = frozenset({"data", "detach", "clone", "to", "cpu", "cuda", "float", "double", "half", "type_as"})
# What is asked of a tensor without a look at its numbers.
_ASKED = frozenset({"device", "dtype", "shape", "ndim", "requires_grad", "is_cuda"})
_SCALING = frozenset({"mul_", "div_", "multiply_", "divide_"})
_ADDING = frozenset({"add_", "sub_", "subtract_"})
_CLAMPING = frozenset({"clamp_", "clip_", "clamp_min_", "clamp_max_"})
_CLAMPS = frozenset({"clamp", "clip"})
_HARMLESS = frozenset({"zero_", "detach_", "requires_grad_", "contiguous"})
# What a gradient is called in the optimizers of torch.
_GRADIENTS = frozenset({"g", "dp", "d_p"})
# What is said where something is wrong.
_WARNINGS = frozenset({"warn", "warning", "error"})
_NORMS = frozenset({"norm", "vector_norm"})
_FEW_STEPS = 10
"""Target networks that are updated every so many steps are updated all the time."""
_IF: frozenset[type] = frozenset({cst.If})
# Functions of which nobody knows how often they run, but that set something up, going by their names.
_ONCE = (Role.MAKING, Role.LOADING, Role.CLEARING, Role.SYNCHRONIZATION)


class Change(enum.Enum):
    """What a loop does to each parameter."""

    AVERAGE = "this moving average"
    """A share of another tensor is mixed in: ``ema.mul_(d).add_(p, alpha=1 - d)``."""
    STEP = "this gradient step"
    """``p -= lr * p.grad``"""
    CLIP = "this gradient clipping"
    """``p.grad.clamp_(-c, c)``"""
    CLAMP = "this weight clipping"
    """``p.clamp_(-c, c)``"""
    SCALE = "this gradient scaling"
    """``p.grad /= n``"""
    NORM = "this gradient norm"
    """``total += p.grad.norm() ** 2``"""
    COPY = "this parameter copy"
    """``target.copy_(source)``"""


@dataclass(frozen=True, slots=True)
class Effect:
    """One change of one tensor: which, what it is computed from beside itself, and how."""

    change: Change | None
    statement: cst.CSTNode
    target: str
    others: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UpdateLoop:
    """A loop that does nothing but change parameters, and what it mainly does."""

    loop: cst.For
    change: Change
    effects: tuple[Effect, ...]


def update_loop(module: Module, loop: cst.For) -> UpdateLoop | None:
    """Return what a loop does to each parameter; None if it does something else, or to a few tensors only."""
    if loop.orelse is not None or loop.asynchronous is not None or module.classes.of_other_framework:
        return None
    if not over_parameters(module, loop.iter) or _over_arrays(module, loop):
        return None
    owner = module.tree.enclosing(loop, cst.ClassDef)
    if owner is not None and module.classes.info(owner).kind is Kind.OPTIMIZER:
        return None
    effects = _Body(loop, module).effects()
    if effects is None:
        return None
    changes = {effect.change for effect in effects}
    for change in Change:
        if change in changes:
            return UpdateLoop(loop, change, tuple(effects))
    return None


def _over_arrays(module: Module, loop: cst.For) -> bool:
    """Return whether a loop goes over arrays of NumPy, or over a list of some beside others."""
    parts = module.tree.descendants(loop.target)
    return any(isinstance(part, cst.Name) and module.value(part).kind is Kind.NDARRAY for part in parts)


def makes_average(module: Module, made: cst.ListComp | cst.DictComp) -> bool:
    """Return whether a list or dict is made of averages:
    ``[d * a + (1 - d) * p for a, p in zip(ema, params)]``.
    """
    value = made.elt if isinstance(made, cst.ListComp) else made.value
    if not over_parameters(module, made.for_in.iter) or made.for_in.inner_for_in is not None:
        return False
    if places.hot(module, made) is None and not _replaces(module, made):
        return False  # Two models may be merged once.
    return _is_mean(module, value)


def _is_mean(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the shares of two parts add up to one: ``d * a + (1 - d) * b``."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return False
    factors = [_factors(module, side) for side in (node.left, node.right)]
    shares = {
        module.source(factor).replace(" ", "").replace("1.0-", "1-") for pair in factors for factor in pair
    }
    if any(f"1-{share}" in shares or f"(1-{share})" in shares for share in shares):
        return True
    numbers = [[module.value(factor).constant for factor in pair] for pair in factors]
    return any(
        isinstance(one, float) and isinstance(other, float) and math.isclose(one + other, 1)
        for one in numbers[0]
        for other in numbers[1]
    )


def _replaces(module: Module, made: cst.ListComp | cst.DictComp) -> bool:
    """Return whether it is ``self.average = [… for a, p in zip(self.average, parameters)]``."""
    match module.tree.parent(made):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            over: list[cst.CSTNode] = [made.for_in.iter]
            if isinstance(made.for_in.iter, cst.Name):
                over += [b.value for b in module.bindings(made.for_in.iter) if b.value is not None]
            text = module.source(target)
            return any(
                isinstance(part, (cst.Name, cst.Attribute)) and module.source(part) == text
                for node in over
                for part in module.tree.descendants(node)
            )
    return False


def _factors(module: Module, node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    match node:
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            return left, right
    return ()


def runs_every_step(module: Module, loop: cst.CSTNode, change: Change) -> bool:
    """Return whether a loop is part of each step of training.

    An average is taken again and again, and gradients are new after each backward pass: where a function
    that takes an average, or clips or follows gradients, is called from other files, it is called every step.
    """
    if evaluated_only(module, loop) or compiled(module, loop) or _stays_on_host(module):
        return False
    if places.hot(module, loop) is not None:
        return True
    if change is Change.AVERAGE and _runs_every_few_steps(module, loop):
        return True
    if change not in (Change.AVERAGE, Change.STEP, Change.CLIP):
        return False
    return not places.throttled(module, loop) and _called_from_elsewhere(module, loop)


def _runs_every_few_steps(module: Module, loop: cst.CSTNode) -> bool:
    """Return whether steps are counted, and no large number of them, in between:
    ``if step % policy_delay == 0``, here or around the call that leads here.

    Target networks follow by a small share each time, which makes no sense once in a hundred steps.
    """
    seen: set[cst.CSTNode] = set()
    waiting = [loop]
    for current in waiting:
        branches = list(module.flow.branches(current, kinds=_IF))
        counted = [branch for branch in branches if _intervals(module, branch.test)]
        if counted:
            intervals = [interval for branch in counted for interval in _intervals(module, branch.test)]
            seldom = any(isinstance(n, (int, float)) and n > _FEW_STEPS for n in intervals)
            if not seldom and counted[-1] is branches[-1]:
                if places.hot(module, counted[-1].construct) is not None:
                    return True
            continue
        function = module.function(current)
        if isinstance(function, cst.FunctionDef) and function not in seen:
            seen.add(function)
            if not places.throttled(module, current):
                waiting.extend(module.callers(function))
    return False


def _intervals(module: Module, test: cst.BaseExpression) -> list[object]:
    """Return the constants, or what is unknown, by which a condition divides a number."""
    return [
        module.value(part.right).constant
        for part in module.tree.descendants(test)
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Modulo)
    ]


def _stays_on_host(module: Module) -> bool:
    """Return whether the file trains, and nothing in it names an accelerator;
    helpers go where others use them.
    """
    return not accelerated(module) and bool(Backpropagation.of(module).passes)


def _called_from_elsewhere(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a function that nothing in the file calls leads to ``node`` without anything that
    throttles.
    """
    seen: set[cst.CSTNode] = set()
    waiting = [node]
    for current in waiting:
        function = module.function(current)
        if not isinstance(function, cst.FunctionDef) or function in seen:
            continue
        seen.add(function)
        if has(function.name.value, *_ONCE) or _trains_beside(module, function, current):
            continue
        callers = module.callers(function)
        if not callers:
            return True
        waiting.extend(call for call in callers if not places.throttled(module, call))
    return False


def _trains_beside(module: Module, function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Return whether a function has a loop of training of its own,
    and ``node`` stands before or behind that.
    """
    loops = [
        loop
        for backward in Backpropagation.of(module).passes
        if module.function(backward.call) is function
        for loop in module.flow.loops(backward.call)
    ]
    return bool(loops) and not any(module.tree.contains(loop, node) for loop in loops)


# --- what is gone over ------------------------------------------------------------------------------


def over_parameters(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an iterable goes over the parameters, or the state, of a model."""
    return some(_over_parameters(module, node))


@traced(Through.NOTHING)
def _over_parameters(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source]:
    """Return whether an iterable goes over the parameters, or the state, of a model."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(name), value=owner)) if name in _SOURCES:
            return module.value(owner).kind not in (Kind.OPTIMIZER, Kind.SCHEDULER)
        case cst.Call(func=cst.Attribute(attr=cst.Name("items" | "values" | "keys"), value=owner)):
            return onward(owner)
        case cst.Call() if last_name(node.func) in _SAME:
            return onward(*(argument.value for argument in node.args))
        case cst.ListComp() | cst.GeneratorExp():
            return onward(node.for_in.iter)
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(evaluated_value="params")))]
        ):
            return True
        case cst.Name():
            plain = (_given_by(b) for b in module.bindings(node) if b.kind is BindingKind.ASSIGN)
            given = [value for value in plain if value is not None]
            value = module.value(node)
            known = value.elements is not None or value.kind in (Kind.NDARRAY, Kind.LOADER)
            named = ends(node.value, Role.PARAMETERS) and not known and not _are_few(given)
            return value.kind is Kind.PARAMETERS or named or onward(*given)
        case cst.Attribute(attr=cst.Name(name)):
            given = [b.value for b in module.names.attributes.get(name, ()) if b.value is not None]
            return (ends(name, Role.PARAMETERS) and not _are_few(given)) or onward(*given)
        case _:
            return False


def _given_by(binding: Binding) -> cst.BaseExpression | None:
    """Return what an assignment gives a name,
    ``ours, theirs = net.state_dict(), ema.state_dict()`` among others.
    """
    match binding:
        case Binding(path=()):
            return binding.value
        case Binding(path=(int(place),), value=cst.Tuple(elements=elements)) if place < len(elements):
            return elements[place].value
    return None


def _are_few(values: Sequence[cst.BaseExpression]) -> bool:
    """Return whether a collection is written down element by element."""
    return any(isinstance(value, (cst.List, cst.Tuple)) and value.elements for value in values)


# --- what is done to each ---------------------------------------------------------------------------


@dataclass
class _Body:
    """The body of one loop over parameters."""

    loop: cst.For
    module: Module
    tensors: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def effects(self) -> list[Effect] | None:
        """Return the changes of one iteration, in source order;
        None if there is anything else in the body.
        """
        self._bind(self.loop.target, self.loop.iter)
        found: list[Effect] = []
        for effect in self._block(self.loop.body):
            if effect is None:
                return None
            found.append(effect)
        return self._joined(found)

    def _bind(self, target: cst.BaseExpression, iterable: cst.BaseExpression) -> None:
        """Tell the names that stand for tensors from those that stand for their names."""
        match target:
            case cst.Name(name):
                over_keys = last_name(iterable) in ("keys", "state_dict") or self._is_dict(iterable)
                (self.keys if over_keys else self.tensors).add(name)
            case cst.Tuple(elements=elements):
                parts = [element.value for element in elements]
                given = positional(iterable) if _is_zip(iterable) else []
                if len(given) == len(parts):
                    for part, value in zip(parts, given, strict=True):
                        self._bind(part, value)
                    return
                if last_name(iterable) == "enumerate" and isinstance(iterable, cst.Call) and iterable.args:
                    self._bind(parts[-1], iterable.args[0].value)
                    return
                for index, part in enumerate(parts):
                    names = self.module.tree.names_in(part)
                    (self.keys if index == 0 and len(parts) > 1 else self.tensors).update(names)
            case _:
                pass

    def _is_dict(self, iterable: cst.BaseExpression) -> bool:
        """Return whether it is ``for key in state:`` over a dict that has a name."""
        if self.module.value(iterable).kind is Kind.DICT:
            return True
        made = map(_given_by, self.module.bindings(iterable))
        return any(isinstance(v, cst.Call) and last_name(v.func) in ("state_dict", "dict") for v in made)

    # ------------------------------------------------------------------ statements

    def _block(self, block: cst.BaseSuite) -> Iterator[Effect | None]:
        for statement in block.body:
            match statement:
                case cst.SimpleStatementLine():
                    for small in statement.body:
                        yield from self._small(small)
                case cst.If():
                    yield from self._if(statement)
                case cst.With():
                    yield from self._block(statement.body)
                case cst.BaseSmallStatement():
                    yield from self._small(statement)
                case _:
                    yield None

    def _if(self, statement: cst.If) -> Iterator[Effect | None]:
        yield from self._block(statement.body)
        if isinstance(statement.orelse, cst.If):
            yield from self._if(statement.orelse)
        elif statement.orelse is not None:
            yield from self._block(statement.orelse.body)

    def _small(self, statement: cst.BaseSmallStatement) -> Iterator[Effect | None]:
        match statement:
            case (
                cst.Continue() | cst.Pass() | cst.Assert() | cst.Raise() | cst.Expr(value=cst.SimpleString())
            ):
                pass
            case cst.Expr(value=cst.Call(func=func)) if last_name(func) in _WARNINGS:
                pass
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("append")), args=[argument])):
                yield self._collected(statement, argument.value)
            case cst.Expr(value=cst.Call() as call):
                yield from self._call(call)
            case cst.AugAssign():
                yield self._augmented(statement)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                yield from self._assigned(statement, target, statement.value)
            case _:
                yield None

    def _call(self, call: cst.Call) -> Iterator[Effect | None]:
        """Yield ``t.mul_(d).add_(s, alpha=1 - d)``: each method of the chain, from the left."""
        chain: list[tuple[str, cst.Call]] = []
        owner: cst.BaseExpression = call
        while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
            name = owner.func.attr.value
            if not name.endswith("_"):
                break
            chain.insert(0, (name, owner))
            owner = owner.func.value
        target = self._tensor(owner)
        if target is None or not chain:
            yield self._written_out(call)
            return
        for name, link in chain:
            yield self._method(name, link, target)

    def _written_out(self, call: cst.Call) -> Effect | None:
        """Return the effect of ``torch.add(t, s, alpha=b, out=t)``."""
        out = next((a.value for a in call.args if a.keyword is not None and a.keyword.value == "out"), None)
        target = self._tensor(out) if out is not None else None
        name = (self.module.qualified(call.func) or "").removeprefix("torch.")
        given = [argument.value for argument in call.args if argument.value is not out]
        if target is None or not given or self._tensor(given[0]) != target:
            return None
        others = self._others(given, target)
        if name == "lerp" and others:
            return Effect(Change.AVERAGE, call, target, others)
        if name == "add" and others:
            return self._added(call, target, others, given[1:])
        return Effect(Change.SCALE, call, target) if name in ("mul", "div") and not others else None

    def _method(self, name: str, call: cst.Call, target: str) -> Effect | None:
        given = [argument.value for argument in call.args]
        others = self._others(given, target)
        if name in _HARMLESS:
            return Effect(None, call, target)
        if name in _CLAMPING:
            return Effect(Change.CLIP if _is_gradient(target) else Change.CLAMP, call, target)
        if name in _SCALING and not others:
            return Effect(Change.SCALE, call, target)
        if name == "lerp_" and others:
            return Effect(Change.AVERAGE, call, target, others)
        if name in _ADDING:
            return self._added(call, target, others, given)
        if name == "copy_" and len(given) >= 1:
            return self._set(call, target, given[0], copies=True)
        return None

    def _follows(self, target: str, others: frozenset[str]) -> bool:
        """Return whether what is added to a tensor is its gradient, and not that of another,
        which is collected.
        """
        named = (other for other in others if "." not in other)
        return f"{target}.grad" in others or any(map(_is_gradient, named))

    def _augmented(self, statement: cst.AugAssign) -> Effect | None:
        target = self._tensor(statement.target)
        if target is None:
            return self._summed(statement)
        others = self._others([statement.value], target)
        match statement.operator:
            case cst.MultiplyAssign() | cst.DivideAssign():
                return None if others else Effect(Change.SCALE, statement, target)
            case cst.AddAssign() | cst.SubtractAssign():
                return self._added(statement, target, others, [statement.value])
            case _:
                return None

    def _summed(self, statement: cst.AugAssign) -> Effect | None:
        """Return the effect of ``total += p.grad.norm() ** 2``."""
        if not isinstance(statement.target, cst.Name) or not isinstance(statement.operator, cst.AddAssign):
            return None
        return self._collected(statement, statement.value)

    def _collected(self, statement: cst.CSTNode, value: cst.BaseExpression) -> Effect | None:
        """Return a sum or list of what is computed of each gradient, if that is its norm;
        a list of averages.
        """
        if isinstance(statement, cst.Expr) and (effect := self._averaged(statement, value)) is not None:
            return effect
        gradients = {other for other in self._others([value], "") if _is_gradient(other)}
        normed = any(
            isinstance(node, cst.Call) and last_name(node.func) in _NORMS
            for part in self._parts(value)
            for node in self.module.tree.descendants(part)
        )
        return Effect(Change.NORM, statement, "") if gradients and normed else None

    def _averaged(self, statement: cst.CSTNode, value: cst.BaseExpression) -> Effect | None:
        """Return an average that is put into a new list or dict at every step;
        two models may be merged once.
        """
        value = self._expanded(value)
        others = self._others([value], "")
        mean = len(others) > 1 and _is_mean(self.module, value) and places.hot(self.module, self.loop)
        return Effect(Change.AVERAGE, statement, "", others) if mean else None

    def _added(
        self, node: cst.CSTNode, target: str, others: frozenset[str], given: Sequence[cst.BaseExpression]
    ) -> Effect | None:
        """Return a sum: of a gradient, of the difference to another tensor,
        or of a part of another tensor.
        """
        if _is_gradient(target) or not others or self._is_random(given):
            return None
        if self._follows(target, others):
            return Effect(Change.STEP, node, target, others)
        mixed = target in {text for value in given for text in self._mentioned(value)}
        return Effect(Change.AVERAGE if mixed else None, node, target, others)

    def _assigned(
        self, statement: cst.Assign, target: cst.BaseExpression, value: cst.BaseExpression
    ) -> Iterator[Effect | None]:
        match target:
            case cst.Name(name) if name in self.keys or self._tensor(target) not in (
                None,
                self._tensor(value),
            ):
                # Another spelling of the key; of a tensor, another tensor under the same name.
                if name not in self.keys:
                    yield None
            case cst.Name(name):
                if self._tensor(target) is None:
                    yield from self._named([(target, value)])
            case cst.Tuple() if isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements):
                pairs = zip(target.elements, value.elements, strict=True)
                named = [(t.value, v.value) for t, v in pairs if isinstance(t.value, cst.Name)]
                yield from self._named(named)
            case cst.Attribute(attr=cst.Name("data" | "grad")) | cst.Subscript():
                tensor = self._tensor(target)
                if is_none(value):
                    yield Effect(None, statement, tensor or "")
                else:
                    yield self._set(statement, tensor, value, copies=False) if tensor is not None else None
            case _:
                yield None

    def _named(self, named: Sequence[tuple[cst.Name, cst.BaseExpression]]) -> Iterator[Effect | None]:
        """Yield a name for something that is computed from the parameters,
        without anything else happening.
        """
        for name, value in named:
            if self._stands_for(name) is not None or name.value in self._names_in(value):
                yield None
                return
            if not all(self._is_plain(node) for node in self.module.tree.descendants(value)):
                yield None

    def _stands_for(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the expression of the body that a name stands for, its first if it is given several.

        All others are views of the same tensor: the body is no update otherwise.
        """
        if not isinstance(node, cst.Name):
            return None
        tree, order = self.module.tree, self.module.tree.order
        for binding in self.module.bindings(node):
            value = _given_by(binding) if binding.kind is BindingKind.ASSIGN else None
            if value is not None and tree.contains(self.loop.body, binding.node):
                if order[binding.node] < order[node] and not tree.contains(value, node):
                    return value
        return None

    def _names_in(self, value: cst.BaseExpression) -> set[str]:
        """Return the names that an expression is made of, however they are called in between."""
        return {
            node.value
            for part in self._parts(value)
            for node in self.module.tree.descendants(part)
            if isinstance(node, cst.Name) and self.module.names.is_read(node)
        }

    def _is_plain(self, node: cst.CSTNode) -> bool:
        """Return whether a call computes tensors or numbers, or looks something up."""
        if not isinstance(node, cst.Call):
            return not isinstance(node, (cst.Await, cst.Yield, cst.Lambda))
        name = last_name(node.func) or ""
        dotted = self.module.qualified(node.func) or ""
        if dotted.startswith("torch."):
            return not dotted.startswith("torch.distributed")
        if self.module.callee(node) is not None:
            return True
        return name in TENSOR_METHODS or name in ("get", "float", "min", "max", "getattr", "clone", "replace")

    def _set(
        self, node: cst.CSTNode, target: str, value: cst.BaseExpression, *, copies: bool
    ) -> Effect | None:
        """Return the effect of ``t.copy_(…)``, ``t.data = …`` and ``shadow[name] = …``."""
        value = self._expanded(value)
        mentioned = self._mentioned(value)
        others = frozenset(mentioned - {target})
        chosen = isinstance(value, cst.Call) and last_name(value.func) == "where"
        if chosen or self._is_random([value]):
            return None
        if target in mentioned:
            if not others:
                return self._clamped(node, target, value)
            if _is_gradient(target):
                return None
            if self._follows(target, others):
                return Effect(Change.STEP, node, target, others)
            return Effect(None if self._adds(value, target) else Change.AVERAGE, node, target, others)
        if copies and self._tensor(value) is not None and not _is_gradient(target):
            return Effect(Change.COPY, node, target, others)
        if copies and others:
            return None
        if (effect := self._averaged(node, value)) is not None:
            return effect
        clones = isinstance(value, cst.Call) and last_name(value.func) == "clone"
        in_place = isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Attribute)
        return Effect(Change.COPY, node, target, others) if clones and in_place and others else None

    def _adds(self, value: cst.BaseExpression, target: str) -> bool:
        """Return whether it is ``t - rate * (a - b)``: the whole of the tensor,
        and something that it has no part in.
        """
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if value.func.attr.value not in _VIEWS:
                return False
            value = value.func.value
        match value:
            case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
                pairs = [(left, right), (right, left)]
            case cst.BinaryOperation(operator=cst.Subtract(), left=left, right=right):
                pairs = [(left, right)]
            case _:
                return False
        return any(self._tensor(one) == target and target not in self._mentioned(two) for one, two in pairs)

    def _clamped(self, node: cst.CSTNode, target: str, value: cst.BaseExpression) -> Effect | None:
        """Return what is set to a function of itself: clamped, or scaled."""
        if isinstance(value, cst.Call) and last_name(value.func) in _CLAMPS:
            return Effect(Change.CLIP if _is_gradient(target) else Change.CLAMP, node, target)
        match value:
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide()) if _is_gradient(target):
                return Effect(Change.SCALE, node, target)
            case _:
                return None

    def _joined(self, effects: list[Effect]) -> list[Effect] | None:
        """Return the changes, with those understood that are only told by several statements together."""
        found: list[Effect] = []
        scaled = {e.target for e in effects if e.change is Change.SCALE}
        for effect in effects:
            change = effect.change
            if change is Change.SCALE and not _is_gradient(effect.target):
                # The weights alone are only scaled by a decay, before a step or an average.
                change = None
            if change is None and effect.others:
                if effect.target not in scaled:
                    return None
                change = Change.AVERAGE
            found.append(Effect(change, effect.statement, effect.target, effect.others))
        return found

    # ------------------------------------------------------------------ expressions

    def _tensor(self, node: cst.BaseExpression) -> str | None:
        """Return the text of the tensor of the iteration that an expression is, its views stripped."""
        suffix = ""
        while True:
            match node:
                case cst.Name(name):
                    named = self._stands_for(node)
                    if named is None:
                        return f"{name}{suffix}" if name in self.tensors else None
                    node = named
                case cst.Attribute(attr=cst.Name("data"), value=inner):
                    node = inner
                case cst.Attribute(attr=cst.Name("grad"), value=inner):
                    node, suffix = inner, f".grad{suffix}"
                case cst.Call(func=cst.Attribute(attr=cst.Name(name), value=inner)) if name in _VIEWS:
                    node = inner
                case cst.Subscript(
                    value=inner, slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=None))]
                ):
                    node = inner
                case cst.Subscript():
                    inside = (n for element in node.slice for n in self.module.tree.descendants(element))
                    keyed = any(isinstance(n, cst.Name) and n.value in self.keys for n in inside)
                    return f"{self.module.source(node)}{suffix}" if keyed else None
                case _:
                    return None

    def _mentioned(self, node: cst.BaseExpression) -> set[str]:
        """Return the tensors of the iteration that an expression is computed from."""
        found: set[str] = set()
        seen: set[cst.BaseExpression] = set()
        waiting: list[cst.CSTNode] = [node]
        while waiting:
            current = waiting.pop()
            if isinstance(current, cst.Attribute) and current.attr.value in _ASKED:
                continue
            if isinstance(current, cst.BaseExpression):
                tensor = self._tensor(current)
                if tensor is not None:
                    found.add(tensor)
                    continue
                named = self._stands_for(current)
                if named is not None:
                    if named not in seen:
                        seen.add(named)
                        waiting.append(named)
                    continue
            if isinstance(current, (cst.Arg, cst.Attribute)):
                waiting.append(current.value)
            else:
                waiting.extend(self.module.tree.parts(current))
        return found

    def _others(self, given: Sequence[cst.BaseExpression], target: str) -> frozenset[str]:
        return frozenset(text for value in given for text in self._mentioned(value)) - {target}

    def _expanded(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Return what a name of the body stands for."""
        while (named := self._stands_for(node)) is not None:
            node = named
        return node

    def _parts(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield an expression, and what the names in it stand for."""
        found = {node: None}
        waiting = [node]
        while waiting:
            part = waiting.pop()
            yield part
            named = map(self._stands_for, self.module.tree.descendants(part))
            new = dict.fromkeys(one for one in named if one is not None and one not in found)
            found.update(new)
            waiting += new

    def _is_random(self, given: Sequence[cst.BaseExpression]) -> bool:
        return any(
            isinstance(node, cst.Name) and has(node.value, Role.RANDOMNESS)
            for value in given
            for part in self._parts(value)
            for node in self.module.tree.descendants(part)
        )


def _is_zip(node: cst.BaseExpression) -> TypeGuard[cst.Call]:
    return isinstance(node, cst.Call) and last_name(node.func) == "zip"


def _is_gradient(text: str) -> bool:
    return text in _GRADIENTS or ends(text, Role.GRADIENT)
