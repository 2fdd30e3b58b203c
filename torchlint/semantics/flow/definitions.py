"""Reaching definitions: which definitions of a variable may have been the last one before a place.

The textbook problem of data-flow analysis, solved as there (Aho, Lam, Sethi and Ullman, "Compilers", 2006,
section 9.2.4): each block generates definitions and kills those of the same variables, and what leaves the
blocks is led along the edges, in reverse postorder, until nothing changes. A set of definitions is the bits
of an integer, in which those of one variable are neighbours: all variables of a function are solved at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar

import libcst as cst

from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.graph import Block, Root

Variable = TypeVar("Variable", bound=Hashable)
Definition = TypeVar("Definition")
Bits: TypeAlias = int
_ENTRY = -1
"""The point before all others, at which parameters are bound."""


class ReachingDefinitions(Generic[Variable, Definition]):
    """The definitions that reach the places of a function, a lambda or the module.

    ``variables`` has for each variable the nodes that define it, in source order, and what each of them
    stands for; None if the variable is unbound from there on. A node that stands in no block of the graph,
    such as a parameter, is a definition at the entry.
    """

    def __init__(
        self,
        flow: ControlFlow,
        root: Root,
        variables: Mapping[Variable, Iterable[tuple[cst.CSTNode, Definition | None]]],
    ) -> None:
        self._flow, self._graph = flow, flow.of(root).graph
        self._definitions: list[Definition] = []
        self._firsts: dict[Variable, int] = {}
        """The number of the first definition of each variable."""
        self._masks: dict[Variable, Bits] = {}
        self._in_block: dict[tuple[Block, Variable], list[tuple[int, cst.CSTNode, Bits]]] = {}
        """The definitions of a variable in a block, in the order in which they run, with their points."""
        for variable, nodes in variables.items():
            self._enter(variable, nodes)
        self._at_start = self._solve(flow.of(root).successors)

    def reaching(self, variable: Variable, node: cst.CSTNode) -> list[Definition]:
        """Return the definitions of which one is in force when a node is evaluated, in source order."""
        return list(self._told(variable, self._bits(variable, node)))

    def few_reaching(self, variable: Variable, node: cst.CSTNode, most: int) -> list[Definition] | None:
        """Return what ``reaching`` does; None if there are more than ``most``."""
        bits = self._bits(variable, node)
        return None if bits.bit_count() > most else list(self._told(variable, bits))

    def at_end(self, variable: Variable) -> list[Definition]:
        """Return the definitions that are in force when the function comes to its normal end."""
        return list(self._told(variable, self._at_start[self._graph.exit] & self._masks[variable]))

    def _told(self, variable: Variable, bits: Bits) -> Iterator[Definition]:
        first = self._firsts[variable]
        bits >>= first
        while bits:
            lowest = bits & -bits
            yield self._definitions[first + lowest.bit_length() - 1]
            bits ^= lowest

    def _bits(self, variable: Variable, node: cst.CSTNode) -> Bits:
        bits = 0
        for point in self._flow.points(node, self._graph) or (_ENTRY,):
            bits |= self._before(variable, node, point)
        return bits

    def _before(self, variable: Variable, node: cst.CSTNode, point: int) -> Bits:
        """Return the definitions of a variable that reach a node at a point."""
        graph = self._graph
        block = graph.entry if point == _ENTRY else graph.blocks[point]
        above = self._in_block.get((block, variable), ())
        for number in range(bisect_right(above, point, key=itemgetter(0)) - 1, -1, -1):
            defined_at, by, bits = above[number]
            if defined_at < point or self._flow.evaluated_before(by, node):
                return bits
        return self._at_start[block] & self._masks[variable]

    def _enter(self, variable: Variable, nodes: Iterable[tuple[cst.CSTNode, Definition | None]]) -> None:
        """Give the definitions of a variable their bits and their places."""
        first = self._firsts[variable] = len(self._definitions)
        graph, in_block = self._graph, self._in_block
        places: list[tuple[int, cst.CSTNode, Bits]] = []
        for node, definition in nodes:
            bits = 0
            if definition is not None:
                bits = 1 << len(self._definitions)
                self._definitions.append(definition)
            points = self._flow.points(node, graph) or (_ENTRY,)
            places.extend((point, node, bits) for point in points)
        self._masks[variable] = (1 << len(self._definitions)) - (1 << first)
        places.sort(key=itemgetter(0))
        for place in places:
            point = place[0]
            block = graph.entry if point == _ENTRY else graph.blocks[point]
            above = in_block.setdefault((block, variable), [])
            at_once = above and above[-1][0] == point
            if at_once and self._flow.evaluated_before(place[1], above[-1][1]):
                above.insert(-1, place)  # ``x = (x := 1)``
            else:
                above.append(place)

    def _solve(self, successors: Sequence[Sequence[Block]]) -> list[Bits]:
        """Return what reaches the start of each block."""
        count = len(successors)
        generated, killed = [0] * count, [0] * count
        for (block, variable), places in self._in_block.items():
            generated[block] |= places[-1][2]
            killed[block] |= self._masks[variable]
        order = _reverse_postorder(successors, self._graph.entry)
        ranks = [0] * count
        for rank, block in enumerate(order):
            ranks[block] = rank
        at_start = [0] * count
        unsettled = bool(self._in_block)
        while unsettled:
            unsettled = False
            for block in order:
                at_end = at_start[block] & ~killed[block] | generated[block]
                for following in successors[block]:
                    before = at_start[following]
                    if at_end & ~before:
                        at_start[following] = before | at_end
                        unsettled = unsettled or ranks[following] <= ranks[block]
        return at_start


def _reverse_postorder(successors: Sequence[Sequence[Block]], root: Block) -> list[Block]:
    """Return the reachable blocks, each before its successors but for back edges of loops."""
    order: list[Block] = []
    found = [False] * len(successors)
    found[root] = True
    stack = [(root, iter(successors[root]))]
    while stack:
        block, following = stack[-1]
        for other in following:
            if not found[other]:
                found[other] = True
                stack.append((other, iter(successors[other])))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order
