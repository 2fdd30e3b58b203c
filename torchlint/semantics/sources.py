"""Where a value comes from: the expressions that it can be, followed backwards through a file.

The way leads through names (reaching definitions), both branches of a condition, unpacking, attributes of
``self``, items of containers and what is put into these later, functions of the file and what their callers
pass. It is flow-sensitive for local variables, and insensitive to the context of calls. What is followed is
a part of the value of an expression: an access path, bounded in length (N. D. Jones and S. S. Muchnick, Flow
analysis and optimization of LISP-like structures, 1979). Every part is looked at once, by way of the
fixpoint, so that circles end and no other bound is needed.

A question is a function marked ``@traced``, which looks at one expression on the way. It says what it finds
there, or where to go on, or None if that follows from what the expression is:

    @traced(Through.OPERANDS)
    def _made_on_host(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
        ...

    every(_made_on_host(module, node))

Who has an answer of its own for what meets, a shape, say, asks `steps` instead, one step at a time.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.classes import is_property
from torchlint.semantics.fixpoint import MANY, Answers
from torchlint.semantics.library import TABLES
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import AttributeBinding, Binding, BindingKind
from torchlint.semantics.remembered import in_charge
from torchlint.semantics.spellings import is_none
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function

P = ParamSpec("P")
Owner = TypeVar("Owner")
Fact = TypeVar("Fact", bound=Hashable)


class Item(enum.Enum):
    """A part of a value that no constant names."""

    EACH = "each"
    """What a loop over it gives: an item of a list, a key of a dict."""
    ANY = "any"
    """What a subscript gives: an item of a list, a value of a dict."""
    REST = "rest"
    """What a starred target takes."""
    ENTERED = "entered"
    """What a ``with`` statement binds."""

    def __repr__(self) -> str:
        return self.value


class Field(NamedTuple):
    """The attribute of an instance."""

    name: str


Path: TypeAlias = "tuple[int | str | Item | Field, ...]"
"""Which part of a value: indices and keys from the outermost on; empty for the whole of it."""


class Source(NamedTuple):
    """A part of the value of an expression.

    Or of what a definition gives its name, or of the instances of a class.
    """

    node: cst.CSTNode | Binding
    path: Path = ()


class Through(enum.Flag):
    """What a way leads through, besides names, conditions, unpacking and attributes of ``self``."""

    NOTHING = 0
    ITEMS = enum.auto()
    """From an item that is read out of a container to what was put into it."""
    OPERANDS = enum.auto()
    """From the result of arithmetic to its operands."""
    RETURNS = enum.auto()
    """From a call to what the function of the file returns."""
    PARAMETERS = enum.auto()
    """From a parameter to what the calls in the file pass for it, or its default."""


Ends: TypeAlias = "frozenset[Fact | None]"
"""What was found where the ways end; None for a way that ends where nothing can be told."""

_LONGEST = 4
"""How many steps of an access path are told apart."""
_OWNERS = 2
"""How many attributes may lead to so many items besides: ``self.manager.loaders["test"]``."""


def every(ends: Ends[bool]) -> bool:
    """Return whether a value certainly is what was asked for, whichever way it comes."""
    return ends == _ALWAYS


def some(ends: Ends[bool]) -> bool:
    """Return whether a value comes, on one way, from what was asked for."""
    return True in ends


def sole(ends: Ends[Fact]) -> Fact | None:
    """Return what is found on all ways; None if they differ, or one of them ends in the open."""
    return next(iter(ends)) if len(ends) == 1 else None


def onward(*nodes: cst.CSTNode, path: Path = ()) -> list[Source]:
    """Return the same part of each of some expressions, to go on with."""
    return [Source(node, path) for node in nodes]


def traced(
    through: Through,
) -> Callable[
    [Callable[Concatenate[Owner, cst.CSTNode, Path, P], Fact | list[Source] | None]],
    Callable[Concatenate[Owner, cst.CSTNode | Source, P], Ends[Fact]],
]:
    """Make a question of what ``look`` finds on the ways back from an expression.

    ``look`` is given the module, or a part of the model that has it as its ``module``, then an expression, a
    parameter or an import on the way, and the part of its value that is followed. What it returns is found
    there, and the way ends; a list is what to go on with; with None the way goes on as far as ``through``
    says. The question takes the module and an expression, or a part of its value, and what else ``look`` is
    to be given, all of it hashable.
    """

    def decorate(
        look: Callable[Concatenate[Owner, cst.CSTNode, Path, P], Fact | list[Source] | None],
    ) -> Callable[Concatenate[Owner, cst.CSTNode | Source, P], Ends[Fact]]:
        label = f"{look.__module__}.{look.__qualname__}"
        find: Callable[..., Fact | list[Source] | None] = look

        def ask(owner: Any, source: Source, arguments: tuple[Any, ...]) -> Ends[Fact]:
            module: Module = getattr(owner, "module", owner)
            if module.link is not None and isinstance(owner, (Module, Part)):
                owner = in_charge(owner, module, source.node)
                module = getattr(owner, "module", owner)
            module.tree.effort.spend(1)

            def work_out(_: object) -> Ends[Fact]:
                shown = _shown(source)
                found = find(owner, shown, source.path, *arguments) if shown is not None else None
                if found is None:
                    onto = steps(module, source, through)
                elif isinstance(found, list):
                    onto = found
                else:
                    return frozenset((found,))
                if onto is None:
                    return _OPEN
                ends: set[Fact | None] = set()
                for each in onto:
                    ends |= ask(owner, each, arguments)
                return frozenset(ends) if len(ends) <= MANY else _OPEN

            # Of a part there is one for a module, of other owners there may be many.
            asker = () if isinstance(owner, (Module, Part)) else (owner,)
            key = (label, source.node, source.path, *arguments, *asker)
            answer: Ends[Fact] = module.fixpoint.ask(key, work_out, _ENDS)
            return answer

        @wraps(look)
        def asked(
            owner: Owner, node: cst.CSTNode | Source, /, *arguments: P.args, **options: P.kwargs
        ) -> Ends[Fact]:
            assert not options
            return ask(owner, node if isinstance(node, Source) else Source(node), arguments)

        return asked

    return decorate


def _shown(source: Source) -> cst.CSTNode | None:
    """Return what there is to look at: none of the definitions of a name but a parameter or an import."""
    node = source.node
    if isinstance(node, Binding):
        return node.node if node.kind in _ENDING else None
    return None if isinstance(node, cst.ClassDef) else node


class _Nothing(frozenset[Any]):
    """No end yet. An empty list has none either, and that holds."""


_ALWAYS: Ends[bool] = frozenset((True,))
_OPEN: Ends[Any] = frozenset((None,))
_ENDS: Answers[Ends[Any]] = Answers(nothing=_Nothing(), unknown=_OPEN)
_ENDING = frozenset({BindingKind.PARAMETER, BindingKind.IMPORT})


# --- one step -----------------------------------------------------------------------------------------------


def steps(module: Module, source: Source, through: Through = Through.NOTHING) -> list[Source] | None:
    """Return what a part of a value comes from, one step back; None where the way ends."""
    node, path = source
    if len(path) > _LONGEST and not _is_of_items(path):
        return None
    if isinstance(node, Binding):
        return _defined(module, node, path, through)
    match node:
        case cst.Name("None") if path:
            return []  # It has no parts: where it stands for a value that comes later, nobody asks for one.
        case cst.Name():
            return [Source(binding, path) for binding in module.bindings(node)] or None
        case cst.IfExp():
            return onward(node.body, node.orelse, path=path)
        case cst.BooleanOperation():
            return onward(node.left, node.right, path=path)
        case cst.NamedExpr():
            return onward(node.value, path=path)
        case cst.Await():
            return onward(node.expression, path=path)
        case cst.Attribute():
            owner = _instance(module, node.value)
            return [Source(owner, (Field(node.attr.value), *path))] if owner is not None else None
        case cst.ClassDef():
            return _field(module, node, path, through)
        case cst.BinaryOperation() | cst.UnaryOperation():
            return _operands(node, path, through)
        case cst.Subscript():
            return _indexed(module, node, path) if through & Through.ITEMS else None
        case cst.Call():
            return _called(module, node, path, through)
        case _:
            return _selected(module, node, path) if path else None


def returns(module: Module, function: Function) -> tuple[cst.BaseExpression, ...]:
    """Return the expressions that a function returns; a bare ``return`` is left out."""
    if isinstance(function, cst.Lambda):
        return (function.body,)
    exits = module.home(function).flow.exits(function)
    return tuple(each.value for each in exits if isinstance(each, cst.Return) and each.value is not None)


def _is_of_items(path: Path) -> bool:
    """Return whether a path leads to items of items that an attribute, or that of an attribute, holds."""
    owners = sum(1 for _ in itertools.takewhile(lambda step: isinstance(step, Field), path))
    items = path[owners:]
    plain = not any(isinstance(step, Field) for step in items)
    return owners <= _OWNERS and len(items) <= _LONGEST and plain


def _instance(module: Module, node: cst.BaseExpression) -> cst.ClassDef | None:
    """Return the class of the file that ``self`` is an instance of."""
    return SelfAttributes.of(module).enclosing_class(node) if SelfAttributes.is_self(node) else None


def _defined(module: Module, binding: Binding, path: Path, through: Through) -> list[Source] | None:
    """Return what one definition of a name gives it, and what is put into that."""
    match binding.kind:
        case BindingKind.IMPORT if module.link is not None:
            target = module.names.imported_by(binding)
            return [Source(one, path) for one in target] if isinstance(target, tuple) else None
        case BindingKind.PARAMETER if through & Through.PARAMETERS:
            return _passed(module, binding, path)
        case BindingKind.MANY:
            every_one = module.names.definitions(binding.scope, binding.name)
            return [Source(one, path) for one in every_one]
        case BindingKind.AUGMENT:
            given = _given(module, binding, path, through)
            return None if given is None else [Source(binding.node, path), *given]
        case _:
            given = _given(module, binding, path, through)
            if given is not None and path and through & Through.ITEMS:
                for use in module.uses(binding):
                    given += put_into(module, use, path)
            return given


def _given(
    module: Module, binding: Binding | AttributeBinding, path: Path, through: Through
) -> list[Source] | None:
    """Return what an assignment, a loop or a ``with`` statement plainly gives its target."""
    value, part = binding.value, _within(binding.path, path)
    if value is None:
        return None
    match binding.kind:
        case BindingKind.ASSIGN | BindingKind.WALRUS:
            return [Source(value, part)]
        case BindingKind.AUGMENT if path:
            return [Source(value, (Item.EACH, *path[1:]))]
        case BindingKind.AUGMENT if through & Through.OPERANDS:
            return [Source(value)]
        case BindingKind.AUGMENT if module.value(value).kind in _CONTAINERS:
            return []  # A list stays the same list.
        case BindingKind.LOOP | BindingKind.COMPREHENSION if through & Through.ITEMS:
            return [Source(value, (Item.EACH, *part))]
        case BindingKind.WITH:
            return [Source(value, (Item.ENTERED, *part))]
        case _:
            return None


def _within(outer: tuple[int | None, ...], path: Path) -> Path:
    """Return the part of a value that is unpacked of which a part is followed."""
    if outer[-1:] != (None,):
        return (*(step for step in outer if step is not None), *path)
    front = tuple(step for step in outer[:-1] if step is not None)
    return (*front, Item.EACH, *path[1:]) if path else (*front, Item.REST)


def _passed(module: Module, binding: Binding, path: Path) -> list[Source] | None:
    """Return what calls pass for a parameter, or its default; None if some are out of sight."""
    function, param = binding.scope.node, binding.node
    if not isinstance(function, (cst.FunctionDef, cst.Lambda)) or not isinstance(param, cst.Param):
        return None
    if param.star == "**" and path and isinstance(path[0], str):
        return _passed_by_keyword(module, function, path[0], path[1:])
    if param.star == "*" and path and isinstance(path[0], int):
        return _passed_besides(module, function, binding.name, path[0], path[1:])
    if isinstance(param.star, str) and param.star:
        return None
    found: list[Source] = []
    for call in module.callers(function):
        if len(path) > 1 and module.function(call) is function:
            continue  # It goes deeper and deeper into what the other calls pass.
        for argument in module.inference.callgraph.passed(call, function, binding.name):
            node = param.default if argument.absent else argument.node
            if node is None:
                return None
            found.append(Source(node, path))
    return list(dict.fromkeys(found)) or None


def _passed_besides(
    module: Module, function: Function, name: str, index: int, path: Path
) -> list[Source] | None:
    """Return what the calls in the file put at a place of ``*args``; None if one of them leaves it open."""
    found: list[Source] = []
    for call in module.callers(function):
        given = module.inference.callgraph.bound_to(call, function).given.get(name)
        match call.args:
            case _ if given is not None and 0 <= index < len(given.nodes):
                found.append(Source(given.nodes[index], path))
            case [cst.Arg(star="*", value=items)] if len(function.params.params) == _bound(module, function):
                found.append(Source(items, (index, *path)))
            case _:
                return None
    return list(dict.fromkeys(found)) or None


def _bound(module: Module, function: Function) -> int:
    """Return how many parameters of a function its calls do not give: the instance, of a method."""
    if not isinstance(function, cst.FunctionDef) or module.classes.owner(function) is None:
        return 0
    return int(module.classes.self_name(function) is not None)


def _passed_by_keyword(module: Module, function: Function, key: str, path: Path) -> list[Source] | None:
    """Return what calls put under a key of ``**kwargs``; None if nobody passes it."""
    found: list[Source] = []
    for call in module.callers(function):
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value == key:
                found.append(Source(argument.value, path))
            elif argument.star == "**":
                found.append(Source(argument.value, (key, *path)))
    return list(dict.fromkeys(found)) or None


def _field(module: Module, owner: cst.ClassDef, path: Path, through: Through) -> list[Source] | None:
    """Return what is assigned to an attribute of instances, or put into it, or what a property returns."""
    field, rest = path[0], path[1:]
    assert isinstance(field, Field)
    attributes = SelfAttributes.of(module)
    assigned = attributes.assigned(owner, field.name)
    if not assigned:
        method = module.classes.info(owner).method(field.name) if through & Through.RETURNS else None
        if method is None or not is_property(method):
            return None
        return onward(*returns(module, method), path=rest) or None
    # These are ways of their own, which lead nowhere else.
    found = [Source(target, rest) for target in attributes.set_outside(owner, field.name)]
    for binding, value in assigned:
        given = _given(module, binding, rest, through) if binding is not None else [Source(value, rest)]
        if given is None:
            return None
        found += given
    if rest and through & Through.ITEMS:
        for read in attributes.self_reads(owner, field.name):
            found += put_into(module, read, rest)
    return found


def _operands(
    node: cst.BinaryOperation | cst.UnaryOperation, path: Path, through: Through
) -> list[Source] | None:
    """Return the sides of an operation; of lists that are joined or repeated, those that the item is of."""
    if isinstance(node, cst.UnaryOperation):
        plain = through & Through.OPERANDS and not path and not isinstance(node.operator, cst.Not)
        return onward(node.expression) if plain else None
    if path:
        rest = (Item.EACH, *path[1:])
        match node.operator:
            case cst.Add() | cst.BitOr():
                return onward(node.left, node.right, path=rest)
            case cst.Multiply():
                return onward(node.left, path=rest)
            case _:
                return None
    return onward(node.left, node.right) if through & Through.OPERANDS else None


# --- items --------------------------------------------------------------------------------------------------


def _indexed(module: Module, node: cst.Subscript, path: Path) -> list[Source] | None:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index))]:
            return [Source(node.value, (_key(module, index), *path))]
        case [cst.SubscriptElement(slice=cst.Slice())] if path:
            return [Source(node.value, (Item.EACH, *path[1:]))]
        case _:
            return None


def _key(module: Module, index: cst.BaseExpression) -> int | str | Item:
    """Return the step of an access path that an index is."""
    constant = module.value(index).constant
    return constant if isinstance(constant, (int, str)) and not isinstance(constant, bool) else Item.ANY


def _selected(module: Module, node: cst.CSTNode, path: Path) -> list[Source] | None:
    """Return the expressions that a display or comprehension makes an item of."""
    first, rest = path[0], path[1:]
    match node:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Set(elements=elements):
            starred = any(isinstance(element, cst.StarredElement) for element in elements)
            if isinstance(first, int) and not starred:
                known = -len(elements) <= first < len(elements)
                return [Source(elements[first].value, rest)] if known else []
            if isinstance(first, str):
                return []  # It is a key of what else there may be.
            if not isinstance(first, int) and first not in _ITEMS:
                return None
            return [
                Source(e.value, (Item.EACH, *rest) if isinstance(e, cst.StarredElement) else rest)
                for e in elements
            ]
        case cst.Dict(elements=elements):
            found = []
            for entry in elements:
                if not isinstance(entry, cst.DictElement):
                    found.append(Source(entry.value, path))
                elif _may_be(module, entry.key, first):
                    found.append(Source(entry.key if first is Item.EACH else entry.value, rest))
            return found
        case cst.ListComp(elt=elt) | cst.SetComp(elt=elt) | cst.GeneratorExp(elt=elt):
            return [Source(elt, rest)] if isinstance(first, int) or first in _ITEMS else None
        case cst.DictComp():
            return [Source(node.key if first is Item.EACH else node.value, rest)]
        case _:
            return None


def _may_be(module: Module, index: cst.BaseExpression, step: int | str | Item | Field) -> bool:
    """Return whether what is stored under an index may be the item that is asked for."""
    return step in _ITEMS or _key(module, index) in (step, Item.ANY)


def put_into(module: Module, use: cst.BaseExpression, path: Path = (Item.ANY,)) -> Iterator[Source]:
    """Yield what a use of a container puts into it, or into an item of it: ``xs.append(x)``,
    ``xs[i] = x``, ``xs[i]["key"] = x``.

    ``path`` is the item that is asked for.
    """
    parent, rest = module.tree.parent(use), path[1:]
    match parent:
        case cst.Attribute(attr=cst.Name(method)) if parent.value is use:
            call = module.tree.method_call(use)
            given = call.args if call is not None else ()
            if method in _PUTTING and len(given) > _PUTTING[method]:
                yield Source(given[_PUTTING[method]].value, rest)
            elif method in ("extend", "extendleft") and given:
                yield Source(given[0].value, (Item.EACH, *rest))
            elif method == "update":
                for argument in given:
                    if argument.keyword is None:
                        yield Source(argument.value, path)
                    elif path[0] in (argument.keyword.value, Item.ANY):
                        yield Source(argument.value, rest)
        case cst.AugAssign(operator=cst.AddAssign() | cst.BitOrAssign()) if parent.target is use:
            yield Source(parent.value, (Item.EACH, *rest))
        case cst.Subscript(slice=[cst.SubscriptElement(slice=index)]) if parent.value is use:
            target = module.tree.parent(parent)
            statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
            if not isinstance(statement, cst.Assign):
                if rest and isinstance(index, cst.Index) and _may_be(module, index.value, path[0]):
                    yield from put_into(module, parent, rest)
                return
            if not isinstance(index, cst.Index):
                yield Source(statement.value, (Item.EACH, *rest))
            elif path[0] is Item.EACH and module.value(use).kind is Kind.DICT:
                yield Source(index.value, rest)
            elif _may_be(module, index.value, path[0]):
                yield Source(statement.value, rest)
        case _:
            return


# Methods that put an argument into a container, and the place of that argument.
_PUTTING = {"append": 0, "appendleft": 0, "add": 0, "insert": 1, "setdefault": 1}
_ITEMS = (Item.EACH, Item.ANY)


# --- calls --------------------------------------------------------------------------------------------------


def _called(module: Module, call: cst.Call, path: Path, through: Through) -> list[Source] | None:
    name = module.qualified(call.func)
    if name is not None:
        return _by_builtin(call, name, path) if through & Through.ITEMS else None
    if through & Through.ITEMS and isinstance(call.func, cst.Attribute):
        found = _by_method(module, call, call.func, path)
        if found is not None:
            return found
    if not through & Through.RETURNS:
        return None
    made = module.value(call.func)
    if made.kind is Kind.CLASS and isinstance(made.definition, cst.ClassDef) and path:
        return [Source(made.definition, path)] if isinstance(path[0], Field) else None
    if made.kind is Kind.CLASS:
        return None
    # Where heirs define a method each in its own way, any of them may be run.
    results = [returns(module, function) for function in module.callees(call)]
    return onward(*itertools.chain(*results), path=path) if results and all(results) else None


def _by_builtin(call: cst.Call, name: str, path: Path) -> list[Source] | None:
    """Return what functions that hand on items make of containers."""
    given = call.args
    if any(argument.star for argument in given):
        if name == "builtins.zip" and len(given) == 1 and len(path) > 1:
            return [Source(given[0].value, (path[1], path[0], *path[2:]))]
        return None
    if name == "builtins.next" and given:
        # Where it gives None, there is nothing left to give.
        others = (a.value for a in given[1:] if not is_none(a.value))
        return [Source(given[0].value, (Item.EACH, *path)), *onward(*others, path=path)]
    if not path or path[0] in (Item.REST, Item.ENTERED):
        return None
    if name in TABLES:
        whole = [Source(a.value, path) for a in given if a.keyword is None]
        named = [a for a in given if a.keyword is not None and path[0] in (a.keyword.value, Item.ANY)]
        return [*whole, *onward(*(a.value for a in named), path=path[1:])]
    if name in _SEQUENCES:
        positional = [argument.value for argument in given if argument.keyword is None]
        return onward(*positional[_SEQUENCES[name]], path=(Item.EACH, *path[1:]))
    if len(path) > 1 and isinstance(path[1], int):
        if name == "builtins.enumerate" and path[1] == 1 and given:
            return [Source(given[0].value, (Item.EACH, *path[2:]))]
        if name == "builtins.zip" and path[1] < len(given):
            return [Source(given[path[1]].value, (Item.EACH, *path[2:]))]
    return None


def _by_method(module: Module, call: cst.Call, func: cst.Attribute, path: Path) -> list[Source] | None:
    """Return what methods of dicts and lists give."""
    method, owner = func.attr.value, func.value
    if method in ("get", "pop", "setdefault") and module.value(owner).kind in _CONTAINERS:
        key = _key(module, call.args[0].value) if call.args else Item.ANY
        return [Source(owner, (key, *path)), *onward(*(a.value for a in call.args[1:]), path=path)]
    if not path:
        return None
    match method:
        case "copy":
            return [Source(owner, path)]
        case "values":
            return [Source(owner, (Item.ANY, *path[1:]))]
        case "keys":
            return [Source(owner, (Item.EACH, *path[1:]))]
        case "items" if path[1:2] == (0,):
            return [Source(owner, (Item.EACH, *path[2:]))]
        case "items" if path[1:2] == (1,):
            return [Source(owner, (Item.ANY, *path[2:]))]
        case _:
            return None


_CONTAINERS = frozenset({Kind.DICT, Kind.LIST, Kind.TUPLE})

# Functions that hand on the items of some of their arguments, and which.
_SEQUENCES = dict.fromkeys(
    [
        *("builtins.frozenset", "builtins.iter", "builtins.list", "builtins.reversed", "builtins.set"),
        *("builtins.sorted", "builtins.tuple", "collections.deque", "itertools.cycle", "itertools.islice"),
        *("random.choices", "random.sample"),
    ],
    slice(1),
)
_SEQUENCES.update({"builtins.filter": slice(1, 2), "itertools.chain": slice(None)})
