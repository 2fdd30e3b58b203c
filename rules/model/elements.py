"""What has to hold for one function to take the place of several: the elements of a tensor, and observers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from torchlint.semantics.api.families import listed
from torchlint.semantics.api.results import METHOD_DTYPES
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Item, Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.tensordtypes import NOT_FLOATING, keeps
from torchlint.semantics.texts import texts_of_graphs
from torchlint.semantics.values import Graph, Kind

# These take over the elements of an array or a list.
_OF_DATA = listed("torch.", "as_tensor asarray from_numpy tensor") | listed("numpy.", "array asarray")


def may_hold(module: Module, node: cst.BaseExpression, dtypes: Collection[str]) -> bool:
    """Return whether an expression may be a tensor of one of some dtypes, or an object of the program's own.

    A parameter is what any of the calls passes for it. Items of a dataset may be of any dtype, labels above
    all; what nothing else is known of counts as neither.
    """
    return some(_holds(module, node, frozenset(dtypes)))


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _holds(
    module: Module, node: cst.CSTNode, path: tuple[object, ...], dtypes: frozenset[str]
) -> bool | list[Source] | None:
    if isinstance(node, cst.Param) and not path:
        return True if _passed_unseen(module, node, dtypes) else None
    if not isinstance(node, cst.BaseExpression):
        return None
    value = module.value(node)
    if path:
        return True if value.kind in (Kind.LOADER, Kind.DATASET) else None
    if value.dtype is not None and f"torch.{value.dtype.removeprefix('torch.')}" in dtypes:
        return True
    if value.dtype is not None or (value.kind is Kind.TENSOR and value.graph is Graph.ATTACHED):
        # What the calls that are seen pass for a parameter says nothing of the others.
        return None if _is_parameter(module, node) else False
    if value.kind is Kind.OBJECT and isinstance(value.definition, cst.ClassDef):
        return True
    match node:
        case cst.Call():
            return _of_call(module, node, dtypes)
        case cst.BinaryOperation():
            return _of_operation(module, node, dtypes)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus() | cst.BitInvert(), expression=operand):
            return onward(operand)
        case cst.Subscript(value=owner) if module.value(owner).kind is Kind.TENSOR:
            return onward(owner)
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if elements:
            return "torch.int64" in dtypes and all(isinstance(each.value, cst.Integer) for each in elements)
        case cst.Attribute(attr=cst.Name("indices")):
            return "torch.int64" in dtypes
        case cst.Attribute(value=owner, attr=cst.Name("data" | "T" | "mT")):
            return onward(owner)
    return None


def _is_parameter(module: Module, node: cst.BaseExpression) -> bool:
    bindings = module.bindings(node)
    return bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)


def _passed_unseen(module: Module, param: cst.Param, dtypes: frozenset[str]) -> bool:
    """Return whether code that is handed the function of a parameter may pass tensors of one of some dtypes
    for it.

    What calls a function that it is handed is not known: it may be any call of what nobody knows in the
    files that name the function, and whatever the function is handed on with, as by ``map``. Nor is known
    what a call runs that asks an unknown object for the name: ``type(layer).curve(layer, x)``.
    """
    function = module.tree.parents[module.tree.parents[param]]
    if any(_may_give(each, node, dtypes) for each, node in _given_by_name(module, function)):
        return True
    for each, use in _handed_on(module, function):
        parent = each.tree.parents[use]
        call = each.tree.parents[parent] if isinstance(parent, cst.Arg) else None
        beside = [arg.value for arg in call.args if arg is not parent] if isinstance(call, cst.Call) else []
        if any(_may_give(each, node, dtypes) for node in (*beside, *_given_to_unknown(each))):
            return True
    return False


def _may_give(module: Module, node: cst.BaseExpression, dtypes: frozenset[str]) -> bool:
    """Return whether an expression, or an item of it, may be a tensor of one of some dtypes."""
    return some(_holds(module, node, dtypes)) or some(_holds(module, Source(node, (Item.EACH,)), dtypes))


def _given_by_name(module: Module, function: cst.CSTNode) -> Iterator[tuple[Module, cst.BaseExpression]]:
    """Yield what the program passes to methods of unknown objects that have the name of a function."""
    if not isinstance(function, cst.FunctionDef) or module.classes.owner(function) is None:
        return
    name = function.name.value
    for each in (module, *module.companions(f".{name}(")):
        for call in each.tree.calls_by_name.get(name, ()):
            if isinstance(call.func, cst.Attribute) and _runs_unknown(each, call):
                for arg in call.args:
                    yield each, arg.value


def _handed_on(module: Module, function: cst.CSTNode) -> Iterator[tuple[Module, cst.BaseExpression]]:
    """Yield the places in the program where a function is not called but handed on."""
    if isinstance(function, cst.Lambda):
        statement = module.tree.parents[function]
        targets = [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else []
        names = [target.value for target in targets if isinstance(target, cst.Name)]
        if not names and not isinstance(statement, cst.Call):
            yield module, function
    else:
        assert isinstance(function, cst.FunctionDef)
        names = [function.name.value]
    for name in names:
        for each in (module, *module.companions(name)):
            for use in _values_named(each).get(name, ()):
                yield each, use


@remembered
def _values_named(module: Module) -> dict[str, list[cst.BaseExpression]]:
    """Return the reads of names and attributes that are not called, by the last word of each.

    In a file that takes attributes or globals by their names, a text may be one.
    """
    tree = module.tree
    found: dict[str, list[cst.BaseExpression]] = {}
    reads: list[tuple[str, cst.BaseExpression]] = [(node.value, node) for node in tree.nodes(cst.Name)]
    reads += [(node.attr.value, node) for node in tree.nodes(cst.Attribute)]
    if any(tree.calls_by_name.get(name) for name in ("getattr", "globals", "vars")):
        reads += [(str(node.evaluated_value), node) for node in tree.nodes(cst.SimpleString)]
    for name, node in reads:
        parent = tree.parents[node]
        if isinstance(parent, _HANDING_ON) and getattr(parent, "keyword", None) is not node:
            found.setdefault(name, []).append(node)
    return found


_HANDING_ON = (cst.Arg, cst.BaseElement, cst.DictElement, cst.Assign, cst.Index, cst.Return)


@remembered
def _given_to_unknown(module: Module) -> tuple[cst.BaseExpression, ...]:
    """Return what a file passes to calls of which nothing tells what they run."""
    return tuple(
        arg.value for call in module.tree.nodes(cst.Call) if _runs_unknown(module, call) for arg in call.args
    )


def _runs_unknown(module: Module, call: cst.Call) -> bool:
    """Return whether a call runs what no name in it tells: what came from a table,
    a parameter or an attribute.
    """
    called = module.value(call.func)
    match called.definition:
        case cst.FunctionDef(name=name):
            return called.kind is Kind.FUNCTION and last_name(call.func) != name.value
    if called.kind not in (Kind.UNKNOWN, Kind.FUNCTION) or module.qualified(call.func) is not None:
        return False
    return not (isinstance(call.func, cst.Attribute) and module.value(call.func.value).tensorlike)


def _of_call(module: Module, call: cst.Call, dtypes: frozenset[str]) -> bool | list[Source] | None:
    """Return what is computed by element of a tensor, and the steps of ``torch.arange(n)``."""
    qualified = module.qualified(call.func)
    if qualified in _OF_DATA:
        return onward(call.args[0].value) if call.args else None
    if qualified in ("torch.arange", "numpy.arange"):
        # Hardly anybody counts in fractions up to a number that is not written down.
        return None if module.argument(call, "dtype").given else "torch.int64" in dtypes
    package, _, name = (qualified or "").rpartition(".")
    if package in ("torch", "torch.nn.functional"):
        return onward(call.args[0].value) if keeps(name) and call.args else None
    if not isinstance(call.func, cst.Attribute) or module.value(call.func).kind is Kind.MODULE:
        return None
    name = call.func.attr.value
    if name == "integers":  # of a generator of NumPy
        return "torch.int64" in dtypes
    if name in METHOD_DTYPES:
        return METHOD_DTYPES[name] in dtypes
    # A move that names a dtype has one already.
    return onward(call.func.value) if keeps(name) or name in ("to", "cuda", "cpu") else None


def _of_operation(module: Module, node: cst.BinaryOperation, dtypes: frozenset[str]) -> bool | None:
    """Return whether no operand is promoted to floating-point numbers."""
    if isinstance(node.operator, cst.Divide):
        return False
    found: list[bool] = []
    for side in (node.left, node.right):
        value = module.value(side)
        if value.kind not in (Kind.NUMBER, Kind.BOOL):
            found.append(some(_holds(module, side, dtypes)))
        elif isinstance(value.constant, float):
            return False
    return bool(found) and all(found)


def whole(module: Module, x: cst.BaseExpression) -> bool:
    """Return whether ``x`` is seen to be whole numbers, or no tensor:
    only the operations one by one take it.
    """
    return may_hold(module, x, NOT_FLOATING)


def complex_numbers(module: Module) -> bool:
    """Return whether the file writes complex numbers, or names what torch or NumPy makes them with.

    Not every release has the fused functions for them.
    """
    return bool(module.tree.nodes(cst.Imaginary)) or any(
        name in ("polar", "fft", "ifft", "fft2", "stft") or "complex" in name for name in identifiers(module)
    )


HOOKED = "the program may hook into the layers and functions that no longer run, or replace them"
"""Why it is unsafe to leave out what `observed` and `runs_layer` find."""
# Code that sees each operation: modes, hooks, tracers, what compilers are given, and tables of profilers.
_OBSERVING = (
    *("__torch_function__", "__torch_dispatch__", "saved_tensors_hooks", "symbolic_trace", "make_fx"),
    *("graph.nodes", "print_tabular", "key_averages", "grad_fn"),
)


def observed(module: Module, *functions: str) -> bool:
    """Return whether the program looks at, or replaces, the single functions of torch that it calls.

    Args:
        module: the file that calls them.
        functions: the names of the functions that would no longer be called.
    """
    if module.mentions(*_OBSERVING) or any(map(_names_operations, (module, *module.companions("print(")))):
        return True
    if any(map(_replaces_by_name, (module, *module.companions("setattr(")))):
        return True
    return any(
        (each.qualified(target.target.value) or "").partition(".")[0] == "torch"
        for each in module.companions(*(f".{name} = " for name in functions))
        for name in functions
        for target in each.names.attributes.get(name, ())
    )


@remembered
def _names_operations(module: Module) -> bool:
    """Return whether a file shows a tensor with its graph, whose text names the last operation."""
    return any(module.value(text).graph is Graph.ATTACHED for text in texts_of_graphs(module))


@remembered
def _replaces_by_name(module: Module) -> bool:
    """Return whether a file gives a module or class of torch attributes whose names are not written there."""
    return any(
        module.qualified(call.func) == "builtins.setattr"
        and len(call.args) == 3
        and (module.qualified(call.args[0].value) or "").partition(".")[0] == "torch"
        and not isinstance(call.args[1].value, cst.SimpleString)
        for call in module.tree.calls_by_name.get("setattr", ())
    )
