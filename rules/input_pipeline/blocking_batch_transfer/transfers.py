"""Which copies of pinned batches to the accelerator the host waits for without need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.api.memory import READING_METHODS, WRITTEN_PARAMETERS
from torchlint.semantics.api.results import LAYOUT_METHODS
from torchlint.semantics.configured import configured
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.environmentvariables import read_where_unset
from torchlint.semantics.flow.guards import implied
from torchlint.semantics.lexicon import asks_for_accelerator
from torchlint.semantics.loaders import SAME_MEMORY, Loaders
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import (
    Item,
    Path,
    Source,
    Through,
    every,
    onward,
    traced,
)
from torchlint.semantics.spellings import given_as
from torchlint.semantics.transfers import copied_in, transferred
from torchlint.semantics.values import MISSING, Kind, Memory

# What gives another name to the same memory.
_SHARING = (LAYOUT_METHODS - READING_METHODS - {"pin_memory", "requires_grad_"}) | {"numpy", "data", "T"}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A blocking copy of a part of a batch; ``tensor`` if that part certainly is one."""

    moved: cst.BaseExpression
    tensor: bool


class Transfers(Part):
    """What one file copies of the batches of its loaders; everything is computed on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)

    def _pinned_for_copies(self, call: cst.Call) -> bool | None:
        """Return what ``pinned`` does, for a run on an accelerator.

        That is what ``pin_memory=torch.cuda.is_available()`` and ``**({"pin_memory": True} if cuda else {})``
        ask for.
        """
        certain = self.loaders.pinned(call)
        if certain is not None:
            return certain
        setting = configured(self.module, call, "pin_memory")
        if setting is not None:
            return True if setting.value is True else None
        argument = self.module.argument(call, "pin_memory")
        if not argument.unknown:
            return True if argument.node is not None and every(_pins(self.module, argument.node)) else None
        options = (argument.value for argument in call.args if argument.star == "**")
        ends = (_pins(self.module, Source(mapping, ("pin_memory",))) for mapping in options)
        return True if every(frozenset[bool | None]().union(*ends)) else None

    def blocking_transfer(self, call: cst.Call) -> Transfer | None:
        """Return the part of a batch that a call copies to the accelerator while the host waits without need.

        It waits without need if the batch is in pinned memory, or if another part of the same batch is
        sent without waiting: then its author knows that it is. All parts of a batch are treated alike: one
        copy that has to wait also waits for the others, which are in the same stream, and so none is found
        beside it.
        """
        found = self._unneeded_wait(call)
        if found is None:
            return None
        for batch in self._batches_behind(found.moved):
            for other in self._copies_of[batch]:
                alike = self._unneeded_wait(other)
                if alike is None and _waits(self.module, other) is True:
                    return None
                if alike is not None and not alike.tensor:
                    found = Transfer(found.moved, tensor=False)
        return found

    @remembered
    def _unneeded_wait(self, call: cst.Call) -> Transfer | None:
        """Return what ``blocking_transfer`` does, for a call by itself."""
        moved = transferred(self.module, call) or copied_in(self.module, call)
        if moved is None or not self.loaders.pinning_helps or _waits(self.module, call) is not True:
            return None
        if "mps" in self.tree.source(call) or self._written_to(moved):
            return None
        sources = self.loaders.batch_sources(moved)
        if sources.known:
            # A copy from pageable memory goes on as it did before.
            if not any(self._pinned_for_copies(loader) for loader in sources.calls):
                return None
        elif self.module.value(moved).memory is Memory.PAGEABLE or self._sent_ahead.isdisjoint(
            self._batches_behind(moved)
        ):
            return None
        tensor = self.module.value(moved).kind is Kind.TENSOR
        if sources.known:
            collated = all(self._collates_tensors(loader) for loader in sources.calls)
            if sources.whole and not collated:
                return None
            tensor = tensor or collated
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda":
            tensor = True
        return Transfer(moved, tensor)

    @cached_property
    def _copies_of(self) -> dict[cst.CSTNode, list[cst.Call]]:
        """By batch, as `_batches_behind` tells them: the calls that send a part of it to the accelerator."""
        found: dict[cst.CSTNode, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            moved = self.loaders.sends(call)
            for batch in self._batches_behind(moved) if moved is not None else ():
                found.setdefault(batch, []).append(call)
        return found

    def _batches_behind(self, node: cst.BaseExpression) -> frozenset[cst.CSTNode]:
        """Return what identifies the batches that a tensor on the host is a part of, or is computed from.

        Those are the expressions that a loop goes over, or from which ``next`` takes a batch, and parameters
        that are given one.
        """
        return frozenset(end for end in self._taken_from(node) if end is not None)

    @traced(Through.ITEMS)
    def _taken_from(self, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
        match node:
            case _ if path[:1] == (Item.EACH,):
                return onward(node) if any(self._taken_from(Source(node))) else node
            case cst.Subscript(value=cst.Name() as owner) if (given := self._parameter(owner)) is not None:
                return given
            case cst.Subscript(value=owner) | cst.Attribute(value=owner):
                return onward(owner)
            case cst.Call(func=cst.Name("next")):
                return node
            case cst.Call(func=cst.Attribute(value=owner)) if self.module.qualified(node.func) is None:
                # What has been sent is there already.
                return onward(owner) if transferred(self.module, node) is None else []
            case cst.Call(args=[cst.Arg(value=given, star=""), *_]) if (
                self.module.qualified(node.func) in SAME_MEMORY
            ):
                return onward(given)
            case _:
                return None

    def _parameter(self, name: cst.Name) -> cst.CSTNode | None:
        """Return the parameter that a name certainly stands for."""
        bindings = self.module.bindings(name)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return None
        return bindings[0].node

    def _collates_tensors(self, loader: cst.Call) -> bool:
        """Return whether what a loader yields has plain tensors wherever it has something to move."""
        made = self.module.value(loader).definition
        if isinstance(made, cst.ClassDef) and self.module.classes.info(made).method("__iter__") is not None:
            return False
        argument = self.module.argument(loader, "collate_fn")
        if self.loaders.constant(loader, "batch_size") is None:
            return False
        if argument.absent or argument.constant is None:
            return True
        setting = configured(self.module, loader, "collate_fn") if argument.unknown else None
        if setting is not None:
            return setting.value in (MISSING, None)
        definition = self.module.value(argument.node).definition if argument.node is not None else None
        if isinstance(definition, cst.Lambda):
            return not self._makes_objects(definition.body)
        if not isinstance(definition, cst.FunctionDef):
            return False
        return not any(
            self._makes_objects(node.value)
            for node in self.tree.descendants(definition.body)
            if isinstance(node, cst.Return) and node.value is not None
        )

    def _makes_objects(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression holds instances of classes of some library or of the user."""
        for inner in self.tree.descendants(node):
            if isinstance(inner, cst.Call):
                name = self.module.qualified(inner.func)
                if name is None or not name.startswith(("torch.", "builtins.", "numpy.")):
                    return not isinstance(inner.func, cst.Attribute) or inner.func.attr.value[:1].isupper()
        return False

    @cached_property
    def _sent_ahead(self) -> set[cst.CSTNode]:
        """The batches of which some part is sent without waiting."""
        found: set[cst.CSTNode] = set()
        for call in self.tree.nodes(cst.Call):
            if any(a.keyword is not None and a.keyword.value == "non_blocking" for a in call.args):
                moved = transferred(self.module, call)
                if moved is not None and _waits(self.module, call) is False:
                    found |= self._batches_behind(moved)
        return found

    def _written_to(self, moved: cst.BaseExpression) -> bool:
        """Return whether the host changes the memory in place, which a copy under way would notice."""
        return any(True in verdicts(self.module, place, _writes) for place in self._places_of(moved))

    def _places_of(self, moved: cst.BaseExpression) -> Iterator[Standing]:
        """Yield the names of the memory of a tensor, and of the containers that it is a part of."""
        waiting: list[tuple[cst.BaseExpression, tuple[int | str | None, ...]]] = [(moved, ())]
        seen: set[Binding] = set()
        while waiting:
            node, path = waiting.pop()
            match node:
                case cst.Name():
                    for binding in set(self.module.names.bindings(node)) - seen:
                        seen.add(binding)
                        yield Standing(binding, path)
                        if binding.value is None or self.module.value(binding.value).kind is Kind.LOADER:
                            continue
                        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
                            waiting.append((binding.value, (None, *binding.path, *path)))
                        elif binding.kind is BindingKind.ASSIGN:
                            waiting.append((binding.value, (*binding.path, *path)))
                case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                    key = self.module.value(index).constant
                    waiting.append((owner, (key if isinstance(key, (int, str)) else None, *path)))
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("items"))):
                    waiting.append((owner, (None, *path[2:])))
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("get"))):
                    waiting.append((owner, (None, *path)))
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))):
                    if name in _SHARING or name == "values":
                        waiting.append((owner, path))


