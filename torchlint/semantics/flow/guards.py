"""The conditions under which a place is reached: what was tested on every way to it, with the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import libcst as cst

from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.names import Names
from torchlint.syntax import SyntaxTree, alike

Fact = TypeVar("Fact")

_TESTS = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation, cst.Call)


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that was made before a place is reached, and how it came out.

    ``test`` is a single one: ``and``, ``or`` and ``not`` are taken apart as far as that is possible.
    """

    test: cst.BaseExpression
    holds: bool


class Program(Protocol):
    """What guards are asked of: the names of a file, and its flow of control."""

    @property
    def tree(self) -> SyntaxTree:
        """The parsed text."""

    @property
    def names(self) -> Names:
        """Scopes, bindings and dotted names."""

    @property
    def flow(self) -> ControlFlow:
        """The control-flow graphs."""


def guards(module: Program, node: cst.CSTNode) -> Iterator[Guard]:
    """Yield what was tested, on every way to a node within its function, the nearest test first.

    The test was true, or false, when it was made. What it asked about may have changed since:
    `unchanged` says whether it has.
    """
    known: set[cst.BaseExpression] = set()
    for _, decisions in groupby(module.flow.decisions(node), lambda decision: decision.construct):
        # The conditions of one comprehension are told in the order in which they are written.
        for decision in reversed(list(decisions)):
            for guard in implied(module, decision.test, decision.holds):
                if guard.test not in known and not isinstance(guard.test, cst.BooleanOperation):
                    known.add(guard.test)
                    yield guard


def implied(module: Program, test: cst.BaseExpression, holds: bool) -> Iterator[Guard]:
    """Yield the single tests that a test is made of, as far as its outcome tells theirs.

    Where it tells only that one of several came out so, that is told as the ``and`` or ``or`` of them.
    """
    pending = [(test, holds)]
    followed: set[cst.BaseExpression] = set()
    while pending:
        test, holds = pending.pop()
        match test:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                pending.append((inner, not holds))
            case cst.BooleanOperation(operator=operator, left=left, right=right):
                if isinstance(operator, cst.And) is holds:
                    pending += [(right, holds), (left, holds)]
                else:
                    yield Guard(test, holds)
            case cst.Call(args=[cst.Arg(value=inner)]) if (
                module.names.qualified(test.func) == "builtins.bool"
            ):
                pending.append((inner, holds))
            case cst.IfExp(test=inner, body=cst.Name("True"), orelse=cst.Name("False")):
                pending.append((inner, holds))
            case cst.IfExp(test=inner, body=cst.Name("False"), orelse=cst.Name("True")):
                pending.append((inner, not holds))
            case _:
                yield Guard(test, holds)
                named = test.value if isinstance(test, cst.NamedExpr) else _named_test(module, test)
                if named is not None and named not in followed:
                    followed.add(named)
                    pending.append((named, holds))


def _agreed(one: Fact, other: Fact) -> Fact | None:
    return one if one == other else None


def concluded(
    module: Program,
    test: cst.BaseExpression,
    holds: bool,
    judge: Callable[[Guard], Fact | None],
    meet: Callable[[Fact, Fact], Fact | None] = _agreed,
) -> Fact | None:
    """Return what the outcome of a test tells, by what a judge makes of those of the single tests in it.

    If no more is known than that one of several came out so, all of them must tell something: ``meet`` says
    what two of them have in common.
    """
    for guard in implied(module, test, holds):
        if not isinstance(guard.test, cst.BooleanOperation):
            found = judge(guard)
        else:
            found = met(
                (concluded(module, side, guard.holds, judge, meet) for side in _sides(guard.test)), meet
            )
        if found is not None:
            return found
    return None


def met(told: Iterable[Fact | None], meet: Callable[[Fact, Fact], Fact | None] = _agreed) -> Fact | None:
    """Return what all that is told has in common; None if nothing is told, or by one of them nothing."""
    found: Fact | None = None
    for number, fact in enumerate(told):
        found = fact if not number or fact is None or found is None else meet(found, fact)
        if found is None:
            break
    return found


def _sides(test: cst.BooleanOperation) -> Iterator[cst.BaseExpression]:
    """Yield the operands of a chain of ``and``, or of ``or``."""
    pending: list[cst.BaseExpression] = [test]
    while pending:
        side = pending.pop()
        if isinstance(side, cst.BooleanOperation) and type(side.operator) is type(test.operator):
            pending += (side.right, side.left)
        else:
            yield side


def _named_test(module: Program, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the test whose outcome a variable has: ``has_bias = conv.bias is not None``."""
    binding = module.names.assignment(node)
    value = binding.value if binding is not None else None
    return value if isinstance(value, _TESTS) or (value is not None and _is_spelt_out(value)) else None


def _is_spelt_out(node: cst.BaseExpression) -> bool:
    """Return whether it is ``True if cuda else False``."""
    match node:
        case cst.IfExp(body=cst.Name("True" | "False"), orelse=cst.Name("True" | "False")):
            return True
        case _:
            return False


def unchanged(module: Program, tested: cst.BaseExpression, later: cst.BaseExpression) -> bool:
    """Return whether an expression in a test means what one behind the test does, with the value that it had.

    Both are spelt alike, their names have the same definitions, and no attribute in them is set between
    the two.
    """
    if not alike(tested, later):
        return False
    order = module.tree.order
    ours = [n for n in module.tree.descendants(tested) if isinstance(n, (cst.Name, cst.Attribute))]
    theirs = [n for n in module.tree.descendants(later) if isinstance(n, (cst.Name, cst.Attribute))]
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, cst.Attribute):
            set_at = (order[b.target] for b in module.names.attributes.get(one.attr.value, ()))
            if any(order[tested] < place < order[later] for place in set_at):
                return False
        elif isinstance(other, cst.Name) and not _is_attribute_name(module, one):
            if module.names.bindings(one) != module.names.bindings(other):
                return False
    return True


def _is_attribute_name(module: Program, name: cst.CSTNode) -> bool:
    above = module.tree.parent(name)
    return isinstance(above, cst.Attribute) and above.attr is name
