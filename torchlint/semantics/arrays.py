"""NumPy arrays: which expressions certainly are some, of which dtype, and which lists hold nothing else.

``Value`` says ``NDARRAY`` of all that NumPy returns, scalars included. Here a scalar is none: what a function
may return as one (``np.mean(x)``, ``x[0]``) is not an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import dtypes
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_words
from torchlint.semantics.values import Kind, item_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DEPTH = 8
_MOST_ITEMS = 10_000


def _listed(namespace: str, names: str) -> frozenset[str]:
    return frozenset(f"{namespace}{name}" for name in names.split())


# Functions whose result is an array whatever they are given, of the dtype of their data ...
_MAKERS = _listed(
    "numpy.",
    """
    append arange argsort array asarray ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d
    block broadcast_to column_stack concatenate copy cumprod cumsum delete diag diff dstack empty_like
    expand_dims flip fliplr flipud frombuffer fromiter full full_like hstack insert load moveaxis ones_like
    pad random.permutation ravel repeat reshape resize roll rollaxis rot90 sort squeeze stack swapaxes tile
    transpose tril triu vstack zeros_like
    """,
)
# Functions that are applied to each element: arrays give arrays, numbers give numbers.
_ELEMENTWISE = _listed(
    "numpy.",
    """
    abs absolute add arccos arcsin arctan arctan2 ceil clip cos cosh divide equal exp expm1 fabs floor fmod
    greater interp isnan less log log10 log1p log2 logical_and logical_not logical_or maximum minimum mod
    multiply nan_to_num negative power real rint round sign sin sinh sqrt square subtract tan tanh where
    """,
)
_IMAGES = _listed(
    "cv2.",
    """
    blur copyMakeBorder cvtColor filter2D flip GaussianBlur getRotationMatrix2D imdecode imread medianBlur
    merge remap resize rotate warpAffine warpPerspective
    """,
)
_METHODS = _listed(
    "", "argsort astype clip copy cumsum flatten ravel repeat reshape round swapaxes take transpose"
)
_REDUCTIONS = _listed("", "max mean min std sum var")
# What may be asked of a list without putting anything into it, and which of that takes something out.
_TAKING = frozenset({"clear", "pop", "popleft", "remove"})
_ASKING = frozenset({"copy", "count", "index", "reverse"})

# Their parameter for the data.
_FROM_DATA = {"torch.tensor": "data", "torch.as_tensor": "data", "torch.asarray": "obj"}
FROM_LISTS = last_words(_FROM_DATA) | last_words(LEGACY_CONSTRUCTORS) | {"Tensor"}
"""What the calls are named that may be a ``tensor_from_list``."""
# Arrays of the other byte order: only from a list of them is a tensor made.
_FOREIGN = re.compile(r"""["']>[iuf]\d""")


@dataclass(frozen=True, slots=True)
class Array:
    """What is known of an array.

    Attributes:
        dtype: its dtype as NumPy calls it, where the file shows it.
        numeric: whether its items certainly are numbers, and no Python objects that stand for some.
    """

    dtype: str | None = None
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Arrays:
    """A list of arrays.

    Attributes:
        items: the arrays that it holds, one for each expression that puts some into it.
        filled: whether it certainly holds at least one.
        alike: whether its arrays have one dtype.
    """

    items: tuple[Array, ...]
    filled: bool
    alike: bool


@remembered
def array(module: Module, node: cst.BaseExpression, depth: int = 0) -> Array | None:
    """What an expression is that certainly is a NumPy array, and no scalar; None for all others."""
    if depth > _DEPTH:
        return None
    match node:
        case cst.Call():
            return _of_call(module, node, depth)
        case cst.Name():
            found = _any_of(_of_binding(module, binding, depth) for binding in module.bindings(node))
            proven = module.inference.proven(node) if found is None else None
            return Array() if proven is not None and proven.kind is Kind.NDARRAY else found
        case cst.Attribute(attr=cst.Name(value="T")):
            return array(module, node.value, depth + 1)
        case cst.Attribute(attr=cst.Name(value="values")):
            # Of a table; those of ``torch.topk`` are a tensor, and a dictionary has to be asked for them.
            called = isinstance(module.tree.parent(node), cst.Call)
            known = module.value(node.value).known or module.value(node).known
            return Array() if _uses_pandas(module) and not called and not known else None
        case cst.Attribute(value=cst.Name(value="self")):
            values = Loaders.of(module).data.attribute_bindings(node)
            return _any_of(None if path else array(module, value, depth + 1) for value, path in values)
        case cst.BinaryOperation():
            return _of_operation(module, node, depth)
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
            return array(module, node.expression, depth + 1)
        case cst.IfExp():
            return _any_of(array(module, branch, depth + 1) for branch in (node.body, node.orelse))
        case cst.Subscript():
            sliced = any(isinstance(element.slice, cst.Slice) for element in node.slice)
            return array(module, node.value, depth + 1) if sliced else None
        case _:
            return None


