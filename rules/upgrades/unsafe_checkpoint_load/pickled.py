"""Checkpoints that hold more than tensors, numbers, texts and containers of them.

That is all that `torch.load` reads with `weights_only=True`; see `torch/_weights_only_unpickler.py`. A file
shows what is in a checkpoint where it saves one, and where it uses what it has loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import NAMESPACES
from torchlint.semantics.api.results import TENSOR_ATTRIBUTES, TENSOR_METHODS
from torchlint.semantics.lexicon import Role, denotes
from torchlint.semantics.names import Binding, BindingKind, all_parameters, unpacked
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_OBJECTS = frozenset(
    {Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.LOADER, Kind.DATASET, Kind.SAMPLER, Kind.SCALER}
    | {Kind.ACCELERATOR, Kind.NDARRAY, Kind.OBJECT, Kind.GENERATOR, Kind.CLASS}
)
# What calls of these give is an instance of a class, or made of NumPy's.
_OTHER_LIBRARIES = (
    "numpy.",
    "argparse.",
    "datetime.",
    "pathlib.",
    "uuid.",
    "decimal.",
    "fractions.",
    "types.",
)
_PLAIN_CLASSES = frozenset(
    {"OrderedDict", "Counter", "Tensor", "Parameter", "Size", "FloatTensor", "LongTensor", "IntTensor"}
    | {"DoubleTensor", "HalfTensor", "BoolTensor", "ByteTensor", "BFloat16Tensor"}
)
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})
_CONTAINERS = frozenset({"builtins.dict", "builtins.list", "builtins.tuple", "collections.OrderedDict"})
# What tensors, numbers, texts and containers have, beside what only tensors have.
_PLAIN_ATTRIBUTES = (
    frozenset(name for kind in (dict, list, tuple, set, str, int, float, complex) for name in dir(kind))
    | frozenset(TENSOR_METHODS)
    | frozenset(TENSOR_ATTRIBUTES)
    | {
        "cuda",
        "cpu",
        "to",
        "move_to_end",
        "most_common",
        "xpu",
        "npu",
        "share_memory_",
        "is_sparse",
        "storage",
    }
    | {"untyped_storage", "data_ptr", "names", "layout", "_metadata", "_base", "is_quantized", "itemsize"}
)


@remembered
def saves(module: Module) -> list[cst.Call]:
    """Return the calls of `torch.save`, in source order."""
    return [call for call in module.tree.nodes(cst.Call) if module.qualified(call.func) == "torch.save"]


@remembered
def saved_as(module: Module) -> dict[str, list[cst.Call]]:
    """Return the calls of `torch.save` by the code that says where to."""
    found: dict[str, list[cst.Call]] = {}
    for call in saves(module):
        place = given_as(call, "f", 1)
        if place is not None:
            found.setdefault(module.source(place), []).append(call)
    return found


@remembered
def saves_objects(module: Module) -> bool:
    """Return whether the file saves anything, alone or in a container,
    that only a pickle of any class can hold.
    """
    given = (given_as(call, "obj", 0) for call in saves(module))
    waiting = [saved for saved in given if saved is not None]
    seen: set[cst.CSTNode | Binding] = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if _is_instance(module, node):
            return True
        waiting.extend(_held(module, node))
        for binding in module.bindings(node) if isinstance(node, cst.Name) else ():
            if binding not in seen:
                seen.add(binding)
                waiting.extend(_bound(module, binding))
    return False


def _is_instance(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is an object that no plain container can hold the contents of."""
    if isinstance(node, cst.Lambda):
        return True
    value = module.value(node)
    if value.kind in _OBJECTS:
        return True
    if value.kind is Kind.FUNCTION and isinstance(value.definition, (cst.FunctionDef, cst.Lambda)):
        return True
    match node:
        case cst.Call(func=func):
            return _makes_instance(module, func)
        case cst.Attribute(value=owner, attr=cst.Name("module")):
            return module.value(owner).kind is Kind.MODULE
        case cst.Name() | cst.Attribute() if value.kind is Kind.UNKNOWN:
            return _is_used_as_object(module, node)
    return False


