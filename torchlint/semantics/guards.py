"""The conditions under which a place is reached: what was tested on every way to it, with the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import BindingKind, leaves
from torchlint.semantics.remembered import remembered
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_FUNCTIONS = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
_TESTS = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.Call)
_NAMED = 2  # how many names a test may be hidden behind


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that was made before a place is reached, and how it came out.

    ``test`` is a single one: ``and``, ``or`` and ``not`` are taken apart as far as that is possible.
    """

    test: cst.BaseExpression
    holds: bool


def guards(module: Module, node: cst.CSTNode) -> Iterator[Guard]:
    """What was tested, on every way to a node within its function, the nearest test first.

    The test was true, or false, when it was made. What it asked about may have changed since:
    `unchanged` says whether it has.
    """
    tree = module.tree
    child = node
    for around in tree.ancestors(node):
        if isinstance(around, _FUNCTIONS):
            return
        for test, holds in _tests(module, around, child):
            yield from _single(module, test, holds, _NAMED)
        child = around


def _tests(
    module: Module, around: cst.CSTNode, child: cst.CSTNode
) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The tests that a node makes before it comes to its ``child``."""
    match around:
        case cst.If() | cst.IfExp():
            if child is not around.test:
                yield around.test, child is around.body
        case cst.While():
            if child is around.body:
                yield around.test, True
        case cst.BooleanOperation():
            if child is around.right:
                yield around.left, isinstance(around.operator, cst.And)
        case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
            if child is not around.for_in:
                loop: cst.CompFor | None = around.for_in
                while loop is not None:
                    yield from ((condition.test, True) for condition in loop.ifs)
                    loop = loop.inner_for_in
        case cst.CompFor():
            for condition in around.ifs if child is not around.iter else ():
                if condition is child:
                    return
                yield condition.test, True
        case cst.IndentedBlock() | cst.Module() | cst.SimpleStatementSuite() | cst.SimpleStatementLine():
            place = module.tree.order[child]
            for statement, test, holds in reversed(_passed(module, around)):
                if module.tree.order[statement] < place:
                    yield test, holds
        case _:
            pass


@remembered
def _passed(module: Module, block: cst.CSTNode) -> tuple[tuple[cst.CSTNode, cst.BaseExpression, bool], ...]:
    """The statements of a block behind which something is known, and what that is.

    ``if x is None: return`` and ``assert x is not None`` are of this kind.
    """
    found: list[tuple[cst.CSTNode, cst.BaseExpression, bool]] = []
    for statement in getattr(block, "body", ()):
        if isinstance(statement, cst.SimpleStatementLine):
            found += ((small, small.test, True) for small in statement.body if isinstance(small, cst.Assert))
        elif isinstance(statement, cst.Assert):
            found.append((statement, statement.test, True))
        branch: cst.If | cst.Else | None = statement if isinstance(statement, cst.If) else None
        while isinstance(branch, cst.If):
            if not leaves(branch.body):
                if isinstance(branch.orelse, cst.Else) and leaves(branch.orelse.body):
                    found.append((statement, branch.test, True))
                break
            found.append((statement, branch.test, False))
            branch = branch.orelse
    return tuple(found)


def _single(module: Module, test: cst.BaseExpression, holds: bool, hops: int) -> Iterator[Guard]:
    """The single tests that a test is made of, as far as their outcome is known."""
    pending = [(test, holds, hops)]
    while pending:
        test, holds, hops = pending.pop()
        match test:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                pending.append((inner, not holds, hops))
            case cst.BooleanOperation(operator=operator, left=left, right=right):
                if isinstance(operator, cst.And) is holds:
                    pending += [(right, holds, hops), (left, holds, hops)]
            case cst.Call(args=[cst.Arg(value=inner)]) if module.qualified(test.func) == "builtins.bool":
                pending.append((inner, holds, hops))
            case _:
                yield Guard(test, holds)
                named = _named_test(module, test) if hops else None
                if named is not None:
                    pending.append((named, holds, hops - 1))


def _named_test(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The test whose outcome a variable has, and nothing else: ``has_bias = conv.bias is not None``."""
    if not isinstance(node, cst.Name):
        return None
    bindings = module.bindings(node)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGN or bindings[0].path:
        return None
    value = bindings[0].value
    return value if isinstance(value, _TESTS) else None


def unchanged(module: Module, tested: cst.BaseExpression, later: cst.BaseExpression) -> bool:
    """Whether an expression in a test means what one behind the test does, with the value that it had.

    Both are spelt alike, their names have the same definitions, and no attribute in them is set between
    the two.
    """
    if not alike(tested, later):
        return False
    order = module.tree.order
    ours = [n for n in (tested, *module.tree.descendants(tested)) if isinstance(n, (cst.Name, cst.Attribute))]
    theirs = [n for n in (later, *module.tree.descendants(later)) if isinstance(n, (cst.Name, cst.Attribute))]
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, cst.Attribute):
            set_at = (order[b.target] for b in module.names.attributes.get(one.attr.value, ()))
            if any(order[tested] < place < order[later] for place in set_at):
                return False
        elif isinstance(other, cst.Name) and not _is_attribute_name(module, one):
            if module.bindings(one) != module.bindings(other):
                return False
    return True


def _is_attribute_name(module: Module, name: cst.CSTNode) -> bool:
    above = module.tree.parent(name)
    return isinstance(above, cst.Attribute) and above.attr is name