def _uses_pandas(module: Module) -> bool:
    return any(
        (binding.imported or "").partition(".")[0] == "pandas"
        for bindings in module.names.module_scope.bindings.values()
        for binding in bindings
    )


def _any_of(found: Iterable[Array | None]) -> Array | None:
    """What may be any of these."""
    options = list(found)
    arrays = [option for option in options if option is not None]
    if not arrays or len(arrays) < len(options):
        return None
    shared = {one.dtype for one in arrays}
    return Array(shared.pop() if len(shared) == 1 else None, all(one.numeric for one in arrays))


def _of_operation(module: Module, node: cst.BinaryOperation, depth: int) -> Array | None:
    """An operation on arrays; one on an array and a tensor makes a tensor, or fails.

    ``@`` makes a scalar of two vectors.
    """
    if isinstance(node.operator, cst.MatrixMultiply):
        return None
    sides = (node.left, node.right)
    arrays = [array(module, side, depth + 1) for side in sides]
    found = [one for one in arrays if one is not None]
    if not found or any(
        one is None and module.value(side).tensorlike for one, side in zip(arrays, sides, strict=True)
    ):
        return None
    return Array(numeric=all(one.numeric for one in found))


def _of_call(module: Module, call: cst.Call, depth: int) -> Array | None:
    name = module.qualified(call.func)
    if name is not None:
        return _of_function(module, call, name, depth)
    if isinstance(call.func, cst.Attribute):
        method, owner = call.func.attr.value, call.func.value
        if method == "to_numpy" and _uses_pandas(module):
            return Array()
        if method == "numpy":
            # What has this method and is no tensor of torch is one of TensorFlow, say.
            return Array(dtypes.of_tensor(module.value(owner).dtype), numeric=True)
        if method in _METHODS:
            found = array(module, owner, depth + 1)
            if found is None or method not in ("astype", "argsort", "cumsum"):
                return found
            asked = next((arg.value for arg in call.args), None) if method == "astype" else None
            return _typed(module, asked) if asked is not None else Array(numeric=True)
        if method in _REDUCTIONS and any(
            arg.keyword is not None
            and arg.keyword.value == "keepdims"
            and module.value(arg.value).constant is True
            for arg in call.args
        ):
            found = array(module, owner, depth + 1)
            return None if found is None else Array(numeric=found.numeric)
    function = module.callee(call)
    return _of_result(module, function, depth) if isinstance(function, cst.FunctionDef) else None


def _of_function(module: Module, call: cst.Call, name: str, depth: int) -> Array | None:
    """What a library function returns."""
    positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    asked = given.get("dtype")
    if name in _MAKERS or name in dtypes.DOUBLE_MAKERS:
        if asked is None and name in dtypes.DTYPE_SECOND and len(positional) > 1:
            asked = positional[1]
        if asked is not None:
            return _typed(module, asked)
        if name in dtypes.DOUBLE_MAKERS:
            return Array("float64", numeric=True)
        return _of_data(module, positional[0], depth) if positional else Array()
    if name in _ELEMENTWISE:
        found = [one for one in (array(module, arg, depth + 1) for arg in positional) if one is not None]
        return Array(numeric=all(one.numeric for one in found)) if found else None
    if name in ("numpy.random.rand", "numpy.random.randn"):
        return Array("float64", numeric=True) if call.args else None
    if name in dtypes.DRAWS:
        dtype = None if name in dtypes.OTHER_DRAWS or asked is not None else "float64"
        sized = "size" in given or len(positional) > dtypes.DRAWS[name]
        return Array(dtype, numeric=name != "numpy.random.choice") if sized else None
    return Array(numeric=True) if name in _IMAGES else None


def _of_data(module: Module, data: cst.BaseExpression, depth: int) -> Array:
    """``np.array(data)`` and its like: numbers if the data certainly is made of them."""
    value = module.value(data)
    if value.kind in (Kind.NUMBER, Kind.BOOL, Kind.TENSOR, Kind.SHAPE):
        return Array(numeric=True)
    inner = array(module, data, depth + 1)
    if inner is not None:
        return inner
    held = list_of_arrays(module, data, depth + 1)
    if held is not None:
        return Array(numeric=all(one.numeric for one in held.items))
    numbers = item_of(value)
    return Array(numeric=numbers is not None and numbers.kind in (Kind.NUMBER, Kind.BOOL))


