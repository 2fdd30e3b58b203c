"""Which layers and functions take what a layer computes.

A *layer* is what a constructor call such as ``nn.Conv2d(...)`` makes. It is followed from there
(`torchlint.semantics.sinks`) to every place where it is applied, and to what stands behind it in the
sequences that it is put into; the *result* of an application is followed to whatever takes it next. Each such
taker is a ``Consumer``. A use that cannot be followed is a consumer without a name, so that a question such
as "does everything behind this convolution normalise it" is never answered on half of the evidence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes, may_be_same, pattern_of
from torchlint.semantics.layers import MODULE_LIST, RETURNS_SELF, SEQUENTIAL, WRAPPERS
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.syntax import alike

from ..layerorder import (
    FILLING_METHODS,
    LISTS,
    Firsts,
    Gap,
    behind,
    called,
    filling_of,
    first_in,
    first_of,
    is_list,
    made,
    makers,
    own_filling,
    owner_of,
)
from ..sequences import Step, argument_steps, literal_steps
from .biases import Biases

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

    from ..sequences import Filling


@dataclass(frozen=True, slots=True)
class Consumer:
    """What takes the result of a layer or of a call.

    ``name`` is the dotted name of the class of the layer, or of the function, and ``call`` the call that
    makes the layer or is the function's; both None where the taker is something else or out of sight.
    """

    name: str | None
    call: cst.Call | None


@dataclass(frozen=True, slots=True)
class _End:
    """The layer is the last one of a sequence: what the sequence computes is what it computes."""

    sequence: cst.Call


@dataclass(frozen=True, slots=True)
class _Member:
    """The layer is put into a container, at this place if that is known, from which it may be read."""

    node: cst.BaseExpression
    container: cst.Call
    index: int | None


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop applies one element after the other by this call: ``for layer in layers: x = layer(x)``."""

    call: cst.Call


_Fact: TypeAlias = Consumer | _End | _Member | _Loop

_SOMETHING = Consumer(None, None)

# What is asked of a tensor without using its elements.
_METADATA = frozenset(
    {"shape", "size", "dim", "ndim", "device", "dtype", "is_cuda", "requires_grad", "numel", "stride"}
    | {"is_contiguous", "layout"}
)
# Attributes and methods of a layer whose use has nothing to do with what it computes.
_PLAIN = frozenset(
    {"weight", "in_channels", "out_channels", "in_features", "out_features", "kernel_size", "stride"}
    | {"padding", "dilation", "groups", "padding_mode", "training", "register_forward_pre_hook"}
    | {"extra_repr", "__class__"}
)
_HARMLESS_METHODS = (
    _PLAIN
    | FILLING_METHODS
    | {"modules", "children", "named_modules", "named_children", "parameters", "named_parameters"}
    | {"state_dict", "zero_grad"}
)
_HARMLESS_FUNCTIONS = frozenset(
    f"builtins.{name}" for name in ("print", "isinstance", "type", "id", "repr", "len")
)
_ITERATING = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "reversed", "list", "tuple"))
_FORWARD = frozenset({"forward", "__call__"})
_INPUT_KEYWORDS = frozenset({"input", "x", "inputs", "X"})


def after_layer(module: Module, layer: cst.Call) -> list[Consumer]:
    """Return all that takes what the layer made by a call computes, in the order of `_in_order`."""
    found: set[Consumer] = set()
    start: _Fact = _End(layer)
    goals, seen = deque([start]), {start}
    while goals:
        for fact in _facts(module, goals.popleft()):
            if isinstance(fact, Consumer):
                found.add(fact)
            elif fact not in seen:
                seen.add(fact)
                goals.append(fact)
    return _in_order(module, found)


def after_result(module: Module, call: cst.Call) -> list[Consumer]:
    """Return all that takes the result of a call, a function applied to tensors,
    in the order of `_in_order`.
    """
    return _in_order(module, verdicts(module, call, _takes_result) or (_SOMETHING,))


def _in_order(module: Module, consumers: Iterable[Consumer]) -> list[Consumer]:
    """Return consumers by where they stand, the same wherever in the file the definitions are."""
    return sorted(consumers, key=lambda one: ((), -1) if one.call is None else module.tree.standing(one.call))


