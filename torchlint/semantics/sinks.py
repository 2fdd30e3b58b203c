"""Where a value goes: every use that it reaches, through names, unpacking, containers, calls and returns.

A value stands somewhere: as an expression, under a name, or as a part of a container that stands there. Each
place where it stands has uses, and a *judge* says of each of them either what it means (a fact of its own
kind), or that the value goes on (``ONWARD``). Then the query takes the step: to the reads that a definition
reaches, to the parameter of a function of the file, to the calls of a function that returns it, to where the
attribute or the container is read that it is stored in, or to the result of an operation. What only chooses
or names a value (``x if c else y``, ``(y := x)``, ``a, b = x, y``) is followed without asking. Where the file
does not show how it goes on, the judge is asked about a use that is ``ELSEWHERE``.

Each place is gone to once for each judge, by way of the fixpoint, so that circles need no bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Union

import libcst as cst

from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.values import MOST_ALTERNATIVES, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DEEPEST = 4
"""How many containers in one another a value is followed into."""
_FILLING = {"append": 0, "appendleft": 0, "add": 0, "insert": 1}
"""Methods that put an argument into a container, and the place of that argument."""
_PICKING = frozenset({"get", "pop", "setdefault"})
_INSTANCES = frozenset({Kind.OBJECT, Kind.MODULE, Kind.DATASET, Kind.SAMPLER})
_REORDERING = frozenset(f"builtins.{name}" for name in ("reversed", "sorted", "set", "frozenset"))

Path: TypeAlias = "tuple[int | str | None, ...]"
"""Which part of a container a value is, from outside to inside: an index, a key, or None for any of them."""


class UseKind(IdentityEnum):
    """What a use does with a value; behind it what ``Use.by`` is."""

    ASSIGNED = "y = x"  # the name
    UNPACKED = "y, z = x"  # the tuple or list of targets
    STORED = "y.a = x, y[0] = x"  # the attribute or item
    AUGMENTED = "x += y"  # the statement
    AUGMENTS = "y += x"  # the statement
    SET = "x.a = y, x[0] = y, del x[0], x[0] += y"  # the attribute or item
    ATTRIBUTE = "x.a"  # the attribute
    METHOD = "x.f(…)"  # the call
    CALLED = "x(…)"  # the call
    ARGUMENT = "f(x)"  # the call
    ITEM = "x[0]"  # the subscript
    INDEX = "y[x]"  # the subscript
    ITERATED = "for y in x"  # the loop, or that of a comprehension
    ENTERED = "with x"  # the item
    ELEMENT = "[x]"  # the display or comprehension
    OPERAND = "x + y"  # the operation
    COMPARED = "x < y"  # the comparison
    CHOICE = "x or y"  # the operation
    TESTED = "if x, not x"  # the statement, conditional expression or operation
    FORMATTED = "f'{x}'"  # the part of the string
    RETURNED = "return x"  # the statement or lambda
    YIELDED = "yield x"  # the expression
    AWAITED = "await x"  # the expression
    DISCARDED = "x"  # the statement
    OTHER = "raise x"  # whatever has it as a part
    ELSEWHERE = ""  # as in the use that led out of sight


@dataclass(frozen=True, slots=True)
class Standing:
    """An expression or a definition that evaluates to a value, or to what holds it as the part ``path``."""

    where: cst.BaseExpression | Binding
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Use:
    """What uses a value, or what holds it as the part ``path``, that stands as ``node``.

    ``part`` is the node between the two (the argument, the element, the attribute of a method), if there is
    one, else ``by``.
    """

    kind: UseKind
    node: cst.BaseExpression
    by: cst.CSTNode
    path: Path
    part: cst.CSTNode

    @property
    def name(self) -> str:
        """The name of the attribute or method that is asked for; empty for other uses."""
        return self.part.attr.value if isinstance(self.part, cst.Attribute) else ""

    @property
    def argument(self) -> cst.Arg:
        """The argument of a call that is given the value."""
        assert isinstance(self.part, cst.Arg)
        return self.part

    @property
    def call(self) -> cst.Call:
        """The call of a method or with an argument."""
        assert isinstance(self.by, cst.Call)
        return self.by


class Onward(Enum):
    """The verdict that a use only passes a value along."""

    ONWARD = "onward"


ONWARD: Final = Onward.ONWARD

Fact = TypeVar("Fact")
Verdict: TypeAlias = Union[Fact, Onward, Standing, "tuple[Fact | Onward | Standing, ...]"]
"""What a use means: a fact, that the value goes on, that it goes on as another expression, or several."""
Judge: TypeAlias = Callable[["Module", Use], Verdict[Fact]]


def verdicts(
    module: Module, value: cst.BaseExpression | Binding | Standing, judge: Judge[Fact]
) -> frozenset[Fact]:
    """Return all facts that ``judge`` states of the uses that a value reaches.

    ``judge`` is a function of the module, or a method of what is kept as long as the model; its facts are of
    a kind that has few, since every place that a value reaches keeps its own.
    """
    start = _standing(value)
    found: frozenset[Fact] = _verdicts(module, start.where, start.path, judge)
    return found


def sinks(
    module: Module, value: cst.BaseExpression | Binding | Standing, judge: Judge[Fact]
) -> Iterator[Fact]:
    """Yield the facts that ``judge`` states of the uses that a value reaches, nearest first; none is kept."""
    start = _standing(value)
    waiting, seen = deque([start]), {start}
    while waiting:
        facts, following = _look(module, judge, waiting.popleft())
        yield from facts
        for standing in following:
            if standing not in seen:
                seen.add(standing)
                waiting.append(standing)


def _standing(value: cst.BaseExpression | Binding | Standing) -> Standing:
    return value if isinstance(value, Standing) else Standing(value)


@solved(nothing=frozenset())
def _verdicts(
    module: Module, where: cst.BaseExpression | Binding, path: Path, judge: Judge[Any]
) -> frozenset[Any]:
    facts, following = _look(module, judge, Standing(where, path))
    found = set(facts)
    for onward in following:
        found |= _verdicts(module, onward.where, onward.path, judge)
    return frozenset(found)


def _look(module: Module, judge: Judge[Fact], standing: Standing) -> tuple[list[Fact], list[Standing]]:
    """Return the facts on the uses of a value where it stands, and where it goes on from there."""
    module.tree.effort.spend(1)
    where, path = standing.where, standing.path
    if isinstance(where, Binding):
        reads = (*module.uses(where), *module.names.uses_elsewhere(where))
        return [], [Standing(read, path) for read in reads]
    facts: list[Fact] = []
    following: list[Standing] = []
    waiting = [*_used(module, where, path)]
    while waiting:
        use = waiting.pop()
        if isinstance(use, Standing):
            following.append(use)
            continue
        verdict = judge(module, use)
        for one in verdict if isinstance(verdict, tuple) else (verdict,):
            if isinstance(one, Standing):
                following.append(one)
            elif not isinstance(one, Onward):
                facts.append(one)
            elif use.kind is not UseKind.ELSEWHERE:
                waiting.extend(_onward(module, use))
    return facts, following


# --- one step ---------------------------------------------------------------------------------------------


def _used(module: Module, node: cst.BaseExpression, path: Path) -> Iterator[Use | Standing]:
    """Yield the uses of what stands as an expression, and what stands for it by choice or by name alone."""
    tree = module.tree
    parent = tree.parents[node]
    match parent:
        case cst.Assign():
            for target in parent.targets:
                yield from _assigned(target.target, node, path)
        case cst.AnnAssign() if parent.value is node:
            yield from _assigned(parent.target, node, path)
        case cst.NamedExpr():
            yield Standing(parent, path)
            yield from _assigned(parent.target, node, path)
        case cst.IfExp() if parent.test is not node:
            yield Standing(parent, path)
        case cst.Element() if pairs := _pairs(module, tree.parents[parent]):
            inner = _within(parent, tree.parents[parent], path)
            yield from (use for target in pairs for use in _assigned(target, node, inner))
        case _:
            kind, by = _kind_of_use(module, node, parent)
            yield Use(kind, node, by, path, parent)


def _kind_of_use(
    module: Module, node: cst.BaseExpression, parent: cst.CSTNode
) -> tuple[UseKind, cst.CSTNode]:
    """Return how an expression is used that is a part of ``parent``, and by which node."""
    parents = module.tree.parents
    match parent:
        case cst.Attribute():
            call = module.tree.method_call(node)
            if call is not None:
                return UseKind.METHOD, call
            return UseKind.SET if is_target(module, parent) else UseKind.ATTRIBUTE, parent
        case cst.Arg():
            by = parents[parent]
            return UseKind.ARGUMENT if isinstance(by, cst.Call) else UseKind.OTHER, by
        case cst.Subscript():
            return UseKind.SET if is_target(module, parent) else UseKind.ITEM, parent
        case cst.Index() | cst.Slice():
            return UseKind.INDEX, parents[parents[parent]]
        case cst.AugAssign():
            return UseKind.AUGMENTED if parent.target is node else UseKind.AUGMENTS, parent
        case cst.UnaryOperation():
            return UseKind.TESTED if isinstance(parent.operator, cst.Not) else UseKind.OPERAND, parent
        case cst.ComparisonTarget():
            return UseKind.COMPARED, parents[parent]
        case cst.BaseElement() | cst.DictElement() | cst.StarredDictElement():
            keyed = isinstance(parent, cst.DictElement) and parent.key is node
            return UseKind.OTHER if keyed else UseKind.ELEMENT, parents[parent]
        case cst.Assert() if parent.test is node:
            return UseKind.TESTED, parent
        case cst.DictComp() if parent.value is node:
            return UseKind.ELEMENT, parent
        case cst.FormattedStringExpression() if parent.expression is node:
            return UseKind.FORMATTED, parent
    return _USES.get(parent.__class__, UseKind.OTHER), parent


# What kinds of nodes do with the expressions in them, whichever it is.
_USES: dict[type, UseKind] = {
    cst.Call: UseKind.CALLED,
    cst.BinaryOperation: UseKind.OPERAND,
    cst.Comparison: UseKind.COMPARED,
    cst.BooleanOperation: UseKind.CHOICE,
    cst.If: UseKind.TESTED,
    cst.While: UseKind.TESTED,
    cst.IfExp: UseKind.TESTED,
    cst.CompIf: UseKind.TESTED,
    cst.ListComp: UseKind.ELEMENT,
    cst.SetComp: UseKind.ELEMENT,
    cst.GeneratorExp: UseKind.ELEMENT,
    cst.For: UseKind.ITERATED,
    cst.CompFor: UseKind.ITERATED,
    cst.WithItem: UseKind.ENTERED,
    cst.Return: UseKind.RETURNED,
    cst.Lambda: UseKind.RETURNED,
    cst.Yield: UseKind.YIELDED,
    cst.From: UseKind.YIELDED,
    cst.Await: UseKind.AWAITED,
    cst.Expr: UseKind.DISCARDED,
}


def is_target(module: Module, node: cst.CSTNode) -> bool:
    """Return whether an attribute or item is what a statement sets or deletes, alone or in an unpacking."""
    parents = module.tree.parents
    child, parent = node, parents[node]
    while isinstance(parent, (cst.Tuple, cst.List, cst.BaseElement)):
        child, parent = parent, parents[parent]
    if isinstance(parent, (cst.AssignTarget, cst.Del, cst.AsName)):
        return True
    return getattr(parent, "target", None) is child


def _pairs(module: Module, display: cst.CSTNode) -> Sequence[cst.BaseExpression]:
    """Return the targets of ``a, b = x, y``, which gives nothing a tuple."""
    statement = module.tree.parents[display]
    if not isinstance(statement, cst.Assign) or not isinstance(display, (cst.Tuple, cst.List)):
        return []
    targets: list[cst.BaseExpression] = [target.target for target in statement.targets]
    return targets if all(isinstance(target, (cst.Tuple, cst.List)) for target in targets) else []


def _within(element: cst.CSTNode, display: cst.CSTNode, path: Path) -> Path:
    """Return the part of a display that is the part ``path`` of one of its elements."""
    match display:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            if isinstance(element, cst.StarredElement):
                return (None, *path[1:])
            index = next(i for i, other in enumerate(elements) if other is element)
            starred = any(isinstance(other, cst.StarredElement) for other in elements[:index])
            return (None if starred else index, *path)
    return (None, *path)


def _assigned(target: cst.BaseExpression, node: cst.BaseExpression, path: Path) -> Iterator[Use]:
    """Yield the uses of a value by what is assigned to a target."""
    waiting = [(target, path)]
    while waiting:
        target, path = waiting.pop()
        if isinstance(target, cst.Name):
            yield Use(UseKind.ASSIGNED, node, target, path, target)
        elif not isinstance(target, (cst.Tuple, cst.List)):
            yield Use(UseKind.STORED, node, target, path, target)
        elif not path:
            yield Use(UseKind.UNPACKED, node, target, path, target)
        else:
            waiting += _taken(target, path)


def _taken(target: cst.Tuple | cst.List, path: Path) -> list[tuple[cst.BaseExpression, Path]]:
    """Return the targets that an unpacking may give the part ``path``."""
    index, rest = path[0], path[1:]
    starred = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), None)
    found: list[tuple[cst.BaseExpression, Path]] = []
    for place, element in enumerate(target.elements):
        if place == starred:
            if not isinstance(index, int) or index >= place:
                found.append((element.value, (None, *rest)))
        elif not isinstance(index, int) or index == place or (starred is not None and starred < place):
            found.append((element.value, rest))
    return found


def following(module: Module, use: Use) -> list[Standing]:
    """Return where a value stands next behind a use that takes it out of a container, or puts it into one."""
    return [onward for onward in _onward(module, use) if isinstance(onward, Standing)]


def _onward(module: Module, use: Use) -> Iterator[Use | Standing]:
    """Yield where a value goes on to from a use of it."""
    by, path = use.by, use.path
    match use.kind:
        case UseKind.ASSIGNED | UseKind.AUGMENTED | UseKind.AUGMENTS:
            target = by.target if isinstance(by, cst.AugAssign) else by
            binding = module.binding_of(target)
            if binding is not None:
                yield Standing(binding, path)
            elif isinstance(target, (cst.Attribute, cst.Subscript)):
                yield from _stored(module, target, use)
            else:
                yield replace(use, kind=UseKind.ELSEWHERE)
        case UseKind.UNPACKED if isinstance(by, (cst.Tuple, cst.List)):
            for element in by.elements:
                yield from _assigned(element.value, use.node, ())
        case UseKind.STORED:
            yield from _stored(module, by, use)
        case UseKind.ITEM if isinstance(by, cst.Subscript):
            yield from _picked(module, by, path)
        case UseKind.METHOD if path and isinstance(by, cst.Call):
            yield from _handed_out(module, by, use.name, path)
        case UseKind.ITERATED if isinstance(by, (cst.For, cst.CompFor)):
            yield from _assigned(by.target, use.node, path[1:])
        case UseKind.ENTERED if isinstance(by, cst.WithItem):
            if by.asname is not None:
                yield from _assigned(by.asname.name, use.node, path)
        case UseKind.ELEMENT:
            if len(path) < _DEEPEST and isinstance(by, cst.BaseExpression):
                yield Standing(by, _in_display(module, use))
            else:
                yield replace(use, kind=UseKind.ELSEWHERE)
        case UseKind.ARGUMENT if isinstance(by, cst.Call):
            yield from _given(module, by, use)
        case UseKind.RETURNED | UseKind.YIELDED:
            function = module.function(use.node)
            whole = use.kind is UseKind.RETURNED or isinstance(by, cst.From)
            calls = [] if function is None else module.callers(function)
            if isinstance(function, cst.FunctionDef):
                # Where the result goes of what all of a library calls tells nothing of one call.
                others = module.inference.callgraph.dispatched(function, MOST_ALTERNATIVES)
                if len(others) <= MOST_ALTERNATIVES:
                    calls = list(dict.fromkeys((*calls, *others)))
            for call in calls:
                yield Standing(call, path if whole else (None, *path))
            yield replace(use, kind=UseKind.ELSEWHERE)
        case UseKind.FORMATTED:
            text = module.tree.parents[by]
            assert isinstance(text, cst.BaseExpression)
            yield Standing(text)
        case _ if isinstance(by, cst.BaseExpression) and use.kind is not UseKind.OTHER:
            yield Standing(by, path)
        case UseKind.TESTED | UseKind.DISCARDED:
            return
        case _:
            yield replace(use, kind=UseKind.ELSEWHERE)


def _in_display(module: Module, use: Use) -> Path:
    """Return the part of a display that an element of it becomes."""
    if isinstance(use.part, cst.DictElement):
        key = module.value(use.part.key).constant
        return (key if isinstance(key, (int, str)) else None, *use.path)
    if isinstance(use.part, cst.StarredDictElement):
        return use.path or (None,)
    return _within(use.part, use.by, use.path)


def _picked(module: Module, item: cst.Subscript, path: Path) -> Iterator[Standing]:
    """Yield what an item of a container stands for; nothing if it is another part of it."""
    slices = [element.slice for element in item.slice]
    if not path:
        yield Standing(item)
    elif len(slices) != 1 or not isinstance(slices[0], cst.Index):
        yield Standing(item, (None, *path[1:]))
    else:
        if _may_be_under(module, slices[0].value, path[0]):
            yield Standing(item, path[1:])


def _handed_out(module: Module, call: cst.Call, method: str, path: Path) -> Iterator[Standing]:
    """Yield what a method of a container gives that holds a value as the part ``path``."""
    match method:
        case "get" | "pop" | "setdefault" if call.args:
            if _may_be_under(module, call.args[0].value, path[0]):
                yield Standing(call, path[1:])
        case "values":
            yield Standing(call, (None, *path[1:]))
        case "items":
            yield Standing(call, (None, 1, *path[1:]))
        case _:
            yield Standing(call, path)


def key_of(use: Use) -> cst.BaseExpression | None:
    """Return the key by which a use takes an item out of a container; None if it does nothing of the kind."""
    match use.by:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]) if (
            use.kind is UseKind.ITEM
        ):
            return key
        case cst.Call(args=[cst.Arg(value=key), *_]) if use.kind is UseKind.METHOD and use.name in _PICKING:
            return key
    return None


def _may_be_under(module: Module, key: cst.BaseExpression, index: int | str | None) -> bool:
    """Return whether the part of a container under an index may be the one under a key."""
    wanted = module.value(key).constant
    if not isinstance(wanted, (int, str)) or index is None:
        return True
    counted = isinstance(wanted, int) and isinstance(index, int) and (wanted < 0) is not (index < 0)
    return wanted == index or counted


def _given(module: Module, call: cst.Call, use: Use) -> Iterator[Use | Standing]:
    """Yield where a value goes that a call is given: a parameter, a container, or what the call returns."""
    argument, path = use.argument, use.path
    function = module.callee(call)
    if function is not None:
        name = module.call(call).parameter(argument) if not argument.star else None
        bindings = module.names.scope_of(function).bindings.get(name, ()) if name is not None else ()
        parameters = [binding for binding in bindings if binding.kind is BindingKind.PARAMETER]
        for parameter in parameters:
            variadic = isinstance(parameter.node, cst.Param) and parameter.node.star in ("*", "**")
            yield Standing(parameter, (None, *path) if variadic else path)
        if not parameters:
            yield replace(use, kind=UseKind.ELSEWHERE)
        return
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name(method)) if (
            method in _FILLING and argument in call.args[_FILLING[method] : _FILLING[method] + 1]
        ):
            yield from _put_into(module, owner, (None, *path), use)
        case cst.Attribute(value=owner, attr=cst.Name("setdefault")) if argument in call.args[1:]:
            yield Standing(call, path)
            yield from _put_into(module, owner, (_index(module, call.args[0].value), *path), use)
        case cst.Attribute(value=owner, attr=cst.Name("update")) if (
            path and argument.keyword is None and module.value(owner).kind is Kind.DICT
        ):
            yield from _put_into(module, owner, path, use)
        case cst.Attribute(value=owner, attr=cst.Name("extend")):
            yield from _put_into(module, owner, (None, *path[1:]), use)
        case _:
            called = module.qualified(call.func)
            if called == "builtins.enumerate":
                yield Standing(call, (None, 1, *path[1:]))
            elif called == "builtins.zip":
                place = next(i for i, other in enumerate(call.args) if other is argument)
                yield Standing(call, (None, place, *path[1:]))
            elif called in _REORDERING and path:
                yield Standing(call, (None, *path[1:]))
            else:
                yield Standing(call, path)


def _stored(module: Module, target: cst.CSTNode, use: Use) -> Iterator[Use | Standing]:
    """Yield where a value goes that is stored as an attribute or as an item."""
    if isinstance(target, cst.Subscript):
        keys = [element.slice for element in target.slice]
        key = _index(module, keys[0].value) if isinstance(keys[0], cst.Index) else None
        yield from _put_into(module, target.value, (key, *use.path), use)
        return
    if isinstance(target, cst.Attribute):
        yield from (Standing(read, use.path) for read in _reads_of_attribute(module, target))
    yield replace(use, kind=UseKind.ELSEWHERE)


def _index(module: Module, key: cst.BaseExpression) -> int | str | None:
    """Return the step of a path that a key is."""
    constant = module.value(key).constant
    return constant if isinstance(constant, (int, str)) else None


def _put_into(module: Module, owner: cst.BaseExpression, path: Path, use: Use) -> Iterator[Use | Standing]:
    """Yield where a container that a value is put into is read; also one that is an item of another."""
    while len(path) <= _DEEPEST:
        match owner:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                owner, path = owner.value, (_index(module, key), *path)
            case cst.Call(func=cst.Attribute(value=around, attr=cst.Name("setdefault")), args=[key, *_]):
                owner, path = around, (_index(module, key.value), *path)
            case _:
                break
    known = isinstance(owner, (cst.Name, cst.Attribute)) and len(path) <= _DEEPEST
    if known and isinstance(owner, cst.Name):
        bindings = module.names.bindings_at(owner.value, owner)
        yield from (Standing(binding, path) for binding in bindings)
        known = bool(bindings) and all(binding.kind is BindingKind.ASSIGN for binding in bindings)
    elif known and isinstance(owner, cst.Attribute):
        yield from (Standing(read, path) for read in _reads_of_attribute(module, owner))
        known = False
    if not known:
        yield replace(use, kind=UseKind.ELSEWHERE)


def _reads_of_attribute(module: Module, attribute: cst.Attribute) -> list[cst.Attribute]:
    """Return the reads of the attribute of an instance, also by other files of its family."""
    owner: cst.CSTNode | None = module.classes.instance_class(attribute.value)
    if owner is None:
        made = module.value(attribute.value)
        owner = made.definition if made.kind in _INSTANCES else None
    return reads_of_field(module, owner, attribute.attr.value) if isinstance(owner, cst.ClassDef) else []


def reads_of_field(module: Module, owner: cst.ClassDef, name: str) -> list[cst.Attribute]:
    """Return the reads of an attribute of the instances of a class.

    They are those of ``self`` in the class, its bases and its heirs, and those of what certainly is an
    instance, in the files of these and in the one that asks.
    """
    family = {*(info.node for info in module.classes.info(owner).lineage), *module.classes.heirs(owner)}
    found: list[cst.Attribute] = []
    for home in {module.tree: module, **{home.tree: home for home in map(module.home, family)}}.values():
        for reads in (_reads_of_instances(home).get(name, {}), _reads_of_others(home, name)):
            found += (read for member in family for read in reads.get(member, ()))
    return sorted(found, key=module.tree.order.__getitem__)


@remembered
def _reads_of_instances(module: Module) -> dict[str, dict[cst.ClassDef, list[cst.Attribute]]]:
    """Return the reads ``self.x`` by the name of the attribute and the class whose method they stand in."""
    found: dict[str, dict[cst.ClassDef, list[cst.Attribute]]] = {}
    for attribute in module.tree.nodes(cst.Attribute):
        owner = module.classes.instance_class(attribute.value)
        if owner is not None and not is_target(module, attribute):
            found.setdefault(attribute.attr.value, {}).setdefault(owner, []).append(attribute)
    return found


@remembered
def _reads_of_others(module: Module, name: str) -> dict[cst.ClassDef, list[cst.Attribute]]:
    """Return the reads ``trainer.x`` by the class that ``trainer`` is an instance of."""
    found: dict[cst.ClassDef, list[cst.Attribute]] = {}
    for attribute in module.tree.attributes_by_name.get(name, ()):
        if module.classes.instance_class(attribute.value) is None and not is_target(module, attribute):
            made = module.value(attribute.value)
            if made.kind in _INSTANCES and isinstance(made.definition, cst.ClassDef):
                found.setdefault(made.definition, []).append(attribute)
    return found
