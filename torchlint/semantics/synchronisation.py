"""Does evaluating this expression make the host wait for the device?

An accelerator works through a queue; the host runs ahead of it until it needs a value. The questions
here name the places where it needs one: a number read back (``conversion``), data copied to host memory
(``host_copy``), a shape that depends on data (``shape_wait``), and the tensors that Python turns into
text (``texts``) or asks for their truth (``truth_tests``). Each wait has one place: what is a number
already, or in host memory already, waits no more.

Which operations wait was measured on a GPU, call by call: benchmarks/results/syncs.json has what happened,
and tests/benchmarks/test_syncs.py holds the questions here to it. ``x[mask]`` and ``x[mask] = tensor`` wait,
``x[mask] = 0`` does not; ``repeat_interleave`` waits without ``output_size``; ``one_hot`` waits without
``num_classes``; ``max()``, ``any()`` and ``in`` over a tensor wait once an element, ``sum()`` does not; a
copy with ``non_blocking=True`` does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import QUEUES
from torchlint.semantics.api.results import (
    EXPLICIT_SYNCS,
    FUNCTION_SYNCS,
    HOST_TYPES,
    METHOD_SYNCS,
    READING_SCALARS,
    SIZED_BY_SCALARS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from torchlint.semantics.conventions import says_host
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.evidence import perhaps_accelerated, perhaps_on_device, perhaps_there
from torchlint.semantics.lexicon import Role, denotes, names_loss
from torchlint.semantics.names import Binding, BindingKind, dotted_text
from torchlint.semantics.origins import computed_elsewhere, hands_over_model, runs_given_model
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.serving import is_part_of_step
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import given_as, last_name, last_words, positional, start_of
from torchlint.semantics.transfers import TRANSFERS
from torchlint.semantics.values import Device, Kind, Value, item_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_CONVERTING_METHODS = frozenset({"item", "tolist"})
_CONVERTING_BUILTINS = frozenset({"float", "int", "bool", "complex"})
_CONVERTING_FUNCTIONS = frozenset(
    {"builtins.range", "numpy.float64", "operator.index", "random.sample", "struct.pack"}
    | {"torch.Size", "torch.manual_seed"}
)
# Links between a host copy and the conversion for whose sake it was made: ``x.detach().cpu().item()``.
_LINKS = frozenset(
    {"bfloat16", "contiguous", "cpu", "detach", "double", "flatten", "float", "half", "int", "long", "numpy"}
    | {"squeeze", "to", "type"}
)
_NUMPY_COPIES = frozenset(name for name, sync in FUNCTION_SYNCS.items() if name.startswith("numpy."))

CONVERSIONS = frozenset(
    {"get_scale", *_CONVERTING_METHODS, *_CONVERTING_BUILTINS, *dir(math), *last_words(_CONVERTING_FUNCTIONS)}
)
"""What the calls are named that may be a ``conversion``."""
HOST_COPIES = frozenset({"cpu", "to", "copy_", "numpy", "type", *last_words(_NUMPY_COPIES)})
"""What the calls are named that may be a ``host_copy``."""


def may_be_on_device(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a tensor that, as far as the file shows, can live on an accelerator.

    ``module.on_device`` takes structures of tensors for tensors as well, which is right for what only a
    tensor answers to (``x.item()``), and wrong for what anything does (``print(x)``, ``if x``).
    """
    if module.inference.parameters.is_plain(node) or not perhaps_there(module, node):
        return False
    return _waits(module.value(node))


def _waits(value: Value) -> bool:
    return value.kind is Kind.TENSOR and value.device is not Device.CPU


def _certainly_on_device(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the file itself puts this tensor on an accelerator."""
    value = module.value(node)
    return perhaps_accelerated(module) and value.tensorlike and value.device is Device.ACCELERATOR


def only_on_failure(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` belongs to the text of an error or to the message of an assertion."""
    statement = module.flow.statement(node)
    if isinstance(statement, cst.Assert) and statement.msg is not None:
        return module.tree.contains(statement.msg, node)
    return isinstance(statement, cst.Raise)


# --- numbers ----------------------------------------------------------------------------------------


def conversion(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the device tensor that ``call`` turns into Python numbers, if it does.

    ``x.item()``, ``x.tolist()``, ``float(x)`` and the like, ``math.exp(x)``, ``range(x)``, the scale of a
    ``GradScaler``; a host copy made on the way (``x.cpu().item()``) belongs to the conversion.
    """
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value == "get_scale" and not call.args:
        scaled = perhaps_accelerated(module) and module.value(func.value).kind is Kind.SCALER
        return func.value if scaled else None
    if isinstance(func, cst.Attribute) and func.attr.value in _CONVERTING_METHODS and not call.args:
        source = _device_source(module, func.value)
        read = _unlinked(func.value)
        if source is None and func.attr.value == "item":
            if computed_elsewhere(module, read) or _is_of_passed_dict(module, read):
                return read
        if source is None and perhaps_accelerated(module):
            return read if every(_read_of_step(module, read)) else None
        return source
    if not call.args or call.args[0].star or call.args[0].keyword is not None:
        return None
    qualified = module.qualified(func) or ""
    package, _, name = qualified.rpartition(".")
    if package == "math" or (package == "builtins" and name in _CONVERTING_BUILTINS):
        converted = call.args[0].value
        while name == "bool" and isinstance(converted, cst.BooleanOperation):
            converted = converted.right  # its left operand is asked by itself
        return _device_source(module, converted)
    if qualified in _CONVERTING_FUNCTIONS:
        bounds = [arg.value for arg in call.args if not arg.star]
        match bounds:
            case [cst.List() | cst.Tuple() as sizes] if qualified == "torch.Size":
                bounds = [element.value for element in sizes.elements]
        return next((bound for bound in bounds if may_be_on_device(module, bound)), None)
    return None


def _device_source(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``node`` itself if it is on the device, or the device tensor that it is a plain host copy of."""
    while not perhaps_on_device(module, node):
        copied = _linked(node)
        if copied is None:
            return None
        node = copied
    return node


def _unlinked(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what an expression is copied from, on the way to a conversion."""
    while (copied := _linked(node)) is not None:
        node = copied
    return node


def _linked(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor that a link of a chain hands on: ``x`` of ``x.data``, ``x.detach()``."""
    match node:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))) if name in _LINKS:
            return receiver
        case cst.Attribute(value=receiver, attr=cst.Name(value="data")):
            return receiver
    return None


