"""What runs before what, and behind which decisions: the questions that control-flow graphs answer."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.dominance import NONE, DominatorTree
from torchlint.semantics.flow.graph import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    Block,
    Decision,
    Graph,
    Loop,
    Root,
    StatementLoop,
    build,
    choices,
)
from torchlint.semantics.linked import Link
from torchlint.semantics.remembered import remembered
from torchlint.syntax import STATEMENTS, SyntaxTree

_FUNCTIONS: frozenset[type] = frozenset(FUNCTIONS)
_LOOPS: frozenset[type] = frozenset(LOOPS)
_SUITES: frozenset[type] = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite})
_BLOCKS = _SUITES | {cst.Module}
_AROUND_LOOPS = _SUITES | _FUNCTIONS | _LOOPS | {cst.CompFor}
_CONTEXTS: frozenset[type] = _FUNCTIONS | {cst.With}
_TRIES: frozenset[type] = _FUNCTIONS | {cst.Try, cst.TryStar}
_TESTING = STATEMENTS | {cst.IfExp, cst.CompIf}
_CHOOSING: frozenset[type] = frozenset(
    {cst.If, cst.IfExp, cst.BooleanOperation, cst.Assert, cst.MatchCase, *COMPREHENSIONS}
)
"""What makes decisions on its parts, ``while`` left out."""
# Fields that are evaluated before those in front of them.
_FIRST = {cst.Assign: "value", cst.AnnAssign: "value", cst.NamedExpr: "value", cst.IfExp: "test"}

_FAR = 40
"""How far a node may lie below what has a point before its own is noted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Where a fact holds in a function: ``at`` each of its points, and at the ``far`` end of all ways.

    The far end is where the function ends for what holds before a point, and where it starts for what holds
    behind one.
    """

    at: Sequence[bool]
    far: bool


class FunctionFlow:
    """The graph of one function with what is found out of it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def live(self) -> list[bool]:
        """Of each block whether control can come to it."""
        return _reachable(self.graph.successors, self.graph.entry)

    @cached_property
    def successors(self) -> list[list[Block]]:
        """What follows each block, such that control runs on into unreachable code, but not out of it."""
        graph, live = self.graph, self.live
        successors = [
            following if live[block] else [other for other in following if not live[other]]
            for block, following in enumerate(graph.successors)
        ]
        for block, behind in graph.fallthrough:
            if not live[behind]:
                successors[block] = [*successors[block], behind]
        return successors

    @cached_property
    def dominators(self) -> DominatorTree:
        """The dominators, from the entry; unreachable code has them as if control ran on into it."""
        return DominatorTree(self.successors, self.graph.entry)

    @cached_property
    def nearest_decisions(self) -> list[Block]:
        """For each block the nearest that dominates it and has a decision, itself among them."""
        return self.dominators.nearest(self.graph.decisions)

    @cached_property
    def nearest_alternatives(self) -> list[Block]:
        """As ``nearest_decisions``, for the handlers and cases."""
        return self.dominators.nearest(self.graph.alternatives)

    @cached_property
    def predecessors(self) -> list[list[Block]]:
        """For each block those that it may follow."""
        found: list[list[Block]] = [[] for _ in self.graph.successors]
        for block, following in enumerate(self.graph.successors):
            for other in following:
                found[other].append(block)
        return found

    @cached_property
    def _handlers(self) -> frozenset[Block]:
        """The blocks at which an exception is caught."""
        alternatives = self.graph.alternatives
        return frozenset(block for block, node in alternatives.items() if not isinstance(node, cst.MatchCase))

    @cached_property
    def continuing(self) -> dict[cst.CSTNode, frozenset[Block]]:
        """For each loop the blocks behind which another iteration may follow, unless they raise."""
        graph = self.graph
        return {
            loop: self._leading_to(latch, without=graph.heads[loop]) for loop, latch in graph.latches.items()
        }

    @cached_property
    def lasting(self) -> frozenset[Block]:
        """The blocks behind which a function may end normally, or go on for ever, unless they raise."""
        graph = self.graph
        latches = (latch for loop, latch in graph.latches.items() if isinstance(loop, cst.While))
        yields = (
            block
            for node, block in zip(graph.points, graph.blocks, strict=True)
            if isinstance(node, cst.Yield)
        )
        return self._leading_to(graph.exit, *latches, *yields)

    def lasts(self, block: Block) -> bool:
        """Return whether a block is entered without an exception, and does not certainly end with one."""
        return block not in self._handlers and (block in self.lasting or block == self.graph.exit)

    @cached_property
    def backwards(self) -> list[Block]:
        """The blocks, each behind those that follow it in the same iteration of the loops around."""
        latches, found = set(self.graph.latches.values()), list[Block]()
        seen = {self.graph.entry}
        stack = [(self.graph.entry, iter(self.graph.successors[self.graph.entry]))]
        while stack:
            block, following = stack[-1]
            onward = next((each for each in following if each not in seen and block not in latches), None)
            if onward is None:
                found.append(block)
                stack.pop()
            else:
                seen.add(onward)
                stack.append((onward, iter(self.graph.successors[onward])))
        return found

    def _leading_to(self, *ends: Block, without: Block = NONE) -> frozenset[Block]:
        """Return the blocks from which others are reached, not through ``without`` nor by an exception."""
        found, stack = set(ends), list(ends)
        while stack:
            block = stack.pop()
            if block in self._handlers or block == without:
                continue
            for before in self.predecessors[block]:
                if before not in found:
                    found.add(before)
                    stack.append(before)
        return frozenset(found)

    @cached_property
    def postdominators(self) -> DominatorTree:
        """The dominators of the reversed graph, from the normal end of the function.

        An exception that leaves the function, and a loop without end, are followed only from what cannot
        come to the normal end.
        """
        graph, predecessors = self.graph, self.predecessors
        count = len(predecessors)
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

    def __init__(self, tree: SyntaxTree, fixpoint: Fixpoint[Any, Any], link: Link | None = None) -> None:
        self.tree, self.fixpoint, self.link = tree, fixpoint, link

    @staticmethod
    def counterpart(module: Any) -> ControlFlow:
        """Return the control flow of a module."""
        flow: ControlFlow = module.flow
        return flow

    @cached_property
    def _choices(self) -> frozenset[cst.CSTNode]:
        """What is taken apart because it has a choice in it."""
        return choices(self.tree)

    def root(self, node: cst.CSTNode) -> Root:
        """Return the function, lambda or module whose code evaluates a node; not that of its defaults."""
        for child, function in self.tree.edges(node, _FUNCTIONS):
            if child is function.body:  # type: ignore[attr-defined]
                return function  # type: ignore[return-value]
        return self.tree.of(node).root

    def exits(self, function: cst.CSTNode) -> Sequence[cst.Return | cst.Yield]:
        """Return where a function hands something out, in source order: at ``return`` and ``yield``."""
        return self._exits.get(function, ())

    def yields(self, function: cst.CSTNode) -> Sequence[cst.Yield]:
        """Return the ``yield`` expressions of a function of the file: a generator function has some."""
        return [each for each in self.exits(function) if isinstance(each, cst.Yield)]

    @cached_property
    def _exits(self) -> dict[cst.CSTNode, list[cst.Return | cst.Yield]]:
        found: dict[cst.CSTNode, list[cst.Return | cst.Yield]] = {}
        exits: list[cst.Return | cst.Yield] = self.tree.nodes(cst.Return, cst.Yield)
        for node in exits:
            found.setdefault(self.root(node), []).append(node)
        return found

    @remembered
    def of(self, root: Root) -> FunctionFlow:
        """Return the graph of a function, a lambda or the module."""
        return FunctionFlow(build(self.tree, root, self._choices))

    def points(self, node: cst.CSTNode, graph: Graph) -> tuple[int, ...]:
        """Return the points at which a node runs; several for code that is in the graph more than once."""
        numbers, parents = graph.numbers, self.tree.parents
        passed: list[cst.CSTNode] = []
        place: cst.CSTNode | None = node
        found: tuple[int, ...] | None = None
        while place is not None and (found := numbers.get(place)) is None:
            passed.append(place)
            place = parents.get(place)
        if found is None:
            return ()
        if len(passed) > _FAR:
            numbers.update(dict.fromkeys(passed, found))
        return found

    def decisions(self, node: cst.CSTNode, within: cst.CSTNode | None = None) -> Iterator[Decision]:
        """Yield the decisions on every way to a node within its function, the nearest first.

        With ``within``, those that a part of that statement makes.
        """
        flow = self.of(self.root(node))
        for block in self._above(node, flow, flow.nearest_decisions):
            decision = flow.graph.decisions[block]
            if within is not None and (
                decision.construct is within or not self.tree.contains(within, decision.construct)
            ):
                return
            yield decision

    def branches(
        self,
        node: cst.CSTNode,
        within: cst.CSTNode | None = None,
        *,
        outward: bool = False,
        loops: bool = False,
        kinds: frozenset[type] = _CHOOSING,
    ) -> Iterator[Decision]:
        """Yield the decisions a branch of which holds a node, the nearest first.

        Others were made as well on every way to it, such as those behind which a function was left. With
        ``outward``, the branches around the definitions that hold the node count, too; with ``loops``, the
        tests of ``while``, which say how often the node runs. ``kinds`` are the types of what else may make
        the decisions.
        """
        if loops:
            kinds = kinds | {cst.While}
        place: cst.CSTNode = node
        while place.__class__ is not cst.Module:
            # Most places stand in no branch, which is known without the graph.
            for decision in self.decisions(place, within) if self._stands_in(place, kinds) else ():
                construct = decision.construct
                # A choice that always comes out one way decides what runs behind it, itself included.
                if construct is place or construct.__class__ not in kinds:
                    continue
                if self.tree.contains(construct, place):
                    yield decision
            if not outward:
                return
            place = self.root(place)

    def is_conditional(self, node: cst.CSTNode, within: cst.CSTNode | None = None) -> bool:
        """Return whether a branch of its function, or of the statement ``within``, holds a node."""
        return next(self.branches(node, within), None) is not None

    def _stands_in(self, node: cst.CSTNode, kinds: frozenset[type]) -> bool:
        """Return whether a node of one of these types is around another, in its function."""
        for child, around in self.tree.edges(node, kinds | _FUNCTIONS):
            if around.__class__ in kinds:
                return True
            if child is around.body:  # type: ignore[attr-defined]
                return False
        return False

    def alternatives(self, node: cst.CSTNode, *, outward: bool = False) -> Iterator[cst.CSTNode]:
        """Yield the handlers and cases of a ``match`` that are on every way to a node, the nearest first."""
        place: cst.CSTNode = node
        while place.__class__ is not cst.Module:
            flow = self.of(self.root(place))
            for block in self._above(place, flow, flow.nearest_alternatives):
                yield flow.graph.alternatives[block]
            if not outward:
                return
            place = self.root(place)

    def contexts(self, node: cst.CSTNode, *, outward: bool = False) -> Iterator[cst.WithItem]:
        """Yield the context managers in which a node runs, the innermost first, those of its function only.

        With ``outward``, those in which the definitions around it stand count, too.
        """
        for child, around in self.tree.edges(node, _CONTEXTS):
            if isinstance(around, cst.With):
                entered = len(around.items)
                if child is not around.body:
                    entered = around.items.index(child)
                yield from reversed(around.items[:entered])
            elif not outward and child is around.body:  # type: ignore[attr-defined]
                return

    def tries(self, node: cst.CSTNode, *, outward: bool = False) -> Iterator[cst.Try | cst.TryStar]:
        """Yield the ``try`` statements whose first block holds a node, the innermost first,
        in its function only.

        With ``outward``, those around the definitions that hold the node count, too.
        """
        for child, around in self.tree.edges(node, _TRIES):
            if isinstance(around, (cst.Try, cst.TryStar)):
                if child is around.body:
                    yield around
            elif not outward and child is around.body:  # type: ignore[attr-defined]
                return

    def loops(self, node: cst.CSTNode) -> list[Loop]:
        """Return the loops and comprehensions around a node within its function, the innermost first.

        The iterable of a ``for`` and its ``else`` are outside of it; the test of a ``while`` is inside.
        """
        found: list[Loop] = []
        parents = self.tree.parents
        before: cst.CSTNode | None = None
        while True:
            child = self.tree.climb(node, _AROUND_LOOPS)
            parent = parents.get(child)
            # Exact types instead of isinstance: few walks are as frequent.
            kind = parent.__class__
            if parent is None or (kind in _FUNCTIONS and getattr(parent, "body", None) is child):
                return found
            if kind in _SUITES:
                return [*found, *self._loops_of_suite(parent)]
            # Of a comprehension the first iterable is told by the node before.
            if kind in _LOOPS and repeats_part(parent, child, before if child is node else None):
                found.append(parent)  # type: ignore[arg-type]
            before, node = child, parent

    @remembered
    def _loops_of_suite(self, suite: cst.CSTNode) -> list[Loop]:
        parent = self.tree.parents.get(suite)
        if parent is None or parent.__class__ in _FUNCTIONS:
            return []
        repeated = parent.__class__ in _LOOPS and repeats_part(parent, suite, None)
        outer = self.loops(parent)
        return [parent, *outer] if repeated else outer  # type: ignore[list-item]

    def statement_loops(self, node: cst.CSTNode) -> list[StatementLoop]:
        """Return the ``for`` and ``while`` statements among the loops around a node, the innermost first."""
        return [loop for loop in self.loops(node) if isinstance(loop, (cst.For, cst.While))]

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the small statement that evaluates a node, or the compound one in whose header it stands.

        A statement is its own, and so is what stands in none.
        """
        tree = self.tree
        return node if node.__class__ in STATEMENTS else tree.parent(tree.climb(node, STATEMENTS)) or node

    def common_block(self, one: cst.CSTNode, other: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
        """Return the innermost block in which two nodes run, and its statement with the first of them."""
        tree, child = self.tree, one
        while True:
            child = tree.climb(child, _BLOCKS)
            block = tree.parents.get(child)
            if block is None or block is tree.root or tree.contains(block, other):
                return block or tree.root, child
            child = block

    def condition(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return what decides by a test that a node is part of; None if the node is in no test.

        That is an ``if``, ``while`` or ``assert``, a conditional expression, or a condition of a
        comprehension: the innermost of them within the statement.
        """
        for child, around in self.tree.edges(node, _TESTING):
            if getattr(around, "test", None) is child:
                return around
            if around.__class__ in STATEMENTS:
                break
        return None

    def may_follow(self, one: cst.CSTNode, other: cst.CSTNode, within: cst.CSTNode | None = None) -> bool:
        """Return whether ``other`` may run when ``one`` has begun, in the same run of their function.

        With ``within``, in the same iteration of that loop. Of different functions nothing is known.
        """
        root = self.root(one)
        if root is not self.root(other):
            return True
        flow = self.of(root)
        graph, earlier, later = flow.graph, self.points(one, flow.graph), self.points(other, flow.graph)
        head = NONE if within is None else graph.heads.get(within, NONE)
        for before in earlier:
            first = graph.blocks[before]
            following = (block for block in graph.successors[first] if block != head)
            reached = _reachable(graph.successors, *following, without=head)
            for after in later:
                block = graph.blocks[after]
                if reached[block] or (block == first and before <= after):
                    return True
        return False

    def _above(self, node: cst.CSTNode, flow: FunctionFlow, nearest: list[Block]) -> Iterator[Block]:
        """Yield the chosen blocks that dominate a node, the nearest first."""
        blocks = self._blocks(node, flow.graph)
        block = nearest[blocks[0]] if blocks else NONE
        while block != NONE:
            if all(flow.dominators.dominates(block, other) for other in blocks):
                yield block
            above = flow.dominators.parent(block)
            block = nearest[above] if above != NONE else NONE

    def _blocks(self, node: cst.CSTNode, graph: Graph) -> list[Block]:
        return [graph.blocks[point] for point in self.points(node, graph)]

    def ends_loop(self, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Return whether a loop is certainly left behind a node in its body, in the same iteration."""
        flow = self.of(self.root(loop))
        graph = flow.graph
        if loop not in graph.heads:
            return False
        starts = self._blocks(node, graph)
        return not _reachable(graph.successors, *starts, without=graph.heads[loop])[graph.latches[loop]]

    def runs_once(self, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
        """Return whether a node in the body of a loop is the last of it, as written:
        no other iteration follows.

        An exception that something raises, and a handler catches, is left out of account.
        """
        flow = self.of(self.root(loop))
        continuing = flow.continuing.get(loop)
        if continuing is None:
            return False
        blocks = self._blocks(node, flow.graph)
        return bool(blocks) and continuing.isdisjoint(blocks)

    def is_dead(self, node: cst.CSTNode) -> bool:
        """Return whether control never comes to a node in its function: it is behind ``return``, say."""
        flow = self.of(self.root(node))
        blocks = self._blocks(node, flow.graph)
        return bool(blocks) and not any(flow.live[block] for block in blocks)

    def ends_badly(self, node: cst.CSTNode) -> bool:
        """Return whether behind a node its function certainly ends with an exception, as written."""
        flow = self.of(self.root(node))
        blocks = self._blocks(node, flow.graph)
        return bool(blocks) and flow.lasting.isdisjoint(blocks)

    def certainly_after(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Return whether ``other`` runs behind ``one`` whenever their function comes to its normal end."""
        root = self.root(one)
        if root is not self.root(other):
            return False
        flow = self.of(root)
        graph, earlier, later = flow.graph, self.points(one, flow.graph), self.points(other, flow.graph)

        def follows(before: int, after: int) -> bool:
            first, second = graph.blocks[before], graph.blocks[after]
            if first == second:
                return before < after or (before == after and self.evaluated_before(one, other))
            return flow.postdominators.dominates(second, first)

        return bool(earlier) and all(any(follows(before, after) for after in later) for before in earlier)

    def certainly_before(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Return whether ``one`` has run whenever ``other`` begins, in the same run of their function.

        A compound statement runs as soon as its header does.
        """
        root = self.root(one)
        if root is not self.root(other):
            return False
        flow = self.of(root)
        graph, dominators = flow.graph, flow.dominators
        earlier, later = self.points(one, graph), self.points(other, graph)

        def precedes(before: int, after: int) -> bool:
            if before == after:
                return self.evaluated_before(one, other)
            first, second = graph.blocks[before], graph.blocks[after]
            return before < after if first == second else dominators.dominates(first, second)

        return bool(later) and all(any(precedes(before, after) for before in earlier) for after in later)

    def available(self, root: Root, judge: Callable[[cst.CSTNode], bool | None]) -> Facts:
        """Return for each point of a function, and its end, whether a fact holds before it on all ways there.

        ``judge`` says whether the fact holds behind a point; None if it holds there as before. These are the
        available expressions of Aho, Lam, Sethi and Ullman, "Compilers" (2006), section 9.2.6: the fact is
        open at a block to which a way leads from the entry, or from a point that ends the fact, and on which
        nothing makes it hold. In the body of a loop it is open at the start of each iteration.
        """
        flow = self.of(root)
        graph = flow.graph
        said = [judge(point) for point in graph.points]
        leaves = {block: last for block, last in zip(graph.blocks, said, strict=True) if last is not None}
        holds = [True] * len(graph.successors)

        def spread(pending: list[Block], within: Container[Block]) -> None:
            while pending:
                for block in graph.successors[pending.pop()]:
                    if holds[block] and block in within:
                        holds[block] = False
                        if block not in leaves:
                            pending.append(block)

        holds[graph.entry] = False
        ending = [block for block, last in leaves.items() if not last]
        spread(ending if graph.entry in leaves else [graph.entry, *ending], range(len(holds)))
        for loop, head in graph.heads.items():
            if isinstance(loop, (cst.For, cst.While)):
                spread([head], flow.continuing[loop] - {head})
        before = []
        for block, last in zip(graph.blocks, said, strict=True):
            before.append(holds[block])
            if last is not None:
                holds[block] = last
        return Facts(before, holds[graph.exit])

    def anticipated(
        self, root: Root, judge: Callable[[cst.CSTNode], bool | None], *, at_end: bool = False
    ) -> Facts:
        """Return for each point of a function, and its start,
        whether a fact holds behind it on all ways from it.

        ``judge`` says whether the fact holds at a point, whatever comes behind it; None if that decides.
        These are the anticipated expressions of the same book, section 9.5.1. A way ends where the function
        does, behind which the fact holds ``at_end``, and where an iteration of a loop is over; it takes each
        ``for`` to have something to go through, and exceptions are left out of account.
        """
        flow = self.of(root)
        graph = flow.graph
        said = [judge(point) for point in graph.points]
        of_block: list[list[int]] = [[] for _ in graph.successors]
        for number, block in enumerate(graph.blocks):
            of_block[block].append(number)
        bodies = {graph.heads[loop]: loop for loop in graph.heads if isinstance(loop, cst.For)}
        latches = set(graph.latches.values())
        behind = [False] * len(graph.points)
        holds = [False] * len(graph.successors)
        for block in flow.backwards:
            following = [each for each in graph.successors[block] if flow.lasts(each)]
            if block in bodies:
                following = following[:1]
            held = block not in latches and bool(following) and all(holds[each] for each in following)
            held = at_end if block == graph.exit else held
            for number in reversed(of_block[block]):
                behind[number] = held
                held = held if said[number] is None else bool(said[number])
            holds[block] = held
        return Facts(behind, holds[graph.entry])

    def point(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the small statement, or the part of a compound one or of a choice, that evaluates a node."""
        graph = self.of(self.root(node)).graph
        points = self.points(node, graph)
        return graph.points[points[0]] if points else node

    def at_point(self, node: cst.CSTNode, facts: Facts) -> bool:
        """Return whether a fact that is known of each point of a function holds at the point of a node."""
        points = self.points(node, self.of(self.root(node)).graph)
        return bool(points) and all(facts.at[point] for point in points)

    def evaluated_before(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Return whether of two nodes at the same point one is evaluated first."""
        tree = self.tree
        if tree.contains(one, other):
            return False
        if tree.contains(other, one):
            return True
        child, around = one, tree.parents[one]
        while not tree.contains(around, other):
            child, around = around, tree.parents[around]
        first = getattr(around, _FIRST.get(around.__class__, ""), None)
        if around.__class__ is cst.AugAssign and child is one:
            return False  # the target is set when the value is known
        if first is not None and (first is child or tree.contains(first, other)):
            return first is child
        return tree.order[child] < tree.order[other]


def repeats_part(loop: cst.CSTNode, child: cst.CSTNode, grandchild: cst.CSTNode | None) -> bool:
    """Return whether a loop or comprehension repeats this part of it, which holds ``grandchild``."""
    kind = loop.__class__
    if kind is cst.For:
        return child is loop.body or child is loop.target  # type: ignore[attr-defined]
    if kind is cst.While:
        return child is not loop.orelse  # type: ignore[attr-defined]
    # Of a comprehension only the first iterable is evaluated once.
    first: cst.CompFor = loop.for_in  # type: ignore[attr-defined]
    return not (child is first and grandchild is first.iter)


def _reachable(successors: list[list[Block]], *roots: Block, without: Block = NONE) -> list[bool]:
    """Return which blocks a way leads to that does not pass another."""
    found = [False] * len(successors)
    for root in roots:
        found[root] = True
    stack = list(roots)
    while stack:
        for following in successors[stack.pop()]:
            if not found[following] and following != without:
                found[following] = True
                stack.append(following)
    return found
