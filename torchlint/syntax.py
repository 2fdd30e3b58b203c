"""One parse and one walk of a file: parents, nodes by type, and character offsets on demand.

LibCST's own metadata providers cost several times the parse (see the design notes); one walk with an
explicit stack over cached field lists gives all that the rules need for a small part of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from functools import cache, cached_property
from itertools import chain, count
from typing import NamedTuple, TypeVar

import libcst as cst
from libcst._nodes.internal import CodegenState

from torchlint.diagnostics import Span
from torchlint.effort import Effort
from torchlint.nodes import unchecked
from torchlint.source import line_above, line_start, line_starts
from torchlint.uncommented import uncommented

Node = TypeVar("Node", bound=cst.CSTNode)

# Fields that hold white space, punctuation and constants: no rule asks for a node below them.
_LAYOUT = frozenset(
    {
        "leading_lines",
        "lines_after_decorators",
        "trailing_whitespace",
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "semicolon",
        "header",
        "footer",
        "colon",
        "equal",
        "dot",
        "indent",
        "whitespace",
        "star",
        "posonly_ind",
        "type_comment",
        "separator",
        "trailing_comma",
    }
)


# Nodes whose value is text, the most frequent ones.
_TEXTS = frozenset(
    {cst.Name, cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString, cst.FormattedStringText, cst.NotEqual}
)


class _Fields(dict[type, tuple[str, ...]]):
    """Names of the fields of a node type that can hold nodes, the last one first, computed once a type."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        if kind in _TEXTS:
            self[kind] = ()
            return ()
        names = [
            field.name
            for field in fields(kind)
            if field.name not in _LAYOUT and not field.name.startswith("whitespace_")
        ]
        names.reverse()
        self[kind] = tuple(names)
        return self[kind]


_FIELDS = _Fields()
# What may stand between the end of a statement and the comment behind it.
_BEHIND = re.compile(r"[ \t\f;]*(#[^\r\n]*)")
_CONTAINERS = (list, tuple)
# What LibCST may leave out of the code that it generates.
_DROPPED = frozenset("\x0c\r\n\t ")
# What a field can hold beside nodes. Asking for these is far quicker than ``isinstance`` on LibCST's
# abstract base class.
_NO_NODES = frozenset({type(None), str, bool, cst.MaybeSentinel})


COMPOUND_STATEMENTS: frozenset[type] = frozenset(
    {
        *(cst.If, cst.For, cst.While, cst.With, cst.Match, cst.Try, cst.TryStar),
        *(cst.FunctionDef, cst.ClassDef),
    }
)
STATEMENTS: frozenset[type] = COMPOUND_STATEMENTS | {
    *(cst.SimpleStatementLine, cst.Expr, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Raise),
    *(cst.Assert, cst.Del, cst.Pass, cst.Break, cst.Continue, cst.Import, cst.ImportFrom),
    *(cst.Global, cst.Nonlocal, cst.TypeAlias),
}
_FAR = 12
"""How many steps up are not worth remembering."""
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
_AROUND_STATEMENTS = COMPOUND_STATEMENTS | {cst.SimpleStatementLine, cst.SimpleStatementSuite}


_BY_NAME: dict[type, str] = {
    cst.Call: "calls_by_name",
    cst.Attribute: "attributes_by_name",
    cst.Name: "names_by_name",
}


@cache
def _is_one_of(kind: type, kinds: tuple[type, ...]) -> bool:
    """Return whether it is ``issubclass``, remembered for all files: LibCST's types are abstract,
    and ask slowly.
    """
    return issubclass(kind, kinds)


def _stands_in_code(words: str, text: str) -> bool | None:
    """Return whether words of one line are in the code of a text; None if only its comments may have them.

    To take all comments out of a text takes far longer than to find a line without any.
    """
    place = text.find(words)
    if place < 0:
        return False
    while place >= 0:
        end = text.find("\n", place)
        if end < 0:
            end = len(text)
        if text.find("#", text.rfind("\n", 0, place) + 1, end) < 0:
            return True
        place = text.find(words, end)
    return None


class ElsewhereError(Exception):
    """A node of another file was asked for something that only counts in its own: a place, or its text."""


RANK_SHIFT = 24
"""The bits of a node's number that count the nodes of its file; those above tell the file."""


