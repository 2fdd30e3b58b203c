"""Reachability in the call graph of a file, computed for all of its code at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

Node = TypeVar("Node", bound=Hashable)
Fact = TypeVar("Fact", bound=Hashable)


class Reach:
    """Which code holds one of some ``marks``, or calls functions of the file that do."""

    def __init__(self, module: Module, marks: Iterable[cst.CSTNode]) -> None:
        self.module, self.tree = module, module.tree
        self._marks = set(marks)

    def holds(self, node: cst.CSTNode) -> bool:
        """Return whether a mark lies below ``node``, or in a function that code below it leads to."""
        return self.tree.holds(node, self._leading)

    @cached_property
    def _leading(self) -> list[cst.CSTNode]:
        """The marks and all calls that lead to one, in source order."""
        found = set(self._marks)
        passed: set[cst.CSTNode] = set()
        waiting = list(found)
        while waiting:
            child = waiting.pop()
            for around in self.tree.ancestors(child):
                if around in passed:
                    break
                passed.add(around)
                if isinstance(around, FUNCTIONS) and child is around.body:
                    calls = [call for call in runs(self.module).get(around, ()) if call not in found]
                    found.update(calls)
                    waiting.extend(calls)
                child = around
        return sorted(found, key=self.tree.order.__getitem__)

    def each_round(self, holder: cst.CSTNode) -> bool:
        """Return whether each round of a loop, or call of a function, gets to a mark outside of loops."""
        return holder in self._each_round

    @cached_property
    def _each_round(self) -> set[cst.CSTNode]:
        """The nodes that come to a mark whenever they run."""
        found: set[cst.CSTNode] = set()
        waiting = list(self._marks)
        while waiting:
            call = waiting.pop()
            loop = next(iter(self.module.flow.loops(call)), None)
            for around in self.tree.ancestors(call):
                if around not in found:
                    found.add(around)
                    waiting.extend(runs(self.module).get(around, ()))
                if around is loop:
                    break
        return found


@remembered
def runs(module: Module) -> dict[cst.CSTNode, list[cst.Call]]:
    """Return by its function: the calls that certainly run it."""
    found: dict[cst.CSTNode, list[cst.Call]] = {}
    for call in module.tree.nodes(cst.Call):
        callee: Function | None = module.callee(call)
        if callee is not None:
            found.setdefault(callee, []).append(call)
    return found


def ways_in(
    module: Module, function: Function, closed: Callable[[Function], bool]
) -> Iterator[tuple[Function, tuple[cst.Call, ...]]]:
    """Yield a function and those that lead to it, the nearest first, each with the calls on a shortest way.

    Functions that are ``closed``, and what only leads there by way of them, are left out.
    """
    waiting: deque[tuple[Function, tuple[cst.Call, ...]]] = deque([(function, ())])
    seen: set[Function] = {function}
    while waiting:
        current, way = waiting.popleft()
        if closed(current):
            continue
        yield current, way
        for call in module.callers(current):
            outer = module.function(call)
            if outer is not None and outer not in seen:
                seen.add(outer)
                waiting.append((outer, (call, *way)))


def components(
    start: Node, onward: Callable[[Node], Iterable[Node]], known: Container[Node]
) -> Iterator[list[Node]]:
    """Yield what is reached from ``start`` and not ``known`` yet, in strongly connected components.

    Each has the nodes that lead to one another, and comes after all those that it leads to (R. E. Tarjan,
    Depth-first search and linear graph algorithms, 1972). The order within one depends on ``start``.
    """
    numbers: dict[Node, int] = {}
    lows: dict[Node, int] = {}
    open_nodes: dict[Node, None] = {}
    under_way: list[tuple[Node, Iterator[Node]]] = []

    def enter(node: Node) -> None:
        numbers[node] = lows[node] = len(numbers)
        open_nodes[node] = None
        under_way.append((node, iter(onward(node))))

    if start not in known:
        enter(start)
    while under_way:
        node, following = under_way[-1]
        for other in following:
            if other in open_nodes:
                lows[node] = min(lows[node], numbers[other])
            elif other not in numbers and other not in known:
                enter(other)
                break
        else:
            under_way.pop()
            if under_way:
                holder = under_way[-1][0]
                lows[holder] = min(lows[holder], lows[node])
            if lows[node] == numbers[node]:
                members: list[Node] = []
                while node in open_nodes:
                    members.append(open_nodes.popitem()[0])
                yield members


def gathered(
    start: Node,
    look: Callable[[Node], tuple[Iterable[Fact], Iterable[Node]]],
    known: dict[Node, frozenset[Fact]],
) -> frozenset[Fact]:
    """Return all facts at ``start`` and at what is reached from there;
    ``look`` tells the facts and the next ones.

    ``known`` has the answers of before, and is given those for everything on the way: nodes that lead to one
    another have the same.
    """
    seen: dict[Node, tuple[Iterable[Fact], list[Node]]] = {}

    def onward(node: Node) -> list[Node]:
        facts, following = look(node)
        seen[node] = facts, list(following)
        return seen[node][1]

    for members in components(start, onward, known):
        found: set[Fact] = set()
        for member in members:
            facts, following = seen.pop(member)
            found.update(facts)
            for other in following:
                found |= known.get(other, frozenset())
        known.update(dict.fromkeys(members, frozenset(found)))
    return known[start]