def _facts(module: Module, goal: _Fact) -> Iterable[_Fact]:
    """Return what is found from a layer, or a sequence that ends with it,
    or from the container that it is in.
    """
    match goal:
        case _End(sequence):
            # A layer that is never applied in this file may be applied by another one.
            return verdicts(module, sequence, _takes_layer) or (_SOMETHING,)
        case _Member(node, container, index):
            found: list[_Fact] = []
            ordered = called(module, container) == SEQUENTIAL
            read: frozenset[_Fact] = verdicts(module, Standing(container, (index,)), _takes_layer)
            for fact in read:
                if not isinstance(fact, _Loop):
                    found.append(fact)
                elif not ordered:
                    found += _after_loop(module, node, container, fact)
            return found if found or ordered else (_SOMETHING,)
    return ()


# --- layers -------------------------------------------------------------------------------------------------


def _takes_layer(module: Module, use: Use) -> Verdict[_Fact]:
    """Return what takes the result of a layer by a use of it, or of a container that has it somewhere."""
    if use.path:
        return _of_container(module, use)
    attributes = SelfAttributes.of(module)
    match use.kind:
        case UseKind.CALLED:
            return _after_call(module, use.by)
        case UseKind.METHOD | UseKind.ATTRIBUTE | UseKind.SET if use.name:
            return _of_attribute(module, use)
        case UseKind.ASSIGNED | UseKind.STORED if isinstance(use.by, (cst.Name, cst.Attribute)) and is_list(
            module, use.node
        ):
            return _put_into(module, use.node, use.by, many=True)
        case UseKind.ASSIGNED | UseKind.AUGMENTED:
            return ONWARD
        case UseKind.STORED if isinstance(use.by, cst.Attribute):
            owner = attributes.self_class(use.by)
            if owner is None:
                return _SOMETHING
            reads = _reads(module, use.by, use.by.attr.value)
            if _is_sequence(module, owner):
                return (*reads, *_filled_in(module, own_filling(module, use.by), use.node, None))
            return reads
        case UseKind.STORED if isinstance(use.by, cst.Subscript):
            return _put_into(module, use.node, use.by.value)
        case UseKind.AUGMENTS if isinstance(use.by, cst.AugAssign):
            assert isinstance(use.by.target, cst.BaseExpression)
            return _put_into(module, use.node, use.by.target, many=True)
        case UseKind.ARGUMENT:
            return _given(module, use)
        case UseKind.ELEMENT:
            return _in_display(module, use)
        case UseKind.OPERAND if isinstance(use.by, cst.BinaryOperation):
            return _joined(module, use.node, use.by)
        case UseKind.RETURNED:
            return _to_callers(module, use)
        case UseKind.COMPARED | UseKind.DISCARDED | UseKind.TESTED | UseKind.ITERATED | UseKind.ITEM:
            return ()
        case UseKind.SET:
            return ()
    return _SOMETHING


def _of_container(module: Module, use: Use) -> Verdict[_Fact]:
    """Return what takes the result of an element by a use of its container."""
    attributes = SelfAttributes.of(module)
    name = attributes.registered_name(use.argument) if use.kind is UseKind.ARGUMENT else None
    if name is not None:
        return _reads(module, use.part, name, use.path)
    match use.kind:
        case UseKind.ASSIGNED | UseKind.AUGMENTED | UseKind.ITEM:
            return ONWARD
        case UseKind.ITERATED:
            applied = _applied_in_order(use.by)
            return _Loop(applied) if applied is not None else ONWARD
        case UseKind.ARGUMENT if called(module, use.call) in _ITERATING:
            return ONWARD
        case UseKind.ARGUMENT if called(module, use.call) == "builtins.len":
            return ()
        case UseKind.METHOD if use.name in RETURNS_SELF:
            return ONWARD
        case UseKind.METHOD | UseKind.ATTRIBUTE if use.name in FILLING_METHODS:
            return ()
        case UseKind.STORED if (
            isinstance(use.by, cst.Attribute) and attributes.self_class(use.by) is not None
        ):
            return _reads(module, use.by, use.by.attr.value, use.path)
        case UseKind.CALLED if isinstance(use.node, cst.Subscript):
            return _after_call(module, use.by)
        case UseKind.COMPARED | UseKind.AUGMENTS | UseKind.DISCARDED | UseKind.TESTED | UseKind.SET:
            return ()
        case UseKind.RETURNED if module.callers(module.function(use.node) or use.node):
            return _to_callers(module, use)
    # What a sequence as a whole computes, it computes in its order.
    return () if module.value(use.node).cls == SEQUENTIAL else _SOMETHING


