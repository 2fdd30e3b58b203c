"""How expressions and calls are spelt: the word that names an expression, what a call writes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import libcst as cst

_Node = TypeVar("_Node", cst.BaseExpression, cst.CSTNode)


def last_name(node: cst.CSTNode) -> str | None:
    """Return the word that names an expression: the last of a dotted name, of the function that is called, or
    the key of ``config["verbose"]`` and ``getattr(config, "verbose", False)``; None if no one word does."""
    while isinstance(node, cst.Call):
        match node:
            case cst.Call(func=cst.Name("getattr"), args=[_, cst.Arg(value=cst.SimpleString() as key), *_]):
                return key.raw_value
        node = node.func
    match node:
        case cst.Name():
            return node.value
        case cst.Attribute():
            return node.attr.value
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            text = key.evaluated_value
            return text if isinstance(text, str) else None
        case _:
            return None


def word_of(node: cst.CSTNode) -> str:
    """Return the last word of a name or of an attribute; nothing of any other expression."""
    return last_name(node) or "" if isinstance(node, (cst.Name, cst.Attribute)) else ""


def start_of(node: _Node, *links: type[cst.Attribute | cst.Subscript]) -> _Node:
    """Return what a chain of attributes or items starts from: ``start_of(a.b.c, cst.Attribute)`` is ``a``."""
    while isinstance(node, links):
        node = node.value
    return node


def is_none(node: cst.CSTNode | None) -> bool:
    """Return whether a node is spelt ``None``."""
    return isinstance(node, cst.Name) and node.value == "None"


def given_as(call: cst.Call, name: str, position: int | None) -> cst.BaseExpression | None:
    """Return what a call spells out for a parameter, by keyword or by place (None: by keyword only)."""
    for index, arg in enumerate(call.args):
        if arg.star:
            return None
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword == name or (keyword is None and index == position):
            return arg.value
    return None


def keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Return what a call spells out by keyword."""
    return {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """Return what a call spells out by place, what it unpacks included."""
    return [arg.value for arg in call.args if arg.keyword is None]


def parts_of_display(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return the expressions in a list or tuple as it is spelt; of any other expression, itself."""
    return [e.value for e in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else [node]


def last_words(dotted: Iterable[str]) -> frozenset[str]:
    """Return the last words of some dotted names: what calls of them are spelt with, as a rule."""
    return frozenset(name.rpartition(".")[2] for name in dotted)


def is_place_of_model(attribute: cst.Attribute) -> bool:
    """Return whether it is ``next(model.parameters()).device``, which asks where a model is."""
    match attribute:
        case cst.Attribute(
            value=cst.Call(func=cst.Name("next"), args=[cst.Arg(value=asked)]), attr=cst.Name("device")
        ):
            if isinstance(asked, cst.Call) and last_name(asked) == "iter" and len(asked.args) == 1:
                asked = asked.args[0].value
            return isinstance(asked, cst.Call) and (last_name(asked) or "").endswith("parameters")
    return False
