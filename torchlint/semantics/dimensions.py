"""Tensors without dimensions: losses, means and sums, which hold one number and cannot be indexed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api import results
from torchlint.semantics.attributes import part_of
from torchlint.semantics.lexicon import names_criterion, names_loss
from torchlint.semantics.names import BindingKind, dotted_text
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import Through, every, onward, returns, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding
    from torchlint.semantics.sources import Path, Source

# Without arguments these take all dimensions of a tensor together.
_REDUCING = frozenset(
    {"argmax", "argmin", "max", "mean", "median", "min", "norm", "prod", "std", "sum", "var"}
)
_KEEPING = frozenset({"data", "detach", "clone", "cpu", "cuda", "to", "float", "double", "half"})


@solved(True)
def has_no_dimension(module: Module, node: cst.BaseExpression) -> bool | None:
    """Whether an expression is a tensor without dimensions, for certain (True) or going by its name (None).

    False where it may have dimensions.
    """
    match node:
        case cst.Name():
            return _named(module, node)
        case cst.Attribute(attr=cst.Name(attr)) if attr in _KEEPING:
            return has_no_dimension(module, node.value)
        case cst.Call():
            return _called(module, node)
        case cst.UnaryOperation(operator=cst.Minus()):
            return has_no_dimension(module, node.expression)
        case cst.BinaryOperation():
            return _both(_operand(module, side) for side in (node.left, node.right))
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            return module.value(index).kind is Kind.NUMBER and is_row(module, node.value)
        case _:
            return False


def _operand(module: Module, node: cst.BaseExpression) -> bool | None:
    """The same of a term or factor, which may be a number as well."""
    return module.value(node).kind is Kind.NUMBER or has_no_dimension(module, node)


def _both(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    if False in found:
        return False
    return None if None in found else True


def _named(module: Module, node: cst.Name) -> bool | None:
    bindings = module.bindings(node)
    if not bindings:
        return False
    return _both(_bound(module, node, binding) for binding in bindings)


def _bound(module: Module, node: cst.Name, binding: Binding) -> bool | None:
    if binding.kind is BindingKind.AUGMENT and binding.value is not None:
        return _operand(module, binding.value)
    if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) and binding.value is not None:
        return not binding.path and is_row(module, binding.value)
    if binding.value is None or binding.kind is not BindingKind.ASSIGN:
        return False
    by_name = names_loss(node.value) and _is_trained_on(module, node, binding)
    if binding.path:
        given = [part_of(value, binding.path) for value in _returned(module, binding.value)]
        shown = _all_without(module, given)
        return None if by_name and shown is False else shown
    if module.value(binding.value).kind is Kind.NUMBER:
        return True
    if isinstance(binding.value, cst.IfExp) and names_loss(node.value):
        # ``losses[0] if isinstance(losses, tuple) else losses``: a loss, however many came with it.
        either = (binding.value.body, binding.value.orelse)
        parts = (part.value if isinstance(part, cst.Subscript) else part for part in either)
        return False if any(has_no_dimension(module, part) is False for part in parts) else None
    found = has_no_dimension(module, binding.value)
    if found is False and by_name and isinstance(binding.value, cst.Call):
        # What a model or another file computes as a loss, and is backpropagated.
        made = module.qualified(binding.value.func)
        return None if made is None or not made.startswith(("torch.", "builtins.")) else False
    return found


def _is_trained_on(module: Module, node: cst.Name, binding: Binding) -> bool:
    """Whether a variable is backpropagated, or one of its name that the same function gives elsewhere.

    ``loss = score(model, batch)`` is trained on in one function and reported by another.
    """
    clues = module.inference.clues
    if "backward" in clues.used_attributes(node):
        return True
    if not isinstance(binding.value, cst.Call):
        return False
    maker = dotted_text(binding.value.func)
    return maker is not None and (node.value, maker, binding.path) in clues.trained_results


def _returned(module: Module, node: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
    """What a function of the file returns, if a call runs one."""
    function = module.callee(node) if isinstance(node, cst.Call) else None
    return returns(module, function) if isinstance(function, cst.FunctionDef) else ()


def _all_without(module: Module, nodes: Sequence[cst.BaseExpression | None]) -> bool | None:
    """Whether there are such expressions, and none of them has a dimension."""
    if not nodes:
        return False
    return _both(node is not None and has_no_dimension(module, node) for node in nodes)


def is_row(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a tensor certainly has one dimension, by what makes it."""
    return every(_row(module, node))


@traced(Through.NOTHING)
def _row(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return onward(node.value)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if (
            module.qualified(node.func) is None
        ):
            if method == "flatten" and not node.args:
                return module.is_tensor(owner)
            return onward(owner) if method in _KEEPING else False
        case cst.Call():
            made = module.qualified(node.func)
            if made == "torch.tensor" and node.args:
                data = module.value(node.args[0].value).elements
                return bool(data) and all(one.kind in (Kind.NUMBER, Kind.BOOL) for one in data or ())
            return made in _ROWS or (made in _OF_SIZES and _has_one_size(module, node))
    return None


def _has_one_size(module: Module, call: cst.Call) -> bool:
    """``torch.zeros(n)``, ``torch.zeros((n,))``."""
    sizes = [arg for arg in call.args if arg.keyword is None]
    if (
        len(sizes) != 1
        or sizes[0].star
        or any(a.keyword is not None and a.keyword.value == "size" for a in call.args)
    ):
        return False
    size = sizes[0].value
    if isinstance(size, (cst.Tuple, cst.List)):
        return len(size.elements) == 1 and isinstance(size.elements[0], cst.Element)
    return module.value(size).kind is Kind.NUMBER


# Functions whose tensors have one dimension, and those whose tensors have as many as sizes are given.
_ROWS = frozenset(f"torch.{name}" for name in ("arange", "linspace", "logspace", "randperm"))
_OF_SIZES = frozenset(f"torch.{name}" for name in ("empty", "ones", "rand", "randn", "zeros"))


def _called(module: Module, call: cst.Call) -> bool | None:
    qualified = module.qualified(call.func)
    if qualified is not None:
        name = qualified.rpartition(".")[2]
        if qualified in results.FUNCTIONAL_LOSSES:
            return _is_reduced(call)
        if qualified.startswith("torch.") and name in _REDUCING and len(call.args) == 1:
            return True
        if qualified == "torch.autograd.Variable" and call.args:
            return has_no_dimension(module, call.args[0].value)
        return False
    returned = _returned(module, call)
    if returned:
        return _all_without(module, returned)
    criterion = module.value(call.func)
    if criterion.cls in results.NN_LOSSES:
        made = criterion.origin
        return _is_reduced(made) if isinstance(made, cst.Call) else None
    if criterion.kind is Kind.MODULE and criterion.definition is None:
        return None if names_criterion(last_name(call.func)) else False
    if isinstance(call.func, cst.Attribute):
        method, receiver = call.func.attr.value, call.func.value
        if method in _REDUCING and not call.args and module.value(receiver).tensorlike:
            return True
        if method in _KEEPING:
            return has_no_dimension(module, receiver)
    return False


def _is_reduced(call: cst.Call) -> bool:
    """Whether a loss, or the criterion made by this call, takes all elements together."""
    if any(arg.star for arg in call.args):
        return False
    for arg in call.args:
        keyword = arg.keyword.value if arg.keyword is not None else ""
        if keyword == "reduce":
            return False
        if keyword == "reduction":
            text = arg.value.evaluated_value if isinstance(arg.value, cst.SimpleString) else None
            return text in ("mean", "sum", "batchmean")
    return True
