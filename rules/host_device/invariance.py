"""Tensors and modules that a hot loop does not change, and moves to the device at each step all the same.

``needless_move`` finds them, and ``hoisted`` writes the move before the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, insert_before, remove_statement, replace, unsafe
from torchlint.semantics.api.families import LAYERS_WITHOUT_PARAMETERS
from torchlint.semantics.api.results import NN_LOSSES
from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.names import BindingKind, ScopeKind
from torchlint.semantics.sharing import Fate, fate, fresh, other_names, writes_to
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.synchronisation import to_host
from torchlint.semantics.transfers import transferred
from torchlint.semantics.values import Device, Graph, Kind
from torchlint.syntax import alike

from .selections import is_mask_of_nodes, is_pattern
from .waits import waiting_place

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import StatementLoop
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding
    from torchlint.semantics.places import Hot

# What gives the same again when it is given the same.
_PURE_METHODS = frozenset(
    {
        "bfloat16",
        "bool",
        "contiguous",
        "detach",
        "double",
        "expand",
        "flatten",
        "float",
        "half",
        "int",
        "long",
    }
    | {"permute", "repeat", "reshape", "squeeze", "t", "transpose", "type", "unsqueeze", "view", "astype"}
)
_PURE_FUNCTIONS = frozenset({"torch.from_numpy", "torch.squeeze", "torch.unsqueeze"})
_LITERALS = (cst.Integer, cst.Float, cst.SimpleString, cst.Ellipsis, cst.UnaryOperation)
# Moving these takes as long as calling a function.
_NOTHING_TO_MOVE = LAYERS_WITHOUT_PARAMETERS | NN_LOSSES
_SETUP = frozenset({"__init__", "__post_init__", "build", "setup"})


@dataclass(frozen=True, slots=True)
class Repeated:
    """A move of something that stays the same: the call, what it moves, and where it is made each time."""

    call: cst.Call
    moved: cst.BaseExpression
    hot: Hot
    whole_module: bool


def needless_move(module: Module, call: cst.Call) -> Repeated | None:
    """Return what ``call`` moves to the device in every round of a hot place,
    though it never changes there.
    """
    moved = transferred(module, call)
    if moved is None:
        return None
    value = module.value(moved)
    whole = value.kind is Kind.MODULE
    if whole:
        if not isinstance(moved, (cst.Name, cst.Attribute)) or value.cls in _NOTHING_TO_MOVE:
            return None
    elif value.kind is not Kind.TENSOR or value.device is not Device.CPU or value.graph is Graph.ATTACHED:
        return None
    hot = waiting_place(module, call)
    if hot is None or not every(_stays_the_same(module, moved, call, hot)):
        return None
    if whole and (
        _moved_back(module, moved) or _taken_apart(module, moved, hot) or _refilled(module, moved, hot)
    ):
        return None
    return Repeated(call, moved, hot, whole)


@traced(Through.NOTHING)
def _stays_the_same(
    module: Module, node: cst.CSTNode, path: Path, call: cst.Call, hot: Hot
) -> bool | list[Source]:
    """Return whether an expression gives the same in every round of a hot place."""
    match node:
        case cst.Name():
            bindings = [b for b in module.bindings(node) if b.value is not call]
            return bool(bindings) and all(_outside(module, b, call, hot) for b in bindings)
        case cst.Attribute(value=cst.Name()):
            return set_up_once(module, node)
        case cst.Subscript():
            indices = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
            literal = len(indices) == len(node.slice) and all(isinstance(i, _LITERALS) for i in indices)
            return onward(node.value) if literal else False
        case cst.Call():
            parts = _computed_of(module, node)
            return onward(*(p for p in parts if not isinstance(p, _LITERALS))) if parts else False
        case _:
            return False


def _computed_of(module: Module, call: cst.Call) -> list[cst.BaseExpression]:
    """Return what a call computes its result of, and of nothing else;
    none for what may give something new.
    """
    if any(arg.star for arg in call.args):
        return []
    qualified = module.qualified(call.func)
    if qualified in _PURE_FUNCTIONS:
        return [arg.value for arg in call.args]
    if qualified is None and isinstance(call.func, cst.Attribute) and call.func.attr.value in _PURE_METHODS:
        return [call.func.value, *(arg.value for arg in call.args if not _is_dtype(module, arg))]
    return []


def _is_dtype(module: Module, arg: cst.Arg) -> bool:
    return module.value(arg.value).kind is Kind.DTYPE


def _outside(module: Module, binding: Binding, call: cst.Call, hot: Hot) -> bool:
    """Return whether a variable is given its value outside of the hot place, and the value left as it is."""
    if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION, BindingKind.AUGMENT):
        return False
    if hot.path or isinstance(hot.loop, FUNCTIONS):
        if binding.scope.kind is not ScopeKind.MODULE or module.function(call) is None:
            return False
    elif module.tree.contains(hot.loop, binding.node):
        return False
    return not writes_to(module, binding) and not _written_by_another_name(module, binding, hot)


def _written_by_another_name(module: Module, binding: Binding, hot: Hot) -> bool:
    """Return whether an alias, a view, an array of the same memory
    or an attribute is changed between the moves.
    """
    variables, attributes = other_names(module, binding)
    for other in variables:
        for use in module.uses(other):
            if writes_to(module, use) and _may_come_between(module, use, hot):
                return True
    return any(
        writes_to(module, node) and _may_come_between(module, node, hot)
        for attribute in attributes
        for node in module.tree.nodes(cst.Attribute)
        if _same(node, attribute)
    )


def _may_come_between(module: Module, node: cst.CSTNode, hot: Hot) -> bool:
    """Return whether code may run after the first round of a hot place and before the last one.

    What stands beside its outermost loop, in the same function, runs before or after all of it.
    """
    function = module.function(node)
    if isinstance(hot.loop, FUNCTIONS) or function is not module.function(hot.loop):
        return True
    outermost = [hot.loop, *module.flow.statement_loops(hot.loop)][-1]
    return module.tree.contains(outermost, node)


def never_changes(module: Module, mask: cst.BaseExpression) -> bool:
    """Return whether a mask is the same in every step: it depends on sizes alone, a constructor has made it,
    or it says which nodes of a graph belong to a split.
    """
    if is_pattern(module, mask) or is_mask_of_nodes(module, mask):
        return True
    return isinstance(mask, cst.Attribute) and set_up_once(module, mask)


def set_up_once(module: Module, attribute: cst.Attribute) -> bool:
    """Return whether ``self.x`` is only ever set where an instance is made,
    and nowhere else changed in place.
    """
    if module.classes.instance_class(attribute.value) is None:
        return False
    bindings = module.names.attributes.get(attribute.attr.value, ())
    if not bindings:
        return False
    if any(b.kind is not BindingKind.ASSIGN or not _in_setup(module, b.target) for b in bindings):
        return False
    return not any(
        writes_to(module, other) and not _in_setup(module, other)
        for other in module.tree.nodes(cst.Attribute)
        if _same(other, attribute)
    )


def _in_setup(module: Module, node: cst.CSTNode) -> bool:
    """Return whether an instance is made where ``node`` stands."""
    function = module.function(node)
    return isinstance(function, cst.FunctionDef) and function.name.value in _SETUP


def _same(one: cst.Attribute, other: cst.Attribute) -> bool:
    return one.attr.value == other.attr.value and alike(one.value, other.value)


def _moved_back(module: Module, moved: cst.BaseExpression) -> bool:
    """Return whether the file also moves a module to the host, or between devices, to make room."""
    text = module.source(moved)
    for call in module.tree.nodes(cst.Call):
        if isinstance(call.func, cst.Attribute) and module.source(call.func.value) == text:
            if call.func.attr.value == "cpu" or (call.func.attr.value == "to" and to_host(module, call)):
                return True
    return False


def _taken_apart(module: Module, moved: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether the hot place goes through the parts of a module, which may be to change them."""
    text = module.source(hot.loop)
    return any(f"{module.source(moved)}.{name}(" in text for name in ("modules", "named_modules", "children"))


