"""Running totals and lists of numbers: how they could hold tensors instead, and who would notice.

``total += loss.item()`` and ``losses.append(loss.item())`` wait for the device only to keep a number that
nobody looks at before the loop is over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import Edits, graded, replace
from torchlint.semantics.backpropagation import may_be_no_tensor
from torchlint.semantics.evidence import named_accelerators
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.sinks import Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.values import Kind

from ..dimensionless import formats_as_number, is_single_number
from ..needs import logs_tensors
from ..remedies import has_no_graph
from .effects import Effect, accumulator_start, tensor_at, tensor_instead_of_number
from .totals import NARROW, Content, Reads, content, read_with, reads, summed

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


_KEEPERS = frozenset({"append", "appendleft", "insert", "add", "put", "setdefault"})
_DISPLAYS = (cst.Tuple, cst.List, cst.Dict)
_DOUBLES = frozenset({"torch.float64", "torch.double"})
# What may put the program on a device that has no double precision, such as Apple's.
_PERHAPS_SINGLE = frozenset({"accelerator", "fabric", "hpu", "mps", "npu", "xpu"})
_PLACING = (
    *("accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "torch_directml", "torch_xla"),
)


def keep_on_device(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> Fix | None:
    """Return the fix that accumulates ``tensor`` instead of the number that ``call`` reads from it.

    None if ``call`` feeds no accumulator, or if a tensor there would raise or change later.
    """
    if not _plain_conversion(module, call) or not module.value(tensor).known:
        return None
    if module.value(tensor).dtype in NARROW:
        return None
    accumulator = _accumulator(module, call)
    if accumulator is None or _changed_in_place(module, tensor, accumulator):
        return None
    if isinstance(call.func, cst.Name) and may_be_no_tensor(module, tensor):
        # ``float()`` takes a number as well, which has no ``detach``.
        return None
    if not accumulator.many and _aliased(module, accumulator.written):
        return None
    single = is_single_number(module, tensor)
    if accumulator.many and not single:
        # A list may well hold tokens or indices, which are wanted as numbers.
        return None
    held = content(module, tensor)
    found: Reads | None
    if accumulator.many or not _is_local(module, accumulator):
        found = Reads(_effect(module, call, accumulator))
        if not formats_as_number(module, tensor):
            found = Reads(min(found.effect, Effect.NOTICED))
    else:
        assert isinstance(accumulator.written, cst.Name)
        total = summed(module, call, tensor, accumulator.written)
        found = reads(module, call, accumulator.written, total, formats_as_number(module, tensor))
        if found is not None:
            found = dataclasses.replace(found, effect=min(found.effect, _start(module, accumulator.written)))
        if held is Content.WHOLE:
            # A total of whole numbers would not take floating point in place.
            held = total
    if found is None or found.effect is Effect.BREAKS:
        return None
    width = _width(module, tensor) if held is Content.FLOATING else ""
    edits = _detached(module, call, tensor, width)
    message = "Accumulate the tensor, and read it after the loop"
    risk = None
    if found.effect is not Effect.NONE:
        risk = "code that reads the total later finds a tensor instead of a number"
    elif not single:
        risk = "fails later if the tensor has more than one element"
    elif held is not Content.FLOATING and (held is not Content.WHOLE or accumulator.many):
        risk = "whole numbers or booleans add up to another type as tensors than as Python numbers"
    elif width == ".double()" and not _has_double(module):
        risk = "not every device has float64, in which the total is summed"
    elif _on_many_devices(module):
        risk = "the tensors may be on several devices"
    return graded(module, message, edits, found.edits, risk=risk)


def is_logged(module: Module, call: cst.Call) -> bool:
    """Return whether Lightning's ``self.log`` or ``self.log_dict`` is given the number that a call reads.

    They take tensors as well, detach them, and read them when they are shown or written.
    """
    holder = module.tree.parent(call)
    if isinstance(holder, cst.DictElement) and holder.value is call:
        display = module.tree.parent(holder)
        holder = module.tree.parent(display) if isinstance(display, cst.Dict) else None
    log = module.tree.parent(holder) if isinstance(holder, cst.Arg) else None
    return isinstance(log, cst.Call) and logs_tensors(module, log)


def log_tensor(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> Fix | None:
    """Return the fix that hands Lightning the tensor instead of the number that ``call`` reads from it."""
    if not _plain_conversion(module, call) or not module.value(tensor).known or not is_logged(module, call):
        return None
    if isinstance(call.func, cst.Name) and may_be_no_tensor(module, tensor):
        return None
    whole = content(module, tensor) is not Content.FLOATING
    risk = "whole numbers are converted to float32, with a warning of Lightning" if whole else None
    return graded(module, "Log the tensor", replace(module, call, module.source(tensor)), risk=risk)


def _is_local(module: Module, accumulator: _Accumulator) -> bool:
    """Return whether a total is a variable of the function, or the module, that adds to it."""
    binding = module.binding_of(accumulator.written)
    return (
        isinstance(accumulator.target, cst.Name)
        and binding is not None
        and module.names.scope(accumulator.written) is binding.scope
    )


def _start(module: Module, written: cst.BaseExpression) -> Effect:
    binding = module.binding_of(written)
    return Effect.NOTICED if binding is None else accumulator_start(module, binding)


def _plain_conversion(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``x.item()`` and ``float(x)``: those that keep the value as it is."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return call.func.attr.value == "item"
    return module.qualified(call.func) == "builtins.float"


def _width(module: Module, tensor: cst.BaseExpression) -> str:
    """Return the cast with which a sum of ``tensor`` comes to what it came to in Python's numbers.

    To double precision, which those have. Where a device may not have that, to single precision, so that the
    sum goes on growing after some hundred terms, unless a file of the program uses double precision there.
    """
    dtype = module.value(tensor).dtype
    if dtype == "torch.float64":
        return ""
    if _has_double(module):
        return ".double()"
    if dtype == "torch.float32":
        return ""
    files = (module, *module.companions("float64", "double"))
    return ".double()" if any(map(_uses_double, files)) else ".float()"


@remembered
def _has_double(module: Module) -> bool:
    """Return whether the devices that the program runs on have double precision, which Apple's do not."""
    if not module.mentions("cuda") or imports(module, _PLACING):
        return False
    named = {device.partition(":")[0] for device in named_accelerators(module)} | identifiers(module)
    return named.isdisjoint(_PERHAPS_SINGLE)