def _waits(module: Module, call: cst.Call) -> bool | None:
    """Return whether ``x.to(...)`` or ``x.cuda(...)`` is a blocking copy; None where that is open."""
    if any(argument.star for argument in call.args):
        return None
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "non_blocking":
            constant = module.inference.parameters.constant_in_sight(argument.value)
            return not constant if isinstance(constant, bool) else None
    positional = [argument for argument in call.args if argument.keyword is None]
    flags = [
        argument for argument in positional[1:] if isinstance(module.value(argument.value).constant, bool)
    ]
    if flags or len(positional) > 2:
        return False if flags and module.value(flags[0].value).constant is True else None
    return True


@traced(Through.ITEMS | Through.PARAMETERS)
def _pins(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether what is given for `pin_memory` is true on an accelerator, if the program may use it."""
    if path:
        return None
    constant = module.value(node).constant
    if constant is not MISSING:
        return constant is True
    match node:
        case cst.Comparison(
            left=read, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=expected)]
        ) if (unset := read_where_unset(module, read)) is not None:
            return unset == module.value(expected).constant
        case cst.BaseExpression() if any(
            guard.holds and _is_cuda(module, guard.test) for guard in implied(module, node, True)
        ):
            return True
    return None


def _is_cuda(module: Module, test: cst.BaseExpression) -> bool:
    match test:
        case cst.Call():
            return module.qualified(test.func) == "torch.cuda.is_available"
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
            sides = (module.value(side).constant for side in (test.left, right))
            return any(isinstance(side, str) and side.startswith("cuda") for side in sides)
        case cst.Name():
            # What the callers of a function ask for.
            asked = asks_for_accelerator(test.value) is True
            return asked and Loaders.of(module).from_parameter(test)
        case _:
            return False


def _writes(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use of a tensor changes its memory, through it or through an array that shares it.

    What is put into a container in its place has memory of its own.
    """
    match use.kind:
        case UseKind.METHOD if use.path:
            if use.name == "items":
                return Standing(use.call, (None, 1, *use.path[1:]))
            if use.name == "get":
                return Standing(use.call, use.path[1:])
            return ONWARD if use.name == "values" else False
        case UseKind.METHOD if use.name not in _SHARING:
            return use.name.endswith("_") and not use.name.endswith("__") and use.name != "requires_grad_"
        case UseKind.ATTRIBUTE if use.name not in _SHARING:
            return False
        case UseKind.METHOD | UseKind.ATTRIBUTE | UseKind.ASSIGNED | UseKind.ITEM:
            return ONWARD
        case UseKind.UNPACKED | UseKind.ITERATED if use.path:
            return ONWARD
        case UseKind.SET | UseKind.AUGMENTED:
            return not use.path and not isinstance(use.by, cst.Attribute)
        case UseKind.ARGUMENT if module.qualified(use.call.func) == "numpy.copyto":
            return use.call.args[0] is use.argument
        case UseKind.ARGUMENT if isinstance(module.callee(use.call), cst.FunctionDef):
            return ONWARD
        case UseKind.ARGUMENT:
            return _holds_result(module, use)
        case _:
            return False


def _holds_result(module: Module, use: Use) -> bool:
    """Return whether a function writes its result to what it is given:
    ``out=x``, ``relu(x, inplace=True)``.
    """
    if use.argument.keyword is not None:
        return use.argument.keyword.value in WRITTEN_PARAMETERS
    inplace = given_as(use.call, "inplace", None)
    switched_on = inplace is not None and module.value(inplace).constant is not False
    return switched_on and use.argument is use.call.args[0]