# --- the fix ----------------------------------------------------------------------------------------


def hoisted(module: Module, repeated: Repeated) -> Fix | None:
    """Return the fix that moves once, in front of the outermost loop in which nothing of it changes."""
    call, moved = repeated.call, repeated.moved
    root = _root(moved)
    if (
        repeated.hot.path
        or not isinstance(repeated.hot.loop, (cst.For, cst.While))
        or not isinstance(root, cst.Name)
    ):
        return None
    bindings = [b for b in module.bindings(root) if b.value is not call]
    if len(bindings) != 1 or module.function(bindings[0].node) is not module.function(call):
        return None
    if bindings[0].scope.kind is ScopeKind.CLASS:
        return None  # it is an attribute, which anybody may read
    loop = _outermost(module, call, bindings[0])
    if loop is None:
        return None
    code = module.source(call)
    if repeated.whole_module:
        return _statement_hoisted(module, call, loop)
    if "#" in code or "\n" in code:
        return None
    reads = module.uses(bindings[0])
    if not all(_moved_alike(module, use, call, loop, code) for use in reads):
        return None
    worst = fate(module, bindings[0])
    if worst is Fate.WRITTEN:
        return None
    above = insert_before(module, loop, f"{root.value} = {code}")
    edits = replace(module, call, root.value)
    message = f"Move `{root.value}` once before the loop"
    value = bindings[0].value
    alone = value is not None and not bindings[0].path and fresh(module, value)
    only_read = worst is Fate.READ and alone and module.value(moved).graph is Graph.DETACHED
    return graded(module, message, above, edits, risk=None if only_read else _SHARED)


