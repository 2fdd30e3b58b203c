"""Measured times that end before the accelerator is done.

The host hands work to the device and goes on. A clock that it reads then tells how long that took, and not
how long the work takes, unless something in between waits for the device: a synchronisation, a value that is
read, a copy to or from the host. That nothing does is said only where everything that runs between the two
readings is known; what a function of another file does, may wait.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.contexts import is_test
from torchlint.semantics.evidence import Evidence, evidence
from torchlint.semantics.flow.graph import Function, Loop
from torchlint.semantics.identifiers import imports
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.synchronisation import (
    asking_function,
    conversion,
    explicit_wait,
    host_copy,
    shape_wait,
    truth_tests,
    written_out,
)
from torchlint.semantics.values import Device, Kind, Value

from .timers import Interval, evaluated, evaluated_within, interval, timer

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_TIMEIT = frozenset({"timeit.timeit", "timeit.repeat", "timeit.Timer"})
_FEW = 2000
"""Rounds of a loop that trains for the sake of a measurement."""

# What is done once takes its time on the host; others want to know how long handing over takes.
_OTHER_TIMES = (Role.STARTUP, Role.LAUNCH)
# Functions of torch that wait, may wait, or run what may.
_MAY_WAIT = frozenset({"torch.compile", "torch.tensor", "torch.as_tensor", "torch.asarray"})
_GROUPS_THAT_MAY_WAIT = tuple(
    f"torch.{beginning}"
    for beginning in (
        *(
            "save",
            "load",
            "hub.",
            "onnx.",
            "distributed.",
            "profiler.",
            "autograd.profiler",
            "autograd.gradcheck",
        ),
        *(
            "utils.data",
            "utils.benchmark",
            "utils.bottleneck",
            "testing.",
            "jit.",
            "export.",
            "ops.",
            "_",
            "mps.",
        ),
        *("cuda.empty_cache", "cuda.graph", "cuda.mem", "cuda.make_graphed", "cuda.CUDAGraph", "cuda.comm"),
        *("cuda.ipc", "cuda.caching", "cuda.reset", "cuda.init", "xpu.empty"),
    )
)
_MOVES = frozenset({"to", "cuda", "cpu", "numpy", "item", "tolist", "xpu", "npu", "hpu", "mps"})
_PLAIN_BUILTINS = frozenset(
    {"range", "len", "enumerate", "zip", "isinstance", "list", "tuple", "dict", "set", "getattr", "hasattr"}
    | {"super", "type", "id", "iter", "reversed", "slice", "setattr", "callable"}
)
# Libraries of the host: what they are given is no tensor of the device.
_ON_HOST = frozenset(
    {"time", "timeit", "numpy", "math", "random", "os", "sys", "gc", "contextlib", "itertools", "functools"}
)
_OF_MODULES = frozenset(
    {
        "eval",
        "train",
        "zero_grad",
        "parameters",
        "named_parameters",
        "buffers",
        "children",
        "modules",
        "no_sync",
    }
    | {"requires_grad_", "half", "float", "bfloat16"}
)
# Models that read their results, or stand for whole pipelines.
_READING_MODELS = (Role.DETECTION, Role.GENERATING, Role.PIPELINE)
_PIPELINES = (
    *("detectron2", "easyocr", "faster_whisper", "mmdet", "onnxruntime", "sentence_transformers", "tensorrt"),
    *("torch_tensorrt", "torch_xla", "ultralytics", "vllm", "whisper"),
)


class _Effect(enum.IntEnum):
    """What evaluating one node, its parts aside, means for the device, the weightiest last."""

    NOTHING = enum.auto()
    WORK = enum.auto()
    """It is given work, and the host goes on."""
    WAIT = enum.auto()
    """The host waits for it, or may."""


def ends_too_early(module: Module, elapsed: cst.BinaryOperation) -> tuple[Interval, cst.CSTNode] | None:
    """Return a measured time, and the first work for the device in it if nothing waits for that;
    else None.
    """
    measured = interval(module, elapsed)
    if measured is None or is_test(module) or evidence(module) is not Evidence.ACCELERATOR:
        return None
    if _is_deadline(module, elapsed) or _is_other_time(module, measured):
        return None
    around = frozenset(module.flow.loops(measured.start))
    work = _unawaited(module, evaluated_within(module, measured), around)
    return None if work is None or _waits_beside(module, measured) else (measured, work)


def _waits_beside(module: Module, measured: Interval) -> bool:
    """Return whether the statement waits before it reads the clock:
    ``print(loss.item(), time.time() - start)``.
    """
    beside = evaluated(module, module.tree.statement(measured.end))
    before = itertools.dropwhile(lambda node: node is not measured.end, beside)
    return any(_effect(module, node) is _Effect.WAIT for node in itertools.islice(before, 1, None))


def timed_by_call(module: Module, call: cst.Call) -> cst.CSTNode | None:
    """Return the first work that ``timeit.timeit(lambda: model(x))`` measures, if nothing in it waits."""
    if module.qualified(call.func) not in _TIMEIT or is_test(module):
        return None
    timed = given_as(call, "stmt", 0)
    if not isinstance(timed, cst.Lambda) or evidence(module) is not Evidence.ACCELERATOR:
        return None
    return _unawaited(module, evaluated(module, timed.body), frozenset(module.flow.loops(timed.body)))


def timed_by_block(module: Module, made: cst.Call) -> tuple[cst.Call, cst.CSTNode] | None:
    """Return the second reading of a timer that a ``with`` enters,
    and the first work in it if nothing waits.
    """
    item = module.tree.parent(made)
    block = module.tree.parent(item) if item is not None else None
    if not isinstance(item, cst.WithItem) or not isinstance(block, cst.With):
        return None
    if is_test(module) or evidence(module) is not Evidence.ACCELERATOR:
        return None
    found = timer(module, made)
    if found is None:
        return None
    end, before = found
    if any(_effect(module, node) is _Effect.WAIT for node in before):
        return None
    if has(module.source(item), *_OTHER_TIMES) or any("profiler" in module.source(i) for i in block.items):
        return None
    work = _unawaited(module, evaluated(module, block.body), frozenset(module.flow.loops(block.body)))
    return None if work is None else (end, work)


def waited_above(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the statement right above that of a node waits for the device and does nothing else."""
    statement = module.tree.statement(node)
    block = module.tree.parent(statement)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    index = next(i for i, other in enumerate(block.body) if other is statement)
    above = module.tree.descendants(block.body[index - 1]) if index else ()
    return any(isinstance(part, cst.Call) and explicit_wait(module, part) for part in above)


