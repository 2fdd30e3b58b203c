"""The loops over epochs: which loops go through the same loader again and again.

A loader is followed from the loops over it outwards: through the loops around them, and through the calls
that hand the loader to the function they are in. A loop that makes the loader anew in each iteration is no
loop over epochs, and neither is one over the loaders themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.configured import configured
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.identifiers import setting_default
from torchlint.semantics.lexicon import Role, begins, has
from torchlint.semantics.loaders import PROCESSOR_COUNTS, USING, Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Path, Through, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_GOING_THROUGH = (
    *(Role.TRAINING, Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.EPOCH),
    *(Role.PREDICTION, Role.INFERENCE),
)
_USUAL_PROCESSORS = 8
_COUNTING = frozenset({"range", "trange", "count", "arange", "cycle", "repeat"})


@dataclass(frozen=True, slots=True)
class Workers:
    """The worker processes of a loader: ``count`` unless told otherwise, by the expression ``code``.

    ``element`` says so in a dictionary that the loader is given as ``**options``.
    """

    count: int
    code: cst.BaseExpression | None = None
    element: cst.DictElement | None = None


def usual_workers(module: Module, call: cst.Call) -> Workers | None:
    """How many workers a loader has, where that is certain or where somebody has to ask for another number.

    The latter are options of the command line and parameters: their default is what a run has.
    """
    certain = Loaders.of(module).workers(call)
    if certain is not None:
        return Workers(certain)
    module = module.home(call)
    node = module.argument(call, "num_workers").node
    setting = configured(module, call, "num_workers")
    if setting is not None:
        usual = setting.value
        return Workers(usual, node) if isinstance(usual, int) and not isinstance(usual, bool) else None
    if node is None:
        return _workers_of_dictionary(module, call)
    count = _usual_count(module, node)
    return Workers(count, node) if count is not None else None


@solved(True)
def left_to_default(module: Module, node: cst.BaseExpression | None) -> bool:
    """Whether a number of workers is 0 unless somebody asks for another: that of an option with this default.

    Or of a parameter that all calls in the program fill with one, or leave alone.
    """
    if isinstance(node, cst.Attribute):
        default = setting_default(module, node)
        return default is not None and _is_zero(module, default)
    bindings = module.bindings(node) if isinstance(node, cst.Name) else ()
    if len(bindings) != 1 or not isinstance(param := bindings[0].node, cst.Param):
        return False
    callers = module.callers(bindings[0].scope.node)
    passed = [module.argument(caller, bindings[0].name) for caller in callers]
    return bool(passed) and all(
        param.default is not None and _is_zero(module, param.default)
        if argument.absent
        else left_to_default(module, argument.node)
        for argument in passed
    )


def _is_zero(module: Module, node: cst.BaseExpression) -> bool:
    constant = module.value(node).constant
    return constant == 0 and isinstance(constant, int) and not isinstance(constant, bool)


@solved(None)
def _usual_count(module: Module, node: cst.BaseExpression) -> int | None:
    """The number that an expression gives on a usual machine, unless somebody asks for another.

    An option of the command line or a parameter has its default, and ``min(8, os.cpu_count())`` is 8.
    """
    known = module.value(node).constant
    if isinstance(known, int) and not isinstance(known, bool):
        return known
    default: cst.BaseExpression | None = None
    match node:
        case cst.Call():
            return _called_count(module, node)
        case cst.IfExp():
            found = (_usual_count(module, node.body), _usual_count(module, node.orelse))
            return None if None in found else max(filter(None, found), default=0)
        case cst.BooleanOperation(operator=cst.Or()):
            return _usual_count(module, node.left)
        case cst.BinaryOperation(operator=cst.FloorDivide()):
            whole, parts = _usual_count(module, node.left), _usual_count(module, node.right)
            return whole // parts if whole is not None and parts else None
        case cst.Attribute():
            default = setting_default(module, node)
        case cst.Name():
            bindings = module.bindings(node)
            if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param):
                if module.link is not None and module.callers(bindings[0].scope.node):
                    return _passed_count(module, bindings[0])
                default = bindings[0].node.default
            else:
                made = module.names.assignment(node)
                return (
                    _usual_count(module, made.value) if made is not None and made.value is not None else None
                )
    count = module.value(default).constant if default is not None else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _called_count(module: Module, call: cst.Call) -> int | None:
    """``int(workers)``, ``os.cpu_count()``, ``min(8, os.cpu_count())``: what a call makes of counts."""
    name = module.qualified(call.func)
    if name in PROCESSOR_COUNTS:
        return _USUAL_PROCESSORS
    given = [argument.value for argument in call.args]
    if name == "builtins.int" and len(given) == 1:
        return _usual_count(module, given[0])
    if name != "builtins.min":
        return None
    if len(given) == 1 and isinstance(given[0], (cst.List, cst.Tuple)):
        given = [element.value for element in given[0].elements]
    counts = [_usual_count(module, each) for each in given]
    known = [count for count in counts if count is not None]
    return min(known) if known and len(known) == len(counts) else None


def _passed_count(module: Module, parameter: Binding) -> int | None:
    """The least number that the calls in a program pass for a parameter; None if that of one is open."""
    found: list[int] = []
    for caller in module.callers(parameter.scope.node):
        assert isinstance(parameter.node, cst.Param)
        argument = module.argument(caller, parameter.name)
        given = parameter.node.default if argument.absent else argument.node
        count: object = module.value(given).constant if given is not None else None
        if not isinstance(count, int) and given is not None:
            count = _usual_count(module, given)
        if not isinstance(count, int) or isinstance(count, bool):
            return None
        found.append(count)
    return min(found, default=None)


def _workers_of_dictionary(module: Module, call: cst.Call) -> Workers | None:
    """``options = {"num_workers": 4} if cuda else {}``, and the loader is given ``**options``."""
    for argument in call.args:
        if argument.star != "**":
            continue
        for element in _elements(module, argument.value):
            count = module.value(element.value).constant
            if module.value(element.key).constant == "num_workers" and isinstance(count, int) and count > 0:
                return Workers(count, element=element)
    return None


@solved(())
def _elements(module: Module, node: cst.BaseExpression) -> tuple[cst.DictElement, ...]:
    """What is in a dictionary that is written out, in one branch or in another."""
    found: list[cst.DictElement] = []
    match node:
        case cst.Dict():
            found += (element for element in node.elements if isinstance(element, cst.DictElement))
        case cst.IfExp():
            found += (*_elements(module, node.body), *_elements(module, node.orelse))
        case cst.Name():
            for binding in module.bindings(node):
                if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, (cst.Dict, cst.IfExp)):
                    found += _elements(module, binding.value)
        case _:
            pass
    return tuple(dict.fromkeys(found))


# --- epochs -------------------------------------------------------------------------------------------


def repeated_epoch(module: Module, constructor: cst.Call) -> cst.For | cst.While | None:
    """The loop that goes through the loader made by ``constructor`` each time round, if there is one."""
    return next((loop for _, loop in repeated_epochs(module, constructor)), None)


def repeated_epochs(
    module: Module, constructor: cst.Call
) -> Iterator[tuple[cst.CSTNode, cst.For | cst.While]]:
    """Where an epoch of a loader begins that a loop makes again and again, with that loop."""
    for each in (module, *module.companions(*USING)):
        for place, iterated in _epochs(each, constructor):
            loop = _around(each, place, iterated, constructor)
            if loop is not None:
                yield place, loop


def _epochs(module: Module, constructor: cst.Call) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Where an epoch of a loader begins in one file, and what it goes through.

    That are loops, calls of ``iter``, and functions out of sight that are called as those are which train
    or evaluate.
    """
    loops: list[cst.For | cst.CompFor] = module.tree.nodes(cst.For, cst.CompFor)
    for loop in loops:
        for part in _zipped(loop.iter):
            if _is_made(module, part, constructor):
                yield loop, part
    for call in module.tree.calls_by_name.get("iter", ()):
        if isinstance(call.func, cst.Name) and len(call.args) == 1:
            given = call.args[0].value
            if _is_made(module, given, constructor) and not isinstance(module.tree.parent(call), cst.For):
                yield call, given
    for call in module.tree.nodes(cst.Call):
        if _goes_through(last_name(call.func)) and module.callee(call) is None:
            for argument in call.args:
                named = isinstance(argument.value, (cst.Name, cst.Attribute))
                if named and _is_made(module, argument.value, constructor):
                    yield call, argument.value