@remembered
def _uses_double(module: Module) -> bool:
    """Return whether a tensor of the file is of double precision."""
    if "double" in module.tree.calls_by_name:
        return True
    return any(
        attribute.attr.value in ("float64", "double") and module.qualified(attribute) in _DOUBLES
        for attribute in module.tree.nodes(cst.Attribute)
    )


def _detached(module: Module, call: cst.Call, tensor: cst.BaseExpression, widening: str) -> Edits | None:
    """Return the edits that put the tensor without its graph, cast by ``widening``,
    where ``call`` made a number.
    """
    code, tight = module.tree.source(tensor), module.tree.takes_dot(tensor)
    end = module.tree.span(call).end
    if has_no_graph(module, tensor):
        return replace(module, call, f"{code}{widening}" if tight or not widening else f"({code}){widening}")
    match call.func:
        case cst.Attribute(attr=cst.Name(value="item") as method):
            # The name alone, so that the layout around it stays.
            renamed = replace(module, method, "detach")
            return renamed and (*renamed, *((Edit(Span(end, end), widening),) if widening else ()))
    return replace(module, call, f"{code}.detach(){widening}" if tight else f"({code}).detach(){widening}")


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """What a statement adds to: the expression that names it, whether it is a list, and what it rebinds."""

    target: cst.BaseExpression
    many: bool
    written: cst.BaseExpression


