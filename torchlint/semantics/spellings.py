"""The one word by which an expression goes, for conventions of naming."""

from __future__ import annotations

import libcst as cst


def last_name(node: cst.CSTNode) -> str | None:
    """The word that names an expression: the last of a dotted name, of the function that is called, or
    the key of ``config["verbose"]``; None if no one word does."""
    match node:
        case cst.Name():
            return node.value
        case cst.Attribute():
            return node.attr.value
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            text = key.evaluated_value
            return text if isinstance(text, str) else None
        case cst.Call():
            return last_name(node.func)
        case _:
            return None