def _goes_through(name: str | None) -> bool:
    """Whether a function of this name goes through the batches of a loader that it is given."""
    return has(name, *_GOING_THROUGH) and not begins(name, Role.MAKING, Role.SAVING)


def _is_made(module: Module, node: cst.BaseExpression, constructor: cst.Call) -> bool:
    return constructor in Loaders.of(module).sources(node).calls


@solved(None)
def _around(
    module: Module, place: cst.CSTNode, iterated: cst.BaseExpression, constructor: cst.Call
) -> cst.For | cst.While | None:
    """The innermost loop that runs ``place`` each time round with the same loader."""
    for outer in module.flow.statement_loops(place):
        if _is_over_epochs(module, outer, iterated, constructor):
            return outer
    function = module.function(place)
    if function is None or function is module.function(constructor):
        return None
    parameter = _parameter(module, iterated, function)
    for caller in module.callers(function):
        given: cst.BaseExpression | None = iterated
        if parameter is not None:
            given = module.argument(caller, parameter.name).node
            if given is None or not _is_made(module, given, constructor):
                continue
        loop = _around(module, caller, given, constructor) if given is not None else None
        if loop is not None:
            return loop
    return None


def _parameter(module: Module, iterated: cst.BaseExpression, function: cst.CSTNode) -> Binding | None:
    """The parameter of ``function`` that the loader comes in by."""
    for node in module.tree.descendants(iterated):
        if isinstance(node, cst.Name) and module.names.is_read(node):
            for binding in module.bindings(node):
                if binding.kind is BindingKind.PARAMETER and binding.scope.node is function:
                    if binding.name not in ("self", "cls"):
                        return binding
    return None


