"""Tensors without dimensions: losses, means and sums, which hold one number and cannot be indexed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api import results
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.attributes import part_of
from torchlint.semantics.lexicon import Role, ends, names_criterion, names_loss
from torchlint.semantics.names import BindingKind, dotted_text
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import Through, onward, returns, sole, traced
from torchlint.semantics.spellings import is_none, last_name, positional
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding
    from torchlint.semantics.sources import Path, Source

# Without arguments these take all dimensions of a tensor together.
_REDUCING = frozenset(
    {"argmax", "argmin", "max", "mean", "median", "min", "norm", "prod", "std", "sum", "var"}
)
_ARITHMETIC = frozenset({"abs", "add", "div", "exp", "log", "mul", "neg", "sqrt", "sub"})
_KEEPING = frozenset({"data", "detach", "clone", "cpu", "cuda", "to", "float", "double", "half"})


@solved(True)
def has_no_dimension(module: Module, node: cst.BaseExpression) -> bool | None:
    """Return whether an expression is a tensor without dimensions,
    for certain (True) or going by its name (None).

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
            return module.value(index).kind is Kind.NUMBER and rank(module, node.value) == 1
        case _:
            return False


def _operand(module: Module, node: cst.BaseExpression) -> bool | None:
    """Return the same of a term or factor, which may be a number as well."""
    kind = module.value(node).kind
    if kind is Kind.UNKNOWN and isinstance(node, cst.Attribute) and ends(last_name(node.value), Role.OPTIONS):
        return None  # ``args.weight``: what options hold are numbers
    return kind is Kind.NUMBER or has_no_dimension(module, node)


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
        # What is added to a tensor in place leaves its shape as it is.
        kept = isinstance(binding.node, cst.Name) and module.value(binding.node).kind is Kind.TENSOR
        if kept and isinstance(binding.node, cst.Name) and has_no_dimension(module, binding.node):
            return True
        return _operand(module, binding.value)
    if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) and binding.value is not None:
        return not binding.path and rank(module, binding.value) == 1
    if binding.kind is BindingKind.PARAMETER and module.inference.parameters.is_one_of_set(binding):
        return True
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
    """Return whether a variable is backpropagated, or one of its name that the same function gives elsewhere.

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
    """Return what a function of the file returns, if a call runs one."""
    function = module.callee(node) if isinstance(node, cst.Call) else None
    return returns(module, function) if isinstance(function, cst.FunctionDef) else ()


def _all_without(module: Module, nodes: Sequence[cst.BaseExpression | None]) -> bool | None:
    """Return whether there are such expressions, and none of them has a dimension."""
    if not nodes:
        return False
    return _both(node is not None and has_no_dimension(module.home(node), node) for node in nodes)


def rank(module: Module, node: cst.BaseExpression) -> int | None:
    """Return how many dimensions a tensor has, by what makes it; None if the program does not show that."""
    found = sole(_rank(module, node))
    return None if found is None or found < 0 else found


def adds_dimension(item: cst.BaseSlice) -> bool:
    """Return whether an item of a subscript is ``None``, which adds a dimension of size one."""
    return isinstance(item, cst.Index) and is_none(item.value)


def has_dimensions(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a tensor certainly has a dimension, as what is made of a list does."""
    if rank(module, node):
        return True
    made = module.value(node).origin
    if not isinstance(made, cst.Call) or not made.args:
        return False
    if module.qualified(made.func) not in ("torch.tensor", "torch.as_tensor", "torch.from_numpy"):
        return False
    return module.value(made.args[0].value).kind in (Kind.LIST, Kind.TUPLE)


_OPEN = -1


@traced(Through.RETURNS | Through.PARAMETERS)
def _rank(module: Module, node: cst.CSTNode, path: Path) -> int | list[Source] | None:
    if path:
        return _of_part(module, node, path)
    match node:
        case cst.Subscript():
            return _cut(module, node)
        case cst.Attribute(value=owner, attr=cst.Name(value="data")):
            return onward(owner)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus() | cst.BitInvert(), expression=operand):
            return onward(operand)
        case cst.Call():
            made = module.qualified(node.func)
            if made is not None:
                return (
                    _of_function(module, node, made.removeprefix("torch."))
                    if made.startswith("torch.")
                    else _OPEN
                )
            criterion = module.value(node.func)
            if criterion.cls in results.NN_LOSSES and isinstance(criterion.origin, cst.Call):
                return 0 if _is_reduced(criterion.origin) else _OPEN
            if isinstance(node.func, cst.Attribute) and (
                node.func.attr.value in TENSOR_METHODS and module.value(node.func.value).tensorlike
            ):
                return _of_method(module, node, node.func.value, node.func.attr.value)
        case cst.BinaryOperation() | cst.Comparison():
            sides = [node.left]
            sides += (
                [node.right]
                if isinstance(node, cst.BinaryOperation)
                else [target.comparator for target in node.comparisons]
            )
            ranks = [0 if module.value(side).kind in _SCALARS else rank(module, side) for side in sides]
            return _OPEN if None in ranks else max(one for one in ranks if one is not None)
    return None


