"""Running totals on the device: how wide they have to be, and where the program wants them as numbers.

A total that is a tensor is made a number where it is read behind the loop: whatever prints it, writes it or
is given it meets what it met before.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.names import Binding, BindingKind, Scope, ScopeKind
from torchlint.semantics.reach import gathered
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Path, Source, Through, onward, sole, some, traced
from torchlint.semantics.usage import COMPUTING, uses_by_name
from torchlint.semantics.values import Graph, Kind
from torchlint.semantics.wholeprogram import used_elsewhere

from ..waits import waiting_place
from .effects import Effect, assigned_part, effect_of_augmenting, tensor_at

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_FLOATS = frozenset({"torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"})
_WHOLE = frozenset({"torch.bool", "torch.int64"})
NARROW = frozenset({"torch.uint8", "torch.int8", "torch.int16", "torch.int32"})
"""Whole numbers that a sum in Python does not wrap, but one of tensors does."""
# Methods and functions that give floating point whatever they are given, or raise.
_GIVE_FLOATS = frozenset(
    {"mean", "nanmean", "std", "var", "norm", "exp", "log", "log1p", "log2", "log10", "sqrt", "sigmoid"}
    | {"softmax", "log_softmax", "logsumexp", "float", "double", "half", "bfloat16", "rsqrt", "tanh"}
)
_COMPARE = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_and", "isin"}
)
_COUNT = frozenset({"argmax", "argmin", "count_nonzero", "long"})
_AS_IT_IS = frozenset(
    {"detach", "cpu", "cuda", "clone", "contiguous", "view", "reshape", "squeeze", "flatten", "abs", "t"}
    | {"max", "min", "median", "unsqueeze", "view_as", "expand_as", "neg", "item"}
)
_SUMS = frozenset({"sum", "prod", "cumsum"})
_NORMS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm"})
_CONVERSIONS = frozenset({"builtins.float", "builtins.int", "builtins.bool"})
_SIZES = frozenset({"size", "numel", "dim"})


class Content(enum.Enum):
    """What numbers a tensor holds, as far as the file shows."""

    WHOLE = "int"
    FLOATING = "float"
    UNKNOWN = ""


_NUMBERS = {
    "builtins.len": Content.WHOLE,
    "builtins.int": Content.WHOLE,
    "builtins.bool": Content.WHOLE,
    "builtins.float": Content.FLOATING,
}


def content(module: Module, node: cst.BaseExpression) -> Content:
    """Return whether a tensor, or a number, is whole, 64 bits wide once many are added up,
    or of floating point.
    """
    return sole(_contents(module, node)) or Content.UNKNOWN


@traced(Through.NOTHING)
def _contents(module: Module, node: cst.CSTNode, path: Path) -> Content | list[Source] | None:
    """Return the content that an expression is seen to have, or what has the same."""
    if path or not isinstance(node, cst.BaseExpression):
        return None
    value = module.value(node)
    if value.dtype in _FLOATS or (value.kind is Kind.TENSOR and value.graph is Graph.ATTACHED):
        return Content.FLOATING
    if value.dtype in _WHOLE:
        return Content.WHOLE
    if isinstance(value.constant, (int, float)):
        return Content.WHOLE if isinstance(value.constant, int) else Content.FLOATING
    match node:
        case cst.Call():
            return _of_call(module, node)
        case cst.BinaryOperation():
            return _of_operation(module, node)
        case cst.UnaryOperation(operator=cst.Minus()):
            return onward(node.expression)
        case cst.Comparison() | cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return Content.WHOLE
        case cst.Attribute(attr=cst.Name("data")):
            return onward(node.value)
        case cst.Attribute(attr=cst.Name("loss" | "grad")):
            return Content.FLOATING
        case cst.Name() if Backpropagation.of(module).is_loss(node):
            return Content.FLOATING
    return None


def _of_call(module: Module, call: cst.Call) -> Content | list[Source] | None:
    qualified = module.qualified(call.func)
    package, _, name = (qualified or "").rpartition(".")
    owner: cst.BaseExpression | None = call.args[0].value if call.args else None
    if qualified is None:
        criterion = module.value(call.func)
        if criterion.kind is Kind.MODULE:
            return Content.FLOATING if criterion.cls in NN_LOSSES else None
        if not isinstance(call.func, cst.Attribute):
            return None
        name, owner = call.func.attr.value, call.func.value
        if name in _SIZES:
            return Content.WHOLE
    elif qualified in FUNCTIONAL_LOSSES or qualified in _NORMS:
        return Content.FLOATING
    elif package != "torch":
        return _NUMBERS.get(qualified)
    if name in _GIVE_FLOATS:
        return Content.FLOATING
    if name in _COMPARE or name in _COUNT:
        return Content.WHOLE
    if name in _SUMS and owner is not None and module.value(owner).dtype in NARROW:
        return Content.WHOLE
    converts = any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in call.args)
    if owner is not None and (name in _AS_IT_IS or (name in _SUMS and not converts)):
        return onward(owner)
    return None


def _of_operation(module: Module, node: cst.BinaryOperation) -> Content | list[Source] | None:
    if isinstance(node.operator, cst.Divide):
        return Content.FLOATING
    if Content.FLOATING in (content(module, node.left), content(module, node.right)):
        return Content.FLOATING
    kept = isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.BitAnd, cst.BitOr))
    return onward(node.left, node.right) if kept else None


@dataclass(frozen=True, slots=True)
class Reads:
    """What becomes of a running total: the worst effect of a tensor, and the edits that avert the others."""

    effect: Effect
    edits: tuple[Edit, ...] = ()


def summed(module: Module, call: cst.Call, tensor: cst.BaseExpression, written: cst.Name) -> Content:
    """Return what a total of the name ``written`` holds,
    to which a statement adds the number that ``call`` reads.

    Whole numbers only if all that is ever added to it, and what it starts from, is whole.
    """
    whole = content(module, tensor) is Content.WHOLE
    if not whole:
        return content(module, tensor)
    binding = module.binding_of(written)
    return Content.WHOLE if binding is None else _assigned(module, binding.scope, binding.name)


@remembered
def _assigned(module: Module, scope: Scope, name: str) -> Content:
    """Return what all that a name is set to, or that is added to it, holds together with whole numbers."""
    found = {Content.WHOLE}
    for binding in scope.bindings.get(name, []):
        if binding.kind in (BindingKind.DELETE, BindingKind.DECLARE):
            continue
        term = assigned_part(binding)
        if term is None:
            return Content.UNKNOWN
        found.add(content(module, term))
    if len(found) == 1:
        return Content.WHOLE
    return Content.UNKNOWN if Content.UNKNOWN in found else Content.FLOATING


def reads(module: Module, call: cst.Call, written: cst.Name, held: Content, formats: bool) -> Reads | None:
    """Return what becomes of the total ``written`` once it is a tensor;
    None if the host reads it all the time.

    Where only a number will do, it is made one: ``float(total)``. A total of whole numbers is made one for
    all arithmetic, too, which is then as exact as it was, and so is one that may have a dimension: that takes
    no format, as ``formats`` says.
    """
    start = module.binding_of(written)
    if start is None:
        return Reads(Effect.NOTICED)
    edits: list[Edit] = []
    here = module.function(call)
    worst, found = _what_reads(module, start, module.tree.statement(call))
    for use, effect in found:
        if module.function(use) is not here:
            worst = min(worst, Effect.NOTICED)
            continue
        if read_with(module, call, use):
            return None
        if held is Content.FLOATING and _cancels(module, use):
            worst = min(worst, Effect.NOTICED)
        if _is_read_alone(module, use) and (formats or not _is_formatted(module, use)):
            continue
        if effect is Effect.NONE and held is not Content.WHOLE and formats:
            continue
        converted = _converted(module, use, held) if waiting_place(module, use) is None else None
        if converted is None:
            worst = min(worst, effect if formats else Effect.NOTICED)
        else:
            edits.extend(converted)
    if uses_by_name(module, start) or _is_importable(module, start):
        worst = min(worst, Effect.NOTICED)
    return Reads(worst, tuple(edits))


def _is_importable(module: Module, total: Binding) -> bool:
    """Return whether another file may import a total from this one."""
    return total.scope.kind is ScopeKind.MODULE and used_elsewhere(module, total.name)


def read_with(module: Module, call: cst.Call, use: cst.CSTNode) -> bool:
    """Return whether the host reads a total as often as something is added to it,
    so that nothing is gained.
    """
    loops = module.flow.loops(call)
    around = loops[0] if loops else module.function(call)
    return (
        waiting_place(module, use) is not None
        and around is not None
        and module.tree.contains(around, use)
        and (bool(loops) or module.function(use) is around)
    )


def _what_reads(
    module: Module, start: Binding, accumulation: cst.CSTNode
) -> tuple[Effect, list[tuple[cst.Name, Effect]]]:
    """Return what reads a total: the worst effect of a tensor in ``total += …``, and at each other read."""
    worst = Effect.NONE
    found: dict[cst.Name, Effect] = {}
    following = [start]
    match next(iter(getattr(accumulation, "body", ())), None):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            following.append(module.names.by_node[target])
    for binding in following:
        for read, effect in _reads(module, binding):
            if read is None:
                worst = min(worst, effect)
            elif not module.tree.contains(accumulation, read):
                found[read] = effect
    return worst, sorted(found.items(), key=lambda item: module.tree.order[item[0]])


def _reads(module: Module, total: Binding) -> frozenset[tuple[cst.Name | None, Effect]]:
    """Return the reads of a total, also behind ``total += …``, with the effect of a tensor there.

    The statements that change it in place have no read of their own, but the effect that they have.
    """

    def look(binding: Binding) -> tuple[list[tuple[cst.Name | None, Effect]], list[Binding]]:
        facts: list[tuple[cst.Name | None, Effect]] = []
        following: list[Binding] = []
        for use in module.uses(binding):
            parent = module.tree.parent(use)
            if isinstance(parent, cst.AugAssign) and parent.target is use:
                facts.append((None, effect_of_augmenting(module, parent)))
                following.append(module.names.by_node[use])
            else:
                facts.append((use, tensor_at(module, use)))
        return facts, following

    return gathered(total, look, _known_reads(module))


@remembered
def _known_reads(module: Module) -> dict[Binding, frozenset[tuple[cst.Name | None, Effect]]]:
    """Return what `_reads` has found so far."""
    return {}


def _is_read_alone(module: Module, use: cst.Name) -> bool:
    """Return whether a total is only written out, made a number or deleted, by itself."""
    parent = module.tree.parent(use)
    if isinstance(parent, cst.FormattedStringExpression):
        return not parent.conversion and (parent.equal is None or bool(parent.format_spec))
    if isinstance(parent, (cst.Del, cst.If, cst.While)):
        return True
    call = module.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and module.qualified(call.func) in _CONVERSIONS


def _is_formatted(module: Module, use: cst.Name) -> bool:
    return isinstance(module.tree.parent(use), cst.FormattedStringExpression)


def _cancels(module: Module, use: cst.BaseExpression) -> bool:
    """Return whether what is computed of a total is taken from what is computed of one, as in a variance.

    Of two numbers that are nearly the same, the difference has few of the digits that they have.
    """
    return True in verdicts(module, use, _cancelled)


def _cancelled(module: Module, use: Use) -> Verdict[bool]:
    match use.by:
        case cst.BinaryOperation(operator=cst.Subtract(), left=left, right=right):
            if some(_of_total(module, right if use.node is left else left)):
                return True
    if use.kind is UseKind.ASSIGNED:
        return ONWARD
    return Standing(use.by) if use.kind in COMPUTING and isinstance(use.by, cst.BaseExpression) else ()


@traced(Through.NOTHING)
def _of_total(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether an expression is computed of a running total of floating point."""
    if not isinstance(node, cst.Name):
        parts = () if path else module.tree.descendants(node)
        return onward(*(part for part in parts if isinstance(part, cst.Name)))
    added = [assigned_part(b) for b in module.bindings(node) if b.kind is BindingKind.AUGMENT]
    if not added:
        return None
    return any(term is not None and content(module, term) is not Content.WHOLE for term in added)


def _converted(module: Module, use: cst.Name, held: Content) -> tuple[Edit, ...] | None:
    """Return the edits that make a number of a total where it is read; None if that would show."""
    if held is Content.UNKNOWN or module.names.lookup(held.value, use) is not None:
        return None
    for around in module.tree.ancestors(use):
        printed = isinstance(around, cst.FormattedStringExpression) and around.equal is not None
        if printed or isinstance(around, cst.Del):
            return None
        if isinstance(around, cst.BaseStatement):
            break
    span = module.tree.span(use)
    return (Edit(Span(span.start, span.start), f"{held.value}("), Edit(Span(span.end, span.end), ")"))