def _is_deadline(module: Module, elapsed: cst.CSTNode) -> bool:
    """Return whether it is ``if time.time() - start > limit``."""
    return isinstance(module.tree.parent(elapsed), (cst.Comparison, cst.ComparisonTarget))


def _is_other_time(module: Module, measured: Interval) -> bool:
    """Return whether the names around say that what the host does is timed: something done once,
    or a launch.
    """
    statements = (module.tree.statement(node) for node in (measured.start, measured.elapsed))
    for statement in statements:
        for part in module.tree.descendants(statement):
            if isinstance(part, cst.AssignTarget) and has(module.source(part.target), *_OTHER_TIMES):
                return True
            if isinstance(part, cst.SimpleString) and has(part.value, *_OTHER_TIMES):
                return True
    return False


def _unawaited(module: Module, nodes: Iterable[cst.CSTNode], around: frozenset[Loop]) -> cst.CSTNode | None:
    """Return the first work among what is evaluated, if nothing behind it, or in a loop with it, may wait.

    What is evaluated last comes first: where something waits at the end, nothing else has to be looked at.
    The loops around all of it are no loops with it.
    """
    first: cst.CSTNode | None = None
    waits: list[cst.CSTNode] = []
    for node in nodes:
        effect = _effect(module, node)
        if effect is _Effect.WAIT:
            if first is None:
                return None  # it waits for all the work there is
            waits.append(node)
        elif effect is _Effect.WORK:
            if waits:
                return None
            first = node
    if first is None:
        return None
    loops = [loop for loop in module.flow.loops(first) if loop not in around]
    return None if any(loop in loops for wait in waits for loop in module.flow.loops(wait)) else first


