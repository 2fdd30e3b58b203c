"""What is sent to the device at every step, and from where: what the rules about such copies share.

A copy from pageable memory makes the host wait until everything that was queued before it is done; with
``non_blocking=True`` it goes on if the copy is small (benchmarks/results/syncs.json).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rules.host_device.factories import factory, takes_no_data
from torchlint.rules.host_device.repeated_transfer.invariance import needless_move
from torchlint.rules.host_device.roundtrips import copied_back_from
from torchlint.semantics.compilation import compiled
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.identifiers import imports
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.spellings import given_as
from torchlint.semantics.synchronisation import (
    after_a_decision,
    after_a_guard,
    may_be_on_device,
    waiting_place,
)
from torchlint.semantics.transfers import transferred
from torchlint.semantics.values import Device, Kind, Memory

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_STAGED = 64 * 1024
"""Up to how many bytes the driver takes over from pageable memory without a wait."""
_LARGEST_ITEM = 8
_PICTURES = ("PIL", "torchvision.transforms")


def place_of_sending(module: Module, node: cst.BaseExpression) -> Hot | None:
    """The hot place each of whose rounds sends what ``node`` copies to the device, unless that is rare."""
    hot = waiting_place(module, node)
    if hot is None or compiled(module, node) or phase(module, node) is Phase.DATASET:
        return None
    if after_a_decision(module, node) or after_a_guard(module, node):
        return None
    return None if _stands_in(module, node) else hot


def goes_on(module: Module, copy: cst.Call) -> bool:
    """Whether a call of ``to``, ``cuda`` or ``copy_`` is, or may be, given ``non_blocking=True``."""
    named = {arg.keyword.value: arg.value for arg in copy.args if arg.keyword is not None}
    given = named.get("non_blocking")
    if given is not None:
        return module.value(given).constant is not False
    positional = (arg.value for arg in copy.args if arg.keyword is None)
    return any(arg.star for arg in copy.args) or any(module.value(a).kind is Kind.BOOL for a in positional)


def sent_from_host(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    """The tensor in host memory that a call of ``to``, ``cuda`` or ``copy_`` copies to an accelerator.

    What a loader yields is none: whether that is pinned, and moved without a wait, is told of the loader.
    Neither is what a kernel could make on the device, or what was there just before or stays the same.
    """
    source = _copied_in(module, copy) or _moved(module, copy)
    if source is None or not accelerated(module) or not _in_host_memory(module, source):
        return None
    if made_by_kernel(module, source) or copied_back_from(module, copy) is not None:
        return None
    return None if needless_move(module, copy) is not None else source


def _copied_in(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    """``source`` in ``target.copy_(source)``, where the target is on the accelerator."""
    if not isinstance(copy.func, cst.Attribute) or copy.func.attr.value != "copy_":
        return None
    target = module.value(copy.func.value)
    there = target.kind is Kind.TENSOR and target.device is Device.ACCELERATOR
    return given_as(copy, "src", 0) if there else None


def _moved(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    func = copy.func
    # Where a tensor is, is mostly known, and asked before where it goes.
    if not isinstance(func, cst.Attribute) or func.attr.value not in ("to", "cuda"):
        return None
    return transferred(module, copy) if _in_host_memory(module, func.value) else None


def _in_host_memory(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    if value.kind is not Kind.TENSOR or value.device is not Device.CPU or value.part:
        return False
    made = module.qualified(value.origin.func) if isinstance(value.origin, cst.Call) else None
    return value.memory is not Memory.UNKNOWN or made == "torch.from_numpy"


def exceeds_staging(module: Module, source: cst.BaseExpression) -> bool | None:
    """Whether a tensor in pageable memory is larger than what the driver takes over without a wait.

    None where the program does not show the size.
    """
    size = _most_bytes(module, source)
    return None if size is None else size > _STAGED


def _most_bytes(module: Module, source: cst.BaseExpression) -> int | None:
    """At most how many bytes a tensor takes up that is made of so many numbers; None if that is open."""
    made = module.value(source).origin
    if not isinstance(made, cst.Call):
        return None
    name = (module.qualified(made.func) or "").removeprefix("torch.")
    if name in ("tensor", "as_tensor", "asarray"):
        data = module.value(made.args[0].value) if made.args else None
        if data is None or data.kind in (Kind.NUMBER, Kind.BOOL):
            return _LARGEST_ITEM if data is not None else None
        flat = data.elements is not None and all(one.kind is Kind.NUMBER for one in data.elements)
        return len(data.elements or ()) * _LARGEST_ITEM if flat else None
    if name not in ("zeros", "ones", "empty", "rand", "randn", "full", "arange"):
        return None
    sizes = [module.value(arg.value) for arg in made.args if arg.keyword is None][
        : 1 if name == "full" else None
    ]
    if len(sizes) == 1 and sizes[0].elements is not None:
        sizes = list(sizes[0].elements)
    counts = [size.constant for size in sizes]
    numbers = [count for count in counts if isinstance(count, int)]
    whole = len(numbers) == len(counts) > 0 and given_as(made, "size", None) is None
    return math.prod(numbers) * _LARGEST_ITEM if whole and (name != "arange" or len(counts) == 1) else None


def made_by_kernel(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a tensor is used for nothing but the move, and a kernel could make it on the device."""
    made: cst.BaseExpression | None = node
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        single = len(bindings) == 1 and not bindings[0].path and module.uses(bindings[0]) == [node]
        made = bindings[0].value if single else None
    found = factory(module, made) if made is not None else None
    return found is not None and takes_no_data(module, found)


