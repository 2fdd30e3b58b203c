"""Tensors that are repeated along dimensions of size one, where a view that is as large would do.

``x.unsqueeze(1).repeat(1, n, 1)`` writes each row ``n`` times; ``x.unsqueeze(1).expand(-1, n, -1)`` reads it
``n`` times. Operations that broadcast take either. Which dimensions have the size one is read off what made
the tensor: ``unsqueeze``, an index ``None``, a literal shape, a reduction that keeps its dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dimensions import adds_dimension
from torchlint.semantics.operations import operations_of
from torchlint.semantics.sources import Through, onward, sole, traced
from torchlint.semantics.spellings import keywords
from torchlint.semantics.usage import method_call
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path, Source

# What computes element by element, and takes operands of smaller shapes.
_BROADCASTING = frozenset(
    {
        "add",
        "atan2",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "div",
        "divide",
        "eq",
        "fmod",
        "ge",
        "greater",
    }
    | {"greater_equal", "gt", "hypot", "le", "lerp", "less", "less_equal", "logical_and", "logical_or"}
    | {"logical_xor", "lt", "maximum", "minimum", "mul", "multiply", "ne", "not_equal", "pow", "remainder"}
    | {
        "rsub",
        "sub",
        "subtract",
        "true_divide",
        "where",
        "masked_fill",
        "masked_fill_",
        "add_",
        "mul_",
        "sub_",
    }
    | {"div_", "addcmul", "addcdiv", "cosine_similarity", "dist", "isclose"}
)
_PRODUCTS = frozenset({"matmul"})
_FACTORIES = frozenset({"empty", "full", "ones", "rand", "randn", "zeros"})
_ROWS = frozenset({"torch.arange", "torch.linspace", "torch.logspace", "torch.randperm"})
_KEEPING = frozenset(
    {"bfloat16", "bool", "clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "half", "int"}
    | {"long", "requires_grad_", "to", "type", "type_as"}
)
_REDUCING = frozenset(
    {
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "logsumexp",
        "mean",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
    }
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Which dimensions of a tensor have the size one.

    Attributes:
        front: their positions, counted from the first dimension.
        back: their positions, counted from the last, which is -1.
        rank: the number of dimensions; None if that is not known.
    """

    front: frozenset[int] = frozenset()
    back: frozenset[int] = frozenset()
    rank: int | None = None

    def is_one(self, position: int, count: int) -> bool:
        """Return whether the dimension at a position of ``count`` has the size one,
        or is none of the tensor's.
        """
        if self.rank is not None:
            if position < count - self.rank:
                return True  # ``repeat`` puts it in front
            return position - count in self.back
        return position in self.front or position - count in self.back

    def with_one_at(self, position: int) -> Shape:
        """Return the shape with one more dimension, of the size one."""
        if self.rank is not None:
            position = position if position >= 0 else position + self.rank + 1
            moved = {p + self.rank for p in self.back}
            front = {p + 1 if p >= position else p for p in moved} | {position}
            return known_shape(front, self.rank + 1)
        if position >= 0:
            return Shape(frozenset({p + 1 if p >= position else p for p in self.front} | {position}))
        return Shape(back=frozenset({p - 1 if p <= position else p for p in self.back} | {position}))


def known_shape(ones: set[int], rank: int) -> Shape:
    """Return the shape of a tensor with so many dimensions, those at some positions of the size one."""
    return Shape(frozenset(ones), frozenset(position - rank for position in ones), rank)


@dataclass(frozen=True, slots=True)
class RepeatCall:
    """A call of ``repeat`` that only repeats dimensions of the size one.

    ``times`` are its arguments; those that are the literal 1 repeat nothing.
    """

    call: cst.Call
    times: tuple[cst.BaseExpression, ...]
    shape: Shape


