"""Mixed precision: where autocast is on and in which dtype, scalers, and backward passes under autocast.

What autocast does to a backward pass was seen with torch 2.13: it casts the operations of the backward pass
as it does those of the forward pass, so that what ran in float32 is differentiated in low precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.identifiers import identifiers, speaks_of
from torchlint.semantics.lexicon import Role, begins, has, names_optimizer, words
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_AUTOCASTS = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_SCALERS = frozenset(
    {
        "torch.amp.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)
_LOW = "torch.bfloat16"
# Where a program may turn to float16, it has a scaler for that.
_SWITCHES = (Role.PRECISION, Role.ACCELERATOR)
_OTHER_SWITCHES = (Role.SCALER, Role.FLOAT16, Role.BFLOAT16)
_CHANGING_DTYPE = frozenset({"set_autocast_dtype", "set_autocast_gpu_dtype"})
# What follows a backward pass and computes nothing that autocast would cast.
_BOOKKEEPING = frozenset(
    {
        *("backward", "step", "zero_grad", "update", "unscale_", "scale", "clip_grad_norm_"),
        *("clip_grad_value_", "parameters", "named_parameters", "item", "detach", "cpu", "tolist", "float"),
        *("append", "extend", "print", "format", "set_description", "set_postfix", "add_scalar", "info"),
        *("log", "debug", "len", "range", "str", "int", "get_last_lr", "get_lr", "isfinite", "isnan", "size"),
    }
)


def autocast_dtype(module: Module, call: cst.Call) -> str | None:
    """Return the dtype that a call of ``autocast`` asks for on an accelerator;
    None if that cannot be told.
    """
    argument = module.argument(call, "dtype")
    if not argument.given:
        return None
    return argument.value.cls if argument.value.kind is Kind.DTYPE else None


def only_bfloat16(module: Module) -> bool:
    """Return whether all that the file ever computes in mixed precision on an accelerator is in bfloat16."""
    if speaks_of(module, Role.FLOAT16) or not _CHANGING_DTYPE.isdisjoint(identifiers(module)):
        return False
    dtypes = [
        autocast_dtype(module, call) if module.qualified(call.func) in _AUTOCASTS else None
        for call in module.tree.nodes(cst.Call)
        if _may_autocast(module, call)
    ]
    return bool(dtypes) and all(dtype == _LOW for dtype in dtypes)


def _may_autocast(module: Module, call: cst.Call) -> bool:
    """Return whether a call turns autocast on for an accelerator, as far as its name tells."""
    name = last_name(call.func) or ""
    if "autocast" not in name.lower() or _asks(name) or is_off(module, call):
        return False
    if module.qualified(call.func) == "torch.cpu.amp.autocast":
        return False
    return module.argument(call, "device_type").constant != "cpu"


def _asks(name: str) -> bool:
    """Return whether a function of this name asks for the mode, or sets it for good: ``is_autocast``."""
    return begins(name, Role.VERB, Role.AUXILIARY) or name.lstrip("_").startswith(("disable_", "supports_"))


def is_off(module: Module, call: cst.Call) -> bool:
    """Return whether a call of ``autocast``, or of something named so, is told not to be enabled."""
    if module.qualified(call.func) in _AUTOCASTS:
        return module.argument(call, "enabled").constant is False
    return any(
        arg.keyword is not None
        and arg.keyword.value == "enabled"
        and module.value(arg.value).constant is False
        for arg in call.args
    )


def makes_scaler(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes a gradient scaler of torch that is enabled whenever autocast is.

    What turns it on beside that, ``GradScaler(enabled=use_scaler)``, may ask for float16.
    """
    if module.qualified(call.func) not in _SCALERS:
        return False
    enabled = module.argument(call, "enabled")
    if enabled.node is not None and enabled.constant is not True:
        if enabled.constant is False or not _turns_on_all(module, enabled.node):
            return False
    elif enabled.unknown:
        return False
    branches = module.flow.branches(call, outward=True)
    return all(branch.holds and _turns_on_all(module, branch.test) for branch in branches)