def _of_result(module: Module, function: cst.FunctionDef, depth: int) -> Array | None:
    """What a function of the file returns."""
    if function.asynchronous is not None:
        return None
    exits = [
        node
        for node in module.tree.descendants(function.body)
        if isinstance(node, (cst.Return, cst.Yield)) and module.function(node) is function
    ]
    found = _any_of(
        array(module, node.value, depth + 1)
        if isinstance(node, cst.Return) and node.value is not None
        else None
        for node in exits
    )
    if found is None and function.returns is not None:
        return Array() if _is_array_type(module, function.returns) else None
    return found


def _is_array_type(module: Module, annotation: cst.Annotation) -> bool:
    return module.qualified(annotation.annotation) == "numpy.ndarray"


def _of_binding(module: Module, binding: Binding, depth: int) -> Array | None:
    value = binding.value
    match binding.kind:
        case BindingKind.ASSIGN | BindingKind.WALRUS if value is not None and not binding.path:
            return array(module, value, depth + 1)
        case BindingKind.AUGMENT:
            earlier = [b for b in module.names.bindings_at(binding.name, binding.node) if b is not binding]
            return (
                _any_of(_of_binding(module, other, depth + 1) for other in earlier)
                if depth < _DEPTH
                else None
            )
        case BindingKind.PARAMETER if isinstance(binding.node, cst.Param):
            annotation = binding.node.annotation
            return Array() if annotation is not None and _is_array_type(module, annotation) else None
        case BindingKind.LOOP | BindingKind.COMPREHENSION if value is not None and not binding.path:
            held = _held(module, value)
            return _any_of(array(module, item, depth + 1) for item in held[0]) if held is not None else None
        case _:
            return None


# --- dtypes ------------------------------------------------------------------------------------------


def _typed(module: Module, asked: cst.BaseExpression) -> Array:
    """An array of the dtype that an expression stands for."""
    dtype = named_dtype(module, asked)
    return Array(dtype, numeric=dtype is not None)


def named_dtype(module: Module, node: cst.BaseExpression) -> str | None:
    """The dtype that ``np.float32``, ``"float32"``, ``float`` or ``torch.float32`` stands for."""
    return dtypes.named(module.value(node))


# --- lists -------------------------------------------------------------------------------------------


@remembered
def list_of_arrays(module: Module, node: cst.BaseExpression, depth: int = 0) -> Arrays | None:
    """What a list or tuple of arrays, or of such lists, holds; None for what is not certainly one."""
    held = _held(module, node) if depth <= _DEPTH else None
    if held is None:
        return None
    expressions, filled = held
    items: list[Array] = []
    alike = len({module.source(expression) for expression in expressions}) == 1
    for expression in expressions:
        one = array(module, expression, depth + 1)
        if one is not None:
            items.append(one)
            continue
        inner = list_of_arrays(module, expression, depth + 1)
        if inner is None:
            return None
        items += inner.items
        if len(items) > _MOST_ITEMS:
            return None
        filled, alike = filled and inner.filled, alike and inner.alike
    if not items:
        return None
    shared = {one.dtype for one in items}
    return Arrays(tuple(items), filled, alike or (len(shared) == 1 and None not in shared))


@remembered
def _held(module: Module, node: cst.BaseExpression) -> tuple[Sequence[cst.BaseExpression], bool] | None:
    """The expressions that a list is made of, and whether it certainly has an item."""
    match node:
        case cst.List() | cst.Tuple():
            if any(isinstance(element, cst.StarredElement) for element in node.elements):
                return None
            return [element.value for element in node.elements], bool(node.elements)
        case cst.ListComp():
            return [node.elt], False
        case cst.Call(args=[]) if module.qualified(node.func) == "builtins.list":
            return [], False
        case cst.Name():
            return _collected(module, node)
        case cst.Attribute(value=cst.Name(value="self")):
            return _kept(module, node)
        case _:
            return None