def _after_call(module: Module, call: cst.CSTNode) -> tuple[Consumer, ...]:
    assert isinstance(call, cst.Call)
    return tuple(verdicts(module, call, _takes_result))


def _of_attribute(module: Module, use: Use) -> Verdict[_Fact]:
    """Return what the use of an attribute of a layer makes of its result."""
    name = use.name
    if name == "forward" and use.kind is UseKind.METHOD:
        return _after_call(module, use.by)
    if name in RETURNS_SELF and use.kind is UseKind.METHOD:
        return ONWARD
    if name in _HARMLESS_METHODS or name in RETURNS_SELF:
        return ()
    guarded = isinstance(use.part, cst.Attribute) and Biases.of(module).bias_guarded(use.part)
    return () if name == "bias" and guarded else _SOMETHING


def _reads(
    module: Module, at: cst.CSTNode, name: str, path: tuple[int | str | None, ...] = ()
) -> tuple[Standing, ...]:
    """Return the places of ``self.<name>``, as set at ``at``;
    ``name`` may have ``*`` for parts made by code.
    """
    attributes = SelfAttributes.of(module)
    owner = attributes.enclosing_class(at)
    if owner is None:
        return ()
    found: list[cst.BaseExpression] = [*attributes.self_reads(owner, name)]
    found += [call for call, wanted in _getattrs(module, owner) if may_be_same(name, wanted)]
    if "*" not in name and not path:
        family = attributes.family(owner)
        for attribute in attributes.foreign_reads(name):
            # ``model.conv.bias`` outside of the class: whose attribute it is cannot be seen.
            above = module.tree.parent(attribute)
            bias = isinstance(above, cst.Attribute) and above.attr.value == "bias"
            if bias or (_taken_apart(attribute, above) and attributes.may_belong(attribute, family)):
                found.append(attribute)
    return tuple(Standing(read, path) for read in found)


def _getattrs(module: Module, owner: cst.ClassDef) -> list[tuple[cst.Call, str]]:
    """Return the calls ``getattr(self, name)`` of a class and its family, with the pattern of the name."""
    attributes = SelfAttributes.of(module)
    family = attributes.family(owner)
    return [
        (call, name) for call, name in _getattr_calls(module) if attributes.enclosing_class(call) in family
    ]


@remembered
def _getattr_calls(module: Module) -> list[tuple[cst.Call, str]]:
    found = []
    for call in module.tree.calls_by_name.get("getattr", ()):
        if isinstance(call.func, cst.Name) and len(call.args) >= 2:
            if SelfAttributes.is_self(call.args[0].value):
                found.append((call, pattern_of(call.args[1].value)))
    return found


def _taken_apart(attribute: cst.Attribute, above: cst.CSTNode | None) -> bool:
    """Return whether code outside of a class applies or watches one of its layers: ``model.conv(x)``."""
    if isinstance(above, cst.Attribute):
        return above.attr.value.startswith("register_")
    return isinstance(above, cst.Call) and above.func is attribute


def _to_callers(module: Module, use: Use) -> Verdict[_Fact]:
    """Return the calls of the function that returns a layer."""
    function = module.function(use.node)
    calls = module.callers(function) if isinstance(function, cst.FunctionDef) else ()
    return tuple(Standing(call, use.path) for call in calls) or _SOMETHING


def _given(module: Module, use: Use) -> Verdict[_Fact]:
    """Return what takes the result of a layer, or of a list that ends with it, that a call is given."""
    attributes = SelfAttributes.of(module)
    call, argument, name = use.call, use.argument, called(module, use.call)
    if name in WRAPPERS:
        return Standing(call) if call.args[0] is argument else _SOMETHING
    if name == SEQUENTIAL or _fills_own_sequence(module, call):
        return _step(module, use)
    if name in _HARMLESS_FUNCTIONS or name in _ITERATING - LISTS:
        return ()
    if name in LISTS:
        return Standing(call)
    registered = attributes.registered_name(argument)
    if registered is not None:
        own = _is_sequence(module, attributes.enclosing_class(call))
        order = _filled_in(module, own_filling(module, call), use.node, None) if own else ()
        return (*_reads(module, argument, registered), *order)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in FILLING_METHODS:
        return _put_into(module, use.node, call.func.value, many=call.func.attr.value == "extend")
    return _SOMETHING


