"""What the compiler cannot put into one graph, and what has it compile the same code again.

`torch.compile` follows a program without its numbers. Where Python needs one, or calls what cannot be traced,
the graph ends, Python goes on by itself, and another graph begins behind it. And what was compiled holds for
the Python numbers and the lengths of lists that it was compiled with: code that changes them in each call is
compiled in each call, until the compiler gives it up.

Which constructs do so was measured, one by one: benchmarks/results/breaks.json has what happened, and
tests/benchmarks/test_breaks.py holds the questions here to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.compiler import ASKING, DRAWN_NUMBERS, LOGGING_METHODS, UNTRACED
from torchlint.semantics.api.results import READING_SCALARS, SIZED_BY_SCALARS
from torchlint.semantics.compilation import Compilation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sources import Path, Through, every, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    asking_function,
    indexed_by_number,
    is_logger,
    only_on_failure,
    shape_wait,
    truth_tests,
)
from torchlint.semantics.values import Kind
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.compilation import Region
    from torchlint.semantics.module import Module


class Cause(IdentityEnum):
    """What it is that the compiler cannot keep in its graph."""

    NUMBER = "number"
    """A tensor becomes a Python number."""
    DECISION = "decision"
    """Python decides by a tensor."""
    SHAPE = "shape"
    """A size depends on the values of a tensor."""
    CALL = "call"
    """A function is called that the compiler leaves to Python."""
    STATE = "state"
    """A Python number or list changes in each call: nothing breaks, but everything is compiled again."""


@dataclass(frozen=True, slots=True)
class Break:
    """A place in compiled code that breaks the graph, or has it compiled again.

    ``node`` is what does it: the tensor that is asked, or the call.
    """

    cause: Cause
    node: cst.CSTNode
    region: Region


def graph_break(module: Module, node: cst.CSTNode) -> Break | None:
    """Return how evaluating ``node`` itself, apart from what lies in it, breaks the graph."""
    if not Compilation.of(module).entries or is_test(module):
        return None
    found = _cause(module, node)
    if found is None:
        return None
    cause, culprit = found
    region = Compilation.of(module).region(node)
    if region is None or _allowed(module, cause) or only_on_failure(module, node):
        return None
    along = (node, *region.path)
    if any(places.throttled(module, place) or _in_handler(module, place) for place in along):
        return None
    if cause is Cause.CALL and any(_below_condition(module, place) for place in along):
        return None
    return Break(cause, culprit, region)


def _cause(module: Module, node: cst.CSTNode) -> tuple[Cause, cst.CSTNode] | None:
    state = grown(module, node)
    if state is not None:
        return Cause.STATE, state
    if isinstance(node, cst.Call):
        if _untraced(module, node):
            # What is written out is converted on the way.
            return None if _inside_untraced(module, node) else (Cause.CALL, node)
        if _number(module, node):
            return None if _inside_untraced(module, node) else (Cause.NUMBER, node)
        if asking_function(module, node) in ASKING:
            return Cause.DECISION, node
    if isinstance(node, (cst.Call, cst.Subscript)):
        return (Cause.SHAPE, node) if _sized_by_data(module, node) else None
    if isinstance(node, cst.Assert):
        return None
    tensor = next(_tensors_asked(module, node), None)
    return (Cause.DECISION, tensor) if tensor is not None else None


# --- what is converted, asked, called ---------------------------------------------------------------


_NUMERIC = frozenset({Kind.TENSOR, Kind.BATCH, Kind.NDARRAY})
_CONVERTING_BUILTINS = frozenset(f"builtins.{name}" for name in ("float", "int", "bool", "complex", "range"))


def _number(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes Python numbers of a tensor, wherever that is."""
    func = call.func
    if isinstance(func, cst.Attribute) and not call.args:
        name = func.attr.value
        if name == "item":
            return module.value(func.value).kind in (*_NUMERIC, Kind.UNKNOWN)
        if name == "tolist":
            return module.value(func.value).kind in _NUMERIC
    qualified = module.qualified(func) or ""
    if qualified not in _CONVERTING_BUILTINS and not qualified.startswith("math."):
        return False
    return any(
        not arg.star and (module.value(arg.value).kind is Kind.TENSOR or every(_reduced(module, arg.value)))
        for arg in call.args
    )