class Forest:
    """Trees of several files that know one another's nodes.

    They share ``parents`` and ``order``, so that a question about the surroundings of a node has the same
    answer whichever of the trees is asked. The number of a node begins with the rank of its file. ``placed``
    is told the rank of a tree that is asked for what comments and empty lines change: places, and comments.
    """

    def __init__(self, placed: Callable[[int], None]) -> None:
        self.placed = placed
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self.trees: dict[int, SyntaxTree] = {}

    def take(self, tree: SyntaxTree, rank: int) -> None:
        """Have a tree stand for the file with this rank; its nodes go into the tables of all."""
        self.uproot(rank)
        self.trees[rank] = tree
        tree.parents, tree.order = self.parents, self.order
        tree.forest, tree.rank, tree.first = self, rank, rank << RANK_SHIFT

    def plant(self, tree: SyntaxTree, rank: int) -> None:
        """Take in the tree of the file with this rank, which stood alone."""
        parents, order = tree.parents, tree.order
        self.take(tree, rank)
        self.parents.update(parents)
        self.order.update(zip(order, map(tree.first.__add__, order.values()), strict=True))
        for known in (tree._lasts, tree._positions, tree._climbs):
            known.clear()

    def uproot(self, rank: int) -> None:
        """Let go of the tree of the file with this rank, if there is one: it stands alone again."""
        tree = self.trees.pop(rank, None)
        if tree is None:
            return
        nodes = [node for same in tree._by_type.values() for node in same]
        nodes.sort(key=self.order.__getitem__)
        tree.order = {node: self.order.pop(node) - tree.first for node in nodes}
        tree.parents = {node: self.parents.pop(node) for node in nodes if node in self.parents}
        tree.forest, tree.rank, tree.first = None, 0, 0

    def fell(self, ranks: Iterable[int]) -> None:
        """Forget the trees of the files with these ranks, which nobody may ask any more."""
        for rank in ranks:
            vars(self.trees.pop(rank)).clear()
        parents, order = self.parents, self.order
        left = [node for tree in self.trees.values() for same in tree._by_type.values() for node in same]
        # A table from which entries are taken one by one stays as large, and doubles once as many come again.
        self.parents = {node: parents[node] for node in left if node in parents}
        self.order = {node: order[node] for node in left}
        for tree in self.trees.values():
            tree.parents, tree.order = self.parents, self.order

    def rank(self, node: cst.CSTNode) -> int:
        """Return the rank of the file that a node belongs to."""
        return self.order[node] >> RANK_SHIFT


class Ground(NamedTuple):
    """The forest that a tree is made for, and the rank of its file there."""

    forest: Forest
    rank: int