def _accumulator(module: Module, call: cst.Call) -> _Accumulator | None:
    """Return the accumulator that ``call`` feeds,
    directly or through arithmetic that a tensor bears as well.
    """
    tree = module.tree
    node: cst.CSTNode = call
    parent = tree.parent(node)
    while isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
        if isinstance(parent, cst.BinaryOperation):
            other = parent.right if parent.left is node else parent.left
            target = _assigned(module, parent)
            if target is not None and isinstance(other, cst.Name) and other.value == target.value:
                return _Accumulator(other, False, target)
            value = module.value(other)
            if value.kind not in (Kind.NUMBER, Kind.BOOL, Kind.UNKNOWN) and not value.tensorlike:
                return None
        elif isinstance(parent.operator, cst.Not):
            return None
        node, parent = parent, tree.parent(parent)
    match parent:
        case cst.AugAssign(operator=cst.AddAssign()) if parent.value is node:
            return _Accumulator(parent.target, False, parent.target)
        case cst.Arg():
            append = tree.parent(parent)
            match append:
                case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append")), args=[_]):
                    return _Accumulator(holder, True, holder)
        case cst.Element():
            display = tree.parent(parent)
            extended = tree.parent(display) if display is not None else None
            match display, extended:
                case cst.List(elements=[_]), cst.AugAssign(operator=cst.AddAssign(), target=holder):
                    return _Accumulator(holder, True, holder)
    return None


def _assigned(module: Module, node: cst.BinaryOperation) -> cst.Name | None:
    """Return the name that a sum is assigned to: ``total = total + x``."""
    match module.tree.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            return target if isinstance(node.operator, cst.Add) else None
    return None


def _effect(module: Module, call: cst.Call, accumulator: _Accumulator) -> Effect:
    target = accumulator.target
    if isinstance(target, cst.Subscript):
        if module.value(target.value).kind not in (Kind.DICT, Kind.LIST):
            return Effect.BREAKS
        return min(Effect.NOTICED, _in_place_of_items(module, call, target))
    value = module.value(target)
    if isinstance(target, cst.Attribute):
        fits = value.kind in ((Kind.LIST,) if accumulator.many else (Kind.NUMBER, Kind.TENSOR, Kind.UNKNOWN))
        if not fits:
            return Effect.BREAKS
        attributes = module.tree.attributes_by_name[target.attr.value]
        return min(Effect.NOTICED, _at(module, call, attributes, accumulator.many))
    if not isinstance(target, cst.Name):
        return Effect.BREAKS
    if accumulator.many:
        if value.kind is not Kind.LIST:
            return Effect.NOTICED if value.kind is Kind.UNKNOWN else Effect.BREAKS
        bindings = module.bindings(target)
        effects = [tensor_instead_of_number(module, binding, many=True) for binding in bindings]
        return min(effects, default=Effect.NOTICED)
    binding = module.binding_of(accumulator.written)
    if binding is None:
        return Effect.NOTICED
    if module.names.scope(accumulator.written) is not binding.scope:
        # ``global`` and ``nonlocal``: whoever reads the name there gets a tensor, at a time unknown.
        others = binding.scope.bindings.get(binding.name, [])
        effects = [tensor_instead_of_number(module, other, many=False) for other in others]
        return min([Effect.NOTICED, *effects])
    return min(accumulator_start(module, binding), tensor_instead_of_number(module, binding, many=False))


def _in_place_of_items(module: Module, call: cst.Call, item: cst.Subscript) -> Effect:
    """Return the effect of tensors as the items of a list or dictionary that ``item`` is one of."""
    holder = item.value
    if not isinstance(holder, cst.Name):
        return Effect.NOTICED
    worst = Effect.NONE
    for binding in module.bindings(holder):
        for use in module.uses(binding):
            part = module.tree.parent(use)
            if isinstance(part, cst.Subscript) and part.value is use:
                worst = min(worst, _at(module, call, (part,), many=False))
            else:
                worst = min(worst, _at(module, call, (use,), many=True))
    return worst


def _at(module: Module, call: cst.Call, places: Iterable[cst.BaseExpression], many: bool) -> Effect:
    """Return the effect of tensors where these expressions are read; that breaks also if it gains nothing."""
    worst = Effect.NONE
    for place in places:
        parent = module.tree.parent(place)
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign)) and parent.target is place:
            continue
        if isinstance(parent, cst.Attribute) and parent.attr.value in ("append", "clear"):
            continue
        if read_with(module, call, place):
            return Effect.BREAKS
        worst = min(worst, tensor_at(module, place, many=many))
    return worst


