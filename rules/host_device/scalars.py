"""Python numbers that become tensors in host memory and are copied to the device from there.

``sent_scalar`` finds them, and ``filled_on_device`` writes the call that makes the device fill in the
number itself. What both give was compared with torch 2.13: ``torch.full`` takes the dtype of a Python
number as ``torch.tensor`` does, but not that of a NumPy scalar, and refuses what overflows where
``torch.tensor`` gives infinity.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import Edits, cut_off, graded, replace, spell
from torchlint.semantics.evidence import accelerated, on_device
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sources import Item, Path, Source, Through, every, onward, some, traced
from torchlint.semantics.spellings import keywords, last_words
from torchlint.semantics.synchronisation import conversion
from torchlint.semantics.transfers import Move, moved_at_once, on_host
from torchlint.semantics.values import MISSING, Device, Kind
from torchlint.semantics.wholeprogram import calls_shown

from .factories import created_on, factory
from .sending import goes_on, on_accelerator, place_of_sending, single_number

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot


_MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
_CONVERTERS = frozenset({"torch.as_tensor", "torch.asarray"})
SENDERS = last_words(_MAKERS) | {"new_tensor"}
"""What the calls are named that may make a tensor of a number."""
_KEYWORDS = frozenset({"data", "obj", "dtype", "device", "requires_grad"})
# Dtypes that hold whatever a program works with.
_ROOMY = frozenset(
    {"torch.float", "torch.float32", "torch.double", "torch.float64", "torch.bfloat16", "torch.bool"}
    | {"torch.long", "torch.int64", "torch.complex64", "torch.complex128"}
)
_SINGLE = frozenset({"torch.float", "torch.float32"})
_HALF = frozenset({"torch.half", "torch.float16"})
_RANGES = {
    "torch.uint8": (0, 2**8 - 1),
    "torch.int8": (-(2**7), 2**7 - 1),
    "torch.int16": (-(2**15), 2**15 - 1),
    "torch.short": (-(2**15), 2**15 - 1),
    "torch.int32": (-(2**31), 2**31 - 1),
    "torch.int": (-(2**31), 2**31 - 1),
}
_LARGEST_SINGLE = 3.4028234e38
_LARGEST_HALF = 65504.0
_LARGEST_ANYWHERE = 127
# What Python itself, or a tensor that is asked for it, counts and measures.
_NUMBER_PACKAGES = ("math.", "time.", "random.")
_NUMBER_BUILTINS = frozenset(f"builtins.{name}" for name in ("float", "int", "bool", "len", "complex"))
_NUMBER_METHODS = frozenset({"item", "dim", "numel", "nelement", "ndimension", "element_size"})
_NUMBER_NAMES = frozenset(f"numpy.{name}" for name in ("pi", "e", "inf", "nan")) | {
    "torch.inf",
    "torch.nan",
    "torch.pi",
    "torch.e",
}


@dataclass(frozen=True, slots=True)
class SentScalar:
    """A number that a call makes a tensor of, for the device.

    Attributes:
        call: the call that makes the tensor.
        number: the Python number.
        size: the code of the tensor's size: ``()``, ``(1,)`` for a list of it, ``(n,)`` for ``[number] * n``,
            ``(1, n)`` for ``[[number] * n]``.
        move: the call that moves the tensor; None if ``device=`` or the receiver of ``new_tensor`` says
            where it goes.
    """

    call: cst.Call
    number: cst.BaseExpression
    size: str
    move: Move | None


def sent_scalar(module: Module, call: cst.Call) -> SentScalar | None:
    """Return the Python number that ``call`` makes a tensor of in host memory, for an accelerator."""
    qualified = module.qualified(call.func)
    receiver = _asked_for_new(call) if qualified is None else None
    if (qualified not in _MAKERS and receiver is None) or not call.args or any(a.star for a in call.args):
        return None
    data = call.args[0]
    if data.keyword is not None and data.keyword.value not in ("data", "obj"):
        return None
    found = single_number(module, data.value) if accelerated(module) else None
    if found is None or (qualified in _CONVERTERS and _takes_whatever(module, data.value)):
        return None
    named = keywords(call)
    if "pin_memory" in named:
        return None
    device = named.get("device")
    if device is not None and module.value(device).constant is not None:
        there = not on_host(module, device)
    else:
        there = receiver is not None and on_device(module, receiver)
    move = None if there else moved_at_once(module, call)
    if move is not None and goes_on(module, move.call):
        return None
    return SentScalar(call, *found, move) if there or move is not None else None


def _takes_whatever(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether it is ``as_tensor(x)`` of a bare parameter: whether a function makes a tensor of
    whatever it is given.
    """
    bindings = module.bindings(data)
    params = [each.node for each in bindings if isinstance(each.node, cst.Param)]
    return any(param.annotation is None and param.default is None for param in params)


