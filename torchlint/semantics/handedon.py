"""Which calls run a function that is handed on as a value.

A function is put into a list, a table or an attribute, is registered by a decorator, bound to arguments by
``partial``, passed to another function or returned by one: the call that runs it names none of that. Where
a value goes inside of a function, `sinks` tells; what leads from one function to another is followed here,
with what was said on the way: the instance that the function was given to, the words beside it
(``trainer.on("step", report)``), and what ``partial`` binds. So what is registered with one object, or for
one event, is not run for another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.frameworks import COMPILERS
from torchlint.semantics.callgraph import Run
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import (
    ONWARD,
    Path,
    Standing,
    Use,
    UseKind,
    Verdict,
    following,
    key_of,
    reads_of_field,
    verdicts,
)
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

_PASSING = frozenset(
    {UseKind.ASSIGNED, UseKind.UNPACKED, UseKind.STORED, UseKind.AUGMENTS, UseKind.AUGMENTED}
    | {UseKind.ITERATED, UseKind.ELEMENT, UseKind.CHOICE, UseKind.YIELDED}
)
_FILLING = frozenset({"append", "appendleft", "add", "extend", "insert", "setdefault", "update"})
_RUN_BY_INSTANCE = frozenset({"__init__", "__call__", "forward"})
"""What runs where an instance is made or called: who hands that on hands on the instance."""
_CONTAINERS = ("builtins.", "collections.", "itertools.")


@dataclass(frozen=True, slots=True)
class _Way:
    """Where a function has come to, and how.

    ``holder`` is what made the object that it was given to. ``words`` are the texts that were given with it:
    ``on("step", f)``. ``key`` is the parameter that picks it out of a table by one of them.
    """

    standing: Standing
    presets: tuple[cst.Call, ...] = ()
    holder: cst.CSTNode | None = None
    words: frozenset[str] = frozenset()
    key: Binding | None = None

    def to(self, where: cst.BaseExpression | Binding, path: Path = ()) -> _Way:
        """Return the same way, on to another place."""
        return replace(self, standing=Standing(where, path))


@remembered
def handed_on(module: Module, function: Function) -> tuple[Run, ...]:
    """Return the calls that may run a function which they do not name, in source order.

    Nothing for one that goes more than `MANY` ways: who hands it to everything tells nothing of it.
    """
    found: dict[cst.Call, Run] = {}
    makers = {_outermost(module, each) for _, each in _decorating(module, function)}
    for way in _begin(module, function):
        for run in _runs(module, way.standing.where, way):
            # What a decorator puts in the place of a function is called by the name of that.
            around = module.function(run.call)
            if around is None or _outermost(module, around) not in makers:
                found[run.call] = found[run.call].or_else(run) if run.call in found else run
    return tuple(sorted(found.values(), key=lambda run: module.tree.order[run.call]))


@remembered
def _runs(module: Module, start: cst.BaseExpression | Binding, way: _Way) -> tuple[Run, ...]:
    """Return the calls that run what has come somewhere, with all that comes there in this way."""
    found: dict[cst.Call, Run] = {}
    waiting, seen = deque([way]), {way}
    while waiting:
        if len(seen) > MANY:
            return ()
        way = waiting.popleft()
        uses = verdicts(module, way.standing, _judge)
        for use in sorted(uses, key=lambda use: module.tree.order[use.node]):
            if use.kind is UseKind.CALLED:
                run = Run(use.call, way.presets, way.key, way.words)
                found[use.call] = found[use.call].or_else(run) if use.call in found else run
                continue
            for onward in _go_on(module.home(use.node), use, way):
                if onward not in seen:
                    seen.add(onward)
                    waiting.append(onward)
    return tuple(found.values())


def _judge(module: Module, use: Use) -> Verdict[Use]:
    """Follow a function through the code of one function; what leads out of it is told."""
    match use.kind:
        case UseKind.CALLED:
            return () if use.path else use
        case UseKind.ARGUMENT | UseKind.RETURNED:
            return use
        case UseKind.ITEM | UseKind.METHOD if use.path:
            return ONWARD if key_of(use) is None else use
        case kind if kind in _PASSING:
            return ONWARD
        case _:
            return ()


def _begin(module: Module, function: Function) -> Iterator[_Way]:
    """Yield where a function is named as a value, and what its decorators do with it."""
    if isinstance(function, cst.FunctionDef) and (function.name.value in _RUN_BY_INSTANCE):
        return
    yield from (_Way(Standing(read)) for read in module.inference.callgraph.references(function))
    for decorator, run in _decorating(module, function):
        yield from _received(module, run, decorator, _Way(Standing(decorator)))


def _decorating(module: Module, function: Function) -> Iterator[tuple[cst.BaseExpression, Function]]:
    """Yield the decorators of a function with the functions of the project that they are."""
    for each in function.decorators if isinstance(function, cst.FunctionDef) else ():
        for run in module.inference.callgraph.standing_for(each.decorator):
            yield each.decorator, run


def _go_on(module: Module, use: Use, way: _Way) -> Iterator[_Way]:
    """Yield where a function goes from a use of it that leads to another function, or picks it."""
    match use.kind:
        case UseKind.ARGUMENT:
            yield from _given(module, use, way)
        case UseKind.RETURNED:
            yield from _returned(module, use, way)
        case _:
            yield from _picked(module, use, way)


# --- to other functions -------------------------------------------------------------------------------------


def _given(module: Module, use: Use, way: _Way) -> Iterator[_Way]:
    """Yield where a function goes that a call is given."""
    call, argument = use.call, use.argument
    called = module.qualified(call.func)
    if called == "functools.partial":
        if call.args[0] is argument and not use.path:
            yield replace(way.to(call), presets=(*way.presets, call))
        return
    if called in COMPILERS:
        yield way.to(call, use.path)
        return
    if called is not None:
        if use.path and called.startswith(_CONTAINERS):
            yield from (replace(way, standing=each) for each in following(module, use))
        return
    graph = module.inference.callgraph
    functions = graph.callees(call)
    for function in functions:
        name = graph.bound_to(call, function).parameter(argument) if not argument.star else None
        for received in _received(module, function, call, way, name):
            where, path = received.standing.where, received.standing.path
            yield received.to(where, (*path, *use.path))
    if functions:
        return
    made = module.value(call.func)
    if made.kind is Kind.CLASS and isinstance(made.definition, cst.ClassDef):
        field = module.classes.field_of(made.definition, argument, call)
        reads = reads_of_field(module, made.definition, field) if field is not None else ()
        yield from (replace(way, holder=call).to(read, use.path) for read in reads)
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _FILLING:
        yield from (replace(way, standing=each) for each in following(module, use))


def _received(
    module: Module, function: Function, by: cst.BaseExpression, way: _Way, name: str | None = None
) -> Iterator[_Way]:
    """Yield the parameter by which a function gets another one from a call, or as a decorator."""
    home = module.home(function)
    parameters = home.names.scope_of(function).bindings
    given = by.args if isinstance(by, cst.Call) else ()
    graph = module.inference.callgraph
    words = frozenset(word for each in given if (word := graph.word(each.value)) is not None)
    for binding in parameters.get(name, ()) if name is not None else _first(home, function):
        if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
            onward = replace(way, holder=_holder(module, by), words=way.words | words, key=None)
            yield onward.to(binding, (None,) if binding.node.star in ("*", "**") else ())


def _first(module: Module, function: Function) -> list[Binding]:
    """Return the parameter for which a decorator gets what it decorates."""
    parameters = function.params.params[module.classes.binds_first(function) :]
    return module.names.scope_of(function).bindings.get(parameters[0].name.value, []) if parameters else []


def _holder(module: Module, by: cst.BaseExpression) -> cst.CSTNode | None:
    """Return what made the object that a call, or a decorator, hands something to."""
    made = by.func if isinstance(by, cst.Call) else by
    if isinstance(made, cst.Attribute):
        return module.value(made.value).origin
    value = module.value(made)
    return by if value.kind is Kind.CLASS else value.origin


def _returned(module: Module, use: Use, way: _Way) -> Iterator[_Way]:
    """Yield the calls of a function that returns another one."""
    function = module.function(use.node)
    if function is None:
        return
    graph = module.inference.callgraph
    calls = list(module.callers(function))
    if isinstance(function, cst.FunctionDef):
        calls = list(dict.fromkeys((*calls, *graph.dispatched(function))))
    for call in calls:
        if _is_of_other(module, function, call, way.holder):
            continue
        onward = way.to(call, use.path)
        if way.key is None or way.key.scope.node is not function:
            yield onward
            continue
        for passed in graph.passed(call, function, way.key.name):
            word = None if passed.node is None else graph.word(passed.node)
            if word is None or word in way.words:
                yield replace(onward, key=None if passed.node is None else _parameter(module, passed.node))


def _is_of_other(module: Module, function: Function, call: cst.Call, holder: cst.CSTNode | None) -> bool:
    """Return whether a method is called of another object than the one that ``holder`` made."""
    if holder is None or not isinstance(call.func, cst.Attribute):
        return False
    made = module.value(holder).definition
    if not isinstance(made, cst.ClassDef) or function not in module.classes.info(made).methods.values():
        return False
    return module.value(call.func.value).origin not in (None, holder)


# --- out of tables ------------------------------------------------------------------------------------------


def _picked(module: Module, use: Use, way: _Way) -> Iterator[_Way]:
    """Yield where a function goes that a key picks out of a table; nothing if it is the key of another."""
    key, index = key_of(use), use.path[0]
    assert key is not None
    words = frozenset((index,)) if isinstance(index, str) else way.words
    wanted = module.inference.callgraph.word(key)
    if wanted is not None and words and wanted not in words:
        return
    parameter = _parameter(module, key) if words and wanted is None else None
    onward = replace(way, words=words, key=parameter) if parameter is not None else way
    yield from (replace(onward, standing=each) for each in following(module, use))


def _parameter(module: Module, node: cst.BaseExpression) -> Binding | None:
    """Return the parameter that an expression is."""
    bindings = module.bindings(node) if isinstance(node, cst.Name) else ()
    return bindings[0] if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None


def _outermost(module: Module, function: Function) -> cst.CSTNode:
    """Return the outermost function around one, or itself."""
    while (outer := module.function(function)) is not None:
        function = outer
    return function
