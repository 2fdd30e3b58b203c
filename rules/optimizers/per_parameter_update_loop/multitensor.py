"""The one call of torch that stands for a loop over parameters, where torch documents one.

``get_ema_multi_avg_fn`` (torch 2.1) gives the function with which ``AveragedModel`` averages all parameters
at once, and ``clip_grad_value_`` clips all gradients at once since torch 2.0. The operations on lists of
tensors that both are made of (``torch._foreach_lerp_``) are private by their names before torch 2.15.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import Edits, replace, spell, unsafe
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.values import Kind

from .foreach import PUBLIC_SINCE, of_whole_lists
from .updates import Change, UpdateLoop

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_AVERAGE = "torch.optim.swa_utils.get_ema_multi_avg_fn"
_CLIP = "torch.nn.utils.clip_grad_value_"
# Averages are kept in another dtype than the weights, which operations on lists do not mix.
_MIXED = frozenset({"half", "float16", "bfloat16"})
# The comment at the end of the header of a loop, behind what it goes through.
_BEHIND_HEADER = re.compile(r"\s*:[ \t]*(#[^\r\n]*)")

Mix = tuple[str, str, str]
"""The target and the source of an average, and the share of the target that is kept, as code."""


def as_one_call(module: Module, found: UpdateLoop) -> Fix | None:
    """Replace the whole loop by one call; None where torch has none, or it would not do the same."""
    if _needed_later(module, found.loop):
        return None
    if found.change is Change.AVERAGE and module.target.at_least("2.1"):
        return _average(module, found.loop)
    if found.change is Change.CLIP and module.target.at_least("2.0"):
        return _clip(module, found.loop)
    if found.change in (Change.CLAMP, Change.COPY, Change.SCALE) and module.target.at_least(PUBLIC_SINCE):
        return _by_foreach(module, found.loop)
    return None


def _by_foreach(module: Module, loop: cst.For) -> Fix | None:
    made = of_whole_lists(module, loop)
    if made is None:
        return None
    code, imports = made
    return unsafe(
        module,
        "Replace the loop with `torch.foreach`",
        _instead_of(module, loop, code),
        imports,
        risk="`torch.foreach` is in beta, and may change",
    )


def _needed_later(module: Module, loop: cst.For) -> bool:
    """Return whether a variable of the loop is read behind it."""
    for target in module.tree.descendants(loop.target):
        binding = module.binding_of(target)
        if binding is not None and any(not module.tree.contains(loop, use) for use in module.uses(binding)):
            return True
    return False


# --- moving averages --------------------------------------------------------------------------------


def _average(module: Module, loop: cst.For) -> Fix | None:
    match loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(one)), cst.Element(value=cst.Name(two))]),
            iter=cst.Call(func=cst.Name("zip"), args=[first, second, *further]),
        ) if first.keyword is None and all(arg.keyword is not None for arg in further):
            lists = {one: _as_list(module, first.value), two: _as_list(module, second.value)}
        case _:
            return None
    assert isinstance(loop.iter, cst.Call)
    if module.qualified(loop.iter.func) != "builtins.zip":
        return None
    mix = _Mixing(module, frozenset(lists)).read(_statements(loop.body))
    if mix is None or not _MIXED.isdisjoint(identifiers(module)):
        return None
    target, source, kept = mix
    spelling = spell(module, _AVERAGE, loop)
    if spelling is None or target == source or None in lists.values():
        return None
    code = f"{spelling.text}({kept})({lists[target]}, {lists[source]}, None)"
    return unsafe(
        module,
        f"Replace the loop with `{spelling.text}`",
        _instead_of(module, loop, code),
        spelling.edits,
        risk="results change in the last digits, and both modules need the same parameters and dtypes",
    )


def _instead_of(module: Module, loop: cst.For, code: str) -> Edits | None:
    """Put ``code`` in place of a loop, with the comment at the end of its first line."""
    behind = _BEHIND_HEADER.match(module.tree.text, module.tree.outer_span(loop.iter).end)
    if behind is not None and isinstance(loop.body, cst.IndentedBlock):
        code += f"  {behind[1]}"
    return replace(module, loop, code)


def _as_list(module: Module, given: cst.BaseExpression) -> str | None:
    """Return code for the list of all parameters of a module; None for anything else,
    such as integer buffers.
    """
    match given:
        case cst.Call(func=cst.Attribute(attr=cst.Name("parameters")), args=[]):
            return f"list({module.source(given)})"
        case cst.Call(func=cst.Name("list"), args=[cst.Arg(value=inner)]):
            return _as_list(module, inner)
        case _:
            return None


def _statements(block: cst.BaseSuite) -> list[cst.BaseSmallStatement]:
    """Return the small statements of a body; none if it has others."""
    found: list[cst.BaseSmallStatement] = []
    for statement in block.body:
        if isinstance(statement, cst.SimpleStatementLine):
            found.extend(statement.body)
        elif isinstance(statement, cst.BaseSmallStatement):
            found.append(statement)
        else:
            return []
    return found


class _Mixing:
    """Reads ``t = a * t + b * s`` in all its spellings, where the shares make up a whole."""

    def __init__(self, module: Module, names: frozenset[str]) -> None:
        self.module = module
        self.names = names

    def read(self, statements: Sequence[cst.BaseSmallStatement]) -> Mix | None:
        match statements:
            case [cst.Expr(value=cst.Call() as call)]:
                return self._call(call)
            case [
                cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("data")) as target)])
            ]:
                assign = statements[0]
                assert isinstance(assign, cst.Assign)
                return self._sum(self._plain(target), assign.value)
            case [first, second]:
                return self._two(first, second)
            case _:
                return None

    def _call(self, call: cst.Call) -> Mix | None:
        match call:
            case cst.Call(
                func=cst.Attribute(
                    attr=cst.Name("add_"),
                    value=cst.Call(func=cst.Attribute(attr=cst.Name("mul_"), value=target), args=[kept]),
                )
            ):
                return self._made(self._plain(target), kept.value, self._added(call.args))
            case cst.Call(func=cst.Attribute(attr=cst.Name("copy_"), value=target), args=[value]):
                return self._sum(self._plain(target), value.value)
            case cst.Call(func=cst.Attribute(attr=cst.Name("lerp_"), value=target), args=[source, weight]):
                return self._lerp(self._plain(target), self._plain(source.value), weight.value)
            case _:
                return None

    def _two(self, first: cst.BaseSmallStatement, second: cst.BaseSmallStatement) -> Mix | None:
        """Return the average that ``t *= a`` and ``t += b * s`` compute together."""
        match first:
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(attr=cst.Name("mul_"), value=owner), args=[kept])
            ):
                target, share = self._plain(owner), kept.value
            case cst.AugAssign(operator=cst.MultiplyAssign(), target=owner, value=share):
                target = self._plain(owner)
            case _:
                return None
        match second:
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("add_"), value=owner), args=args)):
                added = self._added(args)
            case cst.AugAssign(operator=cst.AddAssign(), target=owner, value=value):
                added = self._product(value)
            case _:
                return None
        return self._made(target, share, added) if self._plain(owner) == target else None

    def _sum(self, target: str | None, value: cst.BaseExpression) -> Mix | None:
        """Return the average that ``a * t + b * s`` computes, in either order."""
        match value:
            case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
                products = [self._product(left), self._product(right)]
            case _:
                return None
        own = [p for p in products if p is not None and p[0] == target]
        other = [p for p in products if p is not None and p[0] != target]
        return self._made(target, own[0][1], other[0]) if own and other else None

    def _added(self, args: Sequence[cst.Arg]) -> tuple[str, cst.BaseExpression] | None:
        """Return what is added, and the share of it: ``(s, alpha=b)``, ``(b * s)``,
        ``(b, s)`` as it was once.
        """
        match args:
            case [cst.Arg(keyword=None, value=source), cst.Arg(keyword=cst.Name("alpha"), value=share)]:
                name = self._plain(source)
                return (name, share) if name is not None else None
            case [cst.Arg(keyword=None, value=value)]:
                return self._product(value)
            case [cst.Arg(keyword=None, value=share), cst.Arg(keyword=None, value=source)]:
                name = self._plain(source)
                return (name, share) if name is not None else None
            case _:
                return None

    def _product(self, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
        match value:
            case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
                for tensor, share in ((left, right), (right, left)):
                    name = self._plain(tensor)
                    if name is not None:
                        return name, share
        return None

    def _plain(self, node: cst.BaseExpression) -> str | None:
        """Return the variable of the loop that an expression is,
        with ``.data`` or ``.detach()`` or without.
        """
        match node:
            case cst.Name(name):
                return name if name in self.names else None
            case cst.Attribute(attr=cst.Name("data"), value=inner):
                return self._plain(inner)
            case cst.Call(func=cst.Attribute(attr=cst.Name("detach"), value=inner), args=[]):
                return self._plain(inner)
            case _:
                return None

    def _made(
        self, target: str | None, kept: cst.BaseExpression, added: tuple[str, cst.BaseExpression] | None
    ) -> Mix | None:
        """Return the average, if both shares are numbers that make up a whole."""
        if target is None or added is None or not (self._is_share(kept) and self._is_share(added[1])):
            return None
        one, other = self.module.value(kept).constant, self.module.value(added[1]).constant
        if isinstance(one, float | int) and isinstance(other, float | int):
            whole = abs(one + other - 1) < 1e-9
        else:
            whole = self._rest(added[1]) == self._code(kept) or self._rest(kept) == self._code(added[1])
        return (target, added[0], self._code(kept)) if whole else None

    def _lerp(self, target: str | None, source: str | None, weight: cst.BaseExpression) -> Mix | None:
        if target is None or source is None or not self._is_share(weight):
            return None
        code = self._code(weight)
        atom = isinstance(weight, (cst.Name, cst.Attribute, cst.Float, cst.Integer, cst.Call, cst.Subscript))
        return target, source, self._rest(weight) or (f"1 - {code}" if atom else f"1 - ({code})")

    def _is_share(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression can be a number, and depends on nothing that the loop visits."""
        inside = self.module.tree.names_in(node)
        return self.module.value(node).kind is not Kind.TENSOR and not inside & self.names

    def _rest(self, node: cst.BaseExpression) -> str | None:
        """Return ``a`` in ``1 - a``."""
        match node:
            case cst.BinaryOperation(operator=cst.Subtract(), left=one, right=share):
                return self._code(share) if self.module.value(one).constant == 1 else None
            case _:
                return None

    def _code(self, node: cst.BaseExpression) -> str:
        """Return the source of an expression without the parentheses around it."""
        text = self.module.source(node)
        for _ in range(self.module.tree.parentheses(node)):
            text = text.removeprefix("(").removesuffix(")").strip()
        return text


