"""The loops around a place, within its function."""

from __future__ import annotations

from typing import cast

import libcst as cst

from torchlint.semantics.module import Module, Part
from torchlint.semantics.repetition import repeats_part
from torchlint.semantics.throttling import FUNCTIONS, LOOPS, Loop

_BLOCKS: frozenset[type] = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite})
_FUNCTIONS: frozenset[type] = frozenset(FUNCTIONS)
_REPEATING: frozenset[type] = frozenset(LOOPS)
_BOUNDS = _BLOCKS | _FUNCTIONS | _REPEATING | {cst.CompFor}


def loops_around(module: Module, node: cst.CSTNode) -> list[Loop]:
    """The loops and comprehensions around a node within its function, innermost first.

    The iterable of a ``for`` and its ``else`` are outside of it; the test of a ``while`` is inside.
    """
    return Loops.of(module).around(node)


class Loops(Part):
    """The loops of one file, by the places in them."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._block_loops: dict[cst.CSTNode, list[Loop]] = {}

    def around(self, node: cst.CSTNode) -> list[Loop]:
        """The loops around ``node`` within its function, innermost first.

        The iterable of a ``for`` and its ``else`` are outside of it; the test of a ``while`` is inside.
        """
        found: list[Loop] = []
        parents = self.tree.parents
        before: cst.CSTNode | None = None
        while True:
            child = self.tree.climb(node, _BOUNDS)
            parent = parents.get(child)
            # Exact types instead of isinstance: these walks are the most frequent thing done here.
            kind = parent.__class__
            if parent is None or (kind in _FUNCTIONS and getattr(parent, "body", None) is child):
                return found
            if kind in _BLOCKS:
                return [*found, *self._loops_around(parent)]
            # Of a comprehension the first iterable is told by the node before.
            if kind in _REPEATING and repeats_part(parent, child, before if child is node else None):
                found.append(cast(Loop, parent))
            before, node = child, parent

    def _loops_around(self, block: cst.CSTNode) -> list[Loop]:
        found = self._block_loops.get(block)
        if found is None:
            found = []
            parents = self.tree.parents
            child, parent = block, parents.get(block)
            if parent is not None and parent.__class__ not in _FUNCTIONS:
                if parent.__class__ in _REPEATING and repeats_part(parent, child, None):
                    found.append(cast(Loop, parent))
                found.extend(self.around(parent))
            self._block_loops[block] = found
        return found
