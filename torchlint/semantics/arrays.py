"""NumPy arrays: which expressions certainly are some, of which dtype, and which lists hold nothing else.

``Value`` says ``NDARRAY`` of all that NumPy returns, scalars included. Here a scalar is none: what a function
may return as one (``np.mean(x)``, ``x[0]``) is not an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import dtypes
from torchlint.semantics.api.families import listed
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.identifiers import imports
from torchlint.semantics.loaders import collated
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.sources import Item, Path, Source, Through, every, onward, steps, traced
from torchlint.semantics.spellings import keywords
from torchlint.semantics.values import Kind, item_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


# Functions whose result is an array whatever they are given, of the dtype of their data ...
_MAKERS = listed(
    "numpy.",
    """
    append arange argpartition argsort argwhere array asarray ascontiguousarray asfortranarray atleast_1d
    atleast_2d atleast_3d block broadcast_to column_stack concatenate copy cumprod cumsum delete diag diff
    dstack empty_like expand_dims flatnonzero flip fliplr flipud frombuffer fromiter full full_like hstack
    insert intersect1d load moveaxis ones_like pad random.permutation ravel repeat reshape resize roll
    rollaxis rot90 setdiff1d sort squeeze stack swapaxes tile transpose tril triu union1d vstack zeros_like
    """,
)
# Functions that are applied to each element: arrays give arrays, numbers give numbers.
_ELEMENTWISE = listed(
    "numpy.",
    """
    abs absolute add arccos arcsin arctan arctan2 ceil clip cos cosh divide equal exp expm1 fabs floor fmod
    greater interp isnan less log log10 log1p log2 logical_and logical_not logical_or maximum minimum mod
    multiply nan_to_num negative power real rint round sign sin sinh sqrt square subtract tan tanh where
    """,
)
_IMAGES = listed(
    "cv2.",
    """
    blur copyMakeBorder cvtColor filter2D flip GaussianBlur getRotationMatrix2D imdecode imread medianBlur
    merge remap resize rotate warpAffine warpPerspective
    """,
)
_METHODS = listed(
    "", "argsort astype clip copy cumsum flatten ravel repeat reshape round swapaxes take transpose"
)
_REDUCTIONS = listed("", "max mean min std sum var")
# What takes something out of a list.
_TAKING = frozenset({"clear", "pop", "popleft", "remove"})


@dataclass(frozen=True, slots=True)
class Array:
    """What is known of an array.

    Attributes:
        dtype: its dtype as NumPy calls it, where the file shows it.
        numeric: whether its items certainly are numbers, and no Python objects that stand for some.
    """

    dtype: str | None = None
    numeric: bool = False


_UNSEEN = Array("")
"""What is not known yet while a circle is gone through."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """A list of arrays.

    Attributes:
        items: the arrays that it holds, by the expressions that put them into it.
        filled: whether it certainly holds at least one.
        alike: whether its arrays have one dtype.
    """

    items: Mapping[cst.BaseExpression, Array]
    filled: bool
    alike: bool


def array(module: Module, node: cst.BaseExpression) -> Array | None:
    """Return what an expression is that certainly is a NumPy array, and no scalar; None for all others."""
    found = _known(module, node, ())
    if found is None and isinstance(node, cst.Name):
        proven = module.inference.proven(node)
        return Array() if proven is not None and proven.kind is Kind.NDARRAY else None
    return found if found != _UNSEEN else None


@solved(_UNSEEN)
def _known(module: Module, node: cst.CSTNode | Binding, path: Path) -> Array | None:
    """Return what a part of an expression, or of what a definition gives, is."""
    if isinstance(node, Binding):
        if isinstance(node.node, cst.Param):
            annotation = node.node.annotation
            if not path and annotation is not None and _is_array_type(module, annotation):
                return Array()
            handed = collated(module, node, path)
            return None if handed is None else _any_of(_known(module, *each) for each in handed)
        kept = node.kind is BindingKind.AUGMENT and not path
        onto = [Source(node.node)] if kept else steps(module, Source(node, path), Through.ITEMS)
    else:
        shown = _shown(module, node) if not path else None
        if isinstance(shown, Array):
            return shown
        if len(path) == 1 and isinstance(node, cst.Call) and _gives_arrays(module, node):
            return Array("int64", numeric=True)
        onto = shown if shown is not None else steps(module, Source(node, path), Through.ITEMS)
    return _any_of(_known(module, *each) for each in onto) if onto is not None else None


def _shown(module: Module, node: cst.CSTNode) -> Array | list[Source] | None:
    """Return what an expression shows by itself to be, or what it is like."""
    match node:
        case cst.Call():
            return _of_call(module, node)
        case cst.Attribute(value=owner, attr=cst.Name("T")):
            return onward(owner)
        case cst.Attribute(value=owner, attr=cst.Name("values")):
            # Of a table; those of ``torch.topk`` are a tensor.
            known = module.value(owner).known or module.value(node).known
            return Array() if _uses_pandas(module) and not known else None
        case cst.BinaryOperation():
            return _of_operation(module, node)
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert(), expression=inner):
            return onward(inner)
        case cst.Subscript(value=owner, slice=slices) if any(isinstance(e.slice, cst.Slice) for e in slices):
            return onward(owner)
        case _:
            return None


def _gives_arrays(module: Module, call: cst.Call) -> bool:
    """Return whether a function of NumPy returns a tuple of indices: ``np.nonzero(mask)[0]``."""
    given = item_of(module.value(call))
    named = module.qualified(call.func) or ""
    return given is not None and given.kind is Kind.NDARRAY and named.startswith("numpy.")


def _uses_pandas(module: Module) -> bool:
    return imports(module, ("pandas",))


def _any_of(found: Iterable[Array | None]) -> Array | None:
    """Return what may be any of these."""
    options = list(found)
    arrays = [option for option in options if option is not None and option != _UNSEEN]
    if None in options:
        return None
    if not arrays:
        return _UNSEEN
    shared = {one.dtype for one in arrays}
    return Array(shared.pop() if len(shared) == 1 else None, all(one.numeric for one in arrays))


def _of_operation(module: Module, node: cst.BinaryOperation) -> Array | None:
    """Return an operation on arrays; one on an array and a tensor makes a tensor, or fails.

    ``@`` makes a scalar of two vectors.
    """
    if isinstance(node.operator, cst.MatrixMultiply):
        return None
    sides = (node.left, node.right)
    arrays = [array(module, side) for side in sides]
    found = [one for one in arrays if one is not None]
    if not found or any(
        one is None and module.value(side).tensorlike for one, side in zip(arrays, sides, strict=True)
    ):
        return None
    return Array(numeric=all(one.numeric for one in found))


def _of_call(module: Module, call: cst.Call) -> Array | list[Source] | None:
    name = module.qualified(call.func)
    if name is not None:
        return _of_function(module, call, name)
    if isinstance(call.func, cst.Attribute):
        method, owner = call.func.attr.value, call.func.value
        if method == "to_numpy" and _uses_pandas(module):
            return Array()
        if method == "numpy":
            # What has this method and is no tensor of torch is one of TensorFlow, say.
            return Array(dtypes.of_tensor(module.value(owner).dtype), numeric=True)
        if method in _METHODS:
            if method not in ("astype", "argsort", "cumsum"):
                return onward(owner)
            if array(module, owner) is None:
                return None
            asked = next((arg.value for arg in call.args), None) if method == "astype" else None
            return _typed(module, asked) if asked is not None else Array(numeric=True)
        if method in _REDUCTIONS and any(
            arg.keyword is not None
            and arg.keyword.value == "keepdims"
            and module.value(arg.value).constant is True
            for arg in call.args
        ):
            found = array(module, owner)
            return None if found is None else Array(numeric=found.numeric)
    function = module.callee(call)
    return _of_result(module, function) if isinstance(function, cst.FunctionDef) else None


def _of_function(module: Module, call: cst.Call, name: str) -> Array | None:
    """Return what a library function returns."""
    positional = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    given = keywords(call)
    asked = given.get("dtype")
    if name in _MAKERS or name in dtypes.DOUBLE_MAKERS:
        if asked is None and name in dtypes.DTYPE_SECOND and len(positional) > 1:
            asked = positional[1]
        if asked is not None:
            return _typed(module, asked)
        if name in dtypes.DOUBLE_MAKERS:
            return Array("float64", numeric=True)
        return _of_data(module, positional[0]) if positional else Array()
    if name in _ELEMENTWISE:
        found = [one for one in (array(module, arg) for arg in positional) if one is not None]
        return Array(numeric=all(one.numeric for one in found)) if found else None
    if name in ("numpy.random.rand", "numpy.random.randn"):
        return Array("float64", numeric=True) if call.args else None
    if name in dtypes.DRAWS:
        dtype = None if name in dtypes.OTHER_DRAWS or asked is not None else "float64"
        sized = "size" in given or len(positional) > dtypes.DRAWS[name]
        return Array(dtype, numeric=name != "numpy.random.choice") if sized else None
    return Array(numeric=True) if name in _IMAGES else None


def _of_data(module: Module, data: cst.BaseExpression) -> Array:
    """Return the array that ``np.array(data)`` makes: one of numbers if the data certainly holds them."""
    value = module.value(data)
    if value.kind in (Kind.NUMBER, Kind.BOOL, Kind.TENSOR, Kind.SHAPE):
        return Array(numeric=True)
    inner = array(module, data)
    if inner is not None:
        return inner
    held = list_of_arrays(module, data)
    if held is not None:
        return Array(numeric=all(one.numeric for one in held.items.values()))
    numbers = item_of(value)
    return Array(numeric=numbers is not None and numbers.kind in (Kind.NUMBER, Kind.BOOL))


def _of_result(module: Module, function: cst.FunctionDef) -> Array | None:
    """Return what a function of the file returns."""
    if function.asynchronous is not None:
        return None
    exits = module.home(function).flow.exits(function)
    found = _any_of(
        array(module, node.value) if isinstance(node, cst.Return) and node.value is not None else None
        for node in exits
    )
    if (found is None or not exits) and function.returns is not None:
        return Array() if _is_array_type(module, function.returns) else None
    return found if exits else None


def _is_array_type(module: Module, annotation: cst.Annotation) -> bool:
    return module.qualified(annotation.annotation) == "numpy.ndarray"


# --- dtypes ------------------------------------------------------------------------------------------


def _typed(module: Module, asked: cst.BaseExpression) -> Array:
    """Return an array of the dtype that an expression stands for."""
    dtype = named_dtype(module, asked)
    return Array(dtype, numeric=dtype is not None)


def named_dtype(module: Module, node: cst.BaseExpression) -> str | None:
    """Return the dtype that ``np.float32``, ``"float32"``, ``float`` or ``torch.float32`` stands for."""
    return dtypes.named(module.value(node))


# --- lists -------------------------------------------------------------------------------------------


@solved(None)
def list_of_arrays(module: Module, node: cst.BaseExpression) -> Arrays | None:
    """Return what a list or tuple of arrays, or of such lists, holds; None for what is not certainly one."""
    ends = _held(module, Source(node, (Item.EACH,)))
    held = [end for end in ends if isinstance(end, cst.BaseExpression)]
    if not held or len(held) < len(ends):
        return None
    items: dict[cst.BaseExpression, Array] = {}
    filled, alike = every(_is_filled(module, node)), len({module.source(each) for each in held}) == 1
    for expression in held:
        one = array(module, expression)
        if one is not None:
            items[expression] = one
            continue
        inner = list_of_arrays(module, expression)
        if inner is None:
            return None
        items.update(inner.items)
        filled, alike = filled and inner.filled, alike and inner.alike
    shared = {one.dtype for one in items.values()}
    return Arrays(items, filled, alike or (len(shared) == 1 and None not in shared))


@traced(Through.ITEMS)
def _held(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | bool | list[Source] | None:
    """Return the expressions that are items of a list; False if another name may put items into it."""
    if not path:
        return node
    if isinstance(node, cst.Param):
        bound = module.names.by_node.get(node)
        return collated(module, bound, path) if bound is not None else None
    uses: Iterable[cst.BaseExpression] = ()
    if isinstance(node, cst.Name):
        uses = (use for binding in module.bindings(node) for use in module.uses(binding))
    elif isinstance(node, cst.Attribute):
        attributes = SelfAttributes.of(module)
        owner = attributes.self_class(node)
        uses = attributes.self_reads(owner, node.attr.value) if owner is not None else ()
    aliased = any(isinstance(module.tree.parent(use), (cst.Assign, cst.AnnAssign)) for use in uses)
    return False if aliased else None


@traced(Through.NOTHING)
def _is_filled(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a list certainly has an item."""
    if isinstance(node, (cst.List, cst.Tuple)) and not path:
        return bool(node.elements)
    if isinstance(node, cst.Name):
        parents = (module.tree.parent(use) for b in module.bindings(node) for use in module.uses(b))
        taken = (isinstance(p, cst.Attribute) and p.attr.value in _TAKING for p in parents)
        return False if any(taken) else None
    return False if isinstance(node, cst.Attribute) else None
