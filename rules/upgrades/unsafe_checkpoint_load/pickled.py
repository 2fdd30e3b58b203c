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
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.sources import Source, Through, onward, put_into, some, steps, traced
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path

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
_PARALLEL = ("DataParallel", "DistributedDataParallel")
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
    return any(some(_holds_instance(module, saved)) for saved in given if saved is not None)


@traced(Through.RETURNS | Through.PARAMETERS)
def _holds_instance(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether something is an object that only a pickle of any class can hold, or holds one."""
    if path or not isinstance(node, cst.BaseExpression):
        return None
    if _is_instance(module, node):
        return True
    match node:
        case cst.Dict(elements=elements) | cst.List(elements=elements):
            return onward(*(element.value for element in elements))
        case cst.Tuple(elements=elements) | cst.Set(elements=elements):
            return onward(*(element.value for element in elements))
        case cst.DictComp(value=value) | cst.ListComp(elt=value):
            return onward(value)
        case cst.Call() if module.qualified(node.func) in _COPIES | _CONTAINERS:
            return onward(*(arg.value for arg in node.args))
        case cst.Name():
            uses = (use for binding in module.bindings(node) for use in module.uses(binding))
            later = [source for use in uses for source in put_into(module, use)]
            return [*(steps(module, Source(node)) or ()), *later]
    return None


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
            for read in module.tree.within(owner, module.tree.attributes_by_name.get(node.attr.value, ())):
                if isinstance(read.value, cst.Name) and read.value.value == "self":
                    yield read


# --- what was loaded ----------------------------------------------------------------------------------------


def loads_object(module: Module, load: cst.Call) -> bool:
    """Return whether the file uses what a call loads, or a part of it, as an object, such as a model."""
    return any(sinks(module, load, _as_object))


def _as_object(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use is one that only objects have."""
    match use.kind:
        case UseKind.ATTRIBUTE:
            return () if use.name in _PLAIN_ATTRIBUTES else True
        case UseKind.METHOD if use.name in _PLAIN_ATTRIBUTES:
            return () if use.name in ("keys", "items") else ONWARD
        case UseKind.METHOD | UseKind.CALLED:
            return True
        case UseKind.ASSIGNED | UseKind.STORED:
            target, statement = use.by, module.tree.parent(use.by)
            if isinstance(statement, cst.AnnAssign) and _is_class(module, statement.annotation):
                return True
            if isinstance(use.node, cst.Call) and isinstance(target, (cst.Name, cst.Attribute)):
                return True if _is_named_model(module, target) else ONWARD
            return ONWARD
        case UseKind.RETURNED:
            function = module.function(use.by)
            returned = function.returns if isinstance(function, cst.FunctionDef) else None
            return True if returned is not None and _is_class(module, returned) else ONWARD
        case UseKind.ARGUMENT if (module.class_of(use.call) or "").endswith(_PARALLEL):
            return True
        case UseKind.ARGUMENT if module.qualified(use.call.func) in _COPIES:
            return Standing(use.call)
        case UseKind.ARGUMENT if module.callee(use.call) is not None:
            return ONWARD
        case UseKind.UNPACKED | UseKind.ITEM:
            return ONWARD
    return ()


def _is_named_model(module: Module, target: cst.Name | cst.Attribute) -> bool:
    """Return whether the name of what is loaded says that it is a model, and no use
    that it is a state dict.
    """
    binding = module.binding_of(target)
    reads = module.uses(binding) if binding is not None else _reads_alike(module, target)
    return denotes(last_name(target), Role.MODEL) and not any(
        _is_use_of_state(module, read) for read in reads if read is not target
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