_SHARED = "every iteration gets the same tensor, so that changes to it, or its graph, carry over"


def _statement_hoisted(module: Module, call: cst.Call, loop: cst.For | cst.While) -> Fix | None:
    parent = module.tree.parent(call)
    if not isinstance(parent, (cst.Expr, cst.Assign)):
        return None
    above = insert_before(module, loop, module.source(parent))
    message = (
        f"Move `{module.source(call.func.value)}` once before the loop"
        if isinstance(call.func, cst.Attribute)
        else "Move it once"
    )
    return unsafe(
        module,
        message,
        above,
        remove_statement(module, parent),
        risk="it moves even if the loop never runs, and changes to it carry over to the next iteration",
    )


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the variable in ``torch.from_numpy(x).float()``; the node itself where it is no such chain."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if (
                name in _PURE_METHODS
            ):
                node = owner
            case cst.Call(args=[cst.Arg(value=only)]):
                node = only
            case _:
                return node


def _outermost(module: Module, call: cst.Call, binding: Binding) -> cst.For | cst.While | None:
    """Return the outermost loop that always runs ``call``, and changes nothing that it names."""
    found: StatementLoop | None = None
    for loop in module.flow.loops(call):
        if not isinstance(loop, (cst.For, cst.While)) or not _always_runs(module, loop, call):
            break
        if not _known_before(module, call, binding, loop):
            break
        found = loop
    return found


def _always_runs(module: Module, loop: StatementLoop, call: cst.Call) -> bool:
    """Return whether each iteration of a loop comes to a call, and leaves no context behind it."""
    flow = module.flow
    around = (*flow.tries(call), *flow.alternatives(call), *flow.contexts(call))
    return not flow.is_conditional(call, within=loop) and not any(
        module.tree.contains(loop, holder) for holder in around
    )


def _known_before(module: Module, call: cst.Call, binding: Binding, loop: cst.For | cst.While) -> bool:
    """Return whether all that ``call`` names has its value in front of ``loop``, and keeps it."""
    order, tree = module.tree.order, module.tree
    if tree.contains(loop, binding.node) or order[binding.node] > order[loop]:
        return False
    for node in tree.descendants(call):
        if isinstance(node, cst.Name) and module.names.is_read(node):
            for other in module.bindings(node):
                if other.value is not call and (
                    tree.contains(loop, other.node) or order[other.node] > order[loop]
                ):
                    return False
        if isinstance(node, cst.Attribute) and any(
            tree.contains(loop, other.target) for other in module.names.attributes.get(node.attr.value, ())
        ):
            return False
    return True


def _moved_alike(module: Module, use: cst.Name, call: cst.Call, loop: cst.CSTNode, code: str) -> bool:
    """Return whether a read of the variable is over when the loop begins,
    or in a move of the same spelling.
    """
    if (
        not module.tree.contains(loop, use)
        and module.tree.order[use] < module.tree.order[loop]
        and module.function(use) is module.function(call)
    ):
        return True
    return any(
        isinstance(parent, cst.Call) and module.source(parent) == code
        for parent in module.tree.ancestors(use)
        if not isinstance(parent, cst.BaseStatement)
    )


def _refilled(module: Module, moved: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether the hot place gives a module new parameters
    or buffers: ``self.conv.weight.data = kernel``.
    """
    code = module.source(moved)
    return any(
        isinstance(part.target, cst.Attribute) and module.source(part.target).startswith(f"{code}.")
        for part in module.tree.nodes_within(hot.loop, cst.AssignTarget)
    )
