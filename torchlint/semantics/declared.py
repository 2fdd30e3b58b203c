"""Names that the configuration declares: dotted patterns, such as ``gpu_sync_allowed`` and ``self.*_cpu``.

A pattern fits what the code writes, and what it imports under that name, if it fits the last parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

import libcst as cst

from torchlint.semantics.names import dotted_text
from torchlint.semantics.spellings import start_of

if TYPE_CHECKING:
    from torchlint.semantics.names import Names


class Declared(Protocol):
    """The names of the configuration."""

    @property
    def allowed_sync_contexts(self) -> tuple[str, ...]:
        """Names of contexts in which the host may wait for the device."""

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names of variables and attributes whose tensors are in host memory."""

    @property
    def device_names(self) -> tuple[str, ...]:
        """Names of variables and attributes whose tensors are on the accelerator."""

    @property
    def known_async_helpers(self) -> tuple[str, ...]:
        """Names of functions that copy to the device without blocking the host."""


def is_declared(names: Names, node: cst.Name | cst.Attribute, patterns: Sequence[str]) -> bool:
    """Return whether a name or attribute is one of those that the patterns are about."""
    return bool(patterns) and any(_fits(written, patterns) for written in _spellings(names, node))


def defines_declared(
    path: PurePath | None, owner: str | None, function: cst.FunctionDef, patterns: Sequence[str]
) -> bool:
    """Return whether a function of a file, a method of ``owner`` perhaps, has one of the names."""
    file = path.with_suffix("").parts if path is not None else ()
    return _fits(".".join((*file, *([owner] if owner else []), function.name.value)), patterns)


def _fits(written: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(written, each) or fnmatchcase(written, f"*.{each}") for each in patterns)


def _spellings(names: Names, node: cst.Name | cst.Attribute) -> Iterator[str]:
    dotted = dotted_text(node)
    if dotted is None:
        if isinstance(node, cst.Attribute):
            yield node.attr.value
        return
    yield dotted
    root = start_of(node, cst.Attribute)
    if isinstance(root, cst.Name):
        for binding in names.bindings(root):
            if binding.imported is not None:
                yield binding.imported + dotted[len(root.value) :]