def _makes_instance(module: Module, func: cst.BaseExpression) -> bool:
    name = last_name(func) or ""
    if name in NAMESPACES:
        return True
    dotted = module.qualified(func)
    if dotted in ("collections.defaultdict", "collections.deque", "builtins.range"):
        return True
    if dotted is not None and dotted.startswith(_OTHER_LIBRARIES):
        return not dotted.endswith((".tolist", ".isoformat", ".item"))
    # A class of another file, going by how it is written.
    is_class = name[:1].isupper() and not name.isupper() and any(letter.islower() for letter in name)
    return is_class and name not in _PLAIN_CLASSES and isinstance(func, (cst.Name, cst.Attribute))


def _is_used_as_object(module: Module, node: cst.Name | cst.Attribute) -> bool:
    """Return whether the file reads attributes of a variable that no tensor and no container has."""
    return any(
        isinstance(holder, cst.Attribute)
        and holder.value is read
        and holder.attr.value not in _PLAIN_ATTRIBUTES
        for read in _reads_alike(module, node)
        for holder in (module.tree.parent(read),)
    )


def _reads_alike(module: Module, node: cst.Name | cst.Attribute) -> Iterator[cst.BaseExpression]:
    """Yield the other reads of a variable, or of an attribute of ``self``."""
    if isinstance(node, cst.Name):
        for binding in module.bindings(node):
            yield from module.uses(binding)
    elif isinstance(node.value, cst.Name) and node.value.value == "self":
        owner = module.tree.enclosing(node, cst.ClassDef)
        if owner is not None:
            for read in module.tree.within(owner, _attributes(module).get(node.attr.value, [])):
                if isinstance(read.value, cst.Name) and read.value.value == "self":
                    yield read


@remembered
def _attributes(module: Module) -> dict[str, list[cst.Attribute]]:
    found: dict[str, list[cst.Attribute]] = {}
    for attribute in module.tree.nodes(cst.Attribute):
        found.setdefault(attribute.attr.value, []).append(attribute)
    return found


