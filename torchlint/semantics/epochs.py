"""The loops over epochs: which loops go through the same loader again and again.

A loader is followed from the loops over it outwards: through the loops around them, and through the calls
that hand the loader to the function they are in. A loop that makes the loader anew in each iteration is no
loop over epochs, and neither is one over the loaders themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, begins, has
from torchlint.semantics.loaders import USING, Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_GOING_THROUGH = (
    *(Role.TRAINING, Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.EPOCH),
    *(Role.PREDICTION, Role.INFERENCE),
)
_COUNTING = frozenset({"range", "trange", "count", "arange", "cycle", "repeat"})


def repeated_epochs(
    module: Module, constructor: cst.Call
) -> Iterator[tuple[cst.CSTNode, cst.For | cst.While]]:
    """Yield where an epoch of a loader begins that a loop makes again and again, with that loop."""
    for each in (module, *module.companions(*USING)):
        for place, iterated in _epochs(each, constructor):
            loop = _around(each, place, iterated, constructor)
            if loop is not None:
                yield place, loop


def _epochs(module: Module, constructor: cst.Call) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Yield where an epoch of a loader begins in one file, and what it goes through.

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
    """Return whether a function of this name goes through the batches of a loader that it is given."""
    return has(name, *_GOING_THROUGH) and not begins(name, Role.MAKING, Role.SAVING)


def _is_made(module: Module, node: cst.BaseExpression, constructor: cst.Call) -> bool:
    return constructor in Loaders.of(module).sources(node).calls


@solved(None)
def _around(
    module: Module, place: cst.CSTNode, iterated: cst.BaseExpression, constructor: cst.Call
) -> cst.For | cst.While | None:
    """Return the innermost loop that runs ``place`` each time round with the same loader."""
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
    """Return the parameter of ``function`` that the loader comes in by."""
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
    """Return whether a loop counts, or goes by the name of epochs, instead of taking things one by one."""
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
    """Return the constructor, and all calls that run it."""
    found: dict[cst.CSTNode, None] = {constructor: None}
    waiting: list[cst.CSTNode] = [constructor]
    while waiting:
        function = module.function(waiting.pop())
        callers = module.callers(function) if function is not None else ()
        waiting += (caller for caller in callers if caller not in found)
        found.update(dict.fromkeys(callers))
    return list(found)


def _zipped(iterated: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what a loop goes through: several things at once under ``zip``."""
    if isinstance(iterated, cst.Call) and last_name(iterated.func) in ("zip", "enumerate", "tqdm"):
        for argument in iterated.args:
            if argument.keyword is None and not argument.star:
                yield from _zipped(argument.value)
    else:
        yield iterated
