"""Dominators, held to what they mean: a node without which another cannot be reached."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchlint.semantics.flow.dominance import NONE, DominatorTree

_EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=24)


def reachable(successors: list[list[int]], without: int = NONE) -> set[int]:
    """The nodes to which a way leads from node 0 that avoids another."""
    found: set[int] = set()
    pending = [0] if without else []
    while pending:
        node = pending.pop()
        if node not in found and node != without:
            found.add(node)
            pending += successors[node]
    return found


@given(_EDGES)
def test_dominators(edges: list[tuple[int, int]]) -> None:
    successors: list[list[int]] = [[] for _ in range(10)]
    for one, other in edges:
        successors[one].append(other)
    tree = DominatorTree(successors, 0)
    every = reachable(successors)
    for one in range(10):
        assert tree.reached(one) is (one in every)
        beyond = every - reachable(successors, one) if one in every else set()
        assert {other for other in range(10) if tree.dominates(one, other)} == beyond
        # The immediate dominator is dominated by all the others.
        proper = [other for other in every if other != one and tree.dominates(other, one)]
        assert tree.parent(one) == max(
            proper, key=lambda node: sum(tree.dominates(o, node) for o in proper), default=NONE
        )


def test_a_long_chain_with_a_way_out_at_each_step() -> None:
    count = 50_000
    successors = [[node + 1, count] for node in range(count - 1)] + [[count], []]
    tree = DominatorTree(successors, 0)
    assert tree.parent(count) == 0
    assert tree.dominates(count // 2, count - 1)