def _is_over_epochs(
    module: Module, loop: cst.For | cst.While, iterated: cst.BaseExpression, constructor: cst.Call
) -> bool:
    others = Loaders.of(module).sources(iterated).calls
    if any(module.tree.contains(loop, made) for made in (*_making(module, constructor), *others)):
        return False
    if isinstance(loop, cst.While):
        return True
    if not _counts(module, loop) or _once(module, loop):
        return False
    # ``for i in range(3): for batch in loaders[i]`` goes through each once.
    targets = {n.value for n in module.tree.descendants(loop.target) if isinstance(n, cst.Name)}
    return not any(isinstance(n, cst.Name) and n.value in targets for n in module.tree.descendants(iterated))


def _counts(module: Module, loop: cst.For) -> bool:
    """Whether a loop counts, or goes by the name of epochs, instead of taking things one by one."""
    target = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
    if has(last_name(target), Role.EPOCH):
        return True
    iterated = loop.iter
    if isinstance(iterated, cst.Name):
        # ``epochs = trange(3)``
        binding = module.names.assignment(iterated)
        iterated = binding.value if binding is not None and binding.value is not None else iterated
    return any(
        isinstance(node, cst.Call) and last_name(node.func) in _COUNTING
        for node in module.tree.descendants(iterated)
    )


def _once(module: Module, loop: cst.For) -> bool:
    match loop.iter:
        case cst.Call(func=cst.Name(value="range"), args=[only]):
            return module.value(only.value).constant in (0, 1)
        case _:
            return False


@remembered
def _making(module: Module, constructor: cst.Call) -> list[cst.CSTNode]:
    """The constructor, and all calls that run it."""
    found: dict[cst.CSTNode, None] = {constructor: None}
    waiting: list[cst.CSTNode] = [constructor]
    while waiting:
        function = module.function(waiting.pop())
        callers = module.callers(function) if function is not None else ()
        waiting += (caller for caller in callers if caller not in found)
        found.update(dict.fromkeys(callers))
    return list(found)


def _zipped(iterated: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a loop goes through: several things at once under ``zip``."""
    if isinstance(iterated, cst.Call) and last_name(iterated.func) in ("zip", "enumerate", "tqdm"):
        for argument in iterated.args:
            if argument.keyword is None and not argument.star:
                yield from _zipped(argument.value)
    else:
        yield iterated


# --- what changes between epochs ------------------------------------------------------------------------


def data_changes(module: Module, constructor: cst.Call, loop: cst.For | cst.While) -> bool:
    """Whether a loop over epochs changes the dataset, of which workers that live on keep a copy."""
    dataset = Loaders.of(module).dataset(constructor)
    if module.link is not None:
        return _changed_in_program(module, dataset, loop)
    known = {module.source(dataset)} if dataset is not None else set()
    return any(
        _is_held(node) or module.source(node.value) in known
        for node in module.tree.descendants(loop)
        if isinstance(node, cst.Attribute) and _changes(module, node)
    )


def _changed_in_program(
    module: Module, dataset: cst.BaseExpression | None, loop: cst.For | cst.While
) -> bool:
    """Whether a loop, or a function that it calls, in whatever file, changes a dataset."""
    made = _makers(module, dataset) - {None} if dataset is not None else frozenset()
    spelt = module.source(dataset) if dataset is not None and not module.tree.is_elsewhere(dataset) else None
    seen: dict[cst.CSTNode, None] = {loop: None}
    waiting: list[cst.CSTNode] = [loop]
    for around in waiting:
        home = module.home(around)
        for node in home.tree.descendants(around):
            if isinstance(node, cst.Call):
                callee = home.callee(node)
                if callee is not None and callee not in seen and len(seen) < MANY:
                    seen[callee] = None
                    waiting.append(callee)
            elif isinstance(node, cst.Attribute) and _changes(home, node):
                if _is_held(node) or (around is loop and home is module and home.source(node.value) == spelt):
                    return True
                if not made.isdisjoint(_makers(home, node.value)):
                    return True
    return False


def _is_held(attribute: cst.Attribute) -> bool:
    """Whether an attribute is one of ``loader.dataset``."""
    return isinstance(attribute.value, cst.Attribute) and attribute.value.attr.value == "dataset"


def _changes(module: Module, attribute: cst.Attribute) -> bool:
    """Whether an attribute is set, or a method of it is called that is not said to read."""
    parent = module.tree.parent(attribute)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
        return True
    called = isinstance(parent, cst.Call) and parent.func is attribute
    return called and not attribute.attr.value.startswith("get")


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _makers(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | None:
    """The calls that make an object of a class."""
    if not isinstance(node, cst.Call) or path:
        return None
    runs_function = isinstance(module.callee(node), cst.FunctionDef)
    return node if not runs_function or module.value(node.func).kind is Kind.CLASS else None