# --- gradients --------------------------------------------------------------------------------------


def clipped_to(module: Module, loop: cst.For) -> cst.BaseExpression | None:
    """Return ``c`` where all that a loop does is ``p.grad.clamp_(-c, c)``, asking for None before at most."""
    body = loop.body
    match body.body:
        case [cst.If(orelse=None, body=inner, test=test)] if _asks_for_none(test):
            body = inner
        case _:
            pass
    match _statements(body):
        case [cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name("clamp_" | "clip_")), args=args))]:
            pass
        case _:
            return None
    bounds = {
        arg.keyword.value if arg.keyword is not None else place: arg.value
        for place, arg in zip(("min", "max"), args, strict=False)
    }
    low, high = bounds.get("min"), bounds.get("max")
    if low is None or high is None or len(args) > 2:
        return None
    match low:
        case cst.UnaryOperation(operator=cst.Minus(), expression=limit):
            if module.source(limit) == module.source(high):
                return high
        case _:
            pass
    lower, upper = module.value(low).constant, module.value(high).constant
    if isinstance(lower, float | int) and isinstance(upper, float | int) and lower == -upper:
        return high
    return None


def _asks_for_none(test: cst.BaseExpression) -> bool:
    """Return whether it is ``p.grad is not None``."""
    match test:
        case cst.Comparison(
            left=cst.Attribute(attr=cst.Name("grad")),
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            return True
        case _:
            return False


def _clip(module: Module, loop: cst.For) -> Fix | None:
    limit = clipped_to(module, loop)
    spelling = spell(module, _CLIP, loop)
    match loop.iter:
        case cst.Call(func=cst.Attribute(attr=cst.Name("parameters")), args=[]) | cst.Subscript():
            given = module.source(loop.iter)
        case cst.Call(func=cst.Attribute(attr=cst.Name("named_parameters"), value=owner), args=[]):
            given = f"{module.source(owner)}.parameters()"
        case _:
            return None
    if limit is None or spelling is None:
        return None
    code = f"{spelling.text}({given}, {module.source(limit)})"
    return unsafe(
        module,
        f"Replace the loop with `{code}`",
        _instead_of(module, loop, code),
        spelling.edits,
        risk="parameters without a gradient are skipped",
    )
