"""Names that the configuration declares: dotted patterns, such as ``gpu_sync_allowed`` and ``self.*_cpu``.

A pattern fits what the code writes, and what it imports under that name, if it fits the last parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import dotted_text

if TYPE_CHECKING:
    from torchlint.semantics.names import Names


def is_declared(names: Names, node: cst.Name | cst.Attribute, patterns: Sequence[str]) -> bool:
    """Whether a name or attribute is one of those that the patterns are about."""
    return any(
        fnmatchcase(written, pattern) or fnmatchcase(written, f"*.{pattern}")
        for written in (_spellings(names, node) if patterns else ())
        for pattern in patterns
    )


def _spellings(names: Names, node: cst.Name | cst.Attribute) -> Iterator[str]:
    dotted = dotted_text(node)
    if dotted is None:
        if isinstance(node, cst.Attribute):
            yield node.attr.value
        return
    yield dotted
    root: cst.CSTNode = node
    while isinstance(root, cst.Attribute):
        root = root.value
    if isinstance(root, cst.Name):
        for binding in names.bindings(root):
            if binding.imported is not None:
                yield binding.imported + dotted[len(root.value) :]