# --- the order of a sequence --------------------------------------------------------------------------------


def _is_sequence(module: Module, definition: cst.ClassDef | None) -> bool:
    """Return whether a class is ``nn.Sequential`` but for its constructor."""
    if definition is None:
        return False
    if SEQUENTIAL not in [module.qualified(base.value) for base in definition.bases]:
        return False
    methods = {
        statement.name.value for statement in definition.body.body if isinstance(statement, cst.FunctionDef)
    }
    return not methods & {"forward", "__call__", "__getitem__", "__iter__"}


def _fills_own_sequence(module: Module, call: cst.Call) -> bool:
    """Return whether the call is ``super().__init__(layers...)`` of a sequence class."""
    match call.func:
        case cst.Attribute(value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__")):
            return _is_sequence(module, SelfAttributes.of(module).enclosing_class(call))
    return False


def _step(module: Module, use: Use) -> tuple[_Fact | Standing, ...]:
    """Return what comes behind an argument of ``nn.Sequential(...)``, and what reads it out of there."""
    call, steps = use.call, argument_steps(use.call.args)
    index = use.call.args.index(use.argument)
    known = not any(step.many for step in steps)
    own = _fills_own_sequence(module, call)
    filling = filling_of(module, owner_of(module, call))
    if filling is not None and filling.broken:
        return (_SOMETHING,)
    consumers, ends = _met(module, first_of(module, steps[index + 1 :]))
    found: list[_Fact] = [*consumers]
    if not own and not use.argument.star:
        found.append(_Member(use.node, call, index if known else None))
    if not ends:
        return tuple(found)
    if own:
        return (*found, *_filled_in(module, own_filling(module, call), call.args[-1].value, None))
    if filling is not None and len(filling.steps) > 1:
        return (*found, *_filled_in(module, filling, call, call))
    return (*found, _End(call))


def _in_display(module: Module, use: Use) -> Verdict[_Fact]:
    """Return what comes behind an element of a list, or a list in another list."""
    display = use.by
    element = module.tree.parent(display)
    if isinstance(display, cst.Tuple) and isinstance(element, cst.Element):
        outer = module.tree.parents[element]
        pairs = literal_steps(outer) if isinstance(outer, cst.BaseExpression) else None
        if any(step.node is use.node for step in pairs or ()):
            display = outer  # ``("name", layer)``
    if not isinstance(display, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.GeneratorExp)):
        return _SOMETHING
    members = _membership(module, use.node, display)
    if members is None or any(called(module, member.container) == MODULE_LIST for member in members):
        return members or _SOMETHING
    if isinstance(display, (cst.ListComp, cst.GeneratorExp)):
        return (*members, *_heads(module, use.node), Standing(display))
    steps = literal_steps(display) or []
    index = next((i for i, step in enumerate(steps) if step.node is use.node), None)
    filling = filling_of(module, _assigned_to(module, display))
    if index is None or (filling is not None and filling.broken):
        return _SOMETHING
    found, ends = _met(module, first_of(module, steps[index + 1 :]))
    return (*members, *found, *((Standing(display),) if ends else ()))


def _joined(module: Module, node: cst.BaseExpression, joined: cst.BinaryOperation) -> Verdict[_Fact]:
    """Return what comes behind a list that is joined with another one."""
    if not isinstance(joined.operator, cst.Add):
        return _SOMETHING
    if joined.left is node:
        found, ends = _met(module, first_of(module, [Step(joined.right, True)]))
        return (*found, *((Standing(joined),) if ends else ()))
    target = _assigned_to(module, joined)
    if target is not None and alike(joined.left, target):
        return _put_into(module, node, target, many=True)
    return Standing(joined)


def _put_into(
    module: Module, node: cst.BaseExpression, owner: cst.BaseExpression, *, many: bool = False
) -> Verdict[_Fact]:
    """Return what comes behind ``node``, which code puts at the end of a list or container.

    ``many``: it is a list itself, of whose elements it is known where they get.
    """
    if SelfAttributes.is_self(owner):
        return _filled_in(module, own_filling(module, owner), node, None)
    members = () if many else _membership(module, node, owner)
    if members is None or any(called(module, member.container) == MODULE_LIST for member in members):
        return members or _SOMETHING
    filling, values = filling_of(module, owner), made(module, owner) or []
    if filling is None:
        return _SOMETHING
    container = values[0] if len(values) == 1 and isinstance(values[0], cst.Call) else None
    return (*members, *_filled_in(module, filling, node, container))