def listed_by(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the device tensor that something of the host is indexed with, of which Python makes a number.

    A list, a tuple, a text; an array or a tensor in host memory takes one without dimensions so.
    """
    for element in node.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        # Few indices are tensors, and most of what is indexed is computed in vain.
        if index is None or index.__class__ in _LITERALS or not may_be_on_device(module, index):
            continue
        held = module.value(node.value)
        if held.kind in (Kind.LIST, Kind.TUPLE, Kind.STRING):
            return index if len(node.slice) == 1 else None
        on_host = held.kind is Kind.NDARRAY or (held.kind is Kind.TENSOR and held.device is Device.CPU)
        if (
            on_host
            and module.value(index).dtype != "torch.bool"
            and (has_no_dimension(module, index) or _is_element(module, index))
        ):
            return index
    return None


def _is_element(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether it is a part of a tensor that a number or a loop picks: ``labels[i]``, ``label.long()``.

    As an index of what is on the host, one that has dimensions would be refused.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("long" | "int" | "detach")), args=[]):
            return _is_element(module, inner)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            return module.value(place).kind is Kind.NUMBER
        case cst.Name():
            bindings = module.bindings(node)
            return bool(bindings) and all(_binds_element(module, binding) for binding in bindings)
    return False


def _binds_element(module: Module, binding: Binding) -> bool:
    """Return whether it is the variable of a loop over tensors, or what is picked has been given a name."""
    match binding:
        case Binding(value=None):
            return False
        case Binding(kind=BindingKind.LOOP | BindingKind.COMPREHENSION, value=cst.Call(args=args) as gone):
            walks = last_name(gone.func) in ("zip", "enumerate", "reversed", "tqdm")
            given = [arg.value for arg in args if arg.keyword is None] if walks else [gone]
            return all(module.value(each).kind is Kind.TENSOR for each in given)
        case Binding(kind=BindingKind.LOOP | BindingKind.COMPREHENSION, value=cst.BaseExpression() as gone):
            return module.value(gone).kind is Kind.TENSOR
        case Binding(value=cst.Subscript() | cst.Call() as picked, path=()):
            return _is_element(module, picked)
    return False


# --- copies -----------------------------------------------------------------------------------------


def host_copy(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the device tensor that ``call`` copies to host memory while the host waits, if it does.

    ``x.numpy()`` and ``np.asarray(x)`` fail for a tensor on the device, so that they say that ``x`` is on
    the host, unless the file says otherwise. A copy that a conversion to numbers consumes at once is
    part of the conversion.
    """
    tensor = _copied(module, call)
    if tensor is None or _consumed_by_conversion(module, call):
        return None
    return tensor


def refuses_device(module: Module, call: cst.Call) -> bool:
    """Return whether a host copy raises for tensors of the accelerator, as ``np.asarray(x)`` does."""
    if module.qualified(call.func) in _NUMPY_COPIES:
        return True
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "numpy" and not call.args


def _copied(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    func = call.func
    if not isinstance(func, cst.Attribute):
        return _given_to_numpy(module, call)
    tensor = func.value
    match func.attr.value:
        case "cpu":
            moved = not call.args or call.args[0].keyword is not None
            if moved and _becomes_array(module, call):
                # Whatever it is, it has a place and becomes an array: only a tensor does.
                value = module.value(tensor)
                if (
                    value.kind is Kind.UNKNOWN
                    and value.device is not Device.CPU
                    and perhaps_accelerated(module)
                ):
                    return None if _stays_behind(module, tensor) else tensor
            if (
                moved
                and perhaps_accelerated(module)
                and isinstance(tensor, cst.Call)
                and runs_given_model(module, tensor)
            ):
                return tensor
            if (
                moved
                and perhaps_accelerated(module)
                and (_given_by_model(module, tensor) or _is_held_by_step(module, tensor))
            ):
                return tensor
        case "to":
            moved = to_host(module, call) and not _follows_input(module, call, tensor)
        case "copy_":
            return _copied_in(module, call, tensor)
        case "numpy":
            forced = bool(call.args) and module.value(call.args[0].value).constant is True
            moved = forced or (not call.args and _certainly_on_device(module, tensor))
        case "type":
            moved = len(call.args) == 1 and _names_host_type(module, call.args[0].value)
        case _:
            return _given_to_numpy(module, call)
    return tensor if moved and perhaps_on_device(module, tensor) else None


def _stays_behind(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether other parts of a batch are moved: ``model(x.to(device))`` beside ``i.cpu()``."""
    loop, name = _batch_of(module, node), _root(node)
    if loop is None or name is None:
        return False
    moved = {
        root.value
        for call in module.tree.nodes_within(loop.body, cst.Call)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value in TRANSFERS
        and not to_host(module, call)
        and (root := _root(call.func.value)) is not None
        and _batch_of(module, root) is loop
    }
    return bool(moved) and name.value not in moved


def _root(node: cst.CSTNode) -> cst.Name | None:
    """Return the variable that an expression reads a part of."""
    start = start_of(node, cst.Attribute, cst.Subscript)
    return start if isinstance(start, cst.Name) else None


def _batch_of(module: Module, node: cst.BaseExpression) -> cst.For | None:
    """Return the loop whose variable an expression is a part of, through one assignment."""
    name = _root(node)
    for _ in range(2):
        bindings = module.bindings(name) if name is not None else []
        if len(bindings) != 1:
            return None
        (binding,) = bindings
        if binding.kind is BindingKind.LOOP:
            loop = module.flow.statement(binding.node)
            return loop if isinstance(loop, cst.For) else None
        made = binding.value if binding.kind is BindingKind.ASSIGN else None
        match made, binding.path:
            case cst.Tuple(elements=elements), (int(position),) if position < len(elements):
                made = elements[position].value
        name = _root(made) if made is not None else None
    return None


def _is_held_by_step(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether something unknown is worked on at a step of an engine, which moves no model there."""
    value = module.value(node)
    if value.kind is not Kind.UNKNOWN or value.device is Device.CPU or not isinstance(node, cst.Attribute):
        return False
    return is_part_of_step(module, node)


@traced(Through.NOTHING)
def _read_of_step(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source]:
    """Return whether something unknown is computed, off the host, from what a step works on."""
    if path or module.value(node).kind is not Kind.UNKNOWN or module.value(node).device is Device.CPU:
        return False
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name in TENSOR_METHODS:
            return onward(owner)
        case cst.Subscript(value=owner):
            return onward(owner)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal())]):
            return onward(left)
        case cst.Name(value=name):
            bindings = () if says_host(name) else module.bindings(node)
            read = [b.value for b in bindings if b.value is not None and not b.path]
            return len(read) == len(bindings) > 0 and onward(*read)
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(name)):
            return denotes(owner, Role.ENGINE_STEP) and not says_host(name)
    return False


