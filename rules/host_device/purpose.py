"""Why a program brings tensors to the host: to save device memory, to write results, to compute there.

A copy that the author needs is no mistake, however often it is made. What tells is what the code says
(comments, the names of switches and variables) and what it does next to the copy or with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.comments import Topic, says, speaks_of
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, evaluated_only, phase
from torchlint.semantics.places import Cause
from torchlint.semantics.remembered import remembered
from torchlint.semantics.repetition import frequency
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import conversion, host_copy
from torchlint.semantics.usage import handed_to
from torchlint.semantics.values import Graph, Kind

from . import stakes
from .destinations import WRITING, steps_environment, writes_out

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function, Loop
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot


def slight_wait(module: Module, node: cst.CSTNode, why: str | None) -> str | None:
    """Return why little is at stake in a wait which its author could hardly spare, for a reason given;
    None where that is not so.
    """
    if why is None and _only_without(module, node):
        why = "only runs for None, which is not the default"
    if why is None and _answers_evaluation(module, node):
        why = "an evaluation calls the function for its result"
    return stakes.slight(module, node, why) if why is not None else None


def _answers_evaluation(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a function that the loop of an evaluation calls waits once for each batch,
    or for each entry of a dict that it returns.

    Such a function gives its callers Python numbers or arrays by its interface, which would have to change
    for them all.
    """
    hot, function = places.hot(module, node), module.function(node)
    if hot is None or not hot.path or not all(map(places.over_entries, module.flow.loops(node))):
        return False
    return frequency(module, node) is Frequency.BATCH and not _is_done_for_effect(module, function)


def _is_done_for_effect(module: Module, function: Function | None) -> bool:
    """Return whether a function gives its callers nothing: ``self.total += loss.item()``."""
    answers = module.tree.nodes(cst.Return, cst.Yield)
    return isinstance(function, cst.FunctionDef) and not any(
        not isinstance(each, cst.Return) or each.value is not None
        for each in module.tree.within(function, answers)
    )


