"""Logarithms and exponentials of tensors in two steps, for which torch has one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.constancy import same_later
from torchlint.semantics.formulas import argument, as_assigned, only_here, operand, plus_number
from torchlint.semantics.operations import Operation, operations_of
from torchlint.semantics.sources import Path, Through, some, traced
from torchlint.semantics.values import Kind

from ..formulas import one_line, superfluous, through_names
from .maxshift import Shift, shifted

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What is added to keep a logarithm from infinity.
_GUARD = 1e-4
# How many pairs of steps that begin with one value are looked at together.
_MOST_READS = 8
_OF_GRADIENTS = ("register_hook", "retain_grad", "grad")


@dataclass(frozen=True, slots=True)
class Fused:
    """The one function for two steps.

    Attributes:
        formula: the two steps, as in a textbook.
        qualified: the dotted name of the function.
        arguments: the code of its arguments; None if it cannot be written down here.
        exact: whether it is equal, rounding aside.
        removed: the statements that nothing needs any more.
        replaced: what the function takes the place of.
        names: the names of the steps, from the one that is read on.
        read: what its arguments read.
    """

    formula: str
    qualified: str
    arguments: str | None
    exact: bool = True
    removed: tuple[cst.CSTNode, ...] = ()
    replaced: cst.BaseExpression | None = None
    names: tuple[cst.Name, ...] = ()
    read: tuple[cst.BaseExpression, ...] = ()

    @property
    def function(self) -> str:
        """The function's own name."""
        return self.qualified.rpartition(".")[2]


