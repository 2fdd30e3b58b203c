"""Whether the host needs a value from the device right away, or only keeps it to look at it later.

A size, the bound of a slice, a key, the condition of a loop, the path of a file: a tensor cannot stand there,
and nothing is gained by keeping it for later. Running totals, lists, logs and charts can wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import listed
from torchlint.semantics.api.frameworks import PROGRESS_BAR_METHODS
from torchlint.semantics.api.results import READING_SCALARS
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import Function, Loop
from torchlint.semantics.phases import Phase, phase, training_steps
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, is_target, sinks, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import is_text, written_arguments
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.usage import FILLING, feeds_host_engine, filled_here, reads_in_iteration
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


class Need(IdentityEnum):
    """What the host needs a value for; the first that holds is what is said of it."""

    SIZE = "the size of a tensor, a bound of a slice, how often a loop runs"
    DECISION = "whether a loop or function goes on"
    VALUE = "a key or index, or what only the host computes with"


# What takes numbers as sizes or bounds, by its last name, and the keywords of others that do.
_SIZED: Final = READING_SCALARS | listed(
    "",
    """
    Size arange as_strided empty eye full linspace logspace new_empty new_full new_ones new_zeros
    one_hot ones pad rand randint randn randperm range reshape split_with_sizes tile view zeros
    """,
)
_SIZES: Final = frozenset(
    {"dim_size", "k", "max_num_nodes", "minlength", "num_classes", "num_nodes", "output_size", "size"}
    | {"split_size_or_sections", "total_length"}
)
_FILLING: Final = frozenset({"fill_value", "value"})
_SAME_NUMBER: Final = frozenset(
    f"builtins.{name}"
    for name in (
        *("abs", "bool", "enumerate", "float", "int", "list", "max", "min", "reversed", "round", "set"),
        *("sorted", "sum", "tuple", "zip"),
    )
)
_SAME_METHODS: Final = frozenset(
    {"all", "any", "astype", "copy", "detach", "float", "int", "item", "items", "max", "mean", "min", "numpy"}
    | {"sum", "tolist", "values"}
)
_MODULES_OF_HOST: Final = frozenset({"bisect", "datetime", "fractions", "heapq", "os", "random", "time"})
_FILES: Final = frozenset({"builtins.open", "torch.load", "pathlib.Path", "numpy.load"})
_DECIDING: Final = (cst.Break, cst.Return, cst.Continue)
_OF_HOST: Final = (Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.NDARRAY)


def needed_on_host(module: Module, node: cst.BaseExpression) -> Need | None:
    """Return what the host needs ``node``, a number, list or array read from the device,
    for in the same iteration.

    None where all uses that are seen could wait until the loop is over, or take a tensor as well.
    """
    found = verdicts(module, node, _need)
    return next((need for need in Need if need in found), None)


def _need(module: Module, use: Use) -> Verdict[Need]:
    """Return what a use needs a number or an array for, or where it goes on in the same iteration."""
    match use.kind:
        case UseKind.ARGUMENT:
            return _of_argument(module, use)
        case UseKind.INDEX:
            return _of_index(module, use)
        case UseKind.OTHER if isinstance(use.part, (cst.DictElement, cst.DictComp)):
            return Need.VALUE
        case UseKind.TESTED:
            return _of_test(module, use)
        case UseKind.ASSIGNED:
            return reads_in_iteration(module, use.by)
        case UseKind.OPERAND | UseKind.COMPARED | UseKind.CHOICE:
            # What becomes a tensor again could have been one all along.
            return () if module.value(_whole(use)).kind is Kind.TENSOR else Standing(_whole(use))
        case UseKind.RETURNED:
            return _of_return(module, use)
        case UseKind.STORED if isinstance(use.by, cst.Subscript) and filled_here(module, use.by.value):
            return ONWARD
        case UseKind.STORED:
            return _read_behind(module, use.by)
        case UseKind.FORMATTED | UseKind.UNPACKED | UseKind.ITEM | UseKind.ITERATED | UseKind.ELEMENT:
            return ONWARD
        case UseKind.METHOD if use.name in _SAME_METHODS:
            return Standing(use.call)
    return ()


def _whole(use: Use) -> cst.BaseExpression:
    assert isinstance(use.by, cst.BaseExpression)
    return use.by


def _of_argument(module: Module, use: Use) -> Verdict[Need]:
    call, name = use.call, module.qualified(use.call.func)
    if _meets_host_data(module, use):
        return Need.VALUE
    if name in _SAME_NUMBER or (name or "").startswith("math."):
        return Standing(call) if name not in ("builtins.enumerate", "builtins.zip") else ONWARD
    keyword = use.argument.keyword.value if use.argument.keyword is not None else None
    if keyword in _SIZES:
        return Need.SIZE
    if isinstance(module.callee(call), cst.FunctionDef):
        return ONWARD
    if last_name(call.func) in _SIZED and keyword not in _FILLING and _is_size(module, use):
        return Need.SIZE
    if last_name(call.func) in FILLING and isinstance(call.func, cst.Attribute):
        owner = call.func.value
        return ONWARD if filled_here(module, owner) else _read_back(module, owner)
    if last_name(call.func) == "step" and isinstance(call.func, cst.Attribute):
        trains = module.value(call.func.value).kind in (Kind.OPTIMIZER, Kind.SCHEDULER)
        return Need.DECISION if trains else ()
    if (last_name(call.func) or "").startswith("load") or _is_list_for_others(module, use):
        return Need.VALUE
    package = (name or "").partition(".")[0]
    if package in _MODULES_OF_HOST or name in _FILES or feeds_host_engine(module, call):
        return Need.VALUE
    return ()


def _meets_host_data(module: Module, use: Use) -> bool:
    """Return whether an operation joins a copy with what is on the host
    for good: ``torch.min(limits, x.cpu())``.
    """
    if not (module.qualified(use.call.func) or "").startswith("torch.") or not isinstance(
        use.node, cst.BaseExpression
    ):
        return False
    if module.value(use.node).kind is not Kind.TENSOR:
        return False
    others = (arg.value for arg in use.call.args if arg is not use.argument)
    values = (module.value(other) for other in others)
    return any(value.kind is Kind.TENSOR and value.device is Device.CPU for value in values)


def _is_size(module: Module, use: Use) -> bool:
    """Return whether an argument of what takes sizes is one: not the tensor that is padded,
    nor what fills it.
    """
    name, first = last_name(use.call.func), use.argument is use.call.args[0]
    if name in ("full", "new_full") and not first:
        return False
    if name in ("one_hot", "pad") and module.qualified(use.call.func) is not None:
        return not first
    return module.value(use.node).kind not in (Kind.TENSOR, Kind.NDARRAY)


def _is_list_for_others(module: Module, use: Use) -> bool:
    """Return whether a list made by ``tolist`` is given to what the file does not show,
    which expects no tensor.

    What only takes the list in, and gives nothing that is used, could be given it later.
    """
    if not isinstance(use.node, cst.BaseExpression) or module.value(use.node).kind is not Kind.LIST:
        return False
    name = module.qualified(use.call.func)
    if name is None:
        answers = not isinstance(module.tree.parent(use.call), cst.Expr)
        return answers or module.value(use.call.func).kind is Kind.MODULE
    return name.partition(".")[0] not in ("torch", "numpy", "builtins", "json", "logging")


def _read_back(module: Module, owner: cst.BaseExpression) -> Verdict[Need]:
    """Return the items of a list that are read in the iteration that appends to it."""
    if not isinstance(owner, cst.Name):
        return ()
    loop = next(iter(module.flow.loops(owner)), None)
    bindings = module.names.bindings_at(owner.value, owner)
    reads = [read for binding in bindings for read in module.uses(binding)]
    items = (module.tree.parent(read) for read in reads if loop is None or module.tree.contains(loop, read))
    return tuple(Standing(item) for item in items if isinstance(item, cst.Subscript))


def _of_index(module: Module, use: Use) -> Verdict[Need]:
    if isinstance(use.part, cst.Slice):
        return Need.SIZE
    owner = use.by.value if isinstance(use.by, cst.Subscript) else None
    return Need.VALUE if owner is not None and module.value(owner).kind in _OF_HOST else ()


def _read_behind(module: Module, target: cst.CSTNode) -> tuple[Standing, ...]:
    """Return where a function reads the attribute or item that it has stored to before."""
    function = module.function(target)
    code, order = module.source(target), module.tree.order
    if function is None or not isinstance(target, (cst.Attribute, cst.Subscript)):
        return ()
    return tuple(
        Standing(read)
        for read in module.tree.within(function, module.tree.nodes(type(target)))
        if order[read] > order[target] and module.source(read) == code and not is_target(module, read)
    )


def _of_test(module: Module, use: Use) -> Verdict[Need]:
    """Return the need of a condition, which decides at once if a loop, a step or a function ends by it.

    Other branches may do what can wait, and so can the check that raises.
    """
    match use.by:
        case cst.While():
            return Need.DECISION
        case cst.If(body=body) if any(isinstance(part, _DECIDING) for part in module.tree.descendants(body)):
            return Need.DECISION
        case cst.If() as branch if _ends_loop_by_what_it_sets(module, branch):
            return Need.DECISION
        case cst.If() if _is_answer(use.node) and phase(module, use.by) is Phase.FORWARD:
            return Need.DECISION
        case cst.UnaryOperation():
            return Standing(use.by)
    return ()


def _ends_loop_by_what_it_sets(module: Module, branch: cst.If) -> bool:
    """Return whether it is ``if loss < best: n = 0``, ``else: n += 1``, and ``if n > 9: break`` or
    ``while n < 9``.
    """
    loop = next(iter(module.flow.loops(branch)), None)
    if not isinstance(loop, (cst.For, cst.While)):
        return False
    set_here = {
        part.target.value
        for part in module.tree.descendants(branch)
        if isinstance(part, (cst.AssignTarget, cst.AugAssign)) and isinstance(part.target, cst.Name)
    }
    return not set_here.isdisjoint(_asked_to_end(module, loop))


@remembered
def _asked_to_end(module: Module, loop: cst.For | cst.While) -> frozenset[str]:
    """Return the names in the conditions by which a loop ends."""
    asked = {*module.tree.names_in(loop.test)} if isinstance(loop, cst.While) else set[str]()
    for kind in (cst.Break, cst.Return):
        for leaving in module.tree.nodes_within(loop, kind):
            around = (each.construct for each in module.flow.branches(leaving, within=loop))
            branch = next((each for each in around if isinstance(each, cst.If)), None)
            if branch is not None:
                asked |= {*module.tree.names_in(branch.test)}
    return frozenset(asked)


def _is_answer(node: cst.CSTNode) -> bool:
    """Return whether a condition is a variable that was read before: ``if finite:``, ``if not finite:``."""
    return isinstance(node.expression if isinstance(node, cst.UnaryOperation) else node, cst.Name)


def _of_return(module: Module, use: Use) -> Verdict[Need]:
    """Return what the annotation promises to be a whole number or an answer is no loss that could be kept."""
    function = module.function(use.node)
    if not isinstance(function, cst.FunctionDef):
        return ()
    if module.value(use.node).kind is Kind.BOOL:
        return (Need.DECISION, ONWARD)
    if function.returns is not None and phase(module, use.node) is not Phase.EVALUATION:
        named = module.tree.names_in(function.returns.annotation)
        promised = "bool" in named or ("int" in named and "float" not in named)
        if promised and not _unread(module, function, use):
            return (Need.VALUE, ONWARD)
    return ONWARD


def _unread(module: Module, function: cst.FunctionDef, use: Use) -> bool:
    """Return whether all calls of a function drop the part of the result that a value is."""
    calls = module.callers(function)
    return bool(calls) and not any(any(sinks(module, Standing(c, use.path), _any_use)) for c in calls)


def _any_use(module: Module, use: Use) -> Verdict[bool]:
    return ONWARD if use.kind in (UseKind.ASSIGNED, UseKind.UNPACKED, UseKind.ITEM) else True


def only_recorded(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a number is only logged, stored or returned with others, as far as is seen."""
    return verdicts(module, node, _records) == {True}