def _kept(module: Module, attribute: cst.Attribute) -> tuple[Sequence[cst.BaseExpression], bool] | None:
    """As ``_held``, of a list that an object keeps: all that its class puts into it."""
    items: list[cst.BaseExpression] = []
    bindings = Loaders.of(module).data.attribute_bindings(attribute)
    for value, path in bindings:
        held = _held(module, value) if not path and not isinstance(value, (cst.Name, cst.Attribute)) else None
        if held is None:
            return None
        items += held[0]
    owner = module.tree.enclosing(attribute, cst.ClassDef)
    for use in Loaders.of(module).data.self_attributes.get(attribute.attr.value, ()):
        if module.tree.enclosing(use, cst.ClassDef) is not owner:
            continue
        added = module.inference.appended(use)
        if added is not None:
            items.append(added)
        elif not _is_made(module, use) and _may_put_in(module, use):
            return None
    return (items, False) if bindings else None


def _is_made(module: Module, use: cst.BaseExpression) -> bool:
    """Whether an attribute is assigned here."""
    parent = module.tree.parent(use)
    return isinstance(parent, (cst.AssignTarget, cst.AnnAssign)) and parent.target is use


def _collected(module: Module, name: cst.Name) -> tuple[Sequence[cst.BaseExpression], bool] | None:
    """As ``_held``, of a list that starts as a display or comprehension and is appended to."""
    items: list[cst.BaseExpression] = []
    filled = True
    bindings = module.bindings(name)
    for binding in bindings:
        value = binding.value
        if (
            binding.kind is not BindingKind.ASSIGN
            or binding.path
            or isinstance(value, (cst.Name, type(None)))
        ):
            return None
        held = _held(module, value)
        if held is None:
            return None
        items += held[0]
        filled = filled and held[1]
        for use in module.uses(binding):
            added = module.inference.appended(use)
            if added is not None:
                items.append(added)
            elif _may_put_in(module, use):
                return None
            parent = module.tree.parent(use)
            if isinstance(parent, cst.Attribute) and parent.attr.value in _TAKING:
                filled = False
    return (items, filled) if bindings else None


def _may_put_in(module: Module, use: cst.BaseExpression) -> bool:
    """Whether a use of a list may put something into it, other than by ``append``."""
    match module.tree.parent(use):
        case cst.Attribute(attr=cst.Name(value=method)):
            return method not in _TAKING | _ASKING
        case cst.AugAssign() | cst.Assign() | cst.AnnAssign():
            return True
        case cst.Subscript() as part:
            return isinstance(module.tree.parent(part), (cst.AssignTarget, cst.AugAssign))
        case _:
            return False


# --- tensors made of lists -----------------------------------------------------------------------------


def tensor_from_list(module: Module, call: cst.Call) -> tuple[cst.BaseExpression, Arrays] | None:
    """The list of arrays that a call makes a tensor of, and what it holds; None for any other call."""
    name = module.qualified(call.func)
    if name is None:
        return None
    node: cst.BaseExpression | None = None
    if name in _FROM_DATA:
        for position, arg in enumerate(call.args):
            if not arg.star and (
                arg.keyword.value == _FROM_DATA[name] if arg.keyword is not None else position == 0
            ):
                node = arg.value
    elif _legacy_dtype(name) is not None and len(call.args) == 1:
        (arg,) = call.args
        node = arg.value if not arg.star and arg.keyword is None else None
    held = list_of_arrays(module, node) if node is not None else None
    return (node, held) if node is not None and held is not None else None


def _legacy_dtype(name: str) -> str | None:
    """The dtype of ``torch.FloatTensor`` and its like; "float" for that of ``torch.Tensor``."""
    if name == "torch.Tensor":
        return "float"
    return LEGACY_CONSTRUCTORS.get(name.replace("torch.cuda.", "torch."))


def same_through_one_array(module: Module, call: cst.Call, arrays: Arrays) -> bool:
    """Whether a tensor made of a list of arrays is certainly the same if they become one array first."""
    name = module.qualified(call.func) or ""
    if name.startswith("torch.cuda.") or module.tree.matches(_FOREIGN):
        return False
    if name in _FROM_DATA:
        asked = module.argument(call, "dtype")
        if asked.unknown:
            return False
        if asked.node is None or asked.constant is None:
            return arrays.filled and arrays.alike
        dtype = named_dtype(module, asked.node)
    else:
        legacy = _legacy_dtype(name) or ""
        dtype = "float32" if legacy == "float" else dtypes.of_tensor(legacy)
    if dtype in dtypes.FLOATS or dtype == "bool":
        return all(one.numeric for one in arrays.items)
    if dtype not in dtypes.RANGES:
        return False
    lowest, highest = dtypes.RANGES[dtype]
    held = [dtypes.RANGES.get(one.dtype or "") for one in arrays.items]
    return all(h is not None and lowest <= h[0] and h[1] <= highest for h in held)
