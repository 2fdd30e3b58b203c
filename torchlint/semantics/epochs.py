"""The loops over epochs: which loops go through the same loader again and again.

A loader is followed from the loops over it outwards: through the loops around them, and through the calls
that hand the loader to the function they are in. A loop that makes the loader anew in each iteration is no
loop over epochs, and neither is one over the loaders themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DEPTH = 6
_GOING_THROUGH = re.compile(
    r"^(?!make|get|build|create|prepare|save)[a-z_]*(train|eval|valid|test|epoch|fit|predict|infer)"
)
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
    node = module.argument(call, "num_workers").node
    if node is None:
        return _workers_of_dictionary(module, call)
    read = node
    if isinstance(read, cst.Call) and module.qualified(read.func) == "builtins.int" and len(read.args) == 1:
        read = read.args[0].value
    default: cst.BaseExpression | None = None
    match read:
        case cst.Attribute(value=cst.Name(), attr=cst.Name(value=option)):
            default = option_default(module, option)
        case cst.Name():
            bindings = module.bindings(read)
            if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param):
                default = bindings[0].node.default
        case _:
            return None
    count = module.value(default).constant if default is not None else None
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    return Workers(count, node)


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


def option_default(module: Module, name: str) -> cst.BaseExpression | None:
    """The default of ``add_argument("--num-workers", default=4)``, if the file has one of that name."""
    found: list[cst.BaseExpression] = []
    for call in module.tree.nodes(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add_argument":
            continue
        flags = [
            flag.lstrip("-").replace("-", "_")
            for arg in call.args
            if arg.keyword is None and isinstance(flag := module.value(arg.value).constant, str)
        ]
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if "dest" in given:
            flags = [str(module.value(given["dest"]).constant)]
        if name in flags and "default" in given:
            found.append(given["default"])
    return found[0] if len(found) == 1 else None


# --- epochs -------------------------------------------------------------------------------------------


def repeated_epoch(module: Module, constructor: cst.Call) -> cst.For | cst.While | None:
    """The loop that goes through the loader made by ``constructor`` each time round, if there is one."""
    return next((loop for _, loop in repeated_epochs(module, constructor)), None)


def repeated_epochs(
    module: Module, constructor: cst.Call
) -> Iterator[tuple[cst.CSTNode, cst.For | cst.While]]:
    """Where an epoch of a loader begins that a loop makes again and again, with that loop."""
    search = _Search(module, constructor)
    for place, iterated in search.epochs():
        loop = search.around(place, iterated, 0)
        if loop is not None:
            yield place, loop


class _Search:
    """The way from the epochs of one loader to the loops around them."""

    def __init__(self, module: Module, constructor: cst.Call) -> None:
        self.module, self.tree, self.constructor = module, module.tree, constructor
        self.origin = module.function(constructor)
        self.making = self._making()

    def epochs(self) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
        """Where an epoch of the loader begins, and what it goes through.

        That are loops, calls of ``iter``, and functions of other files that are called as those are which
        train or evaluate.
        """
        loops: list[cst.For | cst.CompFor] = self.tree.nodes(cst.For, cst.CompFor)
        for loop in loops:
            for part in _zipped(loop.iter):
                if self._is_it(part):
                    yield loop, part
        for call in self.tree.nodes(cst.Call):
            if isinstance(call.func, cst.Name) and call.func.value == "iter" and len(call.args) == 1:
                if self._is_it(call.args[0].value) and not isinstance(self.tree.parent(call), cst.For):
                    yield call, call.args[0].value

        for call in self.tree.nodes(cst.Call):
            if _GOING_THROUGH.search(last_name(call.func) or "") and self.module.callee(call) is None:
                for argument in call.args:
                    if isinstance(argument.value, (cst.Name, cst.Attribute)) and self._is_it(argument.value):
                        yield call, argument.value

    def _is_it(self, node: cst.BaseExpression) -> bool:
        return self.constructor in Loaders.of(self.module).sources(node).calls

    @remembered
    def around(
        self, place: cst.CSTNode, iterated: cst.BaseExpression, depth: int
    ) -> cst.For | cst.While | None:
        """The innermost loop that runs ``place`` each time round with the same loader."""
        for outer in self.module.flow.loops(place):
            if isinstance(outer, (cst.For, cst.While)) and self._is_over_epochs(outer, iterated):
                return outer
        function = self.module.function(place)
        if function is None or function is self.origin or depth > _DEPTH:
            return None
        parameter = self._parameter(iterated, function)
        for caller in self.module.callers(function):
            given: cst.BaseExpression | None = iterated
            if parameter is not None:
                given = self.module.argument(caller, parameter.name).node
                if given is None or not self._is_it(given):
                    continue
            loop = self.around(caller, given, depth + 1) if given is not None else None
            if loop is not None:
                return loop
        return None

    def _parameter(self, iterated: cst.BaseExpression, function: cst.CSTNode) -> Binding | None:
        """The parameter of ``function`` that the loader comes in by."""
        for node in self.tree.descendants(iterated):
            if isinstance(node, cst.Name) and self.module.names.is_read(node):
                for binding in self.module.bindings(node):
                    if binding.kind is BindingKind.PARAMETER and binding.scope.node is function:
                        if binding.name not in ("self", "cls"):
                            return binding
        return None

    def _is_over_epochs(self, loop: cst.For | cst.While, iterated: cst.BaseExpression) -> bool:
        others = Loaders.of(self.module).sources(iterated).calls
        if any(self.tree.contains(loop, made) for made in (*self.making, *others)):
            return False
        if isinstance(loop, cst.While):
            return True
        if not self._counts(loop) or self._once(loop):
            return False
        # ``for i in range(3): for batch in loaders[i]`` goes through each once.
        targets = {n.value for n in self.tree.descendants(loop.target) if isinstance(n, cst.Name)}
        return not any(
            isinstance(n, cst.Name) and n.value in targets for n in self.tree.descendants(iterated)
        )

    def _counts(self, loop: cst.For) -> bool:
        """Whether a loop counts, or goes by the name of epochs, instead of taking things one by one."""
        target = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
        if has(last_name(target), Role.EPOCH):
            return True
        iterated = loop.iter
        if isinstance(iterated, cst.Name):
            # ``epochs = trange(3)``
            binding = self.module.names.assignment(iterated)
            iterated = binding.value if binding is not None and binding.value is not None else iterated
        return any(
            isinstance(node, cst.Call) and last_name(node.func) in _COUNTING
            for node in self.tree.descendants(iterated)
        )

    def _once(self, loop: cst.For) -> bool:
        match loop.iter:
            case cst.Call(func=cst.Name(value="range"), args=[only]):
                return self.module.value(only.value).constant in (0, 1)
            case _:
                return False

    def _making(self) -> list[cst.CSTNode]:
        """The constructor, and all calls that run it."""
        found: list[cst.CSTNode] = [self.constructor]
        for node in found:
            function = self.module.function(node)
            if function is not None and len(found) < 50:
                found += [caller for caller in self.module.callers(function) if caller not in found]
        return found


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
    known = {module.source(dataset)} if dataset is not None else set()
    for node in module.tree.descendants(loop):
        if not isinstance(node, cst.Attribute):
            continue
        held = isinstance(node.value, cst.Attribute) and node.value.attr.value == "dataset"
        if not held and module.source(node.value) not in known:
            continue
        parent = module.tree.parent(node)
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
            return True
        if isinstance(parent, cst.Call) and parent.func is node and not node.attr.value.startswith("get"):
            return True
    return False