def sent_each_step(module: Module, sent: SentScalar) -> Hot | None:
    """Return the hot place each of whose rounds sends the number; None if there is none,
    or it need not be sent.

    A compiler fills constants in on the device by itself. A number that was read from the device should
    not have been read. What takes the place of a result where there is nothing to compute is seldom made.
    """
    hot = place_of_sending(module, sent.call)
    return None if hot is None or some(_reads(module, sent.number)) else hot


def chosen_number(module: Module, call: cst.Call) -> bool:
    """Return whether a number becomes a tensor of the host for
    ``torch.where(mask, x, torch.tensor(0.0))``.
    """
    argument = module.tree.parent(call)
    chooses = module.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(chooses, cst.Call) or len(chooses.args) != 3 or argument is chooses.args[0]:
        return False
    if module.qualified(call.func) != "torch.tensor" or module.qualified(chooses.func) != "torch.where":
        return False
    number = bool(call.args) and module.value(call.args[0].value).kind in (Kind.NUMBER, Kind.BOOL)
    made = module.value(call).device if number else None
    return made is Device.CPU and on_accelerator(module, chooses.args[0].value)


def _asked_for_new(call: cst.Call) -> cst.BaseExpression | None:
    """Return ``x`` in ``x.new_tensor(1.0)``."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "new_tensor":
        return call.func.value
    return None


@traced(Through.NOTHING)
def _reads(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a number comes from a tensor on the device."""
    parts = module.tree.descendants(node)
    read = any(isinstance(part, cst.Call) and conversion(module, part) is not None for part in parts)
    return True if read else None


# --- numbers of Python ------------------------------------------------------------------------------