def repeated_view(module: Module, call: cst.Call) -> RepeatCall | None:
    """Return the ``repeat`` that could be a view, going by the tensor and by what takes the result;
    else None.
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "repeat" or not call.args:
        return None
    times = _times(module, call)
    if times is None or all(is_literal_one(time) for time in times):
        return None
    shape = shape_of(module, call.func.value)
    if shape is None or (shape.rank is not None and len(times) < shape.rank):
        return None
    grown = [i for i, time in enumerate(times) if not is_literal_one(time)]
    if not all(shape.is_one(i, len(times)) for i in grown):
        return None
    if any(module.value(times[i]).constant in (0, 1) for i in grown):
        return None
    behind = [len(times) - i for i in grown]
    uses = [use for use in _uses(module, call) if not _asks_for_shape(module, use)]
    if not uses or not all(_broadcasts(module, use, min(behind)) for use in uses):
        return None
    if _is_for_export(module, call):
        return None
    return RepeatCall(call, times, shape)


def _times(module: Module, call: cst.Call) -> tuple[cst.BaseExpression, ...] | None:
    """Return the arguments of ``repeat``, given one by one or as a tuple that is written there."""
    if any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    first = call.args[0].value
    if len(call.args) == 1 and isinstance(first, (cst.Tuple, cst.List)):
        if any(not isinstance(element, cst.Element) for element in first.elements):
            return None
        return tuple(element.value for element in first.elements)
    if len(call.args) == 1 and module.value(first).kind is not Kind.NUMBER:
        return None  # It may be a tuple.
    return tuple(arg.value for arg in call.args)


def is_literal_one(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) and node.value == "1"


# --- shapes -----------------------------------------------------------------------------------------


def shape_of(module: Module, node: cst.BaseExpression) -> Shape | None:
    """Return what is known of the dimensions of a tensor, by what made it;
    None if nothing says it is a tensor.
    """
    found = sole(_made_shape(module, node))
    if found is not None:
        return found
    return Shape() if module.value(node).kind is Kind.TENSOR else None


@traced(Through.NOTHING)
def _made_shape(module: Module, node: cst.CSTNode, path: Path) -> Shape | list[Source] | None:
    if path:
        return None
    match node:
        case cst.Subscript():
            return _indexed(module, node)
        case cst.Call():
            return _called(module, node)
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
            return onward(node.expression)
    return None


def _indexed(module: Module, node: cst.Subscript) -> Shape | None:
    """Return the shape of ``x[:, None]`` and ``x[..., None, :]``: which dimensions have the size 1."""
    items: list[cst.BaseSlice] = [element.slice for element in node.slice]
    if not any(adds_dimension(item) for item in items):
        return None
    indexed = module.value(node.value)
    if indexed.known and indexed.kind is not Kind.TENSOR:
        return None
    split = next((i for i, item in enumerate(items) if _is_ellipsis(item)), len(items))
    front = _positions(items[:split])
    back = _positions(items[split + 1 :][::-1])
    if front is None or back is None:
        return None
    return Shape(frozenset(front), frozenset(-1 - position for position in back))


def _positions(items: Sequence[cst.BaseSlice]) -> list[int] | None:
    """Return the positions of the dimensions that ``None`` makes;
    None for indices that may make any number.
    """
    found, position = [], 0
    for item in items:
        if isinstance(item, cst.Slice):
            position += 1
        elif adds_dimension(item):
            found.append(position)
            position += 1
        elif not (isinstance(item, cst.Index) and isinstance(item.value, (cst.Integer, cst.UnaryOperation))):
            return None
    return found


def _is_ellipsis(item: cst.BaseSlice) -> bool:
    return isinstance(item, cst.Index) and isinstance(item.value, cst.Ellipsis)


def _called(module: Module, call: cst.Call) -> Shape | list[Source] | None:
    called = method_call(module, call)
    if called is None:
        return _by_function(module, call)
    (owner, method), arguments = called, call.args
    if method in _KEEPING:
        return onward(owner)
    if method == "unsqueeze":
        return _unsqueezed(module, owner, arguments)
    if method in ("view", "reshape"):
        return _spelt(module, arguments)
    if method in _REDUCING:
        return _reduced(module, call, arguments)
    return None


def _by_function(module: Module, call: cst.Call) -> Shape | list[Source] | None:
    name = module.qualified(call.func) or ""
    if name == "torch.unsqueeze" and call.args and not call.args[0].star:
        return _unsqueezed(module, call.args[0].value, call.args[1:])
    if name == "torch.reshape":
        return _spelt(module, call.args[1:2])
    if name == "torch.nn.Parameter" and call.args:
        return onward(call.args[0].value)
    if name in _ROWS:
        return known_shape(set(), 1)
    short = name.removeprefix("torch.")
    if short in _FACTORIES:
        return _spelt(
            module, [arg for arg in call.args if arg.keyword is None][: 1 if short == "full" else None]
        )
    if short in _REDUCING:
        return _reduced(module, call, call.args[1:])
    return None


def _unsqueezed(module: Module, owner: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> Shape | None:
    position = operations_of(module).integer(arguments[0].value) if len(arguments) == 1 else None
    if position is None or arguments[0].star:
        return None
    return (sole(_made_shape(module, owner)) or Shape()).with_one_at(position)


def _spelt(module: Module, arguments: Sequence[cst.Arg]) -> Shape | None:
    """Return the shape that is written out as arguments, or as one tuple."""
    if any(arg.star or arg.keyword is not None for arg in arguments) or not arguments:
        return None
    sizes = [arg.value for arg in arguments]
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        if any(not isinstance(element, cst.Element) for element in sizes[0].elements):
            return None
        sizes = [element.value for element in sizes[0].elements]
    elif len(sizes) == 1 and not isinstance(sizes[0], cst.Integer):
        if module.value(sizes[0]).kind is not Kind.NUMBER:
            return None  # a shape, or a dtype
    return known_shape({i for i, size in enumerate(sizes) if is_literal_one(size)}, len(sizes))


def _reduced(module: Module, call: cst.Call, arguments: Sequence[cst.Arg]) -> Shape | None:
    """Return the shape of ``x.mean(dim=1, keepdim=True)``: which dimensions have the size 1."""
    named = keywords(call)
    keeps = named.get("keepdim")
    if not isinstance(keeps, cst.Name) or keeps.value != "True":
        return None
    positional = [arg.value for arg in arguments if arg.keyword is None and not arg.star]
    dim = named.get("dim", positional[-1] if positional else None)
    position = operations_of(module).integer(dim)
    if position is None:
        return None
    return Shape(front=frozenset({position})) if position >= 0 else Shape(back=frozenset({position}))


# --- what takes the result --------------------------------------------------------------------------


def _uses(module: Module, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield the expressions that stand for the result where something takes it."""
    parent = module.tree.parent(call)
    match parent:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding = module.binding_of(target)
            yield from module.uses(binding) if binding is not None else ()
        case _:
            yield call


