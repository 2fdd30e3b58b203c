"""Whether code that meets a tensor where a number was would notice.

A running total or a list that held Python numbers is to hold tensors of one element on the device.
"""

from __future__ import annotations

import enum
import itertools
import re
import string
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import HOST_PACKAGES
from torchlint.semantics.names import Binding, BindingKind, Scope
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.usage import uses_by_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


class Effect(enum.IntEnum):
    """What a change does to the code that meets the value; ordered, worst first."""

    BREAKS = 0
    NOTICED = 1
    NONE = 2


_HOST_METHODS = frozenset(
    [
        "plot",
        "scatter",
        "hist",
        "bar",
        "semilogy",
        "semilogx",
        "loglog",
        "errorbar",
        "fill_between",
        "writerow",
        "writerows",
    ]
)
_SHOWING = frozenset({"print", "str", "repr", "ascii", "format"})
_OF_BITS = (cst.LeftShift, cst.RightShift, cst.BitAnd, cst.BitOr, cst.BitXor)
_DIVIDING = (cst.Divide, cst.FloorDivide, cst.Modulo)
_ZERO_DIVISION = frozenset({"ZeroDivisionError", "ArithmeticError", "Exception", "BaseException"})
_PERCENT_TEXT = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?[rsa]")


def tensor_instead_of_number(module: Module, binding: Binding, *, many: bool) -> Effect:
    """Return the effect of letting ``binding`` hold tensors of one element instead of Python numbers.

    ``many``: the name stands for a list of them.
    """
    if uses_by_name(module, binding):
        return Effect.NOTICED
    return _worst(module, Standing(binding, _ANY if many else ()))


def tensor_at(module: Module, use: cst.BaseExpression, *, many: bool = False) -> Effect:
    """Return the effect of a tensor of one element, or ``many``,
    where an expression is read that gave numbers.
    """
    return _worst(module, Standing(use, _ANY if many else ()))


_ANY = (None,)
"""The elements of a list, whichever."""


def _worst(module: Module, numbers: Standing) -> Effect:
    """Return the worst effect on all uses that numbers go on to."""
    return min(verdicts(module, numbers, _effect), default=Effect.NONE)


def _effect(module: Module, use: Use) -> Verdict[Effect]:
    """Return what a use of a number, or of what holds numbers, makes of a tensor in its place."""
    many = bool(use.path)
    match use.kind, use.by:
        case UseKind.ARGUMENT, cst.Call() as call:
            return _as_argument(module, call, use.node, many)
        case UseKind.FORMATTED, cst.FormattedStringExpression() as shown:
            # Without a format, all digits are shown, and what is computed in single precision has others.
            return Effect.NOTICED if many or shown.conversion or not shown.format_spec else Effect.NONE
        case UseKind.OPERAND, cst.BinaryOperation() as operation:
            return _in_arithmetic(module, operation, use.node, many)
        case UseKind.OPERAND, _:
            return ONWARD
        case UseKind.ELEMENT, _:
            return _in_display(module, use)
        case UseKind.COMPARED, cst.Comparison() as comparison if not many:
            return _in_comparison(module, comparison)
        case UseKind.METHOD, _:
            # Methods of a list that do not look at what it holds.
            return Effect.NONE if many and use.name in ("append", "clear") else Effect.NOTICED
        case UseKind.ITEM, _ if many:
            return ONWARD
        case UseKind.SET, _ if many:
            return Effect.NONE if isinstance(module.tree.parent(use.by), cst.Del) else Effect.NOTICED
        case UseKind.AUGMENTED, cst.AugAssign() as statement:
            if many:
                return Effect.NONE
            itself = effect_of_augmenting(module, statement)
            return ONWARD if itself is Effect.NONE else itself
        case UseKind.AUGMENTS, cst.AugAssign(target=cst.Name() as target) if not many:
            bound = module.binding_of(target)
            fits = bound is not None and accumulator_start(module, bound) is Effect.NONE
            return ONWARD if fits else Effect.NOTICED
        case UseKind.ASSIGNED, name:
            bound = module.binding_of(name)
            return Effect.NOTICED if bound is None or uses_by_name(module, bound) else ONWARD
        case ((UseKind.TESTED | UseKind.DISCARDED), _):
            return Effect.NONE
    return ONWARD if use.kind is UseKind.RETURNED else Effect.NOTICED