def is_python_number(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is certainly an ``int``, ``float``, ``bool`` or ``complex``.

    The numbers of NumPy carry a dtype of their own into the tensor that is made of them.
    """
    return every(_python_numbers(module, node))


@traced(Through.OPERANDS | Through.ITEMS)
def _python_numbers(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether what an expression comes from is such a number."""
    if path:
        counter = module.qualified(node.func) if isinstance(node, cst.Call) else None
        return True if (counter, path) in _COUNTING else None
    value = module.value(node)
    if value.constant is not MISSING:
        return isinstance(value.constant, (int, float, complex))
    if value.kind not in (Kind.NUMBER, Kind.BOOL):
        return False
    match node:
        case cst.Call():
            return _gives_python_number(module, node)
        case cst.UnaryOperation(operator=cst.Not()):
            return True
        case cst.Subscript():
            return (
                module.value(node.value).kind is Kind.SHAPE
                and module.value(_owner(node.value)).kind is Kind.TENSOR
            )
        case cst.Attribute():
            return _names_python_number(module, node)
        case _:
            return None


# What counts: each item of a range, the first of the two that ``enumerate`` gives.
_COUNTING = frozenset({("builtins.range", (Item.EACH,)), ("builtins.enumerate", (Item.EACH, 0))})


def _owner(shape: cst.BaseExpression) -> cst.BaseExpression:
    """Return ``x`` of ``x.shape`` and ``x.size()``."""
    node = shape.func if isinstance(shape, cst.Call) else shape
    return node.value if isinstance(node, cst.Attribute) else node


def _gives_python_number(module: Module, call: cst.Call) -> bool | list[Source]:
    qualified = module.qualified(call.func)
    if qualified is not None:
        if qualified in ("builtins.max", "builtins.min", "builtins.abs", "builtins.round"):
            return onward(*(arg.value for arg in call.args))
        return qualified in _NUMBER_BUILTINS or qualified.startswith(_NUMBER_PACKAGES)
    if not isinstance(call.func, cst.Attribute) or not module.value(call.func.value).tensorlike:
        return False
    return call.func.attr.value in _NUMBER_METHODS or (call.func.attr.value == "size" and bool(call.args))


def _names_python_number(module: Module, node: cst.Attribute) -> bool:
    qualified = module.qualified(node) or ""
    if qualified in _NUMBER_NAMES or qualified.startswith("math."):
        return True
    limits = node.value
    return isinstance(limits, cst.Call) and module.qualified(limits.func) in ("torch.finfo", "torch.iinfo")


@traced(Through.OPERANDS | Through.ITEMS)
def _only_promised(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a number is one by the annotation of a function only, whose body may return an array."""
    if not isinstance(node, cst.Call) or path or module.qualified(node.func) is not None:
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _NUMBER_METHODS:
        return None
    called = module.value(node.func)
    function = module.callee(node)
    if function is None and isinstance(called.definition, cst.ClassDef):
        function = module.classes.info(called.definition).method("__call__")
    if not isinstance(function, cst.FunctionDef) or function.returns is None:
        return None
    home = module.home(function)
    returned = [end.value for end in home.tree.nodes_within(function, cst.Return) if end.value is not None]
    return True if any(not home.value(value).known for value in returned) else None


@traced(Through.OPERANDS)
def _chosen_by_callers(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether what calls elsewhere may give a parameter is a number by its annotation."""
    bindings = module.bindings(node) if isinstance(node, cst.Name) and not path else ()
    for param in (binding.node for binding in bindings if binding.kind is BindingKind.PARAMETER):
        function = module.tree.parents[module.tree.parents[param]]
        if isinstance(param, cst.Param) and isinstance(function, cst.FunctionDef):
            return None if calls_shown(module, function) else param.annotation is not None
    return None


# --- the fix ----------------------------------------------------------------------------------------


def filled_on_device(module: Module, sent: SentScalar) -> Fix | None:
    """Return the fix that lets the device fill in the number, by ``torch.full`` or ``new_full``."""
    code = _filling(module, sent)
    placed = _placed(module, sent)
    if code is None or placed is None:
        return None
    edits, exact = placed
    function = "new_full" if _asked_for_new(sent.call) is not None else "torch.full"
    message = f"Fill the tensor on the device with `{function}(…)`"
    chosen = _chosen_by_callers(module, sent.number)
    risk = None
    if not exact:
        risk = "the tensor may get a different dtype or device, or be no leaf of the graph"
    elif not _written_out(sent.size):
        risk = "for a size of 0 the dtype may differ, and a negative size is an error"
    elif False in chosen or (True in chosen and "dtype" not in module.source(sent.call)):
        risk = "callers may pass a list, an array, or a NumPy number with a dtype of its own"
    return graded(module, message, code, edits, risk=risk)


def _written_out(size: str) -> bool:
    """Return whether the code of a size has no other numbers than literal ones above 0."""
    parts = [part for part in size.strip("()").replace(" ", "").split(",") if part]
    return all(part.isdigit() and int(part) > 0 for part in parts)


def _filling(module: Module, sent: SentScalar) -> Edits | None:
    """Return the edits that rename the call and give it the size in front of the number."""
    func, data = sent.call.func, sent.call.args[0]
    if any(a.keyword is None for a in sent.call.args[1:]):
        return None
    if any(a.keyword is not None and a.keyword.value not in _KEYWORDS for a in sent.call.args):
        return None
    if _asked_for_new(sent.call) is not None and module.qualified(func) is None:
        assert isinstance(func, cst.Attribute)
        renamed = replace(module, func.attr, "new_full")
    else:
        spelling = spell(module, "torch.full", sent.call)
        if spelling is None:
            return None
        renamed = replace(module, func, spelling.text)
        renamed = None if renamed is None else (*renamed, *spelling.edits)
    start, end = module.tree.span(data).start, module.tree.outer_span(data.value).end
    if renamed is None or "#" in module.tree.text[start:end]:
        return None
    return (*renamed, Edit(Span(start, end), f"{sent.size}, {module.source(sent.number)}"))


def _placed(module: Module, sent: SentScalar) -> tuple[Edits, bool] | None:
    """Return the edits that move ``.to(…)`` into the call, and whether the tensor stays the same."""
    given = next(
        (a.value for a in sent.call.args if a.keyword is not None and a.keyword.value == "dtype"), None
    )
    if given is not None and module.value(given).kind is Kind.NONE:
        given = None
    inferred = given is None and module.qualified(sent.call.func) is not None
    dtype = module.value(given).cls if given is not None else None
    move = sent.move
    if move is None:
        return (), _same_when_filled(module, sent.number, dtype, inferred=inferred)
    made = factory(module, sent.call)
    unmoved = cut_off(module, sent.call, move.call)
    if made is None or not move.fixable or unmoved is None:
        return None
    if move.dtype_code is not None and given is not None:
        return None
    edits = created_on(module, made, move.code, move.dtype_code)
    if edits is None:
        return None
    if move.dtype_code is None:
        exact = _same_when_filled(module, sent.number, dtype, inferred=inferred)
    else:
        cast = module.value(move.dtype).cls if move.dtype is not None else move.dtype_code
        if not _fits(module, sent.number, cast):
            return None
        exact = _same_when_cast(module, sent.number, cast)
    exact = exact and move.certain and not made.leaf
    return (*edits, *unmoved), exact


def _same_when_filled(
    module: Module, number: cst.BaseExpression, dtype: str | None, *, inferred: bool
) -> bool:
    """Return whether filling gives the tensor that copying the number gave; ``dtype`` None is not known."""
    constant = module.value(number).constant
    if not isinstance(constant, (int, float)):
        if inferred and is_python_number(module, number):
            return True
        return dtype in _ROOMY and not some(_only_promised(module, number))
    if isinstance(constant, int) and abs(constant) >= 2**63:
        return False
    size = abs(constant)
    if inferred or dtype in _ROOMY:
        return not math.isfinite(size) or size <= _LARGEST_SINGLE
    return size <= _LARGEST_ANYWHERE or (
        dtype in _HALF and (size <= _LARGEST_HALF or not math.isfinite(size))
    )


def _fits(module: Module, number: cst.BaseExpression, dtype: str | None) -> bool:
    """Return whether filling does not certainly refuse a number, which a cast would cut off."""
    constant = module.value(number).constant
    lowest, highest = _RANGES.get(dtype or "", (-math.inf, math.inf))
    return not isinstance(constant, (int, float)) or lowest <= constant <= highest


def _same_when_cast(module: Module, number: cst.BaseExpression, dtype: str | None) -> bool:
    """Return whether filling in ``dtype`` gives what casting the tensor of the inferred dtype gave."""
    constant = module.value(number).constant
    if not isinstance(constant, (int, float)):
        return dtype in _SINGLE and is_python_number(module, number)
    if abs(constant) > _LARGEST_ANYWHERE:
        return dtype in _SINGLE and abs(constant) <= _LARGEST_SINGLE
    exact = struct.unpack("f", struct.pack("f", constant))[0] == constant
    return (exact and constant >= 0) or dtype in _SINGLE | _HALF | {"torch.bfloat16"}
