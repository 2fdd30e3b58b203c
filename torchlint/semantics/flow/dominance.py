"""Dominators of a graph, by the algorithm of Lengauer and Tarjan.

Thomas Lengauer and Robert Endre Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph", ACM
Transactions on Programming Languages and Systems 1(1), 1979: the simple version, which takes a logarithmic
step for each edge. The iteration of Cooper, Harvey and Kennedy (2001) is shorter, but its time grows with the
square of the length of a ``try`` block, each statement of which has an edge to the handlers.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

NONE = -1
"""Stands for no node."""


class DominatorTree:
    """Which nodes of a graph lie on every way from its root to a node.

    ``successors`` has for each node those that may come next. Nothing dominates a node that cannot be
    reached, and it dominates nothing.
    """

    __slots__ = ("_begin", "_end", "_order", "_parents")

    def __init__(self, successors: Sequence[Sequence[int]], root: int) -> None:
        vertices, parents, numbers = _depth_first(successors, root)
        immediate = _immediate_dominators(successors, vertices, parents, numbers)
        count = len(vertices)
        sizes = [1] * count
        for number in range(count - 1, 0, -1):
            sizes[immediate[number]] += sizes[number]
        # The nodes that a node dominates have the numbers from its own to the end of its subtree.
        begins, free = [0] * count, [1] * count
        self._order = vertices
        self._parents = [NONE] * len(successors)
        self._begin = [NONE] * len(successors)
        self._end = [NONE] * len(successors)
        for number, vertex in enumerate(vertices):
            if number:
                above = immediate[number]
                begins[number] = free[above]
                free[above] += sizes[number]
                free[number] = begins[number] + 1
                self._parents[vertex] = vertices[above]
            self._begin[vertex] = begins[number]
            self._end[vertex] = begins[number] + sizes[number]

    def reached(self, node: int) -> bool:
        """Return whether there is a way from the root to a node."""
        return self._begin[node] != NONE

    def dominates(self, one: int, other: int) -> bool:
        """Return whether every way to ``other`` leads through ``one``, which may be the same."""
        return self._begin[one] <= self._begin[other] < self._end[one] and self._begin[one] != NONE

    def parent(self, node: int) -> int:
        """Return the immediate dominator of a node; ``NONE`` for the root."""
        return self._parents[node]

    def nearest(self, chosen: Container[int]) -> list[int]:
        """Return for each node the nearest chosen one that dominates it, itself included, or ``NONE``."""
        found = [NONE] * len(self._parents)
        for node in self._order:
            above = self._parents[node]
            found[node] = node if node in chosen else found[above] if above != NONE else NONE
        return found


def _depth_first(successors: Sequence[Sequence[int]], root: int) -> tuple[list[int], list[int], list[int]]:
    """Return the nodes in depth-first order, the number of each one's parent, and the numbers."""
    numbers = [NONE] * len(successors)
    vertices: list[int] = []
    parents: list[int] = []
    stack = [(root, 0)]
    while stack:
        node, parent = stack.pop()
        if numbers[node] != NONE:
            continue
        number = numbers[node] = len(vertices)
        vertices.append(node)
        parents.append(parent)
        stack.extend((following, number) for following in successors[node] if numbers[following] == NONE)
    return vertices, parents, numbers


def _immediate_dominators(
    successors: Sequence[Sequence[int]], vertices: list[int], parents: list[int], numbers: list[int]
) -> list[int]:
    """Return the immediate dominator of each node; all in the numbers of the search."""
    count = len(vertices)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for number, vertex in enumerate(vertices):
        for following in successors[vertex]:
            predecessors[numbers[following]].append(number)
    semi = list(range(count))
    label = list(range(count))
    ancestor = [NONE] * count
    buckets: list[list[int]] = [[] for _ in range(count)]
    immediate = [0] * count

    def evaluate(node: int) -> int:
        """Return the node with the smallest semidominator on the way up the forest, which is compressed."""
        if ancestor[node] == NONE:
            return node
        path: list[int] = []
        current = node
        while ancestor[ancestor[current]] != NONE:
            path.append(current)
            current = ancestor[current]
        for current in reversed(path):
            above = ancestor[current]
            if semi[label[above]] < semi[label[current]]:
                label[current] = label[above]
            ancestor[current] = ancestor[above]
        return label[node]

    for node in range(count - 1, 0, -1):
        parent = parents[node]
        for predecessor in predecessors[node]:
            semi[node] = min(semi[node], semi[evaluate(predecessor)])
        buckets[semi[node]].append(node)
        ancestor[node] = parent
        for waiting in buckets[parent]:
            best = evaluate(waiting)
            immediate[waiting] = best if semi[best] < semi[waiting] else parent
        buckets[parent] = []
    for node in range(1, count):
        if immediate[node] != semi[node]:
            immediate[node] = immediate[immediate[node]]
    return immediate