def _asks_for_shape(module: Module, use: cst.BaseExpression) -> bool:
    parent = module.tree.parent(use)
    return isinstance(parent, cst.Attribute) and parent.attr.value in (
        "shape",
        "device",
        "dtype",
        "size",
        "ndim",
    )


def _broadcasts(module: Module, use: cst.BaseExpression, last: int) -> bool:
    """Return whether what takes a tensor computes element by element, or multiplies matrices of a batch.

    ``last``: how far from the end the last dimension is that is repeated.
    """
    parent = module.tree.parent(use)
    match parent:
        case cst.BinaryOperation(operator=operator):
            if isinstance(operator, cst.MatrixMultiply):
                return last > 2
            return not isinstance(operator, (cst.LeftShift, cst.RightShift))
        case cst.Comparison() | cst.ComparisonTarget():
            target = parent if isinstance(parent, cst.ComparisonTarget) else parent.comparisons[0]
            return not isinstance(target.operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot))
        case cst.AugAssign():
            return parent.value is use and not isinstance(parent.operator, cst.MatrixMultiplyAssign)
        case cst.Attribute():
            called = module.tree.is_called(parent)
            return called and not parent.attr.value.endswith("_") and _is_taken(parent.attr.value, last)
        case cst.Arg():
            return _takes_argument(module, parent, last)
    return False


def _takes_argument(module: Module, arg: cst.Arg, last: int) -> bool:
    call = module.tree.parent(arg)
    if not isinstance(call, cst.Call) or arg.star or (arg.keyword is not None and arg.keyword.value == "out"):
        return False
    name = module.qualified(call.func)
    if name is None:
        if not isinstance(call.func, cst.Attribute) or module.callee(call) is not None:
            return False
        if module.value(call.func.value).kind not in (Kind.TENSOR, Kind.UNKNOWN):
            return False
        return _is_taken(call.func.attr.value, last)
    package, _, short = name.rpartition(".")
    if package not in ("torch", "torch.nn.functional") or short.endswith("_"):
        return False
    if short == "where" and len(call.args) != 3:
        return False
    return _is_taken(short, last)


def _is_taken(name: str, last: int) -> bool:
    return name in _BROADCASTING or (name in _PRODUCTS and last > 2)


def _is_for_export(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is done for a graph of ONNX, in a branch or function that says so."""
    named = (
        around.name.value
        for around in module.tree.ancestors(node)
        if isinstance(around, (cst.FunctionDef, cst.ClassDef))
    )
    asked = (module.source(branch.test) for branch in module.flow.branches(node, outward=True))
    return any("onnx" in words.lower() for words in (*named, *asked))