def _of_part(module: Module, node: cst.CSTNode, path: Path) -> int | None:
    """Return the rank of a part of a result: of the values and indices that ``topk`` finds."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="topk" | "sort"))) if (
            path in ((0,), (1,)) and module.qualified(node.func) is None
        ):
            found = rank(module, owner)
            return _OPEN if found is None else found
        case cst.Call() if path in ((0,), (1,)) and module.qualified(node.func) in (
            "torch.topk",
            "torch.sort",
        ):
            found = rank(module, node.args[0].value) if node.args else None
            return _OPEN if found is None else found
    return None


def _cut(module: Module, node: cst.Subscript) -> int | list[Source]:
    """Return the rank of a part that numbers and slices take out of a tensor."""
    taken = 0
    for element in node.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        if index is None or isinstance(index, cst.Ellipsis):
            continue
        kind = module.value(index).kind
        if kind is Kind.NONE:
            taken -= 1
        elif kind is Kind.NUMBER:
            taken += 1
        elif kind is not Kind.TENSOR or rank(module, index) != 1 or module.value(index).dtype == "torch.bool":
            return _OPEN
    if not taken:
        return onward(node.value)
    found = rank(module, node.value)
    return _OPEN if found is None else found - taken


def _of_function(module: Module, call: cst.Call, name: str) -> int | list[Source]:
    if any(arg.star for arg in call.args):
        return _OPEN
    first = next((arg.value for arg in call.args if arg.keyword is None), None)
    if name.rpartition(".")[2] in _REDUCING and len(call.args) == 1:
        return 0
    if f"torch.{name}" in results.FUNCTIONAL_LOSSES:
        return 0 if _is_reduced(call) else _OPEN
    if name in _ROWS:
        return 1
    if name in _DISTINCT:
        return 1 if len(call.args) == 1 else _OPEN
    if name == "eye":
        return 2
    if name in _OF_SIZES:
        return _count_of_sizes(module, call)
    if name == "full":
        return _count_of_sizes(module, call, 1)
    if first is None:
        return _OPEN
    if name in ("tensor", "as_tensor"):
        return _nesting(module, first)
    return onward(first) if name.endswith("_like") or name in _ALIKE else _OPEN


def _of_method(module: Module, call: cst.Call, owner: cst.BaseExpression, name: str) -> int | list[Source]:
    given = positional(call)
    if any(arg.star for arg in call.args):
        return _OPEN
    if name in _REDUCING and not call.args:
        return 0
    if name in {"flatten", *_DISTINCT} and not call.args:
        return 1
    if name in ("view", "reshape", "expand", "new_zeros", "new_ones", "new_empty"):
        shape = module.value(given[0]).kind if given else Kind.UNKNOWN
        return _OPEN if shape is Kind.DTYPE else _count_of_sizes(module, call)
    if name == "new_full":
        return _count_of_sizes(module, call, 1)
    if name in ("unsqueeze", "argmax", "argmin", "squeeze") and len(call.args) == 1:
        found = rank(module, owner)
        change = 1 if name == "unsqueeze" else -1
        return _OPEN if found is None or (name == "squeeze" and found < 2) else found + change
    return onward(owner) if name in _KEEPING or name in _ALIKE or name.endswith("_") else _OPEN


def _nesting(module: Module, data: cst.BaseExpression) -> int | list[Source]:
    """Return the rank of the tensor that is made of a number, or of a list of numbers."""
    value = module.value(data)
    if value.kind in _SCALARS:
        return 0
    if value.kind is Kind.TENSOR:
        return onward(data)
    items = value.elements if value.elements is not None else (value.item,) if value.item is not None else ()
    flat = bool(items) and value.kind in (Kind.LIST, Kind.TUPLE, Kind.SHAPE)
    return 1 if flat and all(one is not None and one.kind in _SCALARS for one in items) else _OPEN


def _count_of_sizes(module: Module, call: cst.Call, most: int | None = None) -> int:
    """Return how many sizes a factory is given, one by one or in a tuple: ``zeros(n)``, ``zeros((n,))``."""
    sizes = positional(call)[:most]
    if not sizes:
        sizes = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "size"]
    if len(sizes) == 1:
        whole = module.value(sizes[0])
        if whole.kind is Kind.TUPLE or whole.kind is Kind.LIST:
            return _OPEN if whole.elements is None else len(whole.elements)
    return len(sizes) if sizes and all(module.value(size).kind is Kind.NUMBER for size in sizes) else _OPEN


_SCALARS = frozenset({Kind.NUMBER, Kind.BOOL})
# Functions whose tensors have one dimension, those whose tensors have as many as sizes are given, and those,
# functions and methods, whose result has as many as what they are given.
_ROWS = frozenset({"arange", "bincount", "linspace", "logspace", "randperm"})
_DISTINCT = frozenset({"unique", "unique_consecutive"})
_OF_SIZES = frozenset({"empty", "ones", "rand", "randn", "zeros"})
_ALIKE = frozenset(
    {
        "abs",
        "argsort",
        "bfloat16",
        "bool",
        "clamp",
        "contiguous",
        "cumsum",
        "exp",
        "int",
        "log",
        "log_softmax",
    }
    | {"long", "masked_fill", "pin_memory", "relu", "sigmoid", "softmax", "sqrt", "square", "tanh", "to"}
)


def _called(module: Module, call: cst.Call) -> bool | None:
    if rank(module, call) == 0:
        return True
    qualified = module.qualified(call.func)
    if qualified is not None:
        wraps = qualified == "torch.autograd.Variable" and bool(call.args)
        return wraps and has_no_dimension(module, call.args[0].value)
    returned = _returned(module, call)
    if returned:
        return _all_without(module, returned)
    criterion = module.value(call.func)
    if criterion.cls in results.NN_LOSSES:
        return False if isinstance(criterion.origin, cst.Call) else None
    if criterion.kind is Kind.MODULE and criterion.definition is None:
        return None if names_criterion(last_name(call.func)) else False
    if isinstance(call.func, cst.Attribute):
        method, receiver = call.func.attr.value, call.func.value
        if method in _KEEPING:
            return has_no_dimension(module, receiver)
        if method in _ARITHMETIC:
            return _both(_operand(module, side) for side in (receiver, *(arg.value for arg in call.args)))
    return False


def _is_reduced(call: cst.Call) -> bool:
    """Return whether a loss, or the criterion made by this call, takes all elements together."""
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