def _is_of_passed_dict(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a forward pass is given something in a dict, by its name: ``cache["end"]``.

    What knows ``item()`` there is a tensor.
    """
    match node:
        case cst.Subscript(
            value=cst.Name() as owner,
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(evaluated_value=str(key))))],
        ):
            bindings = module.bindings(owner)
            given = bool(bindings) and all(binding.kind is BindingKind.PARAMETER for binding in bindings)
            unknown = given and not says_host(key) and not module.value(node).known
            return unknown and phase(module, node) is Phase.FORWARD
    return False


def _given_by_model(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a variable holds what a function of another file got from a model on the device."""
    bindings = module.bindings(node)
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    return isinstance(made, cst.Call) and hands_over_model(module, made)


def _becomes_array(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is ``x.cpu().numpy()``, ``x.cpu().detach().numpy()``."""
    return any(isinstance(link, cst.Call) and last_name(link) == "numpy" for link in _links(module, node))


def _links(module: Module, node: cst.CSTNode) -> Iterator[cst.Call | cst.Attribute]:
    """Yield the steps of a chain after a tensor, as far as they give it on: ``x.data``, ``x.data.cpu()``."""
    while True:
        link: cst.CSTNode | None = module.tree.method_call(node)
        if link is None:
            link = module.tree.parent(node)
            if not isinstance(link, cst.Attribute) or _linked(link) is None:
                return
        assert isinstance(link, (cst.Call, cst.Attribute))
        yield link
        if _linked(link) is None:
            return
        node = link


def _given_to_numpy(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    if module.qualified(call.func) not in _NUMPY_COPIES or not call.args:
        return None
    tensor = call.args[0].value
    return tensor if _certainly_on_device(module, tensor) else None


def to_host(module: Module, call: cst.Call) -> bool:
    """Return whether the arguments of ``.to(…)`` name the CPU, and the host waits for the copy."""
    named = False
    for position, arg in enumerate(call.args):
        if arg.star:
            return False
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword == "non_blocking" and module.value(arg.value).constant is not False:
            return False
        if keyword == "device" or (keyword is None and position == 0):
            # What an attribute `dtype` holds is no device, whatever it takes to find out which it is.
            named = last_name(arg.value) != "dtype" and names_host(module, arg.value)
    return named


def _follows_input(module: Module, call: cst.Call, moved: cst.BaseExpression) -> bool:
    """Return whether a part of a module goes to where a tensor is
    that it is given: ``self.scale.to(x.device)``.

    Whoever keeps one of both in host memory keeps the other there as well.
    """
    if not isinstance(moved, cst.Attribute) or module.value(moved.value).kind is not Kind.MODULE:
        return False
    return not any(isinstance(module.value(arg.value).constant, str) for arg in call.args)


def names_host(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression names the CPU as a device: ``"cpu"``, ``torch.device("cpu")``,
    a name for it.

    So does a tensor in host memory, given to ``to``.
    """
    value = module.value(node)
    if value.kind is Kind.TENSOR:
        return value.device is Device.CPU
    if isinstance(value.constant, str):
        return value.constant == "cpu" or value.constant.startswith("cpu:")
    return value.kind is Kind.DEVICE and value.device is Device.CPU


def _copied_in(module: Module, call: cst.Call, target: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the device tensor that ``host.copy_(x)`` copies, unless to memory that may be pinned."""
    source = given_as(call, "src", 0)
    if source is None or given_as(call, "non_blocking", 1) is not None:
        return None
    into = module.value(target)
    host = into.kind is Kind.TENSOR and into.device is Device.CPU
    return source if host and perhaps_on_device(module, source) else None


def _names_host_type(module: Module, node: cst.BaseExpression) -> bool:
    constant = module.value(node).constant
    name = constant if isinstance(constant, str) else module.qualified(node)
    moved = module.tree.mentions("set_default_tensor_type")  # ``torch.Tensor`` may be elsewhere then
    return name in HOST_TYPES and not (moved and name == "torch.Tensor")


def _consumed_by_conversion(module: Module, copy: cst.Call) -> bool:
    last: cst.Call | cst.Attribute = copy
    for last in _links(module, copy):
        if isinstance(last, cst.Call) and (
            last_name(last) in _CONVERTING_METHODS or conversion(module, last) is not None
        ):
            return True
    call = module.tree.call_given(last) if last is copy or _linked(last) is not None else None
    return call is not None and conversion(module, call) is not None


# --- shapes -----------------------------------------------------------------------------------------


def shape_wait(module: Module, node: cst.Call | cst.Subscript) -> bool:
    """Return whether only the device knows the size of a result: ``x.nonzero()``, ``x[mask]``."""
    if isinstance(node, cst.Subscript):
        return (
            mask_of(module, node) is not None
            or _sliced_by(module, node)
            or indexed_by_number(module, node) is not None
        )
    func = node.func
    qualified = module.qualified(func)
    operand: cst.BaseExpression
    if qualified in SIZED_BY_SCALARS:
        return any(may_be_on_device(module, size) for size in _sizes(node.args))
    if _reads_scalars(module, node, qualified):
        return True
    if qualified is not None:
        sync = FUNCTION_SYNCS.get(qualified)
        if qualified not in _SHAPE_FUNCTIONS or sync is None or not node.args or node.args[0].star:
            return False
        operand = node.args[0].value
        method = False
    elif isinstance(func, cst.Attribute):
        sync = METHOD_SYNCS.get(func.attr.value)
        if sync is None or sync.reason != "shape":
            return False
        operand = func.value
        method = True
    else:
        return False
    # What says the size is mostly a number, and told sooner than where the tensor comes from.
    if any(_passed(module, node, argument) for argument in sync.absent):
        read = given_as(node, *sync.absent[0]) if qualified in _READ_SIZES else None
        if read is None or not may_be_on_device(module, read):
            return False
    elif sync.tensor is not None and (method or len(node.args) > 1):  # not torch.repeat_interleave(repeats)
        counts = given_as(node, *sync.tensor)
        if counts is None or not may_be_on_device(module, counts):
            return False
    # Only a tensor can be given to these functions of torch, and only a tensor has ``masked_select``.
    takes_tensors = qualified is not None or func.attr.value == "masked_select"  # type: ignore[attr-defined]
    return perhaps_on_device(module, operand) or (takes_tensors and _computed_on_device(module, operand))


def _computed_on_device(module: Module, operand: cst.BaseExpression) -> bool:
    """Return whether a tensor that the file does not show as one is computed from what is on the device."""
    if isinstance(operand, cst.Comparison):
        sides = (operand.left, *(target.comparator for target in operand.comparisons))
        if module.value(operand).kind is Kind.UNKNOWN and any(
            perhaps_on_device(module, side) for side in sides
        ):
            return True
    return computed_elsewhere(module, operand)


def _sizes(arguments: Iterable[cst.Arg]) -> Iterator[cst.BaseExpression]:
    """Yield the sizes and bounds among arguments, those in one tuple included."""
    for arg in arguments:
        if arg.star or (arg.keyword is not None and arg.keyword.value not in _SIZE_KEYWORDS):
            continue
        if isinstance(arg.value, (cst.Tuple, cst.List)):
            yield from (element.value for element in arg.value.elements if isinstance(element, cst.Element))
        else:
            yield arg.value


def _reads_scalars(module: Module, call: cst.Call, qualified: str | None) -> bool:
    """Return whether a tensor is cut or repeated by a device scalar: ``x.narrow(0, start, 1)``."""
    package, _, name = (qualified or "").rpartition(".")
    if qualified is None and isinstance(call.func, cst.Attribute):
        # ``self.repeat(x)`` runs a layer, and few sizes are tensors: both tell most calls at once.
        owner = call.func.value
        if call.func.attr.value not in READING_SCALARS or module.classes.instance_class(owner) is not None:
            return False
        return any(may_be_on_device(module, size) for size in _sizes(call.args)) and perhaps_on_device(
            module, owner
        )
    if (package != "torch" or name not in READING_SCALARS) and qualified != "torch.nn.functional.pad":
        return False
    return any(may_be_on_device(module, size) for size in _sizes(call.args[1:]))


_SIZE_KEYWORDS = frozenset(
    {"size", "start", "end", "step", "n", "m", "low", "high"}
    | {"length", "k", "split_size", "split_size_or_sections", "chunks", "shifts", "pad"}
)


def _sliced_by(module: Module, node: cst.Subscript) -> bool:
    """Return whether a tensor is cut at a place that a device tensor says: ``x[:, : lengths.max()]``."""
    bounds = [
        bound
        for element in node.slice
        if isinstance(element.slice, cst.Slice)
        for bound in (element.slice.lower, element.slice.upper, element.slice.step)
        if bound is not None and bound.__class__ not in _LITERALS
    ]
    return any(
        may_be_on_device(module, bound)
        and not _is_open_part(module, bound.value if isinstance(bound, cst.Subscript) else bound)
        for bound in bounds
    )


def indexed_by_number(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the device tensor without dimensions that an item of a tensor is taken by, if there is one.

    Where a tensor with dimensions is an index, the device looks up; a number is read by the host.
    """
    for element in node.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        # The index has been looked at already, to find masks: what it is taken from is asked for last.
        if index is None or index.__class__ in _LITERALS or not may_be_on_device(module, index):
            continue
        if module.value(index).dtype != "torch.bool" and has_no_dimension(module, index):
            return index if module.value(node.value).tensorlike else None
    return None


# What these functions are given in place of a size that they would look for themselves, they read.
_READ_SIZES = frozenset({"torch.nn.functional.one_hot"})
# ``one_hot`` reads the largest label to know how wide its result is.
_SHAPE_FUNCTIONS = frozenset(
    {name for name, sync in FUNCTION_SYNCS.items() if sync.reason == "shape" and name.startswith("torch.")}
    - {"torch.isin"}
    | {"torch.nn.functional.one_hot"}
)


SHAPE_WAITS = frozenset(
    {"pad", *READING_SCALARS, *last_words(SIZED_BY_SCALARS), *last_words(_SHAPE_FUNCTIONS)}
    | {name for name, sync in METHOD_SYNCS.items() if sync.reason == "shape"}
)
"""What the calls are named that may be a ``shape_wait``."""


def _passed(module: Module, call: cst.Call, argument: tuple[str, int | None]) -> bool:
    """Return whether an argument is, or may be, given something that spares the wait."""
    if any(arg.star for arg in call.args):
        return True
    found = given_as(call, *argument)
    if found is None:
        return False
    # ``one_hot`` takes -1 classes for as many as there are.
    nothing = (None, -1) if argument[0] == "num_classes" else (None,)
    return module.value(found).constant not in nothing


def mask_of(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the boolean device tensor that ``node`` selects by, if there is one."""
    indices = (element.slice.value for element in node.slice if isinstance(element.slice, cst.Index))
    for index in indices:
        # What is written out as a number or a text is by far the most frequent index.
        if isinstance(index, _LITERALS):
            continue
        if not perhaps_on_device(module, index):
            if module.inference.clues.is_negated(index) and perhaps_on_device(module, node.value):
                return index  # made in another file; a mask of the host is copied, which waits as well
            continue
        if module.value(index).dtype in ("torch.bool", "bool"):
            indexed = module.value(node.value)
            known = indexed.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
            return index if known and indexed.device is not Device.CPU else None
    return None


_LITERALS = (cst.Integer, cst.SimpleString, cst.Ellipsis)


# --- truth ------------------------------------------------------------------------------------------


def truth_tests(module: Module, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the device tensors whose truth Python needs to evaluate ``node`` itself, not what lies in it.

    ``node`` is a statement or expression that decides: ``if``, ``while``, ``assert``, the condition of a
    ternary or a comprehension, ``not``, ``and``, ``or``, a chain of comparisons, ``in``.
    """
    asked: cst.BaseExpression
    match node:
        case cst.If() | cst.While() | cst.Assert() | cst.IfExp() | cst.CompIf():
            asked = node.test
        case cst.UnaryOperation(operator=cst.Not()):
            asked = node.expression
        case cst.BooleanOperation():
            asked = node.left  # the right operand is the result, and not asked here
        case cst.Comparison():
            yield from _comparison_tests(module, node)
            return
        case _:
            return
    yield from _asked(module, asked)


def asks_device(module: Module, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the device tensors that a condition depends on, also under ``not``, ``and`` and ``or``."""
    yield from _asked(module, test)
    for part in module.tree.descendants(test):
        if isinstance(part, (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison)):
            yield from truth_tests(module, part)


def _asked(module: Module, asked: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    while isinstance(asked, cst.BooleanOperation):
        asked = asked.right  # its left operand is asked by itself
    if isinstance(asked, cst.Comparison) and any(c.comparator.__class__ in _TEXTS for c in asked.comparisons):
        return  # what is compared with a text is no tensor, whatever it would take to find that out
    if not may_be_on_device(module, asked):
        return
    if not isinstance(asked, cst.Comparison) or not any(_comparison_tests(module, asked)):
        yield asked


def _comparison_tests(module: Module, node: cst.Comparison) -> Iterator[cst.BaseExpression]:
    left = node.left
    for position, target in enumerate(node.comparisons):
        right = target.comparator
        if isinstance(target.operator, (cst.In, cst.NotIn)):
            # What is looked for mostly takes longer to compute than what it is looked for in.
            if may_be_on_device(module, right) or _holds_device_tensors(module, right):
                if module.value(left).kind is Kind.STRING:
                    return
                yield right
        elif position + 1 < len(node.comparisons) and not isinstance(target.operator, (cst.Is, cst.IsNot)):
            tensor = next((side for side in (left, right) if may_be_on_device(module, side)), None)
            if tensor is not None:
                yield tensor
        left = right


_TEXTS: frozenset[type] = frozenset({cst.SimpleString, cst.ConcatenatedString, cst.FormattedString})
_ASKING_FUNCTIONS = frozenset(
    {"torch.equal", "torch.allclose", "torch.is_nonzero", "torch._assert", "torch.testing.assert_close"}
)
# Of these the first two parameters are tensors, whatever else shows it.
_OF_TENSORS = frozenset({"torch.equal", "torch.allclose"})
_ASKING_METHODS = frozenset({"equal", "allclose", "is_nonzero"})
_ASKING_BUILTINS = frozenset(f"builtins.{name}" for name in ("all", "any", "max", "min", "sorted", "sum"))
_EXTREMES = frozenset({"builtins.max", "builtins.min"})
# Functions and methods of lists that compare the items, or ask for their truth, one by one.
_COMPARING_METHODS = frozenset({"count", "index", "remove", "sort"})
_COMPARING_FUNCTIONS = frozenset(
    {"builtins.filter", "functools.reduce"}
    | {f"bisect.{name}{side}" for name in ("bisect", "insort") for side in ("", "_left", "_right")}
)


def asking_function(module: Module, call: cst.Call) -> str | None:
    """Return the name of a function that asks for the truth of device tensors: ``any(t)``, ``max(a, b)``.

    Builtins go by their full names, ``builtins.any``, and methods of lists by ``list.index``.
    """
    if isinstance(call.func, cst.Attribute):
        name, owner = call.func.attr.value, call.func.value
        if name in _ASKING_METHODS and may_be_on_device(module, owner):
            return f"torch.{name}"
        if name in _COMPARING_METHODS and module.value(owner).kind is Kind.LIST:
            return f"list.{name}" if _compared_by(module, call, owner) else None
    if not call.args or any(arg.star for arg in call.args):
        return None
    first = call.args[0].value
    qualified = module.qualified(call.func) or ""
    if qualified == "torch.equal" and _is_same(*(arg.value for arg in call.args[:2])):
        return None  # which the host sees without a look at the elements
    if qualified in _ASKING_FUNCTIONS:
        asked = may_be_on_device(module, first) or (
            qualified in _OF_TENSORS and all(_is_open(module, arg.value) for arg in call.args[:2])
        )
        return qualified if asked else None
    if qualified in _COMPARING_FUNCTIONS:
        return qualified if _passes_on(module, call, qualified) else None
    if qualified not in _ASKING_BUILTINS:
        return None
    operands = positional(call)
    if len(operands) > 1:
        compared = qualified in _EXTREMES and any(may_be_on_device(module, value) for value in operands)
        return qualified if compared else None
    if may_be_on_device(module, first):
        return None if _may_be_list(module, first) else qualified
    return qualified if qualified != "builtins.sum" and _compared_by(module, call, first) else None


def _is_open(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether nothing shows where a tensor is, which is known to be one only by what takes it."""
    value = module.value(node)
    return value.kind is Kind.UNKNOWN and value.device is Device.UNKNOWN and perhaps_there(module, node)


def _may_be_list(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether what is given to ``sum()`` or ``any()`` may be a list after all.

    A model of another file gives lengths beside its scores, and a criterion a list of losses: a loss that is
    one tensor has nothing to go through.
    """
    if isinstance(node, cst.Subscript):
        return _may_be_list(module, node.value)
    return _is_open_part(module, node) or has_no_dimension(module, node) is not False


def _is_item_of_list(module: Module, name: cst.Name) -> bool:
    """Return whether a loop takes what a name stands for out of something else than a tensor."""
    return any(
        binding.kind is BindingKind.LOOP
        and binding.value is not None
        and not module.value(binding.value).tensorlike
        for binding in module.bindings(name)
    )


def _is_open_part(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a name stands for one of several results of a model,
    and nothing shows it to be a tensor.

    Nor does what a loop calls a loss: it may go through lists of them.
    """
    if not isinstance(node, cst.Name):
        return False
    if not module.value(node).part and not (names_loss(node.value) and _is_item_of_list(module, node)):
        return False
    clues = module.inference.clues
    used = clues.used_attributes(node) - _COMPARING_METHODS
    if any(attr in TENSOR_METHODS or attr in TENSOR_ATTRIBUTES for attr in used):
        return False
    return not any(clues.taken_as_tensor(binding) for binding in module.bindings(node))


def _is_same(*nodes: cst.BaseExpression) -> bool:
    """Return whether several expressions are one and the same variable or attribute."""
    spelt = {dotted_text(node) for node in nodes}
    return len(nodes) > 1 and len(spelt) == 1 and None not in spelt


def _compared_by(module: Module, call: cst.Call, items: cst.BaseExpression) -> bool:
    """Return whether the items that are compared are device tensors, or what ``key`` makes of such."""
    key = given_as(call, "key", None)
    if key is None or module.value(key).kind is Kind.NONE:
        return _holds_device_tensors(module, items)
    if isinstance(key, cst.Lambda):
        return may_be_on_device(module, key.body)
    converts = (module.qualified(key) or "").rpartition(".")[2] in _CONVERTING_BUILTINS
    return converts and _holds_device_tensors(module, items)


def _passes_on(module: Module, call: cst.Call, qualified: str) -> bool:
    """Return whether ``filter``, ``reduce`` or ``bisect`` asks for the truth of device tensors by itself."""
    first, *others = (arg.value for arg in call.args if arg.keyword is None)
    if not others:
        return False
    if qualified.startswith("bisect."):
        return may_be_on_device(module, others[0]) or _holds_device_tensors(module, first)
    asking = module.value(first).kind is Kind.NONE or (module.qualified(first) or "") in _EXTREMES
    items = others[0]
    return asking and (may_be_on_device(module, items) or _holds_device_tensors(module, items))


def _holds_device_tensors(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return may_be_on_device(module, node.elt)
    value = module.value(node)
    item = item_of(value)
    if item is None or value.kind not in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR):
        return False
    return perhaps_accelerated(module) and _waits(item)


# --- text -------------------------------------------------------------------------------------------

_LOG_METHODS = frozenset(
    {"info", "warning", "warn", "error", "critical", "exception", "log", "success", "notice"}
)
_LOG_PACKAGES = ("logging.", "loguru.", "absl.logging.", "structlog.")
_CHART_METHODS = frozenset(
    {"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_video", "add_audio"}
    | {"add_figure", "add_embedding", "log_metric", "log_metrics", "report_scalar"}
)
_CHART_FUNCTIONS = frozenset(
    {"wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "swanlab.log", "trackio.log"}
)
_RUNS = frozenset({"wandb.init", "swanlab.init", "trackio.init"})
_WRITING_BUILTINS = frozenset(f"builtins.{name}" for name in ("print", "str", "repr", "format"))

WRITERS = frozenset(
    {"format", "set_postfix", "log", "print", *_LOG_METHODS, *_CHART_METHODS}
    | {*last_words(_CHART_FUNCTIONS), *last_words(_WRITING_BUILTINS)}
)
"""What the calls are named that may have ``written_arguments``."""


def written_out(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the device tensor that ``node`` turns into text or into a point of a chart, if it does.

    ``print`` and ``logging``, f-strings, ``%`` and ``format``, ``str()``, a progress bar's postfix, the
    writers of TensorBoard, wandb and MLflow: each reads the value back when it is called. Lightning's
    ``self.log`` keeps the tensor, and ``logger.debug`` formats nothing while that level is off.
    """
    match node:
        case cst.Call():
            candidates = list(written_arguments(module, node))
        case cst.FormattedString() if _for_failure_only(module, node) or _names_record(module, node):
            return None
        case cst.FormattedString():
            candidates = [
                part.expression for part in node.parts if isinstance(part, cst.FormattedStringExpression)
            ]
        case cst.BinaryOperation(operator=cst.Modulo(), right=right):
            candidates = (
                [e.value for e in right.elements]
                if isinstance(right, cst.Tuple)
                else list(_within(module, [right]))
            )
        case _:
            return None
    tensor = next((c for c in candidates if _is_written(module, c)), None)
    if tensor is not None and isinstance(node, cst.BinaryOperation) and not is_text(module, node.left):
        return None  # the remainder of a division
    return tensor


def _is_written(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a device tensor, or a container of tensors that the file puts there."""
    if may_be_on_device(module, node):
        return True
    value = module.value(node)
    held = item_of(value) if value.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT) else None
    return (
        perhaps_accelerated(module)
        and held is not None
        and _waits(held)
        and held.device is Device.ACCELERATOR
    )


def _names_record(module: Module, text: cst.FormattedString) -> bool:
    """Return whether a text is what a value is recorded under: ``log(f"{source}/loss", loss)``."""
    around = module.tree.parent(text)
    call = module.tree.parent(around) if isinstance(around, cst.Arg) else None
    if not isinstance(around, cst.Arg) or not isinstance(call, cst.Call):
        return False
    if around.keyword is not None:
        return around.keyword.value in _RECORD_NAMES
    name = last_name(call.func) or ""
    return around is call.args[0] and len(call.args) > 1 and (name == "log" or name in _CHART_METHODS)


_RECORD_NAMES = frozenset({"key", "name", "tag"})


def _for_failure_only(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether only an exception is told with it: ``"fine" if ok else f"got {x}"``."""
    choice = module.tree.parent(node)
    if not isinstance(choice, cst.IfExp):
        return False
    other = choice.orelse if choice.body is node else choice.body
    return isinstance(other, cst.SimpleString)


def is_text(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a string."""
    return module.value(node).kind is Kind.STRING


def written_arguments(module: Module, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield the expressions that a call turns into text or numbers for people to read."""
    arguments = [arg.value for arg in call.args if not arg.star]
    qualified = module.qualified(call.func) or ""
    if qualified in _WRITING_BUILTINS:
        yield from arguments
    elif qualified in _CHART_FUNCTIONS:
        yield from _within(module, arguments)
    elif isinstance(call.func, cst.Attribute):
        name, owner = call.func.attr.value, call.func.value
        if module.callees(call):
            return  # What a method of the program does with them, its body says.
        if (name == "format" and is_text(module, owner)) or (
            name in _LOG_METHODS and is_logger(module, owner)
        ):
            yield from arguments
        elif (
            name == "set_postfix"
            or (name in _CHART_METHODS and not _is_used(module, call))
            or (name in ("log", "print") and _is_run(module, owner))
        ):
            yield from _within(module, arguments)


def _is_used(module: Module, call: cst.Call) -> bool:
    """Return whether what a call gives is kept: a writer gives nothing, a layer of its name does."""
    return isinstance(module.tree.parent(call), (cst.Assign, cst.AugAssign, cst.Arg, cst.Return))


def _within(module: Module, expressions: list[cst.BaseExpression]) -> Iterator[cst.BaseExpression]:
    """Yield the expressions themselves, and the values of dictionaries among them, named ones included."""
    for expression in expressions:
        yield expression
        for display in _displays(module, expression):
            if isinstance(display, cst.Call):
                yield from (argument.value for argument in display.args if argument.keyword is not None)
                continue
            for element in display.elements:
                if isinstance(element, cst.DictElement):
                    yield element.value


def _displays(module: Module, node: cst.BaseExpression) -> Iterator[cst.Dict | cst.Call]:
    """Yield the ``{…}`` and ``dict(…)`` that an expression is, or that a variable stands for."""
    if isinstance(node, cst.Name):
        for binding in module.bindings(node):
            if not binding.path and not isinstance(binding.value, cst.Name) and binding.value is not None:
                yield from _displays(module, binding.value)
    elif isinstance(node, cst.Dict) or (
        isinstance(node, cst.Call) and module.qualified(node.func) == "builtins.dict"
    ):
        yield node


def is_logger(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether it is ``logging``, ``logging.getLogger(…)``, or has the name of a logger."""
    while True:
        qualified = module.qualified(node)
        if qualified is not None and f"{qualified}.".startswith(_LOG_PACKAGES):
            return True
        match node:
            case cst.Call():
                node = node.func
            case cst.Attribute():
                return node.attr.value.lower().strip("_") in _LOGGER_NAMES
            case cst.Name():
                if node.value.lower().strip("_") in _LOGGER_NAMES:
                    return True
                makers = [binding.value for binding in module.bindings(node) if not binding.path]
                return bool(makers) and all(
                    isinstance(maker, cst.Call) and module.qualified(maker.func) in _LOGGER_MAKERS
                    for maker in makers
                )
            case _:
                return False


_LOGGER_NAMES = frozenset({"logger", "log", "logging"})
_LOGGER_MAKERS = frozenset({"logging.getLogger", "structlog.get_logger"})


def _is_run(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a run of ``wandb.init(…)``, or an ``Accelerator`` that logs."""
    if module.value(node).kind is Kind.ACCELERATOR:
        return True
    if isinstance(node, cst.Call):
        return module.qualified(node.func) in _RUNS
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        return bool(bindings) and all(
            isinstance(b.value, cst.Call) and module.qualified(b.value.func) in _RUNS for b in bindings
        )
    return module.qualified(node) in ("wandb.run",)


# --- waits for their own sake -----------------------------------------------------------------------

_QUEUE_GIVERS = frozenset(
    f"torch.{package}.{name}"
    for package in ("cuda", "xpu", "accelerator")
    for name in ("current_stream", "default_stream")
)


def explicit_wait(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``torch.cuda.synchronize()``, or that of a stream or an event."""
    qualified = module.qualified(call.func)
    if qualified is not None:
        return qualified in EXPLICIT_SYNCS and qualified != "torch.cpu.synchronize"
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "synchronize":
        return False
    return _is_queue(module, call.func.value)


def _is_queue(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        maker = module.qualified(node.func) or ""
        return maker in _QUEUE_GIVERS or maker in QUEUES
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        return bool(bindings) and all(
            isinstance(b.value, cst.Call) and not b.path and _is_queue(module, b.value) for b in bindings
        )
    return module.value(node).cls in QUEUES