def _only_without(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` runs only for None, where a number is the default:
    ``if self.momentum is None:``.
    """
    return any(
        branch.holds and _is_set_by_default(module, branch.test) for branch in module.flow.branches(node)
    )


def _is_set_by_default(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether a condition is that an attribute is None
    which the constructor sets to a number by default.
    """
    match test:
        case cst.Comparison(
            left=cst.Attribute(attr=cst.Name(value=name)) as attribute,
            comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))],
        ) if (owner := module.classes.instance_class(attribute.value)) is not None:
            given = [
                binding.value
                for binding in module.names.attributes.get(name, ())
                if module.tree.enclosing(binding.target, cst.ClassDef) is owner
            ]
            return bool(given) and all(each is not None and _is_optional(module, each) for each in given)
    return False


def _is_optional(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a variable is a parameter that is a number by default."""
    bindings = module.bindings(node)
    defaults = [each.node.default for each in bindings if isinstance(each.node, cst.Param)]
    return 0 < len(defaults) == len(bindings) and all(
        default is not None and module.value(default).kind is Kind.NUMBER for default in defaults
    )


def keeps_results(module: Module, copy: cst.Call, hot: Hot) -> bool:
    """Return whether a program that does not train copies what a model gave it, at most once a round,
    as an array, a tensor or a list.

    Results are wanted in host memory in the end, and collected on the device they take its memory. A copy of
    each item of a batch waits far more often than that, and a number, such as a loss or how many were right,
    is no result to keep: the device could add it up. In a forward pass an algorithm in NumPy goes on with the
    copy, which would have to be written anew, or a bank of the object keeps it.
    """
    if becomes_number(module, copy):
        return False
    current = phase(module, copy)
    if current is Phase.TRAINING and not _trains_nothing(module, copy, hot):
        return False
    if isinstance(hot.loop, cst.FunctionDef):
        return current is not Phase.FORWARD or _becomes_array(module, copy) or _is_banked(module, copy)
    inner = next(iter(module.flow.loops(copy)), None)
    return inner is hot.loop or inner is None or places.computes(module, inner) or _is_of_one_input(copy)


def _is_of_one_input(copy: cst.Call) -> bool:
    """Return whether a copy is of a part that is looked up in what a model gave for one of its inputs:
    ``outputs[i]["boxes"].cpu()``.

    Those of other inputs have other sizes, so that no single copy brings them all.
    """
    node: cst.BaseExpression = copy
    while isinstance(node, (cst.Call, cst.Attribute)):
        node = node.func if isinstance(node, cst.Call) else node.value
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
            return True
    return False


def _is_banked(module: Module, copy: cst.Call) -> bool:
    """Return whether a list of the object takes the copy in: ``self.bank.append(basis.cpu())``."""
    argument = module.tree.parent(copy)
    match module.tree.parent(argument) if isinstance(argument, cst.Arg) else None:
        case cst.Call(func=cst.Attribute(value=cst.Attribute(), attr=cst.Name("append"))):
            return True
    return False


def _trains_nothing(module: Module, copy: cst.Call, hot: Hot) -> bool:
    """Return whether autograd is off for whole rounds, not only around a copy that a step of training makes,
    or no round computes gradients.
    """
    place = hot.loop if isinstance(hot.loop, (cst.For, cst.While)) else copy
    return grad(module, place) is Grad.OFF or _only_runs(module, copy, hot)


def _only_runs(module: Module, copy: cst.Call, hot: Hot) -> bool:
    """Return whether a loop computes no gradients, and the copy is of what a model gave without a graph.

    It collects the features of a whole data set, whatever that is called.
    """
    tensor = host_copy(module, copy)
    if tensor is None or hot.reason.cause is not Cause.MODULE_CALL:
        return False
    return module.value(tensor).graph is Graph.DETACHED


def reduced_by(module: Module, copy: cst.Call) -> str | None:
    """Return ``sum`` in ``correct.cpu().sum()``: how the host makes one number of what it has copied."""
    call = module.tree.method_call(copy)
    name = last_name(call.func) if call is not None and not call.args else None
    return name if name in ("sum", "mean") else None


def becomes_number(module: Module, copy: cst.Call) -> bool:
    """Return whether the program goes on with a single number: ``loss.cpu()``, ``correct.cpu().sum()``,
    ``loss.item()``.
    """
    tensor = host_copy(module, copy)
    if tensor is None:
        tensor = conversion(module, copy)
        if last_name(copy.func) != "tolist":
            return True
    single = tensor is not None and has_no_dimension(module, tensor) is not False
    return single or reduced_by(module, copy) is not None or is_measured(module, copy)


def is_measured(module: Module, copy: cst.Call) -> bool:
    """Return whether the host computes a loss from a copy: ``criterion(pred.cpu(), target.cpu())``."""
    call = module.tree.call_given(copy)
    return call is not None and has_no_dimension(module, call) is not False


def narrowed_by(module: Module, copy: cst.Call) -> str | None:
    """Return ``argmax`` if all that the host does with a copy is to take that over a dimension,
    which the device does sooner, and copies the result alone.
    """
    found = verdicts(module, copy, _narrows)
    name = next(iter(found), None)
    return name if len(found) == 1 and name else None


_NARROWING: Final = frozenset({"amax", "argmax", "argmin", "argsort", "max", "min", "topk"})
_ALIKE: Final = frozenset(
    {"astype", "clone", "contiguous", "copy", "data", "detach", "double", "exp", "float", "log_softmax"}
    | {"numpy", "permute", "reshape", "sigmoid", "softmax", "squeeze", "transpose", "unsqueeze", "view"}
)
_ASKED: Final = frozenset({"dim", "ndim", "numel", "shape", "size"})


def _narrows(module: Module, use: Use) -> Verdict[str]:
    """Return by what a use makes less of a copy; empty if it needs all of it."""
    match use.kind:
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.METHOD | UseKind.ATTRIBUTE if use.name in _ASKED:
            return ()
        case UseKind.METHOD if use.name in _NARROWING and use.call.args:
            return use.name
        case UseKind.METHOD if use.name in _ALIKE:
            return Standing(use.call)
        case UseKind.ATTRIBUTE if use.name in _ALIKE:
            return ONWARD
        case UseKind.ARGUMENT if use.call.args[0] is use.argument:
            package, _, name = (module.qualified(use.call.func) or "").rpartition(".")
            if package in ("numpy", "torch", "torch.nn.functional"):
                if name in _NARROWING and len(use.call.args) > 1:
                    return name
                if name in _ALIKE:
                    return Standing(use.call)
    return ""


# --- to save memory ---------------------------------------------------------------------------------


def offloads(module: Module, copy: cst.Call) -> bool:
    """Return whether a copy to the host saves device memory: the code says so, or clears caches beside."""
    if (
        says(module, copy, Topic.MEMORY)
        or _documents(module, copy, Topic.SPARING)
        or _below_sparing(module, copy)
    ):
        return True
    return _clears(module, copy) or _deletes(module, copy)


def _documents(module: Module, copy: cst.Call, topic: Topic) -> bool:
    """Return whether the docstring of the function around speaks of something."""
    function = module.function(copy)
    if not isinstance(function, cst.FunctionDef):
        return False
    text = function.get_docstring(clean=False)
    return text is not None and speaks_of(text, topic)


def _deletes(module: Module, copy: cst.Call) -> bool:
    """Return whether the next statements beside an evaluation's copy delete what was copied:
    ``del logits``.
    """
    root: cst.CSTNode = copy
    while isinstance(root, (cst.Call, cst.Attribute, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    statement = module.tree.statement(copy)
    block = module.tree.parent(statement)
    if not isinstance(root, cst.Name) or not isinstance(block, cst.IndentedBlock):
        return False
    if phase(module, copy) is Phase.TRAINING:
        return False
    return any(
        isinstance(part, cst.Del)
        and any(isinstance(n, cst.Name) and n.value == root.value for n in module.tree.descendants(part))
        for other in block.body
        if isinstance(other, cst.SimpleStatementLine)
        if module.tree.order[other] > module.tree.order[statement]
        for part in other.body
    )


def knows_of_waiting(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a comment beside a statement says that the host waits there,
    and not that it is to change.
    """
    return says(module, node, Topic.WAITING) and not says(module, node, Topic.CHANGE)


def _below_sparing(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a branch taken to save memory, or a function called after that, holds ``node``."""
    tests = (branch.test for branch in module.flow.branches(node) if branch.holds)
    if any(has(word, Role.SPARING) for test in tests for word in module.tree.names_in(test)):
        return True
    function = module.function(node)
    return isinstance(function, cst.FunctionDef) and has(function.name.value, Role.SPARING)


def _clears(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the loop or function around collects garbage or empties caches each time, too."""
    if phase(module, node) is Phase.TRAINING:
        return False
    loops = module.flow.loops(node)
    around = loops[0] if loops else module.function(node)
    if around is None:
        return False
    return module.tree.holds(around, _clearing(module))


@remembered
def _clearing(module: Module) -> list[cst.Call]:
    """Return the calls that collect garbage or empty caches each time, in source order."""
    return [
        call
        for call in module.tree.nodes(cst.Call)
        if module.qualified(call.func) == "gc.collect" or has(last_name(call.func), Role.EMPTYING)
        if not places.throttled(module, call)
    ]


# --- to write results -------------------------------------------------------------------------------

_SAVING = (Role.SAVING, Role.DRAWING)


def writes_results(module: Module, hot: Hot) -> bool:
    """Return whether a loop that does not train writes what it computes: files, pictures, videos.

    Written in each round, or, by a loop that goes over something else than a loader, where a switch asks
    for it. An evaluation that can save its predictions as well is there for its numbers.
    """
    return isinstance(hot.loop, (cst.For, cst.While)) and _writes_in_rounds(module, hot.loop)


@remembered
def _writes_in_rounds(module: Module, loop: cst.For | cst.While) -> bool:
    if phase(module, loop.body) is Phase.TRAINING:
        return False
    switched = not places.over_loader(module, loop)
    return any(
        writes_out(module, call)
        and not _to_the_terminal(module, call)
        and (switched or not module.flow.is_conditional(call, within=loop))
        and not places.throttled(module, call)
        for call in module.tree.nodes_within(loop.body, cst.Call)
    )


def _to_the_terminal(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``tqdm.write(…)``, ``sys.stdout.write(…)``,
    and what draws a progress bar or a chart of losses.
    """
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    if owner is None:
        return False
    on_screen = module.qualified(owner) in ("sys.stdout", "sys.stderr")
    return on_screen or ends(last_name(owner), Role.PROGRESS, Role.LOGGER)


def in_writer(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a function that is called after writing holds ``node``."""
    function = module.function(node)
    return isinstance(function, cst.FunctionDef) and begins(function.name.value, *WRITING)


def below_saving(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a switch such as ``save_images`` or ``capture_video`` asks
    for what is done at ``node``.
    """
    tests = (branch.test for branch in module.flow.branches(node) if branch.holds)
    return any(_asks_for_saving(module, test) for test in tests)


def _asks_for_saving(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether it is ``save_images``,
    ``training and capture_video``, ``test and results_save_path``.
    """
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _asks_for_saving(module, test.left) or _asks_for_saving(module, test.right)
    word = last_name(test)
    if word is None:
        return False
    return begins(word, *_SAVING) or (has(word, *_SAVING) and word.endswith(("path", "dir", "file")))


def not_a_list_yet(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` runs only for an argument that is not a list or tuple, as it usually is."""
    return any(
        _is_check_for_list(module, branch.test, holds=branch.holds) for branch in module.flow.branches(node)
    )


def _is_check_for_list(module: Module, test: cst.BaseExpression, *, holds: bool) -> bool:
    """Return whether a condition that holds or not says that something is no list or tuple."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, holds = test.expression, not holds
    if holds:
        return False
    if not isinstance(test, cst.Call) or module.qualified(test.func) != "builtins.isinstance":
        return False
    return len(test.args) == 2 and not module.tree.names_in(test.args[1].value).isdisjoint({"list", "tuple"})


def leaves_process(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a method of an actor of Ray returns what is computed at ``node``, to another process."""
    function = module.function(node)
    owner = module.classes.owner(function) if function is not None else None
    if owner is None or not isinstance(module.flow.statement(node), cst.Return):
        return False
    decorators = (each.decorator for each in owner.decorators)
    makers = (each.func if isinstance(each, cst.Call) else each for each in decorators)
    return any(module.qualified(maker) == "ray.remote" for maker in makers)


def gives_gradient(module: Module, copy: cst.Call) -> bool:
    """Return whether the backward pass of an autograd ``Function`` returns a copy:
    a gradient has to be where the input is that it is for.
    """
    function = module.function(copy)
    if not isinstance(function, cst.FunctionDef) or function.name.value != "backward":
        return False
    owner = module.classes.owner(function)
    if owner is None or not isinstance(module.flow.statement(copy), cst.Return):
        return False
    return module.classes.info(owner).inherits("torch.autograd.Function")


# --- to compute on the host -------------------------------------------------------------------------


def computes_on_host(module: Module, copy: cst.Call) -> bool:
    """Return whether code that does not train says that it goes on with the copy on the host.

    It calls the copy or the device ``host``, or makes the copy double, for which many accelerators lack
    the units; or it is an optimizer that steps there. A docstring, or a comment at the copy, may say so of
    any code.
    """
    if _documents(module, copy, Topic.HOST):
        return True
    if says(module, copy, Topic.HOST) and not says(module, copy, Topic.CHANGE):
        return True
    function = module.function(copy)
    owner = module.classes.owner(function) if function is not None else None
    if owner is not None and module.classes.info(owner).kind is Kind.OPTIMIZER:
        return True
    if phase(module, copy) is Phase.TRAINING:
        return False
    if any(has(last_name(arg.value), Role.HOST) for arg in copy.args):
        return True
    node: cst.CSTNode = copy
    for parent in module.tree.ancestors(copy):
        match parent:
            case cst.Attribute(attr=cst.Name(value="double")) if parent.value is node:
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) if parent.value is node:
                return has(name, Role.HOST)
            case cst.Attribute() | cst.Call():
                node = parent
            case _:
                return False
    return False


def scored_elsewhere(module: Module, copy: cst.Call) -> bool:
    """Return whether an evaluation hands the copy to an object of which the file shows nothing but its name.

    Scores of texts, boxes and the like are computed on the host. So are those that a library computes
    from arrays.
    """
    current = phase(module, copy)
    if current not in (Phase.TRAINING, Phase.FORWARD) and _becomes_array(module, copy):
        if handed_to(module, copy, _hands_array):
            return True
    if not evaluated_only(module, copy):
        return False
    if _becomes_array(module, copy) and handed_to(module, copy, _of_arrays):
        return True
    call = module.tree.call_given(copy)
    if call is None or not isinstance(call.func, (cst.Name, cst.Attribute)):
        return False
    if module.qualified(call.func) is not None:
        return False
    if isinstance(call.func, cst.Attribute) and module.classes.instance_class(call.func.value) is None:
        return False
    value = module.value(call.func)
    return value.kind in (Kind.UNKNOWN, Kind.OBJECT) and value.definition is None


_COLLECTING = frozenset(
    {"append", "extend", "insert", "add", "update", "put", "log", "step", "accumulate", "push", "collect"}
)


def _hands_array(module: Module, call: cst.Call) -> bool:
    """Return whether an object that the file does not show gets an argument, not in order to collect it."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value in _COLLECTING:
        return False
    if module.qualified(func) is not None:
        return False
    owner = module.value(func.value)
    return owner.kind is Kind.UNKNOWN and owner.definition is None


_KNOWN_PACKAGES = frozenset(
    {"torch", "torchvision", "torchaudio", "torchmetrics", "numpy", "math", "builtins"}
)


def _of_arrays(module: Module, call: cst.Call) -> bool:
    """Return whether a function comes from a library that scores arrays, as ``asteroid.metrics`` does."""
    package, _, rest = (module.qualified(call.func) or "").partition(".")
    return bool(rest) and package not in _KNOWN_PACKAGES and package != "sklearn"


def _becomes_array(module: Module, copy: cst.Call) -> bool:
    attribute = module.tree.parent(copy)
    return isinstance(attribute, cst.Attribute) and attribute.attr.value == "numpy"


def reads_items(module: Module, copy: cst.Call) -> bool:
    """Return whether what does not train copies results in order to go through them, or to yield one by one.

    One copy for all of them is how that is done well: each item read from the device would wait.
    """
    current = phase(module, copy)
    if current is Phase.FORWARD and grad(module, copy) is not Grad.OFF and not _detached(module, copy):
        return False
    return current is not Phase.TRAINING and True in verdicts(module, copy, _gone_through)


def _detached(module: Module, copy: cst.Call) -> bool:
    """Return whether it is ``x.detach().cpu()``, ``x.cpu().detach()``:
    what follows is no part of what is trained.

    Nor is ``x.cpu().numpy()``, which raises for what has a gradient.
    """
    node: cst.BaseExpression = copy
    while isinstance(attribute := module.tree.parent(node), cst.Attribute):
        node = attribute
        if attribute.attr.value == "numpy":
            return True
        called = module.tree.parent(attribute)
        if isinstance(called, cst.Call):
            node = called
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "detach":
            return True
        node = node.func.value
    return False


_HANDING_ON = frozenset({"zip", "enumerate", "list", "reversed", "tuple", "iter", "tqdm", "map"})


def _picked_apart(module: Module, use: cst.BaseExpression, loops: list[Loop]) -> bool:
    """Return whether a loop inside of ``loops`` reads another part of ``use`` in each round:
    ``scores[t]``.
    """
    part = module.tree.parent(use)
    if not isinstance(part, cst.Subscript) or part.value is not use:
        return False
    around = [loop for loop in module.flow.loops(part) if loop not in loops]
    return any(
        isinstance(name, cst.Name)
        and any(
            binding.kind is not BindingKind.PARAMETER and module.tree.contains(loop, binding.node)
            for binding in module.bindings(name)
            for loop in around
        )
        for element in part.slice
        for name in module.tree.descendants(element)
    )


def _filled_in(module: Module, pairs: cst.Call) -> bool:
    """Return whether it is ``list(zip(words, scores))``, ``dict(zip(names, values))``:
    gone through there and then.
    """
    call = module.tree.call_given(pairs)
    return call is not None and module.qualified(call.func) in ("builtins.list", "builtins.dict")


def _gone_through(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use goes through what was copied, item by item, or yields it."""
    match use.kind:
        case UseKind.ITERATED | UseKind.YIELDED:
            return True
        case UseKind.ATTRIBUTE | UseKind.METHOD | UseKind.ITEM:
            return ONWARD
        case UseKind.ARGUMENT:
            if last_name(use.call.func) == "zip" and _filled_in(module, use.call):
                return True
            of_arrays = (module.qualified(use.call.func) or "").startswith(("torch.", "numpy."))
            handed_on = of_arrays or last_name(use.call.func) in _HANDING_ON
            return Standing(use.call) if handed_on else ()
        case UseKind.ELEMENT if isinstance(use.by, cst.ListComp):
            return Standing(use.by)
        case UseKind.ELEMENT if isinstance(use.by, cst.Tuple):
            handed_out = isinstance(module.tree.parent(use.by), (cst.Yield, cst.Return))
            return Standing(use.by) if handed_out else ()
        case UseKind.ASSIGNED:
            return _gone_through_by_name(module, use)
        case UseKind.UNPACKED:
            return ONWARD
        case UseKind.RETURNED if isinstance(use.by, cst.Return):
            return ONWARD
    return ()


def _gone_through_by_name(module: Module, use: Use) -> Verdict[bool]:
    """Return the reads of a variable in the same round of the loops around its assignment."""
    bound = module.binding_of(use.by)
    loops = module.flow.loops(use.by)
    reads = module.uses(bound) if bound is not None else ()
    same = [read for read in reads if not loops or module.tree.contains(loops[0], read)]
    return True if any(_picked_apart(module, read, loops) for read in same) else tuple(map(Standing, same))


def sends_observation(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the host reads an action back some lines further on,
    for an environment that waits for it.

    What is sent for that is waited for in any case.
    """
    statement = module.tree.statement(node)
    block = module.tree.parent(statement)
    if not isinstance(block, cst.IndentedBlock):
        return False
    return any(
        (conversion(module, call) is not None or host_copy(module, call) is not None)
        and handed_to(module, call, steps_environment)
        for other in block.body[module.tree.position(statement) + 1 :]
        for call in module.tree.nodes_within(other, cst.Call)
    )