def _effect(module: Module, node: cst.CSTNode) -> _Effect:
    """Return what evaluating a node means, the code of the file included that it runs."""
    found = _own_effect(module, node)
    return _whole_effect(module, found) if isinstance(found, cst.FunctionDef) else found


@solved(nothing=_Effect.NOTHING)
def _whole_effect(module: Module, function: cst.FunctionDef) -> _Effect:
    """Return what running a function means."""
    whole = _Effect.NOTHING
    for node in evaluated(module, function.body):
        whole = max(whole, _effect(module, node))
        if whole is _Effect.WAIT:
            break
    return whole


def _own_effect(module: Module, node: cst.CSTNode) -> _Effect | cst.FunctionDef:
    """Return what evaluating a node means, or the function of the file that it runs."""
    match node:
        case cst.Call():
            return _of_call(module, node)
        case cst.While() | cst.Yield() | cst.Await():
            return _Effect.WAIT
        case cst.For() | cst.CompFor():
            return _Effect.NOTHING if _repeats(module, node) else _Effect.WAIT
        case cst.With():
            entered = (item.item for item in node.items)
            called = (module.qualified(item.func) for item in entered if isinstance(item, cst.Call))
            waits = any("profiler" in (name or "") for name in called)
        case cst.Subscript():
            waits = shape_wait(module, node)
        case cst.FormattedString():
            parts = [
                part.expression for part in node.parts if isinstance(part, cst.FormattedStringExpression)
            ]
            waits = not all(_on_host(module.value(part)) for part in parts)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return _Effect.WORK if _on_device(module.value(node)) else _Effect.NOTHING
        case cst.BinaryOperation(operator=cst.Modulo()):
            waits = written_out(module, node) is not None
        case (
            cst.If()
            | cst.IfExp()
            | cst.Assert()
            | cst.UnaryOperation()
            | cst.BooleanOperation()
            | cst.Comparison()
        ):
            waits = any(truth_tests(module, node))
        case _:
            waits = False
    return _Effect.WAIT if waits else _Effect.NOTHING


def _repeats(module: Module, loop: cst.For | cst.CompFor) -> bool:
    """Return whether a loop does the same again, over no data, and is no training:
    ``for _ in range(100)``.
    """
    if not isinstance(loop.iter, cst.Call) or module.qualified(loop.iter.func) != "builtins.range":
        return False
    if isinstance(loop, cst.CompFor) or phase(module, loop.body) is not Phase.TRAINING:
        return True
    function = module.function(loop)
    if isinstance(function, cst.FunctionDef) and has(function.name.value, Role.MEASUREMENT):
        return True
    counts = [module.value(argument.value).constant for argument in loop.iter.args]
    return all(isinstance(count, int) and count <= _FEW for count in counts)


def _of_call(module: Module, call: cst.Call) -> _Effect | cst.FunctionDef:
    qualified = module.qualified(call.func)
    if qualified is not None:
        return _of_library(module, call, qualified)
    if isinstance(call.func, cst.Attribute):
        return _of_method(module, call, call.func)
    called = module.value(call.func)
    if called.kind is Kind.MODULE:
        return _of_model(module, call, call.func)
    return _of_function(module, call)


def _of_library(module: Module, call: cst.Call, name: str) -> _Effect:
    package, _, rest = name.partition(".")
    values = [module.value(argument.value) for argument in call.args]
    if package == "builtins":
        plain = rest in _PLAIN_BUILTINS or all(map(_on_host, values))
        return _Effect.NOTHING if plain else _Effect.WAIT
    if package in _ON_HOST:
        return _Effect.WAIT if name in ("time.sleep", "timeit.timeit", "timeit.repeat") else _Effect.NOTHING
    if package != "torch" or name in _MAY_WAIT or name.startswith(_GROUPS_THAT_MAY_WAIT):
        return _Effect.WAIT
    if explicit_wait(module, call) or _reads(module, call):
        return _Effect.WAIT
    computes = places.computes_on_device(module, call)
    return _Effect.WORK if computes else _Effect.NOTHING


