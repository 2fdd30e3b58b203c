"""Loops over parameters for which ``torch.foreach`` has the very operation: clipped, copied, scaled.

``torch.foreach`` is public since torch 2.15; before that its operations had private names. They do the same
to each tensor as the loop does, bit by bit, and want lists that are not empty, as all parameters make one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes import Edits, spell
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

PUBLIC_SINCE = "2.15"
"""The first release with ``torch.foreach``."""

_ARITHMETIC = (
    *(cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.UnaryOperation, cst.BaseUnaryOp),
    *(cst.BinaryOperation, cst.BaseBinaryOp, cst.Dot, cst.BaseParenthesizableWhitespace),
    *(cst.LeftParen, cst.RightParen),
)


def of_whole_lists(module: Module, loop: cst.For) -> tuple[str, Edits] | None:
    """Return the code that does with ``torch.foreach`` what a loop does, and the imports for it;
    else None.
    """
    names = _lists(module, loop)
    spelling = spell(module, "torch.foreach", loop)
    if names is None or spelling is None:
        return None
    match loop.body.body:
        case [cst.SimpleStatementLine(body=[statement])] | [cst.BaseSmallStatement() as statement]:
            pass
        case _:
            return None
    code = _Operation(module, names, spelling.text).code(statement)
    return (code, spelling.edits) if code is not None else None


def _lists(module: Module, loop: cst.For) -> dict[str, str] | None:
    """Return the variables of a loop, each with the code of the parameters that it goes over."""
    match loop:
        case cst.For(target=cst.Name(name), iter=iterable):
            given = _parameters(module, iterable)
            return {name: given} if given is not None else None
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(one)), cst.Element(value=cst.Name(two))]),
            iter=cst.Call(func=cst.Name("zip") as function, args=[first, second, *further]),
        ) if first.keyword is None and all(arg.keyword is not None for arg in further):
            lists = {one: _parameters(module, first.value), two: _parameters(module, second.value)}
            found = {name: code for name, code in lists.items() if code is not None}
            whole = module.qualified(function) == "builtins.zip" and len(found) == 2
            return found if whole else None
        case _:
            return None


def _parameters(module: Module, iterable: cst.BaseExpression) -> str | None:
    """Return the source of ``model.parameters()``;
    None for other lists: one of buffers, or of some parameters, may be empty.
    """
    match iterable:
        case cst.Call(func=cst.Attribute(attr=cst.Name("parameters")), args=[]):
            return module.source(iterable)
        case cst.Call(func=cst.Name("list"), args=[cst.Arg(value=inner)]):
            return _parameters(module, inner)
        case _:
            return None


class _Operation:
    """One statement of a loop, as an operation on lists."""

    def __init__(self, module: Module, names: dict[str, str], foreach: str) -> None:
        self.module, self.names, self.foreach = module, names, foreach

    def code(self, statement: cst.CSTNode) -> str | None:
        match statement:
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(name), value=owner), args=args)):
                target = self._list(owner)
                if target is None or any(arg.star for arg in args):
                    return None
                match name:
                    case "clamp_" | "clip_" | "clamp_min_" | "clamp_max_":
                        return self._clamped(name, target, args) if not self._is_gradient(owner) else None
                    case "copy_" if len(args) == 1:
                        source = self._list(args[0].value)
                        if source is None or self._is_gradient(owner) or self._is_gradient(args[0].value):
                            return None
                        return f"{self.foreach}.copy_({target}, {source})"
                    case "mul_" if len(args) == 1 and self._is_gradient(owner):
                        return self._scaled(target, args[0].value)
                    case _:
                        return None
            case cst.AugAssign(operator=cst.MultiplyAssign(), target=owner, value=value):
                target = self._list(owner)
                return (
                    self._scaled(target, value) if target is not None and self._is_gradient(owner) else None
                )
            case _:
                return None

    def _clamped(self, name: str, target: str, args: Sequence[cst.Arg]) -> str | None:
        places = {"clamp_min_": ("min",), "clamp_max_": ("max",)}.get(name, ("min", "max"))
        bounds: dict[str, cst.BaseExpression] = {}
        for place, arg in enumerate(args):
            key = arg.keyword.value if arg.keyword is not None else places[place : place + 1]
            bounds[key if isinstance(key, str) else "".join(key)] = arg.value
        code = target
        for key in ("min", "max"):
            bound = bounds.pop(key, None)
            if bound is None or self.module.value(bound).kind is Kind.NONE:
                continue
            if not self._is_number(bound):
                return None
            code = f"{self.foreach}.clamp_{key}_({code}, {self.module.source(bound)})"
        return code if not bounds and code != target else None

    def _scaled(self, target: str, value: cst.BaseExpression) -> str | None:
        # One factor for all has to be a number, or a tensor without dimensions.
        if not self._is_number(value) or self.module.value(value).kind is not Kind.NUMBER:
            return None
        return f"{self.foreach}.mul_({target}, {self.module.source(value)})"

    def _list(self, tensor: cst.BaseExpression) -> str | None:
        """Return code for a list of what an expression is in all rounds:
        ``[p.data for p in net.parameters()]``.
        """
        root: cst.BaseExpression = tensor
        while True:
            match root:
                case cst.Attribute(attr=cst.Name("data" | "grad"), value=inner):
                    root = inner
                case cst.Call(func=cst.Attribute(attr=cst.Name("detach"), value=inner), args=[]):
                    root = inner
                case _:
                    break
        if not isinstance(root, cst.Name) or root.value not in self.names:
            return None
        given = self.names[root.value]
        return (
            f"list({given})"
            if root is tensor
            else f"[{self.module.source(tensor)} for {root.value} in {given}]"
        )

    def _is_gradient(self, tensor: cst.BaseExpression) -> bool:
        return ".grad" in self.module.source(tensor)

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression can be a number that is the same in each round,
        and does nothing else.
        """
        if self.module.value(node).kind in (Kind.TENSOR, Kind.NDARRAY):
            return False
        parts = list(self.module.tree.descendants(node))
        names = {part.value for part in parts if isinstance(part, cst.Name)}
        return all(isinstance(part, _ARITHMETIC) for part in parts) and not names & set(self.names)
