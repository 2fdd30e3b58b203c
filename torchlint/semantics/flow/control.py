"""What runs before what, and behind which decisions: the questions that control-flow graphs answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from torchlint.semantics.flow.dominance import NONE, DominatorTree
from torchlint.semantics.flow.graph import Block, Decision, Graph, Root, build, choices
from torchlint.syntax import SyntaxTree

_FUNCTIONS: frozenset[type] = frozenset({cst.FunctionDef, cst.Lambda})
# Fields that are evaluated before those in front of them.
_FIRST = {cst.Assign: "value", cst.AnnAssign: "value", cst.NamedExpr: "value", cst.IfExp: "test"}


class FunctionFlow:
    """The graph of one function with what is found out of it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def dominators(self) -> DominatorTree:
        """The dominators, from the entry; unreachable code has them as if control ran on into it."""
        graph = self.graph
        live = _reachable(graph.successors, graph.entry)
        successors = [
            following if live[block] else [other for other in following if not live[other]]
            for block, following in enumerate(graph.successors)
        ]
        for block, behind in graph.fallthrough:
            if not live[behind]:
                successors[block] = [*successors[block], behind]
        return DominatorTree(successors, graph.entry)

    @cached_property
    def nearest_decisions(self) -> list[Block]:
        """For each block the nearest that dominates it and has a decision, itself among them."""
        return self.dominators.nearest(self.graph.decisions)

    @cached_property
    def postdominators(self) -> DominatorTree:
        """The dominators of the reversed graph, from the normal end of the function.

        An exception that leaves the function, and a loop without end, are followed only from what cannot
        come to the normal end.
        """
        graph = self.graph
        count = len(graph.successors)
        predecessors: list[list[Block]] = [[] for _ in range(count)]
        for block, following in enumerate(graph.successors):
            for other in following:
                predecessors[other].append(block)
        ends = [graph.exit, graph.raised, *graph.latches.values(), *range(count)]
        ranks, roots = [NONE] * count, []
        for rank, end in enumerate(ends):
            if ranks[end] != NONE:
                continue
            roots.append(end)
            ranks[end] = rank
            stack = [end]
            while stack:
                for other in predecessors[stack.pop()]:
                    if ranks[other] == NONE:
                        ranks[other] = rank
                        stack.append(other)
        backwards = [
            [other for other in before if ranks[other] >= ranks[block]]
            for block, before in enumerate(predecessors)
        ]
        return DominatorTree([*backwards, roots], count)


class ControlFlow:
    """The control-flow graphs of one file, each built when it is first asked for."""

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree
        self._flows: dict[Root, FunctionFlow] = {}

    @cached_property
    def _branching(self) -> frozenset[cst.CSTNode]:
        return choices(self.tree)

    def root(self, node: cst.CSTNode) -> Root:
        """The function, lambda or module whose code evaluates a node; defaults belong to the code around."""
        for child, function in self.tree.edges(node, _FUNCTIONS):
            if child is function.body:  # type: ignore[attr-defined]
                return function  # type: ignore[return-value]
        return self.tree.root

    def of(self, root: Root) -> FunctionFlow:
        """The graph of a function, a lambda or the module."""
        found = self._flows.get(root)
        if found is None:
            found = self._flows[root] = FunctionFlow(build(self.tree, root, self._branching))
        return found

    def _points(self, node: cst.CSTNode, graph: Graph) -> tuple[int, ...]:
        """The points at which a node runs; several for code that is in the graph more than once."""
        numbers, parents = graph.numbers, self.tree.parents
        place: cst.CSTNode | None = node
        while place is not None:
            found = numbers.get(place)
            if found is not None:
                return found
            place = parents.get(place)
        return ()

    def decisions(self, node: cst.CSTNode) -> Iterator[Decision]:
        """The decisions on every way to a node within its function, the nearest first."""
        flow = self.of(self.root(node))
        graph, dominators = flow.graph, flow.dominators
        blocks = [graph.blocks[point] for point in self._points(node, graph)]
        block = flow.nearest_decisions[blocks[0]] if blocks else NONE
        while block != NONE:
            if all(dominators.dominates(block, other) for other in blocks):
                yield graph.decisions[block]
            above = dominators.parent(block)
            block = flow.nearest_decisions[above] if above != NONE else NONE

    def certainly_before(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether ``one`` has run whenever ``other`` begins, in the same run of their function.

        A compound statement runs as soon as its header does.
        """
        root = self.root(one)
        if root is not self.root(other):
            return False
        flow = self.of(root)
        graph, dominators = flow.graph, flow.dominators
        earlier, later = self._points(one, graph), self._points(other, graph)

        def precedes(before: int, after: int) -> bool:
            if before == after:
                return self._evaluated_before(one, other)
            first, second = graph.blocks[before], graph.blocks[after]
            return before < after if first == second else dominators.dominates(first, second)

        return bool(later) and all(any(precedes(before, after) for before in earlier) for after in later)

    def _evaluated_before(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Whether of two nodes at the same point one is evaluated first."""
        tree = self.tree
        if tree.contains(one, other):
            return False
        if tree.contains(other, one):
            return True
        child, around = one, tree.parents[one]
        while not tree.contains(around, other):
            child, around = around, tree.parents[around]
        first = getattr(around, _FIRST.get(around.__class__, ""), None)
        if first is not None and (first is child or tree.contains(first, other)):
            return first is child
        return tree.order[child] < tree.order[other]


def _reachable(successors: list[list[Block]], root: Block) -> list[bool]:
    found = [False] * len(successors)
    found[root] = True
    stack = [root]
    while stack:
        for following in successors[stack.pop()]:
            if not found[following]:
                found[following] = True
                stack.append(following)
    return found
