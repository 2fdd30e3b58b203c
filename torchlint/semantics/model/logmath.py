"""Logarithms and exponentials of tensors in two steps, for which torch has one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.algebra import (
    argument,
    one_line,
    only_here,
    operand,
    plus_number,
    removable,
    still,
    through_names,
)
from torchlint.semantics.operations import Operation

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What is added to keep a logarithm from infinity.
_GUARD = 1e-4


@dataclass(frozen=True, slots=True)
class Fused:
    """The one function for two steps.

    Attributes:
        formula: the two steps, as in a textbook.
        qualified: the dotted name of the function.
        arguments: the code of its arguments; None if it cannot be written down here.
        exact: whether it is equal, rounding aside.
        removed: the statements that nothing needs any more.
    """

    formula: str
    qualified: str
    arguments: str | None
    exact: bool = True
    removed: tuple[cst.CSTNode, ...] = ()

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
        operation = self.module.dataflow.operations.of(self.node)
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
    ) -> Fused:
        """The answer, with arguments if all that they read still means the same where they are written."""
        removed = [removable(self.module, name) for name in names]
        kept = any(statement is None for statement in removed)
        movable = all(still(self.module, node, self.node) for node in read) and (
            # A step that is needed elsewhere stays, and so what it is computed of must not be computed twice.
            not kept or not names or all(self.module.dataflow.operations.at_hand(node) for node in read)
        )
        if code is None or not movable or not one_line(code):
            return Fused(formula, qualified, None, exact)
        gone = tuple(dict.fromkeys(s for s in removed if s is not None)) if not kept else ()
        return Fused(formula, qualified, code, exact, gone)

    def _exp_minus_one(self) -> Fused | None:
        found = plus_number(self.module, self.node)
        if found is None or found[1] != -1:
            return None
        operation = only_here(self.module, found[0])
        if operation is None or operation.name != "exp" or operation.in_place or operation.options:
            return None
        x = operation.operands[0]
        names = through_names(self.module, found[0], 0)
        return self._fused("exp(x) - 1", "torch.expm1", names, [x], argument(self.module, x))

    def _log_of_one_more(self, inner: cst.BaseExpression) -> Fused | None:
        found = plus_number(self.module, inner)
        if found is None or found[1] != 1 or self.module.dataflow.operations.number(found[0]) is not None:
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
        return self._fused("log(softmax(x))", "torch.log_softmax", names, read, code, exact)

    def _of_softmax(self, softmax: Operation) -> str | None:
        """The arguments of softmax, for ``torch.log_softmax``."""
        dim = softmax.options.get("dim")
        if dim is None or set(softmax.options) - {"dim", "dtype"}:
            return None
        code = argument(self.module, dim)
        if softmax.layer is not None:
            number = self.module.dataflow.operations.integer(dim)
            if number is None:
                return None
            code = str(number)
        dtype = softmax.options.get("dtype")
        last = f", dtype={argument(self.module, dtype)}" if dtype is not None else ""
        return f"{argument(self.module, softmax.operands[0])}, dim={code}{last}"

    def _unguarded(
        self, inner: cst.BaseExpression, name: str
    ) -> tuple[Operation | None, bool, list[cst.Name]]:
        """The operation of this name, whether nothing like ``1e-8`` is added to it, and names on the way."""
        operations = self.module.dataflow.operations
        found = operations.behind(inner)
        if found is not None and found.name == name and not found.in_place:
            return found, True, through_names(self.module, inner, 0)
        guarded = plus_number(self.module, inner)
        if guarded is None or not 0 < guarded[1] <= _GUARD:
            return None, False, []
        found = operations.behind(guarded[0])
        if found is None or found.name != name or found.in_place:
            return None, False, []
        names = [*through_names(self.module, inner, 0), *through_names(self.module, guarded[0], 0)]
        return found, False, list(dict.fromkeys(names))

    def _log_sigmoid(self, inner: cst.BaseExpression) -> Fused | None:
        sigmoid, exact, names = self._unguarded(inner, "sigmoid")
        name = "torch.nn.functional.logsigmoid"
        if sigmoid is not None:
            x = sigmoid.operands[0]
            return self._fused("log(sigmoid(x))", name, names, [x], argument(self.module, x), exact)
        operations = self.module.dataflow.operations
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
        total = only_here(self.module, inner)
        if total is None or total.name != "sum" or "dim" not in total.options or total.in_place:
            return None
        if set(total.options) - {"dim", "keepdim"}:
            return None
        powers = only_here(self.module, total.operands[0])
        if powers is None or powers.name != "exp" or powers.in_place or powers.options:
            return None
        dim, keep, x = total.options["dim"], total.options.get("keepdim"), powers.operands[0]
        if isinstance(dim, cst.Name) and dim.value == "None":
            return None
        last = f", keepdim={argument(self.module, keep)}" if keep is not None else ""
        code = f"{argument(self.module, x)}, dim={argument(self.module, dim)}{last}"
        read = [x, dim] if keep is None else [x, dim, keep]
        names = through_names(self.module, inner, 1)
        return self._fused("log(sum(exp(x)))", "torch.logsumexp", names, read, code)


def fused_form(module: Module, node: cst.BaseExpression) -> Fused | None:
    """The function that computes an expression in one step; None if it is no such pair of steps."""
    return _Search(module, node).find()