def _reads(module: Module, call: cst.Call) -> bool:
    return (
        conversion(module, call) is not None
        or host_copy(module, call) is not None
        or shape_wait(module, call)
        or asking_function(module, call) is not None
        or written_out(module, call) is not None
    )


def _of_method(module: Module, call: cst.Call, func: cst.Attribute) -> _Effect | cst.FunctionDef:
    name, owner = func.attr.value, module.value(func.value)
    if module.value(func).kind is Kind.MODULE:
        return _of_model(module, call, func)
    if name in _MOVES or explicit_wait(module, call) or _reads(module, call):
        return _Effect.WAIT
    if owner.tensorlike and name in TENSOR_METHODS:
        works = _on_device(owner) if name == "backward" else places.computes_on_device(module, call)
        return _Effect.WORK if works else _Effect.NOTHING
    if owner.kind is Kind.MODULE:
        if name == "forward":
            return _of_model(module, call, func.value)
        return _Effect.NOTHING if name in _OF_MODULES else _of_function(module, call)
    if owner.kind in (Kind.OPTIMIZER, Kind.SCHEDULER):
        return _Effect.WAIT if call.args and name == "step" else _Effect.NOTHING
    if owner.kind is Kind.SCALER:
        return _Effect.NOTHING if name == "scale" else _Effect.WAIT
    if owner.kind in (Kind.LIST, Kind.DICT, Kind.TUPLE, Kind.SHAPE):
        return _Effect.NOTHING
    return _of_function(module, call)


def _of_model(module: Module, call: cst.Call, func: cst.BaseExpression) -> _Effect:
    model = module.value(func)
    made = module.source(model.origin)[:200] if isinstance(model.origin, cst.Call) else ""
    names = (last_name(func), model.cls, made)
    if any(has(name, *_READING_MODELS) for name in names) or imports(module, _PIPELINES):
        return _Effect.WAIT
    forward = module.callee(call)
    if forward is not None and _waits_inside(module, forward):
        return _Effect.WAIT
    # What was moved to the device is there, whatever it is.
    moved = any(module.value(argument.value).device is Device.ACCELERATOR for argument in call.args)
    works = _on_device(model) or (model.device is not Device.CPU and moved)
    return _Effect.WORK if works else _Effect.NOTHING


@solved(nothing=False)
def _waits_inside(module: Module, function: Function) -> bool:
    """Return whether the forward of a model of the file reads from the device, itself or in what it calls."""
    for node in evaluated(module, function.body):
        if isinstance(node, cst.Call):
            if explicit_wait(module, node) or _reads(module, node):
                return True
            if last_name(node.func) in ("item", "tolist", "cpu", "numpy", "synchronize"):
                return True
            callee = module.callee(node)
            if callee is not None and _waits_inside(module, callee):
                return True
        elif isinstance(node, (cst.If, cst.While, cst.Assert)) and any(truth_tests(module, node)):
            return True
    return False


def _of_function(module: Module, call: cst.Call) -> _Effect | cst.FunctionDef:
    """Return the function of the file that a call runs; one of another file may wait."""
    function = module.callee(call)
    if not isinstance(function, cst.FunctionDef) or function.decorators:
        return _Effect.WAIT
    return function


def _on_device(value: Value) -> bool:
    return value.device is Device.ACCELERATOR and value.kind in (Kind.TENSOR, Kind.BATCH, Kind.MODULE)


def _on_host(value: Value) -> bool:
    return value.host or value.kind in (
        Kind.NUMBER,
        Kind.STRING,
        Kind.BOOL,
        Kind.SHAPE,
        Kind.DEVICE,
        Kind.DTYPE,
    )