def _changed_in_place(module: Module, tensor: cst.BaseExpression, accumulator: _Accumulator) -> bool:
    """Return whether a list would hold a tensor whose memory the loop writes to again."""
    return accumulator.many and changed_later(module, tensor)


def holds_arrays(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether a running total is a number or an array of NumPy,
    to which no tensor of the device is added.
    """
    if module.value(target).kind is Kind.NDARRAY:
        return True
    if isinstance(target, cst.Subscript):
        return holds_arrays(module, target.value)
    binding = module.names.by_node.get(target) if isinstance(target, cst.Name) else None
    return binding is not None and accumulator_start(module, binding) is Effect.BREAKS


@remembered
def _on_many_devices(module: Module) -> bool:
    """Return whether the file computes on several devices, whatever a value shows of it."""
    parts = (device.partition(":") for device in named_accelerators(module))
    return len({index or "0" for kind, _, index in parts if kind == "cuda"}) > 1


def _aliased(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether something holds on to the value of a running total that is added to again in place.

    A number that is stored stays what it was; the tensor in its place would go on to grow.
    """
    text = module.tree.source(target)
    resets = _resets(module).get(text, [])
    function = module.function(target)
    held = _held(module, type(target)).get((text, function))
    sums = _sums(module).get((text, function), []) if held else ()
    return any(_grows_after(module, read, add, resets) for read in held or () for add in sums)


@remembered
def _held(
    module: Module, kind: type[cst.BaseExpression]
) -> dict[tuple[str, cst.CSTNode | None], list[cst.BaseExpression]]:
    """Return the expressions of one type whose object gets another name or place,
    by their text and function.
    """
    found: dict[tuple[str, cst.CSTNode | None], list[cst.BaseExpression]] = {}
    for node in module.tree.nodes(kind):
        if True in verdicts(module, node, _keeps):
            found.setdefault((module.tree.source(node), module.function(node)), []).append(node)
    return found


@remembered
def _sums(module: Module) -> dict[tuple[str, cst.CSTNode | None], list[cst.AugAssign]]:
    """Return the statements ``x += …`` by the text of what they add to, and their function."""
    found: dict[tuple[str, cst.CSTNode | None], list[cst.AugAssign]] = {}
    for add in module.tree.nodes(cst.AugAssign):
        found.setdefault((module.tree.source(add.target), module.function(add)), []).append(add)
    return found


@remembered
def _resets(module: Module) -> dict[str, list[cst.Assign]]:
    """Return the assignments by the text of what they assign to."""
    found: dict[str, list[cst.Assign]] = {}
    for statement in module.tree.nodes(cst.Assign):
        for text in {module.tree.source(each.target) for each in statement.targets}:
            found.setdefault(text, []).append(statement)
    return found


def _keeps(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use gives an object itself, no number computed from it,
    another name or a place somewhere.
    """
    match use.kind:
        case UseKind.ELEMENT:
            return Standing(use.by) if isinstance(use.by, _DISPLAYS) else False
        case UseKind.ARGUMENT:
            if module.qualified(use.call.func) in ("builtins.max", "builtins.min"):
                return Standing(use.call)
            return isinstance(use.call.func, cst.Attribute) and use.call.func.attr.value in _KEEPERS
    return use.kind in (UseKind.ASSIGNED, UseKind.UNPACKED, UseKind.STORED, UseKind.YIELDED)


def _grows_after(module: Module, read: cst.CSTNode, add: cst.AugAssign, resets: list[cst.Assign]) -> bool:
    """Return whether ``add`` may change the object that ``read`` gave, with no new one begun in between."""
    tree = module.tree
    order = tree.order
    start, end = order[read], order[add]
    direct = [a for a in resets if not tree.contains(a, read)]
    if start < end and not any(start < order[a] < end for a in direct):
        return True
    around = next((loop for loop in module.flow.loops(add) if tree.contains(loop, read)), None)
    if not isinstance(around, (cst.For, cst.While)):
        return False
    block = tree.parent(tree.statement(read))
    return not any(tree.parent(tree.statement(a)) in (around.body, block) for a in direct)