class SyntaxTree:
    """The parsed text of one file.

    ``parents`` maps every code node to the node that holds it; ``nodes(T)`` are the nodes of exactly
    the types given, in source order; ``order`` numbers the nodes in source order. With ``ground`` the tree
    is made in the tables of other trees at once, instead of being planted among them.

    Raises:
        libcst.ParserSyntaxError: the text is not a Python program that LibCST can read.
    """

    def __init__(self, text: str, root: cst.Module | None = None, ground: Ground | None = None) -> None:
        self.text = text
        if root is None:
            with unchecked():
                root = cst.parse_module(text)
        self.root = root
        self.forest: Forest | None = None
        """The trees that it shares its numbers with; None as long as it stands alone."""
        self.rank = self.first = 0
        """The rank of its file among those, and the number of its root."""
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self._by_type: dict[type, list[cst.CSTNode]] = {}
        self._mentioned: dict[str, bool] = {}
        self._mentioned_in_any_case: dict[str, bool] = {}
        self._matched: dict[re.Pattern[str], bool] = {}
        self._lasts: dict[cst.CSTNode, int] = {}
        self._positions: dict[cst.CSTNode, int] = {}
        self._climbs: dict[frozenset[type], dict[cst.CSTNode, cst.CSTNode]] = {}
        self._kinds: dict[tuple[type, ...], frozenset[type]] = {}
        self.effort = Effort()
        if ground is not None:
            ground.forest.take(self, ground.rank)
        self._walk()

    def _walk(self) -> None:
        nodes, self._by_type = walk([self.root], self.parents)
        self._numbered(nodes)

    def _numbered(self, nodes: Sequence[cst.CSTNode]) -> None:
        """Give the nodes, which are all that there are, their numbers in source order."""
        self.order.update(zip(nodes, count(self.first), strict=False))

    def mentions(self, words: str) -> bool:
        """Return whether the file contains ``words``, in code or in strings."""
        found = self._mentioned.get(words)
        if found is None:
            found = _stands_in_code(words, self.text)
            found = self._mentioned[words] = words in self.code if found is None else found
        return found

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern is found in the code of the file, which is searched once for each."""
        found = self._matched.get(pattern)
        if found is None:
            found = self._matched[pattern] = pattern.search(self.code) is not None
        return found

    @cached_property
    def code(self) -> str:
        """The text without comments and empty lines."""
        return uncommented(self.text)

    def mentions_in_any_case(self, words: str) -> bool:
        """Return whether the file contains ``words``, given in lower case, in upper or lower case.

        A pattern that ignores case takes ten times as long.
        """
        found = self._mentioned_in_any_case.get(words)
        if found is None:
            found = _stands_in_code(words, self._lowered)
            found = words in self.code.lower() if found is None else found
            self._mentioned_in_any_case[words] = found
        return found

    @cached_property
    def _lowered(self) -> str:
        return self.text.lower()

    def note_place(self) -> None:
        """Note that what is found out depends on where things stand in the file, or on its comments."""
        if self.forest is not None:
            self.forest.placed(self.rank)

    def nodes(self, *kinds: type[Node]) -> list[Node]:
        """Return all nodes of exactly these types, in source order."""
        if len(kinds) == 1:
            one = self._by_type.get(kinds[0], [])
            self.effort.spend(len(one) // 4)
            return one  # type: ignore[return-value]
        found = [node for kind in kinds for node in self._by_type.get(kind, [])]
        found.sort(key=self.order.__getitem__)
        self.effort.spend(len(found))
        return found  # type: ignore[return-value]

    @cached_property
    def calls_by_name(self) -> dict[str, list[cst.Call]]:
        """The calls by the last word of what they call, in source order."""
        found: dict[str, list[cst.Call]] = {}
        for call in self.nodes(cst.Call):
            func = call.func
            if func.__class__ is cst.Name:
                found.setdefault(func.value, []).append(call)
            elif func.__class__ is cst.Attribute:
                found.setdefault(func.attr.value, []).append(call)
        return found

    @cached_property
    def attributes_by_name(self) -> dict[str, list[cst.Attribute]]:
        """The attributes by their own names, in source order."""
        found: dict[str, list[cst.Attribute]] = {}
        for node in self.nodes(cst.Attribute):
            found.setdefault(node.attr.value, []).append(node)
        return found

    @cached_property
    def names_by_name(self) -> dict[str, list[cst.Name]]:
        """The names by their spelling, in source order, those of attributes and keywords included."""
        found: dict[str, list[cst.Name]] = {}
        for node in self.nodes(cst.Name):
            found.setdefault(node.value, []).append(node)
        return found

    def spelt(self, kind: type[cst.CSTNode], *names: AbstractSet[str]) -> list[cst.CSTNode]:
        """Return the calls, attributes or names of any of these names,
        a call by the last word of what it calls.
        """
        known: dict[str, list[cst.CSTNode]]
        known = getattr(self, _BY_NAME[kind])
        wanted = {name for each in names for name in known.keys() & each}
        found = [node for name in wanted for node in known[name]]
        found.sort(key=self.order.__getitem__)
        self.effort.spend(len(found))
        return found

    def is_elsewhere(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to the tree of another file."""
        return self.forest is not None and self.forest.order.get(node, self.first) >> RANK_SHIFT != self.rank

    def of(self, node: cst.CSTNode) -> SyntaxTree:
        """Return the tree that a node belongs to: this one, or that of another file."""
        return self if self.forest is None else self.forest.trees[self.forest.order[node] >> RANK_SHIFT]

    def _here(self, node: cst.CSTNode) -> None:
        if self.is_elsewhere(node):
            raise ElsewhereError

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node that holds ``node``; None for the module itself."""
        return self.parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around ``node``, innermost first, without itself."""
        self.effort.spent += 1
        parents = self.parents
        current = parents.get(node)
        while current is not None:
            yield current
            current = parents.get(current)

    def climb(self, node: cst.CSTNode, stops: frozenset[type]) -> cst.CSTNode:
        """Return the last node on the way up that comes before one of exactly these types, or before the end.

        Long ways are remembered: of an expression of n parts each may lie n nodes deep, and so may the last
        of n ``elif``.
        """
        parents = self.parents
        for _ in range(_FAR):
            parent = parents.get(node)
            if parent is None or parent.__class__ in stops:
                return node
            node = parent
        known = self._climbs.get(stops)
        if known is None:
            known = self._climbs[stops] = {}
        passed: list[cst.CSTNode] = []
        while True:
            end = known.get(node)
            if end is not None:
                break
            parent = parents.get(node)
            if parent is None or parent.__class__ in stops:
                end = node
                break
            passed.append(node)
            node = parent
        known.update(dict.fromkeys(passed, end))
        return end

    def edges(self, node: cst.CSTNode, stops: frozenset[type]) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """Yield the nodes of exactly these types around a node, innermost first, with the part on the way."""
        child = self.climb(node, stops)
        while (parent := self.parents.get(child)) is not None:
            yield child, parent
            child = self.climb(parent, stops)

    def enclosing(self, node: cst.CSTNode, *kinds: type[Node]) -> Node | None:
        """Return the innermost node of one of these types around ``node``, without itself."""
        tree = self.of(node)
        stops = tree._kinds.get(kinds)
        if stops is None:
            # Types that the file has, so that those of abstract bases are among them.
            stops = frozenset(kind for kind in tree._by_type if _is_one_of(kind, kinds))
            tree._kinds[kinds] = stops
        return self.parents.get(self.climb(node, stops))  # type: ignore[return-value]

    def standing(self, node: cst.CSTNode) -> tuple[tuple[str, ...], int]:
        """Return where a node stands, by the names of the functions and classes around it,
        and the place in them.

        What is said once a file is said at the first place in this order, which is the same wherever in the
        file the definitions stand: first come the file's own statements.
        """
        around = [item for item in self.ancestors(node) if isinstance(item, (cst.FunctionDef, cst.ClassDef))]
        names = tuple(definition.name.value for definition in reversed(around))
        return names, self.order[node] - (self.order[around[0]] if around else 0)

    def handlers(self, node: cst.CSTNode) -> Iterator[cst.ExceptHandler | cst.ExceptStarHandler]:
        """Yield the handlers around ``node`` that may catch what it raises within its function,
        innermost first.
        """
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda)):
                return
            if isinstance(ancestor, (cst.Try, cst.TryStar)) and child is ancestor.body:
                yield from ancestor.handlers
            child = ancestor

    def descendants(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield ``node`` and the code nodes below it, in source order."""
        stack = [node]
        effort = self.effort
        while stack:
            current = stack.pop()
            effort.spent += 1
            yield current
            for name in _FIELDS[current.__class__]:
                child = getattr(current, name)
                if child.__class__ in _NO_NODES:
                    continue
                if child.__class__ in _CONTAINERS:
                    stack.extend(item for item in reversed(child) if item.__class__ not in _NO_NODES)
                else:
                    stack.append(child)

    def position(self, statement: cst.CSTNode) -> int:
        """Return how many statements stand above one in its block; 0 for what is no statement of a block."""
        found = self._positions.get(statement)
        if found is None:
            body = getattr(self.parents.get(statement), "body", ())
            self._positions[statement] = found = 0
            if isinstance(body, Sequence):
                self._positions.update(zip(body, range(len(body)), strict=True))
                found = self._positions[statement]
        return found

    def parts(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Return the code nodes directly below ``node``, in source order."""
        found: list[cst.CSTNode] = []
        # The fields stand in the order in which a stack takes them, the last first.
        for name in reversed(_FIELDS[node.__class__]):
            child = getattr(node, name)
            if child.__class__ in _NO_NODES:
                continue
            if child.__class__ in _CONTAINERS:
                found.extend(item for item in child if item.__class__ not in _NO_NODES)
            else:
                found.append(child)
        return found

    def contains(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Return whether ``inner`` is ``outer`` or lies below it."""
        self.effort.spent += 1
        if inner is outer:
            return True
        start, place = self.order.get(outer), self.order.get(inner)
        if start is None or place is None:
            return False
        return start < place <= self.last(outer)

    def last(self, node: cst.CSTNode) -> int:
        """Return the number of the last node below ``node``:
        what lies in it has numbers from its own to this.
        """
        found = self._lasts.get(node)
        if found is None:
            current: cst.CSTNode | None = node
            below = node
            while current is not None:
                below, current = current, _last_part(current)
            found = self._lasts[node] = self.order[below]
        return found

    def is_called(self, node: cst.CSTNode) -> bool:
        """Return whether a node is what a call calls."""
        call = self.parents.get(node)
        return isinstance(call, cst.Call) and call.func is node

    def method_call(self, node: cst.CSTNode) -> cst.Call | None:
        """Return the call of a method of what an expression gives: ``x.sum()`` for its ``x``."""
        method = self.parents.get(node)
        call = self.parents.get(method) if isinstance(method, cst.Attribute) else None
        return call if isinstance(call, cst.Call) and call.func is method else None

    def call_given(self, node: cst.CSTNode) -> cst.Call | None:
        """Return the call that an expression is an argument of; None if it is none."""
        argument = self.parents.get(node)
        call = self.parents.get(argument) if isinstance(argument, cst.Arg) else None
        return call if isinstance(call, cst.Call) else None

    def names_in(self, node: cst.CSTNode) -> set[str]:
        """Return the names in a node, those of attributes included, as they are spelt."""
        return {inner.value for inner in self.descendants(node) if isinstance(inner, cst.Name)}

    def within(self, outer: cst.CSTNode, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return those of some nodes in source order that are ``outer`` or lie below it,
        found by bisection.
        """
        self._here(outer)
        order = self.order.__getitem__
        start = bisect_left(nodes, order(outer), key=order)
        return nodes[start : bisect_right(nodes, self.last(outer), start, key=order)]

    def nodes_within(self, outer: cst.CSTNode, *kinds: type[Node]) -> Sequence[Node]:
        """Return the nodes of exactly these types that are ``outer`` or lie below it, in source order,
        at the cost of those alone.
        """
        parts: list[Sequence[Node]] = [self.within(outer, self._by_type.get(kind, [])) for kind in kinds]  # type: ignore[arg-type]
        found = parts[0] if len(parts) == 1 else sorted(chain(*parts), key=self.order.__getitem__)
        self.effort.spend(1 + len(found) // 4)
        return found

    def between(self, first: cst.CSTNode, last: cst.CSTNode, *kinds: type[Node]) -> Iterator[Node]:
        """Yield the nodes of exactly these types that begin behind the start of one node
        and before another.
        """
        self._here(first)
        order = self.order.__getitem__
        for kind in kinds:
            nodes = self.nodes(kind)
            start = bisect_right(nodes, order(first), key=order)
            yield from nodes[start : bisect_left(nodes, order(last), start, key=order)]

    def holds(self, outer: cst.CSTNode, nodes: Sequence[cst.CSTNode]) -> bool:
        """Return whether one of some nodes in source order is ``outer`` or lies below it."""
        self._here(outer)
        order = self.order.__getitem__
        start = bisect_left(nodes, order(outer), key=order)
        return start < len(nodes) and order(nodes[start]) <= self.last(outer)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the statement line or compound statement that holds ``node`` (itself if it is one)."""
        if isinstance(node, _STATEMENTS):
            return node
        # ``if x: y = 1`` keeps its statements on the header's line.
        below = self.climb(node, _AROUND_STATEMENTS)
        around = self.parents.get(below)
        return below if around is None or around.__class__ is cst.SimpleStatementSuite else around

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, Span]:
        code, spans = record([self.root], self.root.default_indent, self.root.default_newline)
        # LibCST takes back the last newline of a text that has none, after it was counted.
        whole = spans[self.root] = Span(0, len(self.text))
        if code == self.text:
            return spans
        offsets = _align(code, self.text)
        last = len(code)

        def moved(span: Span) -> Span:
            start, end = min(span.start, last), min(span.end, last)
            # The end is behind the last character of the node: what LibCST dropped there is outside.
            return Span(offsets[start], offsets[end - 1] + 1 if end > start else offsets[start])

        return {node: span if span is whole else moved(span) for node, span in spans.items()}

    def span(self, node: cst.CSTNode) -> Span:
        """Return character offsets of ``node`` in ``text``, without the white space and comments around it.

        Parentheses that belong to an expression are outside its span; ``outer_span`` has them.
        """
        self._here(node)
        self.note_place()
        return self._spans[node]

    @property
    def comments(self) -> list[Span]:
        """Where the comments are, in source order."""
        self.note_place()
        return self._comments

    @cached_property
    def _comments(self) -> list[Span]:
        return sorted(span for node, span in self._spans.items() if isinstance(node, cst.Comment))

    def comments_between(self, start: int, end: int) -> list[Span]:
        """Return the comments that begin at ``start`` or behind it and before ``end``."""
        if "#" not in self.text[start:end]:
            return []
        first = bisect_left(self.comments, start, key=lambda span: span.start)
        return self.comments[first : bisect_left(self.comments, end, first, key=lambda span: span.start)]

    def outer_span(self, node: cst.CSTNode) -> Span:
        """Return the ``span``, with the parentheses that the expression itself owns."""
        self._here(node)
        self.note_place()
        inner = self._spans[node]
        if not isinstance(node, cst.BaseExpression) or not node.lpar:
            return inner
        return Span(self._spans[node.lpar[0]].start, self._spans[node.rpar[-1]].end)

    def parentheses(self, node: cst.BaseExpression) -> int:
        """Return how many pairs of parentheses an expression owns: ``(a)`` has one,
        the ``a`` of ``f(a)`` none.
        """
        return len(node.lpar)

    def takes_dot(self, node: cst.BaseExpression) -> bool:
        """Return whether ``.name`` may follow an expression as it stands, without parentheses around it."""
        tight = isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        return tight or self.parentheses(node) > 0

    def comment_behind(self, statement: cst.CSTNode) -> str | None:
        """Return the comment at the end of the last line of a statement, with its sign."""
        found = _BEHIND.match(self.text, self.span(statement).end)
        return found and found[1]

    def lines_above(self, statement: cst.CSTNode) -> list[str]:
        """Return the comments directly above a statement, the nearest first;
        an empty text for an empty line.
        """
        above: list[str] = []
        first = statement
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.decorators:
            first = statement.decorators[0]
        start = line_start(self.text, self.span(first).start)
        while start:
            end = start
            start = line_above(self.text, end)
            line = self.text[start:end].strip()
            if line and not line.startswith("#"):
                break
            above.append(line)
        return above

    def line(self, node: cst.CSTNode) -> int:
        """Return the number of the line that ``node`` begins in, from 1; lines end as in Python."""
        return bisect_right(self._line_starts, self.span(node).start)

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        return line_starts(self.text)

    def source(self, node: cst.CSTNode) -> str:
        """Return the text of ``node`` exactly as the file spells it, its own parentheses included."""
        self._here(node)
        if self.forest is None:
            return self._source(node)
        forest, self.forest = self.forest, None
        try:
            found = self._source(node)
        finally:
            self.forest = forest
        if "\n" in found or "\r" in found:
            # There may be a comment in it, or an empty line.
            self.note_place()
        return found

    def _source(self, node: cst.CSTNode) -> str:
        if "_spans" not in self.__dict__ and isinstance(node, cst.BaseExpression):
            # Writing out one expression is far cheaper than laying out the whole file for it. Over
            # several lines the two may differ in white space.
            text = self.root.code_for_node(node)
            if "\n" not in text and "\r" not in text:
                return text
        span = self.outer_span(node)
        return self.text[span.start : span.end]


def _last_part(node: cst.CSTNode) -> cst.CSTNode | None:
    """Return the last of the code nodes directly below ``node``; None if there is none."""
    for name in _FIELDS[node.__class__]:
        child = getattr(node, name)
        if child.__class__ in _NO_NODES:
            continue
        if child.__class__ not in _CONTAINERS:
            return child  # type: ignore[no-any-return]
        found = next((item for item in reversed(child) if item.__class__ not in _NO_NODES), None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


def alike(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Return whether two nodes hold the same code, whatever its layout."""
    pairs: list[tuple[cst.CSTNode, cst.CSTNode]] = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        kind = left.__class__
        if kind is not right.__class__ or getattr(left, "star", None) != getattr(right, "star", None):
            return False
        if kind in _TEXTS and left.value != right.value:  # type: ignore[attr-defined]
            return False
        for name in _FIELDS[kind]:
            mine, theirs = getattr(left, name), getattr(right, name)
            if mine.__class__ in _CONTAINERS:
                if len(mine) != len(theirs):
                    return False
                pairs.extend(zip(mine, theirs, strict=True))
            elif isinstance(mine, cst.CSTNode) and isinstance(theirs, cst.CSTNode):
                pairs.append((mine, theirs))
            elif mine != theirs:
                return False
    return True


def walk(
    roots: Sequence[cst.CSTNode], parents: dict[cst.CSTNode, cst.CSTNode]
) -> tuple[list[cst.CSTNode], dict[type, list[cst.CSTNode]]]:
    """Return the code nodes of some trees in source order, and by type; what holds each but the roots
    is added to ``parents``.
    """
    nodes: list[cst.CSTNode] = []
    by_type: defaultdict[type, list[cst.CSTNode]] = defaultdict(list)
    stack: list[cst.CSTNode] = list(reversed(roots))
    pop, push, take = stack.pop, stack.append, nodes.append
    while stack:
        node = pop()
        kind = node.__class__
        take(node)
        by_type[kind].append(node)
        for name in _FIELDS[kind]:
            child = getattr(node, name)
            held = child.__class__
            if held in _NO_NODES:
                continue
            if held in _CONTAINERS:
                for item in reversed(child):
                    if item.__class__ not in _NO_NODES:
                        parents[item] = node
                        push(item)
            else:
                parents[child] = node
                push(child)
    return nodes, by_type


def record(nodes: Sequence[cst.CSTNode], indent: str, newline: str) -> tuple[str, dict[cst.CSTNode, Span]]:
    """Return the code of some nodes, one behind the other,
    and where in it each of them and those below stand.
    """
    recorder = _OffsetRecorder(indent, newline)
    for node in nodes:
        node._codegen(recorder)
    return "".join(recorder.tokens), recorder.spans


class _OffsetRecorder(CodegenState):
    """Code generation that keeps, for each node, the character offsets between which it was written.

    The same hooks that LibCST's position providers use; offsets instead of line and column make it
    about three times as quick, and edits need nothing else.
    """

    __slots__ = ("length", "spans", "_starts")

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(indent, newline)
        self.length = 0
        self.spans: dict[cst.CSTNode, Span] = {}
        self._starts: list[int] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.length += len(value)

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        for token in self.indent_tokens:
            self.length += len(token)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(self.length)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if node not in self.spans:
            self.spans[node] = Span(start, self.length)

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> _Recording:
        return _Recording(self, node, start_node, end_node)


class _Recording:
    """The span between entering and leaving, unless other nodes are named as its ends."""

    __slots__ = ("state", "node", "start_node", "end_node", "start")

    def __init__(
        self,
        state: _OffsetRecorder,
        node: cst.CSTNode,
        start_node: cst.CSTNode | None,
        end_node: cst.CSTNode | None,
    ) -> None:
        self.state, self.node = state, node
        self.start_node, self.end_node = start_node, end_node

    def __enter__(self) -> None:
        self.start = self.state.length

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            return
        spans = self.state.spans
        start = spans[self.start_node].start if self.start_node is not None else self.start
        end = spans[self.end_node].end if self.end_node is not None else self.state.length
        spans[self.node] = Span(start, end)


def _align(code: str, text: str) -> list[int]:
    """Return for each offset of generated ``code`` the offset of the same place in the original ``text``.

    LibCST drops some form feeds, line ends and blanks, such as a lone carriage return at the end of the
    file, and lines of nothing but a backslash, and repeats a form feed in front of the first line of a block
    on each of its lines. Those are the only differences expected, and they are skipped; all other characters
    correspond.

    Raises:
        ValueError: the two texts differ in another way.
    """
    offsets: list[int] = []
    at, end = 0, len(text)
    for char in code:
        if char == "\x0c" and (at == end or text[at] != char):
            offsets.append(at)
            continue
        while at < end and text[at] != char and (text[at] in _DROPPED or _continues(text, at)):
            at += 1
        if at == end or text[at] != char:
            raise ValueError(f"generated code departs from the text at offset {at}")
        offsets.append(at)
        at += 1
    offsets.append(at)
    return offsets


def _continues(text: str, at: int) -> bool:
    """Return whether a line is joined to the next one at ``at``."""
    return text[at] == "\\" and text[at + 1 : at + 2] in ("\n", "\r")