def _records(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use keeps a number for people to look at, or computes with it."""
    match use.kind:
        case UseKind.ASSIGNED | UseKind.UNPACKED | UseKind.ELEMENT | UseKind.CHOICE | UseKind.FORMATTED:
            return ONWARD
        case UseKind.RETURNED:
            return True if use.path else ONWARD
        case UseKind.STORED:
            return True
        case UseKind.ARGUMENT if module.qualified(use.call.func) in _CONVERTING or _formats(use.call):
            return Standing(use.call)
        case UseKind.ARGUMENT if isinstance(module.tree.parent(use.call), cst.Expr):
            return True
        case UseKind.DISCARDED | UseKind.ELSEWHERE:
            return ()
    return False


_CONVERTING: Final = frozenset({"builtins.dict", "builtins.float", "builtins.int", "builtins.round"})


def _formats(call: cst.Call) -> bool:
    """Return whether a call puts what it is given into a text: ``"loss {:.3f}".format(loss)``."""
    match call.func:
        case cst.Attribute(value=cst.SimpleString() | cst.ConcatenatedString(), attr=cst.Name("format")):
            return True
    return False


def shown_at_once(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a total, list or meter
    that ``node`` goes into is written out in the same iteration of a loop.

    Then the device would be waited for there.
    """
    return _holder_is_shown(module, node, on_bar=False)


def followed_at_each_step(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a progress bar shows a number, or the total or meter that it goes into,
    in each iteration of a loop that does not train.

    Who follows a bar wants to see the number there. A training is followed as well by every hundredth step.
    """
    if phase(module, node) is Phase.TRAINING:
        return False
    return any(_is_shown(module, node, each, on_bar=True) for each in _rounds(module, node)) or (
        _holder_is_shown(module, node, on_bar=True)
    )


def _rounds(module: Module, node: cst.BaseExpression) -> tuple[Loop | Function, ...]:
    """Return what runs ``node`` once a step: the loop around it, or a function without one that a loop calls.

    A loop over a part of each step counts together with what is around it, which takes the steps.
    """
    loops, function = module.flow.loops(node), module.function(node)
    if not loops:
        return () if function is None else (function,)
    tree, (loop, *outer) = module.tree, loops
    if not outer:
        part = function is not None and places.heat(module, loop) is not places.Heat.HOT
        return (loop, function) if part and function is not None else (loop,)
    steps = (step for step in training_steps(module) if tree.contains(outer[0], step))
    return (loop, outer[0]) if any(not tree.contains(loop, step) for step in steps) else (loop,)


def _holder_is_shown(module: Module, node: cst.BaseExpression, *, on_bar: bool) -> bool:
    loops, holder = module.flow.loops(node), _holder(module, node)
    if not isinstance(holder, (cst.Name, cst.Attribute)):
        return False
    code, order = module.source(holder), module.tree.order[holder]
    rounds = _rounds(module, node) if on_bar else loops[:1]
    return any(_last_shown(module, each, type(holder), code, on_bar) > order for each in rounds)


@remembered
def _last_shown(
    module: Module, loop: Loop | Function, kind: type[cst.BaseExpression], code: str, on_bar: bool
) -> int:
    """Return where a loop or function last reads a total, list or meter that is written out there,
    perhaps ``on_bar`` alone; -1 if it does not.
    """
    order = module.tree.order
    shown = (
        order[read]
        for read in _spelt_in(module, loop, kind).get(code, ())
        if _is_shown(module, read, loop, on_bar=on_bar)
    )
    return max(shown, default=-1)


def _is_shown(module: Module, read: cst.BaseExpression, loop: Loop | Function, *, on_bar: bool) -> bool:
    """Return whether each iteration of a loop, or call of a function, writes out what it reads."""
    return any(
        module.tree.contains(loop, place)
        and not _now_and_then(module, place, loop)
        and (not on_bar or _is_on_bar(module, place))
        for place in sinks(module, read, _shown)
    )


def _now_and_then(module: Module, place: cst.CSTNode, loop: Loop | Function) -> bool:
    """Return whether some iterations of a loop pass a place by, every other one at least."""
    if places.throttled_in(module, place, loop):
        return True
    periodic = Throttling.of(module).is_periodic
    decisions = module.flow.decisions(place, within=loop)
    return any(periodic(decision.test, decision.holds) for decision in decisions)


def _is_on_bar(module: Module, place: cst.CSTNode) -> bool:
    """Return whether a progress bar gets a text, or what is given to it."""
    statement = module.flow.statement(place)
    return any(
        isinstance(outer, cst.Call) and _follows_steps(module, outer)
        for outer in (place, *module.tree.ancestors(place))
        if module.tree.contains(statement, outer)
    )


def logs_tensors(module: Module, call: cst.Call) -> bool:
    """Return whether it is Lightning's ``self.log``, which keeps the tensor until it is shown or written."""
    function = module.function(call)
    owner = module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if owner is None or module.callees(call):
        return False
    match call.func:
        case cst.Attribute(value=cst.Name("self"), attr=cst.Name("log" | "log_dict")):
            return module.classes.info(owner).lightning
        case _:
            return False


def _follows_steps(module: Module, call: cst.Call) -> bool:
    """Return whether a call shows numbers on a progress bar, or in a line that the next step overwrites."""
    if last_name(call.func) in PROGRESS_BAR_METHODS:
        return True
    ends_with = (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "end")
    return last_name(call.func) == "print" and any(module.value(text).constant == "\r" for text in ends_with)


@remembered
def _spelt_in(
    module: Module, loop: Loop | Function, kind: type[cst.BaseExpression]
) -> dict[str, list[cst.BaseExpression]]:
    """Return the names or attributes of a loop by their source."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for each in module.tree.nodes_within(loop, kind):
        found.setdefault(module.source(each), []).append(each)
    return found


def _holder(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return what the statement of a value gives it to: ``total += x``,
    ``losses.append(x)``, ``loss = x``, ``status["loss"] = x``.
    """
    match module.flow.statement(node):
        case cst.AugAssign(target=target):
            return target
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as kept)]) as line if line.value is node:
            return kept
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name() as kept))]):
            return kept
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)))):
            own = isinstance(owner, cst.Name) and owner.value != "self"
            return owner if own or name in ("add", "append", "update") else None
    return None


def _shown(module: Module, use: Use) -> Verdict[cst.CSTNode]:
    """Return where a value becomes text, or is given to a progress bar, log or chart."""
    match use.kind:
        case UseKind.FORMATTED:
            text = module.tree.parent(use.by)
            return (use.by, Standing(text)) if isinstance(text, cst.FormattedString) else use.by
        case UseKind.ARGUMENT:
            if _follows_steps(module, use.call):
                return use.call
            if use.node in written_arguments(module, use.call):
                return (use.call, Standing(use.call))
            return () if isinstance(module.callee(use.call), cst.FunctionDef) else Standing(use.call)
        case UseKind.ATTRIBUTE | UseKind.METHOD | UseKind.ITEM | UseKind.OPERAND | UseKind.ELEMENT:
            return Standing(_whole(use))
        case UseKind.ASSIGNED if not isinstance(module.tree.parent(use.by), cst.AugAssign):
            return reads_in_iteration(module, use.by)
        case UseKind.AUGMENTS if isinstance(use.by, cst.AugAssign) and is_text(module, use.node):
            return reads_in_iteration(module, use.by.target)
    return ()