def _as_argument(module: Module, call: cst.Call, node: cst.BaseExpression, many: bool) -> Verdict[Effect]:
    qualified = module.qualified(call.func)
    package, _, name = (qualified or "").rpartition(".")
    if package == "builtins":
        if name in ("len", "bool", "isinstance", "id", "type"):
            return Effect.NONE if name in ("len", "bool") else Effect.NOTICED
        if name in _SHOWING:
            return Effect.BREAKS  # People would read `tensor(0.3466, device='cuda:0')`.
        if many:
            return Standing(call) if name in ("sum", "max", "min") else Effect.NOTICED
        if name in ("float", "int", "complex"):
            return Effect.NONE
        if name in ("abs", "max", "min"):
            return Standing(call)
        return Effect.BREAKS if name in ("round", "divmod") else Effect.NOTICED
    if package == "math":
        return Effect.BREAKS if many else Effect.NONE
    if qualified is not None and qualified.split(".")[0] in HOST_PACKAGES:
        return Effect.BREAKS
    if qualified in ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor"):
        # Of a tensor, `torch.tensor` warns; of a list of them it makes one.
        return Effect.NONE if many and qualified == "torch.tensor" else Effect.NOTICED
    if isinstance(call.func, cst.Attribute):
        method, owner = call.func.attr.value, call.func.value
        if method in _HOST_METHODS:
            return Effect.BREAKS
        if not many and method == "format" and module.value(owner).kind is Kind.STRING:
            text = module.value(owner).constant
            return Effect.NONE if isinstance(text, str) and _has_format(call, node, text) else Effect.NOTICED
        if not many and method == "add_scalar" and module.callee(call) is None:
            return Effect.NONE
        if not many and method == "step" and module.value(owner).kind is Kind.SCHEDULER:
            return Effect.NONE
    return Effect.NOTICED


def _has_format(call: cst.Call, node: cst.BaseExpression, text: str) -> bool:
    """Return whether ``str.format`` writes an argument only by formats such as ``.3f``,
    and never as it is.
    """
    index, arg = next((i, arg) for i, arg in enumerate(call.args) if arg.value is node)
    if any(a.star for a in call.args[: index + 1]):
        return False
    name = arg.keyword.value if arg.keyword is not None else str(index)
    numbered = itertools.count()
    try:
        fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError:
        return False
    if any("{" in (format_spec or "") for _, _, format_spec, _ in fields):
        return False
    return all(
        format_spec and not conversion
        for _, field, format_spec, conversion in fields
        if (field or str(next(numbered))) == name
    )


def _in_arithmetic(
    module: Module, operation: cst.BinaryOperation, node: cst.BaseExpression, many: bool
) -> Verdict[Effect]:
    left, right = operation.left, operation.right
    if (
        isinstance(operation.operator, cst.Modulo)
        and node is right
        and module.value(left).kind is Kind.STRING
    ):
        alone = not many or isinstance(right, cst.Tuple)
        return _percent_format(module, left) if alone else Effect.NOTICED
    other = left if node is right else right
    if many or module.value(other).kind is Kind.NDARRAY or _of_numpy(module, other):
        return Effect.NOTICED if many else Effect.BREAKS
    if isinstance(operation.operator, (cst.Power, *_OF_BITS)) or _is_huge(module, other):
        # A tensor of integers has no negative powers, and wraps where a Python number grows.
        return Effect.NOTICED
    if isinstance(operation.operator, _DIVIDING) and _catches_division(module, operation):
        # Tensors of floating point raise nothing where zero divides them, or they divide by zero.
        return Effect.NOTICED
    return ONWARD


def _is_huge(module: Module, node: cst.BaseExpression) -> bool:
    constant = module.value(node).constant
    return isinstance(constant, int) and abs(constant) >= 2**31


def _catches_division(module: Module, operation: cst.CSTNode) -> bool:
    """Return whether a division by zero is expected:
    a handler around it that ``ZeroDivisionError`` reaches.
    """
    caught = (h.type for h in module.tree.handlers(operation))
    return any(
        t is None or any(last_name(each) in _ZERO_DIVISION for each in module.tree.descendants(t))
        for t in caught
    )


def _percent_format(module: Module, text: cst.BaseExpression) -> Effect:
    """Return the effect of formatting a tensor with ``%``:
    ``%f`` asks for its number, ``%s`` prints it as a tensor.
    """
    constant = module.value(text).constant
    if not isinstance(constant, str):
        return Effect.NOTICED
    return Effect.NOTICED if _PERCENT_TEXT.search(constant) else Effect.NONE