@dataclass(slots=True)
class _Search:
    """The search for the two steps that one call, ``node``, ends."""

    module: Module
    node: cst.BaseExpression

    def find(self) -> Fused | None:
        if isinstance(self.node, cst.BinaryOperation):
            return self._exp_minus_one() if isinstance(self.node.operator, cst.Subtract) else None
        assert isinstance(self.node, cst.Call)
        name = self.node.func.attr if isinstance(self.node.func, cst.Attribute) else self.node.func
        if not isinstance(name, cst.Name) or name.value not in ("log", "sub", "subtract"):
            return None
        operation = operations_of(self.module).of(self.node)
        if operation is None or operation.in_place or operation.options:
            return None
        if operation.name == "sub":
            return self._exp_minus_one()
        if operation.name != "log":
            return None
        inner = operation.operands[0]
        return (
            self._log_softmax(inner)
            or self._log_sigmoid(inner)
            or self._log_of_sum(inner)
            or self._log_of_one_more(inner)
        )

    def _fused(
        self,
        formula: str,
        qualified: str,
        names: Sequence[cst.Name],
        read: Sequence[cst.BaseExpression],
        code: str | None,
        exact: bool = True,
        whole: cst.BaseExpression | None = None,
    ) -> Fused:
        """Return the answer, with arguments if all that they read still means the same
        where they are written.
        """
        whole = whole or self.node
        found = superfluous(self.module, names)
        if found is None or code is None or not one_line(code):
            return Fused(formula, qualified, None, exact)
        removed, all_gone = found
        if not all_gone and any(_is_differentiated(self.module, name) for name in names):
            return Fused(formula, qualified, None, exact)
        movable = all(same_later(self.module, node, whole, removed) for node in read) and (
            # A step that is needed elsewhere stays, and so what it is computed of must not be computed twice.
            all_gone or all(operations_of(self.module).at_hand(node) for node in read)
        )
        if not movable:
            return Fused(formula, qualified, None, exact)
        return Fused(formula, qualified, code, exact, tuple(removed), whole, tuple(names), tuple(read))

    def _exp_minus_one(self) -> Fused | None:
        through: list[cst.Name] = []
        found = plus_number(self.module, self.node, through)
        if found is None or found[1] != -1:
            return None
        operation = only_here(self.module, found[0], through)
        if operation is None or operation.name != "exp" or operation.in_place or operation.options:
            return None
        if not as_assigned(self.module, through):
            return None
        x = operation.operands[0]
        names = through_names(self.module, found[0], 0)
        return self._fused("exp(x) - 1", "torch.expm1", names, [x], argument(self.module, x))

    def _log_of_one_more(self, inner: cst.BaseExpression) -> Fused | None:
        through: list[cst.Name] = []
        found = plus_number(self.module, inner, through)
        if found is None or found[1] != 1 or operations_of(self.module).number(found[0]) is not None:
            return None
        if not as_assigned(self.module, through):
            return None
        names = through_names(self.module, inner, 0)
        return self._fused("log(1 + x)", "torch.log1p", names, [found[0]], argument(self.module, found[0]))

    def _log_softmax(self, inner: cst.BaseExpression) -> Fused | None:
        softmax, exact, names = self._unguarded(inner, "softmax")
        if softmax is None:
            return None
        read = [softmax.operands[0]]
        if softmax.layer is None:
            read += softmax.options.values()
        code = self._of_softmax(softmax)
        exact = exact and not _may_be_left_out(self.module, softmax.options.get("dim"))
        return self._fused("log(softmax(x))", "torch.log_softmax", names, read, code, exact)

    def _of_softmax(self, softmax: Operation) -> str | None:
        """Return the arguments of softmax, for ``torch.log_softmax``."""
        dim = softmax.options.get("dim")
        if dim is None or set(softmax.options) - {"dim", "dtype"}:
            return None
        code = argument(self.module, dim)
        if softmax.layer is not None:
            number = operations_of(self.module).integer(dim)
            if number is None:
                return None
            code = str(number)
        dtype = softmax.options.get("dtype")
        last = f", dtype={argument(self.module, dtype)}" if dtype is not None else ""
        return f"{argument(self.module, softmax.operands[0])}, dim={code}{last}"

    def _unguarded(
        self, inner: cst.BaseExpression, name: str
    ) -> tuple[Operation | None, bool, list[cst.Name]]:
        """Return the operation of this name, whether nothing like ``1e-8`` is added to it,
        and names on the way.
        """
        operations = operations_of(self.module)
        found = operations.behind(inner)
        if found is not None and found.name == name and not found.in_place:
            return found, True, through_names(self.module, inner, 0)
        through: list[cst.Name] = []
        guarded = plus_number(self.module, inner, through)
        if guarded is None or not 0 < guarded[1] <= _GUARD:
            return None, False, []
        found = operations.behind(guarded[0])
        if found is None or found.name != name or found.in_place or not as_assigned(self.module, through):
            return None, False, []
        names = [*through_names(self.module, inner, 0), *through_names(self.module, guarded[0], 0)]
        return found, False, list(dict.fromkeys(names))

    def _log_sigmoid(self, inner: cst.BaseExpression) -> Fused | None:
        sigmoid, exact, names = self._unguarded(inner, "sigmoid")
        name = "torch.nn.functional.logsigmoid"
        if sigmoid is not None:
            x = sigmoid.operands[0]
            return self._fused("log(sigmoid(x))", name, names, [x], argument(self.module, x), exact)
        operations = operations_of(self.module)
        complement = operations.behind(inner)
        if complement is None or complement.name != "sub" or complement.options or complement.in_place:
            return None
        if operations.number(complement.operands[0]) != 1:
            return None
        sigmoid = operations.behind(complement.operands[1])
        if sigmoid is None or sigmoid.name != "sigmoid" or sigmoid.in_place:
            return None
        x = sigmoid.operands[0]
        names = [
            *through_names(self.module, inner, 0),
            *through_names(self.module, complement.operands[1], 0),
        ]
        return self._fused("log(1 - sigmoid(x))", name, names, [x], f"-{operand(self.module, x)}")

    def _log_of_sum(self, inner: cst.BaseExpression) -> Fused | None:
        through: list[cst.Name] = []
        total = only_here(self.module, inner, through)
        if total is None or total.name != "sum" or "dim" not in total.options or total.in_place:
            return None
        if set(total.options) - {"dim", "keepdim"}:
            return None
        powers = only_here(self.module, total.operands[0], through)
        if powers is None or powers.name != "exp" or powers.in_place or powers.options:
            return None
        if not as_assigned(self.module, through):
            return None
        dim, keep, x = total.options["dim"], total.options.get("keepdim"), powers.operands[0]
        if self.module.value(dim).kind is Kind.NONE or (isinstance(dim, cst.Tuple) and not dim.elements):
            return None
        exact = not _may_be_left_out(self.module, dim)
        last = f", keepdim={argument(self.module, keep)}" if keep is not None else ""
        code = f"{argument(self.module, x)}, dim={argument(self.module, dim)}{last}"
        read = [x, dim] if keep is None else [x, dim, keep]
        names = through_names(self.module, inner, 1)
        by_hand = shifted(self.module, self.node, x, dim, keep)
        if by_hand is None:
            return self._fused("log(sum(exp(x)))", "torch.logsumexp", names, read, code, exact)
        if by_hand.whole is None:
            # ``logsumexp`` takes the largest term out itself; with one half left it would be done twice.
            return Fused("log(sum(exp(x)))", "torch.logsumexp", None)
        code = f"{argument(self.module, by_hand.x)}, dim={argument(self.module, dim)}{last}"
        read = [by_hand.x, *read[1:]]
        fused = self._fused("log(sum(exp(x)))", "torch.logsumexp", names, read, code, exact, by_hand.whole)
        return self._without_shift(fused, by_hand)

    def _without_shift(self, fused: Fused, by_hand: Shift) -> Fused:
        """Return the answer that takes out the maximum, too, if nothing else reads it."""
        (name, *others) = by_hand.names
        found = superfluous(self.module, [name], others)
        if fused.arguments is None or found is None:
            return replace(fused, arguments=None)
        return replace(fused, removed=(*fused.removed, *found[0]))