def _turns_on_all(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether a test asks for mixed precision or for a GPU, and for nothing else,
    going by its words.
    """
    parts = module.tree.descendants(test)
    names = [part.value for part in parts if isinstance(part, (cst.Name, cst.SimpleString))]
    asked = any(name == "__name__" or has(name, *_SWITCHES) for name in names)
    return asked and not any(has(name, *_OTHER_SWITCHES) or "dtype" in words(name) for name in names)


# --- blocks -----------------------------------------------------------------------------------------


@solved(False)
def turns_autocast_on(module: Module, item: cst.BaseExpression) -> bool:
    """Return whether the context of a ``with`` statement is autocast, at least under some conditions."""
    match item:
        case cst.Call():
            if module.qualified(item.func) in _AUTOCASTS:
                return not is_off(module, item)
            name = last_name(item.func) or ""
            named = name.lower().endswith("autocast") and not _asks(name)
            return named and module.callee(item) is None and not is_off(module, item)
        case cst.IfExp():
            return turns_autocast_on(module, item.body) or turns_autocast_on(module, item.orelse)
        case cst.Name():
            values = [binding.value for binding in module.bindings(item)]
            return any(
                isinstance(value, (cst.Call, cst.IfExp)) and turns_autocast_on(module, value)
                for value in values
            )
        case _:
            return False


def backward_under_autocast(module: Module, block: cst.With) -> cst.Call | None:
    """Return the first backward pass, or step of an optimizer, that runs in this very block of autocast."""
    if not any(turns_autocast_on(module, item.item) for item in block.items):
        return None
    function = module.function(block)
    passes = Backpropagation.of(module).calls
    for call in module.tree.descendants(block.body):
        if not isinstance(call, cst.Call) or module.function(call) is not function:
            continue
        if (call in passes and _is_backward(module, call)) or _steps(module, call):
            return call if _innermost(module, call) is block else None
    return None


def helper_under_autocast(module: Module, block: cst.With) -> tuple[cst.Call, cst.Call] | None:
    """Return a call in this very block that runs a function of the file with a backward pass or a step,
    and that.
    """
    if not any(turns_autocast_on(module, item.item) for item in block.items):
        return None
    function = module.function(block)
    for call in module.tree.descendants(block.body):
        if not isinstance(call, cst.Call) or module.function(call) is not function:
            continue
        if (done := _done_in(module, module.callee(call))) is not None:
            return (call, done) if _innermost(module, call) is block else None
    return None


@solved(None)
def _done_in(module: Module, function: Function | None) -> cst.Call | None:
    """Return the backward pass or step that a function runs, itself or by others,
    whatever it is called with.
    """
    if not isinstance(function, cst.FunctionDef) or function.asynchronous is not None:
        return None
    inside = [call for call in module.calls_in(function) if _runs_as_called(module, call)]
    for call in inside:
        if (call in Backpropagation.of(module).calls and _is_backward(module, call)) or _steps(module, call):
            return call
    called = dict.fromkeys(map(module.callee, inside))
    return next((done for callee in called if (done := _done_in(module, callee)) is not None), None)


def _runs_as_called(module: Module, call: cst.Call) -> bool:
    """Return whether no block around a call in its function turns autocast on or off, or asks a parameter."""
    managers = (item.item.func for item in module.flow.contexts(call) if isinstance(item.item, cst.Call))
    if any("autocast" in (last_name(manager) or "").lower() for manager in managers):
        return False
    return not any(_asks_parameter(module, branch.test) for branch in module.flow.branches(call))


def _asks_parameter(module: Module, test: cst.BaseExpression) -> bool:
    return any(
        any(b.kind is BindingKind.PARAMETER for b in module.bindings(name))
        for name in module.tree.descendants(test)
        if not (isinstance(name, cst.Name) and name.value == "self")
    )


def _is_backward(module: Module, call: cst.Call) -> bool:
    """Return whether a pass leaves gradients in the parameters;
    ``autograd.grad`` may be a part of the loss.
    """
    return module.home(call).qualified(call.func) != "torch.autograd.grad"


def _steps(module: Module, call: cst.Call) -> bool:
    match call.func:
        case cst.Attribute(attr=cst.Name("step"), value=owner):
            value = module.value(owner)
            if value.kind in (Kind.OPTIMIZER, Kind.SCALER):
                return True
            return value.kind is Kind.UNKNOWN and names_optimizer(last_name(owner))
        case _:
            return False


def _innermost(module: Module, call: cst.Call) -> cst.With | None:
    """Return the innermost block around a call that turns autocast on;
    None if one within that turns it off.
    """
    for item in module.flow.contexts(call, outward=True):
        if turns_autocast_on(module, item.item):
            block = module.tree.parent(item)
            return block if isinstance(block, cst.With) else None
        if isinstance(item.item, cst.Call) and is_off(module, item.item):
            return None
    return None


def computes_nothing(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a statement holds nothing that autocast would cast: calls of bookkeeping only."""
    return all(
        last_name(node.func) in _BOOKKEEPING and module.callee(node) is None
        if isinstance(node, cst.Call)
        else not isinstance(node, (cst.MatrixMultiply, cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.Power))
        for node in module.tree.descendants(statement)
    )


def tail_from(module: Module, call: cst.Call, block: cst.With) -> Iterator[cst.CSTNode]:
    """Yield the statements of a block from the one that holds ``call`` on."""
    found = False
    for statement in block.body.body:
        found = found or module.tree.contains(statement, call)
        if found:
            yield statement