def _tensors_asked(module: Module, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the tensors by which Python decides, wherever they are."""
    if isinstance(node, cst.Comparison):
        # ``x in (a, b)`` is traced, ``a in x`` is not.
        yield from (
            tensor for tensor in truth_tests(module, node) if module.value(tensor).kind is Kind.TENSOR
        )
        return
    asked = _asked(node)
    if asked is None or (isinstance(asked, cst.Comparison) and len(asked.comparisons) > 1):
        return  # a chain asks by itself
    if module.value(asked).kind is Kind.TENSOR or every(_reduced(module, asked)):
        yield asked


def _asked(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return what Python asks for its truth to evaluate ``node`` itself."""
    match node:
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) | cst.CompIf(test=test):
            while isinstance(test, cst.BooleanOperation):
                test = test.right  # its left operand is asked by itself
            return test
        case cst.UnaryOperation(operator=cst.Not(), expression=test) | cst.BooleanOperation(left=test):
            return test
    return None


_REDUCTIONS = frozenset(
    {"all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "median", "min"}
    | {"norm", "prod", "std", "sum", "var"}
)


@traced(Through.OPERANDS)
def _reduced(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a value of unknown kind is what a reduction gives: ``x.sum() > 0`` for whatever ``x``.

    Of the things that are handed to compiled code only tensors and arrays have such methods, and the
    compiler knows the values of neither.
    """
    if path or not isinstance(node, cst.BaseExpression):
        return None
    if module.value(node).kind not in (Kind.UNKNOWN, Kind.BOOL, Kind.NUMBER):
        return False
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))):
            given = module.value(owner).kind
            return name in _REDUCTIONS and module.qualified(node.func) is None and given is Kind.UNKNOWN
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]
        ):
            identity = isinstance(operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
            return not identity and any(every(_reduced(module, side)) for side in (left, right))
        case cst.BinaryOperation(left=left, right=right):
            return any(every(_reduced(module, side)) for side in (left, right))
        case _:
            return None


def _sized_by_data(module: Module, node: cst.Call | cst.Subscript) -> bool:
    if not shape_wait(module, node):
        return False
    if isinstance(node, cst.Subscript):
        # Assigning through a mask is traced; so is a look-up by a number that the function is given.
        stored = isinstance(module.tree.parent(node), cst.AssignTarget)
        return not stored and indexed_by_number(module, node) is None
    name = last_name(node.func)
    return module.qualified(node.func) not in SIZED_BY_SCALARS and name not in (*READING_SCALARS, "pad")


def _untraced(module: Module, call: cst.Call) -> bool:
    qualified = module.qualified(call.func)
    if qualified in UNTRACED:
        return True
    if qualified in DRAWN_NUMBERS:
        sized = any(
            arg.star or (arg.keyword is not None and arg.keyword.value == "size") for arg in call.args
        )
        return not sized and len(call.args) <= DRAWN_NUMBERS[qualified]
    if qualified == "copy.deepcopy":
        return bool(call.args) and module.value(call.args[0].value).kind in (Kind.TENSOR, Kind.MODULE)
    func = call.func
    if qualified is None and isinstance(func, cst.Attribute) and func.attr.value in LOGGING_METHODS:
        return is_logger(module, func.value)
    return False


def _inside_untraced(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` stands in the arguments of a call that is left to Python itself."""
    for parent in module.tree.ancestors(node):
        if isinstance(parent, cst.Call) and _untraced(module, parent):
            return True
        if isinstance(parent, (cst.BaseCompoundStatement, cst.SimpleStatementLine, *FUNCTIONS)):
            return False
    return False


# --- where it stands --------------------------------------------------------------------------------


def _in_handler(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` runs only after something else has failed."""
    return any(not isinstance(chosen, cst.MatchCase) for chosen in module.flow.alternatives(node))


def _below_condition(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a decision of its function may leave ``node`` out of what is traced."""
    if any(isinstance(chosen, cst.MatchCase) for chosen in module.flow.alternatives(node)):
        return True
    return module.flow.is_conditional(node)


_SETTINGS = {
    Cause.NUMBER: ("capture_scalar_outputs", "CAPTURE_SCALAR_OUTPUTS"),
    Cause.SHAPE: ("capture_dynamic_output_shape_ops", "CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS"),
    Cause.CALL: ("reorderable_logging_functions", "ignore_logging_functions", "ignore_logger_methods"),
    Cause.STATE: ("allow_unspec_int_on_nn_module",),
}


def _allowed(module: Module, cause: Cause) -> bool:
    """Return whether the file sets an option of the compiler under which this is no break."""
    return any(module.tree.mentions(option) for option in _SETTINGS.get(cause, ()))


# --- state that grows with each call: counters and lists that outlive it -----------------------------

_GROWING = frozenset({"append", "extend", "insert"})
_SHRINKING = frozenset({"clear", "pop", "popleft", "remove"})


def grown(module: Module, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the counter or list that ``node``, a statement or a call,
    makes larger than it was a call before.

    ``self.calls += 1`` where a constructor sets the number and nothing else does, ``calls += 1`` where it is
    global, ``outputs.append(x)`` where nothing empties the list.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in _GROWING:
            return owner if _list_that_stays(module, owner) else None
        case cst.AugAssign(target=target, value=cst.List()) if _adds(node) is not None:
            return target if _list_that_stays(module, target) else None
    added = _adds(node)
    if added is None:
        return None
    counter, step = added
    constant = module.value(step).constant
    counts = type(constant) is int and constant != 0
    return counter if counts and _number_that_stays(module, counter) else None


def _adds(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the target of ``x += y`` or ``x = x + y``, and what is added to it."""
    match node:
        case cst.AugAssign(target=target, operator=cst.AddAssign(), value=step):
            return target, step
        case cst.Assign(
            targets=[cst.AssignTarget(target=target)],
            value=cst.BinaryOperation(left=left, operator=cst.Add(), right=step),
        ) if alike(left, target):
            return target, step
    return None


def _number_that_stays(module: Module, target: cst.BaseExpression) -> bool:
    if isinstance(target, cst.Subscript):
        # An item of a dictionary that the module holds, counted by name.
        return _starts_empty(module, _start(module, target.value), cst.Dict)
    start = _start(module, target)
    return start is not None and type(module.value(start).constant) is int


def _list_that_stays(module: Module, target: cst.BaseExpression) -> bool:
    start = _start(module, target)
    return _starts_empty(module, start, cst.List) and not _shrinks(module, target)


def _starts_empty(
    module: Module, start: cst.BaseExpression | None, display: type[cst.BaseExpression]
) -> bool:
    if isinstance(start, display):
        return True
    made = module.qualified(start.func) if isinstance(start, cst.Call) and not start.args else None
    return made == ("builtins.list" if display is cst.List else "builtins.dict")


def _start(module: Module, target: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return what a name or attribute starts as, if nothing but additions changes it."""
    if isinstance(target, cst.Attribute):
        return _start_of_attribute(module, target)
    if not isinstance(target, cst.Name):
        return None
    scope = module.names.lookup(target.value, target)
    if scope is None or scope is not module.names.module_scope:
        return None
    bindings = scope.bindings.get(target.value, ())
    starts = [binding for binding in bindings if _adds(_statement(module, binding.node)) is None]
    if len(starts) != 1 or starts[0].kind is not BindingKind.ASSIGN or starts[0].path:
        return None
    return starts[0].value if module.function(starts[0].node) is None else None


def _start_of_attribute(module: Module, target: cst.Attribute) -> cst.BaseExpression | None:
    owner = module.classes.instance_class(target.value)
    if owner is None or module.classes.info(owner).kind is not Kind.MODULE:
        return None
    family = {*module.classes.heirs(owner), *(info.node for info in module.classes.info(owner).lineage), None}
    starts = [
        binding
        for binding in module.names.attributes.get(target.attr.value, ())
        if _adds(_statement(module, binding.target)) is None
        and module.classes.instance_class(binding.target.value) in family
    ]
    if len(starts) != 1 or starts[0].kind is not BindingKind.ASSIGN or starts[0].path:
        return None
    method = module.function(starts[0].target)
    made_with = isinstance(method, cst.FunctionDef) and method.name.value == "__init__"
    return starts[0].value if made_with else None


def _statement(module: Module, target: cst.CSTNode) -> cst.CSTNode:
    """Return the assignment that a target belongs to."""
    parent = module.tree.parents[target]
    return module.tree.parents[parent] if isinstance(parent, cst.AssignTarget) else parent


def _shrinks(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether something in the file takes items out of what has this name."""
    for read in _namesakes(module, target):
        parent = module.tree.parent(read)
        if isinstance(parent, cst.Attribute) and parent.attr.value in _SHRINKING:
            return True
        if isinstance(parent, cst.Subscript):
            above = module.tree.parent(parent)
            if isinstance(above, (cst.Del, cst.AssignTarget)):
                return True
    return False


def _namesakes(module: Module, target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, cst.Attribute):
        yield from module.tree.attributes_by_name[target.attr.value]
    elif isinstance(target, cst.Name):
        yield from module.names.reads(target.value)