def _filled_in(
    module: Module, filling: Filling, node: cst.CSTNode, container: cst.Call | None
) -> tuple[_Fact | Standing, ...]:
    """Return what comes behind ``node`` in a list that is filled step by step."""
    elements, reads = behind(module, filling, node)
    found: list[_Fact | Standing] = [*_met(module, elements)[0]]
    for read in reads:
        if read is not None:
            found.append(Standing(read))
        else:
            found.append(_End(container) if container is not None else _SOMETHING)
    return tuple(found)


def _met(module: Module, firsts: Firsts) -> tuple[tuple[Consumer, ...], bool]:
    """Return what an input given to what a list begins with meets first, and whether it may meet nothing."""
    found: list[Consumer] = []
    for first in firsts:
        if isinstance(first, cst.BaseExpression):
            found += _heads(module, first)
        elif first is Gap.UNKNOWN:
            found.append(_SOMETHING)
    return tuple(found), Gap.EMPTY in firsts


# --- containers ---------------------------------------------------------------------------------------------


def _membership(
    module: Module, node: cst.BaseExpression, holder: cst.BaseExpression
) -> tuple[_Member, ...] | None:
    """Return the containers that an element of a list gets into; None if they are not known,
    or of two sorts.
    """
    if isinstance(holder, (cst.Name, cst.Attribute)):
        reached = [one for one in _places(module, holder) if not isinstance(one, Standing)]
        standing = [one for one in _places(module, holder) if isinstance(one, Standing)]
    else:
        reached, standing = [], [Standing(holder)]
    found = {*reached, *(fact for one in standing for fact in verdicts(module, one, _becomes))}
    containers = [one for one in found if isinstance(one, cst.Call)]
    if len(containers) < len(found) or len({called(module, one) for one in containers}) > 1:
        return None
    return tuple(_Member(node, container, None) for container in containers)


def _becomes(module: Module, use: Use) -> Verdict[cst.Call | Gap]:
    """Return the container that a list is made into by a use of it."""
    match use.kind:
        case UseKind.ARGUMENT:
            name = called(module, use.call)
            if name in (SEQUENTIAL, MODULE_LIST):
                return use.call
            if name in LISTS:
                return Standing(use.call)
            if name == "builtins.len" or _fills_own_sequence(module, use.call):
                return ()
            match use.call.func:
                case cst.Attribute(value=owner, attr=cst.Name(method)) if method in FILLING_METHODS:
                    return _places(module, owner)
        case UseKind.ELEMENT if isinstance(use.by, (cst.List, cst.Tuple)):
            return Standing(use.by)
        case UseKind.OPERAND if isinstance(use.by, cst.BinaryOperation):
            return Standing(use.by) if isinstance(use.by.operator, cst.Add) else Gap.UNKNOWN
        case UseKind.AUGMENTS if isinstance(use.by, cst.AugAssign):
            assert isinstance(use.by.target, cst.BaseExpression)
            return _places(module, use.by.target)
        case UseKind.STORED if isinstance(use.by, cst.Attribute):
            return _places(module, use.by)
        case UseKind.RETURNED:
            function = module.function(use.node)
            calls = module.callers(function) if isinstance(function, cst.FunctionDef) else ()
            return tuple(Standing(call) for call in calls) or Gap.UNKNOWN
        case UseKind.ASSIGNED | UseKind.AUGMENTED:
            return ONWARD
        case UseKind.METHOD if use.name in FILLING_METHODS:
            return ()
        case UseKind.ITEM:
            asked = module.tree.parent(use.by)
            plain = isinstance(asked, cst.Attribute) and asked.attr.value in _PLAIN
            return () if plain else Gap.UNKNOWN
        case UseKind.SET | UseKind.COMPARED | UseKind.TESTED | UseKind.DISCARDED:
            return ()
    return Gap.UNKNOWN


def _places(module: Module, owner: cst.BaseExpression) -> tuple[Standing | cst.Call | Gap, ...]:
    """Return the containers that a name or attribute stands for, and where lists go that it stands for."""
    if SelfAttributes.is_self(owner):
        return ()
    values = made(module, owner)
    if values is None:
        return (Gap.UNKNOWN,)
    found: list[Standing | cst.Call | Gap] = []
    for value in values:
        if isinstance(value, cst.Call) and called(module, value) in (SEQUENTIAL, MODULE_LIST):
            found.append(value)
    if len(found) == len(values):
        return tuple(found)
    if isinstance(owner, cst.Attribute):
        return (*found, *_reads(module, owner, owner.attr.value))
    assert isinstance(owner, cst.Name)
    binding = module.binding_of(owner)
    bindings = (binding,) if binding is not None else module.bindings(owner)
    return (*found, *map(Standing, bindings))