def _in_display(module: Module, use: Use) -> Verdict[Effect]:
    """Return the effect of a tensor in a tuple, list or dict, which may be returned or formatted;
    wandb takes tensors, too.
    """
    if _is_for_host(module, use.by):
        return Effect.BREAKS
    if isinstance(use.by, cst.Dict):
        call = module.tree.call_given(use.by)
        logged = call is not None and module.qualified(call.func) == "wandb.log"
        return Effect.NONE if logged and not use.path else Effect.NOTICED
    return ONWARD if isinstance(use.by, cst.Tuple) else Effect.NOTICED


def _is_for_host(module: Module, display: cst.CSTNode) -> bool:
    """Return whether a display, or the outermost one around it,
    is made for a function that wants host values.
    """
    node: cst.CSTNode | None = display
    while isinstance(node, (cst.BaseElement, cst.BaseDictElement, cst.List, cst.Tuple, cst.Set, cst.Dict)):
        node = module.tree.parent(node)
    call = module.tree.parent(node) if isinstance(node, cst.Arg) else None
    name = module.qualified(call.func) if isinstance(call, cst.Call) else None
    return (name or "").split(".")[0] in HOST_PACKAGES


def _in_comparison(module: Module, comparison: cst.Comparison) -> Effect:
    """Return a comparison of sizes that only decides a branch decides it the same way, but for rounding."""
    if len(comparison.comparisons) != 1:
        return Effect.NOTICED
    operator = comparison.comparisons[0].operator
    if isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
        return Effect.NOTICED
    decided = module.tree.parent(comparison)
    if isinstance(decided, (cst.If, cst.While)) or (
        isinstance(decided, cst.IfExp) and decided.test is comparison
    ):
        return Effect.NONE
    return Effect.NOTICED


def effect_of_augmenting(module: Module, statement: cst.AugAssign) -> Effect:
    """Return the effect of a tensor of one element as what a statement such
    as ``total += x`` changes in place.
    """
    if isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)):
        if module.value(statement.value).kind is Kind.NDARRAY:
            return Effect.BREAKS
        return Effect.NOTICED if _is_huge(module, statement.value) else Effect.NONE
    if isinstance(statement.operator, cst.DivideAssign):
        # In place, a tensor of integers cannot take the quotient.
        if not _starts_as_float(module, statement.target):
            return Effect.BREAKS
        return Effect.NOTICED if _catches_division(module, statement) else Effect.NONE
    return Effect.NOTICED


def accumulator_start(module: Module, binding: Binding) -> Effect:
    """Return whether the other definitions of an accumulator's name go with tensors:
    numbers and tensors do.
    """
    starts = _starts(module, binding.scope, binding.name)
    return min((effect for start, effect in starts if start is not binding.node), default=Effect.NONE)


@remembered
def _starts(module: Module, scope: Scope, name: str) -> list[tuple[cst.CSTNode, Effect]]:
    """Return the definitions of a name that do not add to it,
    and whether a tensor goes with what they make it.
    """
    found: list[tuple[cst.CSTNode, Effect]] = []
    for binding in scope.bindings.get(name, ()):
        if binding.kind in (BindingKind.AUGMENT, BindingKind.DELETE, BindingKind.DECLARE):
            continue
        begun = assigned_part(binding)
        if begun is None:
            found.append((binding.node, Effect.NOTICED))
            continue
        value = module.value(begun)
        if value.kind is Kind.NDARRAY or _of_numpy(module, begun):
            found.append((binding.node, Effect.BREAKS))
        elif value.kind not in (Kind.NUMBER, Kind.TENSOR):
            found.append((binding.node, Effect.NOTICED))
    return found


def assigned_part(binding: Binding) -> cst.BaseExpression | None:
    """Return what a name is set to, by itself or as one of several that are written out:
    ``a, b = 0, 0.0``.
    """
    value = binding.value
    for place in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or place is None or place >= len(value.elements):
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.elements):
            return None
        value = value.elements[place].value
    return value


def _starts_as_float(module: Module, target: cst.BaseExpression) -> bool:
    if not isinstance(target, cst.Name):
        return False
    binding = module.names.by_node.get(target)
    starts = (
        []
        if binding is None
        else [
            module.value(begun).constant
            for other in binding.scope.bindings.get(binding.name, [])
            if other.kind.value == "assign" and (begun := assigned_part(other)) is not None
        ]
    )
    constants = [constant for constant in starts if constant is not MISSING]
    return bool(constants) and all(isinstance(constant, float) for constant in constants)


def _of_numpy(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether it is ``np.float32(0)``:
    neither an array nor a number that a tensor on the device goes with.
    """
    return isinstance(node, cst.Call) and (module.qualified(node.func) or "").startswith("numpy.")
