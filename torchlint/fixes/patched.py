"""Whether edits concern names that another file, a test above all, puts something else in the place of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_WORD = re.compile(r"[^\W\d]\w*")


def touch_patched(module: Module, edits: Sequence[Edit]) -> bool:
    """Return whether a file of the project replaces a name that ``edits`` take out,
    or whose calls they change.

    ``mock.patch("package.module.Loader")`` fails without a ``Loader``, and the stand-in takes the arguments
    that the file passes today.
    """
    patched = module.link.patched() if module.link is not None else frozenset()
    text = module.tree.text
    if not patched or not edits:
        return False
    written = {word for edit in edits for word in _WORD.findall(edit.content)}
    old = {word for edit in edits for word in _WORD.findall(text[edit.span.start : edit.span.end])}
    return not patched.isdisjoint(old - written) or any(
        (name := last_name(call.func)) in patched and name in text and _changes(module, call, edits)
        for call in module.tree.nodes(cst.Call)
    )


def _changes(module: Module, call: cst.Call, edits: Sequence[Edit]) -> bool:
    """Return whether an edit lies between the parentheses of a call, and in those of no call within it."""
    tree = module.tree
    inner = [tree.span(node) for node in tree.descendants(call) if isinstance(node, cst.Call)][1:]
    start, end = tree.span(call.func).end, tree.span(call).end
    return any(
        start <= edit.span.start
        and edit.span.end <= end
        and edit.content.strip()
        and not any(span.start <= edit.span.start and edit.span.end < span.end for span in inner)
        for edit in edits
    )
