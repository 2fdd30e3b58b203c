"""What the files of a project do with the output of a model that ends in what belongs to its loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.fixes import Edits, elsewhere, remove_argument, remove_statement, replace, spell
from torchlint.semantics.formulas import argument
from torchlint.semantics.layers import RETURNS_SELF, SEQUENTIAL
from torchlint.semantics.operations import operations_of
from torchlint.semantics.sinks import ONWARD, Path, Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.wholeprogram import calls_shown, users_shown

from .formulas import one_line
from .losses import RESHAPES, GivenTo

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What leaves a model, and what it computes, as it is.
_HARMLESS = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "children", "buffers"}
    | {"zero_grad", "compile", "named_modules", "named_children", "named_buffers"}
)
_WRAPPERS = frozenset(
    {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"}
    | {"torch.nn.parallel.DataParallel"}
)
# What says the same of logits as of probabilities.
_OF_LOGITS_TOO = frozenset({"argmax", "size", "dim", "numel", "shape", "device", "dtype", "ndim"})
_ASKING = frozenset({"torch.argmax", "torch.numel", "builtins.len"}) | {
    f"torch.{name}_like" for name in ("empty", "full", "ones", "rand", "randn", "zeros")
}
_NAMING = (UseKind.ASSIGNED, UseKind.CHOICE, UseKind.UNPACKED)


@dataclass(frozen=True, slots=True)
class _Run:
    """A call of the model."""

    call: cst.Call


@dataclass(frozen=True, slots=True)
class _Loss:
    """A call of a loss that is given the value."""

    call: cst.Call


@dataclass(frozen=True, slots=True)
class _Model:
    """The class whose ``forward`` returns the value, as the part ``path`` of what it returns."""

    definition: cst.ClassDef
    path: Path


_UNKNOWN = None
_Fact: TypeAlias = _Run | _Loss | _Model | None


def logits_instead(
    module: Module, found: GivenTo, function: str, layer: str, stable: Mapping[str, str]
) -> list[Edits | None] | None:
    """Return the edits by which a model returns logits and its losses take them; None if that cannot be.

    ``stable`` has what takes the place of the loss, if it does not take logits itself.
    """
    ending = found.ending.node
    if found.ending.operation is not None or not isinstance(ending, cst.BaseExpression):
        return None
    losses = _Outputs(module, function, layer).losses(ending)
    if losses is None or found.call not in losses:
        return None
    edits: list[Edits | None] = [_without(module, ending)]
    for node in _spelt(module, losses, function, layer) if stable else ():
        home = module.home(node)
        if node.func is not found.call.func and not _used_by(module, node, losses):
            return None
        spelling = spell(home, stable[home.qualified(node.func) or ""], node)
        if spelling is None:
            return None
        edits.append(elsewhere(module, home, replace(home, node.func, spelling.text)))
        edits.append(elsewhere(module, home, spelling.edits))
    return edits


def _without(module: Module, ending: cst.BaseExpression) -> Edits | None:
    """Return the edit that takes the last operation, or the last layer, out of a model."""
    home = module.home(ending)
    operation = operations_of(home).of(ending)
    holder = home.tree.parent(ending)
    if operation is None:
        sequence = home.tree.parent(holder) if isinstance(holder, cst.Arg) else None
        if not isinstance(sequence, cst.Call) or len(sequence.args) < 2 or not isinstance(holder, cst.Arg):
            return None
        return elsewhere(module, home, remove_argument(home, holder))
    code = argument(home, operation.operands[0])
    if not one_line(code):
        return None
    if isinstance(holder, cst.Assign) and home.source(holder.targets[0].target) == code:
        return elsewhere(module, home, remove_statement(home, home.tree.statement(holder)))
    return elsewhere(module, home, replace(home, ending, code))


def _spelt(module: Module, losses: list[cst.Call], function: str, layer: str) -> list[cst.Call]:
    """Return the calls by which losses are named: of the function, or those that make the layers."""
    found: dict[cst.Call, None] = {}
    for call in losses:
        home = module.home(call)
        origin = call if home.qualified(call.func) == function else home.value(call.func).origin
        if isinstance(origin, cst.Call):
            found[origin] = None
    return list(found)


def _used_by(module: Module, made: cst.Call, losses: list[cst.Call]) -> bool:
    """Return whether a loss is called for these alone."""
    if made in losses:
        return True
    home = module.home(made)
    return all(
        call in losses
        for each in (home, *home.companions("loss", "backward", "riterion"))
        for call in each.tree.nodes(cst.Call)
        if call is not made and each.value(call.func).origin is made
    )


class _Outputs:
    """Follows the output of a model to the losses that it is given."""

    def __init__(self, module: Module, function: str, layer: str) -> None:
        self._module = module
        self._function, self._layer = function, layer

    def losses(self, ending: cst.BaseExpression) -> list[cst.Call] | None:
        """Return all losses that are given what ends so; None if something else may be done with it."""
        made = operations_of(self._module.home(ending)).of(ending) is None
        # What stands somewhere, and of a model which part of its output is meant.
        waiting: list[tuple[Standing, Path | None]] = [(Standing(ending), () if made else None)]
        seen = set(waiting)
        found: dict[cst.Call, None] = {}
        while waiting:
            standing, part = waiting.pop()
            for fact in sinks(self._module, standing, self._of_output if part is None else self._of_model):
                following: list[tuple[Standing, Path | None]] = []
                match fact:
                    case _Loss(call):
                        found[call] = None
                    case _Run(call):
                        following = [(Standing(call, part or ()), None)]
                    case _Model(definition, path):
                        makers = self._makers(definition)
                        if makers is None:
                            return None
                        following = [(Standing(maker), path) for maker in makers]
                    case _:
                        return None
                new = [each for each in following if each not in seen]
                seen.update(new)
                waiting += new
        return list(found)

    def _makers(self, definition: cst.ClassDef) -> list[cst.Call] | None:
        """Return the calls that make the models of a class; None if others may make some,
        or derive from it.
        """
        home = self._module.home(definition)
        binding = home.binding_of(definition)
        if binding is None or len(home.classes.heirs(definition)) > 1 or not users_shown(home, definition):
            return None
        found: list[cst.Call] = []
        for read in (*home.uses(binding), *home.names.uses_elsewhere(binding)):
            call = home.tree.parent(read)
            if isinstance(call, cst.Annotation) or self._is_super(call):
                continue
            if not isinstance(call, cst.Call) or call.func is not read:
                return None
            found.append(call)
        return found or None

    def _is_super(self, node: cst.CSTNode | None) -> bool:
        """Return whether it is ``super(Net, self)``."""
        call = self._module.tree.parent(node) if isinstance(node, cst.Arg) else None
        return isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "super"

    def _of_model(self, module: Module, use: Use) -> Verdict[_Fact]:
        """Return what a use of the model itself does."""
        match use.kind:
            case UseKind.CALLED if isinstance(use.by, cst.Call):
                return _Run(use.by)
            case UseKind.METHOD:
                return ONWARD if use.name in RETURNS_SELF else () if use.name in _HARMLESS else _UNKNOWN
            case UseKind.ARGUMENT:
                return self._given(module, use)
            case UseKind.STORED:
                return ONWARD if self._is_read_by_self(module, use.by) else _UNKNOWN
        return self._passed(module, use)

    def _given(self, module: Module, use: Use) -> Verdict[_Fact]:
        name = module.qualified(use.call.func)
        if name == SEQUENTIAL:
            return Standing(use.call) if use.call.args[-1] is use.argument else _UNKNOWN
        if name in _WRAPPERS:
            return Standing(use.call)
        return ONWARD if module.callee(use.call) is not None else _UNKNOWN

    def _of_output(self, module: Module, use: Use) -> Verdict[_Fact]:
        """Return what a use of the model's output does."""
        match use.kind:
            case UseKind.ARGUMENT:
                if self._is_loss(module, use):
                    return _Loss(use.call)
                if module.qualified(use.call.func) in _ASKING:
                    return ()
                return ONWARD if module.callee(use.call) is not None else _UNKNOWN
            case UseKind.METHOD:
                return ONWARD if use.name in RESHAPES else () if use.name in _OF_LOGITS_TOO else _UNKNOWN
            case UseKind.ATTRIBUTE:
                return () if use.name in _OF_LOGITS_TOO else _UNKNOWN
            case UseKind.ELEMENT | UseKind.ITEM:
                return ONWARD
            case UseKind.RETURNED if (owner := self._forward_of(module, use)) is not None:
                return _Model(owner, use.path)
        return self._passed(module, use)

    def _is_loss(self, module: Module, use: Use) -> bool:
        first = (
            use.argument.keyword.value == "input" if use.argument.keyword else use.call.args[0] is use.part
        )
        if not first or use.argument.star:
            return False
        name, origin = module.qualified(use.call.func), module.value(use.call.func).origin
        made = isinstance(origin, cst.Call) and module.home(origin).qualified(origin.func) == self._layer
        return name == self._function or made

    def _forward_of(self, module: Module, use: Use) -> cst.ClassDef | None:
        function = module.function(use.node)
        if not isinstance(function, cst.FunctionDef) or function.name.value != "forward":
            return None
        return module.home(function).classes.owner(function)

    def _passed(self, module: Module, use: Use) -> Verdict[_Fact]:
        """Return what a use does that passes a model or an output on."""
        if use.kind in _NAMING:
            return ONWARD
        if use.kind is UseKind.DISCARDED:
            return ()
        if use.kind is UseKind.RETURNED:
            function = module.function(use.node)
            shown = isinstance(function, cst.FunctionDef) and calls_shown(module, function)
            return ONWARD if shown else _UNKNOWN
        if use.kind is UseKind.ELSEWHERE and isinstance(use.by, (cst.Return, cst.Attribute)):
            # Asked about before: all calls of the function, and all reads of the attribute, are known.
            return ()
        return _UNKNOWN

    def _is_read_by_self(self, module: Module, target: cst.CSTNode) -> bool:
        """Return whether an attribute of this name is read in the program of ``self`` alone, in one class."""
        if not isinstance(target, cst.Attribute):
            return False
        home = module.home(target)
        owner = home.classes.instance_class(target.value)
        return owner is not None and all(
            each.classes.instance_class(node.value) is owner
            for each in (home, *home.companions(target.attr.value))
            for node in each.tree.attributes_by_name.get(target.attr.value, ())
            if each.qualified(node) is None
        )