def _held(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what an expression stands for, or what a container has in it."""
    match node:
        case cst.Dict(elements=elements):
            yield from (element.value for element in elements)
        case cst.List(elements=items) | cst.Tuple(elements=items) | cst.Set(elements=items):
            yield from (item.value for item in items)
        case cst.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case cst.DictComp(value=value):
            yield value
        case cst.ListComp(elt=value):
            yield value
        case cst.NamedExpr(value=value):
            yield value
        case cst.Call(func=func, args=args):
            dotted = module.qualified(func)
            if dotted in _COPIES:
                yield from (arg.value for arg in args[:1])
            elif dotted in _CONTAINERS:
                yield from (arg.value for arg in args)
            else:
                yield from _returned(module, node)
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)):
            owner = module.tree.enclosing(node, cst.ClassDef)
            for assigned in module.names.attributes.get(name, ()):
                own = module.tree.enclosing(assigned.target, cst.ClassDef) is owner
                if own and assigned.value is not None and not assigned.path:
                    yield assigned.value


def _returned(module: Module, call: cst.Call) -> Iterator[cst.BaseExpression]:
    function = module.callee(call)
    if isinstance(function, cst.FunctionDef):
        for statement in module.tree.within(function, module.tree.nodes(cst.Return)):
            if statement.value is not None and module.function(statement) is function:
                yield statement.value


def _bound(module: Module, binding: Binding) -> Iterator[cst.BaseExpression]:
    """Yield what a variable is given, with what is put into it later;
    what a parameter is given by callers.
    """
    if binding.kind is BindingKind.PARAMETER:
        function = module.function(binding.node) or module.tree.enclosing(binding.node, cst.FunctionDef)
        if isinstance(function, cst.FunctionDef):
            for call in module.callers(function):
                given = module.argument(call, binding.name).node
                if given is not None:
                    yield given
    elif binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
        yield binding.value
    for use in module.uses(binding):
        match module.tree.parent(use):
            case cst.Subscript(value=container) as item if container is use:
                target = module.tree.parent(item)
                statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
                if isinstance(statement, cst.Assign):
                    yield statement.value
            case cst.Attribute(attr=cst.Name("update" | "append" | "setdefault")) as method:
                called = module.tree.parent(method)
                if isinstance(called, cst.Call) and called.func is method:
                    yield from (arg.value for arg in called.args)


# --- what was loaded ----------------------------------------------------------------------------------------


def loads_object(module: Module, load: cst.Call) -> bool:
    """Return whether the file uses what a call loads, or a part of it, as an object, such as a model."""
    seen: set[cst.CSTNode] = set()
    waiting: list[cst.BaseExpression] = [load]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for onward in _uses(module, node):
            if onward is None:
                return True
            waiting.append(onward)
    return False


def _uses(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression | None]:
    """Yield the expressions that are, or are part of, what ``node`` is;
    None for what is done with objects only.
    """
    tree = module.tree
    parent = tree.parent(node)
    match parent:
        case cst.Attribute(value=owner, attr=cst.Name(name)) if owner is node:
            if name not in _PLAIN_ATTRIBUTES:
                yield None
                return
            call = tree.parent(parent)
            if isinstance(call, cst.Call) and call.func is parent and name not in ("keys", "items"):
                yield call
        case cst.Call(func=func) if func is node:
            yield None
        case cst.Subscript(value=owner) if owner is node:
            if not isinstance(tree.parent(parent), (cst.AssignTarget, cst.Del)):
                yield parent
        case cst.Assign(value=value, targets=targets) if value is node:
            if isinstance(node, cst.Call) and any(_is_named_model(module, each.target) for each in targets):
                yield None
            for each in targets:
                yield from _reads_of(module, each.target)
        case cst.AnnAssign(value=value, target=target, annotation=annotation) if value is node:
            yield from (None,) if _is_class(module, annotation) else _reads_of(module, target)
        case cst.NamedExpr(value=value, target=target) if value is node:
            yield parent
            yield from _reads_of(module, target)
        case cst.IfExp(test=test) if test is not node:
            yield parent
        case cst.Return():
            function = tree.enclosing(parent, cst.FunctionDef)
            if function is not None:
                if function.returns is not None and _is_class(module, function.returns):
                    yield None
                yield from module.callers(function)
        case cst.Arg():
            call = tree.parent(parent)
            if isinstance(call, cst.Call):
                yield from _received(module, call, parent)


def _received(module: Module, call: cst.Call, arg: cst.Arg) -> Iterator[cst.BaseExpression | None]:
    if module.qualified(call.func) in _COPIES:
        yield call
        return
    if (module.class_of(call) or "").endswith(("DataParallel", "DistributedDataParallel")):
        yield None
    function = module.callee(call)
    if isinstance(function, cst.FunctionDef):
        for parameter in all_parameters(function.params):
            if module.argument(call, parameter.name.value).node is arg.value:
                binding = module.names.by_node.get(parameter)
                yield from module.uses(binding) if binding is not None else ()


def _reads_of(module: Module, target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    for part, _ in unpacked(target):
        if isinstance(part, cst.Name):
            binding = module.binding_of(part)
            yield from module.uses(binding) if binding is not None else ()
        elif isinstance(part, cst.Attribute):
            yield from (read for read in _reads_alike(module, part) if read is not part)


def _is_named_model(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether the name of what is loaded says that it is a model, and no use
    that it is a state dict.
    """
    return denotes(last_name(target), Role.MODEL) and not any(
        _is_use_of_state(module, read) for read in _reads_of(module, target)
    )


def _is_use_of_state(module: Module, read: cst.BaseExpression) -> bool:
    parent = module.tree.parent(read)
    match parent:
        case cst.Arg():
            call = module.tree.parent(parent)
            return isinstance(call, cst.Call) and last_name(call.func) == "load_state_dict"
        case cst.Attribute(value=owner, attr=cst.Name(name)):
            return owner is read and hasattr(dict, name)
        case cst.Subscript(value=owner):
            return owner is read
        case cst.ComparisonTarget():
            return isinstance(parent.operator, (cst.In, cst.NotIn))
    return False


def _is_class(module: Module, annotation: cst.Annotation) -> bool:
    """Return whether an annotation names a kind of object: a module, an optimizer."""
    return module.inference.annotations.promised(annotation.annotation).kind in _OBJECTS