def _may_be_left_out(module: Module, dim: cst.BaseExpression | None) -> bool:
    """Return whether a dimension may be None or empty, which the fused function does not take."""
    return dim is not None and some(_left_out(module, dim))


@traced(Through.PARAMETERS | Through.ITEMS)
def _left_out(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    if path:
        return None
    if isinstance(node, cst.BaseExpression) and module.value(node).kind is Kind.NONE:
        return True
    match node:
        case cst.Param(default=cst.Name("None")):
            return True
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return not elements
    return None


def _is_differentiated(module: Module, name: cst.Name) -> bool:
    """Return whether a step has a hook, or gradients are asked for with respect to it:
    it has to be computed.
    """
    uses = [use for binding in module.bindings(name) for use in module.uses(binding)]
    for use in uses:
        around = module.tree.parent(use)
        if isinstance(around, cst.Attribute) and around.attr.value in _OF_GRADIENTS:
            return True
        call = module.tree.enclosing(use, cst.Call)
        if call is not None and module.qualified(call.func) == "torch.autograd.grad":
            return True
    return False


def fused_form(module: Module, node: cst.BaseExpression) -> Fused | None:
    """Return the function that computes an expression in one step; None if it is no such pair of steps."""
    return _Search(module, node).find()


def fused_together(module: Module, fused: Fused) -> list[Fused]:
    """Return the forms that are written in one edit,
    so that a step which only such pairs read can go with them.

    ``p = sigmoid(x)`` of ``log(p)`` and ``log(1 - p)`` is needed by neither once both are ``logsigmoid``.
    """
    read = next((name for name in fused.names if len(_reads(module, name)) > 1), None)
    if read is None or len(_reads(module, read)) > _MOST_READS:
        return [fused]
    family = [fused]
    for use in _reads(module, read):
        if any(use in other.names for other in family):
            continue
        other = _form_around(module, use)
        if other is None:
            return [fused]
        family.append(other)
    found = superfluous(module, [read, *fused.names[fused.names.index(read) + 1 :]], _reads(module, read))
    if found is None or not found[1]:
        return [replace(fused, arguments=None)]
    gone = tuple(dict.fromkeys([*(s for other in family for s in other.removed), *found[0]]))
    places = [other.replaced for other in family if other.replaced is not None]
    if any(one is not other and module.tree.contains(one, other) for one in places for other in places):
        return [replace(fused, arguments=None)]
    return [replace(family[0], removed=gone), *(replace(other, removed=()) for other in family[1:])]


def _reads(module: Module, name: cst.Name) -> list[cst.Name]:
    return [use for binding in module.bindings(name) for use in module.uses(binding)]


def _form_around(module: Module, use: cst.Name) -> Fused | None:
    """Return the pair of steps that begins with a read."""
    for around in module.tree.ancestors(use):
        if isinstance(around, cst.BaseStatement | cst.BaseSmallStatement):
            break
        if isinstance(around, cst.Call | cst.BinaryOperation):
            found = fused_form(module, around)
            if found is not None:
                return found if found.arguments is not None and use in found.names else None
    return None
