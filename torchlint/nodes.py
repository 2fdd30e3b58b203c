"""LibCST's node classes made quicker: how they are made, and instances built, checked, hashed and compared.

LibCST sets the fields of its frozen nodes by one call each, checks every node that the parser makes as if
it were built by hand, hashes nodes in Python code, and tells their types apart by the abstract base classes
of the standard library. Together that was a third of a check of a usual package. The classes stay what they
are, for other users of LibCST in the process as well; only that assigning to a field raises no longer.

Half of the time that LibCST takes to be imported goes into methods of these classes that are replaced or
taken out here, or that LibCST has written itself. Whoever imports this module before LibCST goes without.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache, partial
from typing import Any, TypeVar

_PARTS = "libcst._nodes."


# What the constructors see as global names: ``check``, and for each field its default or what makes it.
_globals: dict[str, Any] = {"check": True, "MISSING": MISSING}


def _build_first(node: Any, *args: Any, **kwargs: Any) -> None:
    """Stand in for the constructor of a node class until it is first called: most runs need few of them."""
    kind = type(node)
    exec(_constructor(kind), _globals)
    kind.__init__ = _globals[kind.__name__]
    kind.__init__(node, *args, **kwargs)


def _constructor(kind: type) -> str:
    """Return the code of a function that does what the ``__init__`` of a node class does."""
    parameters, body = ["self"], []
    for field in fields(kind):
        parameter, value = _parameter(kind, field)
        parameters.append(parameter)
        body.append(f"    self.{field.name} = {value}")
    body.append("    if check: self.__post_init__()")
    return f"def {kind.__name__}({', '.join(parameters)}):\n" + "\n".join(body)


def _parameter(kind: type, field: Field[Any]) -> tuple[str, str]:
    """Return a field as a parameter of the constructor, and what the constructor stores in it."""
    name, beside = field.name, f"{kind.__name__}_{field.name}"
    if field.default is not MISSING:
        _globals[beside] = field.default
        return f"{name}={beside}", name
    if field.default_factory is not MISSING:
        _globals[beside] = field.default_factory
        return f"{name}=MISSING", f"{beside}() if {name} is MISSING else {name}"
    return name, name


# --- the classes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frozen:
    """Declared as LibCST declares its nodes."""


def _declared(kind: type | None = None, /, **options: Any) -> Any:
    """Do what `dataclass` does, except that of a node class only the fields are found out."""
    if kind is None:
        return partial(_declared, **options)
    if kind.__module__.startswith(_PARTS) and options == {"frozen": True}:
        made: Any = dataclass(kind, init=False, repr=False, eq=False)
        if fields(made):
            made.__init__ = _build_first
        return made
    return dataclass(kind, **options)


def _import() -> None:
    dataclasses.dataclass = _declared
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass = dataclass


_import()

import libcst as cst  # noqa: E402

Node = TypeVar("Node", bound=cst.CSTNode)


@contextmanager
def unchecked() -> Iterator[None]:
    """Switch off LibCST's checks of new nodes, which take a fifth of the time of a parse.

    They are for trees built by hand; what the parser makes is valid.
    """
    _globals["check"] = False
    try:
        yield
    finally:
        _globals["check"] = True


def bare(kind: type[Node], *names: str) -> Callable[..., Node]:
    """Return a function that makes nodes of a class from these fields, given by position,
    and sets no other.
    """
    return _maker(names)(object.__new__, kind) if names else partial(object.__new__, kind)


@cache
def _maker(names: tuple[str, ...]) -> Callable[..., Callable[..., Any]]:
    body = "".join(f"        node.{name} = {name}\n" for name in names)
    code = f"def make({', '.join(names)}):\n        node = new(kind)\n{body}        return node\n"
    space: dict[str, Any] = {}
    exec(f"def maker(new, kind):\n    {code}    return make\n", space)
    maker: Callable[..., Callable[..., Any]] = space["maker"]
    return maker


class _NodeType(ABCMeta):
    """The type of the node classes: no class is registered with them, so that inheritance decides."""

    __instancecheck__ = type.__instancecheck__


def _quicken() -> None:
    waiting: list[type] = [cst.CSTNode]
    kinds: dict[type, None] = {}
    while waiting:
        kind = waiting.pop()
        # LibCST makes each class twice, the second time with slots, and drops the first.
        module = kind.__module__
        if module.startswith("libcst.") and getattr(sys.modules[module], kind.__name__, None) is kind:
            kinds[kind] = None
        waiting.extend(kind.__subclasses__())
    own = cst.CSTNode.__hash__
    declared: Any = _Frozen
    for kind in kinds:
        kind.__class__ = _NodeType
        if vars(kind).get("__hash__") is own:
            kind.__hash__ = object.__hash__  # type: ignore[assignment]
        for guard in ("__setattr__", "__delattr__"):
            if guard in vars(kind):
                delattr(kind, guard)
        if "__dataclass_fields__" in vars(kind):
            kind.__dataclass_params__ = declared.__dataclass_params__  # type: ignore[attr-defined]
            if fields(kind):
                kind.__init__ = _build_first  # type: ignore[misc]
    cst.Integer.evaluated_value = property(_number)  # type: ignore[method-assign,assignment]
    cst.SimpleString.evaluated_value = property(_text)  # type: ignore[method-assign,assignment]


def _number(node: cst.Integer) -> int:
    """Return the value of a number, without the compiler where it has digits only."""
    text = node.value
    return int(text) if text.isdecimal() else int(literal_eval(text))


def _text(node: cst.SimpleString) -> str | bytes:
    """Return the value of a string, without the compiler where it is as it is spelt."""
    text = node.value
    quote = text[0]
    if quote in "'\"" and "\\" not in text and text[1:3] != quote * 2:
        return text[1:-1]
    value: str | bytes = literal_eval(text)
    return value


_quicken()
