"""LibCST's node classes made quicker: how their instances are built, checked, hashed and told apart.

LibCST sets the fields of its frozen nodes by one call each, checks every node that the parser makes as if
it were built by hand, hashes nodes in Python code, and tells their types apart by the abstract base classes
of the standard library. Together that was a third of a check of a usual package. The classes stay what they
are, for other users of LibCST in the process as well; only that assigning to a field raises no longer.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

import libcst as cst

Node = TypeVar("Node", bound=cst.CSTNode)

# What the constructors see as global names: ``check``, and for each field its default or what makes it.
_globals: dict[str, Any] = {"check": True, "MISSING": MISSING}


@contextmanager
def unchecked() -> Iterator[None]:
    """LibCST's checks of new nodes switched off, a fifth of the time of a parse.

    They are for trees built by hand; what the parser makes is valid.
    """
    _globals["check"] = False
    try:
        yield
    finally:
        _globals["check"] = True


def bare(kind: type[Node], *names: str) -> Callable[..., Node]:
    """A function that makes nodes of a class from these fields, given by position, and sets no other."""
    body = "".join(f"    node.{name} = {name}\n" for name in names)
    space: dict[str, Any] = {"new": object.__new__, "kind": kind}
    exec(f"def make({', '.join(names)}):\n    node = new(kind)\n{body}    return node\n", space)
    make: Callable[..., Node] = space["make"]
    return make


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
    built = [kind for kind in kinds if "__init__" in vars(kind) and fields(kind)]
    exec("\n".join(map(_constructor, built)), _globals)
    for kind in kinds:
        kind.__class__ = _NodeType
        if vars(kind).get("__hash__") is own:
            kind.__hash__ = object.__hash__  # type: ignore[assignment]
        for guard in ("__setattr__", "__delattr__"):
            if guard in vars(kind):
                delattr(kind, guard)
    cst.Integer.evaluated_value = property(_number)  # type: ignore[method-assign,assignment]
    cst.SimpleString.evaluated_value = property(_text)  # type: ignore[method-assign,assignment]
    for kind in built:
        kind.__init__ = _globals[kind.__name__]  # type: ignore[misc]


def _number(node: cst.Integer) -> int:
    """The value of a number, without the compiler where it has digits only."""
    text = node.value
    return int(text) if text.isdecimal() else int(literal_eval(text))


def _text(node: cst.SimpleString) -> str | bytes:
    """The value of a string, without the compiler where it is as it is spelt."""
    text = node.value
    quote = text[0]
    if quote in "'\"" and "\\" not in text and text[1:3] != quote * 2:
        return text[1:-1]
    value: str | bytes = literal_eval(text)
    return value


def _constructor(kind: type) -> str:
    """The code of a function that does what the ``__init__`` of a node class does."""
    parameters, body = ["self"], []
    for field in fields(kind):
        parameter, value = _parameter(kind, field)
        parameters.append(parameter)
        body.append(f"    self.{field.name} = {value}")
    body.append("    if check: self.__post_init__()")
    return f"def {kind.__name__}({', '.join(parameters)}):\n" + "\n".join(body)


def _parameter(kind: type, field: Field[Any]) -> tuple[str, str]:
    """A field as a parameter of the constructor, and what the constructor stores in it."""
    name, beside = field.name, f"{kind.__name__}_{field.name}"
    if field.default is not MISSING:
        _globals[beside] = field.default
        return f"{name}={beside}", name
    if field.default_factory is not MISSING:
        _globals[beside] = field.default_factory
        return f"{name}=MISSING", f"{beside}() if {name} is MISSING else {name}"
    return name, name


_quicken()