def _assigned_to(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    match module.tree.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as target), *_]):
            return target
    return None


def _applied_in_order(loop: cst.CSTNode) -> cst.Call | None:
    """Return the call in ``for layer in layers: x = layer(x)``, if that is all that the loop does."""
    match loop:
        case cst.For(
            target=cst.Name(target),
            body=cst.BaseSuite(
                body=[
                    cst.SimpleStatementLine(
                        body=[
                            cst.Assign(
                                targets=[cst.AssignTarget(target=cst.Name(result))],
                                value=cst.Call(
                                    func=cst.Name(layer), args=[cst.Arg(value=cst.Name(given))]
                                ) as call,
                            )
                        ]
                    )
                ]
            ),
        ) if layer == target and result == given:
            return call
    return None


def _after_loop(
    module: Module, node: cst.BaseExpression, container: cst.Call, loop: _Loop
) -> Iterator[_Fact]:
    """Yield what comes behind an element of a ``ModuleList``
    that a loop applies one element after the other.
    """
    match container.args:
        case [cst.Arg(value=cst.List() | cst.Tuple() as display)]:
            steps = literal_steps(display) or []
            index = next((i for i, step in enumerate(steps) if step.node is node), None)
        case _:
            index = None
    if index is None:
        yield _SOMETHING
        return
    found, ends = _met(module, first_of(module, steps[index + 1 :]))
    yield from found
    statement = module.tree.parent(loop.call)
    assert isinstance(statement, cst.Assign)
    binding = module.binding_of(statement.targets[0].target)
    if ends and binding is not None:
        for use in module.uses(binding):
            if use is not loop.call.args[0].value:
                yield from verdicts(module, use, _takes_result)


# --- what a layer starts with -------------------------------------------------------------------------------


@solved(frozenset())
def _heads(module: Module, node: Any) -> frozenset[Consumer]:
    """Return what an input given to a layer meets first, one answer for each layer that it can be."""
    found: set[Consumer] = set()
    for maker in makers(module, node):
        name = called(module, maker)
        if maker is not None and name == SEQUENTIAL:
            found.update(_met(module, first_in(module, maker))[0])
        else:
            known = name is not None and name.startswith("torch.")
            found.add(Consumer(name, maker) if known else _SOMETHING)
    return frozenset(found)


# --- results ------------------------------------------------------------------------------------------------


def _takes_result(module: Module, use: Use) -> Verdict[Consumer]:
    """Return what takes a tensor by a use of it."""
    match use.kind:
        case UseKind.ARGUMENT:
            return _applied(module, use)
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.METHOD if use.name == "contiguous":
            return ONWARD
        case UseKind.METHOD | UseKind.ATTRIBUTE if use.name in _METADATA:
            return ()
        case UseKind.RETURNED:
            function = module.function(use.node)
            helper = isinstance(function, cst.FunctionDef) and function.name.value not in _FORWARD
            calls = module.callers(function) if helper and function is not None else ()
            return tuple(Standing(call) for call in calls) or _SOMETHING
        case UseKind.DISCARDED:
            return ()
        case UseKind.OTHER if isinstance(use.by, cst.Del):
            return ()
    return _SOMETHING


def _applied(module: Module, use: Use) -> Verdict[Consumer]:
    """Return the layer or function that takes a tensor as its argument."""
    call, argument, name = use.call, use.argument, called(module, use.call)
    if name in ("builtins.print", "builtins.len"):
        return ()
    first = call.args[0] is argument and not argument.star
    given = first if argument.keyword is None else argument.keyword.value in _INPUT_KEYWORDS
    if name is not None:
        function_of_torch = name.startswith("torch.nn.functional.") and given
        return Consumer(name, call) if function_of_torch else _SOMETHING
    function = module.callee(call)
    if isinstance(function, cst.FunctionDef) and last_name(call.func) == function.name.value:
        # A helper, and no module whose ``forward`` it is.
        return ONWARD
    return tuple(_heads(module, call.func)) if given else _SOMETHING