def on_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    """Whether an expression is a tensor that, as far as the file shows, is on an accelerator.

    Data is indexed in host memory and moved then: outside of modules the file has to show where a tensor is,
    and so it does beside transforms of pictures, which are modules as well.
    """
    if not may_be_on_device(module, node) or _moved_then(module, node):
        return False
    if module.value(node).device is Device.ACCELERATOR:
        return True
    return phase(module, node) is Phase.FORWARD and not imports(module, _PICTURES)


def _moved_then(module: Module, node: cst.BaseExpression) -> bool:
    """``data[rows].to(device)``: what is moved afterwards, was in host memory."""
    taken = module.tree.parent(node)
    while isinstance(taken, cst.Subscript):
        attribute = module.tree.parent(taken)
        call = module.tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        if isinstance(call, cst.Call) and call.func is attribute:
            return transferred(module, call) is not None
        taken = attribute
    return False


def _stands_in(module: Module, node: cst.CSTNode) -> bool:
    """Whether ``node`` is in the branch for the case that there is nothing: ``x.mean() if len(x) else …``."""
    loop = next(iter(module.flow.statement_loops(node)), None)
    for branch in module.flow.branches(node, within=loop):
        if _true_for_nothing(module, branch.test) is branch.holds:
            return True
        if isinstance(branch.construct, cst.IfExp) and not branch.holds and _asks_type(module, branch.test):
            return True
    return False


def _asks_type(module: Module, test: cst.BaseExpression) -> bool:
    """``x if isinstance(x, torch.Tensor) else …``: a guard for the type checker, or for what is not given."""
    return isinstance(test, cst.Call) and module.qualified(test.func) == "builtins.isinstance"


def _true_for_nothing(module: Module, test: cst.BaseExpression) -> bool | None:
    """The truth of a test if something counted is zero, or a container empty; None if it asks neither."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=expression):
            truth = _true_for_nothing(module, expression)
            return None if truth is None else not truth
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=bound)]):
            at_zero = _AT_ZERO.get(type(operator))
            return None if at_zero is None else at_zero.get(module.value(bound).constant)
        case cst.Call(func=cst.Name(value="len")):
            return False
    return False if module.value(test).kind in (Kind.LIST, Kind.TUPLE, Kind.DICT) else None


# By comparison and bound: how it turns out for zero, where it tells zero from everything above.
_AT_ZERO: dict[type[cst.BaseCompOp], dict[object, bool]] = {
    cst.Equal: {0: True},
    cst.NotEqual: {0: False},
    cst.GreaterThan: {0: False},
    cst.GreaterThanEqual: {1: False},
    cst.LessThan: {1: True},
    cst.LessThanEqual: {0: True},
}
